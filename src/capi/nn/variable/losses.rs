//! The losses of the library, in each form of their result.

use super::super::super::arguments::{check_reserved, check_unused, structure};
use super::super::super::error::{Failure, Result};
use super::super::super::handle::{sv_tensor, sv_variable};
use super::super::super::tensor::{flag, tensor};
use super::{give_variable, map};
use crate::nn;
use crate::tensor::Tensor;

/// The mean of (input - target)².
pub const SV_LOSS_MSE: i32 = 1;
/// Of probabilities and targets from 0 to 1: -t ln x - (1 - t) ln(1 - x).
pub const SV_LOSS_BINARY_CROSS_ENTROPY: i32 = 2;
/// `SV_LOSS_BINARY_CROSS_ENTROPY` of the sigmoid of the input.
pub const SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS: i32 = 3;
/// -ln softmax(input) at labels, which are integers. The classes are along axis 1, or along axis 0 of a vector. -100 is no label.
pub const SV_LOSS_CROSS_ENTROPY: i32 = 4;
/// -input at labels, for logarithms of probabilities.
pub const SV_LOSS_NLL: i32 = 5;
/// The divergence of the target from an input of logarithms of probabilities: the sum over a row, and the mean over rows.
pub const SV_LOSS_KL_DIV: i32 = 6;

/// The form of `sv_variable_loss`: the sum over a row and the mean over rows for `SV_LOSS_KL_DIV`, and the mean for the others.
pub const SV_LOSS_REDUCTION_DEFAULT: i32 = 0;
/// One loss an element, or a label.
pub const SV_LOSS_REDUCTION_NONE: i32 = 1;
/// The sum of the losses.
pub const SV_LOSS_REDUCTION_SUM: i32 = 2;
/// The mean of the losses. Ignored labels do not count.
pub const SV_LOSS_REDUCTION_MEAN: i32 = 3;
/// The sum of the losses over the size of the first axis.
pub const SV_LOSS_REDUCTION_BATCH_MEAN: i32 = 4;

/// The options of a loss. Zeros in all fields but `size` are those of `sv_variable_loss`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_loss_options {
    /// `sizeof(sv_loss_options)`.
    pub size: usize,
    /// One of `SV_LOSS_REDUCTION_...`.
    pub reduction: i32,
    /// 1 for `SV_LOSS_KL_DIV` of a target of logarithms of probabilities, or 0.
    pub is_log_target: i32,
    /// 1 to read `ignore_index`, or 0 for a label of -100.
    pub has_ignore_index: i32,
    /// 0.
    pub reserved: i32,
    /// The label that counts as no loss, for `SV_LOSS_CROSS_ENTROPY` and `SV_LOSS_NLL`.
    pub ignore_index: i64,
    /// The part of `SV_LOSS_CROSS_ENTROPY` that all classes share equally, from 0 to below 1.
    pub label_smoothing: f64,
}

/// The choices for a loss.
struct LossOptions {
    reduction: Option<nn::Reduction>,
    is_log_target: bool,
    ignore_index: i64,
    label_smoothing: f64,
}

impl Default for LossOptions {
    fn default() -> Self {
        let nn::CrossEntropyOptions { ignore_index, label_smoothing, .. } =
            nn::CrossEntropyOptions::default();
        LossOptions { reduction: None, is_log_target: false, ignore_index, label_smoothing }
    }
}

impl LossOptions {
    /// Returns the options of a struct, which sets none that the loss does not read.
    fn new(loss: i32, options: &sv_loss_options) -> Result<LossOptions> {
        check_reserved("options.reserved", options.reserved)?;
        let mut found = LossOptions { label_smoothing: options.label_smoothing, ..LossOptions::default() };
        found.reduction = match options.reduction {
            SV_LOSS_REDUCTION_DEFAULT => None,
            SV_LOSS_REDUCTION_NONE => Some(nn::Reduction::None),
            SV_LOSS_REDUCTION_SUM => Some(nn::Reduction::Sum),
            SV_LOSS_REDUCTION_MEAN => Some(nn::Reduction::Mean),
            SV_LOSS_REDUCTION_BATCH_MEAN => Some(nn::Reduction::BatchMean),
            other => {
                return Err(Failure::argument("options.reduction", other, "one of SV_LOSS_REDUCTION_..."));
            }
        };
        found.is_log_target = flag(options.is_log_target, "options.is_log_target")?;
        let has_ignore_index = flag(options.has_ignore_index, "options.has_ignore_index")?;
        if has_ignore_index {
            found.ignore_index = options.ignore_index;
        } else {
            check_unused("options.ignore_index", options.ignore_index as f64, "options.has_ignore_index 1")?;
        }
        if loss != SV_LOSS_KL_DIV {
            let is_log_target = f64::from(options.is_log_target);
            check_unused("options.is_log_target", is_log_target, "the loss SV_LOSS_KL_DIV")?;
        }
        if !matches!(loss, SV_LOSS_CROSS_ENTROPY | SV_LOSS_NLL) {
            let reads = "the loss SV_LOSS_CROSS_ENTROPY or SV_LOSS_NLL";
            check_unused("options.has_ignore_index", f64::from(options.has_ignore_index), reads)?;
        }
        if loss != SV_LOSS_CROSS_ENTROPY {
            let reads = "the loss SV_LOSS_CROSS_ENTROPY";
            check_unused("options.label_smoothing", options.label_smoothing, reads)?;
        }
        Ok(found)
    }
}

/// Returns the mean loss of a batch.
pub(in super::super) fn loss(loss: i32, input: &nn::Variable, target: &Tensor) -> Result<nn::Variable> {
    loss_with(loss, input, target, &LossOptions::default())
}

fn loss_with(
    loss: i32,
    input: &nn::Variable,
    target: &Tensor,
    options: &LossOptions,
) -> Result<nn::Variable> {
    let reduction = options.reduction.unwrap_or(nn::Reduction::Mean);
    let &LossOptions { ignore_index, label_smoothing, is_log_target, .. } = options;
    let classes = nn::CrossEntropyOptions { reduction, ignore_index, label_smoothing };
    let constant = || nn::Variable::new(target.clone());
    Ok(match loss {
        SV_LOSS_MSE => nn::mse_loss(input, &constant(), reduction),
        SV_LOSS_BINARY_CROSS_ENTROPY => nn::binary_cross_entropy(input, &constant(), reduction),
        SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS => {
            nn::binary_cross_entropy_with_logits(input, &constant(), reduction)
        }
        SV_LOSS_CROSS_ENTROPY => nn::cross_entropy(input, target, classes),
        SV_LOSS_NLL => nn::nll_loss(input, target, classes),
        SV_LOSS_KL_DIV => {
            let reduction = options.reduction.unwrap_or(nn::Reduction::BatchMean);
            nn::kl_div(input, &constant(), is_log_target, reduction)
        }
        other => return Err(Failure::argument("loss", other, "one of SV_LOSS_...")),
    }?)
}

/// Computes one of `SV_LOSS_...` of a variable and a target, a tensor: the mean over a batch, as a variable of one element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_loss(
    variable: sv_variable,
    loss: i32,
    target: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_loss", variable, result, &|input| self::loss(loss, input, &tensor(target, "target")?))
}

/// Computes one of `SV_LOSS_...` as `sv_variable_loss`, with options. An option that the loss does not read is 0.
///
/// # Safety
///
/// `options` points to a struct with its size set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_loss_with_options(
    variable: sv_variable,
    loss: i32,
    target: sv_tensor,
    options: *const sv_loss_options,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_variable_loss_with_options", result, &|| {
        let options: &sv_loss_options = structure(options, "options")?;
        let (input, target) = (super::variable(variable, "variable")?, tensor(target, "target")?);
        loss_with(loss, &input, &target, &LossOptions::new(loss, options)?)
    })
}
