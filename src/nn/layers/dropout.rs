//! [`Dropout`], random zeros.

use crate::error::Result;
use crate::nn::checks::check_probability;
use crate::nn::{Module, Variable};
use crate::tensor::Generator;
use crate::types::DType;

/// Replaces elements by 0 with a probability p and scales the others by 1 / (1 - p), in the training mode only.
///
/// The generator counts its draws, so a state of it gives the same zeros again, on any device.
///
/// ```
/// use selvedge::nn::{Dropout, Module, Variable};
/// use selvedge::tensor::Generator;
/// use selvedge::{DType, Device, Tensor};
/// let generator = Generator::new(3);
/// let mut layer = Dropout::new(0.5, &generator)?;
/// let x = Variable::new(Tensor::ones(&[100], DType::F32, &Device::cpu())?);
/// let state = generator.state();
/// let first = layer.forward(&x)?.tensor().to_vec::<f32>()?;
/// assert!(first.iter().all(|&y| y == 0.0 || y == 2.0));
/// generator.set_state(state);
/// assert_eq!(layer.forward(&x)?.tensor().to_vec::<f32>()?, first);
/// layer.eval();
/// assert_eq!(layer.forward(&x)?.tensor().to_vec::<f32>()?, [1.0; 100]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// A clone draws from the same generator.
#[derive(Debug, Clone)]
pub struct Dropout {
    probability: f64,
    generator: Generator,
    is_training: bool,
}

impl Dropout {
    /// Creates a layer that draws from a generator.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a probability outside 0 to 1.
    pub fn new(probability: f64, generator: &Generator) -> Result<Dropout> {
        check_probability("Dropout", "a probability", probability)?;
        Ok(Dropout { probability, generator: generator.clone(), is_training: true })
    }

    /// Returns the generator.
    pub(in crate::nn) fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Returns whether a forward draws.
    pub(in crate::nn) fn is_active(&self) -> bool {
        self.is_training && self.probability > 0.0
    }
}

impl Module for Dropout {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        if !self.is_training || self.probability == 0.0 {
            return Ok(input.clone());
        }
        let rest = 1.0 - self.probability;
        let shape = input.shape();
        let is_kept = self.generator.bernoulli(rest, &shape, DType::Bool, &input.device())?;
        // Nothing is kept with a probability of 1, and 1 / 0 is no factor.
        let scale = if rest > 0.0 { 1.0 / rest } else { 0.0 };
        Variable::new(is_kept).choose(&(input * scale)?, 0.0)
    }

    fn set_training(&mut self, is_training: bool) {
        self.is_training = is_training;
    }
}
