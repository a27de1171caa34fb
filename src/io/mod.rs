//! Arrays and saved states in files.
//!
//! [`HostArray`] holds the contents of a file: a dtype, a shape and the elements in row-major order, in host
//! memory. [`npy`] and [`npz`] read and write it. This module knows neither devices nor tensors: both take
//! and return slices.

mod array;
pub mod npy;
pub mod npz;
#[cfg(any(feature = "burst", feature = "srt"))]
pub(crate) mod state_file;

pub use array::HostArray;
