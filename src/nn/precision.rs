//! The dtype in which 16-bit floats are computed.

use crate::fuse::Expr;
use crate::types::DType;

/// Returns f32 for f16 and bf16, and any other dtype as it is.
pub(super) fn compute_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Returns the operand in its [`compute_dtype`].
pub(super) fn widened(x: Expr<'_>) -> Expr<'_> {
    x.cast(compute_dtype(x.dtype()))
}
