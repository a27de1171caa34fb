//! Elements by classes, which do not count from the end, for `nll_loss`.
//!
//! The kernels of this folder take a negative index from the end. A negative class therefore becomes an index that is out of
//! range for every array, and the error has the class again.

use std::sync::OnceLock;

use super::{IndexCheck, IndexOperation};
use crate::error::Result;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// A class below it is reported as this one, so that no class becomes an index near 0.
const LEAST: i64 = -(1 << 62);

impl Tensor {
    /// Returns labels as the index of [`gather_classes`](Self::gather_classes), and true for each ignored label, whose
    /// index is 0.
    ///
    /// # Errors
    ///
    /// Errors of the computation.
    pub(crate) fn class_index(&self, ignored: i64) -> Result<[Tensor; 2]> {
        static FUNCTION: OnceLock<Fused<2, 2>> = OnceLock::new();
        let function = FUNCTION.get_or_init(|| {
            Fused::with_outputs(|[label, ignored]| {
                let is_ignored = label.eq(ignored);
                let outside = -(label.maximum(LEAST) + 1) + i64::MIN;
                [is_ignored.choose(0, label.lt(0).choose(outside, label)), is_ignored]
            })
        });
        function.run_all((&self.cast(DType::I64)?, ignored))
    }

    /// Gathers the element of each class along `axis`; the index is that of [`class_index`](Self::class_index).
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather), under the name `nll_loss`.
    pub(crate) fn gather_classes(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.gathered(IndexOperation::NllLoss, axis, index, IndexCheck::Report)
    }

    /// Returns zeros of a shape with these elements at the classes along `axis`. A class that does not exist is no error,
    /// because the read before it reports it.
    ///
    /// # Errors
    ///
    /// As [`scatter_unchecked`](Self::scatter_unchecked).
    pub(crate) fn scatter_classes(&self, shape: &[usize], axis: isize, index: &Tensor) -> Result<Tensor> {
        Tensor::zeros(shape, self.dtype(), &self.device())?.scatter_unchecked(axis, index, self)
    }
}
