//! [`batch_invariant`], in which the bits of a row do not depend on the number of rows.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Ends batch invariance when it is dropped.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        // A thread that ends may drop its guards after the depth.
        let _ = DEPTH.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

/// Runs `work` with batch-invariant products of tensors on this thread: the bits of a row of a result depend neither on the number of rows nor
/// on the other rows. Algorithms are then those of few rows ([`Product::batch_invariant`](super::Product::batch_invariant)), so products of
/// many rows may take longer.
///
/// ```
/// use selvedge::gemm::batch_invariant;
/// use selvedge::types::DType;
/// use selvedge::{Device, Tensor};
/// let device = Device::cpu();
/// let x = Tensor::full(&[9, 70], 0.1, DType::F32, &device)?;
/// let weight = Tensor::full(&[70, 40], 0.3, DType::F32, &device)?;
/// let (all, one) = batch_invariant(|| (x.matmul(&weight), x.narrow(0, 4, 1).and_then(|row| row.matmul(&weight))));
/// assert_eq!(all?.narrow(0, 4, 1)?.to_vec::<f32>()?, one?.to_vec::<f32>()?);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub fn batch_invariant<R>(work: impl FnOnce() -> R) -> R {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let _guard = Guard;
    work()
}

/// Returns whether products of tensors on this thread are batch-invariant.
pub fn is_batch_invariant() -> bool {
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
}
