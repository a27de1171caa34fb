//! Golden normalisation.

use super::super::error::Result;
use super::super::handle::sv_tensor;
use super::super::tensor::{give, tensor};
use super::give_all;
use crate::srt::{self, GoldenNorm, GoldenTarget, RunningStatistics};
use crate::tensor::Tensor;

/// The numbers of a golden norm from C.
struct Norm {
    gamma: u64,
    beta: u64,
    target: f64,
    eps: f64,
}

impl Norm {
    /// Runs `work` on the tensor of a handle and the norm.
    fn apply<R>(&self, v: u64, work: impl FnOnce(&Tensor, &GoldenNorm<'_>) -> crate::Result<R>) -> Result<R> {
        let optional = |handle, name| if handle == 0 { Ok(None) } else { tensor(handle, name).map(Some) };
        let (gamma, beta) = (optional(self.gamma, "gamma")?, optional(self.beta, "beta")?);
        let target = match self.target {
            0.0 => GoldenTarget::Golden,
            variance => GoldenTarget::Custom(variance),
        };
        let norm = GoldenNorm { target, gamma: gamma.as_ref(), beta: beta.as_ref(), eps: self.eps };
        Ok(work(&tensor(v, "v")?, &norm)?)
    }
}

/// Computes gamma sqrt(target) (v - mean)/sqrt(variance + eps) + beta of each row along the last axis. `target` is the variance
/// of the result, 0 for 1/phi. `gamma` and `beta` are tensors of the row's size, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_layer_norm(
    v: sv_tensor,
    gamma: sv_tensor,
    beta: sv_tensor,
    target: f64,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    let norm = Norm { gamma, beta, target, eps };
    give("sv_srt_golden_layer_norm", result, || norm.apply(v, srt::golden_layer_norm))
}

/// Computes the norm of `sv_srt_golden_layer_norm` of each column of a batch of shape (B, F), over B.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_batch_norm_1d(
    v: sv_tensor,
    gamma: sv_tensor,
    beta: sv_tensor,
    target: f64,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    let norm = Norm { gamma, beta, target, eps };
    give("sv_srt_golden_batch_norm_1d", result, || {
        norm.apply(v, |v, norm| srt::golden_batch_norm_1d(v, norm, None))
    })
}

/// Computes the norm of `sv_srt_golden_layer_norm` of each channel of a batch of shape (B, C, H, W), over B, H and W.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_batch_norm_2d(
    v: sv_tensor,
    gamma: sv_tensor,
    beta: sv_tensor,
    target: f64,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    let norm = Norm { gamma, beta, target, eps };
    give("sv_srt_golden_batch_norm_2d", result, || {
        norm.apply(v, |v, norm| srt::golden_batch_norm_2d(v, norm, None))
    })
}

/// Computes a golden batch norm of a batch of shape (B, F) or (B, C, H, W) as in training, and the running statistics after it:
/// the old ones times 1 - momentum, plus momentum times those of the batch. `mean` and `variance` are vectors of
/// `SV_DTYPE_F64`, zeros and ones at first. They stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_batch_norm_train(
    v: sv_tensor,
    mean: sv_tensor,
    variance: sv_tensor,
    momentum: f64,
    gamma: sv_tensor,
    beta: sv_tensor,
    target: f64,
    eps: f64,
    result: *mut sv_tensor,
    new_mean: *mut sv_tensor,
    new_variance: *mut sv_tensor,
) -> i32 {
    let norm = Norm { gamma, beta, target, eps };
    let results = [(result, "result"), (new_mean, "new_mean"), (new_variance, "new_variance")];
    give_all("sv_srt_golden_batch_norm_train", results, || {
        let mut running = statistics(mean, variance, momentum)?;
        let y = norm.apply(v, |v, norm| match v.rank() {
            4 => srt::golden_batch_norm_2d(v, norm, Some(&mut running)),
            _ => srt::golden_batch_norm_1d(v, norm, Some(&mut running)),
        })?;
        Ok([y, running.mean().clone(), running.variance().clone()])
    })
}

/// Computes a golden batch norm of a batch of shape (B, F) or (B, C, H, W) with running statistics, as in inference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_srt_golden_batch_norm_infer(
    v: sv_tensor,
    mean: sv_tensor,
    variance: sv_tensor,
    gamma: sv_tensor,
    beta: sv_tensor,
    target: f64,
    eps: f64,
    result: *mut sv_tensor,
) -> i32 {
    let norm = Norm { gamma, beta, target, eps };
    give("sv_srt_golden_batch_norm_infer", result, || {
        let running = statistics(mean, variance, RunningStatistics::MOMENTUM)?;
        norm.apply(v, |v, norm| running.normalize(v, norm))
    })
}

fn statistics(mean: u64, variance: u64, momentum: f64) -> Result<RunningStatistics> {
    let (mean, variance) = (tensor(mean, "mean")?, tensor(variance, "variance")?);
    Ok(RunningStatistics::from_tensors(mean, variance, momentum)?)
}
