//! Information measures of probabilities, row by row along the last dimension, in nats.
//!
//! A term whose probability is at most [`NEGLIGIBLE`] is dropped, so zeros and infinite logarithms give no NaN. NaN in an
//! operand stays NaN. Nothing checks that a row sums to 1.
//!
//! Tests: `tests/catalogue/information.rs`.

use std::sync::LazyLock;

use super::operands::{check_floats, check_rows, last_size, wide};
use crate::error::Result;
use crate::fuse::Expr;
use crate::tensor::{Fused, Tensor};

/// The probability up to which a term counts as 0.
pub const NEGLIGIBLE: f64 = 1e-10;

/// Returns whether a probability's term is dropped: false for NaN.
pub(super) fn negligible(p: Expr<'_>) -> Expr<'_> {
    p.le(NEGLIGIBLE)
}

/// Returns q ln(q/p), 0 if either is negligible.
fn divergence<'g>(q: Expr<'g>, p: Expr<'g>) -> Expr<'g> {
    let dropped = (negligible(q) | negligible(p)) & (q + p).is_nan().logical_not();
    dropped.choose(0.0, q * (q / p).log())
}

static ENTROPY: LazyLock<Fused<1>> = LazyLock::new(|| {
    Fused::new(|[p]| {
        let wide_p = wide(p);
        negligible(wide_p).choose(0.0, -(wide_p * wide_p.log())).sum_group().cast(p.dtype())
    })
});
static KL: LazyLock<Fused<2>> =
    LazyLock::new(|| Fused::new(|[q, p]| divergence(wide(q), wide(p)).sum_group().cast(q.dtype())));
/// Of q, p and ln p(o|c).
static FREE_ENERGY: LazyLock<Fused<3>> = LazyLock::new(|| {
    Fused::new(|[q, p, likelihood]| {
        let [wide_q, p, likelihood] = [q, p, likelihood].map(wide);
        let expected = negligible(wide_q).choose(0.0, wide_q * likelihood);
        (divergence(wide_q, p) - expected).sum_group().cast(q.dtype())
    })
});

/// Returns the entropy -Σ p ln p of each row of probabilities, without the last dimension.
///
/// # Errors
///
/// As [`kl_divergence`].
pub fn shannon_entropy(p: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "shannon_entropy";
    check_floats(OPERATION, &[p])?;
    last_size(OPERATION, "p", p)?;
    ENTROPY.run([p])?.squeeze(-1)
}

/// Returns the divergence Σ q ln(q/p) of each row of probabilities, without the last dimension. `p` has the shape of `q`, or is
/// one row. A term with q or p up to [`NEGLIGIBLE`] is dropped.
///
/// ```
/// use selvedge::catalogue::kl_divergence;
/// use selvedge::{Device, Tensor};
/// let q = Tensor::new([[0.2f64; 5], [0.0, 0.0, 0.0, 1.0, 0.0]], &Device::cpu())?;
/// let p = Tensor::new([0.7f64, 0.1, 0.1, 0.05, 0.05], &Device::cpu())?;
/// let kl = kl_divergence(&q, &p)?.to_vec::<f64>()?;
/// assert!((kl[0] - 0.581224022973).abs() < 1e-12 && (kl[1] - 2.995732273554).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for operands that are not floats of one dtype;
/// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for shapes that differ, and no elements along the last dimension;
/// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch); errors of memory.
pub fn kl_divergence(q: &Tensor, p: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "kl_divergence";
    check_floats(OPERATION, &[q, p])?;
    last_size(OPERATION, "q", q)?;
    check_rows(OPERATION, "p", p, q)?;
    KL.run([q, p])?.squeeze(-1)
}

/// Returns the variational free energy KL(q‖p) - Σ q ln p(o|c) of each row, without the last dimension. `prior` and
/// `log_likelihood` have the shape of `q`, or are one row.
///
/// It is at least -ln p(o), the negative logarithm of the evidence Σ p p(o|c), and equal for the exact posterior
/// softmax(ln p(o|c) + ln p). A class with q up to [`NEGLIGIBLE`] contributes nothing, also if its log-likelihood is -∞.
///
/// The divergence is the plain sum, since nothing here checks that rows sum to 1. `classifier::free_energy` has the same terms
/// for posteriors, and bounds the divergence below by 0, so that rounding makes no free energy of a decision negative.
///
/// # Errors
///
/// As [`kl_divergence`].
pub fn free_energy(q: &Tensor, prior: &Tensor, log_likelihood: &Tensor) -> Result<Tensor> {
    const OPERATION: &str = "free_energy";
    check_floats(OPERATION, &[q, prior, log_likelihood])?;
    last_size(OPERATION, "q", q)?;
    check_rows(OPERATION, "prior", prior, q)?;
    check_rows(OPERATION, "log_likelihood", log_likelihood, q)?;
    FREE_ENERGY.run([q, prior, log_likelihood])?.squeeze(-1)
}
