//! The resonant evolution strategy: an evolver of states of Z\[φ\] toward syntony.
//!
//! An [`Evolver`] has the best state so far, a vector of n points a + bφ. A generation:
//!
//! 1. Each of `population` candidates is the best state plus snapped mutations t = (u - ½) s + (u' - ½) s φ, where u and u' are
//!    numbers of the stream for the generation and purpose 1. A candidate with a coefficient that i64 does not hold is dropped.
//! 2. The `survivors` candidates of largest syntony stay, in order; of equal ones the first.
//! 3. Each goes through the D phase with normal noise of purpose 2 and the H phase, both with its own syntony, and is snapped.
//! 4. Its score is fitness + λ S of the snapped state. Without a fitness the score is S. The largest score wins, of equal ones
//!    the first survivor; NaN never wins.
//! 5. The winner replaces the best state only if its syntony is larger. So the best syntony never falls.
//!
//! The history has the best syntony at the start and after each generation. A run has converged when the last ten entries
//! differ by less than the threshold.
//!
//! A generation is a sequence of tensor operations on the state's device. The host reads three numbers at its end. Every operation
//! has the same bits on the CPU and CUDA devices, so equal seeds choose equal survivors and winners.
//!
//! Tests: `tests/srt/evolver.rs`, `tests/fake/srt.rs`, `tests/gpu/srt.rs`.

mod file;
mod generation;
mod options;

use std::fmt;
use std::ops::ControlFlow;

use super::operands::{check_devices, check_dtype};
use super::{GoldenTensor, syntony};
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

pub use options::EvolverOptions;

const OPERATION: &str = "the evolver";

/// The entries of the history that decide convergence.
const WINDOW: usize = 10;

type Fitness = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

/// An evolution of one state.
///
/// A generation mutates the best state into candidates, keeps those of largest syntony, sends each through the D phase and the
/// H phase, and snaps it. The candidate of the largest score replaces the best state if its syntony is larger. All random
/// numbers follow from the seed, so equal seeds choose equal survivors and winners on every device.
///
/// ```
/// use std::ops::ControlFlow;
/// use selvedge::srt::{Evolver, EvolverOptions, snap};
/// use selvedge::tensor::{Device, Tensor};
/// let v = Tensor::new([0.2f64, -0.5, 0.25, 1.0], &Device::cpu())?;
/// let options = EvolverOptions { max_generations: 3, ..EvolverOptions::default() };
/// let mut evolver = Evolver::new(&snap(&v, 100)?, None, options)?;
/// evolver.run(|report| {
///     println!("generation {}: S = {}", report.generation, report.best_syntony);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(evolver.history().len(), 4);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct Evolver {
    options: EvolverOptions,
    n2: Tensor,
    best: GoldenTensor,
    /// The last number of the history, on the device.
    best_syntony: Tensor,
    history: Vec<f64>,
    fitness: Option<Box<Fitness>>,
}

/// The results of a generation.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerationReport {
    /// The generations so far.
    pub generation: u64,
    /// The syntony of the best state.
    pub best_syntony: f64,
    /// The winner's position in the population and its syntony. None if every survivor was dropped or has a fitness of NaN.
    pub winner: Option<(usize, f64)>,
    /// True if the winner replaced the best state.
    pub is_accepted: bool,
    /// True if the run has converged.
    pub is_converged: bool,
}

/// The reason for the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvolverEnd {
    /// The window's syntonies differ by less than the threshold.
    Converged,
    /// The run has had its largest number of generations.
    GenerationLimit,
    /// The callback ended the run.
    Stopped,
}

impl Evolver {
    /// Creates an evolver of a vector of points, on its device. `n2` has the squared mode norms in f64; without it, n² of
    /// element i is i². Waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a state that is empty or not a vector, an `n2` of another shape or with a negative or
    /// infinite number or NaN, and options out of range: no population, no survivors, a bound outside 0 to 2^20, numbers that
    /// are not finite. [`Error::DTypeMismatch`] for an `n2` other than f64; [`Error::DeviceMismatch`].
    pub fn new(state: &GoldenTensor, n2: Option<&Tensor>, options: EvolverOptions) -> Result<Evolver> {
        let n2 = match n2 {
            Some(n2) => n2.clone(),
            None => squares(state.a().count(), &state.a().device())?,
        };
        let mut evolver = Evolver::with_history(state, n2, options, Vec::new())?;
        evolver.best_syntony = syntony(&evolver.best.values()?, &evolver.n2)?;
        evolver.history.push(evolver.best_syntony.item()?);
        Ok(evolver)
    }

    /// Creates an evolver after checks. The last number of the history is the syntony.
    fn with_history(
        state: &GoldenTensor,
        n2: Tensor,
        options: EvolverOptions,
        history: Vec<f64>,
    ) -> Result<Evolver> {
        options.check()?;
        let shape = state.a().shape();
        if shape.len() != 1 || state.a().count() == 0 {
            let found = format!("a state of shape {shape}");
            return Err(Error::invalid(OPERATION, found, "a vector of at least one point"));
        }
        check_dtype(OPERATION, DType::F64, &n2)?;
        if n2.shape() != shape {
            let found = format!("n2 of shape {} for a state of shape {shape}", n2.shape());
            return Err(Error::invalid(OPERATION, found, "equal shapes"));
        }
        check_devices(OPERATION, state.a(), &n2)?;
        if let Some(norm) = n2.to_vec::<f64>()?.into_iter().find(|norm| !(norm.is_finite() && *norm >= 0.0)) {
            return Err(Error::invalid(OPERATION, format!("n2 = {norm}"), "finite numbers of at least 0"));
        }
        let last = history.last().copied().unwrap_or(0.0);
        let best_syntony = Tensor::full(&[], last, DType::F64, &n2.device())?;
        Ok(Evolver { options, n2, best: state.clone(), best_syntony, history, fitness: None })
    }

    /// Sets the fitness of the score. It receives the values of the snapped survivors, f64 of shape \[survivors, n\], and
    /// returns f64 of shape \[survivors\] on the same device. A saved state does not contain it.
    #[must_use]
    pub fn with_fitness(
        mut self,
        fitness: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Evolver {
        self.fitness = Some(Box::new(fitness));
        self
    }

    /// Runs one generation, converged or not. After an error the evolver is as it was.
    ///
    /// # Errors
    ///
    /// The errors of memory, of the device, and of the fitness; [`Error::InvalidArgument`], [`Error::DTypeMismatch`] and
    /// [`Error::DeviceMismatch`] for a fitness of another shape, of another dtype and on another device.
    pub fn step(&mut self) -> Result<GenerationReport> {
        let next = generation::next(self)?;
        let [best_syntony, winner_syntony, candidate] = next.numbers()?;
        let is_accepted = best_syntony > self.best_syntony();
        self.best = next.best;
        self.best_syntony = next.best_syntony;
        self.history.push(best_syntony);
        let winner = (!winner_syntony.is_nan()).then_some((candidate as usize, winner_syntony));
        let (generation, is_converged) = (self.generation(), self.is_converged());
        Ok(GenerationReport { generation, best_syntony, winner, is_accepted, is_converged })
    }

    /// Runs generations until convergence, the limit, or a break of `progress`, which gets the report of each generation.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn run(
        &mut self,
        mut progress: impl FnMut(&GenerationReport) -> ControlFlow<()>,
    ) -> Result<EvolverEnd> {
        loop {
            if self.is_converged() {
                return Ok(EvolverEnd::Converged);
            }
            if self.generation() >= self.options.max_generations {
                return Ok(EvolverEnd::GenerationLimit);
            }
            if progress(&self.step()?).is_break() {
                return Ok(EvolverEnd::Stopped);
            }
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &EvolverOptions {
        &self.options
    }

    /// Returns the squared mode norms.
    pub fn n2(&self) -> &Tensor {
        &self.n2
    }

    /// Returns the best state.
    pub fn best(&self) -> &GoldenTensor {
        &self.best
    }

    /// Returns the syntony of the best state.
    pub fn best_syntony(&self) -> f64 {
        self.history.last().copied().unwrap_or(0.0)
    }

    /// Returns the generations so far.
    pub fn generation(&self) -> u64 {
        self.history.len().saturating_sub(1) as u64
    }

    /// Returns the best syntony at the start and after each generation.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// Returns the last ten numbers of the history, or all if they are fewer.
    pub fn window(&self) -> &[f64] {
        let start = self.history.len().saturating_sub(WINDOW);
        self.history.get(start..).unwrap_or_default()
    }

    /// Returns true if the window holds ten numbers that differ by less than the threshold.
    pub fn is_converged(&self) -> bool {
        let window = self.window();
        let most = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = window.iter().copied().fold(f64::INFINITY, f64::min);
        window.len() == WINDOW && most - least < self.options.threshold
    }
}

impl fmt::Debug for Evolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Evolver")
            .field("options", &self.options)
            .field("shape", self.n2.shape())
            .field("device", &self.n2.device())
            .field("generation", &self.generation())
            .field("best_syntony", &self.best_syntony())
            .finish_non_exhaustive()
    }
}

/// Returns 0, 1, 4, 9 and so on.
fn squares(count: usize, device: &Device) -> Result<Tensor> {
    Tensor::arange(0i64, count as i64, 1i64, DType::F64, device)?.square()
}
