//! CUDA C++ compiled at run time by NVRTC, and a cache of what came of it.
//!
//! [`Program`] is the text with options, headers and the template instances that are wanted; [`Program::compile`] gives machine
//! code or PTX for a [`Target`], from the [`Cache`] where it is there.
//!
//! NVRTC is looked for when it is first needed (11.8 to 13.0, from a toolkit, a Python wheel or conda; `SELVEDGE_LIBNVRTC` names one),
//! and where there is none, compiling is an error that lists where it was looked for. Nothing here needs a device.
//!
//! Programs can include small headers that come with the crate, so no toolkit's are needed:
//!
//! | header | what it has, in namespace `selvedge` |
//! |---|---|
//! | `selvedge/complex.cuh` | `complex<float>`, `complex<double>`: layout of `num_complex::Complex` |
//! | `selvedge/half.cuh` | `f16`: layout of `half::f16`, arithmetic rounded once |
//! | `selvedge/bfloat16.cuh` | `bf16`: layout of `half::bf16`, arithmetic rounded once |
//! | `selvedge/integers.cuh` | `int8_t` to `uint64_t`, global; also as `<cstdint>` and `<stdint.h>` |
//!
//! What must stay true: what comes from the cache is what this NVRTC would give for this program, and no state of the cache's folder
//! makes a compilation fail.

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

/// NVRTC's version, such as (12, 9).
///
/// # Errors
///
/// [`Error::LibraryUnavailable`](crate::Error::LibraryUnavailable) without NVRTC.
pub fn version() -> Result<(i32, i32)> {
    sys::nvrtc().map(compiler::version)
}

/// The ISA of the PTX that NVRTC writes, such as (8, 8).
///
/// # Errors
///
/// As [`version`].
pub fn isa() -> Result<(i32, i32)> {
    compiler::isa(sys::nvrtc()?)
}

/// The compute capabilities that NVRTC compiles for, times ten and ascending, such as 75, 80, 90.
///
/// # Errors
///
/// As [`version`].
pub fn architectures() -> Result<Vec<u32>> {
    compiler::architectures(sys::nvrtc()?)
}
