//! The memory of a training step, by measurement: `--memory` prints it, and the error of a run that ran out of memory names the
//! batch that fits.
//!
//! New trainers take steps at batches of 1, 2, 4 and so on, until the peak of the tensors' memory grows linearly with the batch. The
//! last two peaks have the part that every batch takes and that of a sequence. `available` has the memory that there is, `plan` the report and
//! `advice` the error.
//!
//! Tests: `tests/cli/train_memory.rs`.

use selvedge::nn::{Recompute, Trainer, TrainerOptions};
use selvedge::tensor::{host_memory_statistics, reset_peak_host_memory};
use selvedge::{Device, Error};

use super::language_model::RunModel;

mod advice;
mod available;
mod plan;

pub use advice::explained;
pub use plan::report;

/// The steps after the first one. A device captures the first of them as a graph and launches the graph in the second.
const STEPS: usize = 2;
/// The largest batch to measure, on the CPU and on a CUDA device.
const MAX_MEASURED: [u64; 2] = [64, 4096];
/// The largest batch that fits is at most so many times a measured one on a CUDA device, where steps are quick. The loss of a
/// language model takes its logits in chunks, so the memory of few sequences grows faster than that of many.
const MAX_EXTENSION: u64 = 4;
/// The largest batch that `--batch` takes.
const MAX_BATCH: u64 = 1 << 20;

/// Measures the memory of new trainers.
pub struct Meter<'a> {
    pub device: Device,
    pub numbers: TrainerOptions,
    pub new_model: &'a dyn Fn() -> Result<RunModel, Error>,
    pub new_trainer: &'a dyn Fn(RunModel, TrainerOptions) -> Result<Trainer<RunModel>, Error>,
}

/// The memory of one batch, in bytes beyond those before the run.
#[derive(Debug, Clone, Copy)]
struct Measured {
    parameters: u64,
    gradients: u64,
    optimizer: u64,
    /// The most of a step, with these three.
    peak: u64,
}

/// The memory of a choice of recomputation.
#[derive(Debug, Clone)]
struct Choice {
    recompute: Recompute,
    /// Batches of 1, 2, 4 and so on that fit, with their memory.
    batches: Vec<(u64, Measured)>,
}

impl Choice {
    /// Returns the bytes of a step beside those that each sequence adds, and these, by the last two batches.
    fn line(&self) -> Option<(u64, u64)> {
        let [.., (batch, measured), (next, of_next)] = &self.batches[..] else { return None };
        let sequence = of_next.peak.saturating_sub(measured.peak).div_ceil(next - batch);
        Some((of_next.peak.saturating_sub(sequence * next), sequence))
    }

    /// Returns whether the last two slopes are nearly equal. The peak of few sequences may be that of the optimizer, which they do not
    /// change.
    fn is_linear(&self) -> bool {
        let [.., (first, a), (second, b), (third, c)] = &self.batches[..] else { return false };
        let slope = |from: u64, to: u64, batches: u64| to.saturating_sub(from) / batches;
        let (before, last) = (slope(a.peak, b.peak, second - first), slope(b.peak, c.peak, third - second));
        before > 0 && last.abs_diff(before) <= last / 16
    }

    /// Returns the memory of a batch: as measured, or on the line.
    fn peak(&self, batch: u64) -> Option<u64> {
        if let Some((_, measured)) = self.batches.iter().find(|(measured, _)| *measured == batch) {
            return Some(measured.peak);
        }
        let (fixed, sequence) = self.line()?;
        let least = self.batches.first().map_or(0, |(_, measured)| measured.peak);
        Some(fixed.saturating_add(sequence.saturating_mul(batch)).max(least))
    }

    /// Returns the largest batch whose steps take at most this memory.
    fn largest_batch(&self, available: u64) -> u64 {
        let Some((fixed, sequence)) = self.line() else { return self.largest_measured() };
        if self.peak(1).is_none_or(|least| least > available) {
            return 0;
        }
        let rest = available.saturating_sub(fixed);
        rest.checked_div(sequence).map_or(MAX_BATCH, |batch| batch.min(MAX_BATCH))
    }

    /// Returns the largest batch that took a step, or 0.
    fn largest_measured(&self) -> u64 {
        self.batches.last().map_or(0, |(batch, _)| *batch)
    }
}

impl Meter<'_> {
    /// Returns the numbers of a run of a batch.
    fn numbers_of(&self, recompute: Recompute, batch: u64) -> TrainerOptions {
        // Each batch of a step has the memory of the one before.
        let accumulation = self.numbers.accumulation.min(2);
        TrainerOptions { recompute, batch: batch as usize, accumulation, ..self.numbers }
    }

    /// Measures the first steps of a new trainer.
    fn measure(&self, recompute: Recompute, batch: u64) -> Result<Measured, Error> {
        let device = &self.device;
        device.trim()?;
        let base = live(device);
        let beyond = |bytes: u64| bytes.saturating_sub(base);
        let model = (self.new_model)()?;
        let parameters = beyond(live(device));
        let mut trainer = (self.new_trainer)(model, self.numbers_of(recompute, batch))?;
        let gradients = beyond(live(device)).saturating_sub(parameters);
        // The optimizer's state appears in the first step, after the gradients.
        trainer.step()?;
        device.synchronize()?;
        let optimizer = beyond(live(device)).saturating_sub(parameters + gradients);
        let peak = peak_of(device, || (0..STEPS).try_for_each(|_| trainer.step().map(drop)))?;
        Ok(Measured { parameters, gradients, optimizer, peak: beyond(peak) })
    }

    /// As [`measure`](Self::measure); none if there is not enough memory.
    fn measure_if_it_fits(&self, recompute: Recompute, batch: u64) -> Result<Option<Measured>, Error> {
        match self.measure(recompute, batch) {
            Ok(measured) => Ok(Some(measured)),
            Err(Error::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether no larger batch need be measured.
    fn is_enough(&self, choice: &Choice, available: u64) -> bool {
        let last = choice.largest_measured();
        let is_near = || choice.largest_batch(available) <= MAX_EXTENSION * last;
        choice.is_linear() && (self.device.is_cpu() || (last >= self.numbers.batch as u64 && is_near()))
    }

    /// Measures batches of 1, 2, 4 and so on, until the memory is linear or short, and on a CUDA device as [`MAX_EXTENSION`] says.
    fn choice(&self, recompute: Recompute) -> Result<Choice, Error> {
        let mut choice = Choice { recompute, batches: Vec::new() };
        self.device.trim()?;
        let available = available::available(&self.device)?.unwrap_or(u64::MAX);
        let most = MAX_MEASURED[usize::from(!self.device.is_cpu())];
        let mut batch = 1;
        while batch <= most && !self.is_enough(&choice, available) {
            if choice.peak(batch).is_some_and(|peak| peak > available) {
                break;
            }
            let measured = match self.measure_if_it_fits(recompute, batch) {
                // A text need not have windows for more than the batch of the run.
                Err(Error::InvalidArgument { .. }) if batch > self.numbers.batch as u64 => None,
                found => found?,
            };
            let Some(measured) = measured else { break };
            choice.batches.push((batch, measured));
            batch *= 2;
        }
        Ok(choice)
    }
}

/// Returns the bytes of tensors on a device.
fn live(device: &Device) -> u64 {
    match device.as_cuda() {
        Some(device) => device.pool_statistics().live_bytes,
        None => host_memory_statistics().live_bytes as u64,
    }
}

/// Returns the peak of the bytes of tensors on a device during some work.
fn peak_of(device: &Device, work: impl FnOnce() -> Result<(), Error>) -> Result<u64, Error> {
    match device.as_cuda() {
        Some(device) => {
            let scope = device.memory_scope("steps");
            work().map(|()| scope.finish().peak_bytes)
        }
        None => {
            reset_peak_host_memory();
            work().map(|()| host_memory_statistics().peak_live_bytes as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(peaks: &[u64]) -> Choice {
        let measured = |peak: u64| Measured { parameters: 10, gradients: 10, optimizer: 20, peak };
        let batches = peaks.iter().zip(0..).map(|(peak, power)| (1 << power, measured(*peak))).collect();
        Choice { recompute: Recompute::Nothing, batches }
    }

    #[test]
    fn the_largest_batch_is_the_last_one_of_a_line_in_the_memory() {
        let measured = choice(&[150, 200, 300]);
        assert!(measured.line() == Some((100, 50)) && measured.is_linear());
        for (available, wanted) in [(99, 0), (149, 0), (150, 1), (249, 2), (250, 3), (1000, 18)] {
            assert_eq!(measured.largest_batch(available), wanted, "{available}");
        }
        assert_eq!(measured.largest_batch(u64::MAX), MAX_BATCH);
        assert_eq!(choice(&[150]).largest_batch(u64::MAX), 1);
        assert_eq!(choice(&[]).largest_batch(u64::MAX), 0);
    }

    #[test]
    fn the_line_is_that_of_the_batches_whose_activations_are_the_peak() {
        // The optimizer's peak is 300, and that of activations 100 + 50 batch.
        assert!(!choice(&[300, 300, 300]).is_linear() && !choice(&[300, 300, 300, 500]).is_linear());
        let measured = choice(&[300, 300, 300, 500, 900]);
        assert!(measured.is_linear() && measured.line() == Some((100, 50)));
        assert_eq!([1, 4, 10].map(|batch| measured.peak(batch)), [Some(300), Some(300), Some(600)]);
        assert_eq!([299, 300, 600].map(|available| measured.largest_batch(available)), [0, 4, 10]);
    }

    #[test]
    fn a_measured_batch_has_the_peak_that_was_measured() {
        // Logits in chunks: 100 a sequence up to four, then 25.
        let measured = choice(&[200, 300, 500, 600]);
        assert_eq!(
            [1, 2, 8, 16].map(|batch| measured.peak(batch)),
            [Some(200), Some(300), Some(600), Some(800)]
        );
    }
}
