//! Accumulating writes by index, index expressions and statistics on a device have the bits of the CPU. Wrong indices of
//! accumulating writes are reported late.

use selvedge::Error;
use selvedge::tensor::{Device, Generator, Index, ScatterReduction, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, check};
use crate::support::{Outcome, assert_error, device_tests};

device_tests! {
    accumulating_writes_have_the_bits_of_the_cpu, index_expressions_do, statistics_do, draws_by_weights_do,
    covariances_are_close, wrong_indices_of_accumulating_writes_are_reported_late => in_child(&[]),
}

const CPU: Device = Device::cpu();
const REDUCTIONS: [ScatterReduction; 5] = [
    ScatterReduction::Sum,
    ScatterReduction::Prod,
    ScatterReduction::Amin,
    ScatterReduction::Amax,
    ScatterReduction::Mean,
];
const DTYPES: [DType; 9] = [
    DType::U8,
    DType::I8,
    DType::I32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// Normal numbers, or small integers.
fn elements(dtype: DType, shape: &[usize], seed: u64) -> selvedge::Result<Tensor> {
    let generator = Generator::new(seed);
    match dtype.is_float() || dtype.is_complex() {
        true => generator.randn(shape, DType::F32, &CPU)?.cast(dtype),
        false => generator.randint(0, 9, shape, DType::I64, &CPU)?.cast(dtype),
    }
}

fn integers(high: usize, shape: &[usize], seed: u64) -> selvedge::Result<Tensor> {
    Generator::new(seed).randint(0, high as i64, shape, DType::I64, &CPU)
}

/// Of rows, an index of each element, elements of its shape, the rows and columns of places with an element for each, and
/// a mask of the rows.
const WRITES: &[Case] = &[
    ("scatter_add", |x| Ok(vec![x[0].scatter_add(0, &x[1], &x[2])?])),
    ("index_add", |x| Ok(vec![x[0].index_add(0, &x[3], &x[2])?])),
    ("index_put", |x| Ok(vec![x[0].index_put(&[&x[3], &x[4]], &x[5], false)?])),
    ("index_put, accumulating", |x| {
        let rows = x[0].index_put(&[&x[3]], &x[2], true)?;
        Ok(vec![x[0].index_put(&[&x[3], &x[4]], &x[5], true)?, rows])
    }),
    ("index_fill", |x| Ok(vec![x[0].index_fill(0, &x[3], 3)?, x[0].index_fill(1, &x[4], 1)?])),
    ("masked_scatter", |x| Ok(vec![x[0].masked_scatter(&x[6], &x[0].flip(&[0])?)?])),
];

/// Of the same operands, and lengths of segments of the rows, none of them empty.
const REDUCED_WRITES: &[Case] = &[
    ("scatter_reduce", |x| {
        let both = REDUCTIONS.into_iter().flat_map(|reduction| [(reduction, false), (reduction, true)]);
        both.map(|(reduction, own)| x[0].scatter_reduce(0, &x[1], &x[2], reduction, own)).collect()
    }),
    ("segment_reduce", |x| {
        REDUCTIONS.into_iter().map(|reduction| x[0].segment_reduce(&x[7], reduction, 1)).collect()
    }),
];

fn accumulating_writes_have_the_bits_of_the_cpu() -> Outcome {
    for (rows, columns, count) in [(40, 7, 30), (3, 33, 500), (5000, 2, 70_000)] {
        for (seed, dtype) in (0..).zip(DTYPES.into_iter().chain([DType::C64])) {
            let lengths: Vec<i64> = if rows == 3 { vec![1, 2] } else { vec![1, 19, rows as i64 - 20] };
            let operands = [
                elements(dtype, &[rows, columns], seed)?,
                integers(rows, &[count, columns], seed + 1)?,
                elements(dtype, &[count, columns], seed + 2)?,
                integers(rows, &[count], seed + 3)?,
                integers(columns, &[count], seed + 4)?,
                elements(dtype, &[count], seed + 5)?,
                Generator::new(seed).bernoulli(0.4, &[rows, columns], DType::Bool, &CPU)?,
                Tensor::new(lengths, &CPU)?,
            ];
            check(WRITES, &operands, Agreement::Bits)?;
            if !dtype.is_complex() {
                check(REDUCED_WRITES, &operands, Agreement::Bits)?;
            }
        }
    }
    Ok(())
}

/// Of an array with three axes, indices of the first and the last, and a mask of the first two.
const EXPRESSIONS: &[Case] = &[
    ("integers and slices", |x| {
        let reversed = x[0].index((Index::Ellipsis, selvedge::types::Slice::from(..).step(-2)))?;
        Ok(vec![x[0].index((1, 1.., Index::NewAxis))?.contiguous()?, reversed.contiguous()?])
    }),
    ("index arrays", |x| {
        let apart = x[0].index((&x[1], 2, &x[2]))?;
        Ok(vec![x[0].index(&x[1])?, x[0].index((Index::Ellipsis, &x[2]))?, apart])
    }),
    ("masks", |x| Ok(vec![x[0].index(&x[3])?, x[0].index((&x[3], 1))?])),
    ("index_assign", |x| {
        let (mut slices, mut arrays, mut masked) = (x[0].clone(), x[0].clone(), x[0].clone());
        slices.in_place().index_assign((1.., 0), 1)?;
        let elements = arrays.index((&x[1], 0, &x[2]))?;
        arrays.in_place().index_assign((&x[1], 1, &x[2]), &elements)?;
        masked.in_place().index_assign(&x[3], 0)?;
        Ok(vec![slices, arrays, masked])
    }),
];

fn index_expressions_do() -> Outcome {
    for (seed, dtype) in (0..).zip([DType::Bool, DType::U8, DType::I16, DType::BF16, DType::F32, DType::C128])
    {
        for (shape, count) in [([4, 5, 6], 9), ([300, 3, 70], 4000)] {
            let operands = [
                elements(dtype, &shape, seed)?,
                integers(shape[0], &[count], seed + 1)?,
                integers(shape[2], &[count], seed + 2)?,
                Generator::new(seed).bernoulli(0.3, &shape[..2], DType::Bool, &CPU)?,
            ];
            check(EXPRESSIONS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

fn pair((first, second): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![first, second]
}

/// Of two matrices whose rows have one length.
const STATISTICS: &[Case] = &[
    ("cdist", |x| [0.0, 1.0, 2.0, f64::INFINITY].map(|p| x[0].cdist(&x[1], p)).into_iter().collect()),
    ("kron", |x| Ok(vec![x[0].kron(&x[1].narrow(0, 0, 2)?)?])),
    ("diff", |x| Ok(vec![x[0].diff(1, -1)?, x[0].diff(2, 0)?])),
    ("aminmax", |x| Ok([pair(x[0].aminmax(..)?), pair(x[0].aminmax(-1)?)].concat())),
    ("nansum and nanmean", |x| {
        let some = x[0].masked_fill(&x[0].gt(1)?, f64::NAN)?;
        Ok(vec![some.nansum(..)?, some.nansum(0)?, some.nanmean(-1)?])
    }),
];

fn statistics_do() -> Outcome {
    for (seed, dtype) in (0..).zip([DType::F32, DType::F64]) {
        for (rows, others, length) in [(7, 5, 3), (40, 33, 129)] {
            let operands = [elements(dtype, &[rows, length], seed)?, elements(dtype, &[others, length], 9)?];
            check(STATISTICS, &operands, Agreement::Bits)?;
        }
    }
    for dtype in [DType::I8, DType::I64, DType::BF16] {
        let operands = [elements(dtype, &[9, 1001], 1)?, elements(dtype, &[3, 1001], 2)?];
        check(&STATISTICS[1..4], &operands, Agreement::Bits)?;
    }
    Ok(())
}

const DRAWS: &[Case] = &[
    ("multinomial", |x| Ok(vec![Generator::new(5).multinomial(&x[0], 1000, true)?])),
    ("multinomial without replacement", |x| Ok(vec![Generator::new(6).multinomial(&x[0], 20, false)?])),
];

fn draws_by_weights_do() -> Outcome {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        for shape in [&[50][..], &[9, 3000]] {
            check(DRAWS, &[elements(dtype, shape, 3)?.abs()?.add(1)?], Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Products, whose sums have another order on a device.
const COVARIANCES: &[Case] = &[("cov and corrcoef", |x| Ok(vec![x[0].cov(1)?, x[0].corrcoef()?]))];

fn covariances_are_close() -> Outcome {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
        for shape in [&[300][..], &[9, 3000]] {
            check(COVARIANCES, &[elements(dtype, shape, 4)?], Agreement::Within(tolerance))?;
        }
    }
    Ok(())
}

/// The operation that an error names, the wrong index, a write, and its result without the wrong index's elements.
type Late = (&'static str, i64, fn(&[Tensor]) -> selvedge::Result<Tensor>, &'static [f32]);

/// Of a matrix, an index of each element, an index of rows, and elements.
const LATE: &[Late] = &[
    ("scatter_add", 9, |x| x[0].scatter_add(0, &x[1], &x[3]), &[11.0, 2.0, 3.0, 44.0, 35.0, 6.0]),
    (
        "scatter_reduce",
        9,
        |x| x[0].scatter_reduce(0, &x[1], &x[3], ScatterReduction::Amax, true),
        &[10.0, 2.0, 3.0, 40.0, 30.0, 6.0],
    ),
    ("index_add", -4, |x| x[0].index_add(0, &x[2], &x[3]), &[1.0, 2.0, 3.0, 4.0, 15.0, 26.0]),
    ("index_put", -4, |x| x[0].index_put(&[&x[2]], &x[3], true), &[1.0, 2.0, 3.0, 4.0, 15.0, 26.0]),
    ("index_put", -4, |x| x[0].index_put(&[&x[2]], &x[3], false), &[1.0, 2.0, 3.0, 4.0, 10.0, 20.0]),
    ("index_copy", -4, |x| x[0].index_fill(0, &x[2], 7), &[1.0, 2.0, 3.0, 4.0, 7.0, 7.0]),
    ("index", -4, |x| x[0].index(&x[2]), &[5.0, 6.0, 0.0, 0.0]),
];

/// A write that waits for the device returns the error itself; a captured one waits for nothing.
fn wrong_indices_of_accumulating_writes_are_reported_late() -> Outcome {
    let device = Device::cuda(0)?;
    let operands = [
        Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &device)?,
        Tensor::new([[0i64, 9], [2, 1]], &device)?,
        Tensor::new([2i64, -4], &device)?,
        Tensor::new([[10.0f32, 20.0], [30.0, 40.0]], &device)?,
    ];
    let stream = device.stream()?;
    for (name, wrong, run, wanted) in LATE {
        device.synchronize()?;
        let found = run(&operands).and_then(|_| device.synchronize());
        assert_error!(found, Error::IndexOutOfRange { operation, index, size: 3, .. } if operation == *name && index == *wrong);
        device.synchronize()?;
        let (graph, result) = stream.capture(|_| run(&operands))?;
        graph.instantiate()?.launch(&stream)?;
        let found = device.synchronize();
        assert_error!(found, Error::IndexOutOfRange { operation, index, size: 3, .. } if operation == *name && index == *wrong);
        let found = result.to_vec::<f32>()?;
        if found != *wanted {
            return Err(format!("{name}: {found:?}, not {wanted:?}").into());
        }
    }
    Ok(())
}
