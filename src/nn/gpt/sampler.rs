//! [`Sampler`], draws of ids from logits.

use std::cmp::Ordering;

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
}

impl Default for SamplerOptions {
    fn default() -> Self {
        SamplerOptions { temperature: 1.0, top_k: None, top_p: 1.0 }
    }
}

impl SamplerOptions {
    /// Takes the most likely id.
    pub fn greedy() -> SamplerOptions {
        SamplerOptions { temperature: 0.0, ..SamplerOptions::default() }
    }
}

/// Draws ids from logits: softmax(logits / temperature) among the `top_k` most likely ids, and among the fewest of these
/// that have `top_p` of the probability.
///
/// Draws follow from the seed alone. Ids of equal logits rank by their number.
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
}

impl Sampler {
    /// Creates a sampler.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a temperature that is negative or not finite, a `top_k` of 0, and a `top_p` outside
    /// (0, 1].
    pub fn new(options: SamplerOptions, seed: u64) -> Result<Sampler> {
        let SamplerOptions { temperature, top_k, top_p } = options;
        let invalid = |found: String, wanted: &str| Err(Error::invalid(OPERATION, found, wanted));
        if !(temperature.is_finite() && temperature >= 0.0) {
            return invalid(format!("temperature = {temperature}"), "a number from 0 on");
        }
        if top_k == Some(0) {
            return invalid("top_k = 0".to_owned(), "at least 1");
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return invalid(format!("top_p = {top_p}"), "above 0 and at most 1");
        }
        Ok(Sampler { options, generator: Generator::new(seed) })
    }

    /// Draws an id.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without logits and for a NaN among them.
    pub fn draw(&mut self, logits: &[f32]) -> Result<usize> {
        if logits.is_empty() {
            return Err(Error::invalid(OPERATION, "no logits", "at least one"));
        }
        if let Some(id) = logits.iter().position(|logit| logit.is_nan()) {
            return Err(Error::invalid(OPERATION, format!("NaN as the logit of id {id}"), "numbers"));
        }
        let SamplerOptions { temperature, top_k, top_p } = self.options;
        let mut order: Vec<usize> = (0..logits.len()).collect();
        // 0.0 and -0.0 are equal logits, and there is no NaN.
        let most_likely_first = |&a: &usize, &b: &usize| {
            logits[b].partial_cmp(&logits[a]).unwrap_or(Ordering::Equal).then(a.cmp(&b))
        };
        let count = match temperature > 0.0 {
            true => top_k.unwrap_or(usize::MAX).min(order.len()),
            false => 1,
        };
        if count < order.len() {
            order.select_nth_unstable_by(count - 1, most_likely_first);
            order.truncate(count);
        }
        order.sort_unstable_by(most_likely_first);
        if count == 1 {
            return Ok(order[0]);
        }
        let largest = f64::from(logits[order[0]]);
        // An infinite logit has all of the probability.
        let weight = |&id: &usize| match f64::from(logits[id]) - largest {
            difference if difference.is_nan() => 1.0,
            difference => (difference / temperature).exp(),
        };
        let mut sums = Vec::with_capacity(count);
        let mut sum = 0.0;
        for id in &order {
            sum += weight(id);
            sums.push(sum);
        }
        let kept = sums.partition_point(|&part| part < top_p * sum).min(count - 1) + 1;
        let uniform = self.generator.uniform(0.0, 1.0, &[1], DType::F64, &Device::cpu())?.to_vec::<f64>()?;
        let place = uniform.first().copied().unwrap_or(0.0) * sums[kept - 1];
        Ok(order[sums[..kept].partition_point(|&part| part <= place).min(kept - 1)])
    }
}
