//! [`AttentionOptions`] and [`SequenceLengths`].

use super::super::random::Generator;
use super::super::tensor::Tensor;
use super::OPERATION;
use crate::attention::{Band, Dropout};
use crate::error::{Error, Result};

/// The options of scaled dot-product attention; `M` is a mask's type, [`Tensor`] or [`nn::Variable`](crate::nn::Variable).
#[derive(Debug, Clone)]
pub struct AttentionOptions<M = Tensor> {
    /// A mask that broadcasts to (batch, query heads, query length, key length): bools that are true where a query reads a
    /// key, or floats that are added to the scaled scores. None by default.
    pub mask: Option<M>,
    /// True if a query reads no later key; false by default. The last query is at the last key's position, so with more keys than
    /// queries the first keys are those of a cache. A mask applies too.
    pub is_causal: bool,
    /// How many keys before and after its own position a query reads: all by default.
    pub window: Band,
    /// The factor of the scores: 1 / sqrt(head dimension).
    pub scale: Option<f64>,
    /// The limit c of the scaled scores x, which become c tanh(x / c) before a mask. None by default.
    pub soft_cap: Option<f64>,
    /// The probability that a probability is replaced by 0: 0. It is rounded to a multiple of 1 / 65536, and the other probabilities are
    /// scaled by 1 / (1 - that). See [`attention::Dropout`](crate::attention::Dropout) for the random bits of a position.
    pub dropout: f64,
    /// The generator of the dropout: the device's own.
    pub generator: Option<Generator>,
    /// The sequences, if they have different lengths. None by default: each batch is one of the arrays' lengths.
    pub lengths: Option<SequenceLengths>,
}

impl<M> Default for AttentionOptions<M> {
    fn default() -> Self {
        AttentionOptions {
            mask: None,
            is_causal: false,
            window: Band::default(),
            scale: None,
            soft_cap: None,
            dropout: 0.0,
            generator: None,
            lengths: None,
        }
    }
}

/// The lengths of sequences in arrays of queries and of keys.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "options are made once a call")]
pub enum SequenceLengths {
    /// Sequences one after the other in a batch of 1: sequence i has the positions from offset i to offset i + 1. Results and gradients
    /// of positions in no sequence are 0.
    Packed {
        /// The first query of each sequence, and the end of the last one; ascending.
        query_offsets: Vec<usize>,
        /// The first key of each sequence, and the end of the last one; ascending, and as many.
        key_offsets: Vec<usize>,
    },
    /// Sequences at the beginnings of their batches. Results and gradients of the positions behind them are 0.
    Padded {
        /// The number of queries of each batch, of an integer dtype and shape (batch), on the operands' device. None for all.
        queries: Option<Tensor>,
        /// The number of keys of each batch.
        keys: Option<Tensor>,
    },
}

impl<M> AttentionOptions<M> {
    /// Returns the options with a mask of another type.
    pub(crate) fn map_mask<N>(&self, map: impl FnOnce(&M) -> N) -> AttentionOptions<N> {
        AttentionOptions {
            mask: self.mask.as_ref().map(map),
            is_causal: self.is_causal,
            window: self.window,
            scale: self.scale,
            soft_cap: self.soft_cap,
            dropout: self.dropout,
            generator: self.generator.clone(),
            lengths: self.lengths.clone(),
        }
    }

    /// Returns the keys that a query reads, of `is_causal` and `window`.
    pub(super) fn band(&self) -> Band {
        let Band { before, after } = self.window;
        Band { before, after: if self.is_causal { Some(0) } else { after } }
    }

    /// Returns the factor of the scores.
    pub(super) fn scale_of(&self, dimension: usize) -> f64 {
        self.scale.unwrap_or(1.0 / (dimension.max(1) as f64).sqrt())
    }

    /// Returns the dropout in units of 1 / 65536.
    pub(super) fn threshold(&self) -> u32 {
        Dropout::threshold(self.dropout)
    }

    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`].
    pub(super) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.dropout) {
            let found = format!("a dropout of {}", self.dropout);
            return Err(Error::invalid(OPERATION, found, "one from 0 to 1"));
        }
        match self.soft_cap {
            Some(limit) if !(limit > 0.0 && limit.is_finite()) => {
                Err(Error::invalid(OPERATION, format!("a soft cap of {limit}"), "a positive finite number"))
            }
            _ => Ok(()),
        }
    }
}
