//! Why a command ended without its result, and the exit code that says so to a shell.

use std::process::ExitCode;

use selvedge::Error;
use serde_json::json;

use crate::output::{self, Style};

/// The command ran, but something failed.
pub const FAILED: u8 = 1;
/// The input cannot work; the same code as wrong usage.
pub const BAD_INPUT: u8 = 2;
/// There is no device or no driver to run on, or no NVRTC to compile with.
pub const NO_DEVICE: u8 = 3;

/// An error with its exit code.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
}

impl Failure {
    /// A result that is wrong or could not be written, although the input was good.
    pub fn failed(message: impl std::fmt::Display) -> Failure {
        Failure { code: FAILED, message: message.to_string() }
    }

    /// Prints to stderr, and as JSON to stdout where that was asked for.
    pub fn print(&self, json: bool) -> ExitCode {
        if json {
            let value = json!({ "error": { "message": self.message, "exit_code": self.code } });
            output::write_stdout(&format!("{value:#}\n"));
        }
        eprintln!("{} {}", Style::of_stderr().error("error:"), self.message);
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::LibraryUnavailable { .. } | Error::NoDevice { .. } => NO_DEVICE,
            // Errors of these two calls concern the machine, never the input.
            Error::Driver { call, .. } if matches!(*call, "cuInit" | "cuDeviceGetCount") => NO_DEVICE,
            Error::UnknownName { .. }
            | Error::ArgumentCount { .. }
            | Error::ArgumentMismatch { .. }
            | Error::LaunchLimit { .. }
            | Error::NotAnImage { .. }
            | Error::DamagedImage { .. }
            | Error::UnsupportedImage { .. }
            | Error::ImageRejected { .. }
            | Error::Compilation { .. }
            | Error::InvalidArgument { .. }
            | Error::DTypeMismatch { .. }
            | Error::File { .. }
            | Error::FolderLocked { .. } => BAD_INPUT,
            _ => FAILED,
        };
        Failure { code, message: error.to_string() }
    }
}
