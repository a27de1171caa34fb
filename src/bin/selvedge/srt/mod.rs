//! `selvedge srt`: the golden-ratio operations verified on the devices of this machine, and states evolved.

use std::process::ExitCode;

use crate::failure::{FAILED, Failure};
use crate::options::{SrtCommand, SrtOptions};
use crate::output;

mod evolve;
mod plot;
mod verify;
mod worked;

/// Runs the command and prints its result. `verify` fails with a result.
pub fn srt(options: &SrtOptions) -> ExitCode {
    let result: Result<_, Failure> = match &options.command {
        SrtCommand::Evolve(options) => evolve::evolve(options).map(|report| (report, true)),
        SrtCommand::Verify(_) => verify::verify(),
    };
    match result {
        Ok((report, good)) => {
            let printed = output::print(&report, options.json());
            if good { printed } else { ExitCode::from(FAILED) }
        }
        Err(failure) => failure.print(options.json()),
    }
}
