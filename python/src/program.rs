//! The command line, which `python -m selvedge` runs.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use pyo3::prelude::*;

/// Runs the program with these arguments and returns its exit code.
#[pyfunction]
pub fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    crate::messages::run_program();
    py.detach(|| {
        let code =
            selvedge_program::run(std::iter::once(OsString::from("selvedge")).chain(arguments).collect());
        // Nothing of Rust runs when the interpreter ends. A reader that went away early is no error.
        let _ = std::io::stdout().flush();
        (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
    })
}
