//! Gates on quantum state vectors of 2ⁿ complex amplitudes, and measurement.
//!
//! Qubit q is bit q of an amplitude's index. A state is a vector, or rows of vectors, of c64 or c128. Each gate is one kernel:
//! it reads the amplitudes and a view of them in which the qubit's two values are swapped.
//!
//! Tests: `tests/catalogue/gates.rs`.

use std::f64::consts::FRAC_1_SQRT_2;

use num_complex::Complex;

use crate::error::{Error, Result};
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

/// Returns the number of qubits of a state.
fn qubits(operation: &'static str, state: &Tensor) -> Result<usize> {
    if !state.dtype().is_complex() {
        let wanted = "amplitudes of c64 or c128".to_owned();
        return Err(Error::DTypeMismatch { operation, wanted, found: state.dtype().to_string() });
    }
    match state.shape().last() {
        Some(size) if size.is_power_of_two() => Ok(size.trailing_zeros() as usize),
        _ => {
            let found = format!("a state of shape {}", state.shape());
            Err(Error::invalid(operation, found, "2^n amplitudes along the last dimension"))
        }
    }
}

fn check_qubit(operation: &'static str, name: &str, qubit: usize, qubits: usize) -> Result<()> {
    if qubit < qubits {
        return Ok(());
    }
    let wanted = format!("a qubit below {qubits}, the number of qubits of the state");
    Err(Error::invalid(operation, format!("{name} = {qubit}"), wanted))
}

/// Returns the amplitudes with the values of a qubit along axis 1.
fn by_qubit(operation: &'static str, state: &Tensor, qubit: usize) -> Result<Tensor> {
    check_qubit(operation, "qubit", qubit, qubits(operation, state)?)?;
    state.reshape(&[-1, 2, 1 << qubit])
}

/// Returns the result in the state's shape.
fn restored(result: &Tensor, state: &Tensor) -> Result<Tensor> {
    let sizes: Vec<isize> = state.shape().iter().map(|&size| size as isize).collect();
    result.reshape(&sizes)
}

/// Returns a factor for each value of the qubit in a dtype, as it broadcasts along axis 1.
fn factors(values: [Complex<f64>; 2], state: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(&values, &[2, 1], &state.device())?.cast(state.dtype())
}

/// Applies the Hadamard gate to a qubit.
///
/// ```
/// use selvedge::catalogue::{cnot, hadamard, measurement_probabilities};
/// use selvedge::{Complex, Device, Tensor};
/// let [zero, one] = [Complex::new(0.0f64, 0.0), Complex::new(1.0, 0.0)];
/// let state = Tensor::from_slice(&[one, zero, zero, zero], &[4], &Device::cpu())?;
/// let bell = cnot(&hadamard(&state, 0)?, 0, 1)?;
/// let probabilities = measurement_probabilities(&bell)?.to_vec::<f64>()?;
/// assert!((probabilities[0] - 0.5).abs() < 1e-15 && (probabilities[3] - 0.5).abs() < 1e-15);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for amplitudes that are not c64 or c128; [`Error::InvalidArgument`] for a last dimension that is
/// not a power of 2, and a qubit that the state does not have; errors of memory.
pub fn hadamard(state: &Tensor, qubit: usize) -> Result<Tensor> {
    let amplitudes = by_qubit("hadamard", state, qubit)?;
    let signs = factors([Complex::new(1.0, 0.0), Complex::new(-1.0, 0.0)], state)?;
    let result = fuse((&amplitudes, &amplitudes.flip(&[1])?, &signs), |[amplitude, swapped, sign]| {
        (swapped + amplitude * sign) * FRAC_1_SQRT_2
    })?;
    restored(&result, state)
}

/// Applies the Pauli X gate to a qubit: swaps the amplitudes of its values.
///
/// # Errors
///
/// As [`hadamard`].
pub fn pauli_x(state: &Tensor, qubit: usize) -> Result<Tensor> {
    restored(&by_qubit("pauli_x", state, qubit)?.flip(&[1])?.contiguous()?, state)
}

/// Multiplies the amplitudes with a qubit of 1 by e^(i angle).
///
/// # Errors
///
/// As [`hadamard`]; [`Error::InvalidArgument`] for an angle that is not finite.
pub fn phase_gate(state: &Tensor, qubit: usize, angle: f64) -> Result<Tensor> {
    const OPERATION: &str = "phase_gate";
    let amplitudes = by_qubit(OPERATION, state, qubit)?;
    super::operands::check_finite(OPERATION, "angle", angle)?;
    let factors = factors([Complex::new(1.0, 0.0), Complex::cis(angle)], state)?;
    restored(&amplitudes.mul(&factors)?, state)
}

/// Swaps the amplitudes of the target's values where the control qubit is 1.
///
/// # Errors
///
/// As [`hadamard`]; [`Error::InvalidArgument`] for a control that is the target.
pub fn cnot(state: &Tensor, control: usize, target: usize) -> Result<Tensor> {
    const OPERATION: &str = "cnot";
    let count = qubits(OPERATION, state)?;
    check_qubit(OPERATION, "control", control, count)?;
    check_qubit(OPERATION, "target", target, count)?;
    if control == target {
        let found = format!("control = target = {control}");
        return Err(Error::invalid(OPERATION, found, "two different qubits"));
    }
    let (low, high) = (control.min(target), control.max(target));
    let amplitudes = state.reshape(&[-1, 2, 1 << (high - low - 1), 2, 1 << low])?;
    let mask = Tensor::from_slice(&[0u8, 1], &[2, 1], &state.device())?.cast(DType::Bool)?;
    // The high qubit is axis 1, the low one axis 3.
    let (mask, target_axis) = if control == low { (mask, 1) } else { (mask.reshape(&[2, 1, 1, 1])?, 3) };
    let swapped = amplitudes.flip(&[target_axis])?;
    restored(&mask.choose(&swapped, &amplitudes)?, state)
}

/// Returns the probability |amplitude|² of each basis state, in f32 or f64. `Generator::multinomial` draws results by them.
///
/// # Errors
///
/// As [`hadamard`].
pub fn measurement_probabilities(state: &Tensor) -> Result<Tensor> {
    qubits("measurement_probabilities", state)?;
    fuse([state], |[amplitude]| amplitude.real().square() + amplitude.imag().square())
}
