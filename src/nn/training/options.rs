//! [`TrainerOptions`], the numbers of a run.

use serde::{Deserialize, Serialize};

use super::loss_scale::LossScale;
use crate::error::{Error, Result};
use crate::nn::{LearningRateSchedule, Recompute, ScheduleShape};

const OPERATION: &str = "TrainerOptions";

/// The numbers of a run of training. The defaults suit a model like [`GptConfig::tiny`](crate::nn::GptConfig::tiny).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrainerOptions {
    /// Steps of the run, which the schedule is drawn over: 300.
    pub steps: u64,
    /// Sequences of a batch: 16.
    pub batch: usize,
    /// Ids of a sequence: the model's context.
    pub context: Option<usize>,
    /// Batches whose gradients are averaged in a step: 1.
    pub accumulation: usize,
    /// The largest learning rate: 5e-3.
    pub learning_rate: f64,
    /// The learning rate at the end, but for a constant one: 5e-4.
    pub min_learning_rate: f64,
    /// The course of the learning rate after the warm-up: a cosine.
    #[serde(default)]
    pub schedule_shape: ScheduleShape,
    /// Steps of the warm-up: 20.
    pub warmup_steps: u64,
    /// AdamW's decay, of parameters with two axes or more: 0.1.
    pub weight_decay: f64,
    /// AdamW's β: 0.9 and 0.99.
    pub betas: (f64, f64),
    /// The largest norm of all gradients together: 1. None leaves them.
    pub max_norm: Option<f64>,
    /// The factor of the loss, for a model that computes in f16: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<LossScale>,
    /// The activations that a backward computes again, which no bit depends on: nothing.
    #[serde(default)]
    pub recompute: Recompute,
    /// Batches of the validation text in an evaluation: 8.
    pub evaluation_batches: usize,
    /// True if a step takes windows side by side, each once an epoch, as [`Batches::shuffled`](crate::nn::Batches::shuffled);
    /// otherwise windows at random positions: false.
    #[serde(default)]
    pub is_shuffled: bool,
    /// The seed of the weights, the batches and the dropout: 1.
    pub seed: u64,
}

impl Default for TrainerOptions {
    fn default() -> Self {
        TrainerOptions {
            steps: 300,
            batch: 16,
            context: None,
            accumulation: 1,
            learning_rate: 5e-3,
            min_learning_rate: 5e-4,
            schedule_shape: ScheduleShape::Cosine,
            warmup_steps: 20,
            weight_decay: 0.1,
            betas: (0.9, 0.99),
            max_norm: Some(1.0),
            loss_scale: None,
            recompute: Recompute::Nothing,
            evaluation_batches: 8,
            is_shuffled: false,
            seed: 1,
        }
    }
}

impl TrainerOptions {
    /// Returns the schedule of the learning rate.
    pub fn schedule(&self) -> LearningRateSchedule {
        LearningRateSchedule {
            shape: self.schedule_shape,
            peak: self.learning_rate,
            minimum: self.min_learning_rate,
            warmup_steps: self.warmup_steps.min(self.steps),
            total_steps: self.steps,
        }
    }

    /// Takes the shape, the rates and the warm-up of a schedule, and its steps unless they are 0.
    ///
    /// ```
    /// use selvedge::nn::{LearningRateSchedule, ScheduleShape, TrainerOptions};
    /// let schedule = LearningRateSchedule {
    ///     shape: ScheduleShape::Linear,
    ///     peak: 0.5,
    ///     minimum: 0.0,
    ///     warmup_steps: 0,
    ///     total_steps: 10,
    /// };
    /// let options = TrainerOptions::default().with_schedule(&schedule);
    /// assert_eq!((options.steps, options.schedule()), (10, schedule));
    /// ```
    #[must_use]
    pub fn with_schedule(self, schedule: &LearningRateSchedule) -> TrainerOptions {
        let LearningRateSchedule { shape, peak, minimum, warmup_steps, total_steps } = *schedule;
        TrainerOptions {
            steps: if total_steps > 0 { total_steps } else { self.steps },
            schedule_shape: shape,
            learning_rate: peak,
            min_learning_rate: minimum,
            warmup_steps,
            ..self
        }
    }

    /// Checks the numbers that no other part of a run checks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a count of 0, for a rate that is negative or not finite, and for a `max_norm` that is negative
    /// or NaN.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("batch", self.batch),
            ("accumulation", self.accumulation),
            ("evaluation_batches", self.evaluation_batches),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Error::invalid(OPERATION, format!("{name} = 0"), "at least 1"));
        }
        if let Some(max_norm) = self.max_norm.filter(|max_norm| max_norm.is_nan() || *max_norm < 0.0) {
            return Err(Error::invalid(OPERATION, format!("max_norm = {max_norm}"), "a number from 0 on"));
        }
        let rates = [("learning_rate", self.learning_rate), ("min_learning_rate", self.min_learning_rate)];
        match rates.iter().find(|(_, rate)| !(rate.is_finite() && *rate >= 0.0)) {
            Some((name, rate)) => {
                Err(Error::invalid(OPERATION, format!("{name} = {rate}"), "a number from 0 on"))
            }
            None => Ok(()),
        }
    }
}
