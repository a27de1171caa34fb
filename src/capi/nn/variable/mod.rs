//! Variables: tensors whose operations are recorded, so that a loss of a program's own has gradients.
//!
//! Operations take the codes, axes and index expressions of the functions of tensors. A function that gives a variable writes a
//! new handle, of which the caller owns one reference.
//!
//! Tests: `tests/capi/variables.rs`, `tests/capi/variable_scopes.rs`, `tests/capi/classes_variables.hpp`.

pub mod elementwise;
pub mod gradients;
pub mod indexing;
pub mod losses;
pub mod no_grad;
pub mod normalization;
pub mod reduce;
pub mod shape;

use super::super::arguments::{out, slice};
use super::super::error::Result;
use super::super::guard;
use super::super::handle::{Object, object, sv_tensor, sv_variable};
use super::super::tensor::{Operand, device, dtype, flag, give, sv_operand, tensor};
use crate::nn;

/// A variable behind a handle.
#[derive(Clone)]
pub(crate) struct VariableObject(nn::Variable);
object!(VariableObject, Variable);

/// Returns the variable of a handle.
pub(super) fn variable(handle: u64, name: &str) -> Result<nn::Variable> {
    Ok(VariableObject::table().get(handle, name)?.0)
}

/// Returns a variable that may be absent, as handle 0.
fn optional(handle: u64, name: &str) -> Result<Option<nn::Variable>> {
    if handle == 0 { Ok(None) } else { variable(handle, name).map(Some) }
}

/// Returns the variables of handles.
///
/// # Safety
///
/// As [`slice`].
unsafe fn variables(handles: *const u64, count: usize, name: &str) -> Result<Vec<nn::Variable>> {
    slice(handles, count, name)?.iter().map(|handle| variable(*handle, name)).collect()
}

/// Enters a variable and returns its handle.
fn enter(variable: nn::Variable) -> Result<u64> {
    VariableObject::table().insert(VariableObject(variable))
}

/// Enters all variables, or none.
fn enter_all(variables: Vec<nn::Variable>) -> Result<Vec<u64>> {
    let mut handles = Vec::with_capacity(variables.len());
    for variable in variables {
        match enter(variable) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                for handle in handles {
                    VariableObject::table().release(handle, "results")?;
                }
                return Err(error);
            }
        }
    }
    Ok(handles)
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
        result.write(enter(work()?)?);
        Ok(())
    })
}

/// [`give_variable`] of an operation on the variable of a handle.
///
/// # Safety
///
/// As [`give_variable`].
unsafe fn map(
    function: &'static str,
    variable: u64,
    result: *mut u64,
    work: &dyn Fn(&nn::Variable) -> Result<nn::Variable>,
) -> i32 {
    give_variable(function, result, &|| work(&self::variable(variable, "variable")?))
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

/// Gives a constant with the same elements: no gradient passes through it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_detach(variable: sv_variable, result: *mut sv_variable) -> i32 {
    map("sv_variable_detach", variable, result, &|x| Ok(x.detach()))
}

/// Writes 1 if operations on a variable are recorded, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_requires_grad(variable: sv_variable, requires_grad: *mut i32) -> i32 {
    guard::call("sv_variable_requires_grad", || {
        let result = out(requires_grad, "requires_grad")?;
        result.write(i32::from(self::variable(variable, "variable")?.requires_grad()));
        Ok(())
    })
}

/// Writes 1 if no recorded operation made a variable, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_is_leaf(variable: sv_variable, is_leaf: *mut i32) -> i32 {
    guard::call("sv_variable_is_leaf", || {
        let result = out(is_leaf, "is_leaf")?;
        result.write(i32::from(self::variable(variable, "variable")?.is_leaf()));
        Ok(())
    })
}

/// Replaces the elements of a variable by those of a tensor, which is broadcast and cast, or by a number. A leaf that requires a
/// gradient changes within `sv_no_grad_begin` or `sv_no_grad` alone, and the result of a recorded operation does not change.
///
/// A later backward that reads the old elements is `SV_ERROR_BACKWARD`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_assign(variable: sv_variable, value: *const sv_operand) -> i32 {
    guard::call("sv_variable_assign", || {
        let variable = self::variable(variable, "variable")?;
        let value = Operand::pointer(value, "value")?;
        Ok(variable.update(|target| target.assign(value.operand()).map(drop))?)
    })
}

/// Casts the elements of a variable to one of `SV_DTYPE_...`. The gradient is cast back; integers and bools have none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_cast(
    variable: sv_variable,
    dtype: i32,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_cast", variable, result, &|x| Ok(x.cast(self::dtype(dtype)?)?))
}

/// Copies the elements of a variable to a device. The gradient is copied back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_to_device(
    variable: sv_variable,
    device: i32,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_to_device", variable, result, &|x| Ok(x.to(&self::device(device)?)?))
}
