//! The elementwise operations as methods, by their names in Rust.

use pyo3::prelude::*;
use selvedge::fuse::Operation;
use selvedge::tensor;

use super::PyTensor;
use crate::arguments::{NumberArgument, Operand};
use crate::error::Result;

macro_rules! methods {
    ([$($unary:ident)*] [$($binary:ident $operation:ident)*] [$($ternary:ident($second:ident, $third:ident) $last:ident)*]) => {
        #[pymethods]
        impl PyTensor {
            $(fn $unary(&self, py: Python<'_>) -> Result<PyTensor> {
                self.map(py, |tensor| tensor.$unary())
            })*

            $(fn $binary(&self, py: Python<'_>, other: Operand) -> Result<PyTensor> {
                self.binary(py, Operation::$operation, &other)
            })*

            $(fn $ternary(&self, py: Python<'_>, $second: Operand, $third: Operand) -> Result<PyTensor> {
                self.map(py, |tensor| {
                    tensor::apply(Operation::$last, &[tensor.into(), $second.operand(), $third.operand()])
                })
            })*
        }
    };
}

methods! {
    [
        neg abs sign sqrt rsqrt reciprocal square floor ceil trunc round frac relu is_nan is_infinite is_finite logical_not
        bit_not real imag conj exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asinh acosh atanh sigmoid silu softplus sin
        cos tan asin acos atan sinc angle cbrt erf erfc gelu gelu_tanh lgamma logit signbit radians degrees
    ]
    [
        add Add sub Sub mul Mul div Div mul_high MulHigh floor_divide FloorDivide trunc_divide TruncDivide
        remainder Remainder fmod Fmod minimum Minimum maximum Maximum fmin Fmin fmax Fmax eq Equal ne NotEqual lt Less
        le LessEqual gt Greater ge GreaterEqual logical_and LogicalAnd logical_or LogicalOr logical_xor LogicalXor
        bit_and BitAnd bit_or BitOr bit_xor BitXor shift_left ShiftLeft shift_right ShiftRight copysign Copysign
        hypot Hypot atan2 Atan2 pow Pow log_add_exp LogAddExp xlogy Xlogy xlog1py Xlog1py
        heaviside Heaviside next_after NextAfter
    ]
    [clamp(low, high) Clamp choose(yes, no) Select fma(factor, summand) Fma lerp(end, weight) Lerp]
}

#[pymethods]
impl PyTensor {
    /// The tensor with NaN and infinities replaced.
    #[pyo3(signature = (nan=0.0, positive_infinity=None, negative_infinity=None))]
    fn nan_to_num(
        &self,
        py: Python<'_>,
        nan: f64,
        positive_infinity: Option<f64>,
        negative_infinity: Option<f64>,
    ) -> Result<PyTensor> {
        self.map(py, |tensor| tensor.nan_to_num(nan, positive_infinity, negative_infinity))
    }

    /// Replaces all elements by a number.
    fn fill_(&self, py: Python<'_>, number: NumberArgument) -> Result<()> {
        self.write(py, |tensor| tensor.fill(number.0).map(|_| ()))
    }
}
