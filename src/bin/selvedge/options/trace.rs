//! The options of `selvedge trace`.

use std::path::PathBuf;

use clap::Args;

use super::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct TraceOptions {
    /// A trace, complete or of a process that was killed
    #[arg(value_name = "FILE", required_unless_present = "compare")]
    pub file: Option<PathBuf>,
    /// Print the changes from one trace to another, the largest first
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "file")]
    pub compare: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
