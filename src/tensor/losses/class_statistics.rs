//! The cross-entropy of a forward whose backward comes later, in two passes.
//!
//! The first pass is a row program with one result per group: the loss, the largest logit m and the reciprocal of Σ e^(x - m). The
//! second pass is elementwise: it computes the gradient of each logit from these and writes it over the logit. Both passes
//! compute the terms of `losses` in the same dtype, so the gradient has the bits of `cross_entropy_with_gradient`.

use std::sync::OnceLock;

use super::{ClassTerms, CrossEntropyOptions, Labels, OPERATION};
use crate::error::{Error, Result};
use crate::fuse::{Expr, Graph};
use crate::tensor::TensorMut;
use crate::tensor::dynamic_fused::DynamicFused;
use crate::tensor::normalization::computed;
use crate::tensor::operand::TensorOperand;
use crate::tensor::storage::Shared;
use crate::tensor::tensor::Tensor;

/// The values of each group of logits from which the gradient of a cross-entropy follows, with its labels.
pub(crate) struct ClassStatistics {
    labels: Labels,
    options: CrossEntropyOptions,
    largest: Tensor,
    reciprocal: Tensor,
}

/// Returns the gradient of each logit times a scale, from the operands of [`ClassStatistics::replace`].
fn gradient<'g>(graph: &'g Graph, axis: isize, operands: &[Expr<'g>]) -> Result<Vec<Expr<'g>>> {
    let &[x, label, scale, largest, reciprocal, ref smoothing @ ..] = operands else {
        return Err(Error::LengthMismatch { operation: OPERATION, wanted: 5, found: operands.len() });
    };
    let smoothing = match *smoothing {
        [part, share] => Some([part, share]),
        _ => None,
    };
    let wide = x.cast(computed(x.dtype()));
    let (is_ignored, label) = ClassTerms::class_of(label);
    let p = (wide - largest).exp() * reciprocal;
    let terms = [graph.index(axis).eq(label), is_ignored];
    Ok(vec![ClassTerms::gradient_of(p, terms, scale, smoothing).cast(x.dtype())])
}

impl ClassStatistics {
    /// Replaces the logits by their gradient times a scale.
    fn replace(&self, logits: &mut TensorMut<'_>, scale: TensorOperand<'_>) -> Result<()> {
        static FUNCTIONS: [OnceLock<DynamicFused>; 4] = [const { OnceLock::new() }; 4];
        let is_smooth = self.options.label_smoothing > 0.0;
        let axis = self.labels.axis;
        let function = FUNCTIONS[usize::from(is_smooth) + 2 * usize::from(axis != 0)].get_or_init(|| {
            let inputs = if is_smooth { 7 } else { 5 };
            DynamicFused::new(inputs, 1, move |graph, operands| gradient(graph, axis, operands))
        });
        let [part, share] = self.labels.smoothing(logits.shape(), self.options);
        let label = TensorOperand::Tensor(&self.labels.index);
        let (largest, reciprocal) = ((&self.largest).into(), (&self.reciprocal).into());
        let others = [label, scale, largest, reciprocal, part, share];
        function.run_in_place(logits, if is_smooth { &others } else { &others[..4] })
    }

    /// Returns the gradient of the logits for the gradient of the loss. It replaces the logits in memory that no other
    /// tensor shares, but in a capture only logits that the same capture computes: another launch of the graph would read the
    /// gradient as logits.
    ///
    /// # Errors
    ///
    /// As [`Tensor::cross_entropy_backward`].
    pub(crate) fn backward(&self, mut logits: Tensor, gradient: &Tensor) -> Result<Tensor> {
        let scale = logits.class_backward_scale(&self.labels, self.options, gradient)?;
        let may_overwrite = match &logits.storage {
            Shared::Cuda(buffer) => buffer.may_overwrite(),
            _ => true,
        };
        // Shared elements are not replaced: the gradient gets memory of its own.
        let shared = (!may_overwrite).then(|| logits.clone());
        self.replace(&mut logits.in_place(), (&scale).into())?;
        drop(shared);
        Ok(logits)
    }
}

impl Tensor {
    /// Returns the [`cross_entropy`](Self::cross_entropy), and the values from which its gradient follows.
    ///
    /// # Errors
    ///
    /// As [`cross_entropy`](Self::cross_entropy).
    pub(crate) fn cross_entropy_with_statistics(
        &self,
        labels: &Tensor,
        options: CrossEntropyOptions,
    ) -> Result<(Tensor, ClassStatistics)> {
        let labels = self.class_labels(labels, options)?;
        let [losses, largest, reciprocal] = self.class_program(&labels, options, 1.0.into(), |terms| {
            let [largest, reciprocal] = terms.statistics();
            [terms.loss(), largest, reciprocal]
        })?;
        let loss = self.reduced_losses(losses.squeeze(labels.axis)?, &labels, options)?;
        Ok((loss.cast(self.dtype())?, ClassStatistics { labels, options, largest, reciprocal }))
    }
}
