//! Gates on quantum state vectors of 2^n complex amplitudes, and measurement.
//!
//! Qubit q is bit q of an amplitude's index. A state is a vector, or rows of vectors, of `SV_DTYPE_C64` or `SV_DTYPE_C128`.

use super::super::handle::sv_tensor;
use super::give_of;
use crate::catalogue;

/// Applies the Hadamard gate to a qubit of a state: 2^n amplitudes of `SV_DTYPE_C64` or `SV_DTYPE_C128` along the last axis.
/// Qubit q is bit q of an amplitude's index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_hadamard(state: sv_tensor, qubit: usize, result: *mut sv_tensor) -> i32 {
    let operands = [(state, "state")];
    give_of("sv_hadamard", operands, result, &|[state]| catalogue::hadamard(state, qubit))
}

/// Applies the Pauli X gate to a qubit of a state, as `sv_hadamard`: swaps the amplitudes of its values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_pauli_x(state: sv_tensor, qubit: usize, result: *mut sv_tensor) -> i32 {
    let operands = [(state, "state")];
    give_of("sv_pauli_x", operands, result, &|[state]| catalogue::pauli_x(state, qubit))
}

/// Multiplies the amplitudes with a qubit of 1 by e^(i angle), as `sv_hadamard`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_phase_gate(
    state: sv_tensor,
    qubit: usize,
    angle: f64,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(state, "state")];
    give_of("sv_phase_gate", operands, result, &|[state]| catalogue::phase_gate(state, qubit, angle))
}

/// Swaps the amplitudes of the values of the qubit `target` for a qubit `control` of 1, as `sv_hadamard`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_cnot(
    state: sv_tensor,
    control: usize,
    target: usize,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(state, "state")];
    give_of("sv_cnot", operands, result, &|[state]| catalogue::cnot(state, control, target))
}

/// Gives the probability of each basis state, in real numbers of the amplitudes' width. `sv_multinomial` draws by them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_measurement_probabilities(state: sv_tensor, result: *mut sv_tensor) -> i32 {
    let operands = [(state, "state")];
    give_of("sv_measurement_probabilities", operands, result, &|[state]| {
        catalogue::measurement_probabilities(state)
    })
}
