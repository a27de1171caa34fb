//! Softmax and normalisation. f16 and bf16 are computed in f32, and results have the dtype of the tensor.

use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, sv_tensor};
use super::{TensorObject, axes_or_all, enter, give, optional, out, sizes};
use crate::tensor::{Axes, Tensor};

/// A tensor with the weight and the bias that scale and shift its normalised elements.
struct Operands {
    x: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
}

impl Operands {
    fn new(tensor: u64, weight: u64, bias: u64) -> Result<Operands> {
        let x = super::tensor(tensor, "tensor")?;
        Ok(Operands { x, weight: optional(weight, "weight")?, bias: optional(bias, "bias")? })
    }
}

/// Computes e^x / Σ e^x along an axis of a tensor of floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_softmax(tensor: sv_tensor, axis: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_softmax", result, || Ok(super::tensor(tensor, "tensor")?.softmax(axis as isize)?))
}

/// Computes the logarithm of `sv_tensor_softmax`, without overflow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_log_softmax(tensor: sv_tensor, axis: i64, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_log_softmax", result, || Ok(super::tensor(tensor, "tensor")?.log_softmax(axis as isize)?))
}

/// Computes (x - mean) / sqrt(variance + eps) · weight + bias over the last `rank` axes, whose sizes are `normalized_shape`.
/// `weight` and `bias` have that shape, or are NULL for none.
///
/// # Safety
///
/// `normalized_shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_layer_norm(
    tensor: sv_tensor,
    normalized_shape: *const i64,
    rank: usize,
    weight: sv_tensor,
    bias: sv_tensor,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_layer_norm", result, || {
        let Operands { x, weight, bias } = Operands::new(tensor, weight, bias)?;
        let shape = sizes(normalized_shape, rank)?;
        Ok(x.layer_norm(&shape, weight.as_ref(), bias.as_ref(), eps)?)
    })
}

/// Computes x / sqrt(mean(x²) + eps) · weight over the last `rank` axes, whose sizes are `normalized_shape`. `weight` has that
/// shape, or is NULL for none. A negative `eps` is the machine epsilon of the dtype.
///
/// # Safety
///
/// `normalized_shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_rms_norm(
    tensor: sv_tensor,
    normalized_shape: *const i64,
    rank: usize,
    weight: sv_tensor,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_rms_norm", result, || {
        let Operands { x, weight, .. } = Operands::new(tensor, weight, 0)?;
        let shape = sizes(normalized_shape, rank)?;
        Ok(x.rms_norm(&shape, weight.as_ref(), (eps >= 0.0 || eps.is_nan()).then_some(eps))?)
    })
}

/// Normalises a tensor of shape (N, C, …) over each of `num_groups` equal groups of channels. `weight` and `bias` have shape
/// (C), or are NULL for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_group_norm(
    tensor: sv_tensor,
    num_groups: usize,
    weight: sv_tensor,
    bias: sv_tensor,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_group_norm", result, || {
        let Operands { x, weight, bias } = Operands::new(tensor, weight, bias)?;
        Ok(x.group_norm(num_groups, weight.as_ref(), bias.as_ref(), eps)?)
    })
}

/// Normalises a tensor of shape (N, C, …) by channel with given statistics, as in inference. `running_mean`, `running_var`,
/// `weight` and `bias` have shape (C); `weight` and `bias` of 0 are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_batch_norm(
    tensor: sv_tensor,
    running_mean: sv_tensor,
    running_var: sv_tensor,
    weight: sv_tensor,
    bias: sv_tensor,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_batch_norm", result, || {
        let Operands { x, weight, bias } = Operands::new(tensor, weight, bias)?;
        let mean = super::tensor(running_mean, "running_mean")?;
        let variance = super::tensor(running_var, "running_var")?;
        Ok(x.batch_norm(&mean, &variance, weight.as_ref(), bias.as_ref(), eps)?)
    })
}

/// Returns the slot of a handle in its table.
fn slot(handle: u64) -> u32 {
    handle as u32
}

/// Runs `work` on two tensors themselves. Both are locked in the order of their slots, so that two calls with the same
/// handles never wait for each other.
fn with_both<R>(
    first: (u64, &str),
    second: (u64, &str),
    work: impl FnOnce(&mut Tensor, &mut Tensor) -> Result<R>,
) -> Result<R> {
    for (handle, name) in [first, second] {
        super::tensor(handle, name)?;
    }
    // A thread that locks a slot twice waits forever.
    if slot(first.0) == slot(second.0) {
        let wanted = format!("another tensor than {}", first.1);
        return Err(Failure::argument(second.1, "the same handle", &wanted));
    }
    let table = TensorObject::table();
    let swapped = slot(first.0) > slot(second.0);
    let (low, high) = if swapped { (second, first) } else { (first, second) };
    table.with_mut(low.0, low.1, |low| {
        table.with_mut(high.0, high.1, |high| {
            let (low, high) = (low.tensor_mut(), high.tensor_mut());
            if swapped { work(high, low) } else { work(low, high) }
        })
    })
}

/// Normalises a tensor of shape (N, C, …) by channel with the mean and biased variance of each channel, as in training, and
/// updates the running statistics: momentum · new + (1 - momentum) · running, in which the new variance is unbiased.
/// `running_mean`, `running_var`, `weight` and `bias` have shape (C). The statistics may both be NULL for none; `weight` and
/// `bias` of 0 are none.
///
/// Others that use the handles of the statistics wait meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_batch_norm_training(
    tensor: sv_tensor,
    running_mean: sv_tensor,
    running_var: sv_tensor,
    weight: sv_tensor,
    bias: sv_tensor,
    momentum: f64,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    guard::call("sv_tensor_batch_norm_training", || {
        let result = out(result, "result")?;
        let Operands { x, weight, bias } = Operands::new(tensor, weight, bias)?;
        let (weight, bias) = (weight.as_ref(), bias.as_ref());
        let normalised = if running_mean == 0 && running_var == 0 {
            x.batch_norm_training(None, weight, bias, momentum, eps)?
        } else {
            let (mean, variance) = ((running_mean, "running_mean"), (running_var, "running_var"));
            with_both(mean, variance, |mean, variance| {
                Ok(x.batch_norm_training(Some((mean, variance)), weight, bias, momentum, eps)?)
            })?
        };
        result.write(enter(normalised)?);
        Ok(())
    })
}

/// Computes x / max(norm, eps) with the p-norm along `count` axes. `axes` of NULL are all axes.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_normalize(
    tensor: sv_tensor,
    p: f64,
    axes: *const i64,
    count: usize,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_normalize", result, || {
        let (x, axes) = (super::tensor(tensor, "tensor")?, axes_or_all(axes, count)?);
        Ok(x.normalize(p, axes.as_deref().map_or(Axes::All, Axes::Of), eps)?)
    })
}

/// Computes (x - mean) / standard deviation along `count` axes, with the biased variance. `axes` of NULL are all axes.
///
/// # Safety
///
/// `axes` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_standardize(
    tensor: sv_tensor,
    axes: *const i64,
    count: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_standardize", result, || {
        let (x, axes) = (super::tensor(tensor, "tensor")?, axes_or_all(axes, count)?);
        Ok(x.standardize(axes.as_deref().map_or(Axes::All, Axes::Of))?)
    })
}
