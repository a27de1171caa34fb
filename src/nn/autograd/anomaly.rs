//! [`detect_anomaly`], in which a backward checks the gradients that each rule computes.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

thread_local! {
    static CHECKS: Cell<bool> = const { Cell::new(false) };
}

/// Ends the checks, after a panic too.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        CHECKS.with(|checks| checks.set(self.0));
    }
}

/// Runs `work`, in which a backward of this thread fails at the first operation that computes a gradient with a NaN or an
/// infinity.
///
/// The error is [`Error::Backward`] with the name of the operation, and no leaf's gradient has changed. Each check waits for
/// the device and reads one element on the host, so steps in it are slow, and
/// [`TrainingStep`](crate::nn::TrainingStep) runs them without a graph.
///
/// ```
/// use selvedge::nn::{Variable, detect_anomaly};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([0.0f32], &Device::cpu())?)?;
/// let error = detect_anomaly(|| x.sqrt()?.backward()).unwrap_err();
/// assert!(error.to_string().starts_with("the backward of sqrt: found a gradient of operand 0 with"));
/// # Ok::<(), selvedge::Error>(())
/// ```
pub fn detect_anomaly<R>(work: impl FnOnce() -> R) -> R {
    let _restore = Restore(CHECKS.with(|checks| checks.replace(true)));
    work()
}

/// Returns whether checks are on in this thread.
pub(in crate::nn) fn is_on() -> bool {
    CHECKS.with(Cell::get)
}

/// Returns an error if checks are on and the gradient is not finite. `whose` says which gradient it is.
pub(super) fn check(
    operation: &'static str,
    gradient: &Tensor,
    whose: impl FnOnce() -> String,
) -> Result<()> {
    if !is_on() || gradient.is_finite()?.all_all()?.item::<bool>()? {
        return Ok(());
    }
    let kind = if gradient.is_nan()?.any_all()?.item::<bool>()? { "NaN" } else { "infinite" };
    Err(Error::Backward {
        operation,
        found: format!("{} with {kind} elements, of shape {}", whose(), gradient.shape()),
        wanted: "finite gradients within detect_anomaly".to_owned(),
    })
}
