//! Layers: modules with one input.
//!
//! Each refuses an input of a wrong shape with its name and both shapes. [`Sequential`] adds the layer's position.
//!
//! Tests: `tests/nn/layers.rs`, `tests/nn/batch_norm.rs`, `tests/nn/attention.rs`, `tests/nn/transformer.rs`.

mod activation;
mod attention;
mod batch_norm;
mod dropout;
mod embedding;
mod feed_forward;
mod layer_norm;
mod linear;
mod rms_norm;
mod sequential;
mod transformer;

pub use activation::{Activation, Gelu, GeluTanh, Relu, Sigmoid, Silu, Tanh};
pub use attention::{MultiHeadAttention, MultiHeadAttentionOptions};
pub use batch_norm::{BatchNorm1d, BatchNorm2d};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use feed_forward::{FeedForward, FeedForwardOptions};
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub(in crate::nn) use linear::linear;
pub use rms_norm::RmsNorm;
pub use sequential::Sequential;
pub use transformer::TransformerBlock;
