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
//! | `generation` | [`DecoderGeneration`] |
//! | `load`, `save` | Hugging Face folders |
//!
//! Invariants: a family's name decides nothing after `read_config`; each feature has one implementation, and the configuration
//! selects it.
//!
//! Tests: `tests/nn/decoder.rs`, `tests/nn/decoder_config.rs`, `tests/nn/decoder_files.rs`, `tests/cases/decoder.rs`.

mod block;
mod cache;
mod config;
mod families;
mod fields;
mod generation;
mod load;
mod model;
mod names;
mod parameters;
mod read_config;
mod rotary;
mod rotation;
mod save;
mod step;

pub use cache::DecoderCache;
pub use config::DecoderConfig;
pub use generation::{DecoderGeneration, GenerationOptions};
pub use load::DecoderOptions;
pub use model::Decoder;

/// The operation in errors of a configuration.
const CONFIG: &str = "DecoderConfig";
/// The operation in errors of a model.
const DECODER: &str = "Decoder";
