//! Reductions and scans.

use super::super::error::{Failure, Result};
use super::super::handle::sv_tensor;
use super::{axes_or_all, flag, give};
use crate::tensor::{Axes, Tensor};

/// The sum; 0 of no elements.
pub const SV_REDUCE_SUM: i32 = 1;
/// The product; 1 of no elements.
pub const SV_REDUCE_PROD: i32 = 2;
/// The smallest element; NaN if an element is NaN.
pub const SV_REDUCE_MIN: i32 = 3;
/// The largest element; NaN if an element is NaN.
pub const SV_REDUCE_MAX: i32 = 4;
/// The index of the smallest element.
pub const SV_REDUCE_ARGMIN: i32 = 5;
/// The index of the largest element.
pub const SV_REDUCE_ARGMAX: i32 = 6;
/// True if any element is not 0.
pub const SV_REDUCE_ANY: i32 = 7;
/// True if no element is 0.
pub const SV_REDUCE_ALL: i32 = 8;
/// The number of elements that are not 0.
pub const SV_REDUCE_COUNT_NONZERO: i32 = 9;
/// The mean; NaN of no elements.
pub const SV_REDUCE_MEAN: i32 = 10;
/// The variance. The parameter is the correction: 1 for a sample, 0 for a population.
pub const SV_REDUCE_VAR: i32 = 11;
/// The standard deviation. The parameter is the correction: 1 for a sample, 0 for a population.
pub const SV_REDUCE_STD: i32 = 12;
/// The p-norm. The parameter is p.
pub const SV_REDUCE_NORM: i32 = 13;
/// ln(sum e^x) without overflow; minus infinity of no elements.
pub const SV_REDUCE_LOGSUMEXP: i32 = 14;
/// The sum of the elements that are not NaN.
pub const SV_REDUCE_NANSUM: i32 = 15;
/// The mean of the elements that are not NaN.
pub const SV_REDUCE_NANMEAN: i32 = 16;

/// The sums up to each position.
pub const SV_SCAN_SUM: i32 = 1;
/// The products up to each position.
pub const SV_SCAN_PROD: i32 = 2;
/// The largest elements up to each position.
pub const SV_SCAN_MAX: i32 = 3;
/// The smallest elements up to each position.
pub const SV_SCAN_MIN: i32 = 4;

/// Returns the correction of a variance.
pub(in crate::capi) fn correction(parameter: f64) -> Result<usize> {
    if parameter.fract() != 0.0 || !(0.0..=9.0e15).contains(&parameter) {
        return Err(Failure::argument("parameter", parameter, "a whole number from 0 on, the correction"));
    }
    Ok(parameter as usize)
}

/// The reductions without NaN, whose Rust functions drop the axes.
fn nan_reduce(tensor: &Tensor, reduction: i32, axes: Axes<'_>, keepdim: bool) -> Result<Tensor> {
    let result = if reduction == SV_REDUCE_NANSUM { tensor.nansum(axes) } else { tensor.nanmean(axes) }?;
    if !keepdim {
        return Ok(result);
    }
    let rank = tensor.rank() as isize;
    let is_reduced = |axis: isize| match axes {
        Axes::All => true,
        Axes::One(reduced) => (reduced + rank) % rank == axis,
        Axes::Of(axes) => axes.iter().any(|reduced| (reduced + rank) % rank == axis),
    };
    let sizes = (0..rank).zip(tensor.shape().iter());
    let sizes: Vec<isize> =
        sizes.map(|(axis, size)| if is_reduced(axis) { 1 } else { *size as isize }).collect();
    Ok(result.reshape(&sizes)?)
}

/// Runs a reduction by its code: one that tensors and variables have, or one of further rows. `others` are the last arms.
macro_rules! reduced {
    (@rows $x:ident, $reduction:expr, $keepdim:expr, $axes:expr, {$($others:tt)*}
        $($code:ident => $name:ident $keepdim_name:ident ($($before:expr)?; $($after:expr)?);)*) => {
        match ($reduction, $keepdim) {
            $(
                ($code, false) => $x.$name($($before,)? $axes $(, $after)?),
                ($code, true) => $x.$keepdim_name($($before,)? $axes $(, $after)?),
            )*
            $($others)*
        }
    };
    ($x:ident, $reduction:expr, $keepdim:expr, $axes:expr, $parameter:expr, {$($others:tt)*} $($rows:tt)*) => {
        reduced! {
            @rows $x, $reduction, $keepdim, $axes, {$($others)*}
            SV_REDUCE_SUM => sum sum_keepdim (;);
            SV_REDUCE_PROD => prod prod_keepdim (;);
            SV_REDUCE_MIN => min min_keepdim (;);
            SV_REDUCE_MAX => max max_keepdim (;);
            SV_REDUCE_MEAN => mean mean_keepdim (;);
            SV_REDUCE_VAR => var var_keepdim (; correction($parameter)?);
            SV_REDUCE_STD => std std_keepdim (; correction($parameter)?);
            SV_REDUCE_NORM => norm norm_keepdim ($parameter;);
            SV_REDUCE_LOGSUMEXP => logsumexp logsumexp_keepdim (;);
            $($rows)*
        }
    };
}
pub(in crate::capi) use reduced;

fn reduce(tensor: &Tensor, reduction: i32, axes: Axes<'_>, keepdim: bool, parameter: f64) -> Result<Tensor> {
    Ok(reduced! {
        tensor, reduction, keepdim, axes, parameter,
        {
            (SV_REDUCE_NANSUM | SV_REDUCE_NANMEAN, _) => return nan_reduce(tensor, reduction, axes, keepdim),
            _ => return Err(Failure::argument("reduction", reduction, "one of SV_REDUCE_...")),
        }
        SV_REDUCE_ARGMIN => argmin argmin_keepdim (;);
        SV_REDUCE_ARGMAX => argmax argmax_keepdim (;);
        SV_REDUCE_ANY => any any_keepdim (;);
        SV_REDUCE_ALL => all all_keepdim (;);
        SV_REDUCE_COUNT_NONZERO => count_nonzero count_nonzero_keepdim (;);
    }?)
}

/// Reduces a tensor along `count` axes by one of `SV_REDUCE_...`. `axes` of NULL are all axes. `keepdim` is 1 to leave the
/// reduced axes with size 1, or 0 to drop them. Only the codes that say so use `parameter`.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_reduce(
    tensor: sv_tensor,
    reduction: i32,
    axes: *const i64,
    count: usize,
    keepdim: i32,
    parameter: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_reduce", result, || {
        let (tensor, keepdim) = (super::tensor(tensor, "tensor")?, flag(keepdim, "keepdim")?);
        let axes = axes_or_all(axes, count)?;
        reduce(&tensor, reduction, axes.as_deref().map_or(Axes::All, Axes::Of), keepdim, parameter)
    })
}

/// Computes one of `SV_SCAN_...` along an axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_scan(
    tensor: sv_tensor,
    scan: i32,
    axis: i64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_scan", result, || {
        let (tensor, axis) = (super::tensor(tensor, "tensor")?, axis as isize);
        Ok(match scan {
            SV_SCAN_SUM => tensor.cumsum(axis),
            SV_SCAN_PROD => tensor.cumprod(axis),
            SV_SCAN_MAX => tensor.cummax(axis),
            SV_SCAN_MIN => tensor.cummin(axis),
            other => return Err(Failure::argument("scan", other, "one of SV_SCAN_...")),
        }?)
    })
}
