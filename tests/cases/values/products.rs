//! Products and cumulative products are 0 from a zero on, whatever overflows.

use num_complex::Complex;
use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use super::numbers;

/// Python's product, in order, where a zero among finite numbers makes 0 whatever overflows.
fn product(values: &[f64]) -> f64 {
    if values.contains(&0.0) && values.iter().all(|x| x.is_finite()) { 0.0 } else { values.iter().product() }
}

/// Returns whether a product is the wanted one, which is 0, infinite or NaN.
fn is_product(found: f64, wanted: f64) -> bool {
    found == wanted || found.is_nan() && wanted.is_nan()
}

pub fn a_zero_makes_products_0_whatever_overflows(device: &Device) {
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
        let wide = Tensor::from_slice(values, &[values.len()], device).unwrap();
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
        let x = Tensor::from_slice(values, &[values.len()], device).unwrap();
        let product = x.prod(..).unwrap().item::<f32>().unwrap();
        (product, product.is_sign_negative())
    };
    assert_eq!(sign(&[1e30, -1e30, 0.0, 2.0]), (0.0, true));
    assert_eq!(sign(&[1e30, -1e30, -0.0, 2.0]), (0.0, false));
    assert_eq!(sign(&[1e30, -1e30, 1e30, -1e30]), (f32::INFINITY, false));
    assert_eq!(sign(&[1e30, -1e30, 0.5, 1.0]), (f32::NEG_INFINITY, true));
    assert_eq!(sign(&[-1e30, -1e30, f32::NEG_INFINITY]), (f32::NEG_INFINITY, true));
}

pub fn complex_products_with_a_zero_are_0(device: &Device) {
    let of = |values: &[[f32; 2]]| {
        let values: Vec<Complex<f32>> = values.iter().map(|[re, im]| Complex::new(*re, *im)).collect();
        let x = Tensor::from_slice(&values, &[values.len()], device).unwrap();
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
