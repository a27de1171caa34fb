//! [`FeedForward`], two products with an activation between them.

use std::sync::Arc;

use super::linear::linear_chain;
use crate::error::{Error, Result};
use crate::nn::module::prefixed;
use crate::nn::{GeluTanh, Initializer, Linear, Module, Variable};

/// The form of a [`FeedForward`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedForwardOptions {
    /// The outputs of the first product: 4 times the width.
    pub hidden: Option<usize>,
    /// True if both products have a bias, as by default.
    pub has_bias: bool,
}

impl Default for FeedForwardOptions {
    fn default() -> Self {
        FeedForwardOptions { hidden: None, has_bias: true }
    }
}

/// Computes a product of the last axis to a hidden width, an activation, by default [`GeluTanh`], and a product back.
///
/// With one of the [`Activation`](crate::nn::Activation)s it is one operation ([`linear_layers`](crate::nn::linear_layers)).
///
/// Parameters have GPT-2's names: `c_fc` is the first product and `c_proj` the second one, whose weight is a residual's
/// ([`Initializer::with_residual_weights`]).
pub struct FeedForward {
    c_fc: Linear,
    activation: Arc<dyn Module>,
    c_proj: Linear,
    width: usize,
}

impl FeedForward {
    /// Creates a layer.
    ///
    /// # Errors
    ///
    /// As [`Linear::new`].
    pub fn new(width: usize, options: FeedForwardOptions, initializer: &Initializer) -> Result<FeedForward> {
        let FeedForwardOptions { hidden, has_bias } = options;
        let hidden = hidden.unwrap_or(4 * width);
        Ok(FeedForward {
            c_fc: Linear::with_bias(has_bias, width, hidden, initializer)?,
            activation: Arc::new(GeluTanh),
            c_proj: Linear::with_bias(has_bias, hidden, width, &initializer.for_residual())?,
            width,
        })
    }

    /// Returns a layer of the same parameters and the same activation, which has no mode.
    pub(super) fn shared(&self) -> FeedForward {
        let FeedForward { c_fc, activation, c_proj, width } = self;
        FeedForward {
            c_fc: c_fc.clone(),
            activation: activation.clone(),
            c_proj: c_proj.clone(),
            width: *width,
        }
    }

    /// Returns `c_fc` and `c_proj`.
    pub(in crate::nn) fn projections(&self) -> [&Linear; 2] {
        [&self.c_fc, &self.c_proj]
    }

    /// Returns the size of the last axis of inputs and results.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Sets the activation, which has no parameters.
    #[must_use]
    pub fn with_activation(self, activation: impl Module + 'static) -> FeedForward {
        FeedForward { activation: Arc::new(activation), ..self }
    }
}

impl Module for FeedForward {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let shape = input.shape();
        if shape.last() != Some(&self.width) {
            let found =
                format!("an input of shape {shape} for a weight of shape {}", self.c_fc.weight().shape());
            return Err(Error::invalid("FeedForward", found, format!("{} as the last size", self.width)));
        }
        if let Some(activation) = self.activation.as_activation() {
            return linear_chain(input, &[(&self.c_fc, Some(activation)), (&self.c_proj, None)]);
        }
        self.c_proj.forward(&self.activation.forward(&self.c_fc.forward(input)?)?)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let first = prefixed("c_fc", self.c_fc.named_parameters());
        first.chain(prefixed("c_proj", self.c_proj.named_parameters())).collect()
    }

    fn set_training(&mut self, is_training: bool) {
        // The activation of a shared layer has no mode.
        if let Some(activation) = Arc::get_mut(&mut self.activation) {
            activation.set_training(is_training);
        }
    }
}
