//! The expected free energy of policies, the choice of one, and their predictions by a linear Gaussian model.

use std::sync::Arc;

use super::super::arguments::out;
use super::super::error::Result;
use super::super::guard;
use super::super::handle::{sv_generator, sv_linear_gaussian_model, sv_tensor};
use super::super::tensor::random::generator;
use super::super::tensor::{give, give_all, tensor};
use super::models::{self, model};
use super::{each, find, give_of};
use crate::catalogue::{self, ExpectedFreeEnergy, LinearGaussianModel, PolicyPredictions, StateRollout};

fn linear(handle: u64) -> Result<Arc<LinearGaussianModel>> {
    model(handle, "sv_linear_gaussian_model_create")
}

/// Writes the expected free energy of policies, which the first axis of each tensor counts: risk + ambiguity - novelty, and
/// these terms. `preferred` is broadcast to the observations of a policy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_expected_free_energy(
    observations: sv_tensor,
    variances: sv_tensor,
    prior_variances: sv_tensor,
    posterior_variances: sv_tensor,
    preferred: sv_tensor,
    total: *mut sv_tensor,
    risk: *mut sv_tensor,
    ambiguity: *mut sv_tensor,
    novelty: *mut sv_tensor,
) -> i32 {
    let results = [(total, "total"), (risk, "risk"), (ambiguity, "ambiguity"), (novelty, "novelty")];
    give_all("sv_expected_free_energy", results, || {
        let predictions = PolicyPredictions {
            observations: tensor(observations, "observations")?,
            variances: tensor(variances, "variances")?,
            prior_variances: tensor(prior_variances, "prior_variances")?,
            posterior_variances: tensor(posterior_variances, "posterior_variances")?,
        };
        let ExpectedFreeEnergy { risk, ambiguity, novelty, total } =
            catalogue::expected_free_energy(&predictions, &tensor(preferred, "preferred")?)?;
        Ok([total, risk, ambiguity, novelty])
    })
}

/// Gives the probabilities softmax(-gamma G) of policies by their expected free energies G, a vector. `gamma` is from 0 on.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_policy_probabilities(
    energies: sv_tensor,
    gamma: f64,
    result: *mut sv_tensor,
) -> i32 {
    give_of("sv_policy_probabilities", [(energies, "energies")], result, &|[energies]| {
        catalogue::policy_probabilities(energies, gamma)
    })
}

/// Writes the position of the least of the energies, the first of equal ones: the policy of least expected free energy.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_choose_policy(energies: sv_tensor, policy: *mut usize) -> i32 {
    guard::call("sv_choose_policy", || {
        let policy = out(policy, "policy")?;
        policy.write(catalogue::choose_policy(&tensor(energies, "energies")?)?);
        Ok(())
    })
}

/// Draws a policy by `sv_policy_probabilities`. A generator of 0 is that of the energies' device.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_sample_policy(
    energies: sv_tensor,
    gamma: f64,
    generator: sv_generator,
    policy: *mut usize,
) -> i32 {
    guard::call("sv_sample_policy", || {
        let policy = out(policy, "policy")?;
        let energies = tensor(energies, "energies")?;
        let generator = self::generator(generator, &energies.device())?;
        policy.write(catalogue::sample_policy(&energies, gamma, &generator)?);
        Ok(())
    })
}

/// Creates a model of states x that develop as A x + control + noise of the variance `process_noise`, and are observed as C x +
/// noise. `transition` is the square matrix A, and `observation` the matrix C with a row for each observation. Nothing changes
/// a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_linear_gaussian_model_create(
    transition: sv_tensor,
    observation: sv_tensor,
    process_noise: f64,
    model: *mut sv_linear_gaussian_model,
) -> i32 {
    guard::call("sv_linear_gaussian_model_create", || {
        let result = out(model, "model")?;
        let found = find(&[(transition, "transition"), (observation, "observation")])?;
        let [transition, observation] = each(&found);
        result.write(models::enter(LinearGaussianModel::new(transition, observation, process_noise)?)?);
        Ok(())
    })
}

/// Writes the means of the states by policy, step and state, and their variances by step and state, which all policies share.
/// `mean` and `variance` are those of the first state, and `controls` the inputs by policy, step and state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_linear_gaussian_model_roll_out(
    model: sv_linear_gaussian_model,
    mean: sv_tensor,
    variance: sv_tensor,
    controls: sv_tensor,
    means: *mut sv_tensor,
    variances: *mut sv_tensor,
) -> i32 {
    let results = [(means, "means"), (variances, "variances")];
    give_all("sv_linear_gaussian_model_roll_out", results, || {
        let found = find(&[(mean, "mean"), (variance, "variance"), (controls, "controls")])?;
        let [mean, variance, controls] = each(&found);
        let StateRollout { means, variances } = linear(model)?.roll_out(mean, variance, controls)?;
        Ok([means, variances])
    })
}

/// Gives random states by policy, step and state, from one first state, with noise from a generator. A generator of 0 is that
/// of the device of `start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_linear_gaussian_model_sample(
    model: sv_linear_gaussian_model,
    start: sv_tensor,
    controls: sv_tensor,
    generator: sv_generator,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_linear_gaussian_model_sample", result, || {
        let (start, controls) = (tensor(start, "start")?, tensor(controls, "controls")?);
        let generator = self::generator(generator, &start.device())?;
        Ok(linear(model)?.sample(&start, &controls, &generator)?)
    })
}

/// Writes the predictions for each policy that `sv_expected_free_energy` takes, from the results of
/// `sv_linear_gaussian_model_roll_out`. `observation_noise` has the variances of the observations, which all policies share, or
/// those by policy, step and observation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_linear_gaussian_model_predict(
    model: sv_linear_gaussian_model,
    means: sv_tensor,
    variances: sv_tensor,
    observation_noise: sv_tensor,
    observations: *mut sv_tensor,
    observation_variances: *mut sv_tensor,
    prior_variances: *mut sv_tensor,
    posterior_variances: *mut sv_tensor,
) -> i32 {
    let results = [
        (observations, "observations"),
        (observation_variances, "observation_variances"),
        (prior_variances, "prior_variances"),
        (posterior_variances, "posterior_variances"),
    ];
    give_all("sv_linear_gaussian_model_predict", results, || {
        let rollout =
            StateRollout { means: tensor(means, "means")?, variances: tensor(variances, "variances")? };
        let noise = tensor(observation_noise, "observation_noise")?;
        let PolicyPredictions { observations, variances, prior_variances, posterior_variances } =
            linear(model)?.predict(&rollout, &noise)?;
        Ok([observations, variances, prior_variances, posterior_variances])
    })
}
