//! Reductions and scans of tensors: axes and shapes, dtypes, numbers against formulas in f64, and bad input.

#[path = "../cases/integer_means.rs"]
mod integer_means;

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
fn an_empty_list_of_axes_reduces_nothing() {
    let x = Tensor::new([[1.0f32, -2.0], [4.0, 0.0], [0.5, -8.0]], &cpu()).unwrap();
    let same = numbers(&x);
    let size: Vec<f64> = same.iter().map(|x| x.abs()).collect();
    let truth: Vec<f64> = same.iter().map(|x| f64::from(u8::from(*x != 0.0))).collect();
    let zeros = vec![0.0; 6];
    /// The three forms of each reduction: by axes, with the axes left at size 1, of every axis.
    macro_rules! forms {
        ($x:ident, $axes:ident: $($name:literal, $by_axes:expr, $keepdim:expr, $all:expr, $wanted:expr;)*) => {
            [$((
                $name,
                (|$x, $axes| $by_axes) as Form,
                (|$x, $axes| $keepdim) as Form,
                (|$x, _| $all) as Form,
                $wanted,
            )),*]
        };
    }
    type Form = for<'a> fn(&Tensor, Axes<'a>) -> selvedge::Result<Tensor>;
    let rows: [(&str, Form, Form, Form, &[f64]); 16] = forms! { x, axes:
        "sum", x.sum(axes), x.sum_keepdim(axes), x.sum_all(), &same;
        "prod", x.prod(axes), x.prod_keepdim(axes), x.prod_all(), &same;
        "min", x.min(axes), x.min_keepdim(axes), x.min_all(), &same;
        "max", x.max(axes), x.max_keepdim(axes), x.max_all(), &same;
        "argmin", x.argmin(axes), x.argmin_keepdim(axes), x.argmin_all(), &zeros;
        "argmax", x.argmax(axes), x.argmax_keepdim(axes), x.argmax_all(), &zeros;
        "any", x.any(axes), x.any_keepdim(axes), x.any_all(), &truth;
        "all", x.all(axes), x.all_keepdim(axes), x.all_all(), &truth;
        "count_nonzero", x.count_nonzero(axes), x.count_nonzero_keepdim(axes), x.count_nonzero_all(), &truth;
        "mean", x.mean(axes), x.mean_keepdim(axes), x.mean_all(), &same;
        "var", x.var(axes, 0), x.var_keepdim(axes, 0), x.var_all(0), &zeros;
        "std", x.std(axes, 0), x.std_keepdim(axes, 0), x.std_all(0), &zeros;
        "norm 1", x.norm(1.0, axes), x.norm_keepdim(1.0, axes), x.norm_all(1.0), &size;
        "norm 2", x.norm(2.0, axes), x.norm_keepdim(2.0, axes), x.norm_all(2.0), &size;
        "norm inf", x.norm(f64::INFINITY, axes), x.norm_keepdim(f64::INFINITY, axes), x.norm_all(f64::INFINITY), &size;
        "logsumexp", x.logsumexp(axes), x.logsumexp_keepdim(axes), x.logsumexp_all(), &same;
    };
    let empty = Tensor::zeros(&[2, 0], DType::F32, &cpu()).unwrap();
    for (name, reduce, keepdim, all, wanted) in rows {
        for form in [reduce, keepdim] {
            let found = form(&x, Axes::Of(&[])).unwrap();
            assert_eq!((&found.shape()[..], numbers(&found).as_slice()), (&[3, 2][..], wanted), "{name}");
            let across = form(&x.t().unwrap(), Axes::Of(&[])).unwrap();
            assert_eq!(numbers(&across.t().unwrap()), wanted, "{name} of columns");
            let nothing = form(&empty, Axes::Of(&[])).unwrap();
            assert_eq!(nothing.shape()[..], [2, 0], "{name} of no elements");
        }
        // One axis is a list of one; all axes are `..`.
        for axis in [0, 1, -1] {
            let [one, list] = [Axes::One(axis), Axes::Of(&[axis])].map(|axes| reduce(&x, axes).unwrap());
            assert_eq!((one.shape(), numbers(&one)), (list.shape(), numbers(&list)), "{name} of axis {axis}");
            let kept = keepdim(&x, Axes::One(axis)).unwrap();
            let mut sizes = [3, 2];
            sizes[axis.rem_euclid(2) as usize] = 1;
            assert_eq!((&kept.shape()[..], numbers(&kept)), (&sizes[..], numbers(&one)), "{name} keepdim");
        }
        let (whole, general) = (all(&x, Axes::All).unwrap(), reduce(&x, Axes::All).unwrap());
        assert_eq!((whole.rank(), numbers(&whole)), (0, numbers(&general)), "{name}_all");
        assert!(reduce(&x, Axes::One(2)).is_err(), "{name} of an axis out of range");
    }
    let none: Vec<isize> = Vec::new();
    assert_eq!(x.sum(&none).unwrap().shape()[..], [3, 2]);
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
fn means_of_integers_do_not_overflow() {
    for case in integer_means::CASES {
        integer_means::check(case, &cpu()).unwrap();
    }
}

/// Python's product, in order, where a zero among finite numbers makes 0 whatever overflows.
fn product(values: &[f64]) -> f64 {
    if values.contains(&0.0) && values.iter().all(|x| x.is_finite()) { 0.0 } else { values.iter().product() }
}

/// Returns whether a product is the wanted one, which is 0, infinite or NaN.
fn is_product(found: f64, wanted: f64) -> bool {
    found == wanted || found.is_nan() && wanted.is_nan()
}

#[test]
fn a_zero_makes_products_0_whatever_overflows() {
    const INF: f64 = f64::INFINITY;
    let counted: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.5).collect();
    let large = |count: usize, changes: &[(usize, f64)]| {
        let mut values = vec![3e4; count];
        for (place, value) in changes {
            values[*place] = *value;
        }
        values
    };
    let mut rows = vec![counted.clone(), counted.into_iter().rev().collect()];
    for count in [90, 5000] {
        let last = count - 1;
        for zero in [1, 77, last] {
            rows.push(large(count, &[(zero, 0.0)]));
            rows.push(large(count, &[(zero, -0.0), (count / 3, -3e4)]));
            rows.push(large(count, &[(zero, 0.0), (count / 3, INF)]));
            rows.push(large(count, &[(zero, 0.0), (count / 3, f64::NAN)]));
        }
        rows.push(large(count, &[]));
        rows.push(large(count, &[(5, -3e4)]));
        rows.push(large(count, &[(last, -INF)]));
        rows.push(large(count, &[(0, INF), (last, f64::NAN)]));
        rows.push(large(count, &[(0, 0.0), (last, 0.0)]));
    }
    for (at, values) in rows.iter().enumerate() {
        let wide = Tensor::from_slice(values, &[values.len()], &cpu()).unwrap();
        // Long rows, of several tiles, take their time.
        let all = &[DType::F32, DType::C128, DType::F16, DType::BF16, DType::F64, DType::C64][..];
        for &dtype in if values.len() > 100 { &all[at % 2..][..1] } else { all } {
            let x = wide.cast(dtype).unwrap();
            let real = |x: &Tensor| match dtype.is_complex() {
                true => numbers(&x.real().unwrap()),
                false => numbers(x),
            };
            // Neither complex overflow nor a complex infinity have one value; whether they are numbers is tested.
            let wanted = product(values);
            let what = format!("row {at} of {} {dtype}", values.len());
            let check = |found: f64, wanted: f64| match dtype.is_complex() && wanted != 0.0 {
                true => assert!(!found.is_finite(), "{what}: {found}, wanted {wanted}"),
                false => assert!(is_product(found, wanted), "{what}: {found}, wanted {wanted}"),
            };
            if !(wanted.is_finite() && wanted != 0.0) {
                check(real(&x.prod(..).unwrap())[0], wanted);
                let columns = x.unsqueeze(1).unwrap().expand(&[values.len(), 3]).unwrap();
                for array in [columns.clone(), columns.contiguous().unwrap()] {
                    for found in real(&array.prod(&[0]).unwrap()) {
                        check(found, wanted);
                    }
                }
            }
            // From where on it is 0, an infinity or NaN for good.
            let found = real(&x.cumprod(0).unwrap());
            let down = x.unsqueeze(1).unwrap().cumprod(0).unwrap();
            assert!(real(&down).iter().zip(&found).all(|(down, found)| is_product(*down, *found)), "{what}");
            let (mut has_zero, mut is_given) = (false, false);
            for (found, x) in found.iter().zip(values) {
                has_zero |= *x == 0.0;
                is_given |= !x.is_finite();
                assert!(!has_zero || is_given || *found == 0.0, "{what}: {found}");
                assert!(!(has_zero && is_given) || found.is_nan(), "{what}: {found}");
                assert!(has_zero || is_given || !found.is_nan() || dtype.is_complex(), "{what}: {found}");
            }
            check(found[values.len() - 1], wanted);
        }
    }
    // The sign of a zero, and of what overflows, is the product's.
    let sign = |values: &[f32]| {
        let x = Tensor::from_slice(values, &[values.len()], &cpu()).unwrap();
        let product = x.prod(..).unwrap().item::<f32>().unwrap();
        (product, product.is_sign_negative())
    };
    assert_eq!(sign(&[1e30, -1e30, 0.0, 2.0]), (0.0, true));
    assert_eq!(sign(&[1e30, -1e30, -0.0, 2.0]), (0.0, false));
    assert_eq!(sign(&[1e30, -1e30, 1e30, -1e30]), (f32::INFINITY, false));
    assert_eq!(sign(&[1e30, -1e30, 0.5, 1.0]), (f32::NEG_INFINITY, true));
    assert_eq!(sign(&[-1e30, -1e30, f32::NEG_INFINITY]), (f32::NEG_INFINITY, true));
}

#[test]
fn complex_products_with_a_zero_are_0() {
    let of = |values: &[[f32; 2]]| {
        let values: Vec<Complex<f32>> = values.iter().map(|[re, im]| Complex::new(*re, *im)).collect();
        let x = Tensor::from_slice(&values, &[values.len()], &cpu()).unwrap();
        let all = x.cumprod(0).unwrap().to_vec::<Complex<f32>>().unwrap();
        let last = x.prod(..).unwrap().item::<Complex<f32>>().unwrap();
        (all, last)
    };
    let zero = Complex::new(0.0, 0.0);
    // The difference of two infinities is NaN, until a zero ends it.
    let large = [1e20, 1e20];
    let (all, last) = of(&[large, [1e20, -1e20], large, [0.0, 0.0], large, large]);
    assert!(all[2].re.is_nan() || all[2].re.is_infinite(), "{all:?}");
    assert_eq!((&all[3..], last), (&[zero; 3][..], zero));
    assert_eq!(of(&[[0.0, -0.0], large, large, large]), (vec![zero; 4], zero));
    let (all, last) = of(&[large, [f32::INFINITY, 0.0], [0.0, 0.0]]);
    assert!(all[2].re.is_nan() && last.re.is_nan(), "{all:?}");
    let (_, last) = of(&[[f32::NAN, 0.0], large, [0.0, 0.0]]);
    assert!(last.re.is_nan());
    // Ones beside an infinity leave it as it is.
    let infinity = of(&[[1.0, 0.0], [f32::INFINITY, 0.0], [1.0, 0.0]]).1;
    assert_eq!((infinity.re, infinity.im), (f32::INFINITY, 0.0));
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
