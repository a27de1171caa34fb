//! Layers: modules with one input.
//!
//! Each refuses an input of a wrong shape with its name and both shapes. [`Sequential`] adds the layer's position.
//!
//! Tests: `tests/nn/layers.rs`.

mod activation;
mod dropout;
mod embedding;
mod layer_norm;
mod linear;
mod sequential;

pub use activation::{Gelu, Relu, Sigmoid, Tanh};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use sequential::Sequential;
