//! The operations of the list on tensors, as methods and as operators.
//!
//! Each is an expression of one node: there is no second way in which an element is computed.

use std::ops;

use num_complex::Complex;

use super::cached_operation::{CachedOperation, OperandKind};
use super::operand::TensorOperand;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Operation, with_operations};

impl Tensor {
    /// An operation by its value, on this and the other operands.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] for another number of operands, and as the operation's own method.
    pub fn operation(&self, operation: Operation, others: &[TensorOperand<'_>]) -> Result<Tensor> {
        match *others {
            [y] => run(operation, &[self.into(), y]),
            [y, z] => run(operation, &[self.into(), y, z]),
            // Another number is refused there.
            _ => CachedOperation::of(operation, OperandKind::of_tensor(self), others, None)?
                .run(&[self.into()]),
        }
    }
}

/// Of at most three operands.
fn run(operation: Operation, operands: &[TensorOperand<'_>]) -> Result<Tensor> {
    match operands {
        [first, others @ ..] => {
            let number = match *first {
                TensorOperand::Number(number) => Some(number),
                TensorOperand::Tensor(_) => None,
            };
            let kind = OperandKind::of(first);
            let mut space = [*first; 2];
            let (operation, others) =
                CachedOperation::by_value(operation, (kind, number), others, &mut space)?;
            CachedOperation::of_few(operation, kind, others, None).run_with(first, others)
        }
        [] => Err(Error::invalid(operation.name(), "no operands", "at least one")),
    }
}

macro_rules! methods {
    ($($variant:ident $name:ident $arity:tt $doc:literal;)*) => {
        /// The elementwise operations. Each gives a new tensor, of the shape to which its operands broadcast; operands are
        /// tensors or numbers. [`in_place`](Tensor::in_place) and [`with_output`](Tensor::with_output) have the same ones
        /// into memory that is there.
        ///
        /// # Errors
        ///
        /// [`DTypeMismatch`](crate::Error::DTypeMismatch) for dtypes for which the operation has no meaning,
        /// [`InvalidArgument`](crate::Error::InvalidArgument) for shapes that do not broadcast,
        /// [`DeviceMismatch`](crate::Error::DeviceMismatch) for tensors on several devices, and those of memory.
        impl Tensor {
            $(methods!(@one $variant $name $arity $doc);)*
        }
    };
    (@one $variant:ident $name:ident 1 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name(&self) -> Result<Tensor> {
            run(Operation::$variant, &[self.into()])
        }
    };
    (@one $variant:ident $name:ident 2 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name<'a>(&self, y: impl Into<TensorOperand<'a>>) -> Result<Tensor> {
            run(Operation::$variant, &[self.into(), y.into()])
        }
    };
    (@one $variant:ident $name:ident 3 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::missing_errors_doc)]
        pub fn $name<'a, 'b>(&self, y: impl Into<TensorOperand<'a>>, z: impl Into<TensorOperand<'b>>) -> Result<Tensor> {
            run(Operation::$variant, &[self.into(), y.into(), z.into()])
        }
    };
}

with_operations!(methods);

macro_rules! operators {
    ($($trait:ident $method:ident $operation:ident;)*) => {$(
        impl<'a, T: Into<TensorOperand<'a>>> ops::$trait<T> for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self, right: T) -> Result<Tensor> {
                run(Operation::$operation, &[self.into(), right.into()])
            }
        }

        impl<'a, T: Into<TensorOperand<'a>>> ops::$trait<T> for Tensor {
            type Output = Result<Tensor>;

            fn $method(self, right: T) -> Result<Tensor> {
                run(Operation::$operation, &[(&self).into(), right.into()])
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Remainder;
    BitAnd bitand BitAnd;
    BitOr bitor BitOr;
    BitXor bitxor BitXor;
    Shl shl ShiftLeft;
    Shr shr ShiftRight;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        numbers!(@operators $type: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Remainder);
    )*};
    (@operators $type:ty: $($trait:ident $method:ident $operation:ident),*) => {$(
        impl ops::$trait<&Tensor> for $type {
            type Output = Result<Tensor>;

            fn $method(self, right: &Tensor) -> Result<Tensor> {
                run(Operation::$operation, &[self.into(), right.into()])
            }
        }

        impl ops::$trait<Tensor> for $type {
            type Output = Result<Tensor>;

            fn $method(self, right: Tensor) -> Result<Tensor> {
                run(Operation::$operation, &[self.into(), (&right).into()])
            }
        }
    )*};
}

// One type of each kind, so that `2.0 * &x` and `1 - &x` say which.
numbers! { bool i64 f64 Complex<f32> Complex<f64> }

impl ops::Neg for &Tensor {
    type Output = Result<Tensor>;

    fn neg(self) -> Result<Tensor> {
        run(Operation::Neg, &[self.into()])
    }
}

impl ops::Not for &Tensor {
    type Output = Result<Tensor>;

    fn not(self) -> Result<Tensor> {
        run(Operation::BitNot, &[self.into()])
    }
}
