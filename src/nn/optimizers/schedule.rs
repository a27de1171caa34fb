//! [`LearningRateSchedule`], the learning rate of each step.
//!
//! Tests: `tests/nn/optimizers.rs`.

use std::f64::consts::PI;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The decay of [`ScheduleShape::Wsd`] is in the last one of so many parts of the steps.
const WSD_PARTS: u64 = 5;

/// The course of a learning rate after its warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
}

impl fmt::Display for ScheduleShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ScheduleShape::Cosine => "cosine",
            ScheduleShape::Constant => "constant",
            ScheduleShape::Linear => "linear",
            ScheduleShape::Wsd => "wsd",
        })
    }
}

/// A learning rate that grows linearly to a peak and then follows a shape.
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
    /// The rate from `total_steps` on, but for a constant one.
    pub minimum: f64,
    /// Steps of the warm-up. Its last step has the peak.
    pub warmup_steps: u64,
    /// Steps of the warm-up and the shape.
    pub total_steps: u64,
}

impl LearningRateSchedule {
    /// Returns the rate of a step, counted from 0.
    pub fn learning_rate(&self, step: u64) -> f64 {
        let LearningRateSchedule { shape, peak, minimum, warmup_steps, total_steps } = *self;
        if step < warmup_steps {
            return peak * (step as f64 + 1.0) / warmup_steps as f64;
        }
        if shape == ScheduleShape::Constant {
            return peak;
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
            ScheduleShape::Cosine => minimum + (peak - minimum) * 0.5 * (1.0 + (PI * progress).cos()),
            _ => minimum + (peak - minimum) * (1.0 - progress),
        }
    }
}
