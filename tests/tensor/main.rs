//! Tensors on the CPU: what they hold, how they share it, and how they are written, against a model that is a list of
//! elements by index and knows no strides.

mod accumulation;
mod aliasing;
mod comparison;
mod conversions;
mod display;
mod dlpack;
mod errors;
mod few_elements;
#[cfg(feature = "io")]
mod files;
mod fused;
mod gradients;
mod index_expressions;
mod indexing;
mod iteration;
mod kernels;
mod large_counts;
mod matmul;
mod model;
mod narrow_casts;
mod operators;
mod properties;
mod random;
mod ranges;
mod reductions;
mod row_blocks;
mod row_errors;
mod row_gradients;
mod row_specials;
mod rows;
mod samples;
mod shape;
mod sorting;
mod statistics;
mod values;
