//! Kuramoto oscillators.

use std::f64::consts::TAU;

use selvedge::Device;
use selvedge::catalogue::{entropy_production, kuramoto_step, order_parameter};
use selvedge::types::DType;

use crate::cases;
use crate::common::*;

#[test]
fn a_kuramoto_step_and_the_order_parameter_have_the_golden_numbers() {
    cases::a_kuramoto_step_and_the_order_parameter_have_the_golden_numbers(&Device::cpu());
}

/// A step by the definition.
fn reference(
    theta: &[f64],
    omega: &[f64],
    adjacency: impl Fn(usize, usize) -> f64,
    k: f64,
    dt: f64,
) -> Vec<f64> {
    let n = theta.len();
    let pull =
        |i: usize| (0..n).map(|j| adjacency(i, j) * (theta[j] - theta[i]).sin()).sum::<f64>() / n as f64;
    (0..n).map(|i| (theta[i] + dt * (omega[i] + k * pull(i))).rem_euclid(TAU)).collect()
}

#[test]
fn steps_of_any_number_of_oscillators_are_those_of_the_definition() {
    for n in LENGTHS {
        let theta: Vec<f64> = uniform(n, 1).iter().map(|x| x * TAU).collect();
        let omega: Vec<f64> = uniform(n, 2).iter().map(|x| 4.0 * x - 2.0).collect();
        let weights = uniform(n * n, 3);
        let adjacency = tensor(&weights, &[n, n]);
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-5)] {
            let cast = |x: &selvedge::Tensor| x.cast(dtype).unwrap();
            let (theta_tensor, omega_tensor) = (cast(&vector(&theta)), cast(&vector(&omega)));
            let all = kuramoto_step(&theta_tensor, &omega_tensor, None, 1.5, 0.05).unwrap();
            assert_eq!(all.dtype(), dtype);
            assert_close(&numbers(&all), &reference(&theta, &omega, |_, _| 1.0, 1.5, 0.05), tolerance);
            let some =
                kuramoto_step(&theta_tensor, &omega_tensor, Some(&cast(&adjacency)), 1.5, 0.05).unwrap();
            let wanted = reference(&theta, &omega, |i, j| weights[i * n + j], 1.5, 0.05);
            assert_close(&numbers(&some), &wanted, tolerance);
        }
        let order = order_parameter(&vector(&theta)).unwrap();
        let [x, y] = [f64::cos, f64::sin].map(|f| theta.iter().map(|&t| f(t)).sum::<f64>() / n as f64);
        assert_close(&[number(&order.magnitude), number(&order.phase)], &[x.hypot(y), y.atan2(x)], 1e-12);
        let production = entropy_production(&vector(&omega), 0.25).unwrap();
        assert_close(&[number(&production)], &[omega.iter().map(|v| v * v).sum::<f64>() / 0.5], 1e-12);
    }
}

#[test]
fn long_rows_follow_the_formulas() {
    let count = 140_000;
    let theta: Vec<f64> = uniform(count, 4).iter().map(|x| (x * 5.0).rem_euclid(TAU)).collect();
    let omega = uniform(count, 5);
    let [x, y] = [f64::cos, f64::sin].map(|f| theta.iter().map(|&t| f(t)).sum::<f64>());
    for (dtype, tolerance) in [(DType::F64, 1e-11), (DType::F32, 1e-5)] {
        let [theta_tensor, omega_tensor] = [&theta, &omega].map(|x| vector(x).cast(dtype).unwrap());
        let order = order_parameter(&theta_tensor).unwrap();
        let (magnitude, phase) = (x.hypot(y) / count as f64, y.atan2(x));
        let found = [&order.magnitude, &order.phase].map(|x| number(&x.cast(DType::F64).unwrap()));
        assert_close(&found, &[magnitude, phase], tolerance);
        let next = numbers(&kuramoto_step(&theta_tensor, &omega_tensor, None, 1.5, 0.05).unwrap());
        for at in [0, 1, 77_777, count - 1] {
            let pull = (theta[at].cos() * y - theta[at].sin() * x) * 1.5 / count as f64;
            let wanted = (theta[at] + 0.05 * (omega[at] + pull)).rem_euclid(TAU);
            assert_close(&[next[at]], &[wanted], tolerance);
        }
    }
}

#[test]
fn phases_of_every_dtype_end_within_0_and_2_pi() {
    // Far outside, just below 0, and at multiples of 2π.
    let phases = [-1e-9, -1e-30, TAU, -TAU, 1e4, -1e4, 0.0, TAU - 1e-7, 60000.0];
    for (dtype, _) in FLOATS {
        let theta = vector(&phases).cast(dtype).unwrap();
        let still = theta.zeros_like().unwrap();
        let next = kuramoto_step(&theta, &still, None, 0.0, 0.0).unwrap();
        let inputs = numbers(&theta);
        for (phase, before) in numbers(&next).into_iter().zip(inputs) {
            assert!((0.0..TAU).contains(&phase), "{dtype}: {before} became {phase}");
            let apart = (phase - before).rem_euclid(TAU);
            let bound = if dtype == DType::F64 { 1e-11 } else { 0.05 };
            assert!(apart.min(TAU - apart) < bound, "{dtype}: {before} became {phase}");
        }
    }
}

#[test]
fn rows_of_phases_are_independent() {
    let theta = tensor(&[0.0, 1.0, 2.5, 0.5, 0.5, 0.5], &[2, 3]);
    let omega = vector(&[0.1, 0.2, 0.3]);
    let weights = tensor(&uniform(9, 4), &[3, 3]);
    for adjacency in [None, Some(&weights)] {
        let both = numbers(&kuramoto_step(&theta, &omega, adjacency, 1.0, 0.01).unwrap());
        for row in 0..2 {
            let one = theta.select(0, row).unwrap();
            let one = numbers(&kuramoto_step(&one, &omega, adjacency, 1.0, 0.01).unwrap());
            assert_close(&both[3 * row as usize..][..3], &one, 1e-15);
        }
    }
    let order = order_parameter(&theta).unwrap();
    assert_close(&numbers(&order.magnitude), &[0.539525695401, 1.0], 1e-12);
}

#[test]
fn the_order_parameter_counts_every_phase_of_a_large_ring() {
    // Only the last quarter differs: a sum over a first block would miss it.
    let mut theta = vec![0.0f32; LARGE];
    theta[LARGE / 4 * 3..].fill(std::f32::consts::PI);
    let order = order_parameter(&vector(&theta)).unwrap();
    assert_close(&[number(&order.magnitude)], &[0.5], 1e-6);
}

#[test]
fn wrong_oscillators_are_errors() {
    let (theta, short) = (vector(&[0.0, 1.0, 2.0]), vector(&[0.0, 1.0]));
    assert_invalid(kuramoto_step(&theta, &short, None, 1.0, 0.1), &["omega of shape [2]", "[3]"]);
    assert_invalid(kuramoto_step(&theta, &theta, Some(&theta), 1.0, 0.1), &["adjacency", "[3, 3]"]);
    assert_invalid(kuramoto_step(&theta, &theta, None, f64::NAN, 0.1), &["strength"]);
    assert_invalid(kuramoto_step(&theta, &theta, None, 1.0, f64::INFINITY), &["dt"]);
    assert_invalid(order_parameter(&vector::<f32>(&[])), &["at least one"]);
    assert_invalid(entropy_production(&theta, 0.0), &["temperature = 0"]);
    assert_dtype_error(kuramoto_step(&theta, &theta.cast(DType::F32).unwrap(), None, 1.0, 0.1));
    assert_dtype_error(order_parameter(&vector(&[1i32])));
}
