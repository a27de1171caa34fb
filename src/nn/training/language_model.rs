//! [`LanguageModel`], the models that a [`Trainer`](super::Trainer) trains.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::nn::{Batch, Decoder, Gpt, Module, Recompute, Variable};
use crate::tensor::Generator;

/// A model that predicts the next id of a sequence. Its [`parameters`](Module::parameters) are those that a training changes, and its
/// [`state_dict`](Module::state_dict) is that of a checkpoint.
pub trait LanguageModel: Module {
    /// Returns the mean cross-entropy of a batch in nats an id: one element, of f32 for a model that computes in 16 bits.
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward) and [`cross_entropy`](crate::nn::cross_entropy).
    fn loss(&self, batch: &Batch) -> Result<Variable>;

    /// Returns the number of ids.
    fn vocab_size(&self) -> usize;

    /// Returns the ids of the longest sequence.
    fn context(&self) -> usize;

    /// Returns the configuration as checkpoints store it. A run continues with an equal one.
    fn to_json(&self) -> Value;

    /// Returns the generator that a forward draws from in the training mode, such as that of dropout. All draws come from one.
    fn generator(&self) -> Option<Generator> {
        None
    }

    /// Returns the [`loss`](Self::loss), with a backward that computes some activations again.
    ///
    /// # Errors
    ///
    /// As [`loss`](Self::loss); [`Error::InvalidArgument`] for a choice that the model does not have: by default all but
    /// [`Recompute::Nothing`].
    fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable> {
        match recompute {
            Recompute::Nothing => self.loss(batch),
            other => {
                let wanted = "nothing, or a model with LanguageModel::loss_with_recompute";
                Err(Error::invalid("LanguageModel", format!("recompute = {other}"), wanted))
            }
        }
    }
}

impl LanguageModel for Gpt {
    fn loss(&self, batch: &Batch) -> Result<Variable> {
        Gpt::loss(self, batch)
    }

    fn vocab_size(&self) -> usize {
        self.config().vocab_size
    }

    fn context(&self) -> usize {
        self.config().context
    }

    fn to_json(&self) -> Value {
        self.config().to_json()
    }

    fn generator(&self) -> Option<Generator> {
        Gpt::generator(self).cloned()
    }

    fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable> {
        Gpt::loss_with_recompute(self, batch, recompute)
    }
}

impl LanguageModel for Decoder {
    fn loss(&self, batch: &Batch) -> Result<Variable> {
        Decoder::loss(self, batch)
    }

    fn vocab_size(&self) -> usize {
        self.config().vocab_size()
    }

    fn context(&self) -> usize {
        self.config().context()
    }

    fn to_json(&self) -> Value {
        Decoder::to_json(self)
    }

    fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable> {
        Decoder::loss_with_recompute(self, batch, recompute)
    }
}
