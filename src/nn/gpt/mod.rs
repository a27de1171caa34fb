//! A decoder-only transformer, GPT-2's architecture: configuration, model and generation.
//!
//! | file | contents |
//! |---|---|
//! | `config` | [`GptConfig`], sizes and options with the JSON names of Hugging Face's GPT-2 |
//! | `model` | [`Gpt`], the [`Module`](super::Module), with the parameter names of Hugging Face's GPT-2 |
//! | `files` | [`Gpt::save`] and [`Gpt::load`] |
//! | `cache` | [`KeyValueCache`], the keys and values of earlier positions |
//! | `decode` | one new position on the CPU, by slices instead of tensors |
//! | `sampler` | [`Sampler`]: temperature, top-k and top-p draws from logits |
//! | `generation` | [`Generation`], an iterator of new ids |
//!
//! Tests: `tests/nn/gpt.rs`, which compares logits, loss and every gradient with those of an independent implementation.

mod cache;
mod config;
mod decode;
mod files;
mod generation;
mod model;
mod sampler;

pub use cache::KeyValueCache;
pub use config::GptConfig;
pub use generation::Generation;
pub(super) use model::DROPOUT;
pub use model::Gpt;
pub use sampler::{LogProbabilities, Sampler, SamplerOptions};
