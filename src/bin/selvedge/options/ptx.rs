//! The options of `selvedge ptx`.

use std::path::PathBuf;

use clap::Args;

use super::{CompileOptions, EXIT_CODES, TargetOptions};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct PtxOptions {
    /// PTX, a cubin, a fatbin, or CUDA C++ in a .cu file, which NVRTC compiles
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub compile: CompileOptions,
    #[command(flatten)]
    pub target: TargetOptions,
}
