//! The dtypes in which elements are folded.

use super::result::whole;
use crate::types::DType;

pub(super) fn sums(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        _ => whole(dtype),
    }
}

/// Predicate registers cannot be shuffled or stored.
pub(super) fn extremes(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U8 } else { dtype }
}

pub(super) fn tests(_: DType) -> DType {
    DType::U8
}

pub(super) fn squares(dtype: DType) -> DType {
    if matches!(dtype, DType::F64 | DType::C128) { DType::F64 } else { DType::F32 }
}
