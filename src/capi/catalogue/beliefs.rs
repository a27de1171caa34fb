//! Gaussian beliefs: divergences, and inference under a linear observation o = J mu + noise.

use std::sync::Arc;

use super::super::arguments::{or_default, out, structure};
use super::super::error::Result;
use super::super::guard;
use super::super::handle::{sv_gaussian_model, sv_tensor};
use super::super::tensor::{enter, tensor};
use super::models::{self, model};
use super::{each, find, give_of, give_of_model};
use crate::catalogue::{self, GaussianModel, InferenceOptions};
use crate::tensor::Tensor;

fn gaussian(handle: u64) -> Result<Arc<GaussianModel>> {
    model(handle, "sv_gaussian_model_create")
}

/// The settings of `sv_gaussian_model_infer`. Zeros are the defaults, but for `size`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_inference_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The most steps; 0 for 100.
    pub iterations: usize,
    /// The step along the negative gradient; 0 for 0.01.
    pub rate: f64,
    /// The largest change of a belief by a step at which the belief counts as reached; 0 for 1e-4.
    pub tolerance: f64,
}

/// Gives the accuracy -1/2 of the sum of P e^2 + ln(2 pi / P) of each row of prediction errors e. The precisions P have the
/// shape of the errors, or are one row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_accuracy(
    error: sv_tensor,
    precision: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(error, "error"), (precision, "precision")];
    give_of("sv_gaussian_accuracy", operands, result, &|[error, precision]| {
        catalogue::gaussian_accuracy(error, precision)
    })
}

/// Gives the divergence of each row of Gaussians with diagonal covariances from others. The latter have the shape of the first
/// ones, or are one row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_kl_divergence(
    mean: sv_tensor,
    variance: sv_tensor,
    prior_mean: sv_tensor,
    prior_variance: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [
        (mean, "mean"),
        (variance, "variance"),
        (prior_mean, "prior_mean"),
        (prior_variance, "prior_variance"),
    ];
    give_of("sv_gaussian_kl_divergence", operands, result, &|[mean, variance, prior, prior_variance]| {
        catalogue::gaussian_kl_divergence([mean, variance], [prior, prior_variance])
    })
}

/// Creates a model of a matrix J with a row for each observation and a column for each state, a precision for each observation,
/// and a mean and a precision for each state. Nothing changes a model.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_create(
    jacobian: sv_tensor,
    observation_precision: sv_tensor,
    prior_mean: sv_tensor,
    prior_precision: sv_tensor,
    model: *mut sv_gaussian_model,
) -> i32 {
    guard::call("sv_gaussian_model_create", || {
        let result = out(model, "model")?;
        let found = find(&[
            (jacobian, "jacobian"),
            (observation_precision, "observation_precision"),
            (prior_mean, "prior_mean"),
            (prior_precision, "prior_precision"),
        ])?;
        let [jacobian, observation_precision, prior_mean, prior_precision] = each(&found);
        let created = GaussianModel::new(jacobian, observation_precision, prior_mean, prior_precision)?;
        result.write(models::enter(created)?);
        Ok(())
    })
}

/// Runs a function of a model, a belief and an observation.
///
/// # Safety
///
/// As [`give_of_model`].
unsafe fn give_of_belief(
    function: &'static str,
    model: u64,
    (mean, observation): (u64, u64),
    result: *mut u64,
    work: fn(&GaussianModel, &Tensor, &Tensor) -> crate::Result<Tensor>,
) -> i32 {
    let operands = [(mean, "mean"), (observation, "observation")];
    let work = |model: &GaussianModel, [mean, observation]: [&Tensor; 2]| work(model, mean, observation);
    give_of_model(function, (model, gaussian), operands, result, &work)
}

/// Gives the weighted prediction error P (o - J mu) of a belief mu and an observation o, with the precisions P of observations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_prediction_error(
    model: sv_gaussian_model,
    mean: sv_tensor,
    observation: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let name = "sv_gaussian_model_prediction_error";
    give_of_belief(name, model, (mean, observation), result, GaussianModel::prediction_error)
}

/// Gives the direction of descent of a belief: the negative gradient of its free energy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_gradient(
    model: sv_gaussian_model,
    mean: sv_tensor,
    observation: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let name = "sv_gaussian_model_gradient";
    give_of_belief(name, model, (mean, observation), result, GaussianModel::gradient)
}

/// Gives the free energy of a belief: complexity minus accuracy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_free_energy(
    model: sv_gaussian_model,
    mean: sv_tensor,
    observation: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let name = "sv_gaussian_model_free_energy";
    give_of_belief(name, model, (mean, observation), result, GaussianModel::free_energy)
}

/// Descends from a belief along the gradient until a step is below the tolerance. Writes the belief, the number of gradients
/// computed, and 1 to `converged` if the last step was below the tolerance, else 0.
///
/// A gradient that is not finite, such as after too large a rate, is `SV_ERROR_INVALID_ARGUMENT`. It waits for the device in each
/// step.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_infer(
    model: sv_gaussian_model,
    observation: sv_tensor,
    start: sv_tensor,
    options: *const sv_inference_options,
    mean: *mut sv_tensor,
    iterations: *mut usize,
    converged: *mut i32,
) -> i32 {
    guard::call("sv_gaussian_model_infer", || {
        let (options, mean) = (structure(options, "options")?, out(mean, "mean")?);
        let (iterations, converged) = (out(iterations, "iterations")?, out(converged, "converged")?);
        let default = InferenceOptions::default();
        let options = InferenceOptions {
            rate: or_default(options.rate, default.rate),
            tolerance: or_default(options.tolerance, default.tolerance),
            iterations: or_default(options.iterations, default.iterations),
        };
        let (observation, start) = (tensor(observation, "observation")?, tensor(start, "start")?);
        let found = gaussian(model)?.infer(&observation, &start, options)?;
        mean.write(enter(found.mean)?);
        iterations.write(found.iterations);
        converged.write(i32::from(found.converged));
        Ok(())
    })
}

/// Gives the precision of the exact posterior, a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_posterior_precision(
    model: sv_gaussian_model,
    result: *mut sv_tensor,
) -> i32 {
    give_of_model("sv_gaussian_model_posterior_precision", (model, gaussian), [], result, &|model, []| {
        model.posterior_precision()
    })
}

/// Gives the belief of least free energy, the mean of the exact posterior. The host solves for it in f64.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_gaussian_model_fixed_point(
    model: sv_gaussian_model,
    observation: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    give_of_model(
        "sv_gaussian_model_fixed_point",
        (model, gaussian),
        [(observation, "observation")],
        result,
        &|model, [observation]| model.fixed_point(observation),
    )
}
