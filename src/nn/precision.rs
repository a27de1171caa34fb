//! Dtypes of 16-bit floats: the wider one in which sums are computed, and casts to the one in which products are.

use super::autograd::Variable;
use crate::error::Result;
use crate::fuse::Expr;
use crate::types::DType;

/// Returns f32 for f16 and bf16, and any other dtype as it is.
pub(super) fn wide_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Returns the operand in its [`wide_dtype`].
pub(super) fn widened(x: Expr<'_>) -> Expr<'_> {
    x.cast(wide_dtype(x.dtype()))
}

/// Returns floats in the dtype in which a layer computes, and any other variable as it is. `None` is the variable's own.
pub(super) fn in_compute_dtype(x: &Variable, compute_dtype: Option<DType>) -> Result<Variable> {
    match compute_dtype {
        Some(dtype) if x.dtype() != dtype && x.dtype().is_float() => x.cast(dtype),
        _ => Ok(x.clone()),
    }
}
