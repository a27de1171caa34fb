//! Measures of information: of probabilities by row, of counts, and of series.

use super::super::handle::sv_tensor;
use super::give_of;
use crate::catalogue;

/// Returns the range of bins; none is that of the elements.
fn range(low: f64, high: f64) -> Option<(f64, f64)> {
    (low != 0.0 || high != 0.0).then_some((low, high))
}

/// Gives the bin of each element among `bins` of equal width, as `SV_DTYPE_I64`. The range is from `low` to `high`, or that of
/// the elements if both are 0.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_discretize(
    x: sv_tensor,
    bins: usize,
    low: f64,
    high: f64,
    result: *mut sv_tensor,
) -> i32 {
    let range = range(low, high);
    give_of("sv_discretize", [(x, "x")], result, &|[x]| catalogue::discretize(x, bins, range))
}

/// Gives the mutual information of a table of counts or probabilities, in nats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_mutual_information(joint: sv_tensor, result: *mut sv_tensor) -> i32 {
    give_of("sv_mutual_information", [(joint, "joint")], result, &|[joint]| {
        catalogue::mutual_information(joint)
    })
}

/// Gives the transfer entropy from a source to a target in nats: vectors of states from 0 to below `states`, with a past of
/// `history` states.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_transfer_entropy(
    source: sv_tensor,
    target: sv_tensor,
    states: usize,
    history: usize,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(source, "source"), (target, "target")];
    give_of("sv_transfer_entropy", operands, result, &|[source, target]| {
        catalogue::transfer_entropy(source, target, states, history)
    })
}

/// Gives the entropy of each row of probabilities, in nats. A probability up to 1e-10 counts as 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_shannon_entropy(p: sv_tensor, result: *mut sv_tensor) -> i32 {
    let operands = [(p, "p")];
    give_of("sv_shannon_entropy", operands, result, &|[p]| catalogue::shannon_entropy(p))
}

/// Gives the divergence, the sum of q ln(q / p), of each row of probabilities, in nats. `p` has the shape of `q`, or is one
/// row. A term with q or p up to 1e-10 is dropped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_kl_divergence(q: sv_tensor, p: sv_tensor, result: *mut sv_tensor) -> i32 {
    let operands = [(q, "q"), (p, "p")];
    give_of("sv_kl_divergence", operands, result, &|[q, p]| catalogue::kl_divergence(q, p))
}

/// Gives the variational free energy of each row of probabilities q: the divergence from `prior` less the sum of q ln p(o|c).
/// `prior` and `log_likelihood` have the shape of `q`, or are one row.
///
/// It is the plain sum; `sv_free_energy` of classifiers bounds the divergence below by 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_variational_free_energy(
    q: sv_tensor,
    prior: sv_tensor,
    log_likelihood: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(q, "q"), (prior, "prior"), (log_likelihood, "log_likelihood")];
    give_of("sv_variational_free_energy", operands, result, &|[q, prior, log_likelihood]| {
        catalogue::free_energy(q, prior, log_likelihood)
    })
}

/// Gives the counts of pairs as `SV_DTYPE_I64`, with a row for each bin of `x` and a column for each bin of `y`. Both axes have
/// the same bins, those of `sv_discretize`; the range of elements is that of both tensors.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_histogram_2d(
    x: sv_tensor,
    y: sv_tensor,
    bins: usize,
    low: f64,
    high: f64,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(x, "x"), (y, "y")];
    give_of("sv_histogram_2d", operands, result, &|[x, y]| {
        catalogue::histogram_2d(x, y, bins, range(low, high))
    })
}

/// Gives the conditional entropy H(Y|X) of a table of counts or probabilities, in nats: a row for each x, a column for each y.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_conditional_entropy(joint: sv_tensor, result: *mut sv_tensor) -> i32 {
    let operands = [(joint, "joint")];
    give_of("sv_conditional_entropy", operands, result, &|[joint]| catalogue::conditional_entropy(joint))
}

/// Gives a view of the rows of `dimension` values that are `delay` apart, of each series along the last axis.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_time_delayed_embedding(
    x: sv_tensor,
    dimension: usize,
    delay: usize,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(x, "x")];
    give_of("sv_time_delayed_embedding", operands, result, &|[x]| {
        catalogue::time_delayed_embedding(x, dimension, delay)
    })
}

/// Gives the transfer entropy of a table of counts or probabilities, in nats. Its axes are the next value of the target, the
/// past of the target, and the past of the source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_transfer_entropy_of_counts(counts: sv_tensor, result: *mut sv_tensor) -> i32 {
    let operands = [(counts, "counts")];
    give_of("sv_transfer_entropy_of_counts", operands, result, &|[counts]| {
        catalogue::transfer_entropy_of_counts(counts)
    })
}
