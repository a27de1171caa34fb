//! The raw layer: types and functions of the CUDA libraries, found at run time.
//!
//! Nothing is linked. The types are generated from the CUDA 12.9 headers and committed (`driver.rs`, `nvrtc.rs`,
//! `cublas.rs`, `cublaslt.rs`, `nccl.rs`, `cupti.rs`, and from those of 13.0 `cupti13.rs`), so a build needs no toolkit. The libraries are opened on first use, so a
//! program starts without them. A missing library or function is an error that lists the attempts. To regenerate the
//! types:
//!
//! ```text
//! python3 scripts/build_bindings.py
//! ```
//!
//! The script fetches the headers (folders of Python wheels) and `libclang`, and calls `build/bindings.rs` with them.
//!
//! Invariants: no function here panics, with or without a driver; a loaded library stays loaded. This module is not
//! part of the stable API.

#![allow(missing_docs)]

macro_rules! bindings {
    ($($name:ident)+) => {$(
        #[rustfmt::skip]
        #[allow(
            clippy::all,
            clippy::undocumented_unsafe_blocks,
            dead_code,
            missing_docs,
            non_camel_case_types,
            non_snake_case,
            non_upper_case_globals
        )]
        pub mod $name;
    )+};
}

bindings! { driver nvrtc cublas cublaslt nccl cupti cupti13 }

pub mod codes;
mod layout;
mod libraries;
mod linker;
mod loader;
mod missing;
mod report;
mod status;
mod symbols;
mod tables;

pub use libraries::{cublas, cublaslt, cupti, driver, loaded_driver, nccl, nvrtc, nvrtc_file, report};
pub use report::{Attempt, LibraryReport, MissingSymbol, Report};
pub use status::{Status, driver_error};
pub use symbols::{Binding, Loaded, Symbol, abi_version, cuda_version};
#[allow(unused_imports)] // Each layer above uses the ones that it needs.
pub(crate) use symbols::{call, call_raw};
pub use tables::{CublasApi, CublasLtApi, CuptiApi, DriverApi, NcclApi, NvrtcApi};
