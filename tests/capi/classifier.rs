//! Classifiers: labels, features and model files that are refused, with the status and the row or the reason.

use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

use selvedge::capi::classifier::{
    sv_classifier_create, sv_classifier_evaluate, sv_classifier_evaluation, sv_classifier_load,
    sv_classifier_options, sv_classifier_report, sv_classifier_run, sv_classifier_save, sv_classifier_train,
    sv_classifier_training_options,
};
use selvedge::capi::status::{SV_ERROR_FILE, SV_ERROR_INVALID_ARGUMENT};

use super::{CPU, check, fails, floats, integers, ok, take};

/// Returns a classifier of two features and two classes.
pub fn classifier() -> u64 {
    let prior = [0.5, 0.5];
    // SAFETY: zeros are a value of the struct, and the pointers are to locals.
    unsafe {
        let options = sv_classifier_options {
            size: size_of::<sv_classifier_options>(),
            features: 2,
            prior: prior.as_ptr(),
            classes: 2,
            ..std::mem::zeroed()
        };
        ok(|result| sv_classifier_create(&options, CPU, result))
    }
}

/// Writes the classes, and four results that the caller has no use for.
fn run(classifier: u64, features: u64, classes: &mut u64) -> i32 {
    let mut others = [0; 4];
    let [posterior, beliefs, free_energy, confidence] = &mut others;
    // SAFETY: the pointers are to locals.
    unsafe { sv_classifier_run(classifier, features, classes, posterior, beliefs, free_energy, confidence) }
}

#[test]
fn bad_labels_and_features_are_refused_by_row() {
    let classifier = classifier();
    let good = floats(&[1.0, -1.0, 0.5, 2.0, 0.0, 0.0], &[3, 2]);
    // SAFETY: zeros are a value of each struct, and the pointers are to locals.
    unsafe {
        let mut evaluation =
            sv_classifier_evaluation { size: size_of::<sv_classifier_evaluation>(), ..std::mem::zeroed() };
        let training = sv_classifier_training_options {
            size: size_of::<sv_classifier_training_options>(),
            ..std::mem::zeroed()
        };
        let mut report =
            sv_classifier_report { size: size_of::<sv_classifier_report>(), ..std::mem::zeroed() };
        for bad in [2, -1] {
            let labels = integers(&[0, bad, 1], &[3]);
            let text = format!("label {bad} in row 1");
            let evaluated = sv_classifier_evaluate(classifier, good, labels, &mut evaluation, null_mut(), 0);
            fails(evaluated, SV_ERROR_INVALID_ARGUMENT, &text);
            let trained =
                sv_classifier_train(classifier, good, labels, &training, None, null_mut(), &mut report);
            fails(trained, SV_ERROR_INVALID_ARGUMENT, &text);
        }
        assert_eq!((evaluation.rows, report.epochs), (0, 0));
        for (bad, text) in [(f32::NAN, "NaN in row 2, feature 1"), (f32::INFINITY, "inf in row 2")] {
            let (rows, labels) =
                (floats(&[1.0, -1.0, 0.5, 2.0, 0.0, bad], &[3, 2]), integers(&[0, 0, 1], &[3]));
            let mut classes = 7;
            fails(run(classifier, rows, &mut classes), SV_ERROR_INVALID_ARGUMENT, text);
            assert_eq!(classes, 7);
            let trained =
                sv_classifier_train(classifier, rows, labels, &training, None, null_mut(), &mut report);
            fails(trained, SV_ERROR_INVALID_ARGUMENT, text);
        }
    }
    // The classifier goes on.
    let mut classes = 0;
    check(run(classifier, good, &mut classes));
    assert_eq!(take::<i64>(classes).len(), 3);
}

#[test]
fn truncated_models_and_models_of_another_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let text = |path: &Path| CString::new(path.to_str().unwrap()).unwrap();
    let load = |result: &mut u64| {
        let path = text(&path);
        // SAFETY: the pointers are to locals.
        unsafe { sv_classifier_load(path.as_ptr(), CPU, result) }
    };
    // SAFETY: as above.
    check(unsafe { sv_classifier_save(classifier(), text(&path).as_ptr()) });
    let whole = std::fs::read(&path).unwrap();
    let mut loaded = 0;
    check(load(&mut loaded));
    assert_ne!(loaded, 0);

    let mut result = 7;
    for length in [0, 7, 8, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        fails(load(&mut result), SV_ERROR_FILE, "model.safetensors");
    }
    let version = br#""version":"1""#;
    let at = whole.windows(version.len()).position(|part| part == version).expect("the version");
    let mut other = whole.clone();
    other[at + version.len() - 2] = b'2';
    std::fs::write(&path, &other).unwrap();
    fails(load(&mut result), SV_ERROR_FILE, "version 2");
    std::fs::remove_file(&path).unwrap();
    assert_ne!(load(&mut result), 0);
    assert_eq!(result, 7);
}
