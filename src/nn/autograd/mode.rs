//! [`no_grad`], in which operations record nothing.

use std::cell::Cell;

thread_local! {
    static DISABLED: Cell<usize> = const { Cell::new(0) };
}

/// Enables gradients again, after a panic too.
struct Disabled;

impl Drop for Disabled {
    fn drop(&mut self) {
        DISABLED.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Runs `work` without a tape on this thread: results of operations in it require no gradients.
///
/// ```
/// use selvedge::nn::{Variable, no_grad};
/// use selvedge::{Device, Tensor};
/// let x = Variable::with_grad(Tensor::new([1.0f32], &Device::cpu())?)?;
/// assert!(!no_grad(|| x.exp())?.requires_grad());
/// assert!(x.exp()?.requires_grad());
/// # Ok::<(), selvedge::Error>(())
/// ```
pub fn no_grad<R>(work: impl FnOnce() -> R) -> R {
    DISABLED.with(|depth| depth.set(depth.get() + 1));
    let _disabled = Disabled;
    work()
}

/// Returns whether operations of this thread are recorded.
pub fn is_grad_enabled() -> bool {
    DISABLED.with(|depth| depth.get() == 0)
}
