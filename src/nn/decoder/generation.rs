//! [`DecoderGeneration`], new ids of a batch of prompts.

use super::cache::DecoderCache;
use super::model::Decoder;
use crate::error::{Error, Result};
use crate::nn::{LogProbabilities, Sampler, SamplerOptions, no_grad};
use crate::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "DecoderGeneration";
/// The most new ids that a cache has memory for from the start.
const RESERVED_IDS: usize = 4096;

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
    /// The number of most likely ids whose log-probabilities are computed beside that of the drawn id; `None` computes none.
    pub log_probabilities: Option<usize>,
    /// The most ids of each prompt that one pass reads; `None` for all. Long prompts in parts take less memory.
    pub prefill_chunk: Option<usize>,
    /// True for logits whose bits depend neither on the other prompts nor on [`prefill_chunk`](Self::prefill_chunk): see
    /// [`DecoderCache::batch_invariant`].
    pub is_batch_invariant: bool,
}

impl Default for GenerationOptions {
    fn default() -> Self {
        GenerationOptions {
            max_new_ids: 128,
            end_ids: None,
            sampler: SamplerOptions::greedy(),
            seed: 0,
            log_probabilities: None,
            prefill_chunk: None,
            is_batch_invariant: false,
        }
    }
}

/// An iterator of steps that continue prompts: each has the new id of each sequence, or `None` for a sequence that has ended.
/// It ends when all sequences have.
pub struct DecoderGeneration<'m> {
    model: &'m Decoder,
    cache: DecoderCache,
    samplers: Vec<Sampler>,
    /// The ids of each sequence that the cache does not have.
    unread: Vec<Vec<i64>>,
    /// The most unread ids of a sequence that one pass reads.
    chunk: usize,
    has_read_prompts: bool,
    /// True if the device has them: those that the last step found most likely.
    has_device_ids: bool,
    is_greedy: bool,
    has_ended: Vec<bool>,
    end_ids: Vec<u32>,
    pad_id: i64,
    /// The steps so far.
    steps: usize,
    steps_left: usize,
    top: Option<usize>,
    log_probabilities: Vec<Option<LogProbabilities>>,
}

impl<'m> DecoderGeneration<'m> {
    /// Creates a generation. Prompts may have different lengths.
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
        let prompts: Vec<&[u32]> = prompts.iter().map(AsRef::as_ref).collect();
        let Some(length) = prompts.iter().map(|prompt| prompt.len()).max() else {
            return Err(Error::invalid(OPERATION, "no prompts", "at least one"));
        };
        if let Some(index) = prompts.iter().position(|prompt| prompt.is_empty()) {
            return Err(Error::invalid(OPERATION, format!("prompt {index} without ids"), "at least one id"));
        }
        check(model, &prompts, length, options)?;
        let unread = prompts.iter().map(|prompt| prompt.iter().map(|&id| i64::from(id)).collect()).collect();
        let cache = match options.is_batch_invariant {
            true => DecoderCache::batch_invariant(),
            false => DecoderCache::new(),
        };
        DecoderGeneration::of(model, cache, unread, &prompts, options)
    }

    /// Creates a generation of one sequence, whose first ids a cache has: those of an earlier generation
    /// ([`into_cache`](Self::into_cache)). `ids` is the whole sequence.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidArgument`] for a sequence that is not longer than the cache, for a cache of several
    /// sequences, and for batch invariance of the options or of the cache alone.
    pub fn with_cache(
        model: &'m Decoder,
        cache: DecoderCache,
        ids: &[u32],
        options: &GenerationOptions,
    ) -> Result<DecoderGeneration<'m>> {
        if cache.lengths().len() > 1 {
            let found = format!("a cache of {} sequences", cache.lengths().len());
            return Err(Error::invalid(OPERATION, found, "the cache of one sequence"));
        }
        if ids.len() <= cache.length() {
            let found = format!("{} ids and a cache of {}", ids.len(), cache.length());
            let wanted = "more ids than the cache has; DecoderCache::truncate removes some";
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        if cache.is_batch_invariant() != options.is_batch_invariant {
            let name = |is_invariant| if is_invariant { "batch-invariant" } else { "not batch-invariant" };
            let found = format!("a cache that is {}", name(cache.is_batch_invariant()));
            return Err(Error::invalid(
                OPERATION,
                found,
                format!("one that is {}", name(options.is_batch_invariant)),
            ));
        }
        check(model, &[ids], ids.len(), options)?;
        let unread = ids[cache.length()..].iter().map(|&id| i64::from(id)).collect();
        DecoderGeneration::of(model, cache, vec![unread], &[ids], options)
    }

    fn of(
        model: &'m Decoder,
        mut cache: DecoderCache,
        unread: Vec<Vec<i64>>,
        prompts: &[&[u32]],
        options: &GenerationOptions,
    ) -> Result<DecoderGeneration<'m>> {
        let mut samplers = Vec::with_capacity(prompts.len());
        for (index, prompt) in prompts.iter().enumerate() {
            let mut sampler = Sampler::new(options.sampler, options.seed.wrapping_add(index as u64))?;
            sampler.read_prompt(prompt);
            samplers.push(sampler);
        }
        let length = prompts.iter().map(|prompt| prompt.len()).max().unwrap_or(0);
        cache.reserve(length + options.max_new_ids.min(RESERVED_IDS));
        Ok(DecoderGeneration {
            model,
            cache,
            samplers,
            unread,
            chunk: options.prefill_chunk.unwrap_or(usize::MAX),
            has_read_prompts: false,
            has_device_ids: false,
            is_greedy: options.sampler.is_greedy() && options.log_probabilities.is_none(),
            has_ended: vec![false; prompts.len()],
            end_ids: options.end_ids.clone().unwrap_or_else(|| model.config().end_ids.clone()),
            pad_id: pad_id(model),
            steps: 0,
            steps_left: options.max_new_ids,
            top: options.log_probabilities,
            log_probabilities: vec![None; prompts.len()],
        })
    }

    /// Ends a sequence, such as at a stop string. An index beyond the batch changes nothing.
    pub fn end(&mut self, index: usize) {
        if let Some(has_ended) = self.has_ended.get_mut(index) {
            *has_ended = true;
        }
    }

    /// Returns the log-probabilities of each sequence's last new id: `None` for one that has ended, and if
    /// [`GenerationOptions::log_probabilities`] does not ask for them.
    pub fn log_probabilities(&self) -> &[Option<LogProbabilities>] {
        &self.log_probabilities
    }

    /// Returns the keys and values of the ids that the model has read: all but the last new one.
    pub fn into_cache(self) -> DecoderCache {
        self.cache
    }

    fn step(&mut self) -> Result<Vec<Option<u32>>> {
        if self.is_greedy && self.has_read_prompts {
            let ids = if self.has_device_ids { None } else { Some(self.unread_ids()?.0) };
            if let Some((ids, most)) = self.model.most_likely(ids.as_ref(), &mut self.cache)? {
                if most.iter().any(|logit| logit.is_nan()) {
                    let (ids, counts) = self.unread_ids()?;
                    return Err(self.nan(&ids, &counts)?);
                }
                self.has_device_ids = true;
                return self.finish(|_, index| Ok(ids[index] as u32));
            }
        }
        let logits = self.next_logits()?;
        if logits.iter().any(|logit| logit.is_nan()) {
            let (ids, counts) = self.unread_ids()?;
            return Err(self.nan(&ids, &counts)?);
        }
        (self.has_device_ids, self.has_read_prompts) = (false, true);
        let width = logits.len() / self.unread.len();
        let row = |index: usize| &logits[index * width..][..width];
        let found =
            self.finish(|generation, index| Ok(generation.samplers[index].draw(row(index))? as u32))?;
        for (index, id) in found.iter().enumerate() {
            self.log_probabilities[index] = match (self.top, id) {
                (Some(top), Some(id)) => Some(LogProbabilities::new(row(index), *id, top)?),
                _ => None,
            };
        }
        Ok(found)
    }

    /// Returns the logits behind the unread ids of each sequence, (batch, vocabulary), which the model reads.
    fn next_logits(&mut self) -> Result<Vec<f32>> {
        let (ids, counts) = self.unread_ids()?;
        if self.has_read_prompts {
            let logits = no_grad(|| self.model.forward_ragged(&ids, &counts, &mut self.cache))?;
            return logits.tensor().cast(DType::F32)?.to_vec::<f32>();
        }
        let longest = ids.shape()[1];
        let mut found: Vec<f32> = Vec::new();
        for start in (0..longest).step_by(self.chunk.min(longest)) {
            let size = self.chunk.min(longest - start);
            let part: Vec<usize> = counts.iter().map(|count| count.saturating_sub(start).min(size)).collect();
            let part_ids = ids.narrow(1, start, size)?;
            let logits = no_grad(|| self.model.prefill(&part_ids, &part, &mut self.cache))?;
            let ends = |count: usize| (start + 1..=start + size).contains(&count);
            if !counts.iter().any(|&count| ends(count)) {
                continue;
            }
            let logits = logits.tensor().cast(DType::F32)?.to_vec::<f32>()?;
            let width = logits.len() / counts.len();
            found.resize(logits.len(), 0.0);
            for (index, _) in counts.iter().enumerate().filter(|(_, count)| ends(**count)) {
                let row = index * width..(index + 1) * width;
                found[row.clone()].copy_from_slice(&logits[row]);
            }
        }
        Ok(found)
    }

    /// Returns the unread ids (batch, longest), with padding behind those of shorter sequences, and the number of each.
    fn unread_ids(&self) -> Result<(Tensor, Vec<usize>)> {
        let counts: Vec<usize> = self.unread.iter().map(Vec::len).collect();
        let longest = counts.iter().copied().max().unwrap_or(0);
        let padded = self
            .unread
            .iter()
            .flat_map(|ids| ids.iter().copied().chain(std::iter::repeat_n(self.pad_id, longest - ids.len())));
        let ids = Tensor::from_vec(padded.collect(), &[counts.len(), longest], &self.model.device())?;
        Ok((ids, counts))
    }

    /// Returns the error of logits that are NaN after ids, which the cache has.
    fn nan(&mut self, ids: &Tensor, counts: &[usize]) -> Result<Error> {
        let first = no_grad(|| self.model.first_nan(ids, counts, &mut self.cache))?;
        let part = first.unwrap_or_else(|| "a part that is not NaN again".to_owned());
        let found = format!("logits that are NaN in step {}, first in {part}", self.steps);
        Ok(Error::invalid(OPERATION, found, "finite weights, or a wider dtype"))
    }

    /// Takes the new id of each sequence that has not ended.
    fn finish(&mut self, mut next: impl FnMut(&mut Self, usize) -> Result<u32>) -> Result<Vec<Option<u32>>> {
        self.steps += 1;
        let mut found = Vec::with_capacity(self.has_ended.len());
        for index in 0..self.has_ended.len() {
            let id = if self.has_ended[index] { None } else { Some(next(self, index)?) };
            self.has_ended[index] |= id.is_some_and(|id| self.end_ids.contains(&id));
            self.unread[index] = vec![id.map_or(self.pad_id, i64::from)];
            found.push(id);
        }
        Ok(found)
    }
}

/// Returns the id of padding, which the vocabulary has.
fn pad_id(model: &Decoder) -> i64 {
    let config = model.config();
    config.pad_id.filter(|&id| (id as usize) < config.vocab_size).map_or(0, i64::from)
}

/// Checks the ids of prompts, and the positions that they and new ids need.
fn check(model: &Decoder, prompts: &[&[u32]], length: usize, options: &GenerationOptions) -> Result<()> {
    let config = model.config();
    let vocab_size = config.vocab_size;
    if options.prefill_chunk == Some(0) {
        return Err(Error::invalid(OPERATION, "parts of prompts of 0 ids", "at least 1 id"));
    }
    if let Some(id) = prompts.iter().flat_map(|prompt| prompt.iter()).find(|&&id| id as usize >= vocab_size) {
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
    Ok(())
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
