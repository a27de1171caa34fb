//! What numbers and arrays are, without storage and without a device.
//!
//! [`DType`] is the type as a value, for what is known only at run time (a file's header, a command line); [`Element`]
//! is the same as a bound, for what is known at compile time. The two lists are one: every [`DType`] has exactly one
//! [`Element`], and `DTYPE.size()` is its `size_of`. [`complex`] has the arithmetic that a device repeats bit for bit.
//! [`Shape`] and [`Layout`] say how many elements there are and where they lie; views are layouts made from layouts.

pub mod complex;
mod dtype;
mod element;
mod layout;
mod promotion;
mod shape;
mod views;

pub use dtype::DType;
pub use element::{Bool, Element, F8E4M3, F8E5M2};
pub use layout::Layout;
pub use promotion::NumberKind;
pub(crate) use promotion::common_dtype;
pub use shape::{MAXIMUM_RANK, Shape};
pub use views::Slice;
