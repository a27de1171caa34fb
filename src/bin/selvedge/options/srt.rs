//! The options of `selvedge srt`.

use clap::{Args, Subcommand};

use super::{EXIT_CODES, EXIT_CODES_OF_GROUP};

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
            SrtCommand::Verify(options) => options.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum SrtCommand {
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
