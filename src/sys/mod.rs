//! The raw layer: types of the CUDA libraries, the functions that are called, and how they are found at run time.
//!
//! Nothing is linked. The types are generated from the CUDA 12.9 headers and committed (`driver.rs`, `nvrtc.rs`, `cublas.rs`,
//! `cublaslt.rs`, `nccl.rs`), so a build needs no toolkit; the libraries are opened when first asked for, so a program starts
//! without them; and a library or function that is not there is an error that says what was tried. To generate again:
//!
//! ```text
//! python3 scripts/build_bindings.py
//! ```
//!
//! which fetches the headers (folders of Python wheels) and `libclang`, and calls `build/bindings.rs` with them.
//!
//! What must stay true: no function here panics, with or without a driver, and a loaded library stays loaded. This module is no
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

bindings! { driver nvrtc cublas cublaslt nccl }

pub mod codes;
mod layout;
mod libraries;
mod linker;
mod loader;
mod report;
mod status;
mod symbols;
mod tables;

pub use libraries::{cublas, cublaslt, driver, loaded_driver, nccl, nvrtc, nvrtc_file, report};
pub use report::{Attempt, LibraryReport, MissingSymbol, Report};
pub use status::{Status, driver_error};
pub use symbols::{Binding, Loaded, Symbol, abi_version, cuda_version};
#[allow(unused_imports)] // Each floor above takes the ones that it needs.
pub(crate) use symbols::{call, call_raw};
pub use tables::{CublasApi, CublasLtApi, DriverApi, NcclApi, NvrtcApi};
