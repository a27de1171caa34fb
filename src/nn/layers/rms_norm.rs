//! [`RmsNorm`], normalisation by the root mean square.

use crate::error::{Error, Result};
use crate::nn::checks::check_non_negative;
use crate::nn::{Initializer, Module, Variable};

/// Computes x / sqrt(mean(x²) + eps) · weight over the last axes.
#[derive(Debug)]
pub struct RmsNorm {
    weight: Variable,
    eps: Option<f64>,
}

impl RmsNorm {
    /// Creates a layer over last axes of these sizes, with a weight of ones. The eps is the machine epsilon of the input's
    /// dtype, as in PyTorch.
    ///
    /// # Errors
    ///
    /// As [`Initializer::ones`].
    pub fn new(normalized_shape: &[usize], initializer: &Initializer) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: initializer.ones(normalized_shape)?, eps: None })
    }

    /// Sets the number that is added to the mean square.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is negative or not finite.
    pub fn with_eps(self, eps: f64) -> Result<RmsNorm> {
        check_non_negative("RmsNorm", "an eps", eps)?;
        Ok(RmsNorm { eps: Some(eps), ..self })
    }
}

impl Module for RmsNorm {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let (shape, normalized) = (input.shape(), self.weight.shape());
        if !shape[..].ends_with(&normalized[..]) {
            let found = format!("an input of shape {shape} for a weight of shape {normalized}");
            return Err(Error::invalid("RmsNorm", found, "an input that ends with the weight's sizes"));
        }
        input.rms_norm(&normalized[..], Some(&self.weight), self.eps)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        vec![("weight".to_owned(), self.weight.clone())]
    }
}
