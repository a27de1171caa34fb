//! CUDA C++ compiled at run time by NVRTC, and a cache of the results.
//!
//! A [`Program`] is source text with options, headers and requested template instances. [`Program::compile`] returns
//! machine code or PTX for a [`Target`], from the [`Cache`] if possible.
//!
//! NVRTC is loaded on first use (11.8 to 13.0, from a toolkit, a Python wheel or conda; `SELVEDGE_LIBNVRTC` names one).
//! Without NVRTC, compiling returns an error that lists the searched paths. Nothing here needs a device.
//!
//! Programs can include small headers that are part of the crate, without a toolkit:
//!
//! | header | contents, in namespace `selvedge` |
//! |---|---|
//! | `selvedge/complex.cuh` | `complex<float>`, `complex<double>`: layout of `num_complex::Complex` |
//! | `selvedge/half.cuh` | `f16`: layout of `half::f16`, arithmetic rounded once |
//! | `selvedge/bfloat16.cuh` | `bf16`: layout of `half::bf16`, arithmetic rounded once |
//! | `selvedge/integers.cuh` | `int8_t` to `uint64_t`, global; also as `<cstdint>` and `<stdint.h>` |
//!
//! Invariants: a cached result is the result that this NVRTC would produce for the program; no state of the cache
//! folder makes a compilation fail.

mod cache;
mod compiler;
mod diagnostics;
mod headers;
mod includes;
mod lookup;
mod program;
mod target;

pub use cache::{Cache, CacheStatistics};
pub use program::{Compiled, Program};
pub use target::Target;

use crate::error::Result;
use crate::sys;

/// Returns NVRTC's version, such as (12, 9).
///
/// # Errors
///
/// [`Error::LibraryUnavailable`](crate::Error::LibraryUnavailable) without NVRTC.
pub fn version() -> Result<(i32, i32)> {
    sys::nvrtc().map(compiler::version)
}

/// Returns the ISA of the PTX that NVRTC generates, such as (8, 8).
///
/// # Errors
///
/// As [`version`].
pub fn isa() -> Result<(i32, i32)> {
    compiler::isa(sys::nvrtc()?)
}

/// Returns the compute capabilities that NVRTC compiles for, times ten and ascending, such as 75, 80, 90.
///
/// # Errors
///
/// As [`version`].
pub fn architectures() -> Result<Vec<u32>> {
    compiler::architectures(sys::nvrtc()?)
}
