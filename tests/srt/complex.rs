//! Complex division and phases.

use std::f64::consts::PI;

use selvedge::srt::*;
use selvedge::types::DType;
use selvedge::{Complex, Tensor};

use crate::common::*;

fn complex(z: &[(f64, f64)]) -> Tensor {
    let z: Vec<Complex<f64>> = z.iter().map(|&(re, im)| Complex::new(re, im)).collect();
    tensor(&z, &[z.len()])
}

#[test]
fn division_neither_overflows_nor_loses_the_infinity_at_zero() {
    let a = complex(&[(1.0, 2.0), (1e200, 1e200), (1.0, -1.0)]);
    let b = complex(&[(3.0, -4.0), (1e200, 1e200), (0.0, 0.0)]);
    let quotient = numbers(&complex_divide(&a, &b).unwrap());
    let close = |found: f64, wanted: f64| (found - wanted).abs() <= 1e-15;
    assert!(close(quotient[0], -0.2) && close(quotient[1], 0.4), "{quotient:?}");
    assert_eq!(quotient[2..4], [1.0, 0.0]);
    assert!(quotient[4].is_infinite() && quotient[5].is_infinite(), "{quotient:?}");
    let single = complex_divide(&a.cast(DType::C64).unwrap(), &b.cast(DType::C64).unwrap()).unwrap();
    assert_close(&single.narrow(0, 0, 1).unwrap(), &[-0.2, 0.4], 1e-6);
    assert_worked(&complex_reciprocal(&complex(&[(3.0, -4.0)])).unwrap(), &[0.12, 0.16]);
    assert_invalid(complex_divide(&a, &complex(&[(1.0, 0.0)])), &["[3]", "[1]"]);
    assert_dtype_error(complex_divide(&a, &b.cast(DType::C64).unwrap()));
    assert_dtype_error(complex_reciprocal(&vector(&[1.0])));
}

#[test]
fn rotations_turn_every_number_by_the_angle() {
    let z = complex_sequence(100, 3);
    let z_tensor = tensor(&z, &[100]);
    let golden = Complex::from_polar(1.0, PI / PHI);
    let wanted: Vec<f64> = z.iter().map(|z| z * golden).flat_map(|z| [z.re, z.im]).collect();
    let turned = golden_rotate(&z_tensor).unwrap();
    let found = numbers(&turned);
    assert!(found.iter().zip(&wanted).all(|(x, y)| (x - y).abs() < 1e-14));
    let theta = Tensor::full(&[100], PI / PHI, DType::F64, &turned.device()).unwrap();
    let by_tensor = numbers(&rotate_phases(&z_tensor, &theta).unwrap());
    assert!(by_tensor.iter().zip(&wanted).all(|(x, y)| (x - y).abs() < 1e-14));
    let single =
        rotate_phases(&z_tensor.cast(DType::C64).unwrap(), &theta.cast(DType::F32).unwrap()).unwrap();
    assert_eq!(single.dtype(), DType::C64);
    assert!(numbers(&single).iter().zip(&wanted).all(|(x, y)| (x - y).abs() < 1e-6));
    assert_dtype_error(rotate_phases(&z_tensor, &theta.cast(DType::F32).unwrap()));
    assert_invalid(rotate_phases(&z_tensor, &theta.narrow(0, 0, 1).unwrap()), &["[100]", "[1]"]);
    assert_dtype_error(golden_rotate(&vector(&[1.0])));
}

#[test]
fn normalized_numbers_have_length_1_or_0() {
    let z = complex(&[(3.0, -4.0), (0.0, 0.0), (3e200, 4e200), (f64::NAN, 1.0)]);
    let found = numbers(&normalize_phase(&z).unwrap());
    for (x, y) in found.iter().zip([0.6, -0.8, 0.0, 0.0, 0.6, 0.8]) {
        assert!((x - y).abs() < 1e-15, "{found:?}");
    }
    assert!(found[6].is_nan() && found[7].is_nan());
    assert_dtype_error(normalize_phase(&vector(&[1.0])));
}

#[test]
fn phases_are_quantized_to_multiples_of_pi_by_k() {
    let z = complex(&[(1.0, 0.9)]);
    let wanted = [0.6726812023536857, 1.1651180197731044];
    assert_worked(&quantize_phase_pi(&z, 3).unwrap(), &wanted);
    assert_close(&quantize_phase_pi(&z.cast(DType::C64).unwrap(), 3).unwrap(), &wanted, 2e-7);
    // Halves go away from 0, to either side: at k = 1 the angle of ±i is half of a step.
    let halves = numbers(&quantize_phase_pi(&complex(&[(0.0, 2.0), (0.0, -2.0), (0.0, 0.0)]), 1).unwrap());
    assert!(halves[0] == -2.0 && halves[2] == -2.0 && halves[4..] == [0.0; 2], "{halves:?}");
    // A number just below half a step is not rounded up.
    let below = Complex::from_polar(1.0, 0.49999999999 * PI);
    let found = numbers(&quantize_phase_pi(&tensor(&[below], &[1]), 1).unwrap());
    assert!((found[0] - 1.0).abs() < 1e-15 && found[1].abs() < 1e-15, "{found:?}");
    // Lengths stay and angles are within half of a step.
    let numbers_in = complex_sequence(200, 9);
    for k in [1, 2, 7, 1 << 24] {
        let quantized = quantize_phase_pi(&tensor(&numbers_in, &[200]), k).unwrap();
        for (x, y) in quantized.to_vec::<Complex<f64>>().unwrap().iter().zip(&numbers_in) {
            assert!((x.norm() - y.norm()).abs() < 1e-14);
            assert!((x / y).arg().abs() <= PI / k as f64 * 0.5 + 1e-14, "{x} of {y} at k = {k}");
        }
    }
    for k in [0, -1, (1 << 24) + 1] {
        assert_invalid(quantize_phase_pi(&z, k), &[&format!("k = {k}")]);
    }
    assert_dtype_error(quantize_phase_pi(&vector(&[1.0]), 3));
}

#[test]
fn phi_weighted_sums_have_the_worked_number() {
    let z = complex(&[(1.0, 1.0), (2.0, 0.0), (0.0, 3.0)]);
    let wanted = [2.23606797749979, 2.1458980337503157];
    assert_worked(&phi_weighted_sum(&z).unwrap(), &wanted);
    assert_close(&phi_weighted_sum(&z.cast(DType::C64).unwrap()).unwrap(), &wanted, 1e-7);
    assert_eq!(numbers(&phi_weighted_sum(&complex(&[])).unwrap()), [0.0, 0.0]);
    // Every element counts: the sum of all powers is φ², and elements past the underflow still give NaN.
    let many = vec![(1.0, 0.0); 5000];
    assert_worked(&phi_weighted_sum(&complex(&many)).unwrap(), &[PHI + 1.0, 0.0]);
    let mut last = many.clone();
    last[4999].1 = f64::NAN;
    assert!(numbers(&phi_weighted_sum(&complex(&last)).unwrap())[1].is_nan());
    // Weights stay accurate where they are small.
    for i in [10usize, 100, 1000, 1400] {
        let mut one = vec![(0.0, 0.0); i + 1];
        one[i].0 = 1.0;
        let wanted = PHI.powi(i as i32).recip();
        assert_close(&phi_weighted_sum(&complex(&one)).unwrap(), &[wanted, 0.0], 4e-16 * i as f64);
    }
    assert_dtype_error(phi_weighted_sum(&vector(&[1.0])));
    assert_invalid(phi_weighted_sum(&z.select(0, 0).unwrap()), &["without dimensions"]);
}
