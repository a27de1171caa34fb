//! [`DecoderGeneration`], new ids of a batch of prompts.

use super::cache::DecoderCache;
use super::model::Decoder;
use crate::error::{Error, Result};
use crate::nn::{Sampler, SamplerOptions, no_grad};
use crate::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "DecoderGeneration";

/// The options of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationOptions {
    /// The most new ids of a sequence.
    pub max_new_ids: usize,
    /// The ids that end a sequence; `None` for those of the model's configuration.
    pub end_ids: Option<Vec<u32>>,
    /// The choice of ids: by default the most likely one.
    pub sampler: SamplerOptions,
    /// The seed of the draws. Sequence i draws from seed + i, whatever the other sequences are.
    pub seed: u64,
}

impl Default for GenerationOptions {
    fn default() -> Self {
        GenerationOptions { max_new_ids: 128, end_ids: None, sampler: SamplerOptions::greedy(), seed: 0 }
    }
}

/// An iterator of steps that continue prompts: each has the new id of each sequence, or `None` for a sequence that has ended.
/// It ends when all sequences have.
pub struct DecoderGeneration<'m> {
    model: &'m Decoder,
    cache: DecoderCache,
    samplers: Vec<Sampler>,
    /// The ids that the cache does not have, (batch, unread).
    unread: Vec<i64>,
    has_ended: Vec<bool>,
    end_ids: Vec<u32>,
    pad_id: i64,
    /// The steps so far.
    steps: usize,
    steps_left: usize,
}

impl<'m> DecoderGeneration<'m> {
    /// Creates a generation. Prompts of different lengths are padded on the left.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without prompts, for a prompt without ids, an id outside the vocabulary, and prompts and new
    /// ids beyond the learned positions; as [`Sampler::new`].
    pub fn new(
        model: &'m Decoder,
        prompts: &[impl AsRef<[u32]>],
        options: &GenerationOptions,
    ) -> Result<DecoderGeneration<'m>> {
        let config = model.config();
        let prompts: Vec<&[u32]> = prompts.iter().map(AsRef::as_ref).collect();
        let Some(length) = prompts.iter().map(|prompt| prompt.len()).max() else {
            return Err(Error::invalid(OPERATION, "no prompts", "at least one"));
        };
        if let Some(index) = prompts.iter().position(|prompt| prompt.is_empty()) {
            return Err(Error::invalid(OPERATION, format!("prompt {index} without ids"), "at least one id"));
        }
        let vocab_size = config.vocab_size;
        if let Some(id) =
            prompts.iter().flat_map(|prompt| prompt.iter()).find(|&&id| id as usize >= vocab_size)
        {
            let wanted = format!("ids below {vocab_size}");
            return Err(Error::invalid(OPERATION, format!("id {id} in a prompt"), wanted));
        }
        // The last new id is not read.
        let last = length.saturating_add(options.max_new_ids.saturating_sub(1));
        if config.has_learned_positions && last > config.context {
            let found = format!("a prompt of {length} ids and {} new ids", options.max_new_ids);
            let wanted = format!("at most {} positions", config.context);
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        let pad_id = config.pad_id.filter(|&id| (id as usize) < vocab_size).map_or(0, i64::from);
        let padding: Vec<usize> = prompts.iter().map(|prompt| length - prompt.len()).collect();
        let mut unread = Vec::with_capacity(prompts.len() * length);
        for (prompt, &count) in prompts.iter().zip(&padding) {
            unread.extend(std::iter::repeat_n(pad_id, count));
            unread.extend(prompt.iter().map(|&id| i64::from(id)));
        }
        let samplers = (0..prompts.len() as u64)
            .map(|index| Sampler::new(options.sampler, options.seed.wrapping_add(index)))
            .collect::<Result<_>>()?;
        Ok(DecoderGeneration {
            model,
            cache: DecoderCache::with_padding(padding),
            samplers,
            unread,
            has_ended: vec![false; prompts.len()],
            end_ids: options.end_ids.clone().unwrap_or_else(|| config.end_ids.clone()),
            pad_id,
            steps: 0,
            steps_left: options.max_new_ids,
        })
    }

    fn step(&mut self) -> Result<Vec<Option<u32>>> {
        let batch = self.has_ended.len();
        let ids =
            Tensor::from_slice(&self.unread, &[batch, self.unread.len() / batch], &self.model.device())?;
        let logits = no_grad(|| self.model.forward_cached(&ids, &mut self.cache))?;
        let logits = logits.tensor().cast(DType::F32)?.to_vec::<f32>()?;
        if logits.iter().any(|logit| logit.is_nan()) {
            let first = no_grad(|| self.model.first_nan(&ids, &mut self.cache))?;
            let part = first.unwrap_or_else(|| "a part that is not NaN again".to_owned());
            let found = format!("logits that are NaN in step {}, first in {part}", self.steps);
            return Err(Error::invalid(OPERATION, found, "finite weights, or a wider dtype"));
        }
        self.steps += 1;
        let width = logits.len() / batch;
        self.unread.clear();
        let mut found = Vec::with_capacity(batch);
        for (index, row) in logits.chunks_exact(width).enumerate() {
            let id = match self.has_ended[index] {
                true => None,
                false => Some(self.samplers[index].draw(row)? as u32),
            };
            self.has_ended[index] |= id.is_some_and(|id| self.end_ids.contains(&id));
            self.unread.push(id.map_or(self.pad_id, i64::from));
            found.push(id);
        }
        Ok(found)
    }
}

impl Iterator for DecoderGeneration<'_> {
    type Item = Result<Vec<Option<u32>>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.steps_left == 0 || self.has_ended.iter().all(|&has_ended| has_ended) {
            return None;
        }
        self.steps_left -= 1;
        let step = self.step();
        if step.is_err() {
            self.steps_left = 0;
        }
        Some(step)
    }
}

impl Decoder {
    /// Returns the new ids of each prompt, with the id that ended it. Prompts of different lengths are one batch.
    ///
    /// # Errors
    ///
    /// As [`DecoderGeneration::new`] and [`forward_cached`](Self::forward_cached); [`Error::InvalidArgument`] for logits that
    /// are NaN.
    pub fn generate(
        &self,
        prompts: &[impl AsRef<[u32]>],
        options: &GenerationOptions,
    ) -> Result<Vec<Vec<u32>>> {
        let mut found = vec![Vec::new(); prompts.len()];
        for step in DecoderGeneration::new(self, prompts, options)? {
            for (ids, id) in found.iter_mut().zip(step?) {
                ids.extend(id);
            }
        }
        Ok(found)
    }
}
