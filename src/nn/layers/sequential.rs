//! [`Sequential`], layers one after another.

use crate::error::{Error, Result};
use crate::nn::module::prefixed;
use crate::nn::{Module, Variable};

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
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Module>>,
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
}

impl Module for Sequential {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let mut x = input.clone();
        for (position, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x).map_err(|error| match error {
                Error::InvalidArgument { operation, found, wanted } => Error::InvalidArgument {
                    operation,
                    found: format!("{found} in layer {position}"),
                    wanted,
                },
                other => other,
            })?;
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
