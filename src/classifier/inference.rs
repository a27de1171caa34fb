//! Free energy, beliefs and prior learning.

use std::sync::OnceLock;

use super::options::{MIN_PRIOR, normalised};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};

/// Terms of a divergence with a probability up to this count as 0.
const NEGLIGIBLE: f64 = 1e-10;

/// The weight of the old prior in prior learning.
const PRIOR_RETENTION: f64 = 0.9;

/// e^x / Σ e^x.
pub(super) fn softmax(x: Expr<'_>) -> Expr<'_> {
    let powers = (x - x.max_group()).exp();
    powers / powers.sum_group()
}

/// Σ q ln(q / p), at least 0. NaN propagates: it is not below the limit.
pub(super) fn divergence<'g>(q: Expr<'g>, p: Expr<'g>) -> Expr<'g> {
    let is_negligible = q.le(NEGLIGIBLE).logical_or(p.le(NEGLIGIBLE));
    // Rounding makes the sum of equal distributions slightly negative.
    is_negligible.choose(0.0, q * (q / p).log()).sum_group().maximum(0.0)
}

/// Σ q ln(q / p) - Σ q ln p(o|c).
pub(super) fn full_free_energy<'g>(q: Expr<'g>, p: Expr<'g>, log_likelihood: Expr<'g>) -> Expr<'g> {
    // A class that is excluded may have a likelihood of 0.
    divergence(q, p) - q.le(NEGLIGIBLE).choose(0.0, q * log_likelihood).sum_group()
}

/// q p / Σ q p.
pub(super) fn fused<'g>(q: Expr<'g>, p: Expr<'g>) -> Expr<'g> {
    let product = q * p;
    product / product.sum_group()
}

fn check(operation: &'static str, posterior: &Tensor, prior: &Tensor, more: Option<&Tensor>) -> Result<()> {
    let classes = posterior.shape().last().copied().unwrap_or(0);
    if classes == 0 || prior.shape()[..] != [classes] {
        let found =
            format!("a posterior of shape {} and a prior of shape {}", posterior.shape(), prior.shape());
        return Err(Error::invalid(operation, found, "the prior's classes along the posterior's last axis"));
    }
    match more.filter(|more| more.shape() != posterior.shape()) {
        None => Ok(()),
        Some(more) => {
            let (found, wanted) = (more.shape(), posterior.shape());
            let found = format!("log likelihoods of shape {found} for a posterior of shape {wanted}");
            Err(Error::invalid(operation, found, "equal shapes"))
        }
    }
}

/// Returns the free energy of each row: Σ Q ln(Q / P), and with `log_likelihood` less Σ Q ln p(o|c). The classes are the last
/// axis, which the result lacks. Terms with Q up to 1e-10, and those of the divergence with P up to 1e-10, count as 0.
///
/// The divergence is bounded below by 0, as decisions and their history need it. `catalogue::free_energy` has the same terms
/// without that bound, for inputs that need not be distributions: rounding, or a row that does not sum to 1, makes it negative.
///
/// ```
/// use selvedge::classifier::{DEFAULT_PRIOR, free_energy};
/// use selvedge::{Device, Tensor};
/// let device = Device::best();
/// let prior = Tensor::new(DEFAULT_PRIOR, &device)?;
/// let uniform = Tensor::new([[0.2f64; 5]], &device)?;
/// assert!((free_energy(&uniform, &prior, None)?.item::<f64>()? - 0.581224022973).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for shapes that do not meet; errors of the operations.
pub fn free_energy(posterior: &Tensor, prior: &Tensor, log_likelihood: Option<&Tensor>) -> Result<Tensor> {
    static KL: OnceLock<Fused<2>> = OnceLock::new();
    static FULL: OnceLock<Fused<3>> = OnceLock::new();
    check("free_energy", posterior, prior, log_likelihood)?;
    let energy = match log_likelihood {
        None => KL.get_or_init(|| Fused::new(|[q, p]| divergence(q, p))).run([posterior, prior]),
        Some(log_likelihood) => {
            let function = FULL.get_or_init(|| Fused::new(|[q, p, l]| full_free_energy(q, p, l)));
            function.run([posterior, prior, log_likelihood])
        }
    };
    energy?.squeeze(-1)
}

/// Returns the beliefs Q P / Σ Q P of each row.
///
/// # Errors
///
/// As [`free_energy`].
pub fn fuse_prior(posterior: &Tensor, prior: &Tensor) -> Result<Tensor> {
    static FUNCTION: OnceLock<Fused<2>> = OnceLock::new();
    check("fuse_prior", posterior, prior, None)?;
    FUNCTION.get_or_init(|| Fused::new(|[q, p]| fused(q, p))).run([posterior, prior])
}

/// Returns 0.9 P + 0.1 h, normalised, for the observed probabilities h of the classes. No class falls below 1e-30.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for different lengths, and for observations that are no probabilities with the sum 1.
pub fn learned_prior(prior: &[f64], observed: &[f64]) -> Result<Vec<f64>> {
    const OPERATION: &str = "learned_prior";
    if prior.len() != observed.len() {
        let found = format!("observations of {} classes for a prior of {}", observed.len(), prior.len());
        return Err(Error::invalid(OPERATION, found, "equal numbers"));
    }
    let observed = normalised(OPERATION, "observation", observed)?;
    let mixed = prior.iter().zip(&observed).map(|(p, h)| PRIOR_RETENTION * p + (1.0 - PRIOR_RETENTION) * h);
    let mixed: Vec<f64> = mixed.map(|p| p.max(MIN_PRIOR)).collect();
    let sum: f64 = mixed.iter().sum();
    Ok(mixed.iter().map(|p| (p / sum).max(MIN_PRIOR)).collect())
}
