//! The options of `selvedge trace`.

use std::path::PathBuf;

use clap::Args;

use super::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct TraceOptions {
    /// A trace, complete or of a process that was killed
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
