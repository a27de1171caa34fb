//! Variables, which record the operations of models, and losses.

use super::super::arguments::out;
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::{Object, object, sv_tensor, sv_variable};
use super::super::tensor::{enter, flag, give, tensor};
use crate::nn;
use crate::tensor::Tensor;

/// A variable behind a handle.
#[derive(Clone)]
pub(crate) struct VariableObject(pub(super) nn::Variable);
object!(VariableObject, Variable);

/// The mean of (input - target)².
pub const SV_LOSS_MSE: i32 = 1;
/// Of probabilities and targets from 0 to 1: -t ln x - (1 - t) ln(1 - x).
pub const SV_LOSS_BINARY_CROSS_ENTROPY: i32 = 2;
/// `SV_LOSS_BINARY_CROSS_ENTROPY` of the sigmoid of the input.
pub const SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS: i32 = 3;
/// -ln softmax(input) at labels, which are integers. The classes are along axis 1, or along axis 0 of a vector. -100 is no label.
pub const SV_LOSS_CROSS_ENTROPY: i32 = 4;
/// -input at labels, for logarithms of probabilities.
pub const SV_LOSS_NLL: i32 = 5;
/// The divergence of the target from an input of logarithms of probabilities: the sum over a row, and the mean over rows.
pub const SV_LOSS_KL_DIV: i32 = 6;

/// Returns the mean loss of a batch.
pub(super) fn loss(loss: i32, input: &nn::Variable, target: &Tensor) -> Result<nn::Variable> {
    let mean = nn::Reduction::Mean;
    let options = nn::CrossEntropyOptions::default();
    let constant = || nn::Variable::new(target.clone());
    Ok(match loss {
        SV_LOSS_MSE => nn::mse_loss(input, &constant(), mean),
        SV_LOSS_BINARY_CROSS_ENTROPY => nn::binary_cross_entropy(input, &constant(), mean),
        SV_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS => {
            nn::binary_cross_entropy_with_logits(input, &constant(), mean)
        }
        SV_LOSS_CROSS_ENTROPY => nn::cross_entropy(input, target, options),
        SV_LOSS_NLL => nn::nll_loss(input, target, options),
        SV_LOSS_KL_DIV => nn::kl_div(input, &constant(), false, nn::Reduction::BatchMean),
        other => return Err(Failure::argument("loss", other, "one of SV_LOSS_...")),
    }?)
}

/// Returns the variable of a handle.
pub(super) fn variable(handle: u64, name: &str) -> Result<nn::Variable> {
    Ok(VariableObject::table().get(handle, name)?.0)
}

/// Runs the body of a function whose result is a variable, and writes its handle.
///
/// # Safety
///
/// `result` is NULL or points to a `u64` that this call alone uses.
pub(super) unsafe fn give_variable(
    function: &'static str,
    result: *mut u64,
    work: &dyn Fn() -> Result<nn::Variable>,
) -> i32 {
    guard::call(function, || {
        let result = out(result, "result")?;
        result.write(VariableObject::table().insert(VariableObject(work()?))?);
        Ok(())
    })
}

/// Creates a variable of a tensor's elements. `requires_grad` is 1 for one whose gradient `sv_variable_backward` computes, or 0
/// for a constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_create(
    tensor: sv_tensor,
    requires_grad: i32,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_variable_create", result, &|| {
        let tensor = self::tensor(tensor, "tensor")?;
        Ok(match flag(requires_grad, "requires_grad")? {
            true => nn::Variable::with_grad(tensor)?,
            false => nn::Variable::new(tensor),
        })
    })
}

/// Gives the tensor of a variable, which shares its elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_tensor(variable: sv_variable, result: *mut sv_tensor) -> i32 {
    give("sv_variable_tensor", result, || Ok(self::variable(variable, "variable")?.tensor()))
}

/// Writes the handle of a variable's gradient, a tensor, or 0 if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_grad(variable: sv_variable, result: *mut sv_tensor) -> i32 {
    guard::call("sv_variable_grad", || {
        let result = out(result, "result")?;
        result.write(self::variable(variable, "variable")?.grad().map_or(Ok(0), enter)?);
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
            gradient => variable.backward_with(&self::tensor(gradient, "gradient")?)?,
        }
        Ok(())
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

/// Computes one of `SV_LOSS_...` of a variable and a target, a tensor: the mean over a batch, as a variable of one element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_loss(
    variable: sv_variable,
    loss: i32,
    target: sv_tensor,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_variable_loss", result, &|| {
        let (input, target) = (self::variable(variable, "variable")?, tensor(target, "target")?);
        self::loss(loss, &input, &target)
    })
}
