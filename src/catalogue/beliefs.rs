//! Continuous inference with Gaussian beliefs and a linear observation o = J μ + noise.
//!
//! With the precisions Πₒ of the observations and Πₚ of the prior N(m, Πₚ⁻¹), both diagonal, the free energy of a belief μ is
//! ½ Σ (Πₒ (o - J μ)² - ln Πₒ + ln 2π) + ½ Σ Πₚ (μ - m)². Its negative gradient is Jᵀ Πₒ (o - J μ) - Πₚ (μ - m), and its
//! minimum (Jᵀ Πₒ J + Πₚ)⁻¹ (Jᵀ Πₒ o + Πₚ m).
//!
//! Tests: `tests/catalogue/beliefs.rs`.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use super::operands::{check_finite, check_floats, check_positive, check_rows, check_shape, last_size, wide};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};
use crate::types::DType;

/// Returns -½ Σ (Π ε² + ln(2π/Π)).
fn accuracy<'g>(error: Expr<'g>, precision: Expr<'g>) -> Expr<'g> {
    let (error, precision) = (wide(error), wide(precision));
    (precision * error.square() - precision.log() + TAU.ln()).sum_group() * -0.5
}

/// Of ε and Π.
static ACCURACY: LazyLock<Fused<2>> =
    LazyLock::new(|| Fused::new(|[error, precision]| accuracy(error, precision).cast(error.dtype())));
/// Of Πₚ, μ and m.
static COMPLEXITY: LazyLock<Fused<3>> = LazyLock::new(|| {
    Fused::new(|[precision, mean, prior]| {
        let squares = wide(precision) * (wide(mean) - wide(prior)).square();
        (squares.sum_group() * 0.5).cast(mean.dtype())
    })
});
/// Of the means and variances of q, then of p.
static KL: LazyLock<Fused<4>> = LazyLock::new(|| {
    Fused::new(|[mean, variance, prior_mean, prior_variance]| {
        let dtype = mean.dtype();
        let [mean, variance, prior_mean, prior_variance] =
            [mean, variance, prior_mean, prior_variance].map(wide);
        let ratio = variance / prior_variance;
        let distance = (mean - prior_mean).square() / prior_variance;
        ((ratio + distance - 1.0 - ratio.log()).sum_group() * 0.5).cast(dtype)
    })
});

/// Returns the accuracy -½ Σ (Π ε² + ln(2π/Π)) of each row of prediction errors ε = o - g(μ), without the last dimension. The
/// precisions Π have the shape of the errors or are one row.
///
/// # Errors
///
/// As [`gaussian_kl_divergence`].
pub fn gaussian_accuracy(error: &Tensor, precision: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "gaussian_accuracy";
    check_floats(OPERATION, &[error, precision])?;
    last_size(OPERATION, "error", error)?;
    check_rows(OPERATION, "precision", precision, error)?;
    ACCURACY.run([error, precision])?.squeeze(-1)
}

/// Returns the divergence KL(N(mean, variance) ‖ N(prior mean, prior variance)) of Gaussians with diagonal covariances, without
/// the last dimension. `q` and `p` are a mean and a variance each; those of `p` have the shape of those of `q` or are one row.
///
/// ```
/// use selvedge::catalogue::gaussian_kl_divergence;
/// use selvedge::{Device, Tensor};
/// let [mean, variance] = [[1.0f64], [0.25]].map(|row| Tensor::new(row, &Device::cpu()));
/// let [zero, one] = [[0.0f64], [1.0]].map(|row| Tensor::new(row, &Device::cpu()));
/// let kl = gaussian_kl_divergence([&mean?, &variance?], [&zero?, &one?])?;
/// assert!((kl.item::<f64>()? - 0.818147180560).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// A variance that is not above 0 gives NaN or an infinity in its row.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for operands that are not floats of one dtype; [`Error::InvalidArgument`] for shapes that differ,
/// and no elements along the last dimension; [`Error::DeviceMismatch`]; errors of memory.
pub fn gaussian_kl_divergence(q: [&Tensor; 2], p: [&Tensor; 2]) -> Result<Tensor> {
    const OPERATION: &str = "gaussian_kl_divergence";
    check_floats(OPERATION, &[q[0], q[1], p[0], p[1]])?;
    last_size(OPERATION, "the mean", q[0])?;
    check_shape(OPERATION, "the variance", q[1], q[0].shape())?;
    check_rows(OPERATION, "the prior mean", p[0], q[0])?;
    check_rows(OPERATION, "the prior variance", p[1], q[0])?;
    KL.run([q[0], q[1], p[0], p[1]])?.squeeze(-1)
}

/// The step of [`GaussianModel::infer`] and the conditions that end it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InferenceOptions {
    /// The step along the negative gradient; 0.01.
    pub rate: f64,
    /// The largest change of a belief by a step at which the belief counts as reached; 1e-4.
    pub tolerance: f64,
    /// The most steps; 100.
    pub iterations: usize,
}

impl Default for InferenceOptions {
    fn default() -> Self {
        InferenceOptions { rate: 0.01, tolerance: 1e-4, iterations: 100 }
    }
}

/// The result of [`GaussianModel::infer`].
#[derive(Clone, Debug)]
pub struct Inference {
    /// The belief.
    pub mean: Tensor,
    /// The number of gradients computed.
    pub iterations: usize,
    /// True if the last step was below the tolerance.
    pub converged: bool,
}

/// A linear observation of a vector of states with Gaussian noise and a Gaussian prior.
#[derive(Clone, Debug)]
pub struct GaussianModel {
    jacobian: Tensor,
    transposed: Tensor,
    observation_precision: Tensor,
    prior_mean: Tensor,
    prior_precision: Tensor,
}

impl GaussianModel {
    /// A model of a matrix J with a row for each observation and a column for each state, a precision for each observation,
    /// and a mean and a precision for each state. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for operands that are not floats of one dtype; [`Error::InvalidArgument`] for shapes that
    /// differ, no states or observations, and a precision that is not finite or not above 0; [`Error::DeviceMismatch`].
    pub fn new(
        jacobian: &Tensor,
        observation_precision: &Tensor,
        prior_mean: &Tensor,
        prior_precision: &Tensor,
    ) -> Result<GaussianModel> {
        const OPERATION: &str = "GaussianModel::new";
        check_floats(OPERATION, &[jacobian, observation_precision, prior_mean, prior_precision])?;
        let (observations, states) = match jacobian.shape()[..] {
            [observations, states] if observations > 0 && states > 0 => (observations, states),
            _ => {
                let found = format!("a Jacobian of shape {}", jacobian.shape());
                return Err(Error::invalid(OPERATION, found, "a matrix with rows and columns"));
            }
        };
        check_shape(OPERATION, "observation_precision", observation_precision, &[observations])?;
        check_shape(OPERATION, "prior_mean", prior_mean, &[states])?;
        check_shape(OPERATION, "prior_precision", prior_precision, &[states])?;
        for (name, precision) in
            [("observation_precision", observation_precision), ("prior_precision", prior_precision)]
        {
            let is_right = precision.gt(0.0)?.logical_and(&precision.is_finite()?)?;
            if !is_right.all_all()?.item::<bool>()? {
                return Err(Error::invalid(OPERATION, name, "finite precisions above 0"));
            }
        }
        Ok(GaussianModel {
            jacobian: jacobian.clone(),
            transposed: jacobian.t()?,
            observation_precision: observation_precision.clone(),
            prior_mean: prior_mean.clone(),
            prior_precision: prior_precision.clone(),
        })
    }

    fn check(&self, operation: &'static str, mean: &Tensor, observation: &Tensor) -> Result<()> {
        check_floats(operation, &[&self.jacobian, mean, observation])?;
        check_shape(operation, "mean", mean, self.prior_mean.shape())?;
        check_shape(operation, "observation", observation, self.observation_precision.shape())
    }

    /// Returns the weighted prediction error Πₒ (o - J μ).
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for operands of another dtype than the model's; [`Error::InvalidArgument`] for shapes that
    /// differ; [`Error::DeviceMismatch`]; errors of memory.
    pub fn prediction_error(&self, mean: &Tensor, observation: &Tensor) -> Result<Tensor> {
        self.check("prediction_error", mean, observation)?;
        observation.sub(&self.jacobian.gemv(mean)?)?.mul(&self.observation_precision)
    }

    /// Returns the direction of descent Jᵀ Πₒ (o - J μ) - Πₚ (μ - m).
    ///
    /// # Errors
    ///
    /// As [`prediction_error`](Self::prediction_error).
    pub fn gradient(&self, mean: &Tensor, observation: &Tensor) -> Result<Tensor> {
        let pull = self.transposed.gemv(&self.prediction_error(mean, observation)?)?;
        pull.sub(&mean.sub(&self.prior_mean)?.mul(&self.prior_precision)?)
    }

    /// Returns the free energy of a belief: complexity minus accuracy.
    ///
    /// # Errors
    ///
    /// As [`prediction_error`](Self::prediction_error).
    pub fn free_energy(&self, mean: &Tensor, observation: &Tensor) -> Result<Tensor> {
        self.check("free_energy", mean, observation)?;
        let error = observation.sub(&self.jacobian.gemv(mean)?)?;
        let accuracy = ACCURACY.run([&error, &self.observation_precision])?;
        COMPLEXITY.run([&self.prior_precision, mean, &self.prior_mean])?.sub(&accuracy)?.squeeze(-1)
    }

    /// Descends from `start` along the gradient until a step is below the tolerance. Waits for the device in each step.
    ///
    /// # Errors
    ///
    /// As [`prediction_error`](Self::prediction_error); [`Error::InvalidArgument`] for a rate or a tolerance that is not above
    /// 0, and a gradient that is not finite, such as after too large a rate.
    pub fn infer(
        &self,
        observation: &Tensor,
        start: &Tensor,
        options: InferenceOptions,
    ) -> Result<Inference> {
        const OPERATION: &str = "infer";
        self.check(OPERATION, start, observation)?;
        check_positive(OPERATION, "rate", options.rate)?;
        check_positive(OPERATION, "tolerance", options.tolerance)?;
        let mut mean = start.clone();
        for iteration in 1..=options.iterations {
            let change = self.gradient(&mean, observation)?.mul(options.rate)?;
            let largest: f64 = change.abs()?.max_all()?.cast(DType::F64)?.item()?;
            check_finite(OPERATION, "the change of a belief", largest)?;
            if largest < options.tolerance {
                return Ok(Inference { mean, iterations: iteration, converged: true });
            }
            mean = mean.add(&change)?;
        }
        Ok(Inference { mean, iterations: options.iterations, converged: false })
    }

    /// Returns the precision Jᵀ Πₒ J + Πₚ of the exact posterior, a matrix.
    ///
    /// # Errors
    ///
    /// Errors of memory.
    pub fn posterior_precision(&self) -> Result<Tensor> {
        let weighted = self.jacobian.mul(&self.observation_precision.unsqueeze(-1)?)?;
        self.transposed.matmul(&weighted)?.add(&self.prior_precision.diag(0)?)
    }

    /// Returns the belief of least free energy, the mean of the exact posterior. The host solves for it in f64 by Cholesky
    /// factors and copies it to the model's device.
    ///
    /// # Errors
    ///
    /// As [`prediction_error`](Self::prediction_error); [`Error::InvalidArgument`] for a matrix that is not positive definite
    /// after rounding.
    pub fn fixed_point(&self, observation: &Tensor) -> Result<Tensor> {
        const OPERATION: &str = "fixed_point";
        self.check(OPERATION, &self.prior_mean, observation)?;
        let wide = GaussianModel {
            jacobian: self.jacobian.cast(DType::F64)?,
            transposed: self.transposed.cast(DType::F64)?,
            observation_precision: self.observation_precision.cast(DType::F64)?,
            prior_mean: self.prior_mean.cast(DType::F64)?,
            prior_precision: self.prior_precision.cast(DType::F64)?,
        };
        // The correction of the prior mean, which keeps its digits.
        let right = wide.gradient(&wide.prior_mean, &observation.cast(DType::F64)?)?.to_vec::<f64>()?;
        let change = solve(OPERATION, wide.posterior_precision()?.to_vec()?, right)?;
        let change = Tensor::from_vec(change, self.prior_mean.shape(), &self.jacobian.device())?;
        wide.prior_mean.add(&change)?.cast(self.jacobian.dtype())
    }
}

/// Returns the solution of a symmetric system by its factors L Lᵀ, which replace the lower half of `matrix`.
fn solve(operation: &'static str, mut matrix: Vec<f64>, mut right: Vec<f64>) -> Result<Vec<f64>> {
    let size = right.len();
    for i in 0..size {
        let (above, rest) = matrix.split_at_mut(i * size);
        let row = &mut rest[..size];
        for j in 0..i {
            let known: f64 = (0..j).map(|k| row[k] * above[j * size + k]).sum();
            row[j] = (row[j] - known) / above[j * size + j];
        }
        let square = row[i] - row[..i].iter().map(|x| x * x).sum::<f64>();
        if !(square > 0.0 && square.is_finite()) {
            let found = format!("a pivot of {square} in column {i}");
            return Err(Error::invalid(operation, found, "a positive definite precision"));
        }
        row[i] = square.sqrt();
    }
    for i in 0..size {
        let known: f64 = (0..i).map(|k| matrix[i * size + k] * right[k]).sum();
        right[i] = (right[i] - known) / matrix[i * size + i];
    }
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|k| matrix[k * size + i] * right[k]).sum();
        right[i] = (right[i] - known) / matrix[i * size + i];
    }
    Ok(right)
}
