//! [`WarmupCosine`], a schedule of the learning rate.

use std::f64::consts::PI;

/// A learning rate that grows linearly to a peak and then falls along half a cosine to a minimum.
///
/// ```
/// use selvedge::nn::WarmupCosine;
/// let schedule = WarmupCosine { peak: 1.0, minimum: 0.0, warmup_steps: 2, total_steps: 6 };
/// let rates: Vec<f64> = (0..8).map(|step| schedule.learning_rate(step)).collect();
/// assert_eq!(rates[..3], [0.5, 1.0, 1.0]);
/// assert!((rates[4] - 0.5).abs() < 1e-15);
/// assert_eq!(rates[6..], [0.0, 0.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmupCosine {
    /// The largest rate.
    pub peak: f64,
    /// The rate from `total_steps` on.
    pub minimum: f64,
    /// Steps of the warm-up. Its last step has the peak.
    pub warmup_steps: u64,
    /// Steps of the warm-up and the cosine.
    pub total_steps: u64,
}

impl WarmupCosine {
    /// Returns the rate of a step, counted from 0.
    pub fn learning_rate(&self, step: u64) -> f64 {
        if step < self.warmup_steps {
            return self.peak * (step as f64 + 1.0) / self.warmup_steps as f64;
        }
        if step >= self.total_steps {
            return self.minimum;
        }
        let progress = (step - self.warmup_steps) as f64 / (self.total_steps - self.warmup_steps) as f64;
        self.minimum + (self.peak - self.minimum) * 0.5 * (1.0 + (PI * progress).cos())
    }
}
