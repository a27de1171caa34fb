//! Elementwise operations of variables by their code, and products of matrices.

use super::super::super::arguments::slice;
use super::super::super::error::{Failure, Result};
use super::super::super::handle::sv_variable;
use super::super::super::tensor::elementwise::{check_arity, of_operation, operation};
use super::super::super::tensor::{Operand, sv_operand};
use super::{give_variable, map, variable};
use crate::nn::{self, VariableOperand};

/// A variable, or a tensor or a number where `variable` is 0. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_variable_operand {
    /// The handle of a variable, or 0.
    pub variable: sv_variable,
    /// The tensor, a constant, or the number where `variable` is 0.
    pub other: sv_operand,
}

/// An operand with a reference to its object.
enum HeldOperand {
    Variable(nn::Variable),
    Other(Operand),
}

impl HeldOperand {
    fn new(operand: &sv_variable_operand) -> Result<HeldOperand> {
        match (operand.variable, operand.other.tensor) {
            (0, _) => Operand::new(&operand.other, "operands").map(HeldOperand::Other),
            (handle, 0) => variable(handle, "operands").map(HeldOperand::Variable),
            (_, tensor) => {
                let found = format!("{tensor:#x} beside a variable");
                Err(Failure::argument("operands.other.tensor", found, "NULL, or no variable"))
            }
        }
    }

    fn operand(&self) -> VariableOperand<'_> {
        match self {
            HeldOperand::Variable(variable) => VariableOperand::Variable(variable),
            HeldOperand::Other(Operand::Tensor(tensor)) => VariableOperand::Tensor(tensor),
            HeldOperand::Other(Operand::Number(number)) => VariableOperand::Number(*number),
        }
    }
}

/// Computes an elementwise operation, one of `SV_OP_...`, on `count` operands, each a variable, a tensor or a number. At least one
/// of them is a variable or a tensor. Dtypes are promoted and shapes broadcast as in PyTorch, and the gradient of a broadcast operand
/// is summed.
///
/// No gradient passes through an operation without one, such as `SV_OP_FLOOR` or `SV_OP_LT`: its result is a constant.
///
/// # Safety
///
/// `operands` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_operation(
    operation: u32,
    operands: *const sv_variable_operand,
    count: usize,
    result: *mut sv_variable,
) -> i32 {
    give_variable("sv_variable_operation", result, &|| {
        let operation = self::operation(operation)?;
        check_arity(operation, count)?;
        let held = slice(operands, count, "operands")?.iter().map(HeldOperand::new);
        let held = of_operation(operation, held.collect::<Result<Vec<HeldOperand>>>())?;
        let operands: Vec<VariableOperand<'_>> = held.iter().map(HeldOperand::operand).collect();
        Ok(nn::apply(operation, &operands)?)
    })
}

/// Computes the product of matrices, vectors, and batches of them, which are broadcast. Either operand may be a constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variable_matmul(
    variable: sv_variable,
    right: sv_variable,
    result: *mut sv_variable,
) -> i32 {
    map("sv_variable_matmul", variable, result, &|x| Ok(x.matmul(&self::variable(right, "right")?)?))
}
