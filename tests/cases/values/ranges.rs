//! Ranges whose ends are further apart than the largest number.

use selvedge::tensor::{Device, Tensor};
use selvedge::types::DType;

use super::numbers;

pub fn distances_past_the_largest_number_count_and_interpolate(device: &Device) {
    let of = |values: &[f64]| Tensor::from_slice(values, &[values.len()], device).unwrap();
    let x = of(&[0.0, 1e308, -1e308, f64::INFINITY, f64::NAN]);
    assert_eq!(numbers(&x.histc(4, -1.7e308, 1.7e308).unwrap()), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(numbers(&of(&[1e308, -1e308]).histc(4, 0.0, 0.0).unwrap()), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(numbers(&of(&[f64::MAX, f64::MIN]).histc(2, f64::MIN, f64::MAX).unwrap()), [1.0, 1.0]);
    // Equal elements, beside which 1 is nothing.
    for equal in [1e17, -1e300, f64::MAX, f64::MIN, 3.0] {
        assert_eq!(numbers(&of(&[equal, equal]).histc(1, 0.0, 0.0).unwrap()), [2.0], "{equal}");
    }
    let single = of(&[-3e38, 0.0, 3e38]).cast(DType::F32).unwrap();
    assert_eq!(numbers(&single.histc(2, -3.4e38, 3.4e38).unwrap()), [1.0, 2.0]);

    let range = Tensor::arange(-1.5e308, 1.6e308, 1e308, DType::F64, device).unwrap();
    assert_eq!(range.to_vec::<f64>().unwrap(), [-1.5e308, -5e307, 5e307, 1.5e308]);
    let line = Tensor::linspace(f64::MIN, f64::MAX, 3, DType::F64, device).unwrap();
    assert_eq!(line.to_vec::<f64>().unwrap(), [f64::MIN, 0.0, f64::MAX]);

    for (dtype, most) in
        [(DType::F64, f64::MAX), (DType::F32, f64::from(f32::MAX)), (DType::BF16, 3.3895313892515355e38)]
    {
        let [low, high] = [-most, most].map(|end| of(&[end; 5]).cast(dtype).unwrap());
        let weight = of(&[0.0, 0.25, 0.5, 0.75, 1.0]).cast(dtype).unwrap();
        let found = numbers(&low.lerp(&high, &weight).unwrap());
        let wanted = [-most, -most / 2.0, 0.0, most / 2.0, most];
        let is_close = |(found, wanted): (&f64, f64)| (found - wanted).abs() <= wanted.abs() * 2f64.powi(-8);
        assert!(found.iter().zip(wanted).all(is_close), "{dtype}: {found:?}");
    }
    // An infinite end is no overflow.
    let end = of(&[f64::INFINITY]).lerp(&of(&[1.0]), 0.25).unwrap();
    assert!(numbers(&end)[0].is_nan());
}
