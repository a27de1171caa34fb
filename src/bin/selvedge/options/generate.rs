//! The options of `selvedge generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selvedge::DType;
use selvedge::nn::SamplerOptions;

use super::{DeviceChoice, EXIT_CODES};

/// The dtype of a model's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WeightDType {
    F64,
    F32,
    F16,
    Bf16,
}

impl From<WeightDType> for DType {
    fn from(dtype: WeightDType) -> DType {
        match dtype {
            WeightDType::F64 => DType::F64,
            WeightDType::F32 => DType::F32,
            WeightDType::F16 => DType::F16,
            WeightDType::Bf16 => DType::BF16,
        }
    }
}

/// The choice of ids. An option that is not given has the default of the model or the command.
#[derive(Debug, Args)]
pub struct SamplingOptions {
    /// The divisor of the logits; with 0 the most likely id is taken [default: 0.8 for a run, that of the model's folder]
    #[arg(long, value_name = "T")]
    pub temperature: Option<f64>,
    /// Draw among the N most likely ids
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub top_k: Option<u64>,
    /// Draw among the fewest ids that have this probability
    #[arg(long, value_name = "P")]
    pub top_p: Option<f64>,
    /// Draw among ids with this share of the most likely id's probability
    #[arg(long, value_name = "P")]
    pub min_p: Option<f64>,
    /// Divide positive logits of earlier ids, those of the prompt included, and multiply others
    #[arg(long, value_name = "FACTOR")]
    pub repetition_penalty: Option<f64>,
    /// Subtract from the logits of ids that were drawn before
    #[arg(long, value_name = "X")]
    pub presence_penalty: Option<f64>,
    /// Subtract from the logits of ids for each time that they were drawn
    #[arg(long, value_name = "X")]
    pub frequency_penalty: Option<f64>,
}

impl SamplingOptions {
    /// Returns defaults with the options that are given. An option of draws alone draws, at a temperature of 1.
    pub fn over(&self, defaults: SamplerOptions) -> SamplerOptions {
        let draws = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        let temperature = if draws && defaults.temperature == 0.0 { 1.0 } else { defaults.temperature };
        SamplerOptions {
            temperature: self.temperature.unwrap_or(temperature),
            top_k: self.top_k.map_or(defaults.top_k, |count| Some(count as usize)),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            min_p: self.min_p.unwrap_or(defaults.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(defaults.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(defaults.frequency_penalty),
        }
    }
}

const GENERATE_HELP: &str = "\
--model names a folder as Hugging Face publishes it: config.json, safetensors files and a tokenizer. Its generation_config.json
has the defaults of the choice of ids. Several prompts are one batch.

Ctrl-C ends the text with a whole line (exit code 130).

Examples:
  selvedge generate --run book --prompt 'Once upon a time'
  selvedge generate --model Qwen3-0.6B --prompt 'The capital of France is' --length 20
  selvedge generate --model Qwen3-0.6B --chat";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("{GENERATE_HELP}\n\n{EXIT_CODES}"))]
pub struct GenerateOptions {
    /// The folder of a run
    #[arg(long, value_name = "FOLDER", default_value = "selvedge-run", conflicts_with = "model")]
    pub run: PathBuf,
    /// The checkpoint's step [default: the last one]
    #[arg(long, value_name = "N", conflicts_with = "model")]
    pub step: Option<u64>,
    /// The folder of a published model
    #[arg(long, value_name = "FOLDER")]
    pub model: Option<PathBuf>,
    /// Add the adapters of this folder, as peft and `selvedge convert` write them, to the model's weights
    #[arg(long, value_name = "FOLDER", requires = "model")]
    pub lora: Option<PathBuf>,
    /// The text to continue; several with --model [default: a line's end, or the first word of the run's text if it has no line's end]
    #[arg(long, value_name = "TEXT")]
    pub prompt: Vec<String>,
    /// Answer the lines of stdin as the model's chat template asks
    #[arg(long, requires = "model", conflicts_with = "prompt")]
    pub chat: bool,
    /// Ids to write [default: 400, of a model at most as many as its context has]
    #[arg(long, value_name = "N")]
    pub length: Option<u64>,
    #[command(flatten)]
    pub sampling: SamplingOptions,
    /// End a text before this string; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Write the log-probability of each id, and those of the N most likely ids
    #[arg(long, value_name = "N", requires = "model", requires = "json", value_parser = clap::value_parser!(u64).range(..=1 << 20))]
    pub logprobs: Option<u64>,
    /// Read at most N ids of each prompt at a time, which takes less memory [default: all]
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u64).range(1..))]
    pub prefill_chunk: Option<u64>,
    /// Give each prompt the logits, bit for bit, that it has beside any other prompts and in parts of any size; steps may take longer
    #[arg(long, requires = "model")]
    pub batch_invariant: bool,
    /// The seed of the draws
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// The dtype of the model's weights [default: the stored one; f32 in place of 16 bits on the CPU]
    #[arg(long, value_enum, requires = "model")]
    pub dtype: Option<WeightDType>,
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
    fn an_option_of_draws_alone_draws() {
        let none = SamplingOptions {
            temperature: None,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
            presence_penalty: None,
            frequency_penalty: None,
        };
        assert_eq!(none.over(SamplerOptions::greedy()), SamplerOptions::greedy());
        let top = SamplingOptions { top_p: Some(0.5), ..none };
        assert_eq!(
            top.over(SamplerOptions::greedy()),
            SamplerOptions { top_p: 0.5, ..SamplerOptions::default() }
        );
        let warm = SamplerOptions { temperature: 0.6, ..SamplerOptions::default() };
        assert_eq!(top.over(warm), SamplerOptions { top_p: 0.5, ..warm });
        let greedy = SamplingOptions { temperature: Some(0.0), ..top };
        assert_eq!(greedy.over(warm).temperature, 0.0);
    }
}
