//! Accumulating writes, against loops that combine pairwise.

use num_complex::Complex;
use selvedge::tensor::{Device, Generator, ScatterReduction, Tensor};
use selvedge::{DType, Result};

const REDUCTIONS: [ScatterReduction; 5] = [
    ScatterReduction::Sum,
    ScatterReduction::Prod,
    ScatterReduction::Amin,
    ScatterReduction::Amax,
    ScatterReduction::Mean,
];

const NUMBERS: [DType; 12] = [
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

fn cpu() -> Device {
    Device::cpu()
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

fn merge(reduction: ScatterReduction, x: f64, y: f64) -> f64 {
    match reduction {
        ScatterReduction::Sum | ScatterReduction::Mean => x + y,
        ScatterReduction::Prod => x * y,
        ScatterReduction::Amin => x.min(y),
        ScatterReduction::Amax => x.max(y),
    }
}

/// Combines neighbours until one is left.
fn pairwise(reduction: ScatterReduction, mut row: Vec<f64>) -> Option<f64> {
    while row.len() > 1 {
        let merged = row.chunks(2).map(|pair| match pair {
            [x, y] => merge(reduction, *x, *y),
            _ => pair[0],
        });
        row = merged.collect();
    }
    row.first().copied()
}

/// The numbers that a list of places gives.
fn reduced(
    own: &[f64],
    places: &[Option<usize>],
    elements: &[f64],
    reduction: ScatterReduction,
    include_self: bool,
    is_integer: bool,
) -> Vec<f64> {
    let combined = own.iter().enumerate().map(|(place, &own)| {
        let named = places.iter().zip(elements).filter(|(at, _)| **at == Some(place));
        let row: Vec<f64> = named.map(|(_, element)| *element).collect();
        let count = row.len() + usize::from(include_self);
        let Some(mut result) = pairwise(reduction, row) else { return own };
        if include_self {
            result = merge(reduction, own, result);
        }
        if reduction == ScatterReduction::Mean {
            result /= count as f64;
            result = if is_integer { result.floor() } else { result };
        }
        result
    });
    combined.collect()
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.cast(DType::F64)?.to_vec()
}

/// Whole numbers small enough that every dtype holds the results, or f64 with rounding.
fn elements(dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
    let generator = Generator::new(seed);
    match dtype {
        DType::F64 => generator.randn(shape, dtype, &cpu()),
        _ => generator.randint(1, 3, shape, DType::I64, &cpu())?.cast(dtype),
    }
}

#[test]
fn scatter_reduce_combines_the_elements_of_each_place_pairwise_in_their_order() -> Result<()> {
    for dtype in NUMBERS {
        for reduction in REDUCTIONS {
            for include_self in [true, false] {
                let own = elements(dtype, &[3, 4], 1)?;
                let source = elements(dtype, &[3, 7], 2)?;
                // The last column of each row stays without an element.
                let index = Generator::new(3).randint(-4, 3, &[3, 7], DType::I64, &cpu())?;
                let found = own.scatter_reduce(1, &index, &source, reduction, include_self)?;
                assert_eq!((found.shape(), found.dtype()), (own.shape(), dtype));
                let columns = index.to_vec::<i64>()?;
                let places: Vec<Option<usize>> =
                    (0..21).map(|at| Some(at / 7 * 4 + columns[at].rem_euclid(4) as usize)).collect();
                let wanted = reduced(
                    &numbers(&own)?,
                    &places,
                    &numbers(&source)?,
                    reduction,
                    include_self,
                    dtype.is_integer(),
                );
                let wanted = Tensor::from_vec(wanted, &[3, 4], &cpu())?.cast(dtype)?;
                assert_eq!(found.to_bytes()?, wanted.to_bytes()?, "{dtype} {reduction:?} {include_self}");
            }
        }
    }
    Ok(())
}

#[test]
fn scatter_add_sums_one_long_run_pairwise() -> Result<()> {
    // In order, ones stop to count at 2^11 in f16 and 2^24 in f32; here f32 holds the sum and rounds it once.
    let index = Tensor::zeros(&[70_001], DType::I32, &cpu())?;
    for (dtype, wanted) in [(DType::F32, 70_002.0), (DType::BF16, 70_144.0), (DType::F64, 70_002.0)] {
        let ones = Tensor::ones(&[70_001], dtype, &cpu())?;
        let sum = Tensor::ones(&[2], dtype, &cpu())?.scatter_add(0, &index, &ones)?;
        assert_eq!(numbers(&sum)?, [wanted, 1.0], "{dtype}");
    }
    Ok(())
}

#[test]
fn accumulation_does_not_depend_on_threads_or_layouts() -> Result<()> {
    let generator = Generator::new(9);
    let source = generator.randn(&[300, 40], DType::F32, &cpu())?;
    let index = generator.randint(0, 20, &[300], DType::I64, &cpu())?;
    let own = generator.randn(&[20, 40], DType::F32, &cpu())?;
    let first = own.index_add(0, &index, &source)?;
    selvedge::set_threads(3);
    let second = own.index_add(0, &index, &source);
    selvedge::set_threads(0);
    assert_eq!(first.to_bytes()?, second?.to_bytes()?);
    let across = own.t()?.contiguous()?.t()?.index_add(0, &index, &source.t()?.contiguous()?.t()?)?;
    assert_eq!(first.to_bytes()?, across.to_bytes()?);
    let columns = own.t()?.index_add(1, &index, &source.t()?)?;
    assert_eq!(first.t()?.to_bytes()?, columns.to_bytes()?);
    // The same sums by another way.
    let wide = index.unsqueeze(-1)?.expand(&[300, 40])?;
    assert_eq!(first.to_bytes()?, own.scatter_add(0, &wide, &source)?.to_bytes()?);
    assert_eq!(first.to_bytes()?, own.index_put(&[&index], &source, true)?.to_bytes()?);
    Ok(())
}

#[test]
fn accumulation_at_edges_keeps_shapes_and_elements() -> Result<()> {
    let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu())?;
    let none = Tensor::zeros(&[0], DType::I64, &cpu())?;
    let no_rows = Tensor::zeros(&[0, 3], DType::I32, &cpu())?;
    assert_eq!(x.index_add(0, &none, &no_rows)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    assert_eq!(x.scatter_add(0, &no_rows, &no_rows)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    assert_eq!(x.index_put(&[&none], &no_rows, true)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    assert_eq!(no_rows.index_add(0, &none, &no_rows)?.shape()[..], [0, 3]);
    // A scalar of elements broadcasts; an index without dimensions is one position.
    let one = Tensor::new(10, &cpu())?;
    let last = Tensor::new(-1i64, &cpu())?;
    assert_eq!(x.index_add(1, &last, &one)?.to_vec::<i32>()?, [1, 2, 13, 4, 5, 16]);
    // NaN wins over numbers in extremes.
    let y = Tensor::new([f32::NAN, 1.0], &cpu())?;
    let index = Tensor::new([0, 0], &cpu())?;
    for reduction in [ScatterReduction::Amin, ScatterReduction::Amax] {
        let found = Tensor::new([5.0f32], &cpu())?.scatter_reduce(0, &index, &y, reduction, true)?;
        assert!(found.to_vec::<f32>()?[0].is_nan(), "{reduction:?}");
    }
    // In place, and in a part; other holders see nothing.
    let (mut z, before) = (x.clone(), x.clone());
    z.in_place().select(0, 1)?.index_add(0, &Tensor::new([0, 0], &cpu())?, &one)?;
    assert_eq!(z.to_vec::<i32>()?, [1, 2, 3, 24, 5, 6]);
    assert_eq!(before.to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
    z.in_place().index_fill(0, &last, 0)?.masked_scatter(&x.lt(3)?, &Tensor::new([8, 9, 7], &cpu())?)?;
    assert_eq!(z.to_vec::<i32>()?, [8, 9, 3, 0, 0, 0]);
    // A larger mask repeats the tensor; in place there is no room for that.
    let (mut row, mask) =
        (Tensor::new([1, 2], &cpu())?, Tensor::new([[true, false], [false, true]], &cpu())?);
    let repeated = row.masked_scatter(&mask, &Tensor::new([7, 8], &cpu())?)?;
    assert_eq!((&repeated.shape()[..], repeated.to_vec::<i32>()?), (&[2, 2][..], vec![7, 2, 1, 8]));
    assert!(row.in_place().masked_scatter(&mask, &Tensor::new([7, 8], &cpu())?).is_err());
    assert_eq!(row.to_vec::<i32>()?, [1, 2]);
    Ok(())
}

#[test]
fn index_put_names_coordinates_in_the_first_dimensions() -> Result<()> {
    let x = Tensor::arange(0, 24, 1, DType::I32, &cpu())?.reshape(&[2, 3, 4])?;
    let (rows, columns) = (Tensor::new([[0i64], [-1]], &cpu())?, Tensor::new([2u8, 0], &cpu())?);
    let elements = Tensor::arange(100, 116, 1, DType::I32, &cpu())?.reshape(&[2, 2, 4])?;
    let mut wanted = x.to_vec::<i32>()?;
    for (at, place) in [2usize, 0, 5, 3].into_iter().enumerate() {
        for step in 0..4 {
            wanted[place * 4 + step] = 100 + (at * 4 + step) as i32;
        }
    }
    assert_eq!(x.index_put(&[&rows, &columns], &elements, false)?.to_vec::<i32>()?, wanted);
    let zeros = x.zeros_like()?;
    let added = zeros.index_put(&[&rows, &columns], &elements, true)?.to_vec::<i32>()?;
    assert_eq!(added.iter().sum::<i32>(), (100..116).sum::<i32>());
    // Bools have no sums, but can be replaced.
    let mask = Tensor::zeros(&[3], DType::Bool, &cpu())?;
    let yes = Tensor::ones(&[], DType::Bool, &cpu())?;
    assert_eq!(
        mask.index_put(&[&Tensor::new([1], &cpu())?], &yes, false)?.to_vec::<bool>()?,
        [false, true, false]
    );
    Ok(())
}

#[test]
fn segment_reduce_combines_neighbouring_rows() -> Result<()> {
    let x = Tensor::new([[1.0f32, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]], &cpu())?;
    let lengths = Tensor::new([0, 3, 0, 1], &cpu())?;
    let table = [
        (ScatterReduction::Sum, [9.0, 9.0, 6.0, 60.0, 9.0, 9.0, 4.0, 40.0]),
        (ScatterReduction::Prod, [9.0, 9.0, 6.0, 6000.0, 9.0, 9.0, 4.0, 40.0]),
        (ScatterReduction::Amin, [9.0, 9.0, 1.0, 10.0, 9.0, 9.0, 4.0, 40.0]),
        (ScatterReduction::Amax, [9.0, 9.0, 3.0, 30.0, 9.0, 9.0, 4.0, 40.0]),
        (ScatterReduction::Mean, [9.0, 9.0, 2.0, 20.0, 9.0, 9.0, 4.0, 40.0]),
    ];
    for (reduction, wanted) in table {
        assert_eq!(x.segment_reduce(&lengths, reduction, 9)?.to_vec::<f32>()?, wanted, "{reduction:?}");
    }
    for (lengths, wanted) in [(vec![1, 2], "3 rows"), (vec![5, -1], "-1"), (vec![i64::MAX, 5], "4 rows")] {
        let count = lengths.len();
        let lengths = Tensor::from_vec(lengths, &[count], &cpu())?;
        let error = text(x.segment_reduce(&lengths, ScatterReduction::Sum, 0));
        assert!(error.contains(wanted) && error.starts_with("segment_reduce"), "{error}");
    }
    Ok(())
}

#[test]
fn complex_numbers_are_summed_multiplied_and_averaged() -> Result<()> {
    // Small whole numbers, so that every order and both dtypes have equal results.
    let numbers: Vec<Complex<f64>> =
        (0..10).map(|at| Complex::new(f64::from(at % 3) - 1.0, f64::from(at % 4) - 2.0)).collect();
    let lengths = [4usize, 0, 5, 1];
    let starts = [0usize, 4, 4, 9];
    let own = Complex::new(2.0, -1.0);
    for dtype in [DType::C64, DType::C128] {
        let x = Tensor::from_vec(numbers.clone(), &[10], &cpu())?.cast(dtype)?;
        let target = Tensor::full(&[4], own, dtype, &cpu())?;
        let places: Vec<i64> =
            lengths.iter().enumerate().flat_map(|(place, length)| vec![place as i64; *length]).collect();
        let index = Tensor::from_vec(places, &[10], &cpu())?;
        let counts = Tensor::from_vec(lengths.map(|length| length as i64).to_vec(), &[4], &cpu())?;
        for reduction in [ScatterReduction::Sum, ScatterReduction::Prod, ScatterReduction::Mean] {
            for include_self in [true, false] {
                let wanted: Vec<Complex<f64>> = (0..4)
                    .map(|place| {
                        let row = &numbers[starts[place]..starts[place] + lengths[place]];
                        if row.is_empty() {
                            return own;
                        }
                        let with_own = row.iter().copied().chain(include_self.then_some(own));
                        match reduction {
                            ScatterReduction::Prod => with_own.product(),
                            ScatterReduction::Mean => {
                                with_own.sum::<Complex<f64>>()
                                    / (row.len() + usize::from(include_self)) as f64
                            }
                            _ => with_own.sum(),
                        }
                    })
                    .collect();
                let check = |what: &str, found: Tensor| -> Result<()> {
                    assert_eq!(found.dtype(), dtype, "{what}");
                    let found: Vec<Complex<f64>> = found.cast(DType::C128)?.to_vec()?;
                    for (found, wanted) in found.iter().zip(&wanted) {
                        assert!(
                            (found - wanted).norm() < 1e-6,
                            "{what} {dtype} {reduction:?}: {found}, {wanted}"
                        );
                    }
                    Ok(())
                };
                check("scatter_reduce", target.scatter_reduce(0, &index, &x, reduction, include_self)?)?;
                if !include_self {
                    check("segment_reduce", x.segment_reduce(&counts, reduction, own)?)?;
                }
            }
        }
        let error = text(target.scatter_reduce(0, &index, &x, ScatterReduction::Amax, true));
        assert!(error.contains(&dtype.to_string()), "{error}");
    }
    Ok(())
}

#[test]
fn bad_input_of_accumulating_writes_names_both_sides_and_writes_nothing() -> Result<()> {
    let mut x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu())?;
    let (index, wide) = (Tensor::new([0, 3], &cpu())?, Tensor::new([[0], [-4]], &cpu())?);
    let one = Tensor::new(1, &cpu())?;
    let float = Tensor::new(1.0f32, &cpu())?;
    let mask = x.gt(2)?;
    let mut write = x.in_place();
    let table = [
        (
            text(write.index_add(1, &index, &one)),
            "index_add: found index 3 along axis 1; wanted one of 0 to 2",
        ),
        (text(write.scatter_add(1, &wide, &one)), "scatter_add: found index -4 along axis 1"),
        (
            text(write.scatter_reduce(1, &wide, &one, ScatterReduction::Sum, true)),
            "scatter_reduce: found index -4 along axis 1",
        ),
        (text(write.index_put(&[&one, &index], &one, true)), "index_put: found index 3 along axis 1"),
        (text(write.index_put(&[&index], &one, false)), "index_put: found index 3 along axis 0"),
        (text(write.index_put(&[], &one, false)), "0 indices for shape"),
        (text(write.index_put(&[&one, &one, &one], &one, false)), "3 indices for shape"),
        (text(write.index_fill(1, &index, 7)), "index 3 along axis 1"),
        (text(write.index_fill(1, &one, 1.5)), "1.5"),
        (text(write.index_add(2, &one, &one)), "axis 2"),
        (text(write.index_add(0, &one, &float)), "f32"),
        (text(write.index_add(0, &float, &one)), "an index of integers"),
        (text(write.scatter_add(0, &index, &one)), "as many dimensions"),
        (text(write.masked_scatter(&mask, &index)), "2 elements for a mask that is true 4 times"),
        (text(write.masked_scatter(&one, &index)), "a mask of bool"),
    ];
    for (error, wanted) in table {
        assert!(error.contains(wanted), "{error}; wanted {wanted}");
    }
    assert_eq!(x.to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
    let (bools, at) = (Tensor::zeros(&[2], DType::Bool, &cpu())?, Tensor::new([0], &cpu())?);
    assert!(text(bools.index_add(0, &at, &bools.narrow(0, 0, 1)?)).contains("bool"));
    Ok(())
}
