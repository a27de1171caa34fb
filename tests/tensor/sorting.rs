//! Sorting, selection, search and counting, against straightforward references.

use std::cmp::Ordering;

use selvedge::tensor::{Device, Generator, Tensor};
use selvedge::{DType, Result, bf16, f16};

const ORDERED: [DType; 13] = [
    DType::Bool,
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

/// The order of PyTorch: NaN after all numbers, -0 equal to 0.
fn order(x: &f64, y: &f64) -> Ordering {
    x.is_nan().cmp(&y.is_nan()).then(x.partial_cmp(y).unwrap_or(Ordering::Equal))
}

/// The positions that sort a row.
fn sorted(row: &[f64], descending: bool) -> Vec<i64> {
    let mut positions: Vec<i64> = (0..row.len() as i64).collect();
    let at = |position: &i64| &row[*position as usize];
    match descending {
        false => positions.sort_by(|x, y| order(at(x), at(y))),
        true => positions.sort_by(|x, y| order(at(y), at(x))),
    }
    positions
}

/// Small whole numbers with repetitions, and for floats both zeros, infinities and NaN.
fn elements(dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
    let generator = Generator::new(seed);
    let whole = generator.randint(-9, 10, shape, DType::I64, &cpu())?;
    if !dtype.is_float() {
        let is_signed = dtype.is_signed_integer();
        return if is_signed { whole } else { whole.abs()? }.cast(dtype);
    }
    let special = generator.randint(0, 10, shape, DType::I64, &cpu())?;
    let mut x = whole.cast(DType::F64)?;
    for (number, value) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0].into_iter().enumerate() {
        x = x.masked_fill(&special.eq(number as i64)?, value)?;
    }
    x.cast(dtype)
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.cast(DType::F64)?.to_vec()
}

/// Bits, so that NaN equals NaN and -0 is not 0.
fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect()
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn sort_is_stable_for_every_dtype_axis_and_direction() -> Result<()> {
    for dtype in ORDERED {
        for (shape, axis) in [(vec![3, 40], 1), (vec![2, 33, 3], 1), (vec![50, 2], 0), (vec![1, 0, 2], 1)] {
            let x = elements(dtype, &shape, 5)?;
            for descending in [false, true] {
                let (values, indices) = x.sort(axis, descending)?;
                assert_eq!(values.shape(), x.shape());
                assert_eq!((values.dtype(), indices.dtype()), (dtype, DType::I64));
                let rows = |x: &Tensor| x.movedim(&[axis], &[-1])?.contiguous();
                let size = shape[axis as usize].max(1);
                let (source, found) = (numbers(&rows(&x)?)?, rows(&indices)?.to_vec::<i64>()?);
                let found_values = numbers(&rows(&values)?)?;
                for (row, source) in source.chunks(size).enumerate() {
                    let wanted = sorted(source, descending);
                    let part = row * size..(row + 1) * size;
                    assert_eq!(found[part.clone()], wanted, "{dtype} {shape:?} {descending}");
                    let wanted: Vec<f64> = wanted.iter().map(|at| source[*at as usize]).collect();
                    assert_eq!(bits(&found_values[part]), bits(&wanted), "{dtype} {shape:?}");
                }
                assert_eq!(x.argsort(axis, descending)?.to_vec::<i64>()?, indices.to_vec::<i64>()?);
                let alone = x.sorted(axis, descending)?;
                assert_eq!(alone.to_bytes()?, values.to_bytes()?, "{dtype} {shape:?} {descending}");
            }
        }
    }
    Ok(())
}

#[test]
fn long_rows_and_views_are_sorted() -> Result<()> {
    // Past the sizes at which the CPU shares a row among threads.
    let x = Generator::new(3).randint(-1000, 1000, &[70_000], DType::I32, &cpu())?;
    let (source, found) = (x.to_vec::<i32>()?, x.flip(&[0])?.argsort(0, false)?.to_vec::<i64>()?);
    let mut wanted: Vec<i64> = (0..70_000).collect();
    wanted.sort_by_key(|at| source[70_000 - 1 - *at as usize]);
    assert!(found == wanted);
    let y = Generator::new(4).randn(&[70_000], DType::F64, &cpu())?;
    let mut wanted = y.to_vec::<f64>()?;
    wanted.sort_by(f64::total_cmp);
    assert!(y.msort()?.to_vec::<f64>()? == wanted);
    // Zeros and NaN of both signs in rows that threads share, and in many rows.
    for shape in [[1, 70_000], [9, 7_777]] {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let x = elements(dtype, &shape, 6)?.copysign(&elements(dtype, &shape, 7)?)?;
            for descending in [false, true] {
                let (found, wanted) = (x.sorted(1, descending)?, x.sort(1, descending)?.0);
                assert!(found.to_bytes()? == wanted.to_bytes()?, "{dtype} {shape:?} {descending}");
            }
        }
    }
    let scalar = Tensor::new(2.5f32, &cpu())?;
    let (value, index) = scalar.sort(-1, true)?;
    assert_eq!((value.rank(), value.item::<f32>()?, index.item::<i64>()?), (0, 2.5, 0));
    let rows = Tensor::new([[3u8, 1], [2, 4]], &cpu())?;
    assert_eq!(rows.msort()?.to_vec::<u8>()?, [2, 1, 3, 4]);
    Ok(())
}

#[test]
fn selections_are_those_of_the_sorted_rows() -> Result<()> {
    for dtype in ORDERED {
        let x = elements(dtype, &[4, 17], 8)?;
        for (row, source) in numbers(&x)?.chunks(17).enumerate() {
            let at = |x: Tensor| x.select(0, row as isize);
            for k in [0, 1, 5, 17] {
                for largest in [true, false] {
                    let (values, indices) = x.topk(k, 1, largest)?;
                    assert_eq!(values.shape()[..], [4, k]);
                    assert_eq!(at(indices)?.to_vec::<i64>()?, sorted(source, largest)[..k], "{dtype} {k}");
                }
                if k > 0 {
                    let (value, index) = x.kthvalue(k, -1)?;
                    let wanted = sorted(source, false)[k - 1];
                    assert_eq!(at(index)?.item::<i64>()?, wanted, "{dtype} {k}");
                    assert_eq!(bits(&numbers(&at(value)?)?), bits(&[source[wanted as usize]]));
                }
            }
            let (nans, finite): (Vec<i64>, Vec<i64>) =
                sorted(source, false).into_iter().partition(|at| source[*at as usize].is_nan());
            let median = nans.first().unwrap_or(&finite[(finite.len().max(1) - 1) / 2]);
            assert_eq!(at(x.median(1)?.1)?.item::<i64>()?, *median, "{dtype}");
            let nanmedian = finite[(finite.len() - 1) / 2];
            assert_eq!(at(x.nanmedian(1)?.1)?.item::<i64>()?, nanmedian, "{dtype}");
        }
    }
    let nan = Tensor::new([f32::NAN, f32::NAN], &cpu())?;
    assert!(nan.nanmedian(0)?.0.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn order_statistics_of_all_elements_are_those_of_the_flat_tensor() -> Result<()> {
    let x = Tensor::new([[4.0f64, 1.0, 7.0], [3.0, 2.0, 9.0]], &Device::cpu())?;
    for x in [x.clone(), x.t()?] {
        assert_eq!(x.median_all()?.item::<f64>()?, 3.0);
        assert_eq!(x.nanmedian_all()?.item::<f64>()?, 3.0);
        assert_eq!(x.quantile_all(0.5)?.item::<f64>()?, 3.5);
        assert_eq!(x.nanquantile_all(1.0)?.item::<f64>()?, 9.0);
    }
    let nan = Tensor::new([[f64::NAN, 1.0], [3.0, 2.0]], &Device::cpu())?;
    assert!(nan.median_all()?.item::<f64>()?.is_nan() && nan.quantile_all(0.5)?.item::<f64>()?.is_nan());
    assert_eq!((nan.nanmedian_all()?.item::<f64>()?, nan.nanquantile_all(0.5)?.item::<f64>()?), (2.0, 2.0));
    assert_eq!(Tensor::new(5.0f64, &Device::cpu())?.median_all()?.item::<f64>()?, 5.0);
    assert!(Tensor::zeros(&[0, 3], DType::F64, &Device::cpu())?.median_all().is_err());
    Ok(())
}

#[test]
fn quantiles_interpolate_and_propagate_nan() -> Result<()> {
    let inf = f64::INFINITY;
    let x = Tensor::new([[4.0f64, 1.0, 2.0, 3.0], [0.0, f64::NAN, 2.0, 1.0], [inf, inf, inf, 1.0]], &cpu())?;
    // q, with NaN, without.
    let table = [
        (0.0, [1.0, f64::NAN, 1.0], [1.0, 0.0, 1.0]),
        // Between a number and infinity the interpolation has no result.
        (0.25, [1.75, f64::NAN, f64::NAN], [1.75, 0.5, f64::NAN]),
        (0.5, [2.5, f64::NAN, inf], [2.5, 1.0, inf]),
        (1.0, [4.0, f64::NAN, inf], [4.0, 2.0, inf]),
    ];
    for (q, all, numbers_only) in table {
        assert_eq!(bits(&x.quantile(q, 1)?.to_vec::<f64>()?), bits(&all), "{q}");
        assert_eq!(bits(&x.nanquantile(q, -1)?.to_vec::<f64>()?), bits(&numbers_only), "{q}");
    }
    let row = Tensor::new([3.0f32, 1.0], &cpu())?;
    assert_eq!(row.quantile(0.3, 0)?.item::<f32>()?, 1.0 + 0.3 * 2.0);
    assert!(Tensor::new([f32::NAN], &cpu())?.nanquantile(0.5, 0)?.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn mode_is_the_smallest_of_the_most_frequent() -> Result<()> {
    let table: [(&[f64], f64, i64); 5] = [
        (&[3.0, 1.0, 3.0, 1.0, 2.0], 1.0, 3),
        (&[7.0], 7.0, 0),
        (&[5.0, 5.0, 1.0], 5.0, 1),
        (&[f64::NAN, f64::NAN, 2.0], 2.0, 2),
        (&[1.0, 0.0, -0.0, 0.0], 0.0, 3),
    ];
    for (row, value, index) in table {
        let (found, position) = Tensor::new(row.to_vec(), &cpu())?.mode(0)?;
        assert_eq!((found.item::<f64>()?, position.item::<i64>()?), (value, index), "{row:?}");
    }
    let (value, _) = Tensor::new([[1, 2], [1, 3], [0, 3]], &cpu())?.mode(0)?;
    assert_eq!(value.to_vec::<i32>()?, [1, 3]);
    Ok(())
}

#[test]
fn distinct_elements_come_with_places_and_counts() -> Result<()> {
    for dtype in ORDERED {
        let x = Generator::new(6).randint(0, 5, &[3, 7], DType::I64, &cpu())?.cast(dtype)?;
        let source = numbers(&x)?;
        let mut wanted = source.clone();
        wanted.sort_by(f64::total_cmp);
        wanted.dedup();
        let (values, inverse, counts) = x.unique_with_counts()?;
        assert_eq!((values.dtype(), numbers(&values)?), (dtype, wanted.clone()));
        assert_eq!(inverse.shape(), x.shape());
        assert_eq!(numbers(&values.take(&inverse)?)?, source, "{dtype}");
        let count = |value: &f64| source.iter().filter(|x| *x == value).count() as i64;
        assert_eq!(counts.to_vec::<i64>()?, wanted.iter().map(count).collect::<Vec<_>>());
        assert_eq!(numbers(&x.unique()?)?, wanted);

        let (values, inverse, counts) = x.unique_consecutive_with_counts()?;
        let mut wanted = source.clone();
        wanted.dedup();
        assert_eq!(numbers(&values)?, wanted);
        assert_eq!(numbers(&x.unique_consecutive()?)?, wanted);
        assert_eq!(counts.sum_all()?.item::<i64>()?, 21);
        assert_eq!(numbers(&values.take(&inverse)?)?, source, "{dtype}");

        let set = Tensor::new([1, 4], &cpu())?.cast(dtype)?;
        let is_in: Vec<bool> = source.iter().map(|x| numbers(&set).unwrap().contains(x)).collect();
        assert_eq!(x.isin(&set)?.to_vec::<bool>()?, is_in, "{dtype}");
    }
    let nan = Tensor::new([f32::NAN, 1.0, f32::NAN], &cpu())?;
    assert_eq!(nan.unique()?.count(), 3);
    assert_eq!(nan.isin(&nan)?.to_vec::<bool>()?, [false, true, false]);
    let none = Tensor::zeros(&[0], DType::F32, &cpu())?;
    assert_eq!(nan.isin(&none)?.to_vec::<bool>()?, [false; 3]);
    let (values, inverse, counts) = none.unique_with_counts()?;
    assert_eq!([values.count(), inverse.count(), counts.count()], [0; 3]);
    Ok(())
}

#[test]
fn search_counts_the_elements_before_a_value() -> Result<()> {
    for dtype in ORDERED {
        let rows = elements(dtype, &[3, 12], 9)?.sort(1, false)?.0;
        let values = elements(dtype, &[3, 20], 10)?;
        for right in [false, true] {
            let found = rows.searchsorted(&values, right)?.to_vec::<i64>()?;
            let (rows, values) = (numbers(&rows)?, numbers(&values)?);
            for (at, value) in values.iter().enumerate() {
                let row = &rows[at / 20 * 12..][..12];
                let before = |x: &&f64| order(x, value).is_lt() || right && order(x, value).is_eq();
                let wanted = row.iter().filter(before).count() as i64;
                assert_eq!(found[at], wanted, "{dtype} {value} in {row:?}");
            }
        }
    }
    let edges = Tensor::new([1.0f64, 3.0, 5.0], &cpu())?;
    let x = Tensor::new([[0, 1, 2], [3, 5, 6]], &cpu())?;
    assert_eq!(x.bucketize(&edges, false)?.to_vec::<i64>()?, [0, 0, 1, 1, 2, 3]);
    assert_eq!(x.bucketize(&edges, true)?.to_vec::<i64>()?, [0, 1, 1, 2, 3, 3]);
    assert_eq!(edges.searchsorted(&Tensor::new(4.0, &cpu())?, false)?.item::<i64>()?, 2);
    assert!(text(Tensor::new([[1]], &cpu())?.searchsorted(&x, false)).contains("[1, 1]"));
    assert!(text(x.bucketize(&x, false)).contains("[2, 3]"));
    assert!(text(edges.narrow(0, 0, 0)?.searchsorted(&x, false)).is_empty());
    Ok(())
}

#[test]
fn counts_are_exact() -> Result<()> {
    let x = Tensor::new([1u8, 3, 1, 0, 9], &cpu())?;
    assert_eq!(x.bincount(0)?.to_vec::<i64>()?, [1, 2, 0, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!(x.narrow(0, 0, 3)?.bincount(6)?.to_vec::<i64>()?, [0, 2, 0, 1, 0, 0]);
    assert_eq!(x.narrow(0, 0, 0)?.bincount(2)?.to_vec::<i64>()?, [0, 0]);
    let y = Tensor::new([0.0f64, 0.99, 1.0, 2.5, 4.0, -0.1, 4.1, f64::NAN, f64::INFINITY], &cpu())?;
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let counts = y.cast(dtype)?.histc(4, 0.0, 4.0)?;
        assert_eq!((counts.dtype(), numbers(&counts.sum_all()?)?), (dtype, vec![5.0]));
    }
    assert_eq!(y.histc(4, 0.0, 4.0)?.to_vec::<f64>()?, [2.0, 1.0, 1.0, 1.0]);
    assert_eq!(Tensor::new([1.0f32, 2.0, 3.0], &cpu())?.histc(2, 0.0, 0.0)?.to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(Tensor::new([2.0f32, 2.0], &cpu())?.histc(2, 0.0, 0.0)?.to_vec::<f32>()?, [0.0, 2.0]);
    let edges = Tensor::new([0.0f64, 1.0, 1.0, 4.0], &cpu())?;
    assert_eq!(y.histogram(&edges)?.to_vec::<i64>()?, [2, 0, 3]);
    let whole = Tensor::new([[0, 1], [4, 5]], &cpu())?;
    assert_eq!(whole.histogram(&edges)?.to_vec::<i64>()?, [1, 0, 2]);
    Ok(())
}

#[test]
fn positions_of_nonzero_elements_are_in_row_major_order() -> Result<()> {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.size() > 1 || dtype.is_integer()) {
        let x = Tensor::new([[[0, 2], [0, 0]], [[3, 0], [0, 4]]], &cpu())?.cast(dtype)?;
        let wanted = [0, 0, 1, 1, 0, 0, 1, 1, 1];
        let found = x.nonzero()?;
        assert_eq!(found.shape()[..], [3, 3]);
        assert_eq!(found.to_vec::<i64>()?, wanted, "{dtype}");
        let turned = x.transpose(0, 2)?.argwhere()?.to_vec::<i64>()?;
        assert_eq!(turned, [0, 0, 1, 1, 0, 0, 1, 1, 1], "{dtype}");
        let selected = x.masked_select(&x.ne(0)?)?;
        assert_eq!((selected.dtype(), selected.count()), (dtype, 3));
        assert!(selected.eq(&Tensor::new([2, 3, 4], &cpu())?.cast(dtype)?)?.all_all()?.item::<bool>()?);
    }
    let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &cpu())?;
    let mask = Tensor::new([true, false, true], &cpu())?;
    assert_eq!(x.masked_select(&mask)?.to_vec::<i32>()?, [1, 3, 4, 6]);
    let column = Tensor::new([[true], [false]], &cpu())?;
    assert_eq!(mask.masked_select(&column)?.to_vec::<bool>()?, [true, false, true]);
    assert_eq!(x.masked_select(&x.gt(9)?)?.count(), 0);
    assert_eq!(Tensor::new([f32::NAN, -0.0], &cpu())?.nonzero()?.to_vec::<i64>()?, [0]);
    for (number, rows) in [(0, 0), (5, 1)] {
        assert_eq!(Tensor::new(number, &cpu())?.nonzero()?.shape()[..], [rows, 0]);
    }
    assert_eq!(Tensor::zeros(&[0, 2], DType::I8, &cpu())?.nonzero()?.shape()[..], [0, 2]);
    Ok(())
}

#[test]
fn a_search_finds_the_first_element_out_of_order() -> Result<()> {
    // Blocks of keys, and rows: the place is counted in its row, and equal elements and NaN at the end are in order.
    for (length, place) in [(2, 1), (300, 299), (5000, 1024), (5000, 2500)] {
        let mut numbers: Vec<f32> = (0..3 * length).map(|at| (at % length / 2) as f32).collect();
        numbers[length - 1] = f32::NAN;
        let values = Tensor::zeros(&[3, 1], DType::F32, &cpu())?;
        let sorted = Tensor::from_vec(numbers.clone(), &[3, length], &cpu())?;
        assert_eq!(sorted.searchsorted(&values, false)?.to_vec::<i64>()?, [0; 3]);
        numbers[2 * length + place] = -1.0;
        let unsorted = Tensor::from_vec(numbers, &[3, length], &cpu())?;
        let found = text(unsorted.searchsorted(&values, false));
        assert!(found.contains(&format!("row 2 decreases at position {place}")), "{found}");
    }
    Ok(())
}

#[test]
fn bad_input_is_an_error_that_names_both_sides() -> Result<()> {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &cpu())?;
    let complex = x.cast(DType::C64)?;
    let whole = Tensor::new([1, -2], &cpu())?;
    let (edges, none) = (Tensor::new([2.0f32, 1.0], &cpu())?, Tensor::zeros(&[2, 0], DType::F32, &cpu())?);
    let table = [
        (text(x.sort(2, false)), "sort: ", "axis 2"),
        (text(complex.sort(0, false)), "c64", "integers, bools, or floats"),
        (text(x.cast(DType::F8E4M3)?.argsort(0, false)), "f8e4m3", "cast 8-bit floats first"),
        (text(x.cast(DType::F8E5M2)?.sort(0, true)), "f8e5m2", "cast 8-bit floats first"),
        (text(edges.searchsorted(&x, false)), "row 0 decreases at position 1", "sort them first"),
        (text(x.bucketize(&edges, true)), "bucketize: ", "row 0 decreases at position 1"),
        (
            text(whole.abs()?.cast(DType::I64)?.mul(25_000_000_000_000_000i64)?.bincount(0)),
            "400000000000000008 bytes",
            "",
        ),
        (text(Tensor::new([i64::MAX], &cpu())?.bincount(0)), "9223372036854775807", "addresses"),
        (text(Tensor::new([u64::MAX], &cpu())?.bincount(0)), "18446744073709551615", "addresses"),
        (text(Tensor::new([1], &cpu())?.bincount(usize::MAX)), "minlength", "addresses"),
        (text(x.histogram(&Tensor::new([0.0, f32::NAN], &cpu())?)), "position 1", "without NaN"),
        (text(x.histogram(&Tensor::new([f32::NAN, 1.0], &cpu())?)), "position 1", "without NaN"),
        (text(x.histc(2, f64::NAN, 1.0)), "bounds NaN and 1", "finite"),
        (text(x.histc(2, 0.0, f64::INFINITY)), "bounds 0 and inf", "finite"),
        (text(Tensor::new([1.0, f32::INFINITY], &cpu())?.histc(2, 0.0, 0.0)), "bounds 1 and inf", "finite"),
        (text(Tensor::new([1.0, f32::NAN], &cpu())?.histc(2, 0.0, 0.0)), "bounds NaN and NaN", "finite"),
        (text(x.topk(3, 1, true)), "k = 3 for axis 1 of size 2", "from 0 to 2"),
        (text(x.kthvalue(0, 0)), "k = 0 for axis 0 of size 2", "from 1 to 2"),
        (text(x.kthvalue(3, -1)), "k = 3 for axis 1 of size 2", "from 1 to 2"),
        (text(none.median(1)), "axis 1 of size 0", "at least one"),
        (text(none.mode(1)), "axis 1 of size 0", "at least one"),
        (text(x.quantile(1.5, 0)), "q = 1.5", "0 to 1"),
        (text(x.quantile(f64::NAN, 0)), "q = NaN", "0 to 1"),
        (text(whole.quantile(0.5, 0)), "i32", "f32 or f64"),
        (text(whole.bincount(0)), "element -2", "from 0"),
        (text(x.bincount(0)), "shape [2, 2]", "one dimension"),
        (text(edges.bincount(0)), "f32", "integers"),
        (text(x.histc(0, 0.0, 1.0)), "bins = 0", "at least one"),
        (text(x.histc(2, 1.0, 0.0)), "bounds 1 and 0", "increase"),
        (text(whole.histc(2, 0.0, 1.0)), "i32", "floats"),
        (text(x.histogram(&edges)), "position 1", "sorted"),
        (text(x.histogram(&edges.narrow(0, 0, 1)?)), "shape [1]", "two edges"),
        (text(x.masked_select(&whole)), "i32", "bool"),
        (text(x.masked_select(&Tensor::new([true; 3], &cpu())?)), "[2, 2]", "[3]"),
        (text(Tensor::new([1u64], &cpu())?.isin(&whole.cast(DType::I64)?)), "u64", "i64"),
    ];
    for (text, first, second) in table {
        assert!(text.contains(first) && text.contains(second), "{text:?} lacks {first:?} or {second:?}");
    }
    Ok(())
}

#[test]
fn narrow_floats_keep_their_bits() -> Result<()> {
    let x = Tensor::new([f16::from_f32(1.0), f16::NEG_ZERO, f16::ZERO, f16::NEG_INFINITY], &cpu())?;
    let found: Vec<u16> = x.sort(0, false)?.0.to_vec::<f16>()?.iter().map(|x| x.to_bits()).collect();
    assert_eq!(found, [0xfc00, 0x8000, 0, 0x3c00]);
    let payload = bf16::from_bits(0xffc1);
    let x = Tensor::new([payload, bf16::from_f32(-3.0)], &cpu())?;
    assert_eq!(x.sort(0, false)?.0.to_vec::<bf16>()?[1].to_bits(), 0xffc1);
    Ok(())
}
