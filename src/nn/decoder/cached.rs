//! Passes over new positions of a cache: whole prompts, parts of them, and single ids.
//!
//! Tests: `tests/nn/decoder.rs`, `tests/nn/batch_invariance.rs`, `tests/gpu/nn.rs`.

use super::DECODER;
use super::batch_invariance::with_invariance;
use super::block::{CachedPass, Pass};
use super::cache::{DecoderCache, NewPositions};
use super::model::{Decoder, Positions, Watch, has_nan, not_two_axes};
use super::step_state::on_device;
use crate::error::{Error, Result};
use crate::nn::{Recompute, Variable};
use crate::tensor::{SequenceLengths, Tensor};

impl Decoder {
    /// Returns the logits (batch, vocabulary) of the last position of `ids` (batch, length), which follow the positions in the
    /// cache. The cache takes their keys and values. Nothing is recorded of the keys and values in the cache, so gradients do
    /// not reach them: use it within [`no_grad`](crate::nn::no_grad).
    ///
    /// All ids are computed anew if the longer total length changes the rotary frequencies of all positions (longrope).
    ///
    /// On a CUDA device, a pass over one id of each sequence becomes a graph, which later ones launch. On the CPU, such a pass in f32
    /// reads each weight once, at the speed of memory.
    ///
    /// Of a [batch-invariant](DecoderCache::batch_invariant) cache, one new id of each sequence is an id that was generated if all have positions,
    /// and all other ids are parts of prompts.
    ///
    /// # Errors
    ///
    /// As [`forward`](crate::nn::Module::forward); [`Error::InvalidArgument`] for another batch than the cache's.
    pub fn forward_cached(&self, ids: &Tensor, cache: &mut DecoderCache) -> Result<Variable> {
        let &[batch, length] = &ids.shape()[..] else { return Err(not_two_axes(ids)) };
        self.forward_ragged(ids, &vec![length; batch], cache)
    }

    /// As [`forward_cached`](Self::forward_cached) for the first `counts[i]` ids of sequence i; those behind them are no part of it.
    /// The logits are those of each sequence's last id.
    ///
    /// # Errors
    ///
    /// As [`forward_cached`](Self::forward_cached); [`Error::InvalidArgument`] for another number of counts than the batch, and counts
    /// that are 0 or exceed the length.
    pub fn forward_ragged(
        &self,
        ids: &Tensor,
        counts: &[usize],
        cache: &mut DecoderCache,
    ) -> Result<Variable> {
        self.check_counts(ids, counts, 1)?;
        self.check_invariance(cache)?;
        let is_batch_invariant = cache.is_batch_invariant();
        with_invariance(is_batch_invariant, || {
            // The first id of a sequence is a prompt.
            let begins = is_batch_invariant && cache.past(counts.len()).contains(&0);
            if !begins && counts.iter().all(|&count| count == 1) {
                if let Some(results) = self.decode_step(Some(ids), false, cache)? {
                    return Ok(Variable::new(results.logits));
                }
                if let Some(logits) = self.decode_on_host(ids, cache)? {
                    return Ok(Variable::new(logits));
                }
            }
            self.read_prompts(ids, counts, cache)
        })
    }

    /// As [`forward_ragged`](Self::forward_ragged) for prompts, whole or in parts: counts may be 0, for sequences whose prompt has ended,
    /// but for one. The logits of these have no meaning. With a [batch-invariant](DecoderCache::batch_invariant) cache the bits of the logits
    /// do not depend on the parts, of which each may be a single id.
    ///
    /// ```
    /// use selvedge::nn::{Decoder, DecoderCache, DecoderConfig, Initializer, no_grad};
    /// use selvedge::{Device, Tensor};
    /// # let text = r#"{"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
    /// #     "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_act": "silu", "max_position_embeddings": 16,
    /// #     "rms_norm_eps": 1e-5}"#;
    /// # let (device, config) = (Device::cpu(), DecoderConfig::from_json(text, None)?);
    /// let model = Decoder::new(config, &Initializer::new(&device).with_seed(1))?;
    /// // Sequences of three ids and of one: at once, and in parts of two.
    /// let ids = Tensor::new([[1i64, 2, 3], [4, 0, 0]], &device)?;
    /// let (mut whole, mut parts) = (DecoderCache::batch_invariant(), DecoderCache::batch_invariant());
    /// let logits = no_grad(|| model.prefill(&ids, &[3, 1], &mut whole))?.tensor();
    /// no_grad(|| model.prefill(&ids.narrow(1, 0, 2)?, &[2, 1], &mut parts))?;
    /// let last = no_grad(|| model.prefill(&ids.narrow(1, 2, 1)?, &[1, 0], &mut parts))?.tensor();
    /// assert_eq!(logits.select(0, 0)?.to_vec::<f32>()?, last.select(0, 0)?.to_vec::<f32>()?);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`forward_ragged`](Self::forward_ragged), but for counts of 0.
    pub fn prefill(&self, ids: &Tensor, counts: &[usize], cache: &mut DecoderCache) -> Result<Variable> {
        self.check_counts(ids, counts, 0)?;
        self.check_invariance(cache)?;
        let is_batch_invariant = cache.is_batch_invariant();
        match is_batch_invariant || counts.iter().any(|&count| count != 1) {
            true => with_invariance(is_batch_invariant, || self.read_prompts(ids, counts, cache)),
            false => self.forward_ragged(ids, counts, cache),
        }
    }

    fn read_prompts(&self, ids: &Tensor, counts: &[usize], cache: &mut DecoderCache) -> Result<Variable> {
        if cache.is_batch_invariant()
            && let Some(logits) = self.prefill_on_host(ids, counts, cache)?
        {
            return Ok(Variable::new(logits));
        }
        self.forward_watched(ids, counts, cache, &mut |_, _| Ok(()))
    }

    /// Checks ids for a cache, and the number of each sequence: at least `least`, and more than 0 for one.
    fn check_counts(&self, ids: &Tensor, counts: &[usize], least: usize) -> Result<()> {
        let &[batch, length] = &ids.shape()[..] else { return Err(not_two_axes(ids)) };
        let are_known = counts.iter().all(|count| (least..=length).contains(count));
        if counts.len() != batch || !are_known || counts.iter().all(|&count| count == 0) {
            // A length of 0 has an error of its own.
            self.check_ids(ids, length)?;
            let found = format!("counts of {counts:?} for {batch} sequences of {length} ids");
            let wanted = match least {
                0 => "a number up to the length for each sequence, and one of at least 1",
                _ => "a number from 1 to the length for each sequence",
            };
            return Err(Error::invalid(DECODER, found, wanted));
        }
        Ok(())
    }

    /// Returns the name of the first part whose result has a NaN, of the pass over `ids` that the cache took last.
    pub(super) fn first_nan(
        &self,
        ids: &Tensor,
        counts: &[usize],
        cache: &mut DecoderCache,
    ) -> Result<Option<String>> {
        let mut first = None;
        cache.rewind(counts);
        let logits = self.forward_watched(ids, counts, cache, &mut |part, x| {
            if first.is_none() && has_nan(x)? {
                let names = self.config.names;
                first = Some(match part {
                    None => names.embedding.to_owned(),
                    Some(index) => format!("{}.{index}", names.layers),
                });
            }
            Ok(())
        })?;
        Ok(match first {
            None if has_nan(&logits)? => {
                Some(format!("{} or {}", self.config.names.final_norm, self.config.names.head))
            }
            first => first,
        })
    }

    /// As [`forward_ragged`](Self::forward_ragged), with a function that gets the embeddings and the result of each layer.
    fn forward_watched(
        &self,
        ids: &Tensor,
        counts: &[usize],
        cache: &mut DecoderCache,
        watch: Watch<'_>,
    ) -> Result<Variable> {
        cache.check(self.cache_sizes(), ids)?;
        let past = cache.past(counts.len());
        let total = NewPositions { past: &past, counts }.longest();
        self.check_ids(ids, total)?;
        let before = past.iter().copied().max().unwrap_or(0);
        if before == 0 || !self.config.crosses_switch(before, total) {
            let logits = self.forward_behind(ids, NewPositions { past: &past, counts }, cache, watch)?;
            cache.advance(ids, counts, self.config.has_switch())?;
            return Ok(logits);
        }
        let (all, totals) = cache.all_ids(ids, counts)?;
        let none = vec![0; totals.len()];
        let positions = NewPositions { past: &none, counts: &totals };
        match self.forward_behind(&all, positions, cache, watch) {
            Ok(logits) => {
                cache.advance(ids, counts, true)?;
                Ok(logits)
            }
            Err(error) => {
                // Keys of both frequencies may be in it.
                cache.clear();
                Err(error)
            }
        }
    }

    /// Returns the logits of the last new position of each sequence, and writes keys and values of all new ones.
    fn forward_behind(
        &self,
        ids: &Tensor,
        positions: NewPositions<'_>,
        cache: &mut DecoderCache,
        watch: Watch<'_>,
    ) -> Result<Variable> {
        let (batch, length, total, device) =
            (ids.shape()[0], ids.shape()[1], positions.longest(), self.device());
        let dtype = self.angle_dtype();
        let NewPositions { past, counts } = positions;
        // Sequences of different lengths have kernels of their own, so all have these if the bits must not depend on the batch.
        let is_uniform = positions.are_uniform() && !cache.is_batch_invariant();
        let of_ids = match is_uniform {
            true => Positions::From(past.first().copied().unwrap_or(0)),
            false => {
                let starts: Vec<i64> = past.iter().map(|&past| past as i64).collect();
                self.positions(ids, &starts)?
            }
        };
        let angles = self.tables.iter().map(|table| match &of_ids {
            Positions::From(past) => table.at(*past, length, dtype, &device),
            Positions::Each(each) => {
                table.of_positions(&each.minimum(total as i64 - 1)?, total, dtype, &device)
            }
        });
        let angles = angles.collect::<Result<_>>()?;
        let lengths = match is_uniform {
            true => None,
            false => Some(SequenceLengths::Padded {
                queries: Some(on_device(counts.iter().copied(), &device)?),
                keys: Some(on_device(positions.totals(), &device)?),
            }),
        };
        let counts = counts.to_vec();
        let cached = Some(CachedPass { cache, positions, decoding: None });
        let mut pass = Pass { angles, mask: None, lengths, recompute: Recompute::Nothing, cached };
        let x = self.hidden(ids, &of_ids, &mut pass, watch)?;
        if is_uniform {
            return self.logits(&x.select(1, -1)?);
        }
        let last = counts.iter().enumerate().map(|(index, count)| index * length + count.saturating_sub(1));
        let last = on_device(last, &device)?;
        let width = self.config.width as isize;
        self.logits(&x.reshape(&[(batch * length) as isize, width])?.index_select(0, &last)?)
    }
}
