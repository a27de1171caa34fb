//! Arrays in files.
//!
//! [`HostArray`] is what a file holds: a dtype, a shape and the elements in row-major order, in host memory. [`npy`]
//! and [`npz`] read and write it. This floor knows neither devices nor tensors: both take and give slices.

mod array;
pub mod npy;
pub mod npz;

pub use array::HostArray;
