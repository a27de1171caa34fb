//! A decoder-only transformer that its configuration describes: the models that Hugging Face folders hold.
//!
//! | file | contents |
//! |---|---|
//! | `config` | [`DecoderConfig`], the description |
//! | `fields` | keys of a JSON object as checked values |
//! | `families` | the differences between families, one table |
//! | `read_config` | `config.json` and `generation_config.json` to a [`DecoderConfig`] |
//! | `names` | the names of weights |
//! | `rotary` | inverse frequencies and scalings of rotary positions |
//! | `rotation` | the tables of cosines and sines, and the rotation of heads |
//! | `parameters` | norms and projections, and the list of a model's parameters |
//! | `block` | one layer: attention and feed-forward |
//! | `model` | [`Decoder`] |
//! | `cache` | [`DecoderCache`] |
//! | `cached` | passes over new positions of a cache |
//! | `batch_invariance` | whether the bits of a sequence depend on the others |
//! | `step` | one new position on a CUDA device, as one graph |
//! | `host` | one new position on the CPU, by slices instead of tensors |
//! | `generation` | [`DecoderGeneration`] |
//! | `load`, `save` | Hugging Face folders |
//! | `lora`, `lora_files` | [`LoraOptions`]: low-rank adapters, and their files |
//! | `text_loss` | [`TextLoss`]: the perplexity of a text |
//! | `training` | the loss, and the configuration in checkpoints |
//!
//! Invariants: a family's name decides nothing after `read_config`; each feature has one implementation, and the configuration
//! selects it.
//!
//! Tests: `tests/nn/decoder.rs`, `tests/nn/decoder_config.rs`, `tests/nn/decoder_files.rs`, `tests/nn/decoder_training.rs`, `tests/nn/lora.rs`, `tests/nn/batch_invariance.rs`,
//! `tests/cases/decoder.rs`.

mod batch_invariance;
mod block;
mod cache;
mod cached;
mod config;
mod families;
mod fields;
mod generation;
mod host;
mod load;
mod lora;
mod lora_files;
mod model;
mod names;
mod parameters;
mod read_config;
mod rotary;
mod rotation;
mod rows;
mod save;
mod step;
mod step_state;
mod text_loss;
mod training;

pub use cache::DecoderCache;
pub use config::DecoderConfig;
pub use generation::{DecoderGeneration, GenerationOptions};
pub use load::DecoderOptions;
pub use lora::LoraOptions;
pub use model::Decoder;
pub use text_loss::TextLoss;

/// The operation in errors of a configuration.
const CONFIG: &str = "DecoderConfig";
/// The operation in errors of a model.
const DECODER: &str = "Decoder";
