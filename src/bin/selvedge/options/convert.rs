//! The options of `selvedge convert`.

use std::path::PathBuf;

use clap::Args;

use super::{EXIT_CODES, WeightDType};

const CONVERT_HELP: &str = "\
The result is a folder as Hugging Face publishes it, with the tokenizer's files.

Examples:
  selvedge convert Qwen3-0.6B Qwen3-0.6B-f16 --dtype f16
  selvedge convert selvedge-run tuned --dtype bf16";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{CONVERT_HELP}\n\n{EXIT_CODES}"))]
pub struct ConvertOptions {
    /// The folder of a published model, or of a run of `selvedge train --model FOLDER`
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The folder to write
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    /// The dtype of the weights to write; needed for a published model [default for a run: f32]
    #[arg(long, value_enum)]
    pub dtype: Option<WeightDType>,
    /// The step of a run's checkpoint [default: the last one]
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
    /// Write into a folder that exists
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
