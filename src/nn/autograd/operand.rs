//! [`VariableOperand`], the other operand of an operation: a variable, a tensor or a number.

use half::{bf16, f16};
use num_complex::Complex;

use super::variable::Variable;
use crate::fuse::Number;
use crate::tensor::Tensor;

/// A variable, a tensor without a gradient, or a number.
#[derive(Clone, Copy)]
pub enum VariableOperand<'a> {
    /// A variable.
    Variable(&'a Variable),
    /// A tensor, which is a constant.
    Tensor(&'a Tensor),
    /// A number, which takes part by its kind.
    Number(Number),
}

impl<'a> From<&'a Variable> for VariableOperand<'a> {
    fn from(variable: &'a Variable) -> Self {
        VariableOperand::Variable(variable)
    }
}

impl<'a> From<&'a Tensor> for VariableOperand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        VariableOperand::Tensor(tensor)
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl From<$type> for VariableOperand<'_> {
            fn from(number: $type) -> Self {
                VariableOperand::Number(number.into())
            }
        }
    )*};
}

numbers! { bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize f16 bf16 f32 f64 Complex<f32> Complex<f64> }
