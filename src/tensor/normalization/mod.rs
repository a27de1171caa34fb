//! Softmax and normalisation: functions that reduce groups of elements and use the results on the same elements.
//!
//! Each function is an expression of a row program (`groups`). Names, defaults and edge cases are those of
//! `torch.nn.functional`. f16 and bf16 are computed in f32 and rounded once; a variance is the mean of (x - mean)². Results
//! have the dtype of the input and the same bits on every device.
//!
//! | file | contents |
//! |---|---|
//! | `softmax_backward` | gradients of softmax and its logarithm |
//! | `norm_backward` | gradients of layer, RMS, group and batch normalisation |
//! | `of_sums` | layer and RMS normalisation of a sum that is a result too |
//!
//! Tests: `tests/tensor/rows.rs`.

mod norm_backward;
mod of_sums;
mod softmax_backward;

use std::sync::OnceLock;

use super::axes::Axes;
use super::fused::Fused;
use super::groups::{GroupAxes, fuse_groups};
use super::operand::TensorOperand;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::types::DType;
pub use norm_backward::NormGradients;

/// Returns the dtype in which values of a float dtype are computed.
pub(super) fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

/// Returns the distance from 1 to the next number of a float dtype.
pub(crate) fn machine_epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => f64::from(half::bf16::EPSILON),
        DType::F16 => f64::from(half::f16::EPSILON),
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

/// x - mean.
fn centred(x: Expr<'_>) -> Expr<'_> {
    x - x.mean_group()
}

/// 1 / sqrt(mean(x²) + eps), in the dtype in which it is computed.
fn reciprocal_root<'g>(x: Expr<'g>, eps: Expr<'g>) -> Expr<'g> {
    let (mean, factor) = x.mean_of_squares_group();
    // The mean is that of (s x)². If eps s² overflows, squares are too small to count beside eps.
    let eps = eps.cast(mean.dtype());
    let scaled = eps * factor * factor;
    let is_eps = scaled.is_infinite();
    is_eps.choose(eps, mean + scaled).rsqrt() * is_eps.choose(1.0, factor)
}

/// (x - mean) / sqrt(variance + eps), in the dtype in which it is computed.
fn normalized<'g>(x: Expr<'g>, eps: Expr<'g>) -> Expr<'g> {
    let centred = centred(x);
    centred * reciprocal_root(centred, eps)
}

/// x / sqrt(mean(x²) + eps), in the dtype in which it is computed.
fn rms_normalized<'g>(x: Expr<'g>, eps: Expr<'g>) -> Expr<'g> {
    x * reciprocal_root(x, eps)
}

/// x / max(norm, eps).
fn divided<'g>(x: Expr<'g>, norm: Expr<'g>, eps: Expr<'g>) -> Expr<'g> {
    (x / norm.maximum(eps)).cast(x.dtype())
}

/// The mean, in the dtype in which it is computed.
fn mean(x: Expr<'_>) -> Expr<'_> {
    x.mean_group().cast(computed(x.dtype()))
}

/// The biased variance, in the dtype in which it is computed.
fn variance(x: Expr<'_>) -> Expr<'_> {
    let (mean, factor) = centred(x).mean_of_squares_group();
    mean / factor / factor
}

/// momentum · new + (1 - momentum) · running, in the dtype of the momentum. An interpolation from running to new would give
/// ∞ - ∞ for an infinite statistic.
fn updated<'g>(running: Expr<'g>, new: Expr<'g>, momentum: Expr<'g>) -> Expr<'g> {
    momentum * new + (1.0 - momentum) * running.cast(momentum.dtype())
}

/// Updates a running mean and variance by those of a batch: the operands after them are the batch's mean and biased variance,
/// the momentum, and the factor that makes the variance unbiased.
fn running_statistics() -> &'static Fused<6, 2> {
    static FUNCTION: OnceLock<Fused<6, 2>> = OnceLock::new();
    FUNCTION.get_or_init(|| {
        Fused::with_outputs(|[running_mean, running_var, mean, variance, momentum, unbiased]| {
            // A number has the common dtype of all operands, at least f32.
            let [mean, variance] = [mean, variance].map(|new| new.cast(momentum.dtype()));
            [updated(running_mean, mean, momentum), updated(running_var, variance * unbiased, momentum)]
        })
    })
}

/// Runs a function of a tensor and a number, then scales and shifts its result by a weight and a bias that may be absent.
/// The outputs are the result and the further functions of the tensor.
macro_rules! affine {
    ($operation:expr, $axes:expr, $x:expr, $eps:expr, $weight:expr, $bias:expr, $function:path $(, $further:path)*) => {{
        let (operation, axes, x) = ($operation, $axes, TensorOperand::Tensor($x));
        let eps = TensorOperand::from($eps);
        match ($weight, $bias) {
            (None, None) => {
                fuse_groups(operation, [x, eps], axes, |[x, eps]| {
                    [$function(x, eps).cast(x.dtype()) $(, $further(x))*]
                })
            }
            (Some(weight), None) => {
                fuse_groups(operation, [x, eps, weight.into()], axes, |[x, eps, weight]| {
                    [($function(x, eps) * weight).cast(x.dtype()) $(, $further(x))*]
                })
            }
            (None, Some(bias)) => fuse_groups(operation, [x, eps, bias.into()], axes, |[x, eps, bias]| {
                [($function(x, eps) + bias).cast(x.dtype()) $(, $further(x))*]
            }),
            (Some(weight), Some(bias)) => {
                let operands = [x, eps, weight.into(), bias.into()];
                fuse_groups(operation, operands, axes, |[x, eps, weight, bias]| {
                    [($function(x, eps) * weight + bias).cast(x.dtype()) $(, $further(x))*]
                })
            }
        }
    }};
}

impl Tensor {
    /// Checks that the elements are real floats to compute with.
    pub(super) fn check_float(&self, operation: &'static str) -> Result<()> {
        if self.dtype().is_float() && !self.dtype().is_storage_only() {
            return Ok(());
        }
        let wanted = "f16, bf16, f32 or f64; cast it first, such as to f32".to_owned();
        Err(Error::DTypeMismatch { operation, wanted, found: self.dtype().to_string() })
    }

    /// Checks an axis. Without dimensions, 0 and -1 name the only element.
    fn check_axis(&self, operation: &'static str, axis: isize) -> Result<()> {
        match self.rank() == 0 && (-1..=0).contains(&axis) {
            true => Ok(()),
            false => self.shape().axis(operation, axis).map(|_| ()),
        }
    }

    /// Checks a weight or a bias.
    fn check_parameter(
        operation: &'static str,
        name: &str,
        parameter: Option<&Tensor>,
        wanted: &[usize],
    ) -> Result<()> {
        match parameter.filter(|parameter| **parameter.shape() != *wanted) {
            None => Ok(()),
            Some(parameter) => {
                let found = format!("a {name} of shape {}", parameter.shape());
                Err(Error::invalid(operation, found, format!("shape {wanted:?}")))
            }
        }
    }

    /// Returns the axes of a normalized shape, which are the last ones.
    fn normalized_axes(
        &self,
        operation: &'static str,
        normalized_shape: &[usize],
        parameters: [(&str, Option<&Tensor>); 2],
    ) -> Result<GroupAxes> {
        self.check_float(operation)?;
        if normalized_shape.is_empty() || !self.shape().ends_with(normalized_shape) {
            let found = format!("normalized_shape {normalized_shape:?} for shape {}", self.shape());
            return Err(Error::invalid(operation, found, "the last sizes of the shape, at least one"));
        }
        for (name, parameter) in parameters {
            Tensor::check_parameter(operation, name, parameter, normalized_shape)?;
        }
        Ok(GroupAxes::Of((1..=normalized_shape.len() as isize).map(|axis| -axis).collect()))
    }

    /// Returns e^x / Σ e^x along an axis, computed as e^(x - max) times the reciprocal of Σ e^(x - max).
    ///
    /// A row with NaN or +∞ is NaN, as is a row of -∞ alone.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[0.0f32, 0.0], [1000.0, -1000.0]], &Device::best())?;
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an axis that does not exist,
    /// [`DTypeMismatch`](Error::DTypeMismatch) for elements that are not real floats; errors of memory.
    pub fn softmax(&self, axis: isize) -> Result<Tensor> {
        const OPERATION: &str = "softmax";
        self.check_float(OPERATION)?;
        self.check_axis(OPERATION, axis)?;
        if self.count() == 0 {
            return self.zeros_like();
        }
        let [result] = fuse_groups(OPERATION, [self.into()], &GroupAxes::Of(vec![axis]), |[x]| {
            let powers = (x - x.max_group()).exp();
            [powers * powers.sum_group().reciprocal()]
        })?;
        Ok(result)
    }

    /// Returns the logarithm of [`softmax`](Self::softmax), computed as x - max - ln Σ e^(x - max).
    ///
    /// # Errors
    ///
    /// As [`softmax`](Self::softmax).
    pub fn log_softmax(&self, axis: isize) -> Result<Tensor> {
        const OPERATION: &str = "log_softmax";
        self.check_float(OPERATION)?;
        self.check_axis(OPERATION, axis)?;
        if self.count() == 0 {
            return self.zeros_like();
        }
        let [result] = fuse_groups(OPERATION, [self.into()], &GroupAxes::Of(vec![axis]), |[x]| {
            let shifted = x - x.max_group();
            [shifted - shifted.exp().sum_group().log()]
        })?;
        Ok(result)
    }

    /// Returns (x - mean) / sqrt(variance + eps) · weight + bias, with mean and biased variance over the last axes, whose
    /// sizes are `normalized_shape`. PyTorch's default of `eps` is 1e-5.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 3.0], [-5.0, 5.0]], &Device::best())?;
    /// let bias = Tensor::new([0.0f32, 10.0], &Device::best())?;
    /// assert_eq!(x.layer_norm(&[2], None, Some(&bias), 0.0)?.to_vec::<f32>()?, [-1.0, 11.0, -1.0, 11.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a `normalized_shape` that differs from the last sizes, and for a
    /// weight or bias of another shape; otherwise as [`softmax`](Self::softmax).
    pub fn layer_norm(
        &self,
        normalized_shape: &[usize],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        const OPERATION: &str = "layer_norm";
        let parameters = [("weight", weight), ("bias", bias)];
        let axes = &self.normalized_axes(OPERATION, normalized_shape, parameters)?;
        let [result] = affine!(OPERATION, axes, self, eps, weight, bias, normalized)?;
        Ok(result)
    }

    /// Returns x / sqrt(mean(x²) + eps) · weight, with the mean over the last axes, whose sizes are `normalized_shape`.
    /// Without `eps` it is the machine epsilon of the dtype.
    ///
    /// # Errors
    ///
    /// As [`layer_norm`](Self::layer_norm).
    pub fn rms_norm(
        &self,
        normalized_shape: &[usize],
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<Tensor> {
        const OPERATION: &str = "rms_norm";
        let axes =
            &self.normalized_axes(OPERATION, normalized_shape, [("weight", weight), ("bias", None)])?;
        let bias: Option<&Tensor> = None;
        let eps = eps.unwrap_or_else(|| machine_epsilon(self.dtype()));
        let [result] = affine!(OPERATION, axes, self, eps, weight, bias, rms_normalized)?;
        Ok(result)
    }

    /// Returns the elements of shape (N, C, …) normalised over each of `num_groups` equal groups of channels, then scaled
    /// and shifted by channel. `weight` and `bias` have shape (C). PyTorch's default of `eps` is 1e-5.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for fewer than two axes, a number of groups that does not divide the
    /// channels, and a weight or bias of another shape; otherwise as [`softmax`](Self::softmax).
    pub fn group_norm(
        &self,
        num_groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        const OPERATION: &str = "group_norm";
        let channels = self.check_channels(OPERATION, [("weight", weight), ("bias", bias)])?;
        let sizes = self.grouped_sizes(OPERATION, num_groups, channels)?;
        let by_channel = |parameter: Option<&Tensor>| {
            parameter.map(|parameter| parameter.reshape(&norm_backward::by_channel(&sizes))).transpose()
        };
        let (x, weight, bias) = (self.reshape(&sizes)?, by_channel(weight)?, by_channel(bias)?);
        let axes = &GroupAxes::Of((2..sizes.len() as isize).collect());
        let [result] = affine!(OPERATION, axes, &x, eps, weight.as_ref(), bias.as_ref(), normalized)?;
        result.reshape(&norm_backward::sizes(self.shape()))
    }

    /// Returns the elements of shape (N, C, …) normalised by channel with given statistics, as in inference:
    /// (x - running_mean) / sqrt(running_var + eps) · weight + bias. All four have shape (C). PyTorch's default of `eps` is
    /// 1e-5.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for fewer than two axes, and statistics, a weight or a bias of another
    /// shape; otherwise as [`softmax`](Self::softmax).
    pub fn batch_norm(
        &self,
        running_mean: &Tensor,
        running_var: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        const OPERATION: &str = "batch_norm";
        let statistics = [("running_mean", Some(running_mean)), ("running_var", Some(running_var))];
        self.check_channels(OPERATION, statistics)?;
        self.check_channels(OPERATION, [("weight", weight), ("bias", bias)])?;
        let [mean, variance] = [self.by_channel(running_mean)?, self.by_channel(running_var)?];
        let (x, eps) = (TensorOperand::Tensor(self), TensorOperand::from(eps));
        let one = TensorOperand::from(1.0);
        let [weight, bias] =
            [weight, bias].map(|given| given.map(|given| self.by_channel(given)).transpose());
        let (weight, bias) = (weight?, bias?);
        // -0 is the number that changes no element it is added to.
        let weight = weight.as_ref().map_or(one, TensorOperand::Tensor);
        let bias = bias.as_ref().map_or(TensorOperand::from(-0.0), TensorOperand::Tensor);
        let operands = [x, (&mean).into(), (&variance).into(), eps, weight, bias];
        let [result] = fuse_groups(
            OPERATION,
            operands,
            &GroupAxes::Of(Vec::new()),
            |[x, mean, variance, eps, weight, bias]| {
                [((x - mean) * (variance + eps).rsqrt() * weight + bias).cast(x.dtype())]
            },
        )?;
        Ok(result)
    }

    /// Returns the elements of shape (N, C, …) normalised by channel with the mean and biased variance of each channel, as in
    /// training, and updates the running statistics (mean, then variance), if given:
    /// momentum · new + (1 - momentum) · running, in which the new variance is unbiased. This is PyTorch's formula: an infinite
    /// statistic stays infinite, except that one of weight 0, by a momentum of 0 or 1, gives NaN. PyTorch's defaults are a
    /// momentum of 0.1 and an `eps` of 1e-5.
    ///
    /// ```
    /// use selvedge::types::DType;
    /// use selvedge::{Device, Tensor};
    /// let device = Device::best();
    /// let x = Tensor::new([[1.0f32, 4.0], [3.0, 4.0]], &device)?;
    /// let mut mean = Tensor::zeros(&[2], DType::F32, &device)?;
    /// let mut variance = Tensor::ones(&[2], DType::F32, &device)?;
    /// let y = x.batch_norm_training(Some((&mut mean, &mut variance)), None, None, 0.5, 1e-5)?;
    /// assert_eq!(mean.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert_eq!(variance.to_vec::<f32>()?, [1.5, 0.5]);
    /// assert_eq!(y.select(1, 1)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for fewer than two elements of a channel;
    /// [`DTypeMismatch`](Error::DTypeMismatch) for running statistics that are no floats; otherwise as
    /// [`batch_norm`](Self::batch_norm).
    pub fn batch_norm_training(
        &self,
        running: Option<(&mut Tensor, &mut Tensor)>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        const OPERATION: &str = "batch_norm";
        let channels = self.check_channels(OPERATION, [("weight", weight), ("bias", bias)])?;
        let elements = self.count().checked_div(channels).unwrap_or(0);
        if elements < 2 {
            let found = format!("{elements} elements of each channel in shape {}", self.shape());
            return Err(Error::invalid(OPERATION, found, "at least two"));
        }
        let axes = GroupAxes::Of((0..self.rank() as isize).filter(|axis| *axis != 1).collect());
        let [weight, bias] =
            [weight, bias].map(|given| given.map(|given| self.by_channel(given)).transpose());
        let (weight, bias) = (weight?, bias?);
        let (weight, bias) = (weight.as_ref(), bias.as_ref());
        let Some((running_mean, running_var)) = running else {
            let [result] = affine!(OPERATION, &axes, self, eps, weight, bias, normalized)?;
            return Ok(result);
        };
        let statistics = [("running_mean", Some(&*running_mean)), ("running_var", Some(&*running_var))];
        self.check_channels(OPERATION, statistics)?;
        running_mean.check_float(OPERATION)?;
        running_var.check_float(OPERATION)?;
        let [result, new_mean, new_var] =
            affine!(OPERATION, &axes, self, eps, weight, bias, normalized, mean, variance)?;
        let channels = [channels as isize];
        let (new_mean, new_var) = (new_mean.reshape(&channels)?, new_var.reshape(&channels)?);
        let unbiased = elements as f64 / (elements - 1) as f64;
        let others = [(&new_mean).into(), (&new_var).into(), momentum.into(), unbiased.into()];
        running_statistics().run_in_place([running_mean, running_var], others)?;
        Ok(result)
    }

    /// Returns the number of channels, the size of axis 1, after a check of dtype, axes and parameters by channel.
    fn check_channels(
        &self,
        operation: &'static str,
        parameters: [(&str, Option<&Tensor>); 2],
    ) -> Result<usize> {
        self.check_float(operation)?;
        let Some(&channels) = self.shape().get(1) else {
            let found = format!("shape {}", self.shape());
            return Err(Error::invalid(operation, found, "at least the axes (N, C)"));
        };
        for (name, parameter) in parameters {
            Tensor::check_parameter(operation, name, parameter, &[channels])?;
        }
        Ok(channels)
    }

    /// Returns a parameter by channel in a shape that broadcasts to this tensor's.
    fn by_channel(&self, parameter: &Tensor) -> Result<Tensor> {
        let mut sizes = vec![1; self.rank()];
        if let Some(size) = sizes.get_mut(1) {
            *size = parameter.count() as isize;
        }
        parameter.reshape(&sizes)
    }

    /// Returns x / max(‖x‖ₚ, eps) with the [`norm`](Self::norm) over the axes. PyTorch's defaults are p = 2, axis 1 and an
    /// `eps` of 1e-12. A norm of p = 2 may be beyond the range of the dtype; the quotients by another infinite norm are 0.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[3.0f32, 4.0], [0.0, 0.0]], &Device::best())?;
    /// assert_eq!(x.normalize(2.0, 1, 1e-12)?.to_vec::<f32>()?, [0.6, 0.8, 0.0, 0.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a `p` of NaN and for axes that do not exist; otherwise as
    /// [`softmax`](Self::softmax).
    pub fn normalize<'a>(&self, p: f64, axes: impl Into<Axes<'a>>, eps: f64) -> Result<Tensor> {
        const OPERATION: &str = "normalize";
        self.check_float(OPERATION)?;
        let axes = &GroupAxes::from(axes.into());
        if self.count() == 0 {
            axes.of(self.shape()).iter().try_for_each(|&axis| self.check_axis(OPERATION, axis))?;
            return self.zeros_like();
        }
        let (x, eps) = (TensorOperand::Tensor(self), TensorOperand::from(eps));
        let [result] = match p {
            _ if p.is_nan() => return Err(Error::invalid(OPERATION, "p = NaN", "a number")),
            0.0 => fuse_groups(OPERATION, [x, eps], axes, |[x, eps]| {
                [divided(x, x.cast(DType::Bool).sum_group().cast(computed(x.dtype())), eps)]
            }),
            1.0 => fuse_groups(OPERATION, [x, eps], axes, |[x, eps]| [divided(x, x.abs().sum_group(), eps)]),
            2.0 => fuse_groups(OPERATION, [x, eps], axes, |[x, eps]| {
                // Elements and norm times the factor, because the norm may be infinite where the quotients are not.
                let (sum, factor) = x.sum_of_squares_group();
                let eps = eps.cast(sum.dtype());
                let scaled = eps * factor;
                // A factor that makes eps infinite is that of a norm below eps.
                let is_eps = scaled.is_infinite();
                let divisor = is_eps.choose(eps, sum.sqrt().maximum(scaled));
                [(x * is_eps.choose(1.0, factor) / divisor).cast(x.dtype())]
            }),
            f64::INFINITY => {
                fuse_groups(OPERATION, [x, eps], axes, |[x, eps]| [divided(x, x.abs().max_group(), eps)])
            }
            f64::NEG_INFINITY => {
                fuse_groups(OPERATION, [x, eps], axes, |[x, eps]| [divided(x, x.abs().min_group(), eps)])
            }
            // In f64, as in `norm`.
            _ => {
                // A tensor, because a number would have the dtype of x.
                let power = Tensor::full(&[], p, DType::F64, &self.device())?;
                fuse_groups(OPERATION, [x, eps, (&power).into()], axes, |[x, eps, power]| {
                    let total = (x.abs().cast(DType::F64).log() * power).exp().sum_group();
                    let norm = (total.log() / power).exp();
                    [divided(x, norm.cast(computed(x.dtype())), eps)]
                })
            }
        }?;
        Ok(result)
    }

    /// Returns (x - mean) / standard deviation over the axes, with the biased variance: mean 0 and variance 1. A group of
    /// equal elements is NaN.
    ///
    /// # Errors
    ///
    /// As [`softmax`](Self::softmax).
    pub fn standardize<'a>(&self, axes: impl Into<Axes<'a>>) -> Result<Tensor> {
        const OPERATION: &str = "standardize";
        self.check_float(OPERATION)?;
        let [result] = fuse_groups(OPERATION, [self.into()], &GroupAxes::from(axes.into()), |[x]| {
            let centred = centred(x);
            let (mean, factor) = centred.mean_of_squares_group();
            [(centred / (mean.sqrt() / factor)).cast(x.dtype())]
        })?;
        Ok(result)
    }
}
