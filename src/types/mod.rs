//! What numbers and arrays are, without storage and without a device.
//!
//! [`DType`] is the type as a value, for what is known only at run time (a file's header, a command line); [`Element`]
//! is the same as a bound, for what is known at compile time. The two lists are one: every [`DType`] has exactly one
//! [`Element`], and `DTYPE.size()` is its `size_of`. [`complex`] has the arithmetic that a device repeats bit for bit.

pub mod complex;
mod dtype;
mod element;

pub use dtype::DType;
pub use element::{Bool, Element, F8E4M3, F8E5M2};
