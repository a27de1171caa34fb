//! Tensors as text. The texts are what NumPy 2.4 prints of the same arrays, with Rust's names for truth values, and for
//! `Debug` with `Tensor` for `array`.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::tensor::{Device, Nested, Tensor};
use selvedge::types::{DType, Element};

fn of(values: impl Nested) -> Tensor {
    Tensor::new(values, &Device::cpu()).expect("a tensor")
}

fn counting<T: Element>(sizes: &[usize], number: impl Fn(u16) -> T) -> Tensor {
    let count = sizes.iter().product::<usize>() as u16;
    Tensor::from_vec((0..count).map(number).collect(), sizes, &Device::cpu()).expect("a tensor")
}

#[test]
fn display_is_as_in_numpy() {
    let nan = f64::NAN;
    for (tensor, wanted) in [
        (of([[0i32, 1, 2], [3, 4, 5]]), "[[0 1 2]\n [3 4 5]]"),
        (of([1i64, -20, 300]), "[  1 -20 300]"),
        (of([1.0f64, 2.5, -3.25]), "[ 1.    2.5  -3.25]"),
        (of([1e-5f64, 1.5]), "[1.0e-05 1.5e+00]"),
        (of([1e10f32, 1.0]), "[1.e+10 1.e+00]"),
        (of([nan, 1.5, f64::NEG_INFINITY]), "[ nan  1.5 -inf]"),
        (of([true, false]), "[ true false]"),
        (of([Complex::new(1.0f32, 2.0), Complex::new(-0.5, -0.1)]), "[ 1. +2.j  -0.5-0.1j]"),
        (of([Complex::new(nan, 1.0), Complex::new(1.0, -2.0)]), "[nan+1.j  1.-2.j]"),
        (of([0.1f32, 1.0 / 3.0]), "[0.1        0.33333334]"),
        (of([f16::from_f32(0.1), f16::from_f32(1.0 / 3.0)]), "[0.1    0.3333]"),
        (of([bf16::from_f32(0.1), bf16::from_f32(1.5)]), "[0.1 1.5]"),
        (
            counting(&[2, 3, 4], f64::from),
            "[[[ 0.  1.  2.  3.]\n  [ 4.  5.  6.  7.]\n  [ 8.  9. 10. 11.]]\n\n [[12. 13. 14. 15.]\n  [16. 17. 18. 19.]\n  [20. 21. 22. 23.]]]",
        ),
        (counting(&[2000], i64::from), "[   0    1    2 ... 1997 1998 1999]"),
        (
            counting(&[40, 30], i32::from),
            "[[   0    1    2 ...   27   28   29]\n [  30   31   32 ...   57   58   59]\n [  60   61   62 ...   87   88   89]\n ...\n [1110 1111 1112 ... 1137 1138 1139]\n [1140 1141 1142 ... 1167 1168 1169]\n [1170 1171 1172 ... 1197 1198 1199]]",
        ),
        (of([0.0f32; 0]), "[]"),
        (Tensor::zeros(&[0, 3], DType::I32, &Device::cpu()).unwrap(), "[]"),
        (of(2.0f64), "2.0"),
        (of(5u8), "5"),
        (
            counting(&[40], u32::from),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39]",
        ),
        (of([1.0 / 3.0, 2.0 / 3.0, 1e-3]), "[0.33333333 0.66666667 0.001     ]"),
        (of([1e16f64, 1.0]), "[1.e+16 1.e+00]"),
        (of([0.0f64, -0.0]), "[ 0. -0.]"),
        (of([[1e-7f32, 1.0], [2.0, 3.0]]), "[[1.e-07 1.e+00]\n [2.e+00 3.e+00]]"),
    ] {
        assert_eq!(tensor.to_string(), wanted, "{wanted}");
    }
}

#[test]
fn debug_is_as_in_numpy_with_the_device() {
    for (tensor, wanted) in [
        (of([[0i32, 1, 2], [3, 4, 5]]), "Tensor([[0, 1, 2],\n        [3, 4, 5]], dtype=i32, device=cpu)"),
        (
            counting(&[2000], i64::from),
            "Tensor([   0,    1,    2, ..., 1997, 1998, 1999], shape=[2000], dtype=i64, device=cpu)",
        ),
        (
            Tensor::zeros(&[0, 3], DType::BF16, &Device::cpu()).unwrap(),
            "Tensor([], shape=[0, 3], dtype=bf16, device=cpu)",
        ),
        (
            counting(&[40], u32::from),
            "Tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15,\n        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,\n        32, 33, 34, 35, 36, 37, 38, 39], dtype=u32, device=cpu)",
        ),
    ] {
        assert_eq!(format!("{tensor:?}"), wanted, "{wanted}");
    }
}

#[test]
fn large_tensors_of_many_dimensions_are_shortened_in_each() {
    let text = counting(&[10, 10, 100], f64::from).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 49);
    assert_eq!(lines[0], "[[[0.000e+00 1.000e+00 2.000e+00 ... 9.700e+01 9.800e+01 9.900e+01]");
    assert_eq!(lines[3], "  ...");
    assert_eq!(lines[6], "  [9.000e+02 9.010e+02 9.020e+02 ... 9.970e+02 9.980e+02 9.990e+02]]");
    assert_eq!(lines[7], "");
    assert_eq!(lines[24], " ...");
    assert_eq!(
        *lines.last().unwrap(),
        "  [9.900e+03 9.901e+03 9.902e+03 ... 9.997e+03 9.998e+03 9.999e+03]]]"
    );
    // A view that is not there in memory.
    let one = of([7i32]);
    let wide = one.expand(&[1 << 20, 1 << 20]).unwrap();
    assert_eq!(wide.to_string().lines().next().unwrap(), "[[7 7 7 ... 7 7 7]");
}

#[test]
fn storage_dtypes_are_shown() {
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        let x = of([0.5f32, -2.0]).cast(dtype).unwrap();
        assert_eq!(x.to_string(), "[ 0.5 -2. ]");
    }
}

#[test]
fn a_precision_is_the_number_of_digits_after_the_point() {
    let table = [
        (format!("{:.2}", of([1.0f64, -2.345, 100.0])), "[  1.00  -2.35 100.00]"),
        (format!("{:.0}", of([1.4f32, -2.6])), "[ 1 -3]"),
        (format!("{:.1}", of([0.00001f32, 1000.0])), "[   0.0 1000.0]"),
        (format!("{:.3}", of(2.0f64)), "2.000"),
        (format!("{:.1}", of([f64::NAN, 0.25, f64::INFINITY])), "[nan 0.2 inf]"),
        (format!("{:.2}", of([1e20f64, 1.5])), "[1.00e+20 1.50e+00]"),
        (format!("{:.1}", of([Complex::new(1.0f32, -2.25)])), "[1.0-2.2j]"),
        (format!("{:.2}", of([f16::from_f32(1.0 / 3.0)])), "[0.33]"),
        (format!("{:.2}", of([1i32, 20])), "[ 1 20]"),
        (format!("{:.2?}", of([1.0f32, 2.0])), "Tensor([1.00, 2.00], dtype=f32, device=cpu)"),
    ];
    for (found, wanted) in table {
        assert_eq!(found, wanted);
    }
}
