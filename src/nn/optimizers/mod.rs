//! Optimizers: they change parameters by their gradients.
//!
//! | file | contents |
//! |---|---|
//! | `core` | the parameters of an optimizer, each once, their states, and the loop of a step |
//! | `state` | the `state_dict` |
//! | `sgd`, `adam`, `lion` | [`Sgd`]; [`Adam`] and [`AdamW`]; [`Lion`] |
//! | `adafactor`, `muon` | [`Adafactor`]; [`Muon`] |
//! | `pair` | [`OptimizerPair`] |
//! | `clip` | [`clip_grad_norm`] |
//! | `schedule` | [`LearningRateSchedule`] |
//!
//! Invariants:
//!
//! - A step, but for those of [`Adafactor`] and [`Muon`], is one fused expression: it reads the parameter, its gradient and the state, and writes the parameter and the
//!   state in place. It is launched once for neighbours in a buffer of [`Parameters`](super::Parameters), otherwise once for
//!   each parameter, with the same bits. If it fails, that parameter and its state keep their values.
//! - The numbers of a step, such as the learning rate, are in device memory.
//! - A step is a change in place: a backward through values from before it is an error.
//! - A parameter given twice counts once. Two optimizers may have the same parameter, as in PyTorch: each changes it, by states of
//!   its own. A parameter without a gradient keeps its value, its state and its step count.
//! - f16 and bf16 parameters have states of f32, and are computed in f32 and rounded once.
//!
//! Tests: `tests/nn/optimizers.rs`, `tests/cases/optimizers.rs`, `tests/gpu/optimizers.rs`.

mod adafactor;
mod adam;
mod clip;
mod core;
mod lion;
mod muon;
mod pair;
mod schedule;
mod sgd;
mod state;

pub use adafactor::Adafactor;
pub use adam::{Adam, AdamW};
pub use clip::clip_grad_norm;
pub(super) use clip::grad_norm;
pub use lion::Lion;
pub use muon::{Muon, MuonRateAdjustment};
pub use pair::OptimizerPair;
pub use schedule::{LearningRateSchedule, ScheduleShape};
pub use sgd::Sgd;

use std::collections::BTreeMap;

use super::autograd::Variable;
use crate::error::Result;
use crate::tensor::Tensor;

/// Changes parameters by their gradients.
pub trait Optimizer {
    /// Returns the optimizer's name, such as `AdamW`. A [`Checkpoint`](super::Checkpoint) has it beside the states.
    fn name(&self) -> &'static str;

    /// Changes each parameter that has a gradient: [`advance`](Self::advance) and [`apply`](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance), and driver errors. With the latter, parameters before the failing one have changed.
    fn step(&mut self) -> Result<()> {
        self.advance()?;
        self.apply()
    }

    /// Counts a step of each parameter that has a gradient, and writes what the step depends on, such as the learning rate and
    /// the number of the step, to the memory of the parameters' devices.
    ///
    /// A captured step has [`apply`](Self::apply) alone. A call of this before each launch of its graph gives the launch the
    /// numbers of the next step; gradients must be set for the same parameters as in the capture.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a learning rate that is negative or not finite,
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) and driver errors. No step is counted then.
    fn advance(&mut self) -> Result<()>;

    /// Changes the parameters that [`advance`](Self::advance) has counted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a parameter that has lost its gradient since then, and
    /// driver errors. Parameters before the failing one have changed.
    fn apply(&mut self) -> Result<()>;

    /// Changes the parameters as [`apply`](Self::apply) if the element of a bool tensor on their device is true, and otherwise
    /// leaves them and their states as they are. The host does not wait for the element.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and those of a function of the parameters and the condition.
    fn apply_if(&mut self, condition: &Tensor) -> Result<()>;

    /// Changes the parameters as [`apply_if`](Self::apply_if), by their gradients times the element of `factor`, a float tensor
    /// without dimensions on their device, such as the inverse of a [`LossScale`](super::LossScale). The gradients are
    /// multiplied in the launch of the step, and stay as they are.
    ///
    /// # Errors
    ///
    /// As there.
    fn apply_scaled(&mut self, condition: &Tensor, factor: &Tensor) -> Result<()>;

    /// Takes back the step that the last [`advance`](Self::advance) has counted. The next step needs another one.
    fn withdraw(&mut self);

    /// Returns a number that differs from an earlier one if a captured [`apply`](Self::apply) no longer does what the next one
    /// would: other parameters have gradients, or memory has moved.
    fn capture_key(&self) -> u64;

    /// Returns the parameters, each once.
    fn parameters(&self) -> &[Variable];

    /// Returns the learning rate.
    fn learning_rate(&self) -> f64;

    /// Sets the learning rate, such as to a schedule's. The next [`advance`](Self::advance) refuses one that is negative or not
    /// finite.
    fn set_learning_rate(&mut self, learning_rate: f64);

    /// Returns the learning rate and the state of each parameter as tensors, by the parameter's position and PyTorch's name.
    /// Later steps do not change them. Other numbers, such as β, are those of the optimizer's creation.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn state_dict(&self) -> Result<BTreeMap<String, Tensor>>;

    /// Checks that [`load_state_dict`](Self::load_state_dict) can set these entries, and changes nothing.
    ///
    /// # Errors
    ///
    /// As there.
    fn check_state_dict(&self, entries: &BTreeMap<String, Tensor>) -> Result<()>;

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

impl<O: Optimizer + ?Sized> Optimizer for &mut O {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn advance(&mut self) -> Result<()> {
        (**self).advance()
    }

    fn apply(&mut self) -> Result<()> {
        (**self).apply()
    }

    fn apply_if(&mut self, condition: &Tensor) -> Result<()> {
        (**self).apply_if(condition)
    }

    fn apply_scaled(&mut self, condition: &Tensor, factor: &Tensor) -> Result<()> {
        (**self).apply_scaled(condition, factor)
    }

    fn withdraw(&mut self) {
        (**self).withdraw();
    }

    fn capture_key(&self) -> u64 {
        (**self).capture_key()
    }

    fn parameters(&self) -> &[Variable] {
        (**self).parameters()
    }

    fn learning_rate(&self) -> f64 {
        (**self).learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        (**self).set_learning_rate(learning_rate);
    }

    fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
        (**self).state_dict()
    }

    fn check_state_dict(&self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        (**self).check_state_dict(entries)
    }

    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        (**self).load_state_dict(entries)
    }
}

/// Implements [`Optimizer`] by an [`OptimizerCore`](core::OptimizerCore).
macro_rules! optimizer {
    ($name:ident) => {
        impl Optimizer for $name {
            fn name(&self) -> &'static str {
                self.0.name()
            }

            fn advance(&mut self) -> Result<()> {
                self.0.advance()
            }

            fn apply(&mut self) -> Result<()> {
                self.0.apply(None)
            }

            fn apply_if(&mut self, condition: &Tensor) -> Result<()> {
                self.0.apply(Some(super::core::Guard { condition, factor: 1.0.into() }))
            }

            fn apply_scaled(&mut self, condition: &Tensor, factor: &Tensor) -> Result<()> {
                self.0.apply(Some(super::core::Guard { condition, factor: factor.into() }))
            }

            fn withdraw(&mut self) {
                self.0.withdraw();
            }

            fn capture_key(&self) -> u64 {
                self.0.capture_key
            }

            fn parameters(&self) -> &[Variable] {
                &self.0.variables
            }

            fn learning_rate(&self) -> f64 {
                self.0.learning_rate
            }

            fn set_learning_rate(&mut self, learning_rate: f64) {
                self.0.learning_rate = learning_rate;
            }

            fn state_dict(&self) -> Result<BTreeMap<String, Tensor>> {
                self.0.state_dict()
            }

            fn check_state_dict(&self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
                self.0.checked(concat!(stringify!($name), "::load_state_dict"), entries).map(drop)
            }

            fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
                self.0.load_state_dict(concat!(stringify!($name), "::load_state_dict"), entries)
            }
        }
    };
}
use optimizer;
