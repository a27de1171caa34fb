//! [`Initializer`], the source of new parameters.

use super::autograd::Variable;
use crate::error::Result;
use crate::tensor::{Device, Generator, Tensor};
use crate::types::DType;

/// The distribution of the first values of a weight, given its inputs and outputs: the elements that a result sums, and the
/// results that an element takes part in.
///
/// PyTorch's gain is 1 without an activation and sqrt(2) before a ReLU; `nn.Linear` of PyTorch is a `KaimingUniform` with a
/// gain of 1 / sqrt(3).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum WeightDistribution {
    /// Uniform in ±sqrt(2 / inputs).
    #[default]
    FanIn,
    /// Uniform in ±`bound`.
    Uniform {
        /// The largest absolute value.
        bound: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// The standard deviation.
        deviation: f64,
    },
    /// Uniform with a deviation of `gain` · sqrt(2 / (inputs + outputs)).
    XavierUniform {
        /// The factor of the activation that follows.
        gain: f64,
    },
    /// Normal with a deviation of `gain` · sqrt(2 / (inputs + outputs)).
    XavierNormal {
        /// The factor of the activation that follows.
        gain: f64,
    },
    /// Uniform with a deviation of `gain` / sqrt(inputs).
    KaimingUniform {
        /// The factor of the activation that follows.
        gain: f64,
    },
    /// Normal with a deviation of `gain` / sqrt(inputs).
    KaimingNormal {
        /// The factor of the activation that follows.
        gain: f64,
    },
}

/// Creates the parameters of layers: on a device, in a dtype, with numbers of a generator.
///
/// A seed gives the same parameters on every device. Layers draw their weights from
/// [`with_weights`](Self::with_weights), and those whose result a residual adds from
/// [`with_residual_weights`](Self::with_residual_weights). The first values of a GPT-2 of 12 blocks:
///
/// ```
/// use selvedge::Device;
/// use selvedge::nn::{Initializer, WeightDistribution};
/// let blocks = 12.0f64;
/// let initializer = Initializer::new(&Device::cpu())
///     .with_weights(WeightDistribution::Normal { deviation: 0.02 })
///     .with_residual_weights(WeightDistribution::Normal { deviation: 0.02 / (2.0 * blocks).sqrt() });
/// assert_eq!(initializer.weight(768, 2304)?.shape()[..], [768, 2304]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// Layers of one seed have equal parameters:
///
/// ```
/// use selvedge::Device;
/// use selvedge::nn::{Initializer, Linear, Module};
/// let layer = || Linear::new(3, 2, &Initializer::new(&Device::cpu()).with_seed(7));
/// let [first, second] = [layer()?.state_dict(), layer()?.state_dict()];
/// assert_eq!(first["weight"].to_vec::<f32>()?, second["weight"].to_vec::<f32>()?);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Initializer {
    device: Device,
    dtype: DType,
    compute_dtype: Option<DType>,
    generator: Generator,
    weights: WeightDistribution,
    residual_weights: Option<WeightDistribution>,
}

impl Initializer {
    /// Creates parameters of f32 with the device's own generator.
    pub fn new(device: &Device) -> Initializer {
        Initializer {
            device: *device,
            dtype: DType::F32,
            compute_dtype: None,
            generator: device.generator(),
            weights: WeightDistribution::default(),
            residual_weights: None,
        }
    }

    /// Sets the dtype.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Initializer {
        Initializer { dtype, ..self }
    }

    /// Sets the dtype in which [`Linear`](super::Linear) and the layers made of it compute; by default that of the
    /// parameters. With bf16 and parameters of f32 a forward casts inputs and parameters to bf16, and the gradients of the
    /// parameters, which an optimizer adds up, are f32: mixed precision with f32 masters.
    ///
    /// ```
    /// use selvedge::nn::{Initializer, Linear, Module, Variable};
    /// use selvedge::{DType, Device, Tensor};
    /// let device = Device::cpu();
    /// let layer = Linear::new(3, 2, &Initializer::new(&device).with_compute_dtype(DType::BF16))?;
    /// let result = layer.forward(&Variable::new(Tensor::ones(&[1, 3], DType::F32, &device)?))?;
    /// assert_eq!((result.dtype(), layer.weight().dtype()), (DType::BF16, DType::F32));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[must_use]
    pub fn with_compute_dtype(self, dtype: DType) -> Initializer {
        Initializer { compute_dtype: Some(dtype), ..self }
    }

    /// Returns the device of the parameters.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the dtype of the parameters.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dtype to compute in, if it is set.
    pub fn compute_dtype(&self) -> Option<DType> {
        self.compute_dtype
    }

    /// Sets the generator. Clones of a generator draw from one sequence.
    #[must_use]
    pub fn with_generator(self, generator: &Generator) -> Initializer {
        Initializer { generator: generator.clone(), ..self }
    }

    /// Returns the generator.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Sets a generator with this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Initializer {
        self.with_generator(&Generator::new(seed))
    }

    /// Sets the distribution of weights.
    #[must_use]
    pub fn with_weights(self, weights: WeightDistribution) -> Initializer {
        Initializer { weights, ..self }
    }

    /// Sets the distribution of weights whose product is added to a residual. Without it they have that of all weights.
    #[must_use]
    pub fn with_residual_weights(self, weights: WeightDistribution) -> Initializer {
        Initializer { residual_weights: Some(weights), ..self }
    }

    /// Returns the initializer of layers whose result is added to a residual.
    #[must_use]
    pub fn for_residual(&self) -> Initializer {
        let weights = self.residual_weights.unwrap_or(self.weights);
        Initializer { weights, ..self.clone() }
    }

    /// Creates a weight of shape (inputs, outputs) by the distribution of weights.
    ///
    /// # Errors
    ///
    /// As [`uniform`](Self::uniform) and [`normal`](Self::normal).
    pub fn weight(&self, inputs: usize, outputs: usize) -> Result<Variable> {
        let shape = [inputs, outputs];
        let (fan_in, fan_out) = (inputs as f64, outputs as f64);
        let xavier = (2.0 / (fan_in + fan_out)).sqrt();
        // A uniform distribution's deviation is its bound over sqrt(3).
        let root = 3f64.sqrt();
        match self.weights {
            WeightDistribution::FanIn => self.uniform((2.0 / fan_in).sqrt(), &shape),
            WeightDistribution::Uniform { bound } => self.uniform(bound, &shape),
            WeightDistribution::Normal { deviation } => self.normal(deviation, &shape),
            WeightDistribution::XavierUniform { gain } => self.uniform(root * gain * xavier, &shape),
            WeightDistribution::XavierNormal { gain } => self.normal(gain * xavier, &shape),
            WeightDistribution::KaimingUniform { gain } => self.uniform(root * gain / fan_in.sqrt(), &shape),
            WeightDistribution::KaimingNormal { gain } => self.normal(gain / fan_in.sqrt(), &shape),
        }
    }

    /// Creates a parameter of uniform numbers in [-`bound`, `bound`).
    ///
    /// # Errors
    ///
    /// As [`Generator::uniform`].
    pub fn uniform(&self, bound: f64, shape: &[usize]) -> Result<Variable> {
        Variable::with_grad(self.generator.uniform(-bound, bound, shape, self.dtype, &self.device)?)
    }

    /// Creates a parameter of normally distributed numbers with mean 0.
    ///
    /// # Errors
    ///
    /// As [`Generator::normal`].
    pub fn normal(&self, deviation: f64, shape: &[usize]) -> Result<Variable> {
        Variable::with_grad(self.generator.normal(0.0, deviation, shape, self.dtype, &self.device)?)
    }

    /// Creates a buffer, a constant that is part of a module's state, of equal elements.
    pub(super) fn buffer(&self, value: f64, shape: &[usize]) -> Result<Variable> {
        Ok(Variable::new(Tensor::full(shape, value, self.dtype, &self.device)?))
    }

    /// Creates a counter at 0, a buffer of i64 without dimensions.
    pub(super) fn counter(&self) -> Result<Variable> {
        Ok(Variable::new(Tensor::zeros(&[], DType::I64, &self.device)?))
    }

    /// Creates a parameter of zeros.
    ///
    /// # Errors
    ///
    /// As [`Tensor::zeros`], and [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for integers.
    pub fn zeros(&self, shape: &[usize]) -> Result<Variable> {
        Variable::with_grad(Tensor::zeros(shape, self.dtype, &self.device)?)
    }

    /// Creates a parameter of ones.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn ones(&self, shape: &[usize]) -> Result<Variable> {
        Variable::with_grad(Tensor::ones(shape, self.dtype, &self.device)?)
    }
}
