//! [`VariableOperand`], the other operand of an operation: a variable, a tensor or a number.

use std::sync::Arc;

use half::{bf16, f16};
use num_complex::Complex;

use super::tape::Node;
use super::value::Saved;
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

impl VariableOperand<'_> {
    /// Returns the node of a variable as [`Variable::tracked`] does.
    pub(super) fn tracked(&self) -> Option<Arc<Node>> {
        match self {
            VariableOperand::Variable(variable) => variable.tracked(),
            _ => None,
        }
    }

    /// Returns the operation without a gradient that a constant comes from, as [`Variable::stopped_by`] does.
    pub(super) fn stopped_by(&self) -> Option<&'static str> {
        match self {
            VariableOperand::Variable(variable) => variable.stopped_by(),
            _ => None,
        }
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

    /// Returns the operand as a variable with a node, or as a number.
    ///
    /// # Errors
    ///
    /// As [`Saved::variable`].
    pub(super) fn recorded(
        &self,
        operation: &'static str,
        node: Option<&Arc<Node>>,
    ) -> Result<RecordedOperand> {
        Ok(match self {
            SavedOperand::Value(saved) => {
                RecordedOperand::Variable(saved.variable(operation, node.cloned())?)
            }
            SavedOperand::Number(number) => RecordedOperand::Number(*number),
        })
    }
}

/// A saved operand as an operand of recorded operations.
pub(super) enum RecordedOperand {
    Variable(Variable),
    Number(Number),
}

impl RecordedOperand {
    pub(super) fn operand(&self) -> VariableOperand<'_> {
        match self {
            RecordedOperand::Variable(variable) => variable.into(),
            RecordedOperand::Number(number) => VariableOperand::Number(*number),
        }
    }
}
