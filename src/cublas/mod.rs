//! cuBLAS, where there is one: its products of matrices, and with cuBLASLt, which lies beside it, those that have an epilogue,
//! in a thin safe layer.
//!
//! Nothing needs it: [`gemm`](crate::gemm) multiplies by kernels of its own, and by cuBLAS where that is asked for. It is
//! looked for when it is first needed (11.2 to 13, from a toolkit, a Python wheel or conda; `SELVEDGE_LIBCUBLAS` names one),
//! and where there is none, that is an error that lists where it was looked for.
//!
//! Matrices are column-major here, as they are to cuBLAS; who has rows swaps the operands. What must stay true:
//!
//! - A handle is used by one thread at a time, in the context that it was made in, and its stream and workspace are
//!   set for every call, so that no two calls share one.
//! - Partial sums are never rounded to a narrower type than the one that is added in.
//! - A handle is never destroyed, since that waits for the device.

mod fused;
mod handle;

pub(crate) use fused::{Function, FusedCall, FusedHandle};
pub(crate) use handle::{Call, Handle, Matrix, Number, Transposition};

use crate::error::Result;
use crate::sys;

/// cuBLAS's version, such as (12, 9, 1).
///
/// # Errors
///
/// [`Error::LibraryUnavailable`](crate::Error::LibraryUnavailable) without cuBLAS.
pub fn version() -> Result<(i32, i32, i32)> {
    let number = sys::cublas()?.loaded.number;
    Ok((number / 10_000, number / 100 % 100, number % 100))
}
