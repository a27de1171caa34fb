//! [`Decoder::save_lora`] and [`Decoder::load_lora`]: adapters in peft's files.
//!
//! | file | contents |
//! |---|---|
//! | `adapter_model.safetensors` | `base_model.model.NAME.lora_A.weight` and `lora_B.weight` for each layer |
//! | `adapter_config.json` | rank, alpha, the names of layers, and options that must have their defaults |

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::lora::{LoraOptions, is_target};
use super::model::Decoder;
use super::parameters::Projection;
use super::save::not_written;
use crate::error::{Error, Result};
use crate::io::npy::file_error;
use crate::io::write_file;
use crate::nn::Variable;
use crate::nn::precision::wide_dtype;
use crate::tensor::{Device, Tensor};

const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";
/// The first part of peft's names.
const PREFIX: &str = "base_model.model.";

/// Options of peft that change the computation, with the values that are supported: those of a plain adapter.
fn supported() -> [(&'static str, Vec<Value>); 9] {
    let off = || vec![json!(false), Value::Null];
    let none = || vec![Value::Null, json!([]), json!({})];
    [
        ("peft_type", vec![json!("LORA")]),
        ("bias", vec![json!("none"), Value::Null]),
        ("use_dora", off()),
        ("use_rslora", off()),
        ("lora_bias", off()),
        ("modules_to_save", none()),
        ("rank_pattern", none()),
        ("alpha_pattern", none()),
        ("trainable_token_indices", none()),
    ]
}

impl Decoder {
    /// Writes the adapters into a folder, which is created, as peft does: `adapter_model.safetensors` and `adapter_config.json`.
    /// `base` is the name of the base model there, such as its folder.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a model without adapters; [`Error::FileNotWritten`].
    pub fn save_lora(&self, folder: impl AsRef<Path>, base: &str) -> Result<()> {
        let folder = folder.as_ref();
        let Some(lora) = &self.lora else {
            let wanted = "a model with adapters, of Decoder::add_lora or load_lora";
            return Err(Error::invalid("Decoder::save_lora", "a model without adapters", wanted));
        };
        std::fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
        let named: BTreeMap<String, Tensor> =
            lora.named.iter().map(|(name, x)| (format!("{PREFIX}{name}"), x.tensor())).collect();
        let named: Vec<(&str, &Tensor)> =
            named.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        Tensor::write_safetensors(folder.join(WEIGHTS), &named, &[("format", "pt")])?;
        let options = &lora.options;
        let alpha = match options.alpha.fract() == 0.0 && options.alpha.abs() < 1e15 {
            true => json!(options.alpha as i64),
            false => json!(options.alpha),
        };
        let config = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base,
            "r": options.rank,
            "lora_alpha": alpha,
            "lora_dropout": 0.0,
            "target_modules": options.targets(self.config()),
            "fan_in_fan_out": self.config().is_input_major,
            "bias": "none",
            "modules_to_save": null,
            "init_lora_weights": true,
            "inference_mode": true,
            "use_dora": false,
            "use_rslora": false,
            "rank_pattern": {},
            "alpha_pattern": {},
            "layers_to_transform": null,
            "layers_pattern": null,
            "revision": null,
        });
        let text = serde_json::to_string_pretty(&config)
            .map_err(|error| Error::invalid("Decoder::save_lora", error, "a configuration"))?;
        write_file(folder.join(CONFIG), text.as_bytes())
    }

    /// Adds the adapters of a folder that peft or [`save_lora`](Self::save_lora) wrote, for training, for
    /// [`merge_lora`](Self::merge_lora), or to compute with them apart.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a file that is missing or damaged, for an option that is not supported, and one error that names every
    /// tensor that the model has no layer for or that has another shape; as [`add_lora`](Self::add_lora).
    pub fn load_lora(&mut self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let (rank, alpha, targets) = read_config(&folder.join(CONFIG))?;
        let path = folder.join(WEIGHTS);
        let refused =
            |found: String, wanted: &str| Err(file_error(&path.display().to_string(), found, wanted));
        if !path.exists() {
            return refused("no such file".to_owned(), "the adapters that adapter_config.json describes");
        }
        let mut stored: BTreeMap<String, Tensor> = BTreeMap::new();
        for (name, tensor) in Tensor::read_safetensors(&path, &Device::cpu())? {
            let name = name.strip_prefix(PREFIX).unwrap_or(&name);
            let prefix = self.config().names.prefix;
            let full = if name.starts_with(prefix) { name.to_owned() } else { format!("{prefix}{name}") };
            stored.insert(full, tensor);
        }
        let (mut layers, mut faults) = (Vec::new(), Vec::new());
        let mut left: Vec<&String> = stored.keys().collect();
        for (layer, [inputs, outputs]) in
            self.weights.projections().map(|found| (found.name(), found.sizes()))
        {
            let shapes = [("lora_A", [rank, inputs]), ("lora_B", [outputs, rank])];
            let named = shapes.map(|(end, shape)| (format!("{layer}.{end}.weight"), shape));
            if !named.iter().any(|(name, _)| stored.contains_key(name)) {
                continue;
            }
            for (name, shape) in named {
                left.retain(|other| **other != name);
                match stored.get(&name) {
                    None => faults.push(format!("'{name}' is missing")),
                    Some(found) if found.shape()[..] != shape => {
                        faults.push(format!("'{name}' has shape {} in place of {shape:?}", found.shape()));
                    }
                    Some(found) if !found.dtype().is_float() => {
                        faults.push(format!("'{name}' has dtype {}", found.dtype()));
                    }
                    Some(_) => {}
                }
            }
            layers.push(layer.to_owned());
        }
        faults.extend(left.iter().map(|name| format!("'{name}' is of no layer")));
        if layers.is_empty() && faults.is_empty() {
            faults.push("no adapters".to_owned());
        }
        if !faults.is_empty() {
            return refused(faults.join(", "), "the factors of the model's linear layers");
        }
        // A list that names other layers too, such as an expression, gives way to the layers that the file has.
        let names = self.weights.projections().map(Projection::name);
        let listed: Vec<&str> =
            names.filter(|name| targets.iter().flatten().any(|target| is_target(name, target))).collect();
        let targets = targets.filter(|targets| !targets.is_empty() && listed == layers);
        let options = LoraOptions { rank, alpha, layers: Some(targets.unwrap_or_else(|| layers.clone())) };
        let (device, dtype) = (self.device(), wide_dtype(self.dtype()));
        self.set_lora(&options, &mut |layer, _| {
            let factor = |end: &str| match stored.get(&format!("{layer}.{end}.weight")) {
                Some(tensor) => Variable::with_grad(tensor.to(&device)?.cast(dtype)?),
                None => Err(Error::invalid("Decoder::load_lora", format!("no adapter of {layer}"), "one")),
            };
            Ok([factor("lora_A")?, factor("lora_B")?])
        })
    }
}

/// Reads rank, alpha and the names of layers, if they are a list.
fn read_config(path: &Path) -> Result<(usize, f64, Option<Vec<String>>)> {
    let name = path.display().to_string();
    let refused = |found: String, wanted: String| file_error(&name, found, wanted);
    let text = std::fs::read_to_string(path).map_err(|error| {
        refused(error.to_string(), "the adapter_config.json of an adapter's folder".to_owned())
    })?;
    let config: Value = serde_json::from_str(&text)
        .map_err(|error| refused(format!("damaged JSON: {error}"), "an object".to_owned()))?;
    for (key, values) in supported() {
        let found = config.get(key).unwrap_or(&Value::Null);
        // A missing type is none of LoRA's.
        if !values.contains(found) {
            return Err(refused(format!("{key} = {found}"), format!("{key} = {}", values[0])));
        }
    }
    let rank = config["r"].as_u64().filter(|&rank| rank > 0).and_then(|rank| usize::try_from(rank).ok());
    let Some(rank) = rank else {
        return Err(refused(format!("r = {}", config["r"]), "a rank of at least 1".to_owned()));
    };
    let Some(alpha) = config["lora_alpha"].as_f64() else {
        return Err(refused(format!("lora_alpha = {}", config["lora_alpha"]), "a number".to_owned()));
    };
    let targets = config["target_modules"].as_array();
    let targets =
        targets.and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
    Ok((rank, alpha, targets))
}
