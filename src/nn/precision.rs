//! Dtypes of 16-bit floats: the wider one in which sums are computed and divided, and casts to the one in which products are.

use super::autograd::Variable;
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Tensor, fuse};
use crate::types::DType;
pub(super) use crate::types::wide_dtype;

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

/// Returns a variable of floats in its [`wide_dtype`].
pub(super) fn widened_variable(x: &Variable) -> Result<Variable> {
    in_compute_dtype(x, Some(wide_dtype(x.dtype())))
}

/// Quotients by a number of elements. A count is no data: f16 holds none past 65504, and bf16 few past 256.
pub(super) trait DividedByCount: Sized {
    /// Returns the quotient, computed in the [`wide_dtype`] and rounded once.
    fn divided_by_count(&self, count: usize) -> Result<Self>;
}

macro_rules! divided_by_count {
    ($($type:ty),*) => {$(
        impl DividedByCount for $type {
            fn divided_by_count(&self, count: usize) -> Result<$type> {
                let (dtype, wide) = (self.dtype(), wide_dtype(self.dtype()));
                if wide == dtype { self / count } else { (self.cast(wide)? / count)?.cast(dtype) }
            }
        }
    )*};
}

divided_by_count!(Tensor, Variable);

/// Returns the quotients by counts of i64, which broadcast, computed in the [`wide_dtype`] and rounded once.
pub(super) fn divided_by_counts(x: &Tensor, counts: &Tensor) -> Result<Tensor> {
    fuse([x, counts], |[x, counts]| {
        let wide = widened(x);
        (wide / counts.cast(wide.dtype())).cast(x.dtype())
    })
}
