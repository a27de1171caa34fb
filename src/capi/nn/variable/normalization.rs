//! Softmax and normalisation of variables.

use super::super::super::handle::sv_variable;
use super::super::super::tensor::sizes;
use super::{map, optional};

/// Computes e^x / Σ e^x along an axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_softmax(
    variable: sv_variable,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_softmax", variable, result, &|x| Ok(x.softmax(axis as isize)?))
}

/// Computes the logarithm of `sv_variable_softmax`, without overflow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_log_softmax(
    variable: sv_variable,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_log_softmax", variable, result, &|x| Ok(x.log_softmax(axis as isize)?))
}

/// Computes (x - mean) / sqrt(variance + eps) · weight + bias over the last `rank` axes, whose sizes are `normalized_shape`.
/// `weight` and `bias` have that shape, or are NULL for none.
///
/// # Safety
///
/// `normalized_shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_layer_norm(
    variable: sv_variable,
    normalized_shape: *const i64,
    rank: usize,
    weight: sv_variable,
    bias: sv_variable,
    eps: f64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_layer_norm", variable, result, &|x| {
        let (weight, bias) = (optional(weight, "weight")?, optional(bias, "bias")?);
        Ok(x.layer_norm(&sizes(normalized_shape, rank)?, weight.as_ref(), bias.as_ref(), eps)?)
    })
}

/// Computes x / sqrt(mean(x²) + eps) · weight over the last `rank` axes, whose sizes are `normalized_shape`. `weight` has that
/// shape, or is NULL for none. A negative `eps` is the machine epsilon of the dtype.
///
/// # Safety
///
/// `normalized_shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_rms_norm(
    variable: sv_variable,
    normalized_shape: *const i64,
    rank: usize,
    weight: sv_variable,
    eps: f64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_rms_norm", variable, result, &|x| {
        let weight = optional(weight, "weight")?;
        let eps = (eps >= 0.0 || eps.is_nan()).then_some(eps);
        Ok(x.rms_norm(&sizes(normalized_shape, rank)?, weight.as_ref(), eps)?)
    })
}
