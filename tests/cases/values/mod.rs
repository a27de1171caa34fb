//! Tables of right values at the edges of dtypes, ranges and shapes, on the CPU (tests/tensor/values.rs) and a device
//! (tests/gpu/values.rs).
//!
//! A kind of wrong values that was once found is a function here, with inputs beside those that showed it, and runs as a method, as
//! a fused function, into an output and in place where the operation has these forms.

pub mod axes;
mod bounds;
pub mod edge_cases;
pub mod indexing;
pub mod integer_means;
pub mod products;
pub mod promotion;
pub mod scalars;
pub mod uniform;
