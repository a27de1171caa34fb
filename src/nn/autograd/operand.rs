//! [`VariableOperand`], the other operand of an operation: a variable, a tensor or a number.

use half::{bf16, f16};
use num_complex::Complex;

use super::tape::Saved;
use super::variable::Variable;
use crate::error::Result;
use crate::fuse::Number;
use crate::tensor::{Tensor, TensorOperand};

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

/// An operand with its tensor held: a variable's is a handle of its own.
#[allow(clippy::large_enum_variant, reason = "few exist, for the time of a call")]
pub(super) enum HeldOperand {
    Tensor(Tensor),
    Number(Number),
}

impl HeldOperand {
    pub(super) fn of(operand: &VariableOperand<'_>) -> HeldOperand {
        match *operand {
            VariableOperand::Variable(variable) => HeldOperand::Tensor(variable.tensor()),
            VariableOperand::Tensor(tensor) => HeldOperand::Tensor(tensor.clone()),
            VariableOperand::Number(number) => HeldOperand::Number(number),
        }
    }

    pub(super) fn tensor(&self) -> Option<&Tensor> {
        match self {
            HeldOperand::Tensor(tensor) => Some(tensor),
            HeldOperand::Number(_) => None,
        }
    }

    pub(super) fn operand(&self) -> TensorOperand<'_> {
        match self {
            HeldOperand::Tensor(tensor) => tensor.into(),
            HeldOperand::Number(number) => (*number).into(),
        }
    }
}

/// An operand that a backward rule reads.
pub(super) enum SavedOperand {
    Value(Saved),
    Number(Number),
}

impl SavedOperand {
    pub(super) fn of(operand: &VariableOperand<'_>) -> SavedOperand {
        match *operand {
            VariableOperand::Variable(variable) => SavedOperand::Value(variable.save()),
            VariableOperand::Tensor(tensor) => SavedOperand::Value(Variable::new(tensor.clone()).save()),
            VariableOperand::Number(number) => SavedOperand::Number(number),
        }
    }

    /// Returns the operand as [`Saved::tensor`] does.
    ///
    /// # Errors
    ///
    /// As there.
    pub(super) fn held(&self, operation: &'static str) -> Result<HeldOperand> {
        Ok(match self {
            SavedOperand::Value(saved) => HeldOperand::Tensor(saved.tensor(operation)?),
            SavedOperand::Number(number) => HeldOperand::Number(*number),
        })
    }
}
