//! The options of `selvedge convert`.

use std::path::PathBuf;

use clap::Args;

use super::{EXIT_CODES, WeightDType};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ConvertOptions {
    /// The folder of a published model
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The folder to write
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    /// The dtype of the weights to write
    #[arg(long, value_enum)]
    pub dtype: WeightDType,
    /// Write into a folder that exists
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
