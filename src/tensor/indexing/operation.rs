//! [`IndexOperation`], the operation that an index belongs to.

use crate::driver::{KernelError, NO_AXIS};
use crate::error::Error;

macro_rules! operations {
    ($($call:ident $name:literal)*) => {
        /// An operation that reads indices.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum IndexOperation {
            $($call),*
        }

        static ERRORS: [KernelError; [$(IndexOperation::$call),*].len()] = [
            $(KernelError::new($name, |report| {
                IndexOperation::$call.outside(report.axis, report.index, report.size as usize)
            })),*
        ];

        impl IndexOperation {
            /// The method's name.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(IndexOperation::$call => $name),*
                }
            }
        }
    };
}

operations! {
    Gather "gather"
    TakeAlongAxis "take_along_axis"
    IndexSelect "index_select"
    Take "take"
    Scatter "scatter"
    IndexCopy "index_copy"
    Put "put"
    OneHot "one_hot"
    ScatterAdd "scatter_add"
    ScatterReduce "scatter_reduce"
    IndexAdd "index_add"
    IndexPut "index_put"
    SegmentReduce "segment_reduce"
    Index "index"
    NllLoss "nll_loss"
    CrossEntropy "cross_entropy"
    Embedding "embedding"
    AttentionLengths "scaled_dot_product_attention"
}

/// The axis of an index that counts all elements, as kernels report it.
pub(super) const FLAT: u32 = NO_AXIS;

/// Returns the class of an index of `Tensor::class_index`, `Tensor::row_index` or `Tensor::checked_lengths`, which encode negative ones.
fn class_of(index: i64) -> i64 {
    if index < 0 { i64::MIN - index - 1 } else { index }
}

impl IndexOperation {
    /// The number by which kernels report a wrong index of this operation.
    pub(super) fn code(self) -> u32 {
        ERRORS[self as usize].code()
    }

    /// The error for an index.
    #[cold]
    pub(super) fn outside(self, axis: Option<usize>, index: i64, size: usize) -> Error {
        let index = match self {
            IndexOperation::NllLoss
            | IndexOperation::CrossEntropy
            | IndexOperation::Embedding
            | IndexOperation::AttentionLengths => class_of(index),
            _ => index,
        };
        if self == IndexOperation::AttentionLengths {
            let wanted = format!("one from 0 to {}, the length of the array", size.saturating_sub(1));
            return Error::invalid(self.name(), format!("a sequence length of {index}"), wanted);
        }
        // The classes' axis follows from the shape.
        let axis = axis.filter(|_| self != IndexOperation::CrossEntropy);
        Error::IndexOutOfRange { operation: self.name(), index, axis, size }
    }
}
