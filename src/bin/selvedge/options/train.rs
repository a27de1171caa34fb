//! The options of `selvedge train`, `selvedge generate` and `selvedge eval`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DeviceChoice, EXIT_CODES};

/// A kind of tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenizerKind {
    /// The distinct characters of the text
    Char,
    /// 256 bytes
    Byte,
}

/// The dtype in which a model computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComputeDType {
    /// f32 throughout
    F32,
    /// bf16 activations and products; parameters and optimizer stay f32
    Bf16,
    /// f16 activations and products, with a loss scale; parameters and optimizer stay f32
    F16,
}

const TRAIN_HELP: &str = "\
Without --text the model is trained on the book in data/alice. A run saves checkpoints in its folder, and Ctrl-C, SIGTERM and
SIGUSR1 leave one behind (exit codes 130, 143, 143).

Examples:
  selvedge train
  selvedge train --text book.txt --steps 2000 --run book
  selvedge train --text book.txt --steps 4000 --run book --resume
  selvedge generate --run book --prompt 'Once upon a time'";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{TRAIN_HELP}\n\n{EXIT_CODES}"))]
pub struct TrainOptions {
    /// The text [default: the book that comes with this program]
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// The model: tiny, gpt2, or a config.json of GPT-2
    #[arg(long, value_name = "tiny|gpt2|FILE", default_value = "tiny")]
    pub model: String,
    /// The dtype to compute in [default: f32, or that of the model's file]
    #[arg(long, value_enum)]
    pub dtype: Option<ComputeDType>,
    /// The tokenizer
    #[arg(long, value_enum, default_value_t = TokenizerKind::Char)]
    pub tokenizer: TokenizerKind,
    /// Steps of the run
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// Sequences of a batch
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batch: u64,
    /// Ids of a sequence [default: the model's context]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub context: Option<u64>,
    /// Batches of a step
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub accumulation: u64,
    /// The largest learning rate [default: 1 / the model's width]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Steps of the warm-up
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub warmup: u64,
    /// The decay of matrices
    #[arg(long, value_name = "RATE", default_value_t = 0.1)]
    pub weight_decay: f64,
    /// The largest norm of all gradients together; 0 leaves them
    #[arg(long, value_name = "NORM", default_value_t = 1.0)]
    pub max_norm: f64,
    /// The probability of dropout [default: 0, or that of the model's file]
    #[arg(long, value_name = "P")]
    pub dropout: Option<f64>,
    /// The seed of weights, batches and dropout
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Steps between evaluations, each of which saves a checkpoint
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// The folder of checkpoints [default: the first that is free of selvedge-run, selvedge-run-2, ...]
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,
    /// Continue the last checkpoint of the folder
    #[arg(long, requires = "run")]
    pub resume: bool,
    /// Continue although the text is another one
    #[arg(long, requires = "resume")]
    pub force: bool,
    /// Draw the losses [default: loss.svg in the folder]
    #[arg(long, value_name = "LOSS.svg")]
    pub plot: Option<PathBuf>,
    /// Ids of a sample: before the training, after it, and at the first three evaluations
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub sample: u64,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct GenerateOptions {
    /// The folder of a run
    #[arg(long, value_name = "FOLDER", default_value = "selvedge-run")]
    pub run: PathBuf,
    /// The checkpoint's step [default: the last one]
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
    /// The text to continue
    #[arg(long, value_name = "TEXT", default_value = "\n")]
    pub prompt: String,
    /// Ids to write
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub length: u64,
    /// The divisor of the logits; with 0 the most likely id is taken
    #[arg(long, value_name = "T", default_value_t = 0.8)]
    pub temperature: f64,
    /// Draw among the N most likely ids
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub top_k: Option<u64>,
    /// Draw among the fewest ids that have this probability
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub top_p: f64,
    /// The seed of the draws
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct EvaluateOptions {
    /// The folder of a run
    #[arg(long, value_name = "FOLDER", default_value = "selvedge-run")]
    pub run: PathBuf,
    /// The checkpoint's step [default: the last one]
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
    /// The text [default: the book that comes with this program]
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Sequences of a batch
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batch: u64,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
