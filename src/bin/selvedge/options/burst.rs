//! The options of `selvedge burst`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::{DeviceChoice, EXIT_CODES, EXIT_CODES_OF_GROUP};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_GROUP, arg_required_else_help = true)]
pub struct BurstOptions {
    #[command(subcommand)]
    pub command: BurstCommand,
}

impl BurstOptions {
    /// Returns `true` for `--json` of the subcommand.
    pub fn json(&self) -> bool {
        match &self.command {
            BurstCommand::Make(options) => options.json,
            BurstCommand::Run(options) => options.json,
            BurstCommand::Verify(options) => options.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum BurstCommand {
    /// Make a network file, of a generated network or of arrays in an .npz file
    Make(BurstMakeOptions),
    /// Run a network, and draw and save its spikes
    Run(BurstRunOptions),
    /// Compare the worked example and the golden hashes with the results of this machine's devices
    Verify(BurstVerifyOptions),
}

const MAKE: &str = "\
G is a network of varied neurons, S one that fires at a steady rate: 1 neuron in --every per burst. Both are defined by
hashes alone and are the same on every machine. They fire only with their input, which --input writes for `burst run --inject`.

An .npz file has the arrays source, target, weight (0 to 255), psp (0 to 255) and perhaps kind (0 excitatory, 1 inhibitory)
of the synapses in any order; and of the neurons threshold, threshold_max, leak, rest, refractory, excitability,
fire_limit, snooze, accumulates, neuron_kind, area and position (three columns), each of which may be missing, or neurons, their
number. An array area:NAME holds index and flags of an area (1 shares, 2 driven by potentials), and population:NAME the first and
the last + 1 id of a population. An array of another name is an error.

Examples:
  selvedge burst make S --neurons 10000 --degree 100 -o network.burst --input input.npy --bursts 1000
  selvedge burst make network.npz -o network.burst
";

#[derive(Debug, Args)]
#[command(after_help = format!("{MAKE}\n{EXIT_CODES}"), arg_required_else_help = true)]
pub struct BurstMakeOptions {
    /// G, S, or an .npz file with the network's arrays
    #[arg(value_name = "G|S|FILE.npz")]
    pub source: NetworkSource,
    /// Neurons of G or S [default: 1000 of G, 10000 of S]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 31))]
    pub neurons: Option<u32>,
    /// Synapses of each neuron of G or S [default: 20 of G, 100 of S]
    #[arg(long, value_name = "N")]
    pub degree: Option<u32>,
    /// Of S: one neuron in so many fires in each burst [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub every: Option<u32>,
    /// The seed of the random draws
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u32,
    /// Write the input of G or S
    #[arg(long, value_name = "INPUT.npy")]
    pub input: Option<PathBuf>,
    /// Bursts of --input
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "input", value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    pub bursts: u64,
    /// The network file
    #[arg(short, long, value_name = "NETWORK.burst")]
    pub output: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The network to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkSource {
    Varied,
    Steady,
    Arrays(PathBuf),
}

impl FromStr for NetworkSource {
    type Err = String;

    fn from_str(text: &str) -> Result<NetworkSource, String> {
        match text {
            "G" | "g" => Ok(NetworkSource::Varied),
            "S" | "s" => Ok(NetworkSource::Steady),
            path if path.ends_with(".npz") => Ok(NetworkSource::Arrays(path.into())),
            _ => Err(format!("found '{text}'; wanted G, S or the name of an .npz file")),
        }
    }
}

const RUN: &str = "\
--inject takes an .npy array of three columns: burst, id, potential. Each row adds a potential to the input of a neuron in a
burst, rounded to thousandths. Rows may be in any order, of any integer or floating-point type, and several rows of one neuron
and burst add up. Bursts count from 1 over the life of a network, so a run of a network saved after burst 500 begins with
burst 501. Rows of other bursts are not used; the result says how many were.

--device auto runs the first bursts on device 0 and on the CPU, and goes on with the faster one; it takes the CPU where there is
no device. The results are the same bit for bit.

If the device fails in mid-run, no finished burst is lost: with --device auto the run goes on on the CPU, with a warning. With a
device's number it ends there with exit code 1, and the files hold the bursts up to that one.

Examples:
  selvedge burst run network.burst --bursts 1000 --inject input.npy --raster raster.svg --rates rates.svg
  selvedge burst run network.burst --device cpu --spikes spikes.npz --save later.burst --json
";

#[derive(Debug, Args)]
#[command(after_help = format!("{RUN}\n{EXIT_CODES}"), arg_required_else_help = true)]
pub struct BurstRunOptions {
    /// The network with its state, of `burst make` or `Simulation::save`
    #[arg(value_name = "NETWORK.burst")]
    pub network: PathBuf,
    /// Bursts to run
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    pub bursts: u64,
    /// Input: rows of burst, id, potential; see below
    #[arg(long, value_name = "INPUT.npy")]
    pub inject: Option<PathBuf>,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Draw the spikes: neurons over bursts
    #[arg(long, value_name = "RASTER.svg")]
    pub raster: Option<PathBuf>,
    /// Draw the firing rate over bursts, and the rates of the neurons
    #[arg(long, value_name = "RATES.svg")]
    pub rates: Option<PathBuf>,
    /// Save the spikes as the arrays burst and id
    #[arg(long, value_name = "SPIKES.npz")]
    pub spikes: Option<PathBuf>,
    /// Save the network with its state after the last burst
    #[arg(long, value_name = "NETWORK.burst")]
    pub save: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct BurstVerifyOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_names() {
        assert_eq!("G".parse(), Ok(NetworkSource::Varied));
        assert_eq!("x/a.npz".parse(), Ok(NetworkSource::Arrays("x/a.npz".into())));
        assert!("x.npy".parse::<NetworkSource>().unwrap_err().contains("'x.npy'"));
    }
}
