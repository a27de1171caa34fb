//! Reductions and scans of variables.

use super::super::super::error::{Failure, Result};
use super::super::super::handle::sv_variable;
use super::super::super::tensor::reduce::{
    SV_REDUCE_LOGSUMEXP, SV_REDUCE_MAX, SV_REDUCE_MEAN, SV_REDUCE_MIN, SV_REDUCE_NORM, SV_REDUCE_PROD,
    SV_REDUCE_STD, SV_REDUCE_SUM, SV_REDUCE_VAR, SV_SCAN_PROD, SV_SCAN_SUM, correction, reduced,
};
use super::super::super::tensor::{axes_or_all, flag};
use super::map;
use crate::nn::Variable;
use crate::tensor::Axes;

fn reduce(x: &Variable, reduction: i32, axes: Axes<'_>, keepdim: bool, parameter: f64) -> Result<Variable> {
    Ok(reduced! {
        x, reduction, keepdim, axes, parameter,
        {
            _ => {
                let wanted = "SV_REDUCE_SUM, _PROD, _MIN, _MAX, _MEAN, _VAR, _STD, _NORM or _LOGSUMEXP, which have a \
                              gradient; sv_tensor_reduce has the others";
                return Err(Failure::argument("reduction", reduction, wanted));
            }
        }
    }?)
}

/// Reduces a variable as `sv_tensor_reduce`, by `SV_REDUCE_SUM`, `_PROD`, `_MIN`, `_MAX`, `_MEAN`, `_VAR`, `_STD`, `_NORM` or
/// `_LOGSUMEXP`. Equal extremes share the gradient.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_reduce(
    variable: sv_variable,
    reduction: i32,
    axes: *const i64,
    count: usize,
    keepdim: i32,
    parameter: f64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_reduce", variable, result, &|x| {
        let keepdim = flag(keepdim, "keepdim")?;
        let axes = axes_or_all(axes, count)?;
        reduce(x, reduction, axes.as_deref().map_or(Axes::All, Axes::Of), keepdim, parameter)
    })
}

/// Computes `SV_SCAN_SUM` or `SV_SCAN_PROD` along an axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_scan(
    variable: sv_variable,
    scan: i32,
    axis: i64,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_scan", variable, result, &|x| {
        Ok(match scan {
            SV_SCAN_SUM => x.cumsum(axis as isize),
            SV_SCAN_PROD => x.cumprod(axis as isize),
            other => {
                let wanted = "SV_SCAN_SUM or SV_SCAN_PROD; sv_tensor_scan has the others";
                return Err(Failure::argument("scan", other, wanted));
            }
        }?)
    })
}
