//! The folder of a published model: its weights and its tokenizer.

use std::path::Path;
use std::time::Instant;

use selvedge::nn::{Decoder, DecoderOptions, SubwordTokenizer};
use selvedge::{Device, Error};
use serde_json::Value;

use crate::device;
use crate::failure::Failure;
use crate::options::{DeviceChoice, WeightDType};
use crate::output::Progress;

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
    /// Loads a folder. The tokenizer is first: it takes less time, and may be missing.
    pub fn new(
        folder: &Path,
        choice: DeviceChoice,
        dtype: Option<WeightDType>,
    ) -> Result<LoadedModel, Failure> {
        let (device, reason) = device::choose(choice)?;
        let start = Instant::now();
        let progress = Progress::spinner("load the model");
        let tokenizer = SubwordTokenizer::from_folder(folder)?;
        let options = DecoderOptions { dtype: dtype.map(Into::into), ..DecoderOptions::default() };
        let model = Decoder::load(folder, &device, &options)?;
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
