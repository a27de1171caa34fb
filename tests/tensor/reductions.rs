//! Reductions and scans of tensors: axes and shapes, dtypes, numbers against formulas in f64, and bad input.

use num_complex::Complex;
use selvedge::Error;
use selvedge::tensor::{Axes, Device, Tensor};
use selvedge::types::{Bool, DType};

fn cpu() -> Device {
    Device::cpu()
}

/// 0.5, 1.5, … in a shape of three dimensions.
fn cube() -> Tensor {
    let values: Vec<f64> = (0..24).map(|k| f64::from(k) + 0.5).collect();
    Tensor::from_vec(values, &[2, 3, 4], &cpu()).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn close(found: f64, wanted: f64, error: f64) {
    assert!((found - wanted).abs() <= error * wanted.abs(), "{found} instead of {wanted}");
}

#[test]
fn axes_are_any_in_any_order() {
    let x = cube();
    let element = |i: usize, j: usize, k: usize| (12 * i + 4 * j + k) as f64 + 0.5;
    let lists: [&[isize]; 9] = [&[], &[0], &[1], &[-1], &[0, 2], &[2, 0], &[-3, 1], &[0, 1, 2], &[-1, 1, -3]];
    for axes in std::iter::once(Axes::All).chain(lists.map(Axes::from)) {
        let is_folded = |axis: isize| match axes {
            Axes::All => true,
            Axes::One(one) => one == axis,
            Axes::Of(axes) => axes.contains(&axis) || axes.contains(&(axis - 3)),
        };
        let folded: Vec<bool> = (0..3).map(is_folded).collect();
        let sizes = [2usize, 3, 4];
        let kept: Vec<usize> = (0..3).map(|axis| if folded[axis] { 1 } else { sizes[axis] }).collect();
        let mut wanted = vec![0.0; kept.iter().product()];
        for (i, j, k) in (0..24).map(|at| (at / 12, at / 4 % 3, at % 4)) {
            let place = |axis: usize, at: usize| if folded[axis] { 0 } else { at };
            wanted[(place(0, i) * kept[1] + place(1, j)) * kept[2] + place(2, k)] += element(i, j, k);
        }
        let with = x.sum_keepdim(axes).unwrap();
        assert_eq!((with.shape()[..].to_vec(), numbers(&with)), (kept.clone(), wanted.clone()), "{axes:?}");
        let without = x.sum(axes).unwrap();
        let left: Vec<usize> = (0..3).filter(|&axis| !folded[axis]).map(|axis| sizes[axis]).collect();
        assert_eq!((without.shape()[..].to_vec(), numbers(&without)), (left, wanted), "{axes:?}");
        // A view has the same bits.
        let turned = x.permute(&[2, 0, 1]).unwrap().contiguous().unwrap().permute(&[1, 2, 0]).unwrap();
        assert_eq!(numbers(&turned.sum(axes).unwrap()), numbers(&without));
    }
    let scalar = Tensor::full(&[], 7.0, DType::F32, &cpu()).unwrap();
    assert_eq!(scalar.sum(..).unwrap().item::<f32>().unwrap(), 7.0);
    assert_eq!(scalar.sum(&[]).unwrap().item::<f32>().unwrap(), 7.0);
}

#[test]
fn bad_axes_and_extremes_of_nothing_are_errors() {
    let x = cube();
    for axes in [&[3][..], &[-4], &[0, 0], &[1, -2]] {
        for result in [x.sum(axes), x.mean_keepdim(axes), x.var(axes, 1), x.logsumexp(axes)] {
            assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{axes:?}");
        }
    }
    let empty = Tensor::zeros(&[2, 0], DType::F32, &cpu()).unwrap();
    for result in [empty.min(&[1]), empty.max(..), empty.argmin_keepdim(&[1]), empty.argmax(..)] {
        assert!(matches!(result, Err(Error::InvalidArgument { .. })));
    }
    assert_eq!(numbers(&empty.sum(&[1]).unwrap()), [0.0, 0.0]);
    assert_eq!(numbers(&empty.prod(&[1]).unwrap()), [1.0, 1.0]);
    assert_eq!(empty.all(..).unwrap().item::<Bool>().unwrap(), Bool::from(true));
    assert_eq!(empty.any(..).unwrap().item::<Bool>().unwrap(), Bool::from(false));
    assert!(empty.mean(..).unwrap().item::<f32>().unwrap().is_nan());
    assert_eq!(empty.logsumexp(..).unwrap().item::<f32>().unwrap(), f32::NEG_INFINITY);
    assert_eq!(empty.max(&[0]).unwrap().count(), 0);
    let complex = x.cast(DType::C64).unwrap();
    assert!(matches!(complex.max(..), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(complex.logsumexp(..), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(x.cast(DType::F8E4M3).unwrap().mean(..), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(x.norm(f64::NAN, ..), Err(Error::InvalidArgument { .. })));
    assert!(matches!(x.cumsum(3), Err(Error::InvalidArgument { .. })));
    assert!(matches!(complex.cummax(0), Err(Error::DTypeMismatch { .. })));
}

#[test]
fn dtypes_are_those_of_pytorch() {
    use DType::{BF16, C64, C128, F16, F32, F64, I8, I32, I64, U8, U64};
    let of = |dtype| cube().cast(dtype).unwrap();
    for (dtype, sum, mean, norm) in [
        (DType::Bool, I64, F32, F32),
        (U8, I64, F32, F32),
        (I8, I64, F32, F32),
        (I32, I64, F32, F32),
        (U64, U64, F32, F32),
        (F16, F16, F16, F16),
        (BF16, BF16, BF16, BF16),
        (F32, F32, F32, F32),
        (F64, F64, F64, F64),
        (C64, C64, C64, F32),
        (C128, C128, C128, F64),
    ] {
        let x = of(dtype);
        assert_eq!(x.sum(..).unwrap().dtype(), sum, "sum of {dtype}");
        assert_eq!(x.cumprod(0).unwrap().dtype(), sum, "cumprod of {dtype}");
        assert_eq!(x.mean(..).unwrap().dtype(), mean, "mean of {dtype}");
        assert_eq!(x.var(.., 1).unwrap().dtype(), norm, "var of {dtype}");
        for p in [0.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(x.norm(p, ..).unwrap().dtype(), norm, "norm of {dtype}");
        }
        assert_eq!(x.count_nonzero(..).unwrap().dtype(), I64);
        assert_eq!(x.any(..).unwrap().dtype(), DType::Bool);
        if !dtype.is_complex() {
            assert_eq!(x.max(..).unwrap().dtype(), dtype);
            assert_eq!(x.argmax(..).unwrap().dtype(), I64);
        }
    }
    // More than the narrow dtype holds.
    let many = Tensor::full(&[40_000], 2.0, F16, &cpu()).unwrap();
    assert_eq!(many.mean(..).unwrap().cast(F32).unwrap().item::<f32>().unwrap(), 2.0);
    let bytes = Tensor::full(&[1000], 200, U8, &cpu()).unwrap();
    assert_eq!(bytes.sum(..).unwrap().item::<i64>().unwrap(), 200_000);
    assert_eq!(bytes.mean(..).unwrap().item::<f32>().unwrap(), 200.0);
}

#[test]
fn moments_and_norms_are_what_their_formulas_say() {
    let values: Vec<f64> = (0..3001u32).map(|k| f64::from(k * 7919 % 1009) / 64.0 - 7.0).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    for (dtype, error) in [(DType::F32, 1e-6), (DType::F64, 1e-14), (DType::F16, 1e-3), (DType::BF16, 1e-2)] {
        let x = Tensor::from_vec(values.clone(), &[3001], &cpu()).unwrap().cast(dtype).unwrap();
        let one = |x: selvedge::Result<Tensor>| numbers(&x.unwrap())[0];
        close(one(x.mean(..)), mean, 4.0 * error);
        close(one(x.var(.., 1)), squares / (n - 1.0), error);
        close(one(x.std_keepdim(&[0], 0)), (squares / n).sqrt(), error);
        let power = |p: f64| values.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p);
        close(one(x.norm(1.0, ..)), power(1.0), error);
        close(one(x.norm(2.0, ..)), power(2.0), error);
        close(one(x.norm(3.5, ..)), power(3.5), error);
        close(one(x.norm(-1.0, ..)), 0.0, 0.0);
        close(one(x.norm(f64::INFINITY, ..)), 8.75, error);
        close(one(x.norm(f64::NEG_INFINITY, ..)), 0.0, 0.0);
        close(one(x.norm(0.0, ..)), values.iter().filter(|x| **x != 0.0).count() as f64, error);
        let exact = values.iter().map(|x| x.exp()).sum::<f64>().ln();
        close(one(x.logsumexp(..)), exact, error);
    }
    // A mean far from 0 takes nothing from the variance.
    let far = Tensor::new([1e8f64 + 1.0, 1e8 + 2.0, 1e8 + 3.0], &cpu()).unwrap();
    assert_eq!(far.var(.., 1).unwrap().item::<f64>().unwrap(), 1.0);
    let complex = Tensor::new([Complex::new(3.0f32, 4.0), Complex::new(0.0, -5.0)], &cpu()).unwrap();
    assert_eq!(complex.norm(1.0, ..).unwrap().item::<f32>().unwrap(), 10.0);
    assert_eq!(complex.norm(2.0, ..).unwrap().item::<f32>().unwrap(), 50f32.sqrt());
    // |3 + 4i - m|² and |-5i - m|² with m = 1.5 - 0.5i, 22.5 each.
    assert_eq!(complex.var(.., 1).unwrap().item::<f32>().unwrap(), 45.0);
    // Nothing is left to divide by.
    assert!(far.narrow(0, 0, 1).unwrap().var(.., 1).unwrap().item::<f64>().unwrap().is_nan());
}

#[test]
fn logsumexp_takes_infinities() {
    let of =
        |values: [f32; 2]| Tensor::new(values, &cpu()).unwrap().logsumexp(..).unwrap().item::<f32>().unwrap();
    assert_eq!(of([f32::INFINITY, 1.0]), f32::INFINITY);
    assert_eq!(of([f32::NEG_INFINITY, 1.0]), 1.0);
    assert_eq!(of([f32::NEG_INFINITY; 2]), f32::NEG_INFINITY);
    assert!(of([f32::NAN, 1.0]).is_nan());
    assert_eq!(of([-1000.0, -1000.0 - 200.0]), -1000.0);
}

#[test]
fn scans_go_along_any_axis() {
    let x = cube();
    let values = numbers(&x);
    for axis in 0..3isize {
        let step = [12, 4, 1][axis as usize];
        let size = [2, 3, 4][axis as usize];
        let mut wanted = values.clone();
        for at in 0..24 {
            if at / step % size > 0 {
                wanted[at] += wanted[at - step];
            }
        }
        for axis in [axis, axis - 3] {
            assert_eq!(numbers(&x.cumsum(axis).unwrap()), wanted);
            let turned = x.transpose(0, 2).unwrap().contiguous().unwrap().transpose(0, 2).unwrap();
            assert_eq!(numbers(&turned.cumsum(axis).unwrap()), wanted);
        }
    }
    let order = Tensor::new([2.0f32, 5.0, 3.0, f32::NAN, 9.0], &cpu()).unwrap();
    let most = order.cummax(0).unwrap().to_vec::<f32>().unwrap();
    assert!(most[..3] == [2.0, 5.0, 5.0] && most[3].is_nan() && most[4].is_nan());
    let long =
        Tensor::full(&[100_003], 1, DType::I32, &cpu()).unwrap().cumsum(0).unwrap().to_vec::<i64>().unwrap();
    assert!(long.iter().zip(1..).all(|(found, wanted)| *found == wanted));
}

#[test]
fn argmax_and_argmin_find_the_first_extreme_of_rows_and_columns() {
    let nan = f64::NAN;
    for length in [1usize, 7, 31, 32, 33, 100, 1024, 1025, 2049] {
        // The rest of a row, and what lies at each of the places.
        let of_rest: [fn(usize) -> f64; 4] = [
            |k| ((k * 37) % 11) as f64 - 5.0,
            |k| if k % 3 == 0 { 0.0 } else { -0.0 },
            |_| f64::NEG_INFINITY,
            |_| f64::INFINITY,
        ];
        let places = [0, 5, length / 2, length - length.min(9), length - 1];
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for rest in of_rest {
            rows.push((0..length).map(rest).collect());
            for value in [nan, -nan, 9.0, -9.0, 0.0, -0.0, f64::INFINITY] {
                for (at, &first) in places.iter().enumerate() {
                    let mut row: Vec<f64> = (0..length).map(rest).collect();
                    // Once, and twice.
                    for place in [first, places[(at * 2) % 5]] {
                        row[place.min(length - 1)] = value;
                        rows.push(row.clone());
                    }
                }
            }
        }
        let flat: Vec<f64> = rows.concat();
        let x = Tensor::from_vec(flat, &[rows.len(), length], &cpu()).unwrap();
        for most in [true, false] {
            let precedes = |x: f64, y: f64| !y.is_nan() && (x.is_nan() || if most { x > y } else { x < y });
            let first = |row: &Vec<f64>| {
                let step = |best: usize, k: usize| if precedes(row[k], row[best]) { k } else { best };
                (0..length).fold(0, step) as i64
            };
            let wanted: Vec<i64> = rows.iter().map(first).collect();
            let found = |x: &Tensor, axis: isize| {
                let result = if most { x.argmax(axis) } else { x.argmin(axis) };
                result.unwrap().to_vec::<i64>().unwrap()
            };
            for dtype in [DType::F64, DType::F32, DType::F16] {
                let x = x.cast(dtype).unwrap();
                assert_eq!(found(&x, 1), wanted, "rows of {length}, {dtype}, greatest: {most}");
                let across = x.transpose(0, 1).unwrap().contiguous().unwrap();
                assert_eq!(found(&across, 0), wanted, "columns of {length}, {dtype}, greatest: {most}");
                let four = across.narrow(1, 9, 4).unwrap().contiguous().unwrap();
                assert_eq!(found(&four, 0), wanted[9..13], "4 columns of {length}, {dtype}");
            }
        }
    }
}
