//! [`ClassifierOptions`] and the checks of priors.

use crate::error::{Error, Result};

/// The prior of the default options.
pub const DEFAULT_PRIOR: [f64; 5] = [0.7, 0.1, 0.1, 0.05, 0.05];

/// The least probability of a prior. Products with f32 posteriors do not underflow then.
pub(super) const MIN_PRIOR: f64 = 1e-30;

/// The largest difference between 1 and a sum of given probabilities.
const SUM_TOLERANCE: f64 = 1e-6;

/// The shape and the first values of a [`Classifier`](super::Classifier).
#[derive(Debug, Clone, PartialEq)]
pub struct ClassifierOptions {
    /// The features of a row: 100.
    pub features: usize,
    /// The widths of the hidden layers: 64, 32, 16.
    pub hidden: Vec<usize>,
    /// The prior of the classes, whose number it sets: [`DEFAULT_PRIOR`].
    pub prior: Vec<f64>,
    /// If set, beliefs are the posterior times the prior, normalised: not set. A posterior contains the prior of its training
    /// data already, so this counts a prior twice unless the training data had equal classes.
    pub fuse_prior: bool,
    /// The probability with which training drops an element behind a hidden layer: 0.2.
    pub dropout: f64,
    /// The seed of the first weights: 0.
    pub seed: u64,
}

impl Default for ClassifierOptions {
    fn default() -> Self {
        ClassifierOptions {
            features: 100,
            hidden: vec![64, 32, 16],
            prior: DEFAULT_PRIOR.to_vec(),
            fuse_prior: false,
            dropout: 0.2,
            seed: 0,
        }
    }
}

/// Returns a prior with the sum 1.
pub(super) fn checked_prior(operation: &'static str, prior: &[f64]) -> Result<Vec<f64>> {
    if let Some((class, p)) = prior.iter().enumerate().find(|(_, p)| !(MIN_PRIOR..=1.0).contains(*p)) {
        let found = format!("a prior of {p} for class {class}");
        return Err(Error::invalid(operation, found, format!("probabilities from {MIN_PRIOR:e} to 1")));
    }
    normalised(operation, "prior", prior)
}

/// Returns probabilities with the sum 1.
pub(super) fn normalised(operation: &'static str, name: &str, probabilities: &[f64]) -> Result<Vec<f64>> {
    if probabilities.is_empty() {
        return Err(Error::invalid(operation, format!("a {name} of no class"), "at least one class"));
    }
    if let Some((class, p)) = probabilities.iter().enumerate().find(|(_, p)| !(0.0..=1.0).contains(*p)) {
        let found = format!("a {name} of {p} for class {class}");
        return Err(Error::invalid(operation, found, "probabilities from 0 to 1"));
    }
    let sum: f64 = probabilities.iter().sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(Error::invalid(operation, format!("a {name} with the sum {sum}"), "the sum 1"));
    }
    Ok(probabilities.iter().map(|p| p / sum).collect())
}
