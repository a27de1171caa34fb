//! The options of `selvedge srt`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DeviceChoice, EXIT_CODES, EXIT_CODES_OF_GROUP};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_GROUP, arg_required_else_help = true)]
pub struct SrtOptions {
    #[command(subcommand)]
    pub command: SrtCommand,
}

impl SrtOptions {
    /// Returns `true` for `--json` of the subcommand.
    pub fn json(&self) -> bool {
        match &self.command {
            SrtCommand::Evolve(options) => options.json,
            SrtCommand::Verify(options) => options.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum SrtCommand {
    /// Evolve a state toward syntony, draw its course, and save it
    Evolve(Box<SrtEvolveOptions>),
    /// Compare the worked numbers of every operation with the results of this machine's devices
    Verify(SrtVerifyOptions),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct SrtVerifyOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EVOLVE_HELP: &str = "\
The first state has N numbers of the normal distribution, snapped to a + bφ. A run ends after its generations, or when the
best syntony of ten generations differs by less than the threshold.

Examples:
  selvedge srt evolve --n 4096 --population 4096 --generations 200 --seed 1 --plot syntony.svg
  selvedge srt evolve --generations 50 --save state.evolver
  selvedge srt evolve --resume state.evolver --generations 50 --save state.evolver";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{EVOLVE_HELP}\n\n{EXIT_CODES}"))]
pub struct SrtEvolveOptions {
    /// The points of the state [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub n: Option<u64>,
    /// The candidates of a generation [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub population: Option<u64>,
    /// The candidates that are evaluated [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub survivors: Option<u64>,
    /// The seed of all random numbers [default: 0]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// The width of the interval of mutations [default: 3]
    #[arg(long, value_name = "WIDTH")]
    pub scale: Option<f64>,
    /// The largest |a| and |b| of snapped points [default: 100]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(i64).range(0..=1 << 20))]
    pub bound: Option<i64>,
    /// The threshold of convergence [default: 1e-6]
    #[arg(long, value_name = "S")]
    pub threshold: Option<f64>,
    /// Generations to run
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub generations: u64,
    /// Continue a saved state with its options
    #[arg(long, value_name = "FILE", conflicts_with_all = ["n", "population", "survivors", "seed", "scale", "bound", "threshold"])]
    pub resume: Option<PathBuf>,
    /// Save the state after the last generation
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Draw the best syntony over generations
    #[arg(long, value_name = "SYNTONY.svg")]
    pub plot: Option<PathBuf>,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
