//! Arrays and saved states in files.
//!
//! [`HostArray`] holds the contents of a file: a dtype, a shape and the elements in row-major order, in host
//! memory. [`npy`] and [`npz`] read and write it; [`safetensors`] reads it. This module knows neither devices
//! nor tensors: its readers and writers take and return slices.

mod array;
pub(crate) mod new_file;
pub mod npy;
pub mod npz;
mod parallel_read;
pub mod safetensors;
#[cfg(any(feature = "burst", feature = "srt"))]
pub(crate) mod state_file;

pub use array::HostArray;
