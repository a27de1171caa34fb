//! [`Linear`], a product with a weight.

use crate::error::{Error, Result};
use crate::nn::precision::in_compute_dtype;
use crate::nn::{Initializer, Module, Variable};
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
#[derive(Debug)]
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
    let shape = input.shape();
    let mut sizes: Vec<isize> = shape.iter().map(|&size| size as isize).collect();
    let is_matrix = sizes.len() == 2;
    // One matrix instead of a batch: the weight's gradient is one product, not the sum of a batch of them.
    let rows = shape.iter().rev().skip(1).product::<usize>() as isize;
    let inputs = sizes.pop().unwrap_or(1);
    let matrix = if is_matrix { input.clone() } else { input.reshape(&[rows, inputs])? };
    let result = match bias {
        // On a device the bias is a kernel of its own: an epilogue narrows the choice of engines.
        Some(bias) if weight.device().is_cpu() && has_epilogue(weight, bias) => {
            matrix.matmul_with(weight, Some(bias))?
        }
        Some(bias) => (matrix.matmul(weight)? + bias)?,
        None => matrix.matmul(weight)?,
    };
    if is_matrix {
        return Ok(result);
    }
    sizes.extend(result.shape().last().map(|&size| size as isize));
    result.reshape(&sizes)
}

/// Returns whether a product can add the bias with the bits of an addition after it.
fn has_epilogue(weight: &Variable, bias: &Variable) -> bool {
    matches!(weight.dtype(), DType::F32 | DType::F64) && bias.dtype() == weight.dtype()
}

impl Module for Linear {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        let (shape, weight) = (input.shape(), self.weight.shape());
        let &[inputs, _] = &weight[..] else {
            return Err(Error::invalid(NAME, format!("a weight of shape {weight}"), "a matrix"));
        };
        if shape.last() != Some(&inputs) {
            let found = format!("an input of shape {shape} for a weight of shape {weight}");
            return Err(Error::invalid(NAME, found, format!("{inputs} as the input's last size")));
        }
        let cast = |x: &Variable| in_compute_dtype(x, self.compute_dtype);
        let bias = self.bias.as_ref().map(cast).transpose()?;
        linear(&cast(input)?, &cast(&self.weight)?, bias.as_ref())
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let bias = self.bias.iter().map(|bias| ("bias".to_owned(), bias.clone()));
        std::iter::once(("weight".to_owned(), self.weight.clone())).chain(bias).collect()
    }
}
