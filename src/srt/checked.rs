//! [`Checked`], integer results of a batch with the elements that overflowed.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Results of exact integer operations on a batch, and a bool for each element that says whether it overflowed.
///
/// Nothing waits for the device until [`check`](Self::check).
#[derive(Debug, Clone)]
pub struct Checked<T = Tensor> {
    operation: &'static str,
    values: T,
    overflow: Tensor,
}

impl<T> Checked<T> {
    pub(super) fn new(operation: &'static str, values: T, overflow: Tensor) -> Checked<T> {
        Checked { operation, values, overflow }
    }

    /// Returns the results. An element that overflowed has no meaning.
    pub fn values(&self) -> &T {
        &self.values
    }

    /// Returns the results of a batch that cannot overflow.
    pub(super) fn into_values(self) -> T {
        self.values
    }

    /// Returns true for each element whose exact result i64 does not hold.
    pub fn overflow(&self) -> &Tensor {
        &self.overflow
    }

    /// Returns the results if no element overflowed. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`], and those of a reduction.
    pub fn check(self) -> Result<T> {
        if self.overflow.any_all()?.item::<bool>()? {
            let found = "elements whose exact result i64 does not hold";
            return Err(Error::overflow(self.operation, found, "results within i64"));
        }
        Ok(self.values)
    }
}
