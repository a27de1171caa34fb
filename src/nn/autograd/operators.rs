//! Operators of variables, tensors and numbers: `&x + y`, `2.0f32 * &x`, `-x`.

use std::ops;

use half::{bf16, f16};
use num_complex::Complex;

use super::elementwise::apply;
use super::operand::VariableOperand;
use super::variable::Variable;
use crate::error::Result;
use crate::fuse::Operation;

macro_rules! of_variables {
    ($($trait:ident $method:ident $operation:ident;)*) => {$(
        of_variables!(@left &Variable, $trait $method $operation);
        of_variables!(@left Variable, $trait $method $operation);
    )*};
    (@left $type:ty, $trait:ident $method:ident $operation:ident) => {
        impl<'a, T: Into<VariableOperand<'a>>> ops::$trait<T> for $type {
            type Output = Result<Variable>;

            fn $method(self, right: T) -> Result<Variable> {
                apply(Operation::$operation, &[VariableOperand::Variable(&self), right.into()])
            }
        }

        impl ops::$trait<Variable> for $type {
            type Output = Result<Variable>;

            fn $method(self, right: Variable) -> Result<Variable> {
                apply(Operation::$operation, &[VariableOperand::Variable(&self), (&right).into()])
            }
        }
    };
}

of_variables! { Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; Rem rem Remainder; }

macro_rules! of_numbers {
    ($($type:ty)*) => {$(
        of_numbers!(@type $type: Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; Rem rem Remainder;);
    )*};
    (@type $type:ty: $($trait:ident $method:ident $operation:ident;)*) => {$(
        impl ops::$trait<&Variable> for $type {
            type Output = Result<Variable>;

            fn $method(self, right: &Variable) -> Result<Variable> {
                apply(Operation::$operation, &[self.into(), right.into()])
            }
        }

        impl ops::$trait<Variable> for $type {
            type Output = Result<Variable>;

            fn $method(self, right: Variable) -> Result<Variable> {
                apply(Operation::$operation, &[self.into(), (&right).into()])
            }
        }
    )*};
}

of_numbers! { bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize f16 bf16 f32 f64 Complex<f32> Complex<f64> }

impl ops::Neg for &Variable {
    type Output = Result<Variable>;

    fn neg(self) -> Result<Variable> {
        apply(Operation::Neg, &[self.into()])
    }
}

impl ops::Neg for Variable {
    type Output = Result<Variable>;

    fn neg(self) -> Result<Variable> {
        apply(Operation::Neg, &[(&self).into()])
    }
}
