//! NVRTC itself: compiling, the crate's headers, and the cache. Needs no device.
//!
//! The tests use the NVRTC that the crate finds, as a program would. `.ci/nvrtc.sh` runs them once with each release from
//! 11.8 to 13.0. Without one, tests that compile are listed as ignored, and the tests of its absence still run.
//! `SELVEDGE_TEST_NVRTC=12.0` requires one of that version.
//!
//! Tests that change the environment, or are killed, run in a process of their own: this executable with
//! `SELVEDGE_TEST_CHILD`.

mod absent;
mod cache;
mod children;
mod compile;
mod headers;
#[cfg(target_os = "linux")]
mod mishaps;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

/// A test that may fail by an error.
pub fn test(name: &str, body: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name.to_owned(), body)
}

/// The version of the NVRTC that was found, or why there is none.
fn present() -> Result<(i32, i32), String> {
    let found = selvedge::nvrtc::version();
    match (std::env::var("SELVEDGE_TEST_NVRTC"), found) {
        (Err(_), found) => found.map_err(|error| error.to_string()),
        (Ok(wanted), Ok((major, minor))) if wanted == format!("{major}.{minor}") => Ok((major, minor)),
        (Ok(wanted), found) => {
            eprintln!("SELVEDGE_TEST_NVRTC wants {wanted}, but there is {found:?}");
            std::process::exit(1);
        }
    }
}

/// Keeps what is reported to `log`.
struct Warnings;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The warnings so far that contain this text, such as the folder of one test.
pub fn logged(part: &str) -> Vec<String> {
    let warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    warnings.iter().filter(|line| line.contains(part)).cloned().collect()
}

fn main() -> ExitCode {
    log::set_logger(&Warnings).expect("no other logger");
    log::set_max_level(log::LevelFilter::Warn);
    if let Some(code) = children::dispatch() {
        return code;
    }
    let arguments = Arguments::from_args();
    let present = present();
    let left_out = match &present {
        Ok((major, minor)) => {
            eprintln!("NVRTC {major}.{minor}");
            false
        }
        Err(reason) => {
            eprintln!("there is no NVRTC, so the tests that compile are left out (ignored):\n{reason}");
            true
        }
    };
    let mut tests = absent::tests();
    for tests_of in [
        compile::tests,
        headers::tests,
        cache::tests,
        #[cfg(target_os = "linux")]
        mishaps::tests,
    ] {
        tests.extend(tests_of().into_iter().map(|test| test.with_ignored_flag(left_out)));
    }
    libtest_mimic::run(&arguments, tests).exit_code()
}
