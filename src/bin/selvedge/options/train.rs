//! The options of `selvedge train` and `selvedge eval`.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selvedge::Error;
use selvedge::nn::{Recompute, ScheduleShape};

use super::{DeviceChoice, EXIT_CODES, WeightDType};

/// A value of `--tokenizer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenizerChoice {
    /// The distinct characters of the text.
    Char,
    /// 256 bytes.
    Byte,
    /// The folder of a published model's tokenizer, or of one that `selvedge tokenize --train` wrote.
    Folder(PathBuf),
}

impl From<OsString> for TokenizerChoice {
    fn from(word: OsString) -> TokenizerChoice {
        match word.to_str() {
            Some("char") => TokenizerChoice::Char,
            Some("byte") => TokenizerChoice::Byte,
            _ => TokenizerChoice::Folder(word.into()),
        }
    }
}

impl fmt::Display for TokenizerChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenizerChoice::Char => formatter.write_str("char"),
            TokenizerChoice::Byte => formatter.write_str("byte"),
            TokenizerChoice::Folder(folder) => folder.display().fmt(formatter),
        }
    }
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

/// The course of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScheduleChoice {
    /// Half a cosine to the final learning rate
    Cosine,
    /// The largest learning rate
    Constant,
    /// A line to the final learning rate
    Linear,
    /// The largest learning rate, and in the last fifth of the steps a line to the final one
    Wsd,
}

impl From<ScheduleChoice> for ScheduleShape {
    fn from(choice: ScheduleChoice) -> ScheduleShape {
        match choice {
            ScheduleChoice::Cosine => ScheduleShape::Cosine,
            ScheduleChoice::Constant => ScheduleShape::Constant,
            ScheduleChoice::Linear => ScheduleShape::Linear,
            ScheduleChoice::Wsd => ScheduleShape::Wsd,
        }
    }
}

/// The activations that a backward computes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecomputeChoice {
    /// None: the most memory, the least time
    Nothing,
    /// The feed-forward of each block and its norm
    FeedForward,
    /// Whole blocks: the least memory, for about one more forward
    Blocks,
}

impl From<RecomputeChoice> for Recompute {
    fn from(choice: RecomputeChoice) -> Recompute {
        match choice {
            RecomputeChoice::Nothing => Recompute::Nothing,
            RecomputeChoice::FeedForward => Recompute::FeedForward,
            RecomputeChoice::Blocks => Recompute::Blocks,
        }
    }
}

const TRAIN_HELP: &str = "\
Without --text and --data the model is trained on the book in data/alice. A run saves checkpoints in its folder, and Ctrl-C, SIGTERM and
SIGUSR1 leave one behind (exit codes 130, 143, 143).

Checkpoints store every option, and --resume takes them from there. --steps, --every, --sample, --plot, --recompute and
--device may change; a change of any other option needs --force, and --model, --tokenizer and --run cannot change.

Examples:
  selvedge train
  selvedge train --text book.txt --steps 2000 --run book
  selvedge train --model 124M --data train_*.bin --validation val.bin --tokenizer gpt2 --dtype bf16
  selvedge train --model Qwen3-0.6B --text book.txt --context 256 --dtype bf16
  selvedge train --model Qwen3-0.6B --text book.txt --lora 8 --lora-layers q_proj,v_proj
  selvedge train --run book --resume --steps 4000
  selvedge train --profile trace.json.gz --steps 10..12
  selvedge train --model 124M --dtype bf16 --memory
  selvedge generate --run book";

/// The options of a run. One that is not given has its default in a new run, and its stored value in a resumed one.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{TRAIN_HELP}\n\n{EXIT_CODES}"))]
pub struct TrainOptions {
    /// The text [default: the book that comes with this program]
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub text: Option<PathBuf>,
    /// Files of ids in place of a text, .bin or .npy, such as those of `selvedge tokenize`
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Files of ids for evaluations [default: the last tenth of --data]
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "data")]
    pub validation: Vec<PathBuf>,
    /// Map the files of --data instead of reading them into memory; they must not change while the run lasts
    #[arg(long, requires = "data")]
    pub map: bool,
    /// The model: tiny, a size of GPT-2 (124M is gpt2 too), or a config.json of GPT-2, with new weights; or the folder of a
    /// published model, whose weights the run begins from [default: tiny]
    #[arg(long, value_name = "tiny|124M|350M|774M|1558M|FILE|FOLDER")]
    pub model: Option<String>,
    /// Train adapters of this rank in place of the weights (LoRA), for --model FOLDER
    #[arg(long, value_name = "RANK")]
    pub lora: Option<u64>,
    /// The adapters' results are multiplied by A / RANK [default: twice the rank]
    #[arg(long, value_name = "A", requires = "lora")]
    pub lora_alpha: Option<f64>,
    /// The layers with adapters, by the ends of their names [default: the projections of queries and values]
    #[arg(long, value_name = "NAME,...", requires = "lora", value_delimiter = ',')]
    pub lora_layers: Vec<String>,
    /// The dtype to compute in [default: f32, or that of the model's file]
    #[arg(long, value_enum)]
    pub dtype: Option<ComputeDType>,
    /// Compute the logits of a multiple of N ids, which is faster on GPUs; the vocabulary stays [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub pad_vocab: Option<u64>,
    /// The tokenizer, or its folder [default: that of --model FOLDER, else char; none for --data, whose run then writes no samples]
    #[arg(long, value_name = "char|byte|FOLDER")]
    pub tokenizer: Option<TokenizerChoice>,
    /// Steps of the run [default: 300]; as A..B the steps that --profile traces, A to B [default: three, after the first two]
    #[arg(long, value_name = "N|A..B", value_parser = steps)]
    pub steps: Vec<StepsOption>,
    /// Sequences of a batch [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batch: Option<u64>,
    /// Ids of a sequence [default: the model's context, at most 1024 of --model FOLDER]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub context: Option<u64>,
    /// Batches of a step [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub accumulation: Option<u64>,
    /// The largest learning rate [default: 6e-3 / (1 + (width / 256)²), a tenth of it for --model FOLDER, 2e-4 with --lora]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// The learning rate at the end [default: a tenth of the largest]
    #[arg(long, value_name = "RATE")]
    pub final_learning_rate: Option<f64>,
    /// The course of the learning rate after the warm-up [default: cosine]
    #[arg(long, value_enum)]
    pub schedule: Option<ScheduleChoice>,
    /// Steps of the warm-up [default: a tenth of the steps]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u64>,
    /// The decay of matrices [default: 0.1]
    #[arg(long, value_name = "RATE")]
    pub weight_decay: Option<f64>,
    /// The largest norm of all gradients together; 0 leaves them [default: 1]
    #[arg(long, value_name = "NORM", value_parser = max_norm)]
    pub max_norm: Option<f64>,
    /// The probability of dropout [default: 0, or that of the model's file]
    #[arg(long, value_name = "P")]
    pub dropout: Option<f64>,
    /// The activations that a backward computes again, which saves memory and changes no bit [default: nothing]
    #[arg(long, value_enum)]
    pub recompute: Option<RecomputeChoice>,
    /// The seed of weights, batches and dropout [default: 1]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Steps between evaluations, each of which saves a checkpoint [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// The folder of checkpoints [default: the first that is free of selvedge-run, selvedge-run-2, ...]
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,
    /// Continue the last checkpoint of the folder, with its options
    #[arg(long, requires = "run")]
    pub resume: bool,
    /// Continue this checkpoint of the folder instead of the last one, and set later ones aside
    #[arg(long, value_name = "N", requires = "resume")]
    pub step: Option<u64>,
    /// Continue although an option or the text is another one
    #[arg(long, requires = "resume")]
    pub force: bool,
    /// Draw the losses [default: loss.svg in the folder]
    #[arg(long, value_name = "LOSS.svg")]
    pub plot: Option<PathBuf>,
    /// Trace some steps, and print the time and the bound of each kernel of a step
    #[arg(long, value_name = "TRACE.json.gz")]
    pub profile: Option<PathBuf>,
    /// Print the memory of a step and the largest batch that fits, by measured steps, in place of training
    #[arg(long, conflicts_with = "profile")]
    pub memory: bool,
    /// Ids of a sample: before the training, after it, and at the first three evaluations; 0 writes none [default: 200]
    #[arg(long, value_name = "N")]
    pub sample: Option<u64>,
    /// The device: auto, cpu, or a device's ordinal [default: auto]
    #[arg(long, value_name = "auto|cpu|I")]
    pub device: Option<DeviceChoice>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A value of `--steps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepsOption {
    /// The steps of the run.
    Run(u64),
    /// The first and the last of the steps to profile.
    Profiled(u64, u64),
}

/// Parses a number of steps, or the first and the last of some steps.
fn steps(text: &str) -> Result<StepsOption, String> {
    let number = |text: &str| match text.parse::<u64>() {
        Ok(0) => Err("found 0; wanted a number from 1 on".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("found '{text}': {error}; wanted a number from 1 on")),
    };
    let Some((first, last)) = text.split_once("..") else { return number(text).map(StepsOption::Run) };
    match (number(first)?, number(last)?) {
        (first, last) if first <= last => Ok(StepsOption::Profiled(first, last)),
        (first, last) => {
            Err(format!("found {first}..{last}; wanted a last step that is not before the first"))
        }
    }
}

impl TrainOptions {
    /// Returns the steps of the run, if they are given.
    pub fn run_steps(&self) -> Option<u64> {
        self.steps.iter().find_map(|steps| match steps {
            StepsOption::Run(steps) => Some(*steps),
            StepsOption::Profiled(..) => None,
        })
    }

    /// Returns the steps to profile, if they are given.
    pub fn profiled_steps(&self) -> Option<RangeInclusive<u64>> {
        self.steps.iter().find_map(|steps| match steps {
            StepsOption::Profiled(first, last) => Some(*first..=*last),
            StepsOption::Run(_) => None,
        })
    }

    /// Checks that each form of `--steps` is given at most once, and that of steps to profile with `--profile`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<(), Error> {
        let refused = |found: &str, wanted: &str| {
            let (found, wanted) = (found.to_owned(), wanted.to_owned());
            Err(Error::InvalidArgument { operation: "train", found, wanted })
        };
        let profiled = self.steps.iter().filter(|steps| matches!(steps, StepsOption::Profiled(..))).count();
        if profiled > 1 || self.steps.len() - profiled > 1 {
            return refused("--steps twice", "one --steps N and one --steps A..B at most");
        }
        if profiled > 0 && self.profile.is_none() {
            return refused("--steps A..B without --profile", "--profile TRACE.json.gz with it");
        }
        Ok(())
    }
}

/// Parses a norm, which NaN and numbers below 0 are not.
fn max_norm(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(norm) if norm >= 0.0 => Ok(norm),
        Ok(norm) => Err(format!("found {norm}; wanted a number from 0 on")),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct EvaluateOptions {
    /// The folder of a run
    #[arg(long, value_name = "FOLDER", default_value = "selvedge-run", conflicts_with = "model")]
    pub run: PathBuf,
    /// The checkpoint's step [default: the last one]
    #[arg(long, value_name = "N", conflicts_with = "model")]
    pub step: Option<u64>,
    /// The text [default: that of the run]
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub text: Option<PathBuf>,
    /// The folder of a published model
    #[arg(long, value_name = "FOLDER")]
    pub model: Option<PathBuf>,
    /// Of a model: texts, each a sequence, or .bin and .npy files of ids, which are one sequence; of a run: files of ids
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "text")]
    pub data: Vec<PathBuf>,
    /// Ids of a window [default: the model's context]
    #[arg(long, value_name = "N", requires = "model")]
    pub context: Option<u64>,
    /// Ids between the starts of two windows [default: those of a window]
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u64).range(1..))]
    pub stride: Option<u64>,
    /// Add the adapters of this folder to the model's weights
    #[arg(long, value_name = "FOLDER", requires = "model")]
    pub lora: Option<PathBuf>,
    /// The dtype of the model's weights [default: the stored one; f32 in place of 16 bits on the CPU]
    #[arg(long, value_enum, requires = "model")]
    pub dtype: Option<WeightDType>,
    /// Sequences of a batch of a run
    #[arg(long, value_name = "N", default_value_t = 16, conflicts_with = "model", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batch: u64,
    /// The device: auto, cpu, or a device's ordinal
    #[arg(long, value_name = "auto|cpu|I", default_value = "auto")]
    pub device: DeviceChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_a_number_or_a_range() {
        assert_eq!(steps("300"), Ok(StepsOption::Run(300)));
        assert_eq!(steps("5..8"), Ok(StepsOption::Profiled(5, 8)));
        assert_eq!(steps("5..5"), Ok(StepsOption::Profiled(5, 5)));
        for (text, part) in [
            ("0", "found 0"),
            ("5..2", "found 5..2"),
            ("0..2", "found 0"),
            ("..2", "found ''"),
            ("2..", "found ''"),
            ("2..x", "found 'x'"),
            ("-1", "found '-1'"),
            ("2..=3", "found '=3'"),
        ] {
            let error = steps(text).unwrap_err();
            assert!(error.contains(part) && error.contains("wanted"), "{text}: {error}");
        }
    }
}
