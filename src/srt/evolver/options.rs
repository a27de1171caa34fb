//! [`EvolverOptions`] and their checks.

use super::OPERATION;
use crate::error::{Error, Result};
use crate::srt::{LARGEST_SNAP_BOUND, Q_DEFICIT};

/// The parameters of an [`Evolver`](super::Evolver).
///
/// ```
/// use selvedge::srt::EvolverOptions;
/// let options = EvolverOptions { seed: 7, population: 4096, ..EvolverOptions::default() };
/// assert_eq!(options.survivors, 16);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EvolverOptions {
    /// The seed of all random numbers; 0.
    pub seed: u64,
    /// The candidates of a generation; 64.
    pub population: usize,
    /// The candidates that are evaluated, at most the population; 16.
    pub survivors: usize,
    /// The factor λ of syntony in the score; q.
    pub lambda: f64,
    /// The width of the interval of mutations in each coefficient; 0.1.
    pub mutation_scale: f64,
    /// The bound P of snapping; 100.
    pub bound: i64,
    /// The noise scale σ of the D phase; 0.01.
    pub sigma: f64,
    /// The generations after which a run ends; 1000.
    pub max_generations: u64,
    /// A run has converged when the syntonies of its window differ by less than this; 1e-6.
    pub threshold: f64,
}

impl Default for EvolverOptions {
    fn default() -> EvolverOptions {
        EvolverOptions {
            seed: 0,
            population: 64,
            survivors: 16,
            lambda: Q_DEFICIT,
            mutation_scale: 0.1,
            bound: 100,
            sigma: 0.01,
            max_generations: 1000,
            threshold: 1e-6,
        }
    }
}

impl EvolverOptions {
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] that names the first option out of range.
    pub(super) fn check(&self) -> Result<()> {
        for (name, count) in [("population", self.population), ("survivors", self.survivors)] {
            if count == 0 {
                return Err(Error::invalid(OPERATION, format!("{name} = 0"), "at least 1"));
            }
        }
        if !(0..=LARGEST_SNAP_BOUND).contains(&self.bound) {
            let found = format!("a bound of {}", self.bound);
            return Err(Error::invalid(OPERATION, found, "a bound from 0 to 2^20"));
        }
        for (name, number) in [
            ("lambda", self.lambda),
            ("mutation_scale", self.mutation_scale),
            ("sigma", self.sigma),
            ("threshold", self.threshold),
        ] {
            if !number.is_finite() {
                return Err(Error::invalid(OPERATION, format!("{name} = {number}"), "a finite number"));
            }
        }
        Ok(())
    }
}
