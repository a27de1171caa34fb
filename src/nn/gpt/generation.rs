//! [`Generation`], new ids one after another.

use super::cache::KeyValueCache;
use super::model::Gpt;
use super::sampler::{LogProbabilities, Sampler};
use crate::error::{Error, Result};
use crate::nn::no_grad;
use crate::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "Generation";

/// An endless iterator of ids that continue a prompt.
///
/// The model reads each position once. When the context is full, it reads the last half of it again as the first positions,
/// and goes on. The model should be in the evaluation mode ([`Module::eval`](crate::nn::Module::eval)).
pub struct Generation<'m> {
    model: &'m Gpt,
    sampler: Sampler,
    cache: KeyValueCache,
    ids: Vec<i64>,
    /// The most ids that the model reads at once.
    context: usize,
    /// How many of `ids` the cache does not have.
    unread: usize,
    /// The number of most likely ids whose log-probabilities are computed.
    top: Option<usize>,
    log_probabilities: Option<LogProbabilities>,
}

impl<'m> Generation<'m> {
    /// Creates a generation. Of a prompt that is longer than the context, the model reads the end.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an empty prompt, and for an id outside the vocabulary.
    pub fn new(model: &'m Gpt, prompt: &[u32], mut sampler: Sampler) -> Result<Generation<'m>> {
        let vocab_size = model.config().vocab_size;
        if prompt.is_empty() {
            return Err(Error::invalid(OPERATION, "an empty prompt", "at least one id"));
        }
        if let Some(id) = prompt.iter().find(|&&id| id as usize >= vocab_size) {
            let wanted = format!("ids below {vocab_size}");
            return Err(Error::invalid(OPERATION, format!("id {id} in the prompt"), wanted));
        }
        let ids: Vec<i64> = prompt.iter().map(|&id| i64::from(id)).collect();
        sampler.read_prompt(prompt);
        let unread = ids.len();
        let context = model.config().context;
        let cache = KeyValueCache::new();
        Ok(Generation { model, sampler, cache, ids, context, unread, top: None, log_probabilities: None })
    }

    /// Computes the log-probability of each new id, and those of the `top` most likely ids.
    pub fn with_log_probabilities(self, top: usize) -> Generation<'m> {
        Generation { top: Some(top), ..self }
    }

    /// Returns the log-probabilities of the last id, if [`with_log_probabilities`](Self::with_log_probabilities) asks for them.
    pub fn log_probabilities(&self) -> Option<&LogProbabilities> {
        self.log_probabilities.as_ref()
    }

    /// Sets the most ids that the model reads at once, its context otherwise: a model that was trained on shorter sequences
    /// has no trained positions past their end.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for 0, and for more than the model's context.
    pub fn with_context(self, context: usize) -> Result<Generation<'m>> {
        let most = self.model.config().context;
        if context == 0 || context > most {
            let wanted = format!("1 to the model's, {most}");
            return Err(Error::invalid(OPERATION, format!("a context of {context}"), wanted));
        }
        Ok(Generation { context, ..self })
    }

    fn next_id(&mut self) -> Result<u32> {
        let context = self.context;
        if self.cache.length() + self.unread > context {
            self.cache.clear();
            self.unread = if self.ids.len() > context { (context / 2).max(1) } else { self.ids.len() };
        }
        let device = self.model.device();
        let unread = &self.ids[self.ids.len() - self.unread..];
        let ids = Tensor::from_slice(unread, &[1, unread.len()], &device)?;
        let logits = no_grad(|| self.model.forward_cached(&ids, &mut self.cache))?;
        let logits = logits.tensor().cast(DType::F32)?.to_vec::<f32>()?;
        let id = self.sampler.draw(&logits)?;
        self.log_probabilities =
            self.top.map(|top| LogProbabilities::new(&logits, id as u32, top)).transpose()?;
        self.unread = 1;
        self.ids.push(id as i64);
        if self.ids.len() > 2 * context {
            self.ids.drain(..self.ids.len() - context);
        }
        Ok(id as u32)
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        Some(self.next_id())
    }
}
