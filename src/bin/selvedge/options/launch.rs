//! The options of `selvedge launch`.

use std::ffi::OsString;

use clap::Args;

use super::EXIT_CODES_OF_GROUP;

const LAUNCH_HELP: &str = "\
Every rank is a process of COMMAND with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, SELVEDGE_PORT and
SELVEDGE_SECRET, as torchrun sets the first six. Its lines begin with its rank. Threads of the CPU are shared among the ranks of a
host, unless SELVEDGE_THREADS is set.

When a rank fails, the others get SIGTERM, and SIGKILL after the grace time. The exit code is that of the first rank that failed, 128
and the signal's number for one that a signal ended. SIGINT and SIGTERM are passed on.

On several hosts, start it once on each with the same --nodes, --address and SELVEDGE_SECRET, and with --node 0, 1, ... in turn.

Examples:
  selvedge launch --gpus 4 -- ./train
  selvedge launch --ranks 2 -- python3 script.py
  SELVEDGE_SECRET=... selvedge launch --gpus 8 --nodes 2 --node 0 --address 10.0.0.1 -- ./train";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_GROUP, after_long_help = format!("{LAUNCH_HELP}\n\n{EXIT_CODES_OF_GROUP}"))]
pub struct LaunchOptions {
    /// Start a rank for each of the first N devices of this host
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub gpus: Option<u16>,
    /// Start N ranks on this host, whatever devices it has
    #[arg(long, value_name = "N", conflicts_with = "gpus", required_unless_present = "gpus", value_parser = clap::value_parser!(u16).range(1..))]
    pub ranks: Option<u16>,
    /// The number of hosts, each with as many ranks
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub nodes: u16,
    /// The number of this host, from 0; host 0 has rank 0
    #[arg(long, value_name = "I", default_value_t = 0)]
    pub node: u16,
    /// A name or an address of host 0, at which the others reach it [default: 127.0.0.1 for one host]
    #[arg(long, value_name = "A")]
    pub address: Option<String>,
    /// The port of rank 0, and the one after it [default: free ones for one host, 29500 for several]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1..65535))]
    pub port: Option<u16>,
    /// Seconds between SIGTERM and SIGKILL when a rank has failed
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub grace: f64,
    /// The program of every rank, and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}
