//! Sorted order along an axis.

use super::AxisRows;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Sorted order along an axis.
///
/// Every sort is stable: equal elements keep their order, in descending order too. NaN is greater than every number, so it
/// comes last in ascending and first in descending order; -0 equals 0. Positions are i64. A tensor without dimensions counts
/// as one element along axis 0.
///
/// # Errors
///
/// [`DTypeMismatch`](Error::DTypeMismatch) for complex numbers and 8-bit floats; [`InvalidArgument`](Error::InvalidArgument)
/// for an axis that is not there or has 2^32 elements and more; [`OutOfMemory`](Error::OutOfMemory).
impl Tensor {
    /// Returns the elements in sorted order along `axis`, and the position along the axis that each had. PyTorch's
    /// `sort(dim, descending, stable=True)`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[3.0f32, f32::NAN, 1.0], [2.0, 2.0, -1.0]], &Device::cpu())?;
    /// let (values, indices) = x.sort(-1, false)?;
    /// assert_eq!(values.select(0, 1)?.to_vec::<f32>()?, [-1.0, 2.0, 2.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [2, 0, 1, 2, 0, 1]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn sort(&self, axis: isize, descending: bool) -> Result<(Tensor, Tensor)> {
        let rows = AxisRows::new("sort", self, axis)?;
        let sorted = rows.sort("sort", descending)?;
        Ok((rows.restore(&sorted.values)?, rows.restore(&sorted.positions)?))
    }

    /// Returns the elements in sorted order along `axis` without their positions: the first result of [`sort`](Self::sort), in
    /// less time and memory. NumPy's `sort(axis)`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([3, 1, 2], &Device::cpu())?;
    /// assert_eq!(x.sorted(-1, false)?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn sorted(&self, axis: isize, descending: bool) -> Result<Tensor> {
        let rows = AxisRows::new("sorted", self, axis)?;
        rows.restore(&rows.sorted("sorted", descending)?)
    }

    /// Returns the positions along `axis` that sort the elements.
    #[allow(clippy::missing_errors_doc)]
    pub fn argsort(&self, axis: isize, descending: bool) -> Result<Tensor> {
        let rows = AxisRows::new("argsort", self, axis)?;
        rows.restore(&rows.argsort("argsort", descending)?)
    }

    /// Returns the elements in ascending order along the first axis.
    #[allow(clippy::missing_errors_doc)]
    pub fn msort(&self) -> Result<Tensor> {
        let rows = AxisRows::new("msort", self, 0)?;
        rows.restore(&rows.sorted("msort", false)?)
    }

    /// Returns the `k` largest elements along `axis` in descending order, or the `k` smallest in ascending order, with their
    /// positions. Of equal elements the first ones are taken.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([4, 9, 1, 9], &Device::cpu())?;
    /// let (values, indices) = x.topk(2, 0, true)?;
    /// assert_eq!(values.to_vec::<i32>()?, [9, 9]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a `k` greater than the size of the axis.
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> Result<(Tensor, Tensor)> {
        const OPERATION: &str = "topk";
        let rows = AxisRows::new(OPERATION, self, axis)?;
        if k > rows.length() {
            return Err(outside(OPERATION, k, &rows, 0));
        }
        let indices = rows.first(OPERATION, k, largest)?;
        let values = rows.elements.gather_unchecked(-1, &indices)?;
        Ok((rows.restore(&values)?, rows.restore(&indices)?))
    }

    /// Returns the `k`-th smallest element along `axis`, counted from 1, and its position; both without the axis.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a `k` of 0, or greater than the size of the axis.
    pub fn kthvalue(&self, k: usize, axis: isize) -> Result<(Tensor, Tensor)> {
        const OPERATION: &str = "kthvalue";
        let rows = AxisRows::new(OPERATION, self, axis)?;
        if k == 0 || k > rows.length() {
            return Err(outside(OPERATION, k, &rows, 1));
        }
        let indices = rows.first(OPERATION, k, false)?.narrow(-1, k - 1, 1)?.contiguous()?;
        let values = rows.elements.gather_unchecked(-1, &indices)?;
        Ok((values.squeeze(-1)?, indices.squeeze(-1)?))
    }
}

fn outside(operation: &'static str, k: usize, rows: &AxisRows, least: usize) -> Error {
    let found = format!("k = {k} for axis {} of size {}", rows.axis, rows.length());
    Error::invalid(operation, found, format!("a k from {least} to {}", rows.length()))
}
