//! Operators of tensors and numbers: `&x + y`, `2.0f32 * &x`, `-x`, `x += &y`.
//!
//! Tests: `tests/tensor/operators.rs`.

use std::ops;

use half::{bf16, f16};
use num_complex::Complex;

use super::elementwise::apply;
use super::operand::TensorOperand;
use super::tensor::Tensor;
use crate::error::Result;
use crate::fuse::Operation;

/// Operators with a tensor on the left. The right side is a tensor or a number, by value or by reference.
macro_rules! of_tensors {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $operation:ident;)*) => {$(
        of_tensors!(@left &Tensor, |left| left.into(), $trait $method $operation);
        of_tensors!(@left Tensor, |left| (&left).into(), $trait $method $operation);

        impl<'a, T: Into<TensorOperand<'a>>> ops::$assign<T> for Tensor {
            fn $assign_method(&mut self, right: T) {
                self.assign_result(Operation::$operation, right.into());
            }
        }

        impl ops::$assign<Tensor> for Tensor {
            fn $assign_method(&mut self, right: Tensor) {
                self.assign_result(Operation::$operation, (&right).into());
            }
        }
    )*};
    (@left $type:ty, |$left:ident| $operand:expr, $trait:ident $method:ident $operation:ident) => {
        impl<'a, T: Into<TensorOperand<'a>>> ops::$trait<T> for $type {
            type Output = Result<Tensor>;

            fn $method(self, right: T) -> Result<Tensor> {
                let $left = self;
                apply(Operation::$operation, &[$operand, right.into()])
            }
        }

        impl ops::$trait<Tensor> for $type {
            type Output = Result<Tensor>;

            fn $method(self, right: Tensor) -> Result<Tensor> {
                let $left = self;
                apply(Operation::$operation, &[$operand, (&right).into()])
            }
        }
    };
}

of_tensors! {
    Add add AddAssign add_assign Add;
    Sub sub SubAssign sub_assign Sub;
    Mul mul MulAssign mul_assign Mul;
    Div div DivAssign div_assign Div;
    Rem rem RemAssign rem_assign Remainder;
    BitAnd bitand BitAndAssign bitand_assign BitAnd;
    BitOr bitor BitOrAssign bitor_assign BitOr;
    BitXor bitxor BitXorAssign bitxor_assign BitXor;
    Shl shl ShlAssign shl_assign ShiftLeft;
    Shr shr ShrAssign shr_assign ShiftRight;
}

impl Tensor {
    /// Replaces the elements by the result of an operation. A failed operation makes the tensor hold the error, which every
    /// later use of it returns.
    fn assign_result(&mut self, operation: Operation, right: TensorOperand<'_>) {
        let error = self.in_place().operation(operation, &[right]).err();
        if let Some(error) = error {
            self.hold_error(error);
        }
    }
}

/// Operators with a number on the left.
macro_rules! of_numbers {
    ($($type:ty)*; $operators:tt) => {
        $(of_numbers!(@type $type, $operators);)*
    };
    (@type $type:ty, { $($trait:ident $method:ident $operation:ident;)* }) => {$(
        impl ops::$trait<&Tensor> for $type {
            type Output = Result<Tensor>;

            fn $method(self, right: &Tensor) -> Result<Tensor> {
                apply(Operation::$operation, &[self.into(), right.into()])
            }
        }

        impl ops::$trait<Tensor> for $type {
            type Output = Result<Tensor>;

            fn $method(self, right: Tensor) -> Result<Tensor> {
                apply(Operation::$operation, &[self.into(), (&right).into()])
            }
        }
    )*};
}

of_numbers! {
    bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize f16 bf16 f32 f64 Complex<f32> Complex<f64>;
    { Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; Rem rem Remainder; }
}

of_numbers! {
    bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize;
    { BitAnd bitand BitAnd; BitOr bitor BitOr; BitXor bitxor BitXor; Shl shl ShiftLeft; Shr shr ShiftRight; }
}

macro_rules! of_one_tensor {
    ($($trait:ident $method:ident $operation:ident;)*) => {$(
        impl ops::$trait for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self) -> Result<Tensor> {
                apply(Operation::$operation, &[self.into()])
            }
        }

        impl ops::$trait for Tensor {
            type Output = Result<Tensor>;

            fn $method(self) -> Result<Tensor> {
                apply(Operation::$operation, &[(&self).into()])
            }
        }
    )*};
}

of_one_tensor! {
    Neg neg Neg;
    Not not BitNot;
}
