//! The options of `selvedge convert`.

use std::path::PathBuf;

use clap::Args;

use super::{EXIT_CODES, WeightDType};

const CONVERT_HELP: &str = "\
The result is a folder as Hugging Face publishes it, with the tokenizer's files. Of a run of `selvedge train --lora` it has the
adapters alone, as peft writes them, unless --merge is given.

Examples:
  selvedge convert Qwen3-0.6B Qwen3-0.6B-f16 --dtype f16
  selvedge convert selvedge-run tuned --dtype bf16
  selvedge convert selvedge-run adapter
  selvedge convert selvedge-run tuned --merge --dtype bf16
  selvedge convert Qwen3-0.6B tuned --lora adapter --dtype bf16";

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
    /// Add the adapters of this folder to the weights of a published model
    #[arg(long, value_name = "FOLDER", conflicts_with = "step")]
    pub lora: Option<PathBuf>,
    /// Add the adapters of a run of `selvedge train --lora` to the weights, instead of writing them alone
    #[arg(long, conflicts_with = "lora")]
    pub merge: bool,
    /// Write into a folder that exists
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
