//! The driver is all that is needed: without the optional libraries everything here works, and without the driver the error
//! says what was tried.

use selvedge::Error;
use selvedge::driver::Device;

use crate::support::{Lab, Outcome, assert_all, assert_error, child, device_tests};

device_tests! {
    a_driver_is_enough => in_child(&[
        ("SELVEDGE_LIBNVRTC", "none"), ("SELVEDGE_LIBCUBLAS", "none"), ("SELVEDGE_LIBNCCL", "none"), ("SELVEDGE_LIBCUPTI", "none"),
    ]),
    an_absent_driver_is_an_error => in_child(&[("SELVEDGE_LIBCUDA", "none")]) ,
    a_relative_path_is_refused => in_child(&[("SELVEDGE_LIBCUDA", "libcuda.so.1")]),
    the_suite_says_in_one_line_why_it_cannot_run,
}

fn a_driver_is_enough() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(1000)?;
    lab.set(&lab.stream, values.slice_mut(..)?, 3, 0)?;
    assert_all(&lab.stream.download(&values)?, 3, "the buffer");
    Ok(())
}

fn an_absent_driver_is_an_error() -> Outcome {
    for _ in 0..2 {
        assert_error!(Device::count(), Error::LibraryUnavailable { tried, .. } if tried.contains("SELVEDGE_LIBCUDA"));
    }
    Ok(())
}

fn a_relative_path_is_refused() -> Outcome {
    assert_error!(Device::count(), Error::LibraryUnavailable { tried, .. } if tried.contains("libcuda.so.1"));
    Ok(())
}

fn the_suite_says_in_one_line_why_it_cannot_run() -> Outcome {
    for environment in [("SELVEDGE_LIBCUDA", "none"), ("CUDA_VISIBLE_DEVICES", "-1")] {
        let output = child::start(&[], &[environment])?;
        assert_eq!(output.status.code(), Some(1), "{environment:?}");
        assert!(output.stdout.is_empty(), "a test was run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.lines().count() == 1 && said.starts_with("no device to test on: "), "{said}");
    }
    Ok(())
}
