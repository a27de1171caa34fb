//! Automatic differentiation, layers, losses and optimizers on the CPU: gradients against central differences in f64,
//! accumulation, formulas, training, and bad input.

#[path = "../common/mod.rs"]
mod common;

mod attention;
#[path = "../cases/attention.rs"]
mod attention_cases;
mod attention_options;
mod backend;
mod batch_invariance;
#[path = "../cases/batch_invariance.rs"]
mod batch_invariance_cases;
mod batch_norm;
#[path = "../cases/gradients.rs"]
mod cases;
#[cfg(feature = "models")]
mod chat_template;
mod checkpointing;
mod checkpoints;
#[path = "../cases/custom_function.rs"]
mod custom_function;
mod decoder;
#[path = "../cases/decoder.rs"]
mod decoder_cases;
mod decoder_config;
mod decoder_files;
mod decoder_training;
mod differences;
mod edge_gradients;
mod fused;
mod gpt;
mod gradient_values;
mod gradients;
mod index_expressions;
mod layers;
mod linear_layers;
mod lora;
mod loss_errors;
mod loss_gradients;
mod loss_scale;
mod losses;
mod optimizer_pair;
mod optimizers;
mod parameters;
mod recompute;
mod reference;
mod sampler;
mod saved_models;
mod second;
mod step;
#[cfg(feature = "models")]
mod subword;
mod tape;
mod text;
mod token_files;
mod trainer;
mod training;
mod transformer;
