//! Element types, shapes and layouts, independent of storage and device.
//!
//! [`DType`] is an element type as a value, for types known only at run time (a file's header, a command
//! line). [`Element`] is the same as a trait, for types known at compile time. Every [`DType`] has exactly
//! one [`Element`], and `DTYPE.size()` is its `size_of`. [`complex`] has the complex arithmetic that a device
//! repeats bit for bit. [`Shape`] holds the sizes of an array, and [`Layout`] the offsets of its elements;
//! views are layouts derived from layouts.

pub mod complex;
mod dtype;
mod element;
mod layout;
mod promotion;
mod shape;
mod views;

pub use dtype::DType;
pub(crate) use dtype::wide_dtype;
pub use element::{Bool, Element, F8E4M3, F8E5M2};
pub use layout::Layout;
pub use promotion::NumberKind;
pub(crate) use promotion::common_dtype;
pub(crate) use shape::divisor;
pub use shape::{MAX_RANK, Shape};
pub use views::Slice;
