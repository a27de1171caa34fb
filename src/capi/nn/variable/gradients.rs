//! Gradients: the backward, which adds to those of leaves, and gradients of chosen inputs, which may be recorded themselves.

use super::super::super::arguments::{out, slice_mut};
use super::super::super::error::Result;
use super::super::super::guard;
use super::super::super::handle::{sv_tensor, sv_variable};
use super::super::super::tensor::{self, flag};
use super::{enter_all, optional, variable, variables};
use crate::nn;

/// Writes the handle of a variable's gradient, a tensor, or 0 if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_grad(variable: sv_variable, result: *mut sv_tensor) -> i32 {
    guard::call("sv_variable_grad", || {
        let result = out(result, "result")?;
        result.write(self::variable(variable, "variable")?.grad().map_or(Ok(0), tensor::enter)?);
        Ok(())
    })
}

/// Adds the gradients of a variable to those of the variables that it was computed from. `gradient` is a tensor of its shape,
/// or 0 for 1 if it has one element.
///
/// The saved values are freed: a second backward is `SV_ERROR_BACKWARD`, and so is one through a value that was changed in place.
#[unsafe(no_mangle)]
pub extern "C" fn sv_variable_backward(variable: sv_variable, gradient: sv_tensor) -> i32 {
    guard::call("sv_variable_backward", || {
        let variable = self::variable(variable, "variable")?;
        match gradient {
            0 => variable.backward()?,
            gradient => variable.backward_with(&tensor::tensor(gradient, "gradient")?)?,
        }
        Ok(())
    })
}

/// Adds gradients as `sv_variable_backward`, and keeps the saved values for another backward.
#[unsafe(no_mangle)]
pub extern "C" fn sv_variable_backward_retain_graph(variable: sv_variable, gradient: sv_tensor) -> i32 {
    guard::call("sv_variable_backward_retain_graph", || {
        let variable = self::variable(variable, "variable")?;
        let gradient = tensor::optional(gradient, "gradient")?;
        Ok(variable.backward_retain_graph(gradient.as_ref())?)
    })
}

/// Removes the gradient of a variable.
#[unsafe(no_mangle)]
pub extern "C" fn sv_variable_zero_grad(variable: sv_variable) -> i32 {
    guard::call("sv_variable_zero_grad", || {
        self::variable(variable, "variable")?.zero_grad();
        Ok(())
    })
}

/// Returns the gradients of a variable with respect to inputs.
fn gradients(
    variable: &nn::Variable,
    gradient: Option<&nn::Variable>,
    inputs: &[&nn::Variable],
) -> Result<Vec<nn::Variable>> {
    Ok(match gradient {
        Some(gradient) => variable.gradients_with(gradient, inputs),
        None => variable.gradients(inputs),
    }?)
}

/// Writes the gradients of a variable with respect to `count` inputs, as variables: zeros for an input that it does not depend on.
/// No variable's `sv_variable_grad` changes, and the saved values stay. `gradient` is that of the variable, of its shape, or NULL
/// for 1 if it has one element.
///
/// `create_graph` is 1 to record the gradients, so that they have gradients themselves, or 0 for constants. With 1, an operation
/// between the inputs and the variable that has no second derivative is `SV_ERROR_BACKWARD`, and the message names it. Elementwise
/// operations, products, linear layers, sums, means, views, joins and casts have one.
///
/// The caller owns one reference to each of `results`.
///
/// # Safety
///
/// `inputs` points to `count` handles, and `results` to space for as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_gradients(
    variable: sv_variable,
    gradient: sv_variable,
    inputs: *const sv_variable,
    count: usize,
    create_graph: i32,
    results: *mut sv_variable,
) -> i32 {
    guard::call("sv_variable_gradients", || {
        let variable = self::variable(variable, "variable")?;
        let gradient = optional(gradient, "gradient")?;
        let results = slice_mut(results, count, "results")?;
        let inputs = variables(inputs, count, "inputs")?;
        let inputs: Vec<&nn::Variable> = inputs.iter().collect();
        let found = match flag(create_graph, "create_graph")? {
            true => gradients(&variable, gradient.as_ref(), &inputs)?,
            false => nn::no_grad(|| gradients(&variable, gradient.as_ref(), &inputs))?,
        };
        results.copy_from_slice(&enter_all(found)?);
        Ok(())
    })
}
