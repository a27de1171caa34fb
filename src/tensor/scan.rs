//! Scans of tensors along an axis: cumulative sums, products and extremes.
//!
//! A [`Scan`] of the compiler scans rows in place. If the elements along another axis than the last are not adjacent, the tensor
//! is copied with this axis as the last one, and the result is a view of the scanned copy. The bits are the same either way.

use super::cached_operation::AppendOnlyMap;
use super::kernel::{self, Output};
use super::tensor::Tensor;
use crate::error::Result;
use crate::fuse::{Fold, Graph, Scan};
use crate::types::DType;

/// Returns the scan of a dtype, which is built once.
fn scan(fold: Fold, dtype: DType) -> Result<&'static Scan> {
    static CACHE: [AppendOnlyMap<(Fold, DType), Scan>; 32] = [const { AppendOnlyMap::new() }; 32];
    let key = (fold, dtype);
    CACHE[dtype as usize % CACHE.len()].find_or_add(
        |known| *known == key,
        || {
            let graph = Graph::new();
            Ok((key, graph.scan(fold, graph.input(dtype))?))
        },
    )
}

impl Tensor {
    fn scanned(&self, operation: &'static str, fold: Fold, axis: isize) -> Result<Tensor> {
        let axis = self.shape().axis(operation, axis)?;
        let scan = scan(fold, self.dtype())?;
        let last = self.rank() - 1;
        if self.layout().strides()[axis].unsigned_abs() > 1 && axis != last {
            let (axis, last) = (axis as isize, last as isize);
            let transposed = self.transpose(axis, last)?.contiguous()?;
            return transposed.scanned_there(operation, scan, last as usize)?.transpose(axis, last);
        }
        self.scanned_there(operation, scan, axis)
    }

    /// Scans along an axis without a copy.
    fn scanned_there(&self, operation: &'static str, scan: &Scan, axis: usize) -> Result<Tensor> {
        let mut output = Output::of_shape(&self.device(), scan.output(), self.shape())?;
        kernel::run(
            operation,
            [self],
            [&mut output],
            |inputs, [mut output]| scan.run_host(&inputs, &[], &mut output, axis),
            |stream, inputs, [mut output]| scan.run(stream, &inputs, &[], &mut output, axis),
        )?;
        Ok(output.into_tensor())
    }

    /// Returns the sum of each element and all before it along an axis, in the dtypes of [`sum`](Self::sum) and with the same
    /// bits in every run.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.cumsum(1)?.to_vec::<i64>()?, [1, 3, 6, 4, 9, 15]);
    /// assert_eq!(x.cumsum(0)?.to_vec::<i64>()?, [1, 2, 3, 5, 7, 9]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::Error::InvalidArgument) for an axis that is not there,
    /// [`DTypeMismatch`](crate::Error::DTypeMismatch) for a dtype that the scan does not support; errors of memory.
    pub fn cumsum(&self, axis: isize) -> Result<Tensor> {
        self.scanned("cumsum", Fold::Sum, axis)
    }

    /// Returns the product of each element and all before it along an axis.
    ///
    /// # Errors
    ///
    /// As [`cumsum`](Self::cumsum).
    pub fn cumprod(&self, axis: isize) -> Result<Tensor> {
        self.scanned("cumprod", Fold::Product, axis)
    }

    /// Returns the largest of each element and all before it along an axis; NaN from the first NaN on.
    ///
    /// # Errors
    ///
    /// As [`cumsum`](Self::cumsum).
    pub fn cummax(&self, axis: isize) -> Result<Tensor> {
        self.scanned("cummax", Fold::Maximum, axis)
    }

    /// Returns the smallest of each element and all before it along an axis; NaN from the first NaN on.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([3.0f32, 1.0, 2.0], &Device::cpu())?;
    /// assert_eq!(x.cummin(-1)?.to_vec::<f32>()?, [3.0, 1.0, 1.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`cumsum`](Self::cumsum).
    pub fn cummin(&self, axis: isize) -> Result<Tensor> {
        self.scanned("cummin", Fold::Minimum, axis)
    }
}
