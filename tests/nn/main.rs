//! Automatic differentiation, layers, losses and optimizers on the CPU: gradients against central differences in f64,
//! accumulation, formulas, training, and bad input.

mod attention;
mod batch_norm;
mod checkpoints;
mod differences;
mod gradients;
mod layers;
mod losses;
mod optimizers;
mod tape;
mod text;
mod training;
mod transformer;
