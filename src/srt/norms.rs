//! Golden normalization: batch norm and layer norm whose result has the variance 1/φ.
//!
//! y = γ √τ (v - μ) / √(σ² + ε) + β, with the mean μ and the biased variance σ² of a channel or row, and the target variance τ of
//! [`GoldenTarget`]. The variance of y is γ² τ σ² / (σ² + ε). γ is 1 and β is 0 if missing.
//!
//! Each norm is one row program on f32 or f64, in two passes. Means, and variances as they are returned, are f64. Deviations have
//! the dtype of the elements. A channel of equal elements gives β exactly, with ε = 0 too. NaN stays in its channel or row. The CPU and CUDA devices give the same bits.
//!
//! Tests: `tests/srt/norms.rs`.

use std::sync::LazyLock;

use super::INVERSE_PHI;
use super::operands::{REALS, check_devices, check_dtype, check_dtypes, check_row, last_size};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Device, Fused, Tensor, TensorOperand};
use crate::types::DType;

/// The variance τ that a norm aims at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum GoldenTarget {
    /// 1/φ.
    #[default]
    Golden,
    /// 1.
    Standard,
    /// Any finite number above 0.
    Custom(f64),
}

impl GoldenTarget {
    /// Returns τ.
    pub fn variance(self) -> f64 {
        match self {
            GoldenTarget::Golden => INVERSE_PHI,
            GoldenTarget::Standard => 1.0,
            GoldenTarget::Custom(variance) => variance,
        }
    }
}

/// The parameters of a golden norm.
#[derive(Clone, Copy, Debug)]
pub struct GoldenNorm<'a> {
    /// The target variance; golden.
    pub target: GoldenTarget,
    /// The factor γ of each channel, of the input's dtype; 1.
    pub gamma: Option<&'a Tensor>,
    /// The sum β of each channel, of the input's dtype; 0.
    pub beta: Option<&'a Tensor>,
    /// The number ε that is added to the variance; 1e-5.
    pub eps: f64,
}

impl Default for GoldenNorm<'_> {
    fn default() -> Self {
        GoldenNorm { target: GoldenTarget::default(), gamma: None, beta: None, eps: 1e-5 }
    }
}

impl GoldenNorm<'_> {
    /// Returns √τ.
    fn root(&self) -> f64 {
        self.target.variance().sqrt()
    }

    /// Checks the input and the numbers.
    fn check(&self, operation: &'static str, v: &Tensor) -> Result<()> {
        check_dtypes(operation, REALS, &[v])?;
        if v.count() == 0 {
            return Err(Error::invalid(operation, format!("a tensor of shape {}", v.shape()), "elements"));
        }
        check_eps(operation, self.eps)?;
        let tau = self.target.variance();
        if !(tau.is_finite() && tau > 0.0) {
            let found = format!("a target variance of {tau}");
            return Err(Error::invalid(operation, found, "a finite number above 0"));
        }
        Ok(())
    }

    /// Returns γ and β by channel, after checks of the input and of everything else.
    fn by_channel(
        &self,
        operation: &'static str,
        v: &Tensor,
        channels: usize,
    ) -> Result<[Option<Tensor>; 2]> {
        self.check(operation, v)?;
        let prepared = |name, parameter: Option<&Tensor>| {
            let Some(parameter) = parameter else { return Ok(None) };
            check_dtype(operation, v.dtype(), parameter)?;
            check_devices(operation, v, parameter)?;
            if parameter.shape()[..] != [channels] {
                let found =
                    format!("{name} of shape {} for a tensor of shape {}", parameter.shape(), v.shape());
                return Err(Error::invalid(operation, found, format!("{name} of shape [{channels}]")));
            }
            by_channel(parameter, v).map(Some)
        };
        Ok([prepared("gamma", self.gamma)?, prepared("beta", self.beta)?])
    }
}

/// # Errors
///
/// [`Error::InvalidArgument`].
pub(super) fn check_eps(operation: &'static str, eps: f64) -> Result<()> {
    if eps.is_finite() && eps >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("eps = {eps}"), "a finite number of at least 0"))
}

/// Returns a number for each channel in a shape that broadcasts to `v`, whose axis 1 has the channels.
fn by_channel(parameter: &Tensor, v: &Tensor) -> Result<Tensor> {
    let mut sizes = vec![1; v.rank()];
    if let Some(size) = sizes.get_mut(1) {
        *size = parameter.count() as isize;
    }
    parameter.reshape(&sizes)
}

/// Returns a parameter, or the number for a missing one.
pub(super) fn operand(parameter: Option<&Tensor>, default: f64) -> TensorOperand<'_> {
    parameter.map_or(default.into(), TensorOperand::from)
}

/// The mean and the biased variance of each group in f64, and the deviation of each element from the mean.
struct Moments<'g> {
    mean: Expr<'g>,
    /// The variance of the elements times a factor.
    scaled_variance: Expr<'g>,
    /// The factor, if it may be another than 1.
    factor: Option<Expr<'g>>,
    deviation: Expr<'g>,
}

impl<'g> Moments<'g> {
    /// The mean of equal elements is the element.
    fn new(v: Expr<'g>) -> Moments<'g> {
        match v.dtype() {
            DType::F32 => Moments::of_single(v),
            _ => Moments::of_double(v),
        }
    }

    fn of_double(v: Expr<'g>) -> Moments<'g> {
        let mean = v.mean_group();
        let deviation = v - mean;
        let (squares, factor) = deviation.mean_of_squares_group();
        // The mean of the deviations is the rounding error of the mean.
        let error = deviation.mean_group();
        let mean = mean + error;
        let scaled_variance = (squares - (error * factor).square()).maximum(0.0);
        Moments { mean, scaled_variance, factor: Some(factor), deviation: v - mean }
    }

    /// The mean is that of f64, whose sums of up to 2^29 equal elements are exact. Deviations from it, as a sum of two f32,
    /// are f32: conversions take longer than the memory of an element.
    fn of_single(v: Expr<'g>) -> Moments<'g> {
        let mean = v.cast(DType::F64).mean_group();
        let high = mean.cast(DType::F32);
        let low = (mean - high.cast(DType::F64)).cast(DType::F32);
        let deviation = (v - high) - low;
        // Squares of deviations in this unit neither overflow nor vanish.
        let unit = v.abs().max_group().maximum(f32::MIN_POSITIVE);
        let squares = (deviation * (1.0 / unit)).square().mean_group();
        let scaled_variance = squares.cast(DType::F64) * unit.cast(DType::F64).square();
        Moments { mean, scaled_variance, factor: None, deviation }
    }

    fn variance(&self) -> Expr<'g> {
        self.factor.map_or(self.scaled_variance, |factor| self.scaled_variance / factor / factor)
    }

    /// Returns √τ / √(σ² + ε).
    fn scale(&self, root: Expr<'g>, eps: Expr<'g>) -> Expr<'g> {
        let Some(factor) = self.factor else { return scale(self.scaled_variance, root, eps) };
        // If ε s² overflows, squares are too small to count beside ε.
        let eps = eps.cast(DType::F64);
        let scaled = eps * factor * factor;
        let is_eps = scaled.is_infinite();
        let (sum, factor) = (is_eps.choose(eps, self.scaled_variance + scaled), is_eps.choose(1.0, factor));
        quotient(root, sum.sqrt() / factor)
    }

    /// Returns γ √τ (v - μ) / √(σ² + ε) + β in the dtype of the elements.
    fn scaled(&self, [root, eps, gamma, beta]: [Expr<'g>; 4]) -> Expr<'g> {
        let dtype = self.deviation.dtype();
        let scale = self.scale(root, eps).cast(dtype);
        gamma.cast(dtype) * (scale * self.deviation) + beta.cast(dtype)
    }
}

/// Returns √τ / √(σ² + ε) in f64, and √τ for a divisor of 0. One division for a group: for each element they would take as long
/// as its memory.
fn scale<'g>(variance: Expr<'g>, root: Expr<'g>, eps: Expr<'g>) -> Expr<'g> {
    quotient(root, (variance + eps.cast(DType::F64)).sqrt())
}

/// Returns √τ / `spread`, and √τ for a divisor of 0.
fn quotient<'g>(root: Expr<'g>, spread: Expr<'g>) -> Expr<'g> {
    root.cast(DType::F64) / spread.eq(0.0).choose(1.0, spread)
}

/// Returns the norm of each group's elements. The parameters are √τ, ε, γ and β.
pub(super) fn normalized<'g>(v: Expr<'g>, parameters: [Expr<'g>; 4]) -> Expr<'g> {
    Moments::new(v).scaled(parameters)
}

/// The norm of v, √τ, ε, γ and β, with the mean and the variance.
type Norm = LazyLock<Fused<5, 3>>;

fn norm() -> Fused<5, 3> {
    Fused::with_outputs(|[v, root, eps, gamma, beta]| {
        let moments = Moments::new(v);
        [moments.scaled([root, eps, gamma, beta]), moments.mean, moments.variance()]
    })
}

static NORM_1D: Norm = LazyLock::new(|| norm().over(0));
static NORM_2D: Norm = LazyLock::new(|| norm().over(&[0, 2, 3]));
static LAYER_NORM: LazyLock<Fused<5>> =
    LazyLock::new(|| Fused::new(|[v, root, eps, gamma, beta]| normalized(v, [root, eps, gamma, beta])));
/// Of v, the mean, the variance and the parameters.
static WITH_STATISTICS: LazyLock<Fused<7>> = LazyLock::new(|| {
    Fused::new(|[v, mean, variance, root, eps, gamma, beta]| {
        let deviation = v.cast(DType::F64) - mean;
        let [gamma, beta] = [gamma, beta].map(|number| number.cast(DType::F64));
        (gamma * scale(variance, root, eps) * deviation + beta).cast(v.dtype())
    })
});
/// Of the running statistics, those of a batch, and the momentum.
static UPDATED: LazyLock<Fused<5, 2>> = LazyLock::new(|| {
    Fused::with_outputs(|[mean, variance, batch_mean, batch_variance, momentum]| {
        let kept = 1.0 - momentum;
        [mean * kept + batch_mean * momentum, variance * kept + batch_variance * momentum]
    })
});

/// The mean and variance of each channel over batches, in f64: the old ones times 1 - m plus m times those of a batch. The
/// variance is biased.
#[derive(Clone, Debug)]
pub struct RunningStatistics {
    mean: Tensor,
    variance: Tensor,
    momentum: f64,
}

impl RunningStatistics {
    /// The weight m of a new batch that is usual.
    pub const MOMENTUM: f64 = 0.1;

    /// Starts with mean 0 and variance 1 of so many channels.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a momentum outside 0 to 1; errors of memory.
    pub fn new(channels: usize, momentum: f64, device: &Device) -> Result<RunningStatistics> {
        let mean = Tensor::zeros(&[channels], DType::F64, device)?;
        RunningStatistics::from_tensors(mean, Tensor::ones(&[channels], DType::F64, device)?, momentum)
    }

    /// Continues with the mean and variance of each channel, f64.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for another dtype; [`Error::InvalidArgument`] for tensors that are not vectors of one size, and
    /// a momentum outside 0 to 1; [`Error::DeviceMismatch`].
    pub fn from_tensors(mean: Tensor, variance: Tensor, momentum: f64) -> Result<RunningStatistics> {
        const OPERATION: &str = "running statistics";
        check_dtypes(OPERATION, &[DType::F64], &[&mean, &variance])?;
        check_devices(OPERATION, &mean, &variance)?;
        if mean.rank() != 1 || mean.shape() != variance.shape() {
            let found = format!("a mean of shape {} and a variance of {}", mean.shape(), variance.shape());
            return Err(Error::invalid(OPERATION, found, "two vectors of one size"));
        }
        if !(0.0..=1.0).contains(&momentum) {
            return Err(Error::invalid(
                OPERATION,
                format!("a momentum of {momentum}"),
                "a number from 0 to 1",
            ));
        }
        Ok(RunningStatistics { mean, variance, momentum })
    }

    /// Returns the mean of each channel.
    pub fn mean(&self) -> &Tensor {
        &self.mean
    }

    /// Returns the variance of each channel.
    pub fn variance(&self) -> &Tensor {
        &self.variance
    }

    /// Normalizes a batch of shape (B, F) or (B, C, H, W) with these statistics, as in inference.
    ///
    /// # Errors
    ///
    /// As [`golden_batch_norm_1d`].
    pub fn normalize(&self, v: &Tensor, norm: &GoldenNorm<'_>) -> Result<Tensor> {
        const OPERATION: &str = "a golden batch norm";
        let rank = if v.rank() == 4 { 4 } else { 2 };
        let channels = channels(OPERATION, v, rank, "a batch of shape (B, F) or (B, C, H, W)")?;
        let [gamma, beta] = norm.by_channel(OPERATION, v, channels)?;
        self.check(OPERATION, v, channels)?;
        let (mean, variance) = (by_channel(&self.mean, v)?, by_channel(&self.variance, v)?);
        let (gamma, beta) = (operand(gamma.as_ref(), 1.0), operand(beta.as_ref(), 0.0));
        WITH_STATISTICS.run((v, &mean, &variance, norm.root(), norm.eps, gamma, beta))
    }

    fn check(&self, operation: &'static str, v: &Tensor, channels: usize) -> Result<()> {
        check_devices(operation, v, &self.mean)?;
        if self.mean.count() == channels {
            return Ok(());
        }
        let found =
            format!("statistics of {} channels for a tensor of shape {}", self.mean.count(), v.shape());
        Err(Error::invalid(operation, found, format!("{channels} channels")))
    }

    fn update(&mut self, mean: &Tensor, variance: &Tensor) -> Result<()> {
        let channels = [self.mean.count() as isize];
        let (mean, variance) = (mean.reshape(&channels)?, variance.reshape(&channels)?);
        let operands = (&self.mean, &self.variance, &mean, &variance, self.momentum);
        [self.mean, self.variance] = UPDATED.run_all(operands)?;
        Ok(())
    }
}

/// The channels of a batch, axis 1, after a check of the rank.
fn channels(operation: &'static str, v: &Tensor, rank: usize, wanted: &str) -> Result<usize> {
    match v.shape().get(1) {
        Some(&channels) if v.rank() == rank => Ok(channels),
        _ => Err(Error::invalid(operation, format!("a tensor of shape {}", v.shape()), wanted)),
    }
}

fn batch_norm(
    operation: &'static str,
    function: &Fused<5, 3>,
    v: &Tensor,
    channels: usize,
    norm: &GoldenNorm<'_>,
    running: Option<&mut RunningStatistics>,
) -> Result<Tensor> {
    let [gamma, beta] = norm.by_channel(operation, v, channels)?;
    if let Some(running) = &running {
        running.check(operation, v, channels)?;
    }
    let (gamma, beta) = (operand(gamma.as_ref(), 1.0), operand(beta.as_ref(), 0.0));
    let [y, mean, variance] = function.run_all((v, norm.root(), norm.eps, gamma, beta))?;
    if let Some(running) = running {
        running.update(&mean, &variance)?;
    }
    Ok(y)
}

/// Normalizes each feature of a batch of shape (B, F) over the batch, and updates the running statistics, if given.
///
/// ```
/// use selvedge::srt::{GoldenNorm, golden_batch_norm_1d};
/// use selvedge::tensor::{Device, Tensor};
/// let v = Tensor::new([[1.0f64, 10.0], [2.0, 10.0], [3.0, 10.0]], &Device::cpu())?;
/// let y = golden_batch_norm_1d(&v, &GoldenNorm::default(), None)?.to_vec::<f64>()?;
/// assert!((y[4] - 0.9628276468655639).abs() < 1e-12);
/// assert_eq!(y[5], 0.0);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32 and f64, and for a γ or β of another one; [`Error::InvalidArgument`] for
/// another rank, a size of 0, a γ, β or statistics of another number of channels, a target variance that is not above 0 and
/// an `eps` that is negative, or either not finite; [`Error::DeviceMismatch`].
pub fn golden_batch_norm_1d(
    v: &Tensor,
    norm: &GoldenNorm<'_>,
    running: Option<&mut RunningStatistics>,
) -> Result<Tensor> {
    const OPERATION: &str = "golden_batch_norm_1d";
    let features = channels(OPERATION, v, 2, "a batch of shape (B, F)")?;
    batch_norm(OPERATION, &NORM_1D, v, features, norm, running)
}

/// Normalizes each channel of a batch of shape (B, C, H, W) over B, H and W, and updates the running statistics, if given.
///
/// # Errors
///
/// As [`golden_batch_norm_1d`].
pub fn golden_batch_norm_2d(
    v: &Tensor,
    norm: &GoldenNorm<'_>,
    running: Option<&mut RunningStatistics>,
) -> Result<Tensor> {
    const OPERATION: &str = "golden_batch_norm_2d";
    let channels = channels(OPERATION, v, 4, "a batch of shape (B, C, H, W)")?;
    batch_norm(OPERATION, &NORM_2D, v, channels, norm, running)
}

/// Normalizes each row along the last axis.
///
/// # Errors
///
/// As [`golden_batch_norm_1d`]; [`Error::InvalidArgument`] for a tensor without dimensions, and a γ or β of another size than
/// the last axis.
pub fn golden_layer_norm(v: &Tensor, norm: &GoldenNorm<'_>) -> Result<Tensor> {
    const OPERATION: &str = "golden_layer_norm";
    last_size(OPERATION, v)?;
    norm.check(OPERATION, v)?;
    for (name, vector) in [("gamma", norm.gamma), ("beta", norm.beta)] {
        let Some(vector) = vector else { continue };
        check_dtype(OPERATION, v.dtype(), vector)?;
        check_row(OPERATION, name, vector, v)?;
    }
    let (gamma, beta) = (operand(norm.gamma, 1.0), operand(norm.beta, 0.0));
    LAYER_NORM.run((v, norm.root(), norm.eps, gamma, beta))
}
