//! Gradients of layer, RMS, group and batch normalisation.
//!
//! With r = 1 / sqrt(variance + eps), h = (x - mean) r and v = g weight, the gradient of the input is
//! r (v - mean(v) - h mean(v h)); without the terms of the mean for RMS normalisation. The gradient of a residual that
//! skips the normalisation is added in the same pass. The gradient of the weight is Σ g h, that of the bias Σ g. For
//! layer normalisation they are sums over groups of the same row program; RMS normalisation has no bias. For group
//! normalisation they are column sums over the mean and r of each group, which the first pass returns.

use super::{computed, reciprocal_root};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::groups::{GroupAxes, fuse_groups};
use crate::tensor::operand::TensorOperand;
use crate::tensor::tensor::Tensor;

/// The gradients of a normalisation.
#[derive(Debug, Clone)]
pub struct NormGradients {
    /// The gradient of the input, in its dtype.
    pub input: Tensor,
    /// The gradient of the weight, if it was requested: in f64 for inputs of f64, and otherwise in f32.
    pub weight: Option<Tensor>,
    /// The gradient of the bias, in the dtype of the weight's. RMS normalisation has none.
    pub bias: Option<Tensor>,
}

/// The gradient of x, the mean, r and h, by the formula above.
fn of_centred<'g>([x, gradient, weight, residual, eps]: [Expr<'g>; 5]) -> [Expr<'g>; 4] {
    let mean = x.mean_group();
    let centred = x - mean;
    let root = reciprocal_root(centred, eps);
    let (h, v) = (centred * root, gradient * weight);
    let result = root * (v - v.mean_group() - h * (v * h).mean_group()) + residual;
    [result.cast(x.dtype()), mean.cast(computed(x.dtype())), root.cast(computed(x.dtype())), h]
}

/// The gradient of x and h, with h = x r and r = 1 / sqrt(mean(x²) + eps).
fn of_root<'g>([x, gradient, weight, residual, eps]: [Expr<'g>; 5]) -> [Expr<'g>; 2] {
    let root = reciprocal_root(x, eps);
    let (h, v) = (x * root, gradient * weight);
    let result = root * (v - h * (v * h).mean_group()) + residual;
    [result.cast(x.dtype()), h]
}

/// The gradient of a parameter along a group, from its terms of each group.
fn of_shared<'g>(x: Expr<'g>, term: Expr<'g>) -> Expr<'g> {
    term.cast(computed(x.dtype())).sum_over_groups()
}

/// The gradients of x, the weight and the bias, if weight and bias have one value per group.
fn of_channels<'g>([x, gradient, weight, residual, eps]: [Expr<'g>; 5]) -> [Expr<'g>; 3] {
    let centred = x - x.mean_group();
    let root = reciprocal_root(centred, eps);
    let h = centred * root;
    let product = gradient * h;
    let result = root * weight * (gradient - gradient.mean_group() - h * product.mean_group()) + residual;
    let wide = |sum: Expr<'g>| sum.cast(computed(x.dtype()));
    [result.cast(x.dtype()), wide(product.sum_group()), wide(gradient.sum_group())]
}

/// Σ g (x - mean) r and Σ g.
fn of_parameters<'g>([x, gradient, mean, root]: [Expr<'g>; 4]) -> [Expr<'g>; 2] {
    let dtype = computed(x.dtype());
    let product = gradient * ((x - mean) * root);
    [product.sum_group().cast(dtype), gradient.sum_group().cast(dtype)]
}

/// The operands of a backward. An absent weight is 1, and an absent residual -0, which changes no element.
fn operands<'a>(
    [x, gradient]: [&'a Tensor; 2],
    weight: Option<&'a Tensor>,
    residual: Option<&'a Tensor>,
    eps: f64,
) -> [TensorOperand<'a>; 5] {
    let weight = weight.map_or(TensorOperand::from(1.0), TensorOperand::Tensor);
    let residual = residual.map_or(TensorOperand::from(-0.0), TensorOperand::Tensor);
    [x.into(), gradient.into(), weight, residual, eps.into()]
}

/// Returns sizes as [`Tensor::reshape`] takes them.
pub(super) fn sizes(shape: &[usize]) -> Vec<isize> {
    shape.iter().map(|&size| size as isize).collect()
}

impl Tensor {
    /// Checks the gradient of a result, and the gradient of a residual beside it.
    pub(super) fn check_gradients(
        &self,
        operation: &'static str,
        gradient: &Tensor,
        residual: Option<&Tensor>,
    ) -> Result<()> {
        self.check_gradient(operation, gradient)?;
        residual.map_or(Ok(()), |residual| self.check_gradient(operation, residual))
    }

    /// Returns the gradients of [`layer_norm`](Self::layer_norm) of this tensor, for the gradient of its result. The
    /// gradient of a `residual` is added to that of the input in the same pass. The gradients of weight and bias are
    /// computed if `with_parameters` is true.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 3.0], [-5.0, 5.0]], &Device::cpu())?;
    /// let gradient = Tensor::new([[1.0f32, 0.0], [0.0, 2.0]], &Device::cpu())?;
    /// let found = x.layer_norm_backward(&gradient, &[2], None, 0.0, None, true)?;
    /// assert_eq!(found.weight.unwrap().to_vec::<f32>()?, [-1.0, 2.0]);
    /// assert_eq!(found.bias.unwrap().to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for gradients of another shape than this tensor's; otherwise as
    /// [`layer_norm`](Self::layer_norm).
    pub fn layer_norm_backward(
        &self,
        gradient: &Tensor,
        normalized_shape: &[usize],
        weight: Option<&Tensor>,
        eps: f64,
        residual: Option<&Tensor>,
        with_parameters: bool,
    ) -> Result<NormGradients> {
        const OPERATION: &str = "layer_norm_backward";
        self.check_gradients(OPERATION, gradient, residual)?;
        let axes = self.normalized_axes(OPERATION, normalized_shape, [("weight", weight), ("bias", None)])?;
        let operands = operands([self, gradient], weight, residual, eps);
        if !with_parameters {
            let [input] = fuse_groups(OPERATION, operands, &axes, |operands| [of_centred(operands)[0]])?;
            return Ok(NormGradients { input, weight: None, bias: None });
        }
        let [input, weight, bias] = fuse_groups(OPERATION, operands, &axes, |operands| {
            let [result, _, _, h] = of_centred(operands);
            let [x, gradient, ..] = operands;
            [result, of_shared(x, gradient * h), of_shared(x, gradient)]
        })?;
        let [weight, bias] = [weight, bias].map(|sum| sum.reshape(&sizes(normalized_shape)));
        Ok(NormGradients { input, weight: Some(weight?), bias: Some(bias?) })
    }

    /// Returns the gradients of [`rms_norm`](Self::rms_norm) of this tensor; see
    /// [`layer_norm_backward`](Self::layer_norm_backward). There is no bias: the gradient of one added to the result is the
    /// sum of the result's gradient.
    ///
    /// # Errors
    ///
    /// As [`layer_norm_backward`](Self::layer_norm_backward).
    pub fn rms_norm_backward(
        &self,
        gradient: &Tensor,
        normalized_shape: &[usize],
        weight: Option<&Tensor>,
        eps: Option<f64>,
        residual: Option<&Tensor>,
        with_parameters: bool,
    ) -> Result<NormGradients> {
        const OPERATION: &str = "rms_norm_backward";
        self.check_gradients(OPERATION, gradient, residual)?;
        let axes = self.normalized_axes(OPERATION, normalized_shape, [("weight", weight), ("bias", None)])?;
        let eps = eps.unwrap_or_else(|| super::machine_epsilon(self.dtype()));
        let operands = operands([self, gradient], weight, residual, eps);
        if !with_parameters {
            let [input] = fuse_groups(OPERATION, operands, &axes, |operands| [of_root(operands)[0]])?;
            return Ok(NormGradients { input, weight: None, bias: None });
        }
        let [input, weight] = fuse_groups(OPERATION, operands, &axes, |operands| {
            let [result, h] = of_root(operands);
            [result, of_shared(operands[0], operands[1] * h)]
        })?;
        let weight = weight.reshape(&sizes(normalized_shape))?;
        Ok(NormGradients { input, weight: Some(weight), bias: None })
    }

    /// Returns the gradients of [`group_norm`](Self::group_norm) of this tensor; see
    /// [`layer_norm_backward`](Self::layer_norm_backward).
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for gradients of another shape than this tensor's; otherwise as
    /// [`group_norm`](Self::group_norm).
    pub fn group_norm_backward(
        &self,
        gradient: &Tensor,
        num_groups: usize,
        weight: Option<&Tensor>,
        eps: f64,
        residual: Option<&Tensor>,
        with_parameters: bool,
    ) -> Result<NormGradients> {
        const OPERATION: &str = "group_norm_backward";
        self.check_gradients(OPERATION, gradient, residual)?;
        let channels = self.check_channels(OPERATION, [("weight", weight), ("bias", None)])?;
        let grouped = self.grouped_sizes(OPERATION, num_groups, channels)?;
        let [x, gradient] = [self.reshape(&grouped)?, gradient.reshape(&grouped)?];
        let residual = residual.map(|residual| residual.reshape(&grouped)).transpose()?;
        let weight = weight.map(|weight| weight.reshape(&by_channel(&grouped))).transpose()?;
        let operands = operands([&x, &gradient], weight.as_ref(), residual.as_ref(), eps);
        let rank = grouped.len() as isize;
        let axes = GroupAxes::Of((2..rank).collect());
        let [input, mean, root] = fuse_groups(OPERATION, operands, &axes, |operands| {
            let [result, mean, root, _] = of_centred(operands);
            [result, mean, root]
        })?;
        let others = (0..rank).filter(|axis| !(1..=2).contains(axis)).collect();
        let input = input.reshape(&sizes(self.shape()))?;
        if !with_parameters {
            return Ok(NormGradients { input, weight: None, bias: None });
        }
        let operands = [(&x).into(), (&gradient).into(), (&mean).into(), (&root).into()];
        let found = fuse_groups(OPERATION, operands, &GroupAxes::Of(others), of_parameters);
        let [weight, bias] = found?.map(|sum| sum.reshape(&sizes(&[channels])));
        Ok(NormGradients { input, weight: Some(weight?), bias: Some(bias?) })
    }

    /// Returns the gradients of [`batch_norm_training`](Self::batch_norm_training) of this tensor; see
    /// [`layer_norm_backward`](Self::layer_norm_backward). The gradients of weight and bias come from the same pass, so
    /// they are always computed.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for gradients of another shape than this tensor's; otherwise as
    /// [`batch_norm`](Self::batch_norm).
    pub fn batch_norm_backward(
        &self,
        gradient: &Tensor,
        weight: Option<&Tensor>,
        eps: f64,
        residual: Option<&Tensor>,
    ) -> Result<NormGradients> {
        const OPERATION: &str = "batch_norm_backward";
        self.check_gradients(OPERATION, gradient, residual)?;
        let channels = self.check_channels(OPERATION, [("weight", weight), ("bias", None)])?;
        let weight = weight.map(|weight| self.by_channel(weight)).transpose()?;
        let operands = operands([self, gradient], weight.as_ref(), residual, eps);
        let axes = GroupAxes::Of((0..self.rank() as isize).filter(|axis| *axis != 1).collect());
        let [input, of_weight, of_bias] = fuse_groups(OPERATION, operands, &axes, of_channels)?;
        let [weight, bias] = [of_weight, of_bias].map(|sum| sum.reshape(&sizes(&[channels])));
        Ok(NormGradients { input, weight: Some(weight?), bias: Some(bias?) })
    }

    /// Returns the shape (N, groups, channels of a group, …).
    pub(super) fn grouped_sizes(
        &self,
        operation: &'static str,
        num_groups: usize,
        channels: usize,
    ) -> Result<Vec<isize>> {
        if num_groups == 0 || !channels.is_multiple_of(num_groups) {
            let found = format!("{num_groups} groups of {channels} channels");
            return Err(Error::invalid(operation, found, "a number of groups that divides the channels"));
        }
        let mut found = sizes(self.shape());
        found.splice(1..2, [num_groups as isize, (channels / num_groups) as isize]);
        Ok(found)
    }
}

/// Returns the shape of a parameter by channel beside elements of [`Tensor::grouped_sizes`].
pub(super) fn by_channel(grouped: &[isize]) -> Vec<isize> {
    let is_channel = |axis: usize| matches!(axis, 1 | 2);
    grouped.iter().enumerate().map(|(axis, &size)| if is_channel(axis) { size } else { 1 }).collect()
}
