//! [`LearningRateSchedule`], the learning rate of each step.
//!
//! Tests: `tests/nn/optimizers.rs`.

use std::f64::consts::PI;
use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::nn::checks::check_non_negative;

const NAME: &str = "LearningRateSchedule";

/// The decay of [`ScheduleShape::Wsd`] is in the last one of so many parts of the steps.
const WSD_PARTS: u64 = 5;

/// The course of a learning rate after its warm-up, of t steps since then.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleShape {
    /// Half a cosine from the peak to the minimum.
    #[default]
    Cosine,
    /// The peak.
    Constant,
    /// A line from the peak to the minimum.
    Linear,
    /// Warm-up, stable, decay: the peak, and in the last fifth of all steps a line to the minimum.
    Wsd,
    /// PyTorch's `StepLR`: the peak times `gamma` to the power ⌊t / `size`⌋, and no less than the minimum. It has no last step.
    Step {
        /// Steps with one rate.
        size: NonZeroU64,
        /// The ratio of a rate to the one before it.
        gamma: f64,
    },
    /// PyTorch's `OneCycleLR`: the warm-up is half a cosine, from the peak / `div_factor` to the peak, and then comes half a cosine
    /// whose last step has the minimum.
    OneCycle {
        /// The ratio of the peak to the first rate.
        div_factor: f64,
    },
}

impl fmt::Display for ScheduleShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ScheduleShape::Cosine => "cosine",
            ScheduleShape::Constant => "constant",
            ScheduleShape::Linear => "linear",
            ScheduleShape::Wsd => "wsd",
            ScheduleShape::Step { .. } => "step",
            ScheduleShape::OneCycle { .. } => "onecycle",
        })
    }
}

/// A learning rate that grows to a peak, linearly but for [`ScheduleShape::OneCycle`], and then follows a shape.
///
/// ```
/// use selvedge::nn::{LearningRateSchedule, ScheduleShape};
/// let shape = ScheduleShape::Cosine;
/// let schedule = LearningRateSchedule { shape, peak: 1.0, minimum: 0.0, warmup_steps: 2, total_steps: 6 };
/// let rates: Vec<f64> = (0..8).map(|step| schedule.learning_rate(step)).collect();
/// assert_eq!(rates[..3], [0.5, 1.0, 1.0]);
/// assert!((rates[4] - 0.5).abs() < 1e-15);
/// assert_eq!(rates[6..], [0.0, 0.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearningRateSchedule {
    /// The course after the warm-up.
    pub shape: ScheduleShape,
    /// The largest rate.
    pub peak: f64,
    /// The rate from `total_steps` on, but for a constant one and for steps, which it limits.
    pub minimum: f64,
    /// Steps of the warm-up. Its last step has the peak.
    pub warmup_steps: u64,
    /// Steps of the warm-up and the shape.
    pub total_steps: u64,
}

impl LearningRateSchedule {
    /// Returns PyTorch's `StepLR`: the peak, times `gamma` after each `size` steps.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// use selvedge::nn::LearningRateSchedule;
    /// let schedule = LearningRateSchedule::step(1.0, NonZeroU64::new(10).ok_or("no steps")?, 0.5);
    /// assert_eq!([0, 9, 10, 25].map(|step| schedule.learning_rate(step)), [1.0, 1.0, 0.5, 0.25]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step(peak: f64, size: NonZeroU64, gamma: f64) -> LearningRateSchedule {
        let shape = ScheduleShape::Step { size, gamma };
        LearningRateSchedule { shape, peak, minimum: 0.0, warmup_steps: 0, total_steps: 0 }
    }

    /// Returns PyTorch's `OneCycleLR` with its defaults: a warm-up from peak / 25 in the first 3 of 10 steps, rounded down, and a last
    /// rate of peak / 25e4.
    ///
    /// ```
    /// use selvedge::nn::LearningRateSchedule;
    /// let schedule = LearningRateSchedule::one_cycle(1.0, 100);
    /// assert_eq!([0, 29, 99].map(|step| schedule.learning_rate(step)), [0.04, 1.0, 4e-6]);
    /// ```
    pub fn one_cycle(peak: f64, total_steps: u64) -> LearningRateSchedule {
        const DIV_FACTOR: f64 = 25.0;
        const FINAL_DIV_FACTOR: f64 = 1e4;
        LearningRateSchedule {
            shape: ScheduleShape::OneCycle { div_factor: DIV_FACTOR },
            peak,
            minimum: peak / DIV_FACTOR / FINAL_DIV_FACTOR,
            warmup_steps: total_steps / 10 * 3 + total_steps % 10 * 3 / 10,
            total_steps,
        }
    }

    /// Checks the numbers of a schedule. [`learning_rate`](Self::learning_rate) takes any, and a step of an optimizer refuses a rate
    /// that is negative or not finite.
    ///
    /// ```
    /// use selvedge::nn::LearningRateSchedule;
    /// let schedule = LearningRateSchedule::one_cycle(-1.0, 100);
    /// let text = schedule.check().err().map(|error| error.to_string());
    /// let wanted = "LearningRateSchedule: found a peak of -1; wanted a finite number that is at least 0";
    /// assert_eq!(text.as_deref(), Some(wanted));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a peak, a minimum or a gamma that is negative or not finite, and for a div_factor that is not
    /// above 0.
    pub fn check(&self) -> Result<()> {
        check_non_negative(NAME, "a peak", self.peak)?;
        check_non_negative(NAME, "a minimum", self.minimum)?;
        match self.shape {
            ScheduleShape::Step { gamma, .. } => check_non_negative(NAME, "a gamma", gamma),
            ScheduleShape::OneCycle { div_factor } if !(div_factor.is_finite() && div_factor > 0.0) => {
                let found = format!("a div_factor of {div_factor}");
                Err(Error::invalid(NAME, found, "a finite number above 0"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the rate of a step, counted from 0.
    pub fn learning_rate(&self, step: u64) -> f64 {
        let LearningRateSchedule { shape, peak, minimum, warmup_steps, total_steps } = *self;
        if let ScheduleShape::OneCycle { div_factor } = shape {
            return self.cycle(step, peak / div_factor);
        }
        if step < warmup_steps {
            return peak * (step as f64 + 1.0) / warmup_steps as f64;
        }
        match shape {
            ScheduleShape::Constant => return peak,
            ScheduleShape::Step { size, gamma } => {
                let changes = i32::try_from((step - warmup_steps) / size).unwrap_or(i32::MAX);
                return (peak * gamma.powi(changes)).max(minimum);
            }
            _ => {}
        }
        if step >= total_steps {
            return minimum;
        }
        let first = match shape {
            ScheduleShape::Wsd => warmup_steps.max(total_steps - total_steps / WSD_PARTS),
            _ => warmup_steps,
        };
        if step < first {
            return peak;
        }
        let progress = (step - first) as f64 / (total_steps - first) as f64;
        match shape {
            ScheduleShape::Cosine => half_cosine(peak, minimum, progress),
            _ => minimum + (peak - minimum) * (1.0 - progress),
        }
    }

    /// Returns the rate of a step of [`ScheduleShape::OneCycle`].
    fn cycle(&self, step: u64, initial: f64) -> f64 {
        let LearningRateSchedule { peak, minimum, warmup_steps, total_steps, .. } = *self;
        let (top, last, step) = (warmup_steps as f64 - 1.0, total_steps as f64 - 1.0, step as f64);
        // The ends of both halves are exact.
        if step == 0.0 && top > 0.0 {
            initial
        } else if step < top {
            half_cosine(initial, peak, step / top)
        } else if step == top {
            peak
        } else if step < last {
            half_cosine(peak, minimum, (step - top) / (last - top))
        } else {
            minimum
        }
    }
}

/// Returns the number at a part, from 0 to 1, of half a cosine.
fn half_cosine(from: f64, to: f64, progress: f64) -> f64 {
    to + (from - to) * 0.5 * (1.0 + (PI * progress).cos())
}
