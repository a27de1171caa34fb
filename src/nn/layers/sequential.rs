//! [`Sequential`], layers one after another.

use super::linear::{Linear, linear_chain};
use crate::error::{Error, Result};
use crate::nn::module::prefixed;
use crate::nn::{Activation, Module, Variable};

/// Applies layers in order. Names of parameters begin with the layer's position: `0.weight`.
///
/// ```
/// use selvedge::Device;
/// use selvedge::nn::{Initializer, Linear, Module, Relu, Sequential};
/// let initializer = Initializer::new(&Device::cpu());
/// let model = Sequential::new()
///     .with(Linear::new(784, 32, &initializer)?)
///     .with(Relu)
///     .with(Linear::new(32, 10, &initializer)?);
/// let names: Vec<String> = model.state_dict().into_keys().collect();
/// assert_eq!(names, ["0.bias", "0.weight", "2.bias", "2.weight"]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// Linear layers in a row, each with or without an [`Activation`] behind it, are one operation
/// ([`linear_layers`](crate::nn::linear_layers)).
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Module>>,
}

/// Linear layers with their activations, and the number of modules that they are.
struct Chain<'a> {
    layers: Vec<(&'a Linear, Option<Activation>)>,
    count: usize,
}

impl Sequential {
    /// Creates a model without layers, which returns its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Adds a layer at the end.
    #[must_use]
    pub fn with(mut self, layer: impl Module + 'static) -> Sequential {
        self.layers.push(Box::new(layer));
        self
    }

    /// Returns the number of layers.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Returns whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns the linear layers with their activations that begin at a position and fit one another.
    fn linear_chain(&self, start: usize) -> Chain<'_> {
        let mut chain = Chain { layers: Vec::new(), count: 0 };
        for module in &self.layers[start..] {
            let last = chain.layers.last_mut();
            match (module.as_linear(), module.as_activation(), last) {
                (Some(linear), _, None) => chain.layers.push((linear, None)),
                (Some(linear), _, Some((last, _))) if last.joins(linear) => {
                    chain.layers.push((linear, None));
                }
                (None, Some(activation), Some((_, own))) if own.is_none() => *own = Some(activation),
                _ => break,
            }
            chain.count += 1;
        }
        chain
    }
}

impl Module for Sequential {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let mut x = input.clone();
        let mut position = 0;
        while let Some(layer) = self.layers.get(position) {
            let _traced = crate::trace::span("layer", || (format!("layer {position}").into(), Vec::new()));
            let chain = self.linear_chain(position);
            let result = if chain.count > 1 { linear_chain(&x, &chain.layers) } else { layer.forward(&x) };
            x = result.map_err(|error| match error {
                Error::InvalidArgument { operation, found, wanted } => Error::InvalidArgument {
                    operation,
                    found: format!("{found} in layer {position}"),
                    wanted,
                },
                other => other,
            })?;
            position += chain.count.max(1);
        }
        Ok(x)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(position, layer)| prefixed(position, layer.named_parameters())).collect()
    }

    fn named_buffers(&self) -> Vec<(String, Variable)> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(position, layer)| prefixed(position, layer.named_buffers())).collect()
    }

    fn set_training(&mut self, is_training: bool) {
        self.layers.iter_mut().for_each(|layer| layer.set_training(is_training));
    }
}
