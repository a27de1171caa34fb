//! Python's operators on tensors: `x + y`, `2 - x`, `x += y`, `x < y`, `x @ y`.

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use selvedge::fuse::Operation;
use selvedge::tensor;

use super::PyTensor;
use crate::arguments::{Operand, TensorArgument};
use crate::error::Result;

impl PyTensor {
    /// Returns `self operation other`.
    pub(super) fn binary(&self, py: Python<'_>, operation: Operation, other: &Operand) -> Result<PyTensor> {
        self.map(py, |tensor| tensor::apply(operation, &[tensor.into(), other.operand()]))
    }

    fn reflected(&self, py: Python<'_>, operation: Operation, other: &Operand) -> Result<PyTensor> {
        self.map(py, |tensor| tensor::apply(operation, &[other.operand(), tensor.into()]))
    }

    fn in_place(&self, py: Python<'_>, operation: Operation, other: &Operand) -> Result<()> {
        self.write(py, |tensor| tensor.operation(operation, &[other.operand()]).map(|_| ()))
    }
}

/// Passes the operators with two operands to a macro that makes methods of them.
macro_rules! with_operators {
    ($callback:ident) => {
        $callback! {
            __add__ __radd__ __iadd__ Add;
            __sub__ __rsub__ __isub__ Sub;
            __mul__ __rmul__ __imul__ Mul;
            __truediv__ __rtruediv__ __itruediv__ Div;
            __floordiv__ __rfloordiv__ __ifloordiv__ FloorDivide;
            __mod__ __rmod__ __imod__ Remainder;
            __and__ __rand__ __iand__ BitAnd;
            __or__ __ror__ __ior__ BitOr;
            __xor__ __rxor__ __ixor__ BitXor;
            __lshift__ __rlshift__ __ilshift__ ShiftLeft;
            __rshift__ __rrshift__ __irshift__ ShiftRight;
        }
    };
}
pub(crate) use with_operators;

/// Returns the operation of a comparison.
pub(crate) fn comparison_operation(comparison: CompareOp) -> Operation {
    match comparison {
        CompareOp::Eq => Operation::Equal,
        CompareOp::Ne => Operation::NotEqual,
        CompareOp::Lt => Operation::Less,
        CompareOp::Le => Operation::LessEqual,
        CompareOp::Gt => Operation::Greater,
        CompareOp::Ge => Operation::GreaterEqual,
    }
}

macro_rules! operators {
    ($($method:ident $reflected:ident $in_place:ident $operation:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $method(&self, py: Python<'_>, other: Operand) -> Result<PyTensor> {
                    self.binary(py, Operation::$operation, &other)
                }

                fn $reflected(&self, py: Python<'_>, other: Operand) -> Result<PyTensor> {
                    self.reflected(py, Operation::$operation, &other)
                }

                fn $in_place(&self, py: Python<'_>, other: Operand) -> Result<()> {
                    self.in_place(py, Operation::$operation, &other)
                }
            )*
        }
    };
}

with_operators! { operators }

#[pymethods]
impl PyTensor {
    fn __pow__(
        &self,
        py: Python<'_>,
        other: Operand,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyTensor> {
        self.binary(py, Operation::Pow, &other)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: Operand,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyTensor> {
        self.reflected(py, Operation::Pow, &other)
    }

    fn __ipow__(&self, py: Python<'_>, other: Operand, _modulo: Option<&Bound<'_, PyAny>>) -> Result<()> {
        self.in_place(py, Operation::Pow, &other)
    }

    fn __matmul__(&self, py: Python<'_>, other: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.matmul(&other.0))
    }

    fn __rmatmul__(&self, py: Python<'_>, other: TensorArgument) -> Result<PyTensor> {
        self.map(py, |tensor| other.0.matmul(tensor))
    }

    fn __neg__(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.neg())
    }

    fn __pos__(&self, py: Python<'_>) -> PyTensor {
        self.tensor(py).into()
    }

    fn __abs__(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.abs())
    }

    fn __invert__(&self, py: Python<'_>) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.bit_not())
    }

    fn __richcmp__(&self, py: Python<'_>, other: Operand, comparison: CompareOp) -> Result<PyTensor> {
        self.binary(py, comparison_operation(comparison), &other)
    }
}
