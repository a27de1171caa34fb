//! [`GenerativeModel`]: classes as Gaussians of one deviation.

use std::f64::consts::PI;
use std::sync::OnceLock;

use super::inference::softmax;
use super::options::checked_prior;
use crate::error::{Error, Result};
use crate::tensor::{Device, Fused, Tensor};
use crate::types::DType;

const OPERATION: &str = "GenerativeModel";

/// A generative model of inputs: p(o|c) = N(o; m_c, s² I) with a centre m_c for each class.
///
/// ```
/// use selvedge::classifier::GenerativeModel;
/// use selvedge::{Device, Tensor};
/// let device = Device::best();
/// let model = GenerativeModel::new(Tensor::new([[0.0f64, 0.0], [1.0, 0.0]], &device)?, 0.5)?;
/// let posterior = model.posterior(&Tensor::new([[0.5f64, 3.0]], &device)?, &[0.25, 0.75])?;
/// assert!((posterior.to_vec::<f64>()?[0] - 0.25).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GenerativeModel {
    centres: Tensor,
    deviation: f64,
}

impl GenerativeModel {
    /// Creates a model of centres, one a row, of f32 or f64. The inputs have the dtype and the device of the centres.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for other dtypes, [`Error::InvalidArgument`] for centres that are no matrix or not finite and
    /// for a deviation that is not positive; errors of the operations.
    pub fn new(centres: Tensor, deviation: f64) -> Result<GenerativeModel> {
        if !matches!(centres.dtype(), DType::F32 | DType::F64) {
            let (wanted, found) = ("centres of f32 or f64".to_owned(), centres.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        if centres.rank() != 2 || centres.count() == 0 {
            let found = format!("centres of shape {}", centres.shape());
            return Err(Error::invalid(OPERATION, found, "a row of features for each class"));
        }
        if !(deviation.is_finite() && deviation > 0.0) {
            return Err(Error::invalid(
                OPERATION,
                format!("a deviation of {deviation}"),
                "a positive number",
            ));
        }
        if !centres.is_finite()?.all_all()?.item::<bool>()? {
            return Err(Error::invalid(OPERATION, "centres that are not finite", "finite centres"));
        }
        Ok(GenerativeModel { centres, deviation })
    }

    /// Returns the centres, of shape (classes, features).
    pub fn centres(&self) -> &Tensor {
        &self.centres
    }

    /// Returns the deviation s.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.centres.shape().first().copied().unwrap_or(0)
    }

    /// Returns the number of features.
    pub fn features(&self) -> usize {
        self.centres.shape().last().copied().unwrap_or(0)
    }

    /// Returns the model on a device in a dtype.
    pub(super) fn to(&self, device: &Device, dtype: DType) -> Result<GenerativeModel> {
        Ok(GenerativeModel { centres: self.centres.to(device)?.cast(dtype)?, deviation: self.deviation })
    }

    /// Returns the factor of the squared distance from a centre in ln p(o|c), and the rest.
    pub(super) fn scale_and_offset(&self) -> [f64; 2] {
        let variance = self.deviation * self.deviation;
        [-0.5 / variance, -0.5 * self.features() as f64 * (2.0 * PI * variance).ln()]
    }

    /// Returns ln p(o|c), of shape (rows, classes).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for inputs that are not rows of the model's features, [`Error::DTypeMismatch`] for another
    /// dtype; errors of the operations.
    pub fn log_likelihood(&self, inputs: &Tensor) -> Result<Tensor> {
        static FUNCTION: OnceLock<Fused<4>> = OnceLock::new();
        let features = self.features();
        if inputs.dtype() != self.centres.dtype() {
            let (wanted, found) = (format!("inputs of {}", self.centres.dtype()), inputs.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        if !matches!(inputs.shape()[..], [_, found] if found == features) {
            let found = format!("inputs of shape {}", inputs.shape());
            return Err(Error::invalid(OPERATION, found, format!("rows of {features} features")));
        }
        let [scale, offset] = self.scale_and_offset();
        let function = FUNCTION.get_or_init(|| {
            Fused::new(|[o, m, scale, offset]| (o - m).square().sum_group() * scale + offset)
        });
        let operands = (&inputs.unsqueeze(1)?, &self.centres.unsqueeze(0)?, scale, offset);
        function.run(operands)?.squeeze(-1)
    }

    /// Returns the exact posterior softmax(ln p(o|c) + ln P_c), of shape (rows, classes).
    ///
    /// # Errors
    ///
    /// As [`log_likelihood`](Self::log_likelihood); [`Error::InvalidArgument`] for a prior of other classes or another sum
    /// than 1.
    pub fn posterior(&self, inputs: &Tensor, prior: &[f64]) -> Result<Tensor> {
        self.posterior_and_surprise(inputs, prior).map(|[posterior, _]| posterior)
    }

    /// Returns -ln p(o), a number for each row: the least free energy.
    ///
    /// # Errors
    ///
    /// As [`posterior`](Self::posterior).
    pub fn surprise(&self, inputs: &Tensor, prior: &[f64]) -> Result<Tensor> {
        let [_, surprise] = self.posterior_and_surprise(inputs, prior)?;
        surprise.squeeze(-1)
    }

    /// Returns the class of the largest exact posterior, the first of equal ones: the Bayes rule.
    ///
    /// # Errors
    ///
    /// As [`posterior`](Self::posterior).
    pub fn bayes_classes(&self, inputs: &Tensor, prior: &[f64]) -> Result<Tensor> {
        self.posterior(inputs, prior)?.argmax(-1)
    }

    fn posterior_and_surprise(&self, inputs: &Tensor, prior: &[f64]) -> Result<[Tensor; 2]> {
        static FUNCTION: OnceLock<Fused<2, 2>> = OnceLock::new();
        let prior = checked_prior(OPERATION, prior)?;
        if prior.len() != self.classes() {
            let found = format!("a prior of {} classes", prior.len());
            return Err(Error::invalid(OPERATION, found, format!("{} classes", self.classes())));
        }
        let logarithms: Vec<f64> = prior.iter().map(|p| p.ln()).collect();
        let logarithms = Tensor::from_vec(logarithms, &[prior.len()], &Device::cpu())?;
        let logarithms = logarithms.cast(self.centres.dtype())?.to(&self.centres.device())?;
        let function = FUNCTION.get_or_init(|| {
            Fused::with_outputs(|[likelihood, prior]| {
                let joint = likelihood + prior;
                let most = joint.max_group();
                [softmax(joint), -(most + (joint - most).exp().sum_group().log())]
            })
        });
        function.run_all([&self.log_likelihood(inputs)?, &logarithms])
    }
}
