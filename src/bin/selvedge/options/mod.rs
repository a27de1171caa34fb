//! The options of the command line, each larger command's in a file of its name.

use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

macro_rules! exit_codes {
    () => {
        "\
Exit codes:
  0  success
  1  the command ran, but failed
  2  wrong usage, or input that cannot work; nothing was launched
  3  no device or no driver to run on, or no NVRTC to compile with"
    };
}

mod attention;
mod build_images;
mod burst;
mod classify;
mod compile;
mod convert;
mod device;
mod expr;
mod gemm;
mod generate;
mod launch;
mod memory;
mod ptx;
mod run;
mod srt;
mod tokenize;
mod trace;
mod train;

pub use attention::AttentionOptions;
pub use build_images::BuildImagesOptions;
pub use burst::{BurstCommand, BurstMakeOptions, BurstOptions, BurstRunOptions, NetworkSource};
pub use classify::{
    ClassifyCommand, ClassifyOptions, ClassifyPictures, ClassifyPolicyOptions, ClassifyRunOptions,
    ClassifyTrainOptions,
};
pub use compile::{CompileOptions, TargetOptions};
pub use convert::ConvertOptions;
pub use device::DeviceChoice;
pub use expr::ExprOptions;
pub use gemm::{ExplainOptions, Explained, MatmulOptions};
pub use generate::{GenerateOptions, WeightDType};
pub use launch::LaunchOptions;
pub use memory::{Generator, MemoryCommand, MemoryOptions, PoolKind, ReplayOptions};
pub use ptx::PtxOptions;
pub use run::RunOptions;
pub use srt::{SrtCommand, SrtEvolveOptions, SrtOptions};
pub use tokenize::{IdDType, TokenFileFormat, TokenizeOptions};
pub use trace::TraceOptions;
pub use train::{ComputeDType, EvaluateOptions, TokenizerChoice, TrainOptions};

/// The exit codes, for the help of a command that only groups others and has no `--json` of its own.
const EXIT_CODES_OF_GROUP: &str = exit_codes!();

/// The exit codes, for the help of a command that takes `--json`.
const EXIT_CODES: &str =
    concat!(exit_codes!(), "\n\nWith --json the result, or the error, is one JSON object on stdout.");

/// Run CUDA kernels with nothing but the NVIDIA driver.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, after_help = EXIT_CODES_OF_GROUP, arg_required_else_help = true, max_term_width = 100)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

/// Parses a command line. A number below 0 after an option is its value, so that the option's check names it.
pub fn parse(arguments: Vec<OsString>) -> Result<Options, clap::Error> {
    let mut command = with_negative_numbers(Options::command());
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Options::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| match argument.get_action() {
        clap::ArgAction::Set | clap::ArgAction::Append => argument.allow_negative_numbers(true),
        _ => argument,
    });
    command.mut_subcommands(with_negative_numbers)
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the CPU, devices, the driver and optional libraries, and where they were looked for
    Info(InfoOptions),
    /// Run a kernel, of an image or of CUDA C++, on .npy files
    Run(RunOptions),
    /// Show what an image holds: kernels, parameters, targets, and whether it runs here
    Ptx(PtxOptions),
    /// Compile CUDA C++ to PTX and cubin files with a manifest
    BuildImages(BuildImagesOptions),
    /// Show or clear the folder of compiled images
    Cache(CacheOptions),
    /// Show a snapshot of a device's memory, or replay a trace of its requests
    Memory(MemoryOptions),
    /// Show where the time of a program went, from a trace that SELVEDGE_TRACE or selvedge::trace recorded
    Trace(TraceOptions),
    /// Train a language model on a text, on the CPU where there is no device
    Train(Box<TrainOptions>),
    /// Continue prompts by a trained language model, or by a published one
    Generate(Box<GenerateOptions>),
    /// Turn texts into a file of token ids, or train a tokenizer on them
    Tokenize(TokenizeOptions),
    /// Evaluate a trained language model, or a published one, on a text
    #[command(name = "eval")]
    Evaluate(EvaluateOptions),
    /// Write the folder of a published model in another dtype
    Convert(ConvertOptions),
    /// Make, run and verify networks of the spiking engine
    Burst(BurstOptions),
    /// Verify the golden-ratio operations
    Srt(SrtOptions),
    /// Train and run a classifier on rows of a file
    Classify(ClassifyOptions),
    /// Start the ranks of a program on this host, and end all of them when one fails
    Launch(LaunchOptions),
    /// Show what would be done, and why, without doing it
    Explain(ExplainOptions),
    /// Compute a tensor, a fused expression and a matrix product, verified and timed; on the CPU if there is no device
    Demo(DemoOptions),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct InfoOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct DemoOptions {
    /// Elements of each array [default: 16777216 on a device, 4194304 on the CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub elements: Option<u64>,
    /// The device's ordinal [default: 0, or the CPU where there is none]
    #[arg(long, value_name = "I")]
    pub device: Option<usize>,
    /// Compute with tensors of one or two .npy files instead
    #[arg(long, value_name = "FILE", num_args = 1..=2, conflicts_with = "elements")]
    pub npy: Vec<std::path::PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub struct CacheOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove every image of the cache
    Clear(ClearOptions),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ClearOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl CacheOptions {
    /// Returns `true` for `--json` of this command or of its subcommand.
    pub fn json(&self) -> bool {
        match &self.command {
            Some(CacheCommand::Clear(options)) => options.json,
            None => self.json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_json_where_a_command_takes_it() {
        fn check(command: &clap::Command) {
            let takes = command.get_arguments().any(|argument| argument.get_id() == "json");
            let names = command.get_after_help().is_some_and(|help| help.to_string().contains("--json"));
            assert_eq!(takes, names, "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&Options::command());
    }

    #[test]
    fn the_options_are_consistent() {
        Options::command().debug_assert();
    }
}
