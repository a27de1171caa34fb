//! [`LayerNorm`], normalisation over the last axes.

use crate::error::{Error, Result};
use crate::nn::checks::check_non_negative;
use crate::nn::{Initializer, Module, Variable};
use crate::types::Shape;

/// Computes (x - mean) / sqrt(variance + eps) · weight + bias over the last axes, with the population's variance. A clone has the
/// same parameters.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    weight: Variable,
    bias: Variable,
    eps: f64,
}

impl LayerNorm {
    /// Creates a layer over last axes of these sizes, with a weight of ones, a bias of zeros and an eps of 1e-5.
    ///
    /// # Errors
    ///
    /// As [`Initializer::zeros`].
    pub fn new(normalized_shape: &[usize], initializer: &Initializer) -> Result<LayerNorm> {
        let (weight, bias) = (initializer.ones(normalized_shape)?, initializer.zeros(normalized_shape)?);
        Ok(LayerNorm { weight, bias, eps: 1e-5 })
    }

    /// Sets the number that is added to the variance.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite.
    pub fn with_eps(self, eps: f64) -> Result<LayerNorm> {
        check_non_negative("LayerNorm", "an eps", eps)?;
        Ok(LayerNorm { eps, ..self })
    }

    /// Returns the sum of an input and its residual, and the norm of the sum, both in one pass: a `residual` of the input's shape and
    /// dtype has no addition of its own.
    ///
    /// # Errors
    ///
    /// As the addition and [`forward`](Module::forward).
    pub fn forward_sum(&self, input: &Variable, residual: &Variable) -> Result<[Variable; 2]> {
        self.check(&input.shape())?;
        let normalized = self.weight.shape();
        input.add_layer_norm(residual, &normalized[..], Some(&self.weight), Some(&self.bias), self.eps)
    }

    fn check(&self, shape: &Shape) -> Result<()> {
        let normalized = self.weight.shape();
        if shape[..].ends_with(&normalized[..]) {
            return Ok(());
        }
        let found = format!("an input of shape {shape} for a weight of shape {normalized}");
        Err(Error::invalid("LayerNorm", found, "an input that ends with the weight's sizes"))
    }

    /// Returns weight, bias and eps.
    pub(in crate::nn) fn parts(&self) -> (&Variable, &Variable, f64) {
        (&self.weight, &self.bias, self.eps)
    }
}

impl Module for LayerNorm {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.check(&input.shape())?;
        let normalized = self.weight.shape();
        input.layer_norm(&normalized[..], Some(&self.weight), Some(&self.bias), self.eps)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        vec![("weight".to_owned(), self.weight.clone()), ("bias".to_owned(), self.bias.clone())]
    }
}
