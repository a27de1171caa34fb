//! Complex numbers, residuals, weights and corrections.

use super::super::arguments::{collected, slice};
use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::super::tensor::{flag, give, tensor};
use super::number;
use crate::srt::{self, Correction, ResidualMode};

/// x + r/phi.
pub const SV_SRT_RESIDUAL_PHI: i32 = 0;
/// (x + r)/phi.
pub const SV_SRT_RESIDUAL_SYMMETRIC: i32 = 1;
/// x + r.
pub const SV_SRT_RESIDUAL_STANDARD: i32 = 2;

fn residual_mode(code: i32) -> Result<ResidualMode> {
    match code {
        SV_SRT_RESIDUAL_PHI => Ok(ResidualMode::Phi),
        SV_SRT_RESIDUAL_SYMMETRIC => Ok(ResidualMode::PhiSymmetric),
        SV_SRT_RESIDUAL_STANDARD => Ok(ResidualMode::Standard),
        other => Err(Failure::argument("mode", other, "one of SV_SRT_RESIDUAL_...")),
    }
}

/// Reads `count` corrections.
///
/// # Safety
///
/// As [`slice`].
unsafe fn corrections(divisors: *const f64, signs: *const i32, count: usize) -> Result<Vec<Correction>> {
    let (divisors, signs) = (slice(divisors, count, "divisors")?, slice(signs, count, "signs")?);
    divisors.iter().zip(signs).map(|(divisor, sign)| Ok(Correction::new(*divisor, *sign)?)).collect()
}

/// Computes x / y of complex tensors of one shape, scaled so that nothing overflows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_complex_divide(x: sv_tensor, y: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_complex_divide", result, || Ok(srt::complex_divide(&tensor(x, "x")?, &tensor(y, "y")?)?))
}

/// Computes 1/z, of complex numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_complex_reciprocal(z: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_complex_reciprocal", result, || Ok(srt::complex_reciprocal(&tensor(z, "z")?)?))
}

/// Computes z e^(i pi/phi), of complex numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_rotate(z: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_rotate", result, || Ok(srt::golden_rotate(&tensor(z, "z")?)?))
}

/// Computes z/|z|, and 0 at 0, of complex numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_normalize_phase(z: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_normalize_phase", result, || Ok(srt::normalize_phase(&tensor(z, "z")?)?))
}

/// Computes the sum of z_i phi^-i along the last axis, of complex numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_weighted_sum(z: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_phi_weighted_sum", result, || Ok(srt::phi_weighted_sum(&tensor(z, "z")?)?))
}

/// Computes z e^(i theta).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_rotate_phase(z: sv_tensor, theta: f64, result: *mut sv_tensor) -> i32 {
    give("sv_srt_rotate_phase", result, || Ok(srt::rotate_phase(&tensor(z, "z")?, theta)?))
}

/// Computes z e^(i theta) with an angle for each element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_rotate_phases(z: sv_tensor, theta: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_rotate_phases", result, || {
        Ok(srt::rotate_phases(&tensor(z, "z")?, &tensor(theta, "theta")?)?)
    })
}

/// Rounds the angle of each complex number to a multiple of pi/k, and keeps its magnitude.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_quantize_phase_pi(z: sv_tensor, k: i64, result: *mut sv_tensor) -> i32 {
    give("sv_srt_quantize_phase_pi", result, || Ok(srt::quantize_phase_pi(&tensor(z, "z")?, k)?))
}

/// Adds a residual as `mode` says, one of `SV_SRT_RESIDUAL_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_residual(
    x: sv_tensor,
    r: sv_tensor,
    mode: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_phi_residual", result, || {
        Ok(srt::phi_residual(&tensor(x, "x")?, &tensor(r, "r")?, residual_mode(mode)?)?)
    })
}

/// Computes the positive part of `sv_srt_phi_residual`. NaN gives 0 if `keep_nan` is 0, and NaN if it is 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_residual_relu(
    x: sv_tensor,
    r: sv_tensor,
    mode: i32,
    keep_nan: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_phi_residual_relu", result, || {
        let (x, r, mode) = (tensor(x, "x")?, tensor(r, "r")?, residual_mode(mode)?);
        Ok(match flag(keep_nan, "keep_nan")? {
            true => srt::phi_residual_relu_keeping_nan(&x, &r, mode)?,
            false => srt::phi_residual_relu(&x, &r, mode)?,
        })
    })
}

/// Computes GELU of x + r/phi, in its tanh form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_residual_gelu(x: sv_tensor, r: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_phi_residual_gelu", result, || {
        Ok(srt::phi_residual_gelu(&tensor(x, "x")?, &tensor(r, "r")?)?)
    })
}

/// Normalizes the rows of x + r/phi to variance 1. `gamma` and `beta` are tensors of the row's size, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_phi_residual_layer_norm(
    x: sv_tensor,
    r: sv_tensor,
    gamma: sv_tensor,
    beta: sv_tensor,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_phi_residual_layer_norm", result, || {
        let optional = |handle, name| if handle == 0 { Ok(None) } else { tensor(handle, name).map(Some) };
        let (gamma, beta) = (optional(gamma, "gamma")?, optional(beta, "beta")?);
        let (x, r) = (tensor(x, "x")?, tensor(r, "r")?);
        Ok(srt::phi_residual_layer_norm(&x, &r, gamma.as_ref(), beta.as_ref(), eps)?)
    })
}

/// Computes exp(-s/phi); of complex numbers, exp(-|z|^2/phi).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_weight(s: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_weight", result, || Ok(srt::golden_weight(&tensor(s, "s")?)?))
}

/// Computes exp(-|n|^2/phi) of each row of windings along the last axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_weight_of_rows(n: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_weight_of_rows", result, || Ok(srt::golden_weight_of_rows(&tensor(n, "n")?)?))
}

/// Computes the sum of a_i b_i exp(-i^2/phi).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_inner(a: sv_tensor, b: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_inner", result, || Ok(srt::golden_inner(&tensor(a, "a")?, &tensor(b, "b")?)?))
}

/// Computes a_i exp(-i/phi) / sqrt(sum of a_i^2 exp(-2i/phi) + 1e-10).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_normalize(a: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_srt_golden_normalize", result, || Ok(srt::golden_normalize(&tensor(a, "a")?)?))
}

/// Multiplies each element by its correction 1 + sign q/divisor; a divisor of 0 gives 1. `count` is the number of
/// elements.
///
/// # Safety
///
/// `divisors` and `signs` point to `count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_correct(
    values: sv_tensor,
    divisors: *const f64,
    signs: *const i32,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_correct", result, || {
        Ok(srt::correct(&tensor(values, "values")?, &corrections(divisors, signs, count)?)?)
    })
}

/// Computes v (1 + q/first) (1 - q/second).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_compound_correction(
    values: sv_tensor,
    first: f64,
    second: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_compound_correction", result, || {
        Ok(srt::compound_correction(&tensor(values, "values")?, first, second)?)
    })
}

/// Multiplies each element by a range of the `count` corrections, from left to right. Element i has `lengths[i]`
/// corrections from `starts[i]` on; `elements` is the number of elements.
///
/// # Safety
///
/// `divisors` and `signs` point to `count` numbers each, and `starts` and `lengths` to `elements` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_correct_chain(
    values: sv_tensor,
    divisors: *const f64,
    signs: *const i32,
    count: usize,
    starts: *const usize,
    lengths: *const usize,
    elements: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_srt_correct_chain", result, || {
        let (values, corrections) = (tensor(values, "values")?, corrections(divisors, signs, count)?);
        let (starts, lengths) = (slice(starts, elements, "starts")?, slice(lengths, elements, "lengths")?);
        let ranges = starts.iter().zip(lengths).map(|(start, length)| *start..start.saturating_add(*length));
        let ranges = collected(elements, "starts", ranges)?;
        Ok(srt::correct_chain(&values, &corrections, &ranges)?)
    })
}

/// Returns q = (2 phi + e/(2 phi^2)) / (phi^4 (e^pi - pi)).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_q_deficit(result: *mut f64) -> i32 {
    number("sv_srt_q_deficit", result, || Ok(srt::q_deficit()))
}

/// Computes 1 + sign q/divisor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_correction(divisor: f64, sign: i32, result: *mut f64) -> i32 {
    number("sv_srt_correction", result, || Ok(srt::correction(divisor, sign)?))
}

/// Computes 1 + sign coefficient q^q_power phi^phi_power. docs/srt.md names the coefficients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_special_correction(
    sign: i32,
    coefficient: f64,
    q_power: i32,
    phi_power: i32,
    result: *mut f64,
) -> i32 {
    number("sv_srt_special_correction", result, || {
        Ok(srt::special_correction(sign, coefficient, q_power, phi_power)?)
    })
}

/// Computes 1/(1 + q phi^k) of k from -2 to 3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_suppression(k: i32, result: *mut f64) -> i32 {
    number("sv_srt_suppression", result, || Ok(srt::suppression(k)?))
}

/// Returns a dimension of the table 248, 240, 120, 78, 36, 27, 24, 14.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_structure_dimension(index: usize, result: *mut u32) -> i32 {
    number("sv_srt_structure_dimension", result, || Ok(srt::structure_dimension(index)?))
}
