//! The elementwise operations of the compiler as methods of [`Tensor`].
//!
//! Each method runs an expression of one node, so the CPU and a device compute an element alike.

use super::cached_operation::{CachedOperation, OperandKind};
use super::operand::TensorOperand;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Operation, with_operations};

impl Tensor {
    /// Applies an operation that is chosen at run time to this tensor and the other operands.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] for another number of operands, and as the operation's own method.
    pub fn operation(&self, operation: Operation, others: &[TensorOperand<'_>]) -> Result<Tensor> {
        match *others {
            [y] => apply(operation, &[self.into(), y]),
            [y, z] => apply(operation, &[self.into(), y, z]),
            // Another number is refused there.
            _ => CachedOperation::of(operation, OperandKind::of_tensor(self), others, None)?
                .run(&[self.into()]),
        }
    }
}

/// Applies an elementwise operation to tensors and numbers, of which at least one is a tensor.
///
/// ```
/// use selvedge::fuse::Operation;
/// use selvedge::tensor::{Device, Tensor, apply};
/// let x = Tensor::new([1.0f32, 2.0, 3.0], &Device::cpu())?;
/// assert_eq!(apply(Operation::Pow, &[2.0.into(), (&x).into()])?.to_vec::<f32>()?, [2.0, 4.0, 8.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::ArgumentCount`] for another number of operands, and as the operation's own method.
pub fn apply(operation: Operation, operands: &[TensorOperand<'_>]) -> Result<Tensor> {
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
        /// The elementwise operations. Each returns a new tensor of the shape to which its operands broadcast. Operands are
        /// tensors or numbers. [`in_place`](Tensor::in_place) and [`with_output`](Tensor::with_output) have the same methods,
        /// which write to an existing tensor.
        ///
        /// # Errors
        ///
        /// [`DTypeMismatch`](crate::Error::DTypeMismatch) for dtypes that the operation does not support,
        /// [`InvalidArgument`](crate::Error::InvalidArgument) for shapes that do not broadcast,
        /// [`DeviceMismatch`](crate::Error::DeviceMismatch) for tensors on several devices, and errors of memory.
        impl Tensor {
            $(methods!(@one $variant $name $arity $doc);)*
        }
    };
    (@one $variant:ident $name:ident 1 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name(&self) -> Result<Tensor> {
            apply(Operation::$variant, &[self.into()])
        }
    };
    (@one $variant:ident $name:ident 2 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name<'a>(&self, y: impl Into<TensorOperand<'a>>) -> Result<Tensor> {
            apply(Operation::$variant, &[self.into(), y.into()])
        }
    };
    (@one Select $name:ident 3 $doc:literal) => {
        methods!(@three Select $name $doc #[doc(alias = "where")]);
    };
    (@one $variant:ident $name:ident 3 $doc:literal) => {
        methods!(@three $variant $name $doc);
    };
    (@three $variant:ident $name:ident $doc:literal $(#[$alias:meta])?) => {
        #[doc = $doc]
        $(#[$alias])?
        #[allow(clippy::missing_errors_doc)]
        pub fn $name<'a, 'b>(&self, y: impl Into<TensorOperand<'a>>, z: impl Into<TensorOperand<'b>>) -> Result<Tensor> {
            apply(Operation::$variant, &[self.into(), y.into(), z.into()])
        }
    };
}

with_operations!(methods);
