//! [`Linear`], a product with a weight.

use crate::error::{Error, Result};
use crate::nn::precision::in_compute_dtype;
use crate::nn::{Activation, Initializer, LinearLayer, Module, Variable, linear_layers};
use crate::types::DType;

const NAME: &str = "Linear";

/// Computes x W + b along the last axis, with a weight of shape (inputs, outputs) and a bias of shape (outputs).
///
/// ```
/// use selvedge::nn::{Initializer, Linear, Module, Variable};
/// use selvedge::{DType, Device, Tensor};
/// let device = Device::cpu();
/// let layer = Linear::new(3, 2, &Initializer::new(&device))?;
/// let x = Variable::new(Tensor::ones(&[4, 5, 3], DType::F32, &device)?);
/// assert_eq!(layer.forward(&x)?.shape()[..], [4, 5, 2]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// A clone has the same parameters.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Variable,
    bias: Option<Variable>,
    /// The dtype of the product; `None` is that of the operands.
    compute_dtype: Option<DType>,
}

impl Linear {
    /// Creates a layer with a bias of zeros and a weight of [`Initializer::weight`]: uniform in ±sqrt(2 / inputs) unless the
    /// initializer has another distribution.
    ///
    /// PyTorch's `nn.Linear` starts with a weight and a bias that are uniform in ±1 / sqrt(inputs):
    ///
    /// ```
    /// use selvedge::nn::{Initializer, Linear, WeightDistribution, no_grad};
    /// use selvedge::{DType, Device, Tensor};
    /// let device = Device::cpu();
    /// let weights = WeightDistribution::KaimingUniform { gain: 1.0 / 3f64.sqrt() };
    /// let layer = Linear::new(16, 3, &Initializer::new(&device).with_weights(weights))?;
    /// let bound = 1.0 / 16f64.sqrt();
    /// let values = Tensor::uniform(-bound, bound, &[3], DType::F32, &device)?;
    /// if let Some(bias) = layer.bias() {
    ///     no_grad(|| bias.update(|elements| elements.assign(&values).map(|_| ())))?;
    ///     assert_eq!(bias.tensor().to_vec::<f32>()?, values.to_vec::<f32>()?);
    /// }
    /// let largest = layer.weight().tensor().abs()?.max_all()?.item::<f32>()?;
    /// assert!(0.2 < largest && largest <= 0.250001);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Initializer::weight`]; [`Error::InvalidArgument`] without inputs.
    pub fn new(inputs: usize, outputs: usize, initializer: &Initializer) -> Result<Linear> {
        let bias = initializer.zeros(&[outputs])?;
        Ok(Linear { bias: Some(bias), ..Linear::without_bias(inputs, outputs, initializer)? })
    }

    /// Creates a layer without a bias.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn without_bias(inputs: usize, outputs: usize, initializer: &Initializer) -> Result<Linear> {
        if inputs == 0 {
            return Err(Error::invalid(NAME, "0 inputs", "at least one"));
        }
        let weight = initializer.weight(inputs, outputs)?;
        Ok(Linear { weight, bias: None, compute_dtype: initializer.compute_dtype() })
    }

    /// Creates a layer with or without a bias.
    pub(super) fn with_bias(
        has_bias: bool,
        inputs: usize,
        outputs: usize,
        initializer: &Initializer,
    ) -> Result<Linear> {
        match has_bias {
            true => Linear::new(inputs, outputs, initializer),
            false => Linear::without_bias(inputs, outputs, initializer),
        }
    }

    /// Returns the weight.
    pub fn weight(&self) -> &Variable {
        &self.weight
    }

    /// Returns the bias.
    pub fn bias(&self) -> Option<&Variable> {
        self.bias.as_ref()
    }
}

/// Returns the products of the last axis and a weight (inputs, outputs), plus a bias.
///
/// # Errors
///
/// As [`Variable::matmul`].
pub(in crate::nn) fn linear(
    input: &Variable,
    weight: &Variable,
    bias: Option<&Variable>,
) -> Result<Variable> {
    linear_layers(input, &[LinearLayer { weight, bias, activation: None }])
}

/// Returns the result of layers that [join](Linear::joins) with their activations, as one operation.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with both shapes for an input that does not fit, and as [`linear_layers`].
pub(super) fn linear_chain(input: &Variable, layers: &[(&Linear, Option<Activation>)]) -> Result<Variable> {
    let Some((first, _)) = layers.first() else { return Ok(input.clone()) };
    let (shape, weight) = (input.shape(), first.weight.shape());
    let &[inputs, _] = &weight[..] else {
        return Err(Error::invalid(NAME, format!("a weight of shape {weight}"), "a matrix"));
    };
    if shape.last() != Some(&inputs) {
        let found = format!("an input of shape {shape} for a weight of shape {weight}");
        return Err(Error::invalid(NAME, found, format!("{inputs} as the input's last size")));
    }
    let mut operands = Vec::with_capacity(layers.len());
    for (layer, activation) in layers {
        let cast = |x: &Variable| in_compute_dtype(x, layer.compute_dtype);
        operands.push((cast(&layer.weight)?, layer.bias.as_ref().map(cast).transpose()?, *activation));
    }
    let layers: Vec<LinearLayer<'_>> = operands
        .iter()
        .map(|(weight, bias, activation)| LinearLayer {
            weight,
            bias: bias.as_ref(),
            activation: *activation,
        })
        .collect();
    linear_layers(&in_compute_dtype(input, first.compute_dtype)?, &layers)
}

impl Linear {
    /// Returns whether a layer behind this one takes its result as it is: the same width, and computed in the same dtype.
    pub(super) fn joins(&self, next: &Linear) -> bool {
        let is_same_dtype = self.compute_dtype == next.compute_dtype
            && (self.compute_dtype.is_some() || self.weight.dtype() == next.weight.dtype());
        is_same_dtype && self.weight.shape().last() == next.weight.shape().first()
    }
}

impl Module for Linear {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        linear_chain(input, &[(self, None)])
    }

    fn as_linear(&self) -> Option<&Linear> {
        Some(self)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let bias = self.bias.iter().map(|bias| ("bias".to_owned(), bias.clone()));
        std::iter::once(("weight".to_owned(), self.weight.clone())).chain(bias).collect()
    }
}
