//! Automatic differentiation on the CPU: gradients against central differences in f64, accumulation, and bad input.

mod differences;
mod gradients;
mod tape;
