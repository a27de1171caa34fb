//! Gates on state vectors.

use selvedge::catalogue::{cnot, hadamard, measurement_probabilities, pauli_x, phase_gate};
use selvedge::tensor::Generator;
use selvedge::types::DType;
use selvedge::{Complex, Tensor};

use crate::common::{assert_dtype_error, assert_invalid, numbers, tensor, uniform, vector};

/// A state of so many qubits, not normalised.
fn state(qubits: u32) -> Vec<Complex<f64>> {
    let parts = uniform(2 << qubits, 1);
    parts.chunks_exact(2).map(|parts| Complex::new(parts[0] - 0.5, parts[1] - 0.5)).collect()
}

#[track_caller]
fn assert_amplitudes(found: &Tensor, wanted: &[Complex<f64>], tolerance: f64) {
    let found = found.cast(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap();
    assert_eq!(found.len(), wanted.len());
    for (at, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).norm() <= tolerance, "amplitude {at}: {x} instead of {y}");
    }
}

/// A gate on the amplitudes of the qubit's values 0 and 1.
fn reference(
    state: &[Complex<f64>],
    qubit: usize,
    gate: impl Fn([Complex<f64>; 2]) -> [Complex<f64>; 2],
) -> Vec<Complex<f64>> {
    let pair = |i: usize| [state[i & !(1 << qubit)], state[i | 1 << qubit]];
    (0..state.len()).map(|i| gate(pair(i))[i >> qubit & 1]).collect()
}

#[test]
fn gates_act_on_each_qubit_as_their_matrices() {
    let root = std::f64::consts::FRAC_1_SQRT_2;
    for qubits in [1, 2, 5, 9] {
        let amplitudes = state(qubits);
        for (dtype, tolerance) in [(DType::C128, 1e-15), (DType::C64, 1e-6)] {
            let input = vector(&amplitudes).cast(dtype).unwrap();
            for qubit in 0..qubits as usize {
                let check =
                    |found: selvedge::Result<Tensor>,
                     gate: &dyn Fn([Complex<f64>; 2]) -> [Complex<f64>; 2]| {
                        let found = found.unwrap();
                        assert_eq!((found.dtype(), found.shape()), (dtype, input.shape()));
                        assert_amplitudes(&found, &reference(&amplitudes, qubit, gate), tolerance);
                    };
                check(hadamard(&input, qubit), &|[a, b]| [(a + b) * root, (a - b) * root]);
                check(pauli_x(&input, qubit), &|[a, b]| [b, a]);
                check(phase_gate(&input, qubit, 0.7), &|[a, b]| [a, b * Complex::cis(0.7)]);
                for control in (0..qubits as usize).filter(|control| *control != qubit) {
                    let flipped = |i: usize| amplitudes[i ^ (i >> control & 1) << qubit];
                    let wanted: Vec<_> = (0..amplitudes.len()).map(flipped).collect();
                    assert_amplitudes(&cnot(&input, control, qubit).unwrap(), &wanted, tolerance);
                }
            }
            let wanted: Vec<f64> = amplitudes.iter().map(Complex::norm_sqr).collect();
            let found = measurement_probabilities(&input).unwrap();
            assert_eq!(found.dtype(), if dtype == DType::C64 { DType::F32 } else { DType::F64 });
            crate::common::assert_close(&numbers(&found), &wanted, tolerance);
        }
    }
}

#[test]
fn twenty_qubits_of_a_ghz_state_agree() {
    let mut amplitudes = vec![Complex::new(0.0f32, 0.0); 1 << 20];
    amplitudes[0].re = 1.0;
    let mut ghz = hadamard(&vector(&amplitudes), 0).unwrap();
    for qubit in 1..20 {
        ghz = cnot(&ghz, qubit - 1, qubit).unwrap();
    }
    let probabilities = measurement_probabilities(&ghz).unwrap();
    let found = probabilities.to_vec::<f32>().unwrap();
    assert!((found[0] - 0.5).abs() < 1e-6 && (found[(1 << 20) - 1] - 0.5).abs() < 1e-6);
    assert!(found[1..(1 << 20) - 1].iter().all(|share| *share == 0.0));
    let drawn = Generator::new(2).multinomial(&probabilities, 40, true).unwrap().to_vec::<i64>().unwrap();
    assert!(drawn.contains(&0) && drawn.contains(&((1 << 20) - 1)));
    assert!(drawn.iter().all(|state| [0, (1 << 20) - 1].contains(state)));
}

#[test]
fn rows_of_states_are_independent() {
    let amplitudes = state(4);
    let rows = tensor(&amplitudes, &[2, 8]);
    let both = cnot(&hadamard(&rows, 2).unwrap(), 2, 0).unwrap();
    assert_eq!(both.shape()[..], [2, 8]);
    for row in 0..2 {
        let one = vector(&amplitudes[8 * row..][..8]);
        let one = cnot(&hadamard(&one, 2).unwrap(), 2, 0).unwrap();
        assert!(both.select(0, row as isize).unwrap().equal(&one).unwrap());
    }
}

#[test]
fn wrong_states_and_qubits_are_errors() {
    let good = vector(&state(2));
    assert_invalid(hadamard(&good, 2), &["qubit = 2", "below 2"]);
    assert_invalid(pauli_x(&good, 70), &["qubit = 70"]);
    assert_invalid(phase_gate(&good, 0, f64::NAN), &["angle"]);
    assert_invalid(cnot(&good, 0, 2), &["target = 2"]);
    assert_invalid(cnot(&good, 1, 1), &["control = target = 1"]);
    assert_invalid(hadamard(&vector(&state(2)[..3]), 0), &["[3]", "2^n"]);
    assert_invalid(hadamard(&vector(&state(0)), 0), &["below 0"]);
    assert_dtype_error(hadamard(&vector(&[1.0f32, 0.0]), 0));
    assert_dtype_error(measurement_probabilities(&vector(&[1i64])));
}
