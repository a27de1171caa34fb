//! Elements by classes and rows by ids, which do not count from the end, for `nll_loss`, `cross_entropy` and `embedding`, and lengths of sequences.
//!
//! The kernels of this folder take a negative index from the end. A negative class therefore becomes an index that is out of
//! range for every array, and the error has the class again.

use std::sync::OnceLock;

use super::{IndexCheck, IndexOperation, indices};
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// A class below it is reported as this one, so that no class becomes an index near 0.
const MIN_CLASS: i64 = -(1 << 62);

/// Returns classes of i64 as indices: negative ones are out of range for every array.
fn encoded(class: Expr<'_>) -> Expr<'_> {
    let outside = -(class.maximum(MIN_CLASS) + 1) + i64::MIN;
    class.lt(0).choose(outside, class)
}

impl Tensor {
    /// Returns these lengths of sequences as i32, each of which is checked to be from 0 to `most`: at once on the CPU, at the next wait on a
    /// device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for another length, under the name `scaled_dot_product_attention`;
    /// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for lengths other than integers; errors of the computation.
    pub(in crate::tensor) fn checked_lengths(&self, most: usize) -> Result<Tensor> {
        static FUNCTION: OnceLock<Fused<1>> = OnceLock::new();
        let call = IndexOperation::AttentionLengths;
        let lengths = indices(call, self.device(), self)?.cast(DType::I64)?;
        let index = FUNCTION.get_or_init(|| Fused::new(|[length]| encoded(length))).run([&lengths])?;
        // Each length selects itself, because every device checks indices.
        Tensor::arange(0, most + 1, 1, DType::I32, &self.device())?.taken(call, &index, IndexCheck::Report)
    }
}

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
                [is_ignored.choose(0, encoded(label)), is_ignored]
            })
        });
        function.run_all((&self.cast(DType::I64)?, ignored))
    }

    /// Checks that these labels are ignored or below `classes`: at once on the CPU, at the next wait on a device.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for another label, under the name `cross_entropy`; errors of the
    /// computation.
    pub(crate) fn check_classes(&self, classes: usize, ignored: i64) -> Result<()> {
        let [index, _] = self.class_index(ignored)?;
        let found = Tensor::zeros(&[classes], DType::U8, &self.device())?;
        found.taken(IndexOperation::CrossEntropy, &index, IndexCheck::Report)?;
        Ok(())
    }

    /// Gathers the element of each label along `axis`, where the result has size 1; class 0 for ignored labels.
    ///
    /// # Errors
    ///
    /// As [`check_classes`](Self::check_classes).
    pub(crate) fn at_labels(&self, axis: isize, labels: &Tensor, ignored: i64) -> Result<Tensor> {
        let [index, _] = labels.class_index(ignored)?;
        self.gathered(IndexOperation::CrossEntropy, axis, &index.unsqueeze(axis)?, IndexCheck::Report)
    }

    /// Returns ids as the index of [`rows_of_ids`](Self::rows_of_ids) and of its gradient.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for ids other than integers, and errors of the computation.
    pub(crate) fn row_index(&self) -> Result<Tensor> {
        static FUNCTION: OnceLock<Fused<1>> = OnceLock::new();
        let ids = indices(IndexOperation::Embedding, self.device(), self)?.cast(DType::I64)?;
        FUNCTION.get_or_init(|| Fused::new(|[id]| encoded(id))).run([&ids])
    }

    /// Returns the rows of this matrix at ids; the index is that of [`row_index`](Self::row_index).
    ///
    /// # Errors
    ///
    /// As [`index_select`](Self::index_select), under the name `embedding`.
    pub(crate) fn rows_of_ids(&self, index: &Tensor) -> Result<Tensor> {
        self.index_select_by(IndexOperation::Embedding, (0, 0), index, IndexCheck::Report)
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
