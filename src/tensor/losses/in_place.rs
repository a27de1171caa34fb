//! Cross-entropy whose gradient replaces the logits, as one row program.
//!
//! The program is that of `cross_entropy_with_gradient`, so the gradient has its bits. Its gradient is an output in place of
//! the logits: in one kernel each thread overwrites an element after its last read, and several kernels read all logits
//! before the last one writes the gradient.

use super::{ClassTerms, CrossEntropyOptions, Labels, OPERATION};
use crate::error::{Error, Result};
use crate::tensor::TensorMut;
use crate::tensor::fused::fuse;
use crate::tensor::groups::{GroupAxes, fuse_groups_in_place};
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::Tensor;

impl TensorMut<'_> {
    /// Replaces logits by the gradient of their [`cross_entropy`](Tensor::cross_entropy), and returns the cross-entropy. The
    /// gradient has the bits of [`cross_entropy_with_gradient`](Tensor::cross_entropy_with_gradient) and takes no memory
    /// beside the logits, unless another tensor shares them. On a CUDA device one kernel reads the logits and writes the
    /// gradient over them, if the classes are the last axis.
    ///
    /// ```
    /// use selvedge::tensor::CrossEntropyOptions;
    /// use selvedge::{Device, Tensor};
    /// let mut x = Tensor::new([[0.0f64, 0.0], [0.0, 0.0]], &Device::cpu())?;
    /// let labels = Tensor::new([0i64, -100], &Device::cpu())?;
    /// let loss = x.in_place().cross_entropy_with_gradient(&labels, CrossEntropyOptions::default())?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-15);
    /// assert_eq!(x.to_vec::<f64>()?, [-0.5, 0.5, 0.0, 0.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Tensor::cross_entropy`]. The logits are unchanged then, but for a wrong label on a CUDA device.
    pub fn cross_entropy_with_gradient(
        &mut self,
        labels: &Tensor,
        options: CrossEntropyOptions,
    ) -> Result<Tensor> {
        let dtype = self.dtype();
        self.wide_cross_entropy_with_gradient(labels, options)?.cast(dtype)
    }

    /// As [`cross_entropy_with_gradient`](Self::cross_entropy_with_gradient), with the losses of 16-bit logits in f32.
    pub(crate) fn wide_cross_entropy_with_gradient(
        &mut self,
        labels: &Tensor,
        options: CrossEntropyOptions,
    ) -> Result<Tensor> {
        let (known, scale) = self.labels_and_scale(labels, options)?;
        let scale = scale.as_ref().map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
        let axes = GroupAxes::Of(vec![known.axis]);
        if options.label_smoothing > 0.0 {
            let [part, share] = known.smoothing(self.shape(), options);
            let others = [TensorOperand::Tensor(&known.index), scale, part, share];
            let found =
                fuse_groups_in_place(OPERATION, self, others, &axes, |x, [label, scale, part, share]| {
                    ClassTerms::new([x, label, scale], Some([part, share])).gradient_and_loss()
                })?;
            let [losses] = results(found)?;
            return self.current().reduced_losses(losses.squeeze(known.axis)?, &known, options);
        }
        // One read a group: within the program it would be a comparison and a sum of all elements.
        let of_label = self.current().at_labels(known.axis, labels, options.ignore_index)?;
        let others = [TensorOperand::Tensor(&known.index), scale];
        let found = fuse_groups_in_place(OPERATION, self, others, &axes, |x, [label, scale]| {
            ClassTerms::new([x, label, scale], None).gradient_and_parts_of_loss()
        })?;
        let [logarithm, largest] = results(found)?;
        let losses = fuse([&logarithm, &largest, &of_label], |[logarithm, largest, of_label]| {
            logarithm - (of_label.cast(largest.dtype()) - largest)
        })?;
        self.current().reduced_losses(losses.squeeze(known.axis)?, &known, options)
    }

    /// Returns the labels, and the factor of the gradients; `None` for 1. The elements are not shared afterwards.
    fn labels_and_scale(
        &self,
        labels: &Tensor,
        options: CrossEntropyOptions,
    ) -> Result<(Labels, Option<Tensor>)> {
        let logits = self.current();
        let labels = logits.class_labels(labels, options)?;
        let scale = logits.class_scale(&labels, options)?;
        Ok((labels, scale))
    }
}

/// Returns the results of a program beside the one in place.
fn results<const COUNT: usize>(found: Vec<Tensor>) -> Result<[Tensor; COUNT]> {
    let count = found.len();
    found.try_into().map_err(|_| Error::LengthMismatch { operation: OPERATION, wanted: COUNT, found: count })
}
