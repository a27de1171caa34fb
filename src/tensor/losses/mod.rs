//! Cross-entropy and its gradient: one row program, with the loss, the gradient or both as its outputs.
//!
//! With the largest logit m, t = ln Σ e^(x - m) and the smoothing ε, the loss of a group with C classes is
//! t - (1 - ε) (x[label] - m) - ε mean(x - m). Its gradient is softmax(x) - (1 - ε) onehot(label) - ε / C.
//!
//! | file | contents |
//! |---|---|
//! | `in_place` | cross-entropy whose gradient replaces the logits |
//! | `class_statistics` | cross-entropy whose gradient replaces the logits in a later backward |
//! | `probabilities` | the check of probabilities |
//!
//! Tests: `tests/tensor/rows.rs`.

mod class_statistics;
mod in_place;
mod probabilities;

use std::sync::OnceLock;

use super::normalization::computed;
use crate::driver::KernelError;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::fused::Fused;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::Tensor;
use crate::types::{DType, Shape};
pub(crate) use probabilities::Probabilities;

pub(super) const OPERATION: &str = "cross_entropy";

/// The error of a label that is neither a class nor ignored.
static LABEL: KernelError = KernelError::index_out_of_range(OPERATION);

/// The label that the programs ignore. [`Labels`] has it in place of the ignored label: a program would round a number
/// beside the logits to their dtype, and no float has every integer.
const IGNORED: i64 = i64::MIN + 1;

/// The form in which a loss returns the losses of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossReduction {
    /// One loss an element.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Their sum over the size of the first dimension: the divergence's mean over a batch.
    BatchMean,
}

/// The options of a cross-entropy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossEntropyOptions {
    /// The form of the result. Means do not count ignored labels.
    pub reduction: LossReduction,
    /// The label whose elements count as no loss: -100.
    pub ignore_index: i64,
    /// The part ε of the loss that all classes share equally, from 0 to below 1: 0. With 1 no label would count.
    pub label_smoothing: f64,
}

impl Default for CrossEntropyOptions {
    fn default() -> Self {
        CrossEntropyOptions { reduction: LossReduction::Mean, ignore_index: -100, label_smoothing: 0.0 }
    }
}

/// A group's values that loss and gradient share.
pub(super) struct ClassTerms<'g> {
    x: Expr<'g>,
    is_ignored: Expr<'g>,
    label: Expr<'g>,
    scale: Expr<'g>,
    /// ε and ε / C.
    smoothing: Option<[Expr<'g>; 2]>,
    shifted: Expr<'g>,
    powers: Expr<'g>,
    total: Expr<'g>,
    reciprocal: Expr<'g>,
    largest: Expr<'g>,
}

impl<'g> ClassTerms<'g> {
    pub(super) fn new([x, label, scale]: [Expr<'g>; 3], smoothing: Option<[Expr<'g>; 2]>) -> ClassTerms<'g> {
        let (is_ignored, label) = ClassTerms::class_of(label);
        let largest = x.max_group();
        let shifted = x - largest;
        let powers = shifted.exp();
        let total = powers.sum_group();
        // A product for each element in place of a division.
        let reciprocal = total.reciprocal();
        ClassTerms { x, is_ignored, label, scale, smoothing, shifted, powers, total, reciprocal, largest }
    }

    /// Returns whether a label is ignored, and its class. Ignored labels are no classes; class 0 is read in their place.
    pub(super) fn class_of(label: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
        let is_ignored = label.eq(IGNORED);
        (is_ignored, is_ignored.choose(0, label))
    }

    /// The loss, in the dtype in which it is computed and also for an ignored label: a value that depends on an input
    /// outside a reduction would be one per element.
    pub(super) fn loss(&self) -> Expr<'g> {
        let of_label = self.x.at_group_of(self.label, &LABEL) - self.largest;
        let loss = match self.smoothing {
            None => self.total.log() - of_label,
            Some([part, _]) => self.total.log() - (1.0 - part) * of_label - part * self.shifted.mean_group(),
        };
        loss.cast(computed(self.x.dtype()))
    }

    /// The largest logit and the reciprocal of the total Σ e^(x - m), in the dtype in which they are computed.
    pub(super) fn statistics(&self) -> [Expr<'g>; 2] {
        [self.largest, self.reciprocal].map(|value| value.cast(computed(self.x.dtype())))
    }

    /// The gradient times the scale, and the loss.
    pub(super) fn gradient_and_loss(&self) -> [Expr<'g>; 2] {
        [self.gradient(), self.loss()]
    }

    /// The gradient times the scale, and what the loss without smoothing is besides the logit of the label: ln Σ e^(x - m) and m.
    pub(super) fn gradient_and_parts_of_loss(&self) -> [Expr<'g>; 3] {
        let wide = |value: Expr<'g>| value.cast(computed(self.x.dtype()));
        [self.gradient(), wide(self.total.log()), wide(self.largest)]
    }

    /// The gradient times the scale.
    fn gradient(&self) -> Expr<'g> {
        // Integers of 32 bits are compared in half the instructions. No other label is a class.
        let is_small = self.label.ge(0).logical_and(self.label.le(i32::MAX));
        let label = is_small.choose(self.label, -1).cast(DType::I32);
        let is_label = self.x.index_in_group().cast(DType::I32).eq(label);
        // A scale without dimensions would be rounded to the dtype of elements beside it.
        let p = (self.powers * self.reciprocal).cast(computed(self.x.dtype()));
        let conditions = [is_label, self.is_ignored];
        ClassTerms::gradient_of(p, conditions, self.scale, self.smoothing).cast(self.x.dtype())
    }

    /// The gradient times a scale of a class with probability p. `smoothing` has ε and ε / C.
    pub(super) fn gradient_of(
        p: Expr<'g>,
        [is_label, is_ignored]: [Expr<'g>; 2],
        scale: Expr<'g>,
        smoothing: Option<[Expr<'g>; 2]>,
    ) -> Expr<'g> {
        let gradient = match smoothing {
            None => is_label.choose(p - 1.0, p),
            Some([part, share]) => is_label.choose(p - (1.0 - part), p) - share,
        };
        is_ignored.choose(0.0, gradient * scale)
    }
}

/// The labels and the axis of the classes.
pub(super) struct Labels {
    /// The classes as i64; [`IGNORED`] for the ignored label.
    pub(super) index: Tensor,
    /// True for each label that counts.
    is_counted: Tensor,
    pub(super) axis: isize,
}

impl Tensor {
    /// Returns the cross-entropy -ln softmax(x) at the labels. The classes are along axis 1, or along axis 0 if there is no
    /// other; the labels are integers of this tensor's shape without that axis.
    ///
    /// With label smoothing ε and C classes: (1 - ε) times that, and ε / C times the sum over all classes.
    ///
    /// ```
    /// use selvedge::tensor::CrossEntropyOptions;
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[0.0f64, 0.0], [0.0, 0.0]], &Device::cpu())?;
    /// let labels = Tensor::new([0i64, -100], &Device::cpu())?;
    /// let (loss, gradient) = x.cross_entropy_with_gradient(&labels, CrossEntropyOptions::default())?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-15);
    /// assert_eq!(gradient.to_vec::<f64>()?, [-0.5, 0.5, 0.0, 0.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IndexOutOfRange`](Error::IndexOutOfRange) for a label that is neither a class nor ignored: here on the CPU, and on
    /// a CUDA device at the next call that waits. [`InvalidArgument`](Error::InvalidArgument) for labels of another shape
    /// and a smoothing that is not from 0 to below 1, [`DTypeMismatch`](Error::DTypeMismatch) for labels other than integers and elements
    /// other than real floats.
    pub fn cross_entropy(&self, labels: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
        self.wide_cross_entropy(labels, options)?.cast(self.dtype())
    }

    /// As [`cross_entropy`](Self::cross_entropy), with the losses of 16-bit logits in f32.
    pub(crate) fn wide_cross_entropy(&self, labels: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
        let labels = self.class_labels(labels, options)?;
        let [losses] = self.class_program(&labels, options, 1.0.into(), |terms| [terms.loss()])?;
        self.reduced_losses(losses.squeeze(labels.axis)?, &labels, options)
    }

    /// Returns the [`cross_entropy`](Self::cross_entropy) and its gradient with respect to this tensor, computed in one pass.
    /// Without a reduction, the gradient is that of the sum of the losses.
    ///
    /// # Errors
    ///
    /// As [`cross_entropy`](Self::cross_entropy).
    pub fn cross_entropy_with_gradient(
        &self,
        labels: &Tensor,
        options: CrossEntropyOptions,
    ) -> Result<(Tensor, Tensor)> {
        let labels = self.class_labels(labels, options)?;
        let scale = self.class_scale(&labels, options)?;
        let scale = scale.as_ref().map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
        let [losses, gradient] =
            self.class_program(&labels, options, scale, |terms| [terms.loss(), terms.gradient()])?;
        let loss = self.reduced_losses(losses.squeeze(labels.axis)?, &labels, options)?;
        Ok((loss.cast(self.dtype())?, gradient))
    }

    /// Returns the gradient of [`cross_entropy`](Self::cross_entropy) with respect to this tensor, for the gradient of its
    /// result.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a gradient of another shape than the result's; otherwise as
    /// [`cross_entropy`](Self::cross_entropy).
    pub fn cross_entropy_backward(
        &self,
        labels: &Tensor,
        options: CrossEntropyOptions,
        gradient: &Tensor,
    ) -> Result<Tensor> {
        let labels = self.class_labels(labels, options)?;
        let scale = self.class_backward_scale(&labels, options, gradient)?;
        let [gradient] = self.class_program(&labels, options, (&scale).into(), |terms| [terms.gradient()])?;
        Ok(gradient)
    }

    /// Returns the factor of the gradient of each loss, from the gradient of the result.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a gradient of another shape than the result's.
    pub(super) fn class_backward_scale(
        &self,
        labels: &Labels,
        options: CrossEntropyOptions,
        gradient: &Tensor,
    ) -> Result<Tensor> {
        let of_rows = labels.index.squeeze(labels.axis)?;
        let wanted: &[usize] = if options.reduction == LossReduction::None { of_rows.shape() } else { &[] };
        if **gradient.shape() != *wanted {
            let found = format!("a gradient of shape {}", gradient.shape());
            return Err(Error::invalid("cross_entropy_backward", found, format!("shape {wanted:?}")));
        }
        let gradient = gradient.cast(computed(self.dtype()))?;
        match (options.reduction, self.class_scale(labels, options)?) {
            (LossReduction::None, _) => gradient.unsqueeze(labels.axis),
            (_, Some(scale)) => &gradient * &scale,
            (_, None) => Ok(gradient),
        }
    }

    /// Checks labels and options.
    pub(super) fn class_labels(&self, labels: &Tensor, options: CrossEntropyOptions) -> Result<Labels> {
        self.check_float(OPERATION)?;
        let smoothing = options.label_smoothing;
        if !(0.0..1.0).contains(&smoothing) {
            let found = format!("a label smoothing of {smoothing}");
            return Err(Error::invalid(OPERATION, found, "one from 0 to below 1"));
        }
        let axis = self.class_axis(OPERATION, labels)?;
        Labels::new(&labels.cast(DType::I64)?.unsqueeze(axis)?, axis, options.ignore_index)
    }

    /// Returns the axis of the classes, after a check of labels for each.
    ///
    /// # Errors
    ///
    /// [`DTypeMismatch`](Error::DTypeMismatch) for labels other than integers,
    /// [`InvalidArgument`](Error::InvalidArgument) for labels of another shape than this tensor's without the axis.
    pub(crate) fn class_axis(&self, operation: &'static str, labels: &Tensor) -> Result<isize> {
        if !labels.dtype().is_integer() {
            let (wanted, found) = ("labels of integers".to_owned(), labels.dtype().to_string());
            return Err(Error::DTypeMismatch { operation, wanted, found });
        }
        let shape = self.shape();
        let axis = usize::from(shape.rank() > 1);
        let sizes = shape.iter().enumerate().filter(|(index, _)| *index != axis).map(|(_, size)| size);
        if shape.rank() == 0 || !sizes.eq(labels.shape().iter()) {
            let found = format!("an input of shape {shape} and labels of shape {}", labels.shape());
            let wanted = "labels of the input's shape without the classes' axis";
            return Err(Error::invalid(operation, found, wanted));
        }
        Ok(axis as isize)
    }

    /// Runs a program of the terms of each group. `outputs` must capture nothing, because its type is the key of a cache.
    pub(super) fn class_program<const OUTPUTS: usize, F>(
        &self,
        labels: &Labels,
        options: CrossEntropyOptions,
        scale: TensorOperand<'_>,
        outputs: F,
    ) -> Result<[Tensor; OUTPUTS]>
    where
        F: for<'g> Fn(ClassTerms<'g>) -> [Expr<'g>; OUTPUTS] + 'static,
    {
        let axes = &GroupAxes::Of(vec![labels.axis]);
        let [x, label]: [TensorOperand<'_>; 2] = [self.into(), (&labels.index).into()];
        if options.label_smoothing > 0.0 {
            let [part, share] = labels.smoothing(self.shape(), options);
            let operands = [x, label, scale, part, share];
            return fuse_groups(OPERATION, operands, axes, move |[x, label, scale, part, share]| {
                outputs(ClassTerms::new([x, label, scale], Some([part, share])))
            });
        }
        fuse_groups(OPERATION, [x, label, scale], axes, move |operands| {
            outputs(ClassTerms::new(operands, None))
        })
    }

    /// Returns the factor of the gradient of each loss; `None` for 1.
    pub(super) fn class_scale(
        &self,
        labels: &Labels,
        options: CrossEntropyOptions,
    ) -> Result<Option<Tensor>> {
        let dtype = computed(self.dtype());
        Ok(match options.reduction {
            LossReduction::None | LossReduction::Sum => None,
            LossReduction::Mean => Some(labels.counted(dtype)?.reciprocal()?),
            LossReduction::BatchMean => Some(Tensor::full(&[], 1.0 / labels.rows(), dtype, &self.device())?),
        })
    }

    /// Returns the reduction of losses, in the dtype in which they are computed.
    pub(super) fn reduced_losses(
        &self,
        losses: Tensor,
        labels: &Labels,
        options: CrossEntropyOptions,
    ) -> Result<Tensor> {
        let losses = labels.is_counted.squeeze(labels.axis)?.choose(&losses, 0.0)?;
        match options.reduction {
            LossReduction::None => Ok(losses),
            LossReduction::Sum => losses.sum_all(),
            LossReduction::Mean => &losses.sum_all()? / &labels.counted(losses.dtype())?,
            LossReduction::BatchMean => &losses.sum_all()? / labels.rows(),
        }
    }
}

impl Labels {
    /// Separates the ignored label from the classes, in the arithmetic of i64.
    fn new(index: &Tensor, axis: isize, ignored: i64) -> Result<Labels> {
        static FUNCTION: OnceLock<Fused<2, 2>> = OnceLock::new();
        let function = FUNCTION.get_or_init(|| {
            Fused::with_outputs(|[label, ignored]| {
                let is_counted = label.ne(ignored);
                // A label that only looks ignored becomes another one that is no class.
                let label = label.eq(IGNORED).choose(i64::MIN, label);
                [is_counted.choose(label, IGNORED), is_counted]
            })
        });
        let [index, is_counted] = function.run_all((index, ignored))?;
        Ok(Labels { index, is_counted, axis })
    }

    /// Returns the operands ε and ε / C for logits of a shape.
    pub(super) fn smoothing(
        &self,
        shape: &Shape,
        options: CrossEntropyOptions,
    ) -> [TensorOperand<'static>; 2] {
        let classes = shape.get(self.axis as usize).copied().unwrap_or(1);
        let part = options.label_smoothing;
        [part.into(), (part / classes as f64).into()]
    }

    /// Returns the number of labels that count, as a tensor without dimensions.
    fn counted(&self, dtype: DType) -> Result<Tensor> {
        self.is_counted.count_nonzero_all()?.cast(dtype)
    }

    /// Returns the size of the first dimension of the labels.
    fn rows(&self) -> f64 {
        let size = if self.axis == 0 { None } else { self.index.shape().first().copied() };
        size.unwrap_or(1) as f64
    }
}
