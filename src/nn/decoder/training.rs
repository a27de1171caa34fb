//! The loss of a [`Decoder`], and its configuration in checkpoints.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::DECODER;
use super::config::DecoderConfig;
use super::model::Decoder;
use super::parameters::specifications;
use crate::error::{Error, Result};
use crate::nn::module::check_entries;
use crate::nn::precision::{in_compute_dtype, wide_dtype};
use crate::nn::{
    Batch, CrossEntropyOptions, LoraOptions, Recompute, Variable, cross_entropy, linear_cross_entropy,
};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

impl Decoder {
    /// Returns the mean cross-entropy of a batch in nats an id, in f32 for a model that computes in 16 bits. The logits are computed
    /// for some rows at a time ([`linear_cross_entropy`]), those of a model with a soft cap all at once.
    ///
    /// # Errors
    ///
    /// As [`forward_padded`](Self::forward_padded) and [`cross_entropy`].
    pub fn loss(&self, batch: &Batch) -> Result<Variable> {
        self.loss_with_recompute(batch, Recompute::Nothing)
    }

    /// Returns the [`loss`](Self::loss), with a backward that computes some activations again.
    ///
    /// # Errors
    ///
    /// As [`loss`](Self::loss).
    pub fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable> {
        let (x, options) = (self.last_hidden(&batch.inputs, &[], recompute)?, CrossEntropyOptions::default());
        if self.config().logit_cap.is_none() {
            let (x, head) = self.head_operands(&x)?;
            return linear_cross_entropy(&x, &head, &batch.targets, options);
        }
        let rows = self.logits(&x)?.reshape(&[-1, self.config().vocab_size as isize])?;
        let rows = in_compute_dtype(&rows, Some(wide_dtype(rows.dtype())))?;
        cross_entropy(&rows, &batch.targets.reshape(&[-1])?, options)
    }

    /// Returns the configuration as checkpoints store it: `config` and `generation_config` of the folder, `compute_dtype` if it is
    /// another one than that of the parameters, and `lora`, the [`LoraOptions`] of a model with adapters. [`from_checkpoint`](Self::from_checkpoint) reads it.
    pub fn to_json(&self) -> Value {
        let mut json = self.config().to_checkpoint(self.compute_dtype());
        if let Some(options) = self.lora() {
            json["lora"] = serde_json::json!(options);
        }
        json
    }

    /// Creates the model of a checkpoint, from its [`CheckpointInfo::model`](crate::nn::CheckpointInfo::model) and its parameters.
    ///
    /// # Errors
    ///
    /// As [`DecoderConfig::from_checkpoint`]; one [`Error::InvalidArgument`] that names every missing, extra and wrongly shaped
    /// parameter; [`Error::OutOfMemory`].
    pub fn from_checkpoint(
        model: &Value,
        parameters: &BTreeMap<String, Tensor>,
        device: &Device,
    ) -> Result<Decoder> {
        if model.get("lora").is_some() {
            let found = "a checkpoint of adapters, which has no weights";
            let wanted = "the base of Decoder::load with Decoder::add_lora, and load_state_dict";
            return Err(Error::invalid(DECODER, found, wanted));
        }
        let (config, compute_dtype) = DecoderConfig::from_checkpoint(model)?;
        let wanted = specifications(&config).into_iter().map(|wanted| (wanted.name, wanted.shape));
        check_entries(wanted, parameters)?;
        Decoder::from_source(config, compute_dtype, &mut |wanted| match parameters.get(&wanted.name) {
            Some(found) => Variable::with_grad(found.to(device)?),
            None => Err(Error::invalid(DECODER, format!("no '{}'", wanted.name), "each parameter")),
        })
    }
}

impl DecoderConfig {
    /// Returns the text of generation_config.json, if there was one.
    pub fn generation_json(&self) -> Option<&str> {
        self.generation_json.as_deref()
    }

    /// Returns the configuration and the dtype to compute in, if it is another one than that of the parameters, as checkpoints
    /// store them.
    pub fn to_checkpoint(&self, compute_dtype: Option<DType>) -> Value {
        // The texts were parsed when the configuration was read.
        let parsed = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
        let mut json = Map::new();
        json.insert("config".to_owned(), parsed(self.json()));
        if let Some(text) = self.generation_json() {
            json.insert("generation_config".to_owned(), parsed(text));
        }
        if let Some(dtype) = compute_dtype {
            json.insert("compute_dtype".to_owned(), dtype.name().into());
        }
        Value::Object(json)
    }

    /// Returns the options of the adapters of a [`CheckpointInfo::model`](crate::nn::CheckpointInfo::model), if it has some.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for options that cannot be read, and as [`LoraOptions::check`].
    pub fn lora_of_checkpoint(model: &Value) -> Result<Option<LoraOptions>> {
        let Some(json) = model.get("lora") else { return Ok(None) };
        let options: LoraOptions = serde_json::from_value(json.clone())
            .map_err(|error| Error::invalid("DecoderConfig::lora_of_checkpoint", error, "LoraOptions"))?;
        options.check().map(|()| Some(options))
    }

    /// Reads the configuration and the dtype to compute in of a [`CheckpointInfo::model`](crate::nn::CheckpointInfo::model). The
    /// dtype is none if it is that of the parameters.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for the configuration of another kind of model, and as [`from_json`](Self::from_json).
    pub fn from_checkpoint(model: &Value) -> Result<(DecoderConfig, Option<DType>)> {
        const OPERATION: &str = "DecoderConfig::from_checkpoint";
        let text = |key: &str| {
            let pretty = model.get(key).map(serde_json::to_string_pretty).transpose();
            pretty.map_err(|error| Error::invalid(OPERATION, error, "JSON"))
        };
        let Some(config) = text("config")? else {
            let wanted = "that of a decoder, with the key 'config'";
            return Err(Error::invalid(OPERATION, "the configuration of another model", wanted));
        };
        let dtype = match model.get("compute_dtype") {
            None => None,
            Some(name) => Some(name.as_str().unwrap_or_default().parse()?),
        };
        Ok((DecoderConfig::from_json(&config, text("generation_config")?.as_deref())?, dtype))
    }
}
