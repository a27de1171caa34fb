//! [`LayerNorm`], normalisation over the last axes.

use crate::error::{Error, Result};
use crate::nn::checks::check_number;
use crate::nn::{Initializer, Module, Variable};
use crate::types::Shape;

/// Computes (x - mean) / sqrt(variance + eps) · weight + bias over the last axes, with the population's variance.
#[derive(Debug)]
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
        check_number("LayerNorm", "an eps", eps)?;
        Ok(LayerNorm { eps, ..self })
    }

    /// Returns weight, bias and eps.
    pub(in crate::nn) fn parts(&self) -> (&Variable, &Variable, f64) {
        (&self.weight, &self.bias, self.eps)
    }
}

impl Module for LayerNorm {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let (shape, normalized): (Shape, Shape) = (input.shape(), self.weight.shape());
        if !shape[..].ends_with(&normalized[..]) {
            let found = format!("an input of shape {shape} for a weight of shape {normalized}");
            return Err(Error::invalid("LayerNorm", found, "an input that ends with the weight's sizes"));
        }
        input.layer_norm(&normalized[..], Some(&self.weight), Some(&self.bias), self.eps)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        vec![("weight".to_owned(), self.weight.clone()), ("bias".to_owned(), self.bias.clone())]
    }
}
