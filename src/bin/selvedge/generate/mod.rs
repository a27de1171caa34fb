//! `selvedge generate`: a language model continues prompts.
//!
//! `checkpoint` has the models of `selvedge train`, `model` those of published folders, `chat` conversations with them, `sequence` the
//! text of one sequence and its ends, and `screen` the output while ids come.

use std::process::ExitCode;

use selvedge::nn::StopFilter;

use crate::failure::Failure;
use crate::options::GenerateOptions;
use crate::output::{self, Report};
use crate::signals::Signal;

mod chat;
mod checkpoint;
mod model;
mod screen;
mod sequence;

/// The new ids of a sequence, unless `--length` is given.
const LENGTH: u64 = 400;

/// The result of a generation.
struct Outcome {
    /// The text is a line about speed for a terminal's user.
    report: Report,
    signal: Option<Signal>,
}

/// Runs the command. The text goes to stdout as it is generated, or with `--json` in one object at the end. A signal ends it with the
/// code of the signal.
pub fn generate(options: &GenerateOptions) -> ExitCode {
    let outcome = match (&options.model, options.chat) {
        (Some(folder), true) => chat::chat(options, folder),
        (Some(folder), false) => model::generate(options, folder),
        (None, _) => checkpoint::generate(options),
    };
    match outcome {
        Ok(Outcome { report, signal }) => {
            let code = match options.json {
                true => output::print(&report, true),
                false => {
                    screen::print_note(&report.text);
                    ExitCode::SUCCESS
                }
            };
            signal.map_or(code, |signal| ExitCode::from(signal.exit_code()))
        }
        Err(failure) => failure.print(options.json),
    }
}

/// Returns the filter of the stop strings.
fn stop_filter(options: &GenerateOptions) -> Result<StopFilter, Failure> {
    Ok(StopFilter::new(options.stop.iter().map(String::as_str))?)
}
