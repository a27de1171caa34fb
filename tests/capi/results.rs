//! Arrays for results: a NULL one is refused before the work, whose own errors come later. And the names of statuses.

use std::ffi::CStr;
use std::ptr::null_mut;

use selvedge::capi::classifier::rows::{sv_calibration_bin, sv_classifier_calibration};
use selvedge::capi::nn::gpt::{sv_gpt_generate, sv_gpt_sampling};
use selvedge::capi::status::{SV_ERROR_INVALID_ARGUMENT, SV_ERROR_INVALID_HANDLE, sv_status_name};

use super::classifier::classifier;
use super::{check, fails, floats, integers, message};

#[test]
fn a_missing_array_of_results_is_refused_before_the_work() {
    let classifier = classifier();
    // SAFETY: all pointers are NULL or to locals, and zeros are a value of each of these structs.
    unsafe {
        let (rows, labels, wide) =
            (floats(&[1.0, -1.0], &[1, 2]), integers(&[0], &[1]), floats(&[0.0; 3], &[1, 3]));
        let mut count = 7;
        let mut calibrate = |features, bins, capacity| {
            sv_classifier_calibration(classifier, features, labels, bins, capacity, &mut count)
        };
        // An evaluation of three features fails, so the error shows which came first.
        fails(calibrate(wide, null_mut(), 10), SV_ERROR_INVALID_ARGUMENT, "bins: found NULL");
        assert_ne!(calibrate(wide, null_mut(), 0), 0);
        assert!(!message().contains("bins"), "{}", message());
        let mut bins: [sv_calibration_bin; 12] = std::mem::zeroed();
        bins[10].rows = 9;
        check(calibrate(rows, bins.as_mut_ptr(), 12));
        check(calibrate(rows, null_mut(), 0));
        assert_eq!((count, bins.map(|bin| bin.rows).iter().sum::<u64>()), (10, 1 + 9));

        let sampling = sv_gpt_sampling { size: size_of::<sv_gpt_sampling>(), ..std::mem::zeroed() };
        let (prompt, user) = ([1], null_mut());
        let mut generate = |capacity| {
            let (from, to) = (prompt.as_ptr(), null_mut());
            sv_gpt_generate(0, from, 1, &sampling, None, user, to, capacity, &mut count)
        };
        fails(generate(4), SV_ERROR_INVALID_ARGUMENT, "ids: found NULL");
        fails(generate(0), SV_ERROR_INVALID_HANDLE, "model");
    }
}

#[test]
fn every_status_of_the_header_has_its_name() {
    // SAFETY: the text lives as long as the library.
    let name = |status| unsafe { CStr::from_ptr(sv_status_name(status)) }.to_str().unwrap();
    let header = include_str!("../../include/selvedge.h");
    let mut count = 0;
    for line in header.lines() {
        let mut words = line.split_whitespace();
        let (Some("#define"), Some(status), Some(code)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if status == "SV_OK" || status.starts_with("SV_ERROR_") {
            assert_eq!(name(code.parse().unwrap()), status);
            count += 1;
        }
    }
    assert!(count > 30, "{count} statuses");
    for status in [-1, 6, i32::MAX] {
        assert_eq!(name(status), "an unknown status");
    }
}
