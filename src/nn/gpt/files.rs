//! [`Gpt::save`] and [`Gpt::load`]: a model in a folder, `config.json` and `model.safetensors`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::config::GptConfig;
use super::model::Gpt;
use crate::error::{Error, Result};
use crate::io::npy::file_error;
use crate::io::{new_file, write_file};
use crate::nn::Module;
use crate::nn::limited_file::read_limited;
use crate::tensor::{Device, Tensor};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
/// The most bytes of a configuration.
const MAX_CONFIG: u64 = 1 << 20;

impl Gpt {
    /// Writes `config.json` and `model.safetensors` into a folder, which is created. [`load`](Self::load) reads it, and so does
    /// transformers if the model has the form of GPT-2: products with biases and a tied head.
    ///
    /// ```
    /// use selvedge::nn::{Gpt, GptConfig, Module};
    /// use selvedge::Device;
    /// # let folder = std::env::temp_dir().join(format!("selvedge-doc-gpt-{}", std::process::id()));
    /// let config = GptConfig { layers: 1, width: 8, heads: 2, context: 4, ..GptConfig::tiny(11) };
    /// let model = Gpt::from_seed(config, 1, &Device::cpu())?;
    /// model.save(&folder)?;
    /// let again = Gpt::load(&folder, &Device::cpu())?;
    /// assert_eq!(again.config(), model.config());
    /// assert!(model.state_dict().iter().all(|(name, tensor)| tensor.equal(&again.state_dict()[name]).unwrap_or(false)));
    /// # let _ = std::fs::remove_dir_all(&folder);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`], and what happened on a device before.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder)
            .map_err(|error| new_file::write_error(folder, &error, "a folder that can be written"))?;
        let state = self.state_dict();
        let tensors: Vec<(&str, &Tensor)> =
            state.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        Tensor::write_safetensors(folder.join(WEIGHTS), &tensors, &[("format", "pt")])?;
        let config = self.config();
        let mut json = config.to_json();
        for (key, value) in [
            ("model_type", Value::from("gpt2")),
            ("architectures", Value::from(vec!["GPT2LMHeadModel"])),
            ("embd_pdrop", Value::from(config.dropout)),
            ("attn_pdrop", Value::from(config.dropout)),
            ("torch_dtype", Value::from(self.dtype().numpy_name())),
        ] {
            json[key] = value;
        }
        let text = serde_json::to_string_pretty(&json)
            .map_err(|error| Error::invalid("Gpt::save", error, "a configuration that JSON can hold"))?;
        write_file(folder.join(CONFIG), text.as_bytes())
    }

    /// Loads the model of a folder that [`save`](Self::save) wrote, or a folder of GPT-2 as Hugging Face publishes it in one file. The
    /// parameters have the dtype of the stored token embedding.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a file that is missing or damaged; as [`GptConfig::from_json`] and
    /// [`from_state_dict`](Self::from_state_dict).
    pub fn load(folder: impl AsRef<Path>, device: &Device) -> Result<Gpt> {
        const KIND: &str = "configuration";
        let path = folder.as_ref().join(CONFIG);
        let name = path.display().to_string();
        let text = String::from_utf8(read_limited(&path, KIND, MAX_CONFIG)?)
            .map_err(|error| file_error(&name, error, "a file of UTF-8 text"))?;
        let config =
            GptConfig::from_json(&text).map_err(|error| file_error(&name, error, "that of a Gpt"))?;
        let parameters: BTreeMap<String, Tensor> =
            Tensor::read_safetensors(folder.as_ref().join(WEIGHTS), device)?.into_iter().collect();
        Gpt::from_state_dict(config, &parameters, device)
    }
}
