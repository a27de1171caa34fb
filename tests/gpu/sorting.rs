//! Sorting, selection, search and counting on a device have the bits of the CPU.

use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, check};
use crate::support::{Outcome, device_tests};

device_tests! {
    orders_have_the_bits_of_the_cpu, distinct_elements_do, searches_do, counts_do, statistics_do, masks_do,
}

/// The dtypes that have an order: all but complex numbers and 8-bit floats.
fn ordered() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_complex() && !dtype.is_storage_only())
}

const SHAPES: [[usize; 2]; 4] = [[300, 7], [5, 1025], [2, 3000], [1, 9000]];

/// Small whole numbers with repetitions; for floats also zeros of both signs, infinities and NaN.
fn elements(dtype: DType, shape: &[usize], seed: u64) -> selvedge::Result<Tensor> {
    let (generator, cpu) = (Generator::new(seed), Device::cpu());
    let whole = generator.randint(-99, 100, shape, DType::I64, &cpu)?;
    if !dtype.is_float() {
        return if dtype.is_signed_integer() { whole } else { whole.abs()? }.cast(dtype);
    }
    let special = generator.randint(0, 50, shape, DType::I64, &cpu)?;
    let mut x = whole.cast(DType::F64)?;
    for (number, value) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0].into_iter().enumerate() {
        x = x.masked_fill(&special.eq(number as i64)?, value)?;
    }
    x.cast(dtype)
}

fn pair((first, second): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![first, second]
}

const ORDERS: &[Case] = &[
    ("sort", |x| Ok(pair(x[0].sort(-1, false)?))),
    ("sort, descending", |x| Ok(pair(x[0].sort(-1, true)?))),
    ("sorted", |x| Ok(vec![x[0].sorted(-1, false)?, x[0].sorted(0, true)?])),
    ("argsort of columns", |x| Ok(vec![x[0].argsort(0, false)?])),
    ("msort", |x| Ok(vec![x[0].msort()?])),
    ("largest", |x| Ok(pair(x[0].topk(5, -1, true)?))),
    ("least", |x| Ok(pair(x[0].topk(5, -1, false)?))),
    ("kthvalue", |x| Ok(pair(x[0].kthvalue(3, -1)?))),
];

const LONG_ORDERS: &[Case] = &[
    ("sort", |x| Ok(pair(x[0].sort(-1, false)?))),
    ("sort, descending", |x| Ok(pair(x[0].sort(-1, true)?))),
    ("sorted", |x| Ok(vec![x[0].sorted(-1, false)?, x[0].sorted(-1, true)?])),
    ("argsort", |x| Ok(vec![x[0].argsort(-1, false)?])),
];

fn orders_have_the_bits_of_the_cpu() -> Outcome {
    for shape in SHAPES {
        for (seed, dtype) in (0..).zip(ordered()) {
            check(ORDERS, &[elements(dtype, &shape, seed)?], Agreement::Bits)?;
        }
    }
    // Rows in many tiles, and tiles as large as they get, of all widths.
    for shape in [[7, 40_001], [1, 3_000_001]] {
        for dtype in [DType::U8, DType::F16, DType::F32, DType::I64] {
            check(LONG_ORDERS, &[elements(dtype, &shape, 8)?], Agreement::Bits)?;
        }
        let numbers = Generator::new(4).randn(&shape, DType::F32, &Device::cpu())?;
        check(LONG_ORDERS, std::slice::from_ref(&numbers), Agreement::Bits)?;
        check(LONG_ORDERS, &[numbers.cast(DType::F64)?], Agreement::Bits)?;
    }
    // A block a row, and one row in many segments.
    for shape in [[700, 5000], [1, 3_000_001]] {
        for dtype in [DType::U8, DType::I16, DType::F32, DType::F64] {
            check(FIRST, &[elements(dtype, &shape, 9)?], Agreement::Bits)?;
        }
        let numbers = Generator::new(3).randn(&shape, DType::F32, &Device::cpu())?;
        check(FIRST, std::slice::from_ref(&numbers), Agreement::Bits)?;
        check(FIRST, &[numbers.sort(-1, false)?.0], Agreement::Bits)?;
    }
    Ok(())
}

const FIRST: &[Case] = &[
    ("one", |x| Ok(pair(x[0].topk(1, -1, true)?))),
    ("50 largest", |x| Ok(pair(x[0].topk(50, -1, true)?))),
    ("1024 least", |x| Ok(pair(x[0].topk(1024, -1, false)?))),
    ("1025 least", |x| Ok(pair(x[0].topk(1025, -1, false)?))),
    ("the 1000th", |x| Ok(pair(x[0].kthvalue(1000, -1)?))),
];

const DISTINCT: &[Case] = &[
    ("unique", |x| Ok(vec![x[0].unique()?])),
    ("unique_with_counts", |x| {
        let (elements, inverse, counts) = x[0].unique_with_counts()?;
        Ok(vec![elements, inverse, counts])
    }),
    ("unique_consecutive_with_counts", |x| {
        let (elements, inverse, counts) = x[0].flatten(0, -1)?.unique_consecutive_with_counts()?;
        Ok(vec![elements, inverse, counts])
    }),
    ("isin", |x| Ok(vec![x[0].isin(&x[1])?])),
    ("mode", |x| Ok(pair(x[0].mode(-1)?))),
];

fn distinct_elements_do() -> Outcome {
    for dtype in ordered() {
        let operands = [elements(dtype, &[9, 3001], 1)?, elements(dtype, &[17], 2)?];
        check(DISTINCT, &operands, Agreement::Bits)?;
    }
    Ok(())
}

const SEARCHES: &[Case] = &[
    ("searchsorted", |x| Ok(vec![x[1].searchsorted(&x[0], false)?, x[1].searchsorted(&x[0], true)?])),
    ("bucketize", |x| Ok(vec![x[0].bucketize(&x[1], false)?, x[0].bucketize(&x[1], true)?])),
];

fn searches_do() -> Outcome {
    for dtype in ordered().filter(|dtype| *dtype != DType::Bool) {
        let (boundaries, _) = elements(dtype, &[501], 3)?.sort(0, false)?;
        check(SEARCHES, &[elements(dtype, &[100, 333], 4)?, boundaries], Agreement::Bits)?;
    }
    Ok(())
}

/// Of integers from 0 on, numbers, and edges.
const COUNTS: &[Case] = &[
    ("bincount", |x| Ok(vec![x[0].bincount(0)?, x[0].bincount(300)?])),
    ("histc", |x| Ok(vec![x[1].histc(64, -3.0, 2.0)?, x[1].histc(10, 0.0, 0.0)?])),
    ("histogram", |x| Ok(vec![x[1].histogram(&x[2])?])),
    ("cumulative sums", |x| Ok(vec![x[0].cumsum(0)?, x[1].cumsum(0)?])),
];

fn counts_do() -> Outcome {
    let (generator, cpu) = (Generator::new(5), Device::cpu());
    for count in [1, 255, 256, 257, 20_000] {
        for dtype in [DType::F32, DType::F64] {
            let integers = generator.randint(0, 200, &[count], DType::I32, &cpu)?;
            let edges = Tensor::linspace(-2.0, 2.0, 33, dtype, &cpu)?;
            let numbers = generator.randn(&[count], dtype, &cpu)?;
            check(COUNTS, &[integers, numbers, edges], Agreement::Bits)?;
        }
    }
    // Many tiles behind elements that no pack holds, and numbers at the edges of bins.
    let numbers = generator.randn(&[5_000_011], DType::F32, &cpu)?;
    let near = generator.randint(-300, 300, &[5_000_011], DType::I32, &cpu)?.cast(DType::F32)?.div(100.0)?;
    let integers = generator.randint(0, 9000, &[5_000_011], DType::I64, &cpu)?;
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for x in [&numbers, &near] {
            let operands = [x.cast(dtype)?.narrow(0, 3, 5_000_000)?];
            check(LARGE_RANGES, &operands, Agreement::Bits)?;
        }
    }
    for dtype in [DType::F32, DType::F64] {
        let x = near.cast(dtype)?;
        for steps in [3, 301, 7000, 20_000] {
            let edges = Tensor::linspace(-3.0, 2.5, steps, dtype, &cpu)?;
            let uneven = edges.mul(&edges.abs()?)?;
            let operands = [x.narrow(0, 1, 5_000_000)?, edges, uneven];
            check(LARGE_EDGES, &operands, Agreement::Bits)?;
        }
    }
    for dtype in [DType::I32, DType::I64, DType::U16] {
        check(LARGE_TALLIES, &[integers.cast(dtype)?.narrow(0, 1, 5_000_000)?], Agreement::Bits)?;
    }
    Ok(())
}

const LARGE_RANGES: &[Case] = &[
    ("256 bins of five million", |x| Ok(vec![x[0].histc(256, -3.0, 3.0)?])),
    ("600 bins of five million", |x| Ok(vec![x[0].histc(600, -3.0, 3.0)?])),
    ("bins of the least and greatest", |x| Ok(vec![x[0].histc(100, 0.0, 0.0)?])),
    ("20000 bins of five million", |x| Ok(vec![x[0].histc(20_000, -1.0, 2.0)?])),
    ("bins far from 0", |x| Ok(vec![x[0].add(1000.0)?.histc(77, 999.0, 1001.0)?])),
];
const LARGE_EDGES: &[Case] = &[
    ("edges of equal distances", |x| Ok(vec![x[0].histogram(&x[1])?])),
    ("edges of other distances", |x| Ok(vec![x[0].histogram(&x[2])?])),
];
const LARGE_TALLIES: &[Case] =
    &[("tallies of five million", |x| Ok(vec![x[0].bincount(0)?, x[0].bincount(20_000)?]))];

const STATISTICS: &[Case] = &[
    ("median", |x| Ok(pair(x[0].median(-1)?))),
    ("nanmedian", |x| Ok(pair(x[0].nanmedian(-1)?))),
    ("quantile", |x| Ok(vec![x[0].quantile(0.3, -1)?, x[0].quantile(0.75, 0)?])),
    ("nanquantile", |x| Ok(vec![x[0].nanquantile(0.3, -1)?])),
];

fn statistics_do() -> Outcome {
    for shape in &SHAPES[..3] {
        for dtype in [DType::F32, DType::F64] {
            // The sign of a NaN is the device's own.
            check(STATISTICS, &[elements(dtype, shape, 6)?], Agreement::Within(0.0))?;
        }
    }
    Ok(())
}

const MASKS: &[Case] = &[
    ("nonzero", |x| Ok(vec![x[0].nonzero()?, x[0].argwhere()?])),
    ("masked_select", |x| Ok(vec![x[0].masked_select(&x[0].gt(0)?)?])),
];

fn masks_do() -> Outcome {
    for shape in SHAPES {
        for dtype in [DType::I8, DType::I32, DType::F16, DType::F64] {
            check(MASKS, &[elements(dtype, &shape, 7)?], Agreement::Bits)?;
        }
    }
    // Many tiles, a mask that begins at an odd byte, and one that selects nothing.
    for dtype in [DType::U8, DType::F32, DType::C128] {
        let x = elements(DType::I16, &[5_000_011], 8)?;
        for mask in [x.gt(90)?, x.ge(-99)?, x.gt(99)?] {
            let operands = [x.cast(dtype)?.narrow(0, 3, 5_000_000)?, mask.narrow(0, 5, 5_000_000)?];
            check(LARGE_MASKS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

const LARGE_MASKS: &[Case] = &[
    ("nonzero of five million", |x| Ok(vec![x[1].nonzero()?, x[0].nonzero()?])),
    ("coordinates of five million", |x| Ok(vec![x[1].reshape(&[50, 1000, 100])?.nonzero()?])),
    ("masked_select of five million", |x| Ok(vec![x[0].masked_select(&x[1])?])),
];
