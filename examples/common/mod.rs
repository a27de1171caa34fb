//! Code shared by the examples. They run anywhere, and say why where there is no device.

use std::process::ExitCode;

use selvedge::Error;

/// Runs an example. Without a driver or a device it says so and succeeds; any other error is printed and fails.
pub fn run(example: fn() -> selvedge::Result<()>) -> ExitCode {
    match example() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ (Error::LibraryUnavailable { .. } | Error::NoDevice { .. })) => {
            println!("There is no GPU to run this on: {error}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
