//! [`Sampler`], draws of ids from logits.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::tensor::{Device, Generator};
use crate::types::DType;

const OPERATION: &str = "Sampler";

/// The options of a [`Sampler`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplerOptions {
    /// The divisor of the logits: 1. With 0 the most likely id is taken.
    pub temperature: f64,
    /// The most ids to draw from: all.
    pub top_k: Option<usize>,
    /// The probability of the ids to draw from: 1.
    pub top_p: f64,
    /// The least probability of an id to draw, as a share of that of the most likely one: 0.
    pub min_p: f64,
    /// The divisor of positive logits, and the factor of others, for ids of the prompt and drawn ids: 1.
    pub repetition_penalty: f64,
    /// The number that is subtracted from the logit of an id that was drawn before: 0.
    pub presence_penalty: f64,
    /// The number that is subtracted from the logit of an id for each time that it was drawn: 0.
    pub frequency_penalty: f64,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        SamplerOptions {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
        }
    }
}

impl SamplerOptions {
    /// Takes the most likely id.
    pub fn greedy() -> SamplerOptions {
        SamplerOptions { temperature: 0.0, ..SamplerOptions::default() }
    }

    /// Checks the values.
    ///
    /// # Errors
    ///
    /// As [`Sampler::new`].
    pub fn check(&self) -> Result<()> {
        let invalid = |found: String, wanted: &str| Err(Error::invalid(OPERATION, found, wanted));
        let check = |name: &str, value: f64, is_valid: bool, wanted: &str| match is_valid {
            true => Ok(()),
            false => invalid(format!("{name} = {value}"), wanted),
        };
        let is_non_negative = |value: f64| value.is_finite() && value >= 0.0;
        check("temperature", self.temperature, is_non_negative(self.temperature), "a number from 0 on")?;
        if self.top_k == Some(0) {
            return invalid("top_k = 0".to_owned(), "at least 1");
        }
        check("top_p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0, "above 0 and at most 1")?;
        check("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "0 to 1")?;
        let repetition = self.repetition_penalty;
        let is_factor = repetition.is_finite() && repetition > 0.0;
        check("repetition_penalty", repetition, is_factor, "a number above 0; 1 changes nothing")?;
        for (name, value) in
            [("presence_penalty", self.presence_penalty), ("frequency_penalty", self.frequency_penalty)]
        {
            check(name, value, value.is_finite(), "a finite number; 0 changes nothing")?;
        }
        Ok(())
    }

    /// Returns whether the most likely id is taken, and nothing changes the logits.
    pub(crate) fn is_greedy(&self) -> bool {
        self.temperature == 0.0 && !self.has_penalty()
    }

    fn has_penalty(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }
}

/// Natural logarithms of probabilities that a model gave: log_softmax of the logits, before penalties and the temperature.
#[derive(Debug, Clone, PartialEq)]
pub struct LogProbabilities {
    /// That of the drawn id.
    pub drawn: f64,
    /// The most likely ids and theirs, the most likely first.
    pub top: Vec<(u32, f64)>,
}

impl LogProbabilities {
    /// Returns that of an id, and those of the `top` most likely ids. Ids of equal logits rank by their number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a NaN among the logits, and for an id that has none.
    pub fn new(logits: &[f32], id: u32, top: usize) -> Result<LogProbabilities> {
        check_logits(logits)?;
        let Some(&drawn) = logits.get(id as usize) else {
            let wanted = format!("an id below {}", logits.len());
            return Err(Error::invalid("LogProbabilities", format!("id {id}"), wanted));
        };
        let logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|&logit| difference(logit, largest).exp()).sum();
        let log = |logit: f64| difference(logit, largest) - sum.ln();
        let ids = most_likely(&logits, top.min(logits.len()));
        let top = ids.into_iter().map(|id| (id as u32, log(logits[id]))).collect();
        Ok(LogProbabilities { drawn: log(f64::from(drawn)), top })
    }
}

/// Draws ids from logits: softmax(logits / temperature) among the `top_k` most likely ids, among the fewest of these that have
/// `top_p` of the probability, and among those of these with `min_p` of the largest probability.
///
/// Before, penalties change the logits x of earlier ids: those of the prompt and drawn ones to x / `repetition_penalty`, or
/// x · `repetition_penalty` if x is negative, and then of an id that was drawn n times to
/// x - `presence_penalty` - n `frequency_penalty`.
///
/// Draws follow from the seed and the ids before alone. Ids of equal logits rank by their number.
///
/// ```
/// use selvedge::nn::{Sampler, SamplerOptions};
/// let mut sampler = Sampler::new(SamplerOptions::greedy(), 1)?;
/// assert_eq!(sampler.draw(&[0.5, 2.0, 2.0])?, 1);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    options: SamplerOptions,
    generator: Generator,
    /// The ids of the prompt and the drawn ones, with the number of draws; empty without penalties.
    counts: BTreeMap<usize, u64>,
}

impl Sampler {
    /// Creates a sampler.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a temperature that is negative or not finite, a `top_k` of 0, a `top_p` outside (0, 1], a
    /// `min_p` outside [0, 1], a `repetition_penalty` that is not above 0, and another penalty that is not finite.
    pub fn new(options: SamplerOptions, seed: u64) -> Result<Sampler> {
        options.check()?;
        Ok(Sampler { options, generator: Generator::new(seed), counts: BTreeMap::new() })
    }

    /// Takes the ids of a prompt, which the repetition penalty concerns.
    pub fn read_prompt(&mut self, ids: &[u32]) {
        if self.options.has_penalty() {
            for &id in ids {
                self.counts.entry(id as usize).or_insert(0);
            }
        }
    }

    /// Draws an id.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without logits and for a NaN among them.
    pub fn draw(&mut self, logits: &[f32]) -> Result<usize> {
        check_logits(logits)?;
        let id = self.draw_from(&self.penalized(logits))?;
        if self.options.has_penalty() {
            *self.counts.entry(id).or_insert(0) += 1;
        }
        Ok(id)
    }

    /// Returns the logits after the penalties.
    fn penalized(&self, logits: &[f32]) -> Vec<f64> {
        let mut logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
        let SamplerOptions { repetition_penalty, presence_penalty, frequency_penalty, .. } = self.options;
        for (&id, &count) in &self.counts {
            if let Some(logit) = logits.get_mut(id) {
                *logit = match *logit > 0.0 {
                    true => *logit / repetition_penalty,
                    false => *logit * repetition_penalty,
                };
                if count > 0 {
                    *logit -= presence_penalty + count as f64 * frequency_penalty;
                }
            }
        }
        logits
    }

    fn draw_from(&mut self, logits: &[f64]) -> Result<usize> {
        let SamplerOptions { temperature, top_k, top_p, min_p, .. } = self.options;
        let count = match temperature > 0.0 {
            true => top_k.unwrap_or(usize::MAX).min(logits.len()),
            false => 1,
        };
        let order = most_likely(logits, count);
        if count == 1 {
            return Ok(order[0]);
        }
        let largest = logits[order[0]];
        let weights: Vec<f64> =
            order.iter().map(|&id| (difference(logits[id], largest) / temperature).exp()).collect();
        let mut sum = 0.0;
        let sums: Vec<f64> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let likely = sums.partition_point(|&part| part < top_p * sum).min(count - 1) + 1;
        // The weight of the most likely id is 1.
        let candidates = weights[..likely].partition_point(|&weight| weight >= min_p).max(1);
        let uniform = self.generator.uniform(0.0, 1.0, &[1], DType::F64, &Device::cpu())?.to_vec::<f64>()?;
        let threshold = uniform.first().copied().unwrap_or(0.0) * sums[candidates - 1];
        Ok(order[sums[..candidates].partition_point(|&part| part <= threshold).min(candidates - 1)])
    }
}

fn check_logits(logits: &[f32]) -> Result<()> {
    if logits.is_empty() {
        return Err(Error::invalid(OPERATION, "no logits", "at least one"));
    }
    match logits.iter().position(|logit| logit.is_nan()) {
        Some(id) => Err(Error::invalid(OPERATION, format!("NaN as the logit of id {id}"), "numbers")),
        None => Ok(()),
    }
}

/// Returns a logit less the largest one. An infinite largest logit has all of the probability.
fn difference(logit: f64, largest: f64) -> f64 {
    match logit - largest {
        difference if difference.is_nan() => 0.0,
        difference => difference,
    }
}

/// Returns the most likely ids, the most likely first.
fn most_likely(logits: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // 0.0 and -0.0 are equal logits, and there is no NaN.
    let most_likely_first =
        |&a: &usize, &b: &usize| logits[b].partial_cmp(&logits[a]).unwrap_or(Ordering::Equal).then(a.cmp(&b));
    if count < order.len() {
        if count > 0 {
            order.select_nth_unstable_by(count - 1, most_likely_first);
        }
        order.truncate(count);
    }
    order.sort_unstable_by(most_likely_first);
    order
}
