//! A thin safe layer over cuBLAS products, and over cuBLASLt products with an epilogue.
//!
//! Both libraries are optional: [`gemm`](crate::gemm) uses its own kernels, and cuBLAS on request. cuBLAS is loaded on
//! first use (11.2 to 13, from a toolkit, a Python wheel or conda; `SELVEDGE_LIBCUBLAS` names one), and cuBLASLt from
//! the same folder. Without the library, a call returns an error that lists the searched paths.
//!
//! Matrices are column-major, as in cuBLAS. For row-major matrices, swap the operands. Invariants:
//!
//! - One thread at a time uses a handle, in the context that it was created in. Its stream and workspace are set for
//!   every call, so that no two calls share one.
//! - Partial sums are never rounded to a type narrower than the accumulation type.
//! - A handle is never destroyed, since that waits for the device.

mod fused;
mod handle;

pub(crate) use fused::{EpilogueFunction, FusedCall, FusedHandle};
pub(crate) use handle::{Call, Handle, Matrix, Number, Transposition};

use crate::error::Result;
use crate::sys;

/// Returns cuBLAS's version, such as (12, 9, 1).
///
/// # Errors
///
/// [`Error::LibraryUnavailable`](crate::Error::LibraryUnavailable) without cuBLAS.
pub fn version() -> Result<(i32, i32, i32)> {
    let number = sys::cublas()?.loaded.number;
    Ok((number / 10_000, number / 100 % 100, number % 100))
}
