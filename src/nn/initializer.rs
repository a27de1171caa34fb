//! [`Initializer`], the source of new parameters.

use super::autograd::Variable;
use crate::error::Result;
use crate::tensor::{Device, Generator, Tensor};
use crate::types::DType;

/// Creates the parameters of layers: on a device, in a dtype, with numbers of a generator.
///
/// A seed gives the same parameters on every device.
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
    generator: Generator,
}

impl Initializer {
    /// Creates parameters of f32 with the device's own generator.
    pub fn new(device: &Device) -> Initializer {
        Initializer { device: *device, dtype: DType::F32, generator: device.generator() }
    }

    /// Sets the dtype.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Initializer {
        Initializer { dtype, ..self }
    }

    /// Sets the generator. Clones of a generator draw from one sequence.
    #[must_use]
    pub fn with_generator(self, generator: &Generator) -> Initializer {
        Initializer { generator: generator.clone(), ..self }
    }

    /// Sets a generator with this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Initializer {
        self.with_generator(&Generator::new(seed))
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
