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
            ClassifyCommand::Policy(options) => options.json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum ClassifyCommand {
    /// Train a classifier, show its validation, and save it
    Train(Box<ClassifyTrainOptions>),
    /// Classify rows, and compare the classes with labels if there are any
    Run(Box<ClassifyRunOptions>),
    /// Choose the policy of the least expected free energy
    Policy(Box<ClassifyPolicyOptions>),
}

const DATA_HELP: &str = "\
DATA.npy has a row of numbers for each input, and --labels names an .npy file with the class of each. DATA.csv has a line for
each input, perhaps after a line of names; without --labels its last column is the class, a number from 0 on or a name.";

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

Free energies are those of the full mode, F = KL(Q||P) - E_Q[ln p(o|c)], with a generative model p(o|c) = N(m_c, s² I): that of
--centres and --deviation, that of the synthetic rows with --generative, or the one in the file; else F = KL(Q||P).
--learn-prior moves the prior to 0.9 P + 0.1 h after each 65536 rows, with the parts h of the classes that were found.

Examples:
  selvedge classify run model.safetensors rows.npy -o classes.csv
  selvedge classify run model.safetensors rows.npy --centres centres.npy --deviation 3 --learn-prior --save learned.safetensors
  selvedge classify run model.safetensors --synthetic 4000 --seed 1 --generative --confusion confusion.svg";

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
    /// The centre of each class, for free energies of the full mode
    #[arg(long, value_name = "CENTRES.npy", requires = "deviation")]
    pub centres: Option<PathBuf>,
    /// The deviation of each feature from its centre
    #[arg(long, value_name = "S", requires = "centres", allow_negative_numbers = true)]
    pub deviation: Option<f64>,
    /// Take the centres and the deviation of the synthetic rows
    #[arg(long, conflicts_with = "centres")]
    pub generative: bool,
    /// Move the prior toward the classes that are found
    #[arg(long)]
    pub learn_prior: bool,
    /// Save the classifier with its new prior and generative model
    #[arg(long, value_name = "MODEL.safetensors")]
    pub save: Option<PathBuf>,
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

const POLICY_HELP: &str = "\
G = risk + ambiguity - novelty, with the risk Σ (predicted observation - preferred)², the ambiguity Σ variance, and the novelty
½ Σ (ln prior variance - ln posterior variance) of the states. PREDICTIONS.safetensors has the tensors `observations`,
`variances`, `prior_variances` and `posterior_variances`, whose first dimension counts the policies and whose others are steps
and components, and `preferred`, the observations that are wanted.

Examples:
  selvedge classify policy predictions.safetensors
  selvedge classify policy predictions.safetensors --sample --gamma 2 --seed 1";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{POLICY_HELP}\n\n{EXIT_CODES}"))]
pub struct ClassifyPolicyOptions {
    /// The predictions for each policy
    #[arg(value_name = "PREDICTIONS.safetensors")]
    pub predictions: PathBuf,
    /// The precision γ of the probabilities softmax(-γ G)
    #[arg(long, value_name = "GAMMA", default_value_t = 1.0, allow_negative_numbers = true)]
    pub gamma: f64,
    /// Draw the policy by its probability
    #[arg(long)]
    pub sample: bool,
    /// The seed of the draw
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "sample")]
    pub seed: u64,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
