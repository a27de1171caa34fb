//! `selvedge train` and `selvedge eval`: a language model trained and evaluated on a text.
//!
//! `train` prints while it runs; with `--json` it prints one object at the end. `run` has the loop, `resume` its beginning, `settings`
//! the options, `losses` the file of losses, `report` the text and the JSON, `plot` the picture, `profile` the kernels of a step, `memory` the memory of a step and the
//! batch that fits, `evaluate` the other command, and `language_model` the model, and `source` the text and the checkpoint
//! that both need.

use std::process::ExitCode;

use crate::options::TrainOptions;
use crate::output;

mod evaluate;
pub mod language_model;
mod losses;
mod memory;
mod plot;
mod profile;
mod report;
mod resume;
mod run;
mod settings;
pub mod source;

pub use evaluate::evaluate;

/// Runs the command and prints its result. A signal ends it with the code of the signal.
pub fn train(options: &TrainOptions) -> ExitCode {
    match run::run(options) {
        Ok(outcome) => {
            let code = output::print(&outcome.report, options.json);
            outcome.signal.map_or(code, |signal| ExitCode::from(signal.exit_code()))
        }
        Err(failure) => failure.print(options.json),
    }
}
