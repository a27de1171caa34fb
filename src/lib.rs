//! A GPU runtime that needs nothing but the NVIDIA driver at run time and nothing but `cargo` to build.

#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod driver;
pub mod error;
pub mod images;
#[cfg(feature = "io")]
pub mod io;
#[doc(hidden)]
pub mod sys;
pub mod types;

pub use error::{Error, Result};
