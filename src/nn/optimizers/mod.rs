//! Optimizers: they change parameters by their gradients.
//!
//! | file | contents |
//! |---|---|
//! | `parameters` | the list of parameters, each once, with an optimizer's state of each |
//! | `sgd`, `adam` | [`Sgd`]; [`Adam`] and [`AdamW`] |
//! | `clip` | [`clip_grad_norm`] |
//! | `schedule` | [`WarmupCosine`] |
//!
//! Invariants:
//!
//! - A step is one fused expression for each parameter: it reads the parameter, its gradient and the state, and writes the
//!   parameter and the state. If it fails, that parameter and its state keep their values.
//! - A step is a change in place: a backward through values from before it is an error.
//! - A parameter given twice counts once. A parameter without a gradient keeps its value, its state and its step count.
//! - f16 and bf16 parameters have states of f32, and are computed in f32 and rounded once.
//!
//! Tests: `tests/nn/optimizers.rs`.

mod adam;
mod clip;
mod parameters;
mod schedule;
mod sgd;

pub use adam::{Adam, AdamW};
pub use clip::clip_grad_norm;
pub use schedule::WarmupCosine;
pub use sgd::Sgd;

use std::collections::BTreeMap;

use super::autograd::Variable;
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::Tensor;
use crate::types::DType;

/// Changes parameters by their gradients.
pub trait Optimizer {
    /// Changes each parameter that has a gradient.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) and driver errors. Parameters before the failing one have changed.
    fn step(&mut self) -> Result<()>;

    /// Returns the parameters, each once.
    fn parameters(&self) -> &[Variable];

    /// Returns the learning rate.
    fn learning_rate(&self) -> f64;

    /// Sets the learning rate, such as to a schedule's.
    fn set_learning_rate(&mut self, learning_rate: f64);

    /// Returns the learning rate and the state of each parameter as tensors, by the parameter's position and PyTorch's name.
    /// Later steps do not change them. Other numbers, such as β, are those of the optimizer's creation.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn state_dict(&self) -> Result<BTreeMap<String, Tensor>>;

    /// Sets the learning rate and the states, bit for bit. A parameter without entries begins anew. States are copied to
    /// the devices of the parameters.
    ///
    /// # Errors
    ///
    /// One [`Error::InvalidArgument`](crate::Error::InvalidArgument) that names every entry that is missing, extra, or of
    /// another shape or dtype. Nothing changes then.
    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()>;

    /// Removes the gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Variable::zero_grad);
    }
}

/// The dtype that steps are computed in.
fn compute_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// The operand in the dtype that steps are computed in.
fn widened(x: Expr<'_>) -> Expr<'_> {
    x.cast(compute_dtype(x.dtype()))
}
