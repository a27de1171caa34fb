//! Schedules of the learning rate.

use std::num::NonZeroU64;

use super::super::arguments::{check_reserved, check_unused, or_default, out, structure};
use super::super::error::{Failure, Result};
use super::super::guard;
use crate::nn::{LearningRateSchedule, ScheduleShape};

/// Half a cosine from the peak to the minimum.
pub const SV_SCHEDULE_COSINE: i32 = 1;
/// The peak.
pub const SV_SCHEDULE_CONSTANT: i32 = 2;
/// A line from the peak to the minimum.
pub const SV_SCHEDULE_LINEAR: i32 = 3;
/// The peak, and in the last fifth of all steps a line to the minimum.
pub const SV_SCHEDULE_WSD: i32 = 4;
/// The peak, times `gamma` after each `step_size` steps, and no less than the minimum: PyTorch's `StepLR`.
pub const SV_SCHEDULE_STEP: i32 = 5;
/// Half a cosine from the peak / `div_factor` to the peak in the warm-up, and one to the minimum: PyTorch's `OneCycleLR`.
pub const SV_SCHEDULE_ONE_CYCLE: i32 = 6;

/// A learning rate that grows to a peak, linearly but for `SV_SCHEDULE_ONE_CYCLE`, and then follows a shape. A field that the shape does not
/// use is 0.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_schedule {
    /// The size of the struct in bytes.
    pub size: usize,
    /// One of `SV_SCHEDULE_...`.
    pub shape: i32,
    /// 0.
    pub reserved: i32,
    /// The largest rate.
    pub peak: f64,
    /// The rate from `total_steps` on, and the least one of `SV_SCHEDULE_STEP`. `SV_SCHEDULE_CONSTANT` uses none.
    pub minimum: f64,
    /// Steps of the warm-up. Its last step has the peak.
    pub warmup_steps: u64,
    /// Steps of the warm-up and the shape. `SV_SCHEDULE_CONSTANT` and `SV_SCHEDULE_STEP` use none.
    pub total_steps: u64,
    /// Steps of `SV_SCHEDULE_STEP` with one rate, above 0.
    pub step_size: u64,
    /// The ratio of a rate of `SV_SCHEDULE_STEP` to the one before it; 0 for 0.1.
    pub gamma: f64,
    /// The ratio of the peak of `SV_SCHEDULE_ONE_CYCLE` to the first rate; 0 for 25.
    pub div_factor: f64,
}

impl sv_schedule {
    fn schedule(&self) -> Result<LearningRateSchedule> {
        check_reserved("schedule.reserved", self.reserved)?;
        let shape = match self.shape {
            SV_SCHEDULE_COSINE => ScheduleShape::Cosine,
            SV_SCHEDULE_CONSTANT => ScheduleShape::Constant,
            SV_SCHEDULE_LINEAR => ScheduleShape::Linear,
            SV_SCHEDULE_WSD => ScheduleShape::Wsd,
            SV_SCHEDULE_STEP => {
                let size = NonZeroU64::new(self.step_size)
                    .ok_or_else(|| Failure::argument("schedule.step_size", 0, "a number of steps above 0"))?;
                ScheduleShape::Step { size, gamma: or_default(self.gamma, 0.1) }
            }
            SV_SCHEDULE_ONE_CYCLE => {
                ScheduleShape::OneCycle { div_factor: or_default(self.div_factor, 25.0) }
            }
            other => return Err(Failure::argument("schedule.shape", other, "one of SV_SCHEDULE_...")),
        };
        let (is_step, is_constant) = (self.shape == SV_SCHEDULE_STEP, self.shape == SV_SCHEDULE_CONSTANT);
        if !is_step {
            let reads = "the shape SV_SCHEDULE_STEP";
            check_unused("schedule.step_size", self.step_size as f64, reads)?;
            check_unused("schedule.gamma", self.gamma, reads)?;
        }
        if is_step || is_constant {
            let reads = "a shape other than SV_SCHEDULE_CONSTANT and SV_SCHEDULE_STEP";
            check_unused("schedule.total_steps", self.total_steps as f64, reads)?;
        }
        if is_constant {
            let reads = "a shape other than SV_SCHEDULE_CONSTANT";
            check_unused("schedule.minimum", self.minimum, reads)?;
        }
        if self.shape != SV_SCHEDULE_ONE_CYCLE {
            check_unused("schedule.div_factor", self.div_factor, "the shape SV_SCHEDULE_ONE_CYCLE")?;
        }
        let schedule = LearningRateSchedule {
            shape,
            peak: self.peak,
            minimum: self.minimum,
            warmup_steps: self.warmup_steps,
            total_steps: self.total_steps,
        };
        schedule.check()?;
        Ok(schedule)
    }
}

/// Gives the learning rate of a step, counted from 0, for `sv_optimizer_set_learning_rate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_schedule_learning_rate(
    schedule: *const sv_schedule,
    step: u64,
    learning_rate: *mut f64,
) -> i32 {
    guard::call("sv_schedule_learning_rate", || {
        let (schedule, learning_rate) =
            (structure(schedule, "schedule")?, out(learning_rate, "learning_rate")?);
        learning_rate.write(schedule.schedule()?.learning_rate(step));
        Ok(())
    })
}
