//! [`Linear`], a product with a weight.

use crate::error::{Error, Result};
use crate::nn::{Initializer, Module, Variable};

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
#[derive(Debug)]
pub struct Linear {
    weight: Variable,
    bias: Option<Variable>,
}

impl Linear {
    /// Creates a layer with a bias of zeros and a weight of [`Initializer::weight`]: uniform in ±sqrt(2 / inputs) unless the
    /// initializer has another distribution.
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
        Ok(Linear { weight: initializer.weight(inputs, outputs)?, bias: None })
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

impl Module for Linear {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let (shape, weight) = (input.shape(), self.weight.shape());
        let &[inputs, outputs] = &weight[..] else {
            return Err(Error::invalid(NAME, format!("a weight of shape {weight}"), "a matrix"));
        };
        let Some((_, outer)) = shape[..].split_last().filter(|(size, _)| **size == inputs) else {
            let found = format!("an input of shape {shape} for a weight of shape {weight}");
            return Err(Error::invalid(NAME, found, format!("{inputs} as the input's last size")));
        };
        // One matrix instead of a batch: the weight's gradient is one product, not the sum of a batch of them.
        let rows: usize = outer.iter().product();
        let is_matrix = shape.rank() == 2;
        let matrix =
            if is_matrix { input.clone() } else { input.reshape(&[rows as isize, inputs as isize])? };
        let mut result = matrix.matmul(&self.weight)?;
        if let Some(bias) = &self.bias {
            result = (result + bias)?;
        }
        if is_matrix {
            return Ok(result);
        }
        let sizes: Vec<isize> = outer.iter().chain([&outputs]).map(|&size| size as isize).collect();
        result.reshape(&sizes)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let bias = self.bias.iter().map(|bias| ("bias".to_owned(), bias.clone()));
        std::iter::once(("weight".to_owned(), self.weight.clone())).chain(bias).collect()
    }
}
