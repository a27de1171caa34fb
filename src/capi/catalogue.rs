//! Models of the catalogue: oscillators, measures of information, and the choice of policies.

use super::error::Result;
use super::tensor::{give, give_all, tensor};
use crate::catalogue::{self, ExpectedFreeEnergy, OrderParameter, PolicyPredictions};

/// Gives the phases after one Euler step of the Kuramoto model, from 0 to below 2 pi. `theta` is a vector of n phases or rows of
/// them, `omega` has its shape or is one row, and `adjacency` is an n x n matrix, or 0 for ones.
///
/// Any thread may call it.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_kuramoto_step(
    theta: u64,
    omega: u64,
    adjacency: u64,
    strength: f64,
    dt: f64,
    result: *mut u64,
) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_kuramoto_step", result, || {
            let (theta, omega) = (tensor(theta, "theta")?, tensor(omega, "omega")?);
            let adjacency = if adjacency == 0 { None } else { Some(tensor(adjacency, "adjacency")?) };
            Ok(catalogue::kuramoto_step(&theta, &omega, adjacency.as_ref(), strength, dt)?)
        })
    }
}

/// Writes the length and the direction of the mean of e^(i theta) of each row of phases.
///
/// The caller owns one reference to each result. Any thread may call it.
///
/// # Safety
///
/// `magnitude` and `phase` each point to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_order_parameter(theta: u64, magnitude: *mut u64, phase: *mut u64) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give_all("sv_order_parameter", [(magnitude, "magnitude"), (phase, "phase")], || {
            let OrderParameter { magnitude, phase } = catalogue::order_parameter(&tensor(theta, "theta")?)?;
            Ok([magnitude, phase])
        })
    }
}

/// Gives the bin of each element among `bins` of equal width, as `SV_DTYPE_I64`. The range is from `low` to `high`, or that of
/// the elements if both are 0.
///
/// Any thread may call it; it waits for the device.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_discretize(x: u64, bins: usize, low: f64, high: f64, result: *mut u64) -> i32 {
    let range = (low != 0.0 || high != 0.0).then_some((low, high));
    // SAFETY: as the caller vouches.
    unsafe { give("sv_discretize", result, || Ok(catalogue::discretize(&tensor(x, "x")?, bins, range)?)) }
}

/// Gives the mutual information of a table of counts or probabilities, in nats.
///
/// Any thread may call it.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_mutual_information(joint: u64, result: *mut u64) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_mutual_information", result, || Ok(catalogue::mutual_information(&tensor(joint, "joint")?)?))
    }
}

/// Gives the transfer entropy from a source to a target in nats: vectors of states from 0 to below `states`, with a past of
/// `history` states.
///
/// Any thread may call it; it waits for the device.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_transfer_entropy(
    source: u64,
    target: u64,
    states: usize,
    history: usize,
    result: *mut u64,
) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_transfer_entropy", result, || {
            let (source, target) = (tensor(source, "source")?, tensor(target, "target")?);
            Ok(catalogue::transfer_entropy(&source, &target, states, history)?)
        })
    }
}

/// Writes the expected free energy of policies, which the first axis of each tensor counts: risk + ambiguity - novelty, and
/// these terms. `preferred` is broadcast to the observations of a policy.
///
/// The caller owns one reference to each result. Any thread may call it.
///
/// # Safety
///
/// `total`, `risk`, `ambiguity` and `novelty` each point to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expected_free_energy(
    observations: u64,
    variances: u64,
    prior_variances: u64,
    posterior_variances: u64,
    preferred: u64,
    total: *mut u64,
    risk: *mut u64,
    ambiguity: *mut u64,
    novelty: *mut u64,
) -> i32 {
    let results = [(total, "total"), (risk, "risk"), (ambiguity, "ambiguity"), (novelty, "novelty")];
    let predictions = || -> Result<PolicyPredictions> {
        Ok(PolicyPredictions {
            observations: tensor(observations, "observations")?,
            variances: tensor(variances, "variances")?,
            prior_variances: tensor(prior_variances, "prior_variances")?,
            posterior_variances: tensor(posterior_variances, "posterior_variances")?,
        })
    };
    // SAFETY: as the caller vouches.
    unsafe {
        give_all("sv_expected_free_energy", results, || {
            let ExpectedFreeEnergy { risk, ambiguity, novelty, total } =
                catalogue::expected_free_energy(&predictions()?, &tensor(preferred, "preferred")?)?;
            Ok([total, risk, ambiguity, novelty])
        })
    }
}

/// Gives the probabilities softmax(-gamma G) of policies by their expected free energies G, a vector. `gamma` is from 0 on.
///
/// Any thread may call it; it waits for the device.
///
/// # Safety
///
/// `result` points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_policy_probabilities(energies: u64, gamma: f64, result: *mut u64) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_policy_probabilities", result, || {
            Ok(catalogue::policy_probabilities(&tensor(energies, "energies")?, gamma)?)
        })
    }
}
