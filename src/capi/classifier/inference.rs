//! Free energies, beliefs and priors of classes, without a classifier.

use super::super::arguments::{check_count, slice, slice_mut};
use super::super::guard;
use super::super::handle::sv_tensor;
use super::super::tensor::{give, tensor};
use crate::classifier;

/// Gives the free energy of each row of a posterior Q: the sum of Q ln(Q / P), and with `log_likelihood` less that of
/// Q ln p(o|c). The classes are the last axis, and `prior` is a vector. `log_likelihood` has the posterior's shape, or is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_free_energy(
    posterior: sv_tensor,
    prior: sv_tensor,
    log_likelihood: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_free_energy", result, || {
        let (posterior, prior) = (tensor(posterior, "posterior")?, tensor(prior, "prior")?);
        let likelihood = match log_likelihood {
            0 => None,
            likelihood => Some(tensor(likelihood, "log_likelihood")?),
        };
        Ok(classifier::free_energy(&posterior, &prior, likelihood.as_ref())?)
    })
}

/// Gives the beliefs of each row of a posterior Q: Q P / sum of Q P, with the classes as the last axis. `prior` is a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fuse_prior(
    posterior: sv_tensor,
    prior: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_fuse_prior", result, || {
        let (posterior, prior) = (tensor(posterior, "posterior")?, tensor(prior, "prior")?);
        Ok(classifier::fuse_prior(&posterior, &prior)?)
    })
}

/// Writes the prior that `sv_classifier_learn_prior` sets: 0.9 of a prior plus 0.1 of the observed probabilities, normalised.
///
/// `learned` may be the array `prior`.
///
/// # Safety
///
/// `prior`, `observed` and `learned` each point to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_learned_prior(
    prior: *const f64,
    observed: *const f64,
    classes: usize,
    learned: *mut f64,
) -> i32 {
    guard::call("sv_learned_prior", || {
        // SAFETY: as the caller vouches. The operands are not used after the result is.
        let found = unsafe {
            classifier::learned_prior(slice(prior, classes, "prior")?, slice(observed, classes, "observed")?)
        }?;
        let learned = slice_mut(learned, classes, "learned")?;
        check_count("classes", classes, found.len())?;
        learned.copy_from_slice(&found);
        Ok(())
    })
}
