//! The shape and the settings of a classifier.

use super::super::arguments::{out, write_some};
use super::super::guard;
use super::super::handle::sv_classifier;
use super::{ClassifierObject, change};

/// Writes the numbers of features, classes, and weights with biases of a classifier.
///
/// # Safety
///
/// `features`, `classes` and `parameters` each point to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_size(
    classifier: sv_classifier,
    features: *mut usize,
    classes: *mut usize,
    parameters: *mut usize,
) -> i32 {
    guard::call("sv_classifier_size", || {
        let (features, classes, parameters) =
            (out(features, "features")?, out(classes, "classes")?, out(parameters, "parameters")?);
        let object = ClassifierObject::find(classifier)?;
        let classifier = object.lock();
        features.write(classifier.features());
        classes.write(classifier.classes());
        parameters.write(classifier.parameter_count());
        Ok(())
    })
}

/// Writes the widths of a classifier's layers, from the features to the classes.
///
/// `count` gets their number; the array gets the first `capacity` of them. A capacity of 0 asks for the number alone.
///
/// # Safety
///
/// `widths` points to `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_widths(
    classifier: sv_classifier,
    widths: *mut usize,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    change("sv_classifier_widths", classifier, &|classifier| {
        let found = classifier.widths();
        let count = out(count, "count")?;
        write_some(&found, widths, capacity, "widths")?;
        count.write(found.len());
        Ok(())
    })
}

/// Writes the probability of dropout, and 1 to `fuse_prior` if beliefs are the posterior times the prior, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_settings(
    classifier: sv_classifier,
    dropout: *mut f64,
    fuse_prior: *mut i32,
) -> i32 {
    change("sv_classifier_settings", classifier, &|classifier| {
        let (dropout, fuse_prior) = (out(dropout, "dropout")?, out(fuse_prior, "fuse_prior")?);
        dropout.write(classifier.dropout());
        fuse_prior.write(i32::from(classifier.fuses_prior()));
        Ok(())
    })
}
