//! The recognition network.

use crate::error::{Error, Result};
use crate::gemm::Activation;
use crate::nn::{Dropout, Initializer, Linear, Module, Variable};
use crate::tensor::{Device, Generator, Matmul, Tensor};

/// Linear layers with ReLU and dropout between.
pub(super) struct Network {
    layers: Vec<Linear>,
    dropout: Dropout,
    dropout_probability: f64,
    /// The generator of dropout and of the training's permutations.
    generator: Generator,
}

impl Network {
    /// Creates a network of layers between these widths, in the evaluation mode.
    pub fn new(widths: &[usize], dropout_probability: f64, seed: u64, device: &Device) -> Result<Network> {
        if let Some(at) = widths.iter().position(|&width| width == 0) {
            let found = format!("0 features behind layer {at} of {widths:?}");
            return Err(Error::invalid("Classifier", found, "at least one feature in every layer"));
        }
        let initializer = Initializer::new(device).with_seed(seed);
        let pairs = widths.iter().zip(widths.iter().skip(1));
        let layers = pairs.map(|(&inputs, &outputs)| Linear::new(inputs, outputs, &initializer));
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let generator = Generator::new(seed);
        let mut dropout = Dropout::new(dropout_probability, &generator)?;
        dropout.eval();
        Ok(Network { layers, dropout, dropout_probability, generator })
    }

    /// Returns the generator of a training, which continues from the seed.
    pub fn restart_generator(&self, seed: u64) -> &Generator {
        self.generator.manual_seed(seed);
        &self.generator
    }

    /// Returns the widths of the layers, from the features to the classes.
    pub fn widths(&self) -> Vec<usize> {
        let shapes = self.layers.iter().map(|layer| layer.weight().shape());
        let outputs: Vec<usize> = shapes.clone().filter_map(|shape| shape.last().copied()).collect();
        shapes.take(1).filter_map(|shape| shape.first().copied()).chain(outputs).collect()
    }

    pub fn dropout_probability(&self) -> f64 {
        self.dropout_probability
    }

    /// Returns the weight and the bias of each layer that has one.
    pub fn layers(&self) -> impl Iterator<Item = (Tensor, Option<Tensor>)> + '_ {
        self.layers.iter().map(|layer| (layer.weight().tensor(), layer.bias().map(Variable::tensor)))
    }

    /// Returns the logits of rows without a tape: a product with its bias and activation for each layer.
    pub fn logits(&self, features: &Tensor) -> Result<Tensor> {
        let mut x = features.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            let bias = layer.bias().map(Variable::tensor);
            let mut product = Matmul::new();
            if let Some(bias) = &bias {
                product = product.bias(bias);
            }
            if at + 1 < self.layers.len() {
                product = product.activation(Activation::Relu);
            }
            x = product.of(&x, &layer.weight().tensor())?;
        }
        Ok(x)
    }
}

impl Module for Network {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let mut x = input.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x)?;
            if at + 1 < self.layers.len() {
                x = self.dropout.forward(&x.relu()?)?;
            }
        }
        Ok(x)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let named = self.layers.iter().enumerate().flat_map(|(at, layer)| {
            let own = layer.named_parameters().into_iter();
            own.map(move |(name, parameter)| (format!("layers.{at}.{name}"), parameter))
        });
        named.collect()
    }

    fn set_training(&mut self, is_training: bool) {
        self.dropout.set_training(is_training);
    }
}
