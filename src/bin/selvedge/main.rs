//! `selvedge`, the command line: what is on this machine, a kernel run on `.npy` files, and a demonstration.
//!
//! Every command first gathers a [`Report`](output::Report) and only then prints it, as text or as JSON, so that a reader
//! that goes away early (`selvedge info | head`) is no error. Progress goes to stderr, and only to a terminal.

#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

use std::process::ExitCode;

use clap::Parser;

mod demo;
mod failure;
mod info;
mod options;
mod output;
mod plan;
mod preview;
mod run;
mod scalar;

use options::{Command, Options};

fn main() -> ExitCode {
    // Wrong usage ends here, with code 2.
    let options = Options::parse();
    let (result, json) = match &options.command {
        Command::Info(options) => (Ok(info::info()), options.json),
        Command::Run(options) => (run::run(options), options.json),
        Command::Demo(options) => (demo::demo(options), options.json),
    };
    match result {
        Ok(report) => output::print(&report, json),
        Err(failure) => failure.print(json),
    }
}
