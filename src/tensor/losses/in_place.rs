//! Cross-entropy whose gradient replaces the logits, as one row program.
//!
//! The program is that of `cross_entropy_with_gradient`, so the gradient has its bits. Its gradient is an output in place of
//! the logits: in one kernel each thread overwrites an element after its last read, and several kernels read all logits
//! before the last one writes the gradient.

use super::{ClassTerms, CrossEntropyOptions, OPERATION};
use crate::error::{Error, Result};
use crate::tensor::TensorMut;
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
        // The elements are shared while this tensor lives, so it ends before the gradient is written.
        let (labels, scale) = {
            let logits = self.current();
            let labels = logits.class_labels(labels, options)?;
            let scale = logits.class_scale(&labels, options)?;
            (labels, scale)
        };
        let scale = scale.as_ref().map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
        let axes = GroupAxes::Of(vec![labels.axis]);
        let label = TensorOperand::Tensor(&labels.index);
        let mut found = if options.label_smoothing > 0.0 {
            let [part, share] = labels.smoothing(self.shape(), options);
            let others = [label, scale, part, share];
            fuse_groups_in_place(OPERATION, self, others, &axes, |x, [label, scale, part, share]| {
                ClassTerms::new([x, label, scale], Some([part, share])).gradient_and_loss()
            })?
        } else {
            fuse_groups_in_place(OPERATION, self, [label, scale], &axes, |x, [label, scale]| {
                ClassTerms::new([x, label, scale], None).gradient_and_loss()
            })?
        };
        let Some(losses) = found.pop() else {
            return Err(Error::LengthMismatch { operation: OPERATION, wanted: 1, found: 0 });
        };
        self.current().reduced_losses(losses.squeeze(labels.axis)?, &labels, options)
    }
}
