//! The folder of a published model: its weights and its tokenizer.

use std::path::Path;
use std::time::Instant;

use selvedge::nn::{Decoder, DecoderOptions, SubwordTokenizer};
use selvedge::{Device, Error};
use serde_json::Value;

use crate::device;
use crate::failure::Failure;
use crate::files;
use crate::options::{DeviceChoice, WeightDType};
use crate::output::Progress;

/// The folder in that of a run with the files of its tokenizer.
pub const TOKENIZER_OF_RUN: &str = "tokenizer";

/// The files beside the weights and their configuration.
const TOKENIZER_FILES: [&str; 8] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
];

/// Returns whether a folder has a tokenizer that can be loaded.
pub fn has_tokenizer(folder: &Path) -> bool {
    ["tokenizer.json", "vocab.json"].iter().any(|name| folder.join(name).is_file())
}

/// Copies the files of a tokenizer, and returns their names.
pub fn copy_tokenizer(from: &Path, to: &Path) -> Result<Vec<&'static str>, Failure> {
    let mut copied = Vec::new();
    for name in TOKENIZER_FILES {
        let path = from.join(name);
        if path.is_file() {
            files::write(&to.join(name), files::read(&path, "a file of a tokenizer")?)?;
            copied.push(name);
        }
    }
    Ok(copied)
}

/// A model on its device.
pub struct LoadedModel {
    pub model: Decoder,
    pub tokenizer: SubwordTokenizer,
    pub device: Device,
    /// The reason for the CPU if it was not requested.
    pub reason: Option<Error>,
    /// The time of loading.
    pub seconds: f64,
}

impl LoadedModel {
    /// Loads a folder, and adds adapters to its weights. The tokenizer is first: it takes less time, and may be missing.
    pub fn new(
        folder: &Path,
        choice: DeviceChoice,
        dtype: Option<WeightDType>,
        lora: Option<&Path>,
    ) -> Result<LoadedModel, Failure> {
        let (device, reason) = device::choose(choice)?;
        let start = Instant::now();
        let progress = Progress::spinner("load the model");
        let tokenizer = SubwordTokenizer::from_folder(folder)?;
        let options = DecoderOptions { dtype: dtype.map(Into::into), ..DecoderOptions::default() };
        let mut model = Decoder::load(folder, &device, &options)?;
        if let Some(lora) = lora {
            model.load_lora(lora)?;
            model.merge_lora()?;
        }
        drop(progress);
        Ok(LoadedModel { model, tokenizer, device, reason, seconds: start.elapsed().as_secs_f64() })
    }

    /// Adds what was loaded, and where, to the JSON of a command.
    pub fn describe(&self, folder: &Path, json: &mut Value) {
        json["model"] = folder.display().to_string().into();
        json["dtype"] = self.model.dtype().to_string().into();
        json["device"] = self.device.to_string().into();
        json["cpu_because"] = self.reason.as_ref().map(ToString::to_string).into();
    }
}
