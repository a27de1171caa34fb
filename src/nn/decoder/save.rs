//! [`Decoder::save`]: a model to a Hugging Face folder.

use std::path::Path;

use serde_json::Value;

use super::load::INDEX;
use super::model::Decoder;
use crate::error::{Error, Result};
use crate::io::write_file;
use crate::nn::Module;
use crate::tensor::Tensor;
use crate::types::DType;

/// The keys of config.json that name the weights' dtype.
const DTYPE_KEYS: [&str; 2] = ["dtype", "torch_dtype"];

impl Decoder {
    /// Writes `model.safetensors`, `config.json` and, if the model came with one, `generation_config.json` into a folder, which is
    /// created. transformers loads it. The configuration keeps its text, unless the dtype of the parameters is another one than it
    /// names: then that key changes. A list of shards that was there before is removed, because it lists other weights.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a model with adapters, which [`merge_lora`](Self::merge_lora) adds to the weights;
    /// [`Error::FileNotWritten`], and what happened on a device before.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        if self.lora().is_some() {
            let wanted = "Decoder::merge_lora before, or Decoder::save_lora for the adapters alone";
            return Err(Error::invalid("Decoder::save", "a model with adapters", wanted));
        }
        std::fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
        let state = self.state_dict();
        let tensors: Vec<(&str, &Tensor)> =
            state.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        Tensor::write_safetensors(folder.join("model.safetensors"), &tensors, &[("format", "pt")])?;
        let index = folder.join(INDEX);
        if index.exists() {
            std::fs::remove_file(&index).map_err(|error| not_written(&index, &error))?;
        }
        let config = self.config();
        if let Some(text) = &config.generation_json {
            write_file(folder.join("generation_config.json"), text.as_bytes())?;
        }
        write_file(folder.join("config.json"), with_dtype(&config.json, self.dtype())?.as_bytes())
    }
}

/// Returns the text of a configuration that names a dtype.
fn with_dtype(text: &str, dtype: DType) -> Result<String> {
    let name = dtype.numpy_name();
    let invalid = |error: serde_json::Error| Error::invalid("Decoder::save", error, "config.json");
    let mut value: Value = serde_json::from_str(text).map_err(invalid)?;
    let Some(key) = DTYPE_KEYS.into_iter().find(|&key| value.get(key).is_some_and(Value::is_string)) else {
        // transformers loads weights without the key as f32.
        if dtype == DType::F32 {
            return Ok(text.to_owned());
        }
        value["torch_dtype"] = Value::from(name);
        return serde_json::to_string_pretty(&value).map_err(invalid);
    };
    if value[key].as_str().is_some_and(|found| found.trim_start_matches("torch.") == name) {
        return Ok(text.to_owned());
    }
    value[key] = Value::from(name);
    serde_json::to_string_pretty(&value).map_err(invalid)
}

pub(super) fn not_written(path: &Path, error: &std::io::Error) -> Error {
    Error::FileNotWritten {
        path: path.display().to_string(),
        found: error.to_string(),
        wanted: "a folder that can be written".to_owned(),
    }
}
