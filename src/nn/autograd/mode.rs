//! [`no_grad`] and [`NoGradGuard`], in which operations record nothing, and the variables that such operations read.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use super::value::Saved;

thread_local! {
    static DISABLED: Cell<usize> = const { Cell::new(0) };
    static OBSERVED: RefCell<Option<Observation>> = const { RefCell::new(None) };
}

/// The variables with a gradient that operations have read, each once.
struct Observation {
    /// The depth of [`no_grad`] that is observed: a `no_grad` within it is not.
    depth: usize,
    read: Vec<Saved>,
}

/// Disables gradients on this thread until it is dropped, where a closure for [`no_grad`] does not fit. Guards nest.
///
/// ```
/// use selvedge::nn::{NoGradGuard, is_grad_enabled};
/// let guard = NoGradGuard::new();
/// assert!(!is_grad_enabled());
/// drop(guard);
/// assert!(is_grad_enabled());
/// ```
#[derive(Debug)]
pub struct NoGradGuard {
    /// The depth is that of the thread.
    thread: PhantomData<*const ()>,
}

impl NoGradGuard {
    /// Disables gradients.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a value that disables gradients is no default")]
    pub fn new() -> NoGradGuard {
        DISABLED.with(|depth| depth.set(depth.get() + 1));
        NoGradGuard { thread: PhantomData }
    }
}

impl Drop for NoGradGuard {
    fn drop(&mut self) {
        // A thread that ends may drop its guards after the depth.
        let _ = DISABLED.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
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
    let _disabled = NoGradGuard::new();
    work()
}

/// Returns whether operations of this thread are recorded.
pub fn is_grad_enabled() -> bool {
    DISABLED.with(|depth| depth.get() == 0)
}

/// Enables gradients for `work` on this thread.
pub(super) fn with_grad_enabled<R>(work: impl FnOnce() -> R) -> R {
    /// Disables gradients again, after a panic too.
    struct Restore(usize);

    impl Drop for Restore {
        fn drop(&mut self) {
            DISABLED.with(|depth| depth.set(self.0));
        }
    }

    let _restore = Restore(DISABLED.with(|depth| depth.replace(0)));
    work()
}

/// Runs `work` as [`no_grad`] does, and returns the variables with a gradient that its operations read.
pub(super) fn observed<R>(work: impl FnOnce() -> R) -> (Vec<Saved>, R) {
    /// Ends the observation, after a panic too.
    struct Restore(Option<Observation>);

    impl Drop for Restore {
        fn drop(&mut self) {
            let outer = self.0.take();
            OBSERVED.with(|observed| observed.replace(outer));
        }
    }

    no_grad(|| {
        let depth = DISABLED.with(Cell::get);
        let observation = Observation { depth, read: Vec::new() };
        let restore = Restore(OBSERVED.with(|observed| observed.replace(Some(observation))));
        let result = work();
        let read = OBSERVED.with(RefCell::take).map_or_else(Vec::new, |observation| observation.read);
        drop(restore);
        (read, result)
    })
}

/// Records that an operation without a tape reads a variable with a gradient.
pub(super) fn observe(read: impl FnOnce() -> Saved) {
    OBSERVED.with(|observed| {
        let mut observed = observed.borrow_mut();
        let depth = DISABLED.with(Cell::get);
        if let Some(observation) = observed.as_mut().filter(|observation| observation.depth == depth) {
            let read = read();
            if !observation.read.iter().any(|known| known.is_of_same_value(&read)) {
                observation.read.push(read);
            }
        }
    });
}
