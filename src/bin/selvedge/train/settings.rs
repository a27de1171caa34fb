//! The options of a run: those of the command line, those that its checkpoints store, and the defaults.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use selvedge::nn::{
    CheckpointInfo, Decoder, GptConfig, LoraOptions, LossScale, Recompute, ScheduleShape, SubwordTokenizer,
    TokenizedText, Tokenizer, TrainerOptions,
};
use selvedge::{DType, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::language_model::ModelConfig;
use super::source::{Contents, Corpus};
use crate::failure::Failure;
use crate::files;
use crate::options::{ComputeDType, DeviceChoice, TokenizerChoice, TrainOptions};

/// The options that a checkpoint has beside those of the model and of the trainer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The text's absolute path, or none for the book.
    pub text: Option<PathBuf>,
    /// The absolute paths of files of ids in place of a text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<PathBuf>,
    /// The absolute paths of the files of evaluations, or none for the last part of `data`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation: Vec<PathBuf>,
    /// True if these files are mapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_mapped: bool,
    /// The absolute path of the published folder that the run began from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// The hash of its weights, of a run that trains adapters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_hash: Option<String>,
    pub every: u64,
    pub sample: u64,
    /// The picture's absolute path, or none for the one in the folder.
    pub plot: Option<PathBuf>,
    pub device: DeviceChoice,
    /// A text for the model to continue, which its tokenizer knows.
    pub prompt: String,
}

impl Default for Stored {
    fn default() -> Stored {
        Stored {
            text: None,
            data: Vec::new(),
            validation: Vec::new(),
            is_mapped: false,
            model: None,
            model_hash: None,
            every: 50,
            sample: 200,
            plot: None,
            device: DeviceChoice::Auto,
            prompt: String::new(),
        }
    }
}

impl Stored {
    /// Returns the options of a checkpoint, or none for one of a version that stored none.
    pub fn of(info: &CheckpointInfo) -> Result<Option<Stored>, Failure> {
        if info.program.is_null() {
            return Ok(None);
        }
        let stored = Stored::deserialize(&info.program).map_err(|error| Error::InvalidArgument {
            operation: "train",
            found: format!("a checkpoint whose options cannot be read: {error}"),
            wanted: "the options of `selvedge train`".to_owned(),
        })?;
        Ok(Some(stored))
    }
}

/// All options of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    pub config: ModelConfig,
    pub numbers: TrainerOptions,
    pub stored: Stored,
}

/// The options of a resumed run that differ from those of its checkpoint.
#[derive(Debug, Default)]
pub struct Changes {
    /// Changes after which the run is another one.
    pub of_course: Vec<String>,
    pub others: Vec<String>,
}

/// The effect of a change of an option.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Course,
    None,
}

impl Changes {
    /// Sets an option, if it is given.
    fn set<T: PartialEq + Display + Clone>(
        &mut self,
        effect: Effect,
        name: &str,
        value: &mut T,
        given: Option<T>,
    ) {
        if let Some(given) = given.filter(|given| given != value) {
            let list = if effect == Effect::Course { &mut self.of_course } else { &mut self.others };
            list.push(format!("{name} {given} in place of {value}"));
            *value = given;
        }
    }
}

/// The default of the largest learning rate of a narrow model.
const RATE_OF_NARROW: f64 = 6e-3;
/// The width whose default is half of that.
const WIDTH_OF_HALF: f64 = 256.0;
/// The divisor of the default for weights that were trained before.
const RATE_OF_TRAINED: f64 = 10.0;
/// The default of the largest learning rate of adapters.
const RATE_OF_ADAPTERS: f64 = 2e-4;
/// The most ids of a sequence by default for a published model, whose context may be far longer.
const CONTEXT_OF_TRAINED: usize = 1024;
/// The part of the steps in which a run warms up.
const WARMUP_PART: u64 = 10;

/// Returns the default of the largest learning rate of a width: 4.8e-3 for 128, and 6e-4 for 768, which is the usual one for
/// GPT-2.
pub fn default_learning_rate(width: usize) -> f64 {
    RATE_OF_NARROW / (1.0 + (width as f64 / WIDTH_OF_HALF).powi(2))
}

/// Returns the steps of the warm-up of a run.
pub fn default_warmup(steps: u64) -> u64 {
    steps / WARMUP_PART
}

impl Settings {
    /// Returns the defaults of a new run.
    pub fn new(
        options: &TrainOptions,
        corpus: &Corpus,
        tokenizer: Option<&dyn Tokenizer>,
    ) -> Result<Settings, Failure> {
        let base = model_folder(options);
        let lora = lora(options);
        lora.as_ref().map(LoraOptions::check).transpose()?;
        let config = match base {
            Some(folder) => {
                let mut config = ModelConfig::of_folder(folder)?;
                if let ModelConfig::Decoder(form) = &mut config {
                    form.lora = lora.clone();
                }
                config
            }
            None => ModelConfig::Gpt(new_config(options, corpus, tokenizer)?),
        };
        let steps = options.run_steps().unwrap_or(TrainerOptions::default().steps);
        let learning_rate = match base {
            Some(_) if lora.is_some() => RATE_OF_ADAPTERS,
            Some(_) => default_learning_rate(config.width()) / RATE_OF_TRAINED,
            None => default_learning_rate(config.width()),
        };
        let numbers = TrainerOptions {
            steps,
            context: base.map(|_| config.context().min(CONTEXT_OF_TRAINED)),
            learning_rate,
            min_learning_rate: learning_rate / 10.0,
            warmup_steps: default_warmup(steps),
            is_shuffled: !options.data.is_empty(),
            ..TrainerOptions::default()
        };
        let prompt = match (&corpus.contents, tokenizer) {
            (Contents::Text(text), _) => first_word(text),
            (Contents::Ids(ids), Some(tokenizer)) => first_word_of_ids(ids, tokenizer)?,
            (Contents::Ids(_), None) => String::new(),
        };
        let text = absolute(options.text.as_deref());
        let [data, validation] = [&options.data, &options.validation].map(|paths| all_absolute(paths));
        let (model, is_mapped) = (absolute(base), options.map);
        let model_hash = base.filter(|_| lora.is_some()).map(Decoder::hash_of_weights).transpose()?;
        let stored =
            Stored { text, data, validation, is_mapped, model, model_hash, prompt, ..Stored::default() };
        Ok(Settings { config, numbers, stored })
    }

    /// Returns the options of a checkpoint. The options of the command that it does not store have their defaults.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a configuration that cannot be read.
    pub fn of_checkpoint(info: &CheckpointInfo) -> Result<Settings, Failure> {
        let config = ModelConfig::of_checkpoint(&info.model)?;
        let numbers =
            TrainerOptions::deserialize(&info.training).map_err(|error| Error::InvalidArgument {
                operation: "train",
                found: format!("a checkpoint whose training cannot be read: {error}"),
                wanted: "the options of a trainer".to_owned(),
            })?;
        Ok(Settings { config, numbers, stored: Stored::of(info)?.unwrap_or_default() })
    }

    /// Sets the options that are given.
    pub fn apply(&mut self, options: &TrainOptions) -> Changes {
        let mut changes = Changes::default();
        let Settings { config, numbers, stored } = self;
        let count = |given: Option<u64>| given.map(|count| count as usize);
        let (course, none) = (Effect::Course, Effect::None);
        let mut dtype = named(config.compute_dtype());
        let given = options.dtype.map(|dtype| named(compute_dtype(dtype)));
        changes.set(course, "--dtype", &mut dtype, given);
        if let Some(dtype) = options.dtype {
            config.set_compute_dtype(compute_dtype(dtype));
        }
        let is_f16 = config.compute_dtype() == Some(DType::F16);
        numbers.loss_scale = is_f16.then(|| numbers.loss_scale.unwrap_or(LossScale::dynamic()));
        if let ModelConfig::Gpt(config) = config {
            changes.set(course, "--pad-vocab", &mut config.vocab_multiple, count(options.pad_vocab));
            changes.set(course, "--dropout", &mut config.dropout, options.dropout);
        }
        changes.set(course, "--batch", &mut numbers.batch, count(options.batch));
        let mut context = numbers.context.unwrap_or(config.context());
        changes.set(course, "--context", &mut context, count(options.context));
        numbers.context = Some(context);
        changes.set(course, "--accumulation", &mut numbers.accumulation, count(options.accumulation));
        let before = numbers.learning_rate;
        changes.set(course, "--learning-rate", &mut numbers.learning_rate, options.learning_rate);
        if numbers.learning_rate != before {
            numbers.min_learning_rate = numbers.learning_rate / 10.0;
        }
        let last = &mut numbers.min_learning_rate;
        changes.set(course, "--final-learning-rate", last, options.final_learning_rate);
        let shape = options.schedule.map(ScheduleShape::from);
        changes.set(course, "--schedule", &mut numbers.schedule_shape, shape);
        changes.set(course, "--warmup", &mut numbers.warmup_steps, options.warmup);
        changes.set(course, "--weight-decay", &mut numbers.weight_decay, options.weight_decay);
        let mut norm = numbers.max_norm.unwrap_or(0.0);
        // Clipping to infinity is none, and JSON has no infinity.
        let given = options.max_norm.map(|norm| if norm.is_finite() { norm } else { 0.0 });
        changes.set(course, "--max-norm", &mut norm, given);
        numbers.max_norm = (norm > 0.0).then_some(norm);
        changes.set(course, "--seed", &mut numbers.seed, options.seed);
        changes.set(none, "--recompute", &mut numbers.recompute, options.recompute.map(Recompute::from));
        changes.set(none, "--steps", &mut numbers.steps, options.run_steps());
        changes.set(none, "--every", &mut stored.every, options.every);
        changes.set(none, "--sample", &mut stored.sample, options.sample);
        changes.set(none, "--device", &mut stored.device, options.device);
        if options.plot.is_some() {
            stored.plot = absolute(options.plot.as_deref());
        }
        changes
    }
}

/// Refuses a final learning rate that the schedule does not reach.
pub fn check_schedule(options: &TrainOptions, settings: &Settings) -> Result<(), Failure> {
    match options.final_learning_rate {
        Some(rate) if settings.numbers.schedule_shape == ScheduleShape::Constant => {
            let found = format!("--final-learning-rate {rate} with the schedule constant");
            let wanted = "--schedule cosine, linear or wsd, or no final learning rate".to_owned();
            Err(Error::InvalidArgument { operation: "train", found, wanted }.into())
        }
        _ => Ok(()),
    }
}

/// Refuses options that a decoder does not have.
pub fn check_options_of_decoder(options: &TrainOptions, config: &ModelConfig) -> Result<(), Failure> {
    let ModelConfig::Decoder(form) = config else {
        let Some(rank) = options.lora else { return Ok(()) };
        let found = format!("--lora {rank} for a model with new weights");
        let wanted = "--model with the folder of a published model".to_owned();
        return Err(Error::InvalidArgument { operation: "train", found, wanted }.into());
    };
    if options.lora.is_some() && lora(options) != form.lora {
        let stored = serde_json::json!(form.lora);
        let found = format!("--lora with {}", serde_json::json!(lora(options)));
        let wanted = format!("the checkpoint's, {stored}; leave --lora out");
        return Err(Error::InvalidArgument { operation: "train --resume", found, wanted }.into());
    }
    let given = [("--dropout", options.dropout.is_some()), ("--pad-vocab", options.pad_vocab.is_some())];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => {
            let found = format!("{name} with a published model");
            let wanted = "a model of `selvedge train --model tiny|124M|FILE`, or no such option".to_owned();
            Err(Error::InvalidArgument { operation: "train", found, wanted }.into())
        }
        None => Ok(()),
    }
}

/// Returns the published folder that `--model` names, if it names one.
pub fn model_folder(options: &TrainOptions) -> Option<&Path> {
    options.model.as_deref().map(Path::new).filter(|path| path.is_dir())
}

/// Returns the adapters that the options ask for.
fn lora(options: &TrainOptions) -> Option<LoraOptions> {
    let plain = LoraOptions::new(options.lora? as usize);
    let layers = (!options.lora_layers.is_empty()).then(|| options.lora_layers.clone());
    Some(LoraOptions { alpha: options.lora_alpha.unwrap_or(plain.alpha), layers, ..plain })
}

/// Refuses a model or a tokenizer that is not the checkpoint's.
pub fn check_model(
    options: &TrainOptions,
    info: &CheckpointInfo,
    config: &ModelConfig,
) -> Result<(), Failure> {
    let refused = |found: String, wanted: String| -> Failure {
        Error::InvalidArgument { operation: "train --resume", found, wanted }.into()
    };
    if let Some(choice) = &options.tokenizer {
        let is_same = match choice {
            TokenizerChoice::Char => info.tokenizer["kind"] == "characters",
            TokenizerChoice::Byte => info.tokenizer["kind"] == "bytes",
            TokenizerChoice::Folder(folder) => {
                SubwordTokenizer::from_folder(folder)?.to_json() == info.tokenizer
            }
        };
        if !is_same {
            let stored = match &info.tokenizer {
                Value::Null => "the checkpoint has no tokenizer".to_owned(),
                stored => format!("the checkpoint's, of {}", stored["kind"]),
            };
            return Err(refused(format!("--tokenizer {choice}"), format!("{stored}; leave --tokenizer out")));
        }
    }
    if let Some(name) = &options.model {
        let given = match (model_folder(options), config) {
            (Some(folder), config) => {
                let mut given = ModelConfig::of_folder(folder)?;
                given.set_compute_dtype(config.compute_dtype());
                if let ModelConfig::Decoder(form) = &mut given {
                    form.lora = config.lora().cloned();
                }
                given.to_json()
            }
            (None, ModelConfig::Gpt(config)) => {
                let GptConfig { dropout, compute_dtype, vocab_multiple, .. } = *config;
                let given = named_config(name, Some(config.vocab_size))?;
                GptConfig { dropout, compute_dtype, vocab_multiple, ..given }.to_json()
            }
            (None, ModelConfig::Decoder(_)) => named_config(name, Some(config.vocab_size()))?.to_json(),
        };
        let stored = config.to_json();
        let entries = given.as_object().into_iter().flatten();
        let others: Vec<String> = entries
            .filter(|(name, value)| stored.get(name) != Some(value))
            .map(|(name, value)| {
                format!("{name} {value} in place of {}", stored.get(name).unwrap_or(&Value::Null))
            })
            .collect();
        if !others.is_empty() {
            let wanted = "the checkpoint's model; leave --model out".to_owned();
            return Err(refused(format!("--model {name} with {}", others.join(", ")), wanted));
        }
    }
    Ok(())
}

/// Returns the configuration of a model with new weights.
fn new_config(
    options: &TrainOptions,
    corpus: &Corpus,
    tokenizer: Option<&dyn Tokenizer>,
) -> Result<GptConfig, Failure> {
    let name = options.model.as_deref().unwrap_or("tiny");
    let config = named_config(name, tokenizer.map(Tokenizer::vocab_size))?;
    Ok(match &corpus.contents {
        // Without a tokenizer the smallest model has the ids of the files.
        Contents::Ids(ids) if config.vocab_size == 0 => {
            GptConfig { vocab_size: ids.largest_id() as usize + 1, ..config }
        }
        _ => config,
    })
}

/// Returns the configuration of a name or a file, with the vocabulary of the tokenizer, if there is one. That of `tiny` is 0
/// otherwise.
fn named_config(name: &str, vocab_size: Option<usize>) -> Result<GptConfig, Failure> {
    let config = match name {
        "tiny" => GptConfig::tiny(0),
        "124M" | "gpt2" => GptConfig::gpt2(),
        "350M" => GptConfig::gpt2_medium(),
        "774M" => GptConfig::gpt2_large(),
        "1558M" => GptConfig::gpt2_xl(),
        path => {
            let wanted = "tiny, 124M, 350M, 774M, 1558M, the folder of a published model, or a configuration of GPT-2 in JSON";
            GptConfig::from_json(&files::read_text(Path::new(path), wanted)?)?
        }
    };
    Ok(GptConfig { vocab_size: vocab_size.unwrap_or(config.vocab_size), ..config })
}

fn compute_dtype(dtype: ComputeDType) -> Option<DType> {
    match dtype {
        ComputeDType::F32 => None,
        ComputeDType::Bf16 => Some(DType::BF16),
        ComputeDType::F16 => Some(DType::F16),
    }
}

fn named(compute_dtype: Option<DType>) -> &'static str {
    compute_dtype.map_or("f32", DType::name)
}

/// Returns the path as it is from any folder.
pub fn absolute(path: Option<&Path>) -> Option<PathBuf> {
    path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Returns the paths as they are from any folder.
pub fn all_absolute(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| absolute(Some(path))).collect()
}

/// Returns the first word of the text of ids.
fn first_word_of_ids(ids: &TokenizedText, tokenizer: &dyn Tokenizer) -> Result<String, Error> {
    const IDS: usize = 64;
    let ids = ids.ids(0..IDS.min(ids.len()))?;
    // An id may be outside of the tokenizer's vocabulary. The trainer compares that of the model.
    let known = |id: &u32| (*id as usize) < tokenizer.vocab_size() && !tokenizer.is_special(*id);
    let ids: Vec<u32> = ids.into_iter().filter(known).collect();
    Ok(first_word(&tokenizer.decode_bytes(&ids).unwrap_or_default()))
}

/// Returns the first word of a text, or its first character if it has no word.
fn first_word(bytes: &[u8]) -> String {
    const BYTES: usize = 1 << 16;
    const LETTERS: usize = 12;
    let start = bytes.get(..BYTES).unwrap_or(bytes);
    // The last character may be cut.
    let start = match std::str::from_utf8(start) {
        Ok(start) => start,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    let word = start.split(|letter: char| !letter.is_alphanumeric()).find(|word| !word.is_empty());
    match word {
        Some(word) => word.chars().take(LETTERS).collect(),
        None => start.chars().find(|letter| !letter.is_control()).map(String::from).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_rate_has_a_limit_for_narrow_models() {
        for (width, wanted) in [(1, 6e-3), (32, 5.9e-3), (128, 4.8e-3), (256, 3e-3), (768, 6e-4)] {
            let rate = default_learning_rate(width);
            assert!((rate / wanted - 1.0).abs() < 0.01, "{width}: {rate}");
        }
        assert_eq!([1, 300, 20_000].map(default_warmup), [0, 30, 2000]);
    }

    #[test]
    fn a_prompt_is_the_first_word_of_a_text() {
        for (text, wanted) in [
            ("It was", "It"),
            ("\n\n  'Twas", "Twas"),
            ("-- + --", "-"),
            ("\n\t", ""),
            ("abcdefghijklmnop", "abcdefghijkl"),
            ("é\n", "é"),
        ] {
            assert_eq!(first_word(text.as_bytes()), wanted, "{text:?}");
        }
        assert_eq!(first_word(&[0xff, b'a']), "");
    }
}
