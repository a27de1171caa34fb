//! One row of a classifier, and the calibration curve of many.

use super::super::arguments::{check_count, out, out_structure, slice, slice_mut};
use super::super::handle::{sv_classifier, sv_tensor};
use super::super::tensor::tensor;
use super::change;

/// The result of one row.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_classification {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The class of the largest belief, the first of equal ones.
    pub found: usize,
    /// The free energy.
    pub free_energy: f64,
    /// The largest belief.
    pub confidence: f64,
}

/// The rows whose confidence is in an interval. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_calibration_bin {
    /// The number of rows.
    pub rows: u64,
    /// The mean confidence; 0 without rows.
    pub confidence: f64,
    /// The part of right classes; 0 without rows.
    pub accuracy: f64,
}

/// Classifies one row of `count` features in host memory, in less time than `sv_classifier_run` takes.
///
/// `posterior` and `beliefs` get a number for each class. `classes` is their number, or 0 for neither of them. It waits for the
/// device.
///
/// # Safety
///
/// `features` points to `count` numbers, and `posterior` and `beliefs` each to `classes` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_classify(
    classifier: sv_classifier,
    features: *const f32,
    count: usize,
    posterior: *mut f64,
    beliefs: *mut f64,
    classes: usize,
    classification: *mut sv_classification,
) -> i32 {
    change("sv_classifier_classify", classifier, &|classifier| {
        let (features, result) =
            (slice(features, count, "features")?, out_structure(classification, "classification")?);
        let arrays = [slice_mut(posterior, classes, "posterior")?, slice_mut(beliefs, classes, "beliefs")?];
        if classes > 0 {
            check_count("classes", classes, classifier.classes())?;
        }
        let found = classifier.classify(features)?;
        for (array, numbers) in arrays.into_iter().zip([&found.posterior, &found.beliefs]) {
            array.iter_mut().zip(numbers).for_each(|(to, number)| *to = *number);
        }
        result.write(sv_classification {
            size: 0,
            found: found.class,
            free_energy: found.free_energy,
            confidence: found.confidence,
        });
        Ok(())
    })
}

/// Classifies rows, as `sv_classifier_evaluate`, and writes the calibration curve: bins of confidence of width 0.1.
///
/// `count` gets their number, which is 10; the array gets the first `capacity` of them. It waits for the device.
///
/// # Safety
///
/// `bins` points to `capacity` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_classifier_calibration(
    classifier: sv_classifier,
    features: sv_tensor,
    labels: sv_tensor,
    bins: *mut sv_calibration_bin,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    change("sv_classifier_calibration", classifier, &|classifier| {
        let (features, labels) = (tensor(features, "features")?, tensor(labels, "labels")?);
        let (bins, count) = (slice_mut(bins, capacity, "bins")?, out(count, "count")?);
        let found = classifier.evaluate(&features, &labels)?;
        let found = found.calibration();
        for (to, bin) in bins.iter_mut().zip(found) {
            *to = sv_calibration_bin { rows: bin.count, confidence: bin.confidence, accuracy: bin.accuracy };
        }
        count.write(found.len());
        Ok(())
    })
}
