//! `selvedge`, the command line: devices and libraries of this machine, a kernel run on `.npy` files, the contents of an image,
//! images from CUDA C++ and their cache, snapshots and traces of memory, traces of time, the engine of a matrix product, the kernels of an
//! expression, a tokenizer, a language model, spiking networks, golden-ratio operations, a classifier, and a demonstration.
//!
//! Every command first gathers a [`Report`](output::Report) and only then prints it, as text or as JSON, so that a reader
//! that goes away early (`selvedge info | head`) is no error. Progress goes to stderr, and only to a terminal.

#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

mod build_images;
mod burst;
mod cache;
mod classify;
mod convert;
mod demo;
mod device;
mod explain;
mod failure;
mod files;
mod generate;
mod info;
mod launch;
mod memory;
mod model;
mod options;
mod output;
mod perplexity;
mod plan;
mod preview;
mod ptx;
mod run;
mod scalar;
mod signals;
mod source;
mod srt;
mod svg;
mod tokenize;
mod trace;
mod train;
mod warnings;

use options::Command;
use selvedge::{DType, Device, Tensor};
/// For `python -m selvedge`, whose process has a logger.
pub use warnings::print as print_warning;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    run(std::env::args_os().collect())
}

/// Runs a command line, which begins with the program's name. `python -m selvedge` calls it too, so it returns rather than exits.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    warnings::show();
    let asks_for_json = arguments.iter().any(|argument| argument == "--json");
    let options = match options::parse(arguments) {
        Ok(options) => options,
        // Help and version are no errors; wrong usage is, and JSON may have been asked for before it was met.
        Err(error) if error.use_stderr() && asks_for_json => {
            let message = error.to_string();
            let message = message.trim().trim_start_matches("error: ").to_owned();
            return failure::Failure { code: failure::BAD_INPUT, message }.print(true);
        }
        Err(error) => {
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            return match output::is_read(printed) {
                _ if error.use_stderr() => ExitCode::from(failure::BAD_INPUT),
                Ok(_) => ExitCode::SUCCESS,
                Err(failure) => failure.print(false),
            };
        }
    };
    // A tensor of the command that reads a trace would start one, perhaps into the same file.
    if !matches!(options.command, Command::Info(_) | Command::Trace(_))
        && let Err(error) = check_environment()
    {
        return failure::Failure::from(error).print(asks_for_json);
    }
    let (result, json) = match &options.command {
        Command::Info(options) => (Ok(info::info()), options.json),
        Command::Run(options) => (run::run(options), options.json),
        Command::Ptx(options) => (ptx::ptx(options), options.json),
        Command::BuildImages(options) => (build_images::build_images(options), options.json),
        Command::Cache(options) => (cache::cache(options), options.json()),
        Command::Memory(options) => (memory::memory(options), options.json()),
        Command::Trace(options) => (trace::trace(options), options.json),
        Command::Burst(options) => return burst::burst(options),
        Command::Train(options) => return train::train(options),
        Command::Generate(options) => return generate::generate(options),
        Command::Evaluate(options) => {
            let report = match &options.model {
                Some(folder) => perplexity::evaluate(options, folder),
                None => train::evaluate(options),
            };
            (report, options.json)
        }
        Command::Convert(options) => (convert::convert(options), options.json),
        Command::Tokenize(options) => (tokenize::tokenize(options), options.json),
        Command::Srt(options) => return srt::srt(options),
        Command::Classify(options) => return classify::classify(options),
        Command::Launch(options) => return launch::launch(options),
        Command::Explain(options) => (explain::explain(options), options.json()),
        Command::Demo(options) => (demo::demo(options), options.json),
    };
    match result {
        Ok(report) => output::print(&report, json),
        Err(failure) => failure.print(json),
    }
}

/// Returns the error of a wrong `SELVEDGE_THREADS`, which a tensor on the CPU finds.
fn check_environment() -> selvedge::Result<()> {
    Tensor::zeros(&[0], DType::U8, &Device::cpu()).map(drop)
}
