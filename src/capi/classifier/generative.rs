//! Generative models of classes: each class is a Gaussian around its centre, of one deviation.

use std::sync::Arc;

use super::super::arguments::{out, slice};
use super::super::catalogue::give_of_model;
use super::super::catalogue::models::{self, model};
use super::super::error::Result;
use super::super::guard;
use super::super::handle::{sv_classifier, sv_generative_model, sv_tensor};
use super::super::tensor::tensor;
use super::ClassifierObject;
use crate::classifier::GenerativeModel;
use crate::tensor::Tensor;

fn generative(handle: u64) -> Result<Arc<GenerativeModel>> {
    model(handle, "sv_generative_model_create")
}

/// Creates a model of centres of `SV_DTYPE_F32` or `SV_DTYPE_F64`, a row for each class. Nothing changes a model.
///
/// It waits for the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generative_model_create(
    centres: sv_tensor,
    deviation: f64,
    model: *mut sv_generative_model,
) -> i32 {
    guard::call("sv_generative_model_create", || {
        let result = out(model, "model")?;
        result.write(models::enter(GenerativeModel::new(tensor(centres, "centres")?, deviation)?)?);
        Ok(())
    })
}

/// Writes the generative model of a classifier, or 0 in the KL mode, which has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_generative_model(
    classifier: sv_classifier,
    model: *mut sv_generative_model,
) -> i32 {
    guard::call("sv_classifier_generative_model", || {
        let result = out(model, "model")?;
        let model = ClassifierObject::find(classifier)?.lock().generative_model().cloned();
        result.write(model.map(models::enter).transpose()?.unwrap_or(0));
        Ok(())
    })
}

/// Writes the centres and the deviation of a generative model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generative_model_parameters(
    model: sv_generative_model,
    centres: *mut sv_tensor,
    deviation: *mut f64,
) -> i32 {
    guard::call("sv_generative_model_parameters", || {
        let (centres, deviation) = (out(centres, "centres")?, out(deviation, "deviation")?);
        let model = generative(model)?;
        centres.write(super::super::tensor::enter(model.centres().clone())?);
        deviation.write(model.deviation());
        Ok(())
    })
}

/// Gives ln p(o|c) of rows o of the centres' dtype, with a column for each class c.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generative_model_log_likelihood(
    model: sv_generative_model,
    inputs: sv_tensor,
    result: *mut sv_tensor,
) -> i32 {
    let operands = [(inputs, "inputs")];
    give_of_model(
        "sv_generative_model_log_likelihood",
        (model, generative),
        operands,
        result,
        &|model, [inputs]| model.log_likelihood(inputs),
    )
}

/// Runs a function of rows and the probability of each class.
///
/// # Safety
///
/// `prior` points to `classes` numbers.
unsafe fn give_by_prior(
    function: &'static str,
    (model, inputs): (u64, u64),
    (prior, classes): (*const f64, usize),
    result: *mut u64,
    work: fn(&GenerativeModel, &Tensor, &[f64]) -> crate::Result<Tensor>,
) -> i32 {
    super::give(function, result, || {
        let prior = slice(prior, classes, "prior")?;
        Ok(work(&*generative(model)?, &tensor(inputs, "inputs")?, prior)?)
    })
}

/// Gives the exact posterior softmax(ln p(o|c) + ln prior) of rows, with a column for each class.
///
/// # Safety
///
/// `prior` points to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generative_model_posterior(
    model: sv_generative_model,
    inputs: sv_tensor,
    prior: *const f64,
    classes: usize,
    result: *mut sv_tensor,
) -> i32 {
    let name = "sv_generative_model_posterior";
    give_by_prior(name, (model, inputs), (prior, classes), result, GenerativeModel::posterior)
}

/// Gives -ln p(o) of rows o, the least free energy, a number for each row.
///
/// # Safety
///
/// `prior` points to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generative_model_surprise(
    model: sv_generative_model,
    inputs: sv_tensor,
    prior: *const f64,
    classes: usize,
    result: *mut sv_tensor,
) -> i32 {
    let name = "sv_generative_model_surprise";
    give_by_prior(name, (model, inputs), (prior, classes), result, GenerativeModel::surprise)
}

/// Gives the class of the largest exact posterior of each row as `SV_DTYPE_I64`, the first of equal ones: the Bayes rule.
///
/// # Safety
///
/// `prior` points to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_generative_model_bayes_classes(
    model: sv_generative_model,
    inputs: sv_tensor,
    prior: *const f64,
    classes: usize,
    result: *mut sv_tensor,
) -> i32 {
    let name = "sv_generative_model_bayes_classes";
    give_by_prior(name, (model, inputs), (prior, classes), result, GenerativeModel::bayes_classes)
}
