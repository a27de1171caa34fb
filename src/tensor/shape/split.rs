//! Splitting tensors into views: `split` and `chunk`.

use super::Tensor;
use crate::error::{Error, Result};

impl Tensor {
    /// Returns views of consecutive parts of these sizes along an axis.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1, 2, 3, 4, 5], &Device::cpu())?;
    /// let parts = x.split(&[2, 3], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 4, 5]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an axis that is not there, or sizes whose sum is not the axis's size.
    pub fn split(&self, sizes: &[usize], axis: isize) -> Result<Vec<Tensor>> {
        let at = self.shape().axis("split", axis)?;
        let whole = self.shape()[at];
        let sum = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size));
        if sum != Some(whole) {
            let wanted = format!("sizes whose sum is {whole}, the size of axis {at}");
            return Err(Error::invalid("split", format!("sizes {sizes:?}"), wanted));
        }
        let mut parts = list_of_views("split", sizes.len())?;
        let mut start = 0;
        for &size in sizes {
            parts.push(self.view_as(self.layout().narrow(axis, start, size)?));
            start += size;
        }
        Ok(parts)
    }

    /// Returns views of at most `count` parts along an axis, all of one size except the last, which may be smaller.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1, 2, 3, 4, 5], &Device::cpu())?;
    /// let parts = x.chunk(3, 0)?;
    /// let sizes: Vec<usize> = parts.iter().map(|part| part.count()).collect();
    /// assert_eq!(sizes, [2, 2, 1]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for no parts, or an axis that is not there;
    /// [`OutOfMemory`](Error::OutOfMemory) for more views than the host has memory for.
    pub fn chunk(&self, count: usize, axis: isize) -> Result<Vec<Tensor>> {
        let at = self.shape().axis("chunk", axis)?;
        let whole = self.shape()[at];
        if count == 0 {
            return Err(Error::invalid("chunk", "0 parts", "at least one"));
        }
        let size = whole.div_ceil(count).max(1);
        let count = whole.div_ceil(size).max(1);
        let mut parts = list_of_views("chunk", count)?;
        for start in (0..count).map(|part| part * size) {
            parts.push(self.view_as(self.layout().narrow(axis, start, size.min(whole - start))?));
        }
        Ok(parts)
    }
}

/// Returns an empty list with memory for so many views. A broadcast axis may have more positions than the host has memory for.
pub(super) fn list_of_views(operation: &'static str, count: usize) -> Result<Vec<Tensor>> {
    let mut views = Vec::new();
    views.try_reserve_exact(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<Tensor>());
        Error::host_memory(bytes, format!("{operation}: {count} views"))
    })?;
    Ok(views)
}
