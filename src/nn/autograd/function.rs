//! [`Function`], an operation with a backward of its own.

use super::value::Saved;
use super::variable::Variable;
use crate::error::Result;
use crate::tensor::Tensor;

/// An operation on tensors with its own gradients, such as one with a custom kernel: both functions may launch kernels by
/// [`tensor::kernel::run`](crate::tensor::kernel::run), as `tests/cases/custom_function.rs` does.
///
/// ```
/// use selvedge::nn::{Function, FunctionContext, Variable};
/// use selvedge::{Device, Result, Tensor};
///
/// /// x³, whose backward reads x.
/// struct Cube;
///
/// impl Function for Cube {
///     fn name(&self) -> &'static str {
///         "cube"
///     }
///
///     fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
///         context.save_input(0);
///         inputs[0].pow(3)
///     }
///
///     fn backward(&self, saved: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
///         Ok(vec![Some((&(saved[0].square()? * 3.0)? * gradient)?)])
///     }
/// }
///
/// let x = Variable::with_grad(Tensor::new([2.0f64], &Device::cpu())?)?;
/// Variable::apply(Cube, &[&x])?.backward()?;
/// assert_eq!(x.grad().map(|gradient| gradient.item::<f64>()).transpose()?, Some(12.0));
/// # Ok::<(), selvedge::Error>(())
/// ```
pub trait Function: Send + Sync + 'static {
    /// Returns the name that errors have.
    fn name(&self) -> &'static str;

    /// Computes the result, and tells the context what the backward reads.
    ///
    /// # Errors
    ///
    /// Errors of the computation.
    fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor>;

    /// Computes the gradient of each input from the saved tensors, in the order in which they were saved, and the result's
    /// gradient. `None` is 0.
    ///
    /// # Errors
    ///
    /// Errors of the computation.
    fn backward(&self, saved: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>>;
}

/// A value that a function saves.
enum SavedValue {
    Input(usize),
    Result,
    Tensor(Saved),
}

/// The values that a [`Function`] saves for its backward.
#[derive(Default)]
pub struct FunctionContext {
    saved: Vec<SavedValue>,
}

impl FunctionContext {
    /// Saves an input. Changing it in place before the backward is an error.
    pub fn save_input(&mut self, index: usize) {
        self.saved.push(SavedValue::Input(index));
    }

    /// Saves the result. Changing it in place before the backward is an error.
    pub fn save_result(&mut self) {
        self.saved.push(SavedValue::Result);
    }

    /// Saves another tensor.
    pub fn save(&mut self, tensor: Tensor) {
        self.saved.push(SavedValue::Tensor(Variable::new(tensor).save()));
    }
}

impl Variable {
    /// Applies a function to inputs.
    ///
    /// # Errors
    ///
    /// Errors of the function; [`Error::InvalidArgument`](crate::Error::InvalidArgument) if it saves an input that it does not
    /// have.
    pub fn apply(function: impl Function, inputs: &[&Variable]) -> Result<Variable> {
        let operation = function.name();
        let tensors: Vec<Tensor> = inputs.iter().map(|input| input.tensor()).collect();
        let mut context = FunctionContext::default();
        let result = Variable::new(function.forward(&mut context, &tensors.iter().collect::<Vec<_>>())?);
        let save = |value: SavedValue| {
            Ok(match value {
                SavedValue::Result => result.save(),
                SavedValue::Tensor(saved) => saved,
                SavedValue::Input(index) => match inputs.get(index) {
                    Some(input) => input.save(),
                    None => {
                        let found = format!("input {index} to save");
                        let wanted = format!("one of {} inputs", inputs.len());
                        return Err(crate::Error::invalid(operation, found, wanted));
                    }
                },
            })
        };
        let saved = context.saved.into_iter().map(save).collect::<Result<Vec<Saved>>>()?;
        let parents = inputs.iter().map(|input| input.tracked()).collect();
        Ok(result.recorded(operation, parents, |_| {
            Box::new(move |gradient| {
                let values = saved.iter().map(|saved| saved.tensor(operation)).collect::<Result<Vec<_>>>()?;
                function.backward(&values, gradient)
            })
        }))
    }
}
