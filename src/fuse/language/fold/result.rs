//! The dtypes of results.

use crate::types::DType;

pub(super) fn whole(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::I64,
        DType::U64 => DType::U64,
        _ if dtype.is_integer() => DType::I64,
        _ => dtype,
    }
}

pub(super) fn same(dtype: DType) -> DType {
    dtype
}

pub(super) fn index(_: DType) -> DType {
    DType::I64
}

pub(super) fn test(_: DType) -> DType {
    DType::Bool
}

pub(super) fn squares(dtype: DType) -> DType {
    if matches!(dtype, DType::F64 | DType::C128) { DType::C128 } else { DType::C64 }
}
