//! Neural networks: variables, sequential models, losses and optimizers.
//!
//! A model and an optimizer are shared by their handles: calls of other threads on the same model wait while one adds a layer,
//! changes the mode or loads parameters.

pub mod model;
pub mod optimizer;
pub mod variable;
