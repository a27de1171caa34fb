//! Neural networks: variables, sequential models, transformers with their tokenizers and trainers, decoders of published models,
//! losses and optimizers.
//!
//! A model and an optimizer are shared by their handles: calls of other threads on the same model wait while one adds a layer,
//! changes the mode or loads parameters.

pub mod decoder;
pub mod gpt;
pub mod model;
pub mod optimizer;
pub mod schedule;
pub mod tokenizer;
pub mod trainer;
pub mod variable;
