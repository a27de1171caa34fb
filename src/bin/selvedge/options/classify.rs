//! The options of `selvedge classify`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DeviceChoice, EXIT_CODES, EXIT_CODES_OF_GROUP};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_GROUP, arg_required_else_help = true)]
pub struct ClassifyOptions {
    #[command(subcommand)]
    pub command: ClassifyCommand,
}

impl ClassifyOptions {
    /// Returns `true` for `--json` of the subcommand.
    pub fn json(&self) -> bool {
        match &self.command {
            ClassifyCommand::Train(options) => options.json,
            ClassifyCommand::Run(options) => options.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum ClassifyCommand {
    /// Train a classifier, show its validation, and save it
    Train(Box<ClassifyTrainOptions>),
    /// Classify rows, and compare the classes with labels if there are any
    Run(Box<ClassifyRunOptions>),
}

const DATA_HELP: &str = "\
DATA.npy has a row of numbers for each input, and --labels names an .npy file with the class of each. DATA.csv has a line for
each input, perhaps after a line of names; without --labels its last column is the class. Classes count from 0.";

/// The rows and their labels.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ClassifyData {
    /// The rows, as .npy or CSV
    #[arg(value_name = "DATA.npy|DATA.csv")]
    pub data: Option<PathBuf>,
    /// Draw N rows of the synthetic data instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub synthetic: Option<u64>,
}

const TRAIN_HELP: &str = "\
Examples:
  selvedge classify train --synthetic 20000 -o model.safetensors --confusion confusion.svg
  selvedge classify train rows.csv -o model.safetensors --calibration calibration.svg";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{DATA_HELP}\n\n{TRAIN_HELP}\n\n{EXIT_CODES}"))]
pub struct ClassifyTrainOptions {
    #[command(flatten)]
    pub rows: ClassifyData,
    /// The class of each row
    #[arg(long, value_name = "LABELS.npy", conflicts_with = "synthetic")]
    pub labels: Option<PathBuf>,
    /// The widths of the hidden layers
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "64,32,16")]
    pub hidden: Vec<usize>,
    /// The prior of the classes [default: their parts of the labels, with one row more for each class]
    #[arg(long, value_name = "P,P,…", value_delimiter = ',')]
    pub prior: Vec<f64>,
    /// Multiply posteriors by the prior to get beliefs
    #[arg(long)]
    pub fuse_prior: bool,
    /// The most epochs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub epochs: u32,
    /// The rows of a batch
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// The learning rate of Adam
    #[arg(long, value_name = "RATE", default_value_t = 1e-3)]
    pub learning_rate: f64,
    /// Epochs without a better validation loss before the end
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub patience: u32,
    /// The part of the rows for validation
    #[arg(long, value_name = "PART", default_value_t = 0.2)]
    pub validation: f64,
    /// The probability of dropout
    #[arg(long, value_name = "P", default_value_t = 0.2)]
    pub dropout: f64,
    /// The seed of the first weights, the split, the order, dropout and synthetic rows
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Save the classifier
    #[arg(short, long, value_name = "MODEL.safetensors")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub pictures: ClassifyPictures,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The pictures of an evaluation.
#[derive(Debug, Args)]
pub struct ClassifyPictures {
    /// Draw the confusion matrix
    #[arg(long, value_name = "CONFUSION.svg")]
    pub confusion: Option<PathBuf>,
    /// Draw the calibration curve
    #[arg(long, value_name = "CALIBRATION.svg")]
    pub calibration: Option<PathBuf>,
}

const RUN_HELP: &str = "\
For `run`, a CSV file may lack the column of classes. The pictures need labels.

Examples:
  selvedge classify run model.safetensors rows.npy -o classes.csv
  selvedge classify run model.safetensors --synthetic 4000 --seed 1 --confusion confusion.svg";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{DATA_HELP}\n\n{RUN_HELP}\n\n{EXIT_CODES}"))]
pub struct ClassifyRunOptions {
    /// The classifier
    #[arg(value_name = "MODEL.safetensors")]
    pub model: PathBuf,
    #[command(flatten)]
    pub rows: ClassifyData,
    /// The class of each row
    #[arg(long, value_name = "LABELS.npy", conflicts_with = "synthetic")]
    pub labels: Option<PathBuf>,
    /// Multiply posteriors by the prior to get beliefs
    #[arg(long)]
    pub fuse_prior: bool,
    /// The seed of the synthetic rows
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "synthetic")]
    pub seed: u64,
    /// Write class, confidence, free energy and beliefs of each row
    #[arg(short, long, value_name = "RESULTS.csv")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub pictures: ClassifyPictures,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
