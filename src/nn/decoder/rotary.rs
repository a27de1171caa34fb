//! [`Rotary`], the frequencies of rotary positions and their scalings.
//!
//! Formulas: [RoFormer](https://arxiv.org/abs/2104.09864), [YaRN](https://arxiv.org/abs/2309.00071),
//! [LongRoPE](https://arxiv.org/abs/2402.13753), and `modeling_rope_utils.py` of transformers, whose values these are.

use std::f64::consts::PI;

/// Rotary positions: pair i of a head, its elements i and i + dimensions / 2, turns by position · frequency i.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rotary {
    pub base: f64,
    /// The elements of a head that turn, the first ones; an even number.
    pub dimensions: usize,
    pub scaling: RotaryScaling,
    /// The factor of cosines and sines.
    pub magnitude: f64,
}

/// The change of the frequencies for contexts that are longer than the first training had.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RotaryScaling {
    None,
    /// All frequencies divided by a factor.
    Linear {
        factor: f64,
    },
    /// Low frequencies divided by a factor, with a linear change between two bands.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        original: f64,
    },
    /// As `Llama3` by the index of a pair, between the pairs that turn `fast` and `slow` times in the original context.
    Yarn {
        factor: f64,
        fast: f64,
        slow: f64,
        is_truncated: bool,
        original: f64,
    },
    /// A divisor for each frequency: the short ones up to a total length of `original`, the long ones for all positions of a
    /// longer total.
    LongRope {
        short: Vec<f64>,
        long: Vec<f64>,
        original: usize,
    },
}

impl Rotary {
    /// Returns whether a total length takes the frequencies of long contexts.
    pub fn is_long(&self, length: usize) -> bool {
        matches!(&self.scaling, RotaryScaling::LongRope { original, .. } if length > *original)
    }

    /// Returns the angle of each pair per position.
    pub fn frequencies(&self, is_long: bool) -> Vec<f64> {
        let dimensions = self.dimensions as f64;
        let plain = |pair: usize| self.base.powf(-(2.0 * pair as f64) / dimensions);
        let scaled = |pair: usize| {
            let frequency = plain(pair);
            match &self.scaling {
                RotaryScaling::None => frequency,
                RotaryScaling::Linear { factor } => frequency / factor,
                &RotaryScaling::Llama3 { factor, low, high, original } => {
                    let wavelength = 2.0 * PI / frequency;
                    let mix = (original / wavelength - low) / (high - low);
                    if wavelength < original / high {
                        frequency
                    } else if wavelength > original / low {
                        frequency / factor
                    } else {
                        (1.0 - mix) * frequency / factor + mix * frequency
                    }
                }
                &RotaryScaling::Yarn { factor, fast, slow, is_truncated, original } => {
                    let pair_of = |turns: f64| {
                        dimensions * (original / (turns * 2.0 * PI)).ln() / (2.0 * self.base.ln())
                    };
                    let (mut first, mut last) = (pair_of(fast), pair_of(slow));
                    if is_truncated {
                        (first, last) = (first.floor(), last.ceil());
                    }
                    (first, last) = (first.max(0.0), last.min(dimensions - 1.0));
                    let span = if last == first { 0.001 } else { last - first };
                    let ramp = ((pair as f64 - first) / span).clamp(0.0, 1.0);
                    frequency / factor * ramp + frequency * (1.0 - ramp)
                }
                RotaryScaling::LongRope { short, long, .. } => {
                    let factors = if is_long { long } else { short };
                    frequency / factors.get(pair).copied().unwrap_or(1.0)
                }
            }
        };
        (0..self.dimensions / 2).map(scaled).collect()
    }
}
