//! The model of a run: GPT-2's form with new weights, or a decoder that begins from a published folder.

use std::collections::BTreeMap;
use std::path::Path;

use selvedge::nn::{
    Batch, Decoder, DecoderConfig, DecoderGeneration, DecoderOptions, Generation, GenerationOptions, Gpt,
    GptConfig, Initializer, LanguageModel, LoraOptions, Module, Recompute, Sampler, SamplerOptions, Variable,
};
use selvedge::tensor::Generator;
use selvedge::{DType, Device, Error, Tensor};
use serde_json::Value;

use super::settings::Stored;

/// The configuration of a run's model.
#[derive(Debug, Clone)]
pub enum ModelConfig {
    Gpt(GptConfig),
    Decoder(Box<DecoderForm>),
}

/// The configuration of a decoder and of its training.
#[derive(Debug, Clone)]
pub struct DecoderForm {
    pub config: DecoderConfig,
    pub compute_dtype: Option<DType>,
    /// The adapters that the run trains in place of the weights.
    pub lora: Option<LoraOptions>,
}

impl ModelConfig {
    /// Returns the configuration of a published folder.
    pub fn of_folder(folder: &Path) -> Result<ModelConfig, Error> {
        let config = DecoderConfig::load(folder)?;
        Ok(ModelConfig::Decoder(Box::new(DecoderForm { config, compute_dtype: None, lora: None })))
    }

    /// Returns the configuration of a checkpoint.
    pub fn of_checkpoint(json: &Value) -> Result<ModelConfig, Error> {
        if json.get("config").is_none() {
            return GptConfig::from_json(&json.to_string()).map(ModelConfig::Gpt);
        }
        let (config, compute_dtype) = DecoderConfig::from_checkpoint(json)?;
        let lora = DecoderConfig::lora_of_checkpoint(json)?;
        Ok(ModelConfig::Decoder(Box::new(DecoderForm { config, compute_dtype, lora })))
    }

    /// Returns the configuration as checkpoints have it.
    pub fn to_json(&self) -> Value {
        match self {
            ModelConfig::Gpt(config) => config.to_json(),
            ModelConfig::Decoder(form) => {
                let mut json = form.config.to_checkpoint(form.compute_dtype);
                if let Some(lora) = &form.lora {
                    json["lora"] = serde_json::json!(lora);
                }
                json
            }
        }
    }

    /// Returns the adapters, if the run trains some.
    pub fn lora(&self) -> Option<&LoraOptions> {
        match self {
            ModelConfig::Gpt(_) => None,
            ModelConfig::Decoder(form) => form.lora.as_ref(),
        }
    }

    pub fn vocab_size(&self) -> usize {
        match self {
            ModelConfig::Gpt(config) => config.vocab_size,
            ModelConfig::Decoder(form) => form.config.vocab_size(),
        }
    }

    pub fn context(&self) -> usize {
        match self {
            ModelConfig::Gpt(config) => config.context,
            ModelConfig::Decoder(form) => form.config.context(),
        }
    }

    pub fn width(&self) -> usize {
        match self {
            ModelConfig::Gpt(config) => config.width,
            ModelConfig::Decoder(form) => form.config.width(),
        }
    }

    /// Returns the numbers of layers and heads.
    pub fn layers_and_heads(&self) -> (usize, usize) {
        match self {
            ModelConfig::Gpt(config) => (config.layers, config.heads),
            ModelConfig::Decoder(form) => (form.config.layers(), form.config.heads()),
        }
    }

    pub fn parameter_count(&self) -> usize {
        match self {
            ModelConfig::Gpt(config) => config.parameter_count(),
            ModelConfig::Decoder(form) => form.config.parameter_count(),
        }
    }

    pub fn compute_dtype(&self) -> Option<DType> {
        match self {
            ModelConfig::Gpt(config) => config.compute_dtype,
            ModelConfig::Decoder(form) => form.compute_dtype,
        }
    }

    pub fn set_compute_dtype(&mut self, dtype: Option<DType>) {
        match self {
            ModelConfig::Gpt(config) => config.compute_dtype = dtype,
            ModelConfig::Decoder(form) => form.compute_dtype = dtype,
        }
    }

    /// Creates the model of a run. A decoder has the weights of the folder, if there is one, and new ones otherwise.
    pub fn new_model(&self, folder: Option<&Path>, seed: u64, device: &Device) -> Result<RunModel, Error> {
        match (self, folder) {
            (ModelConfig::Gpt(config), _) => Gpt::from_seed(*config, seed, device).map(RunModel::of_gpt),
            (ModelConfig::Decoder(form), Some(folder)) => {
                // The optimizer adds small changes up, which 16 bits would lose. Weights under adapters do not change.
                let narrow = form.compute_dtype.filter(|_| form.lora.is_some());
                form.load(folder, narrow.unwrap_or(DType::F32), seed, device).map(RunModel::of_decoder)
            }
            (ModelConfig::Decoder(form), None) => form.with_new_weights(device).map(RunModel::of_decoder),
        }
    }

    /// Creates the model of a checkpoint's parameters, which are adapters of the folder's weights or all that the model has.
    pub fn trained_model(
        &self,
        parameters: &BTreeMap<String, Tensor>,
        folder: Option<&Path>,
        device: &Device,
    ) -> Result<RunModel, Error> {
        match self {
            ModelConfig::Gpt(config) => {
                Gpt::from_state_dict(*config, parameters, device).map(RunModel::of_gpt)
            }
            ModelConfig::Decoder(form) if form.lora.is_some() => {
                let mut model = self.new_model(folder, 0, device)?;
                model.load_state_dict(parameters)?;
                Ok(model)
            }
            ModelConfig::Decoder(_) => {
                Decoder::from_checkpoint(&self.to_json(), parameters, device).map(RunModel::of_decoder)
            }
        }
    }
}

impl DecoderForm {
    /// Loads the weights of a folder in a dtype, with new adapters if the run has some.
    pub fn load(&self, folder: &Path, dtype: DType, seed: u64, device: &Device) -> Result<Decoder, Error> {
        let options = DecoderOptions { dtype: Some(dtype), compute_dtype: self.compute_dtype };
        let mut model = Decoder::load(folder, device, &options)?;
        if let Some(lora) = &self.lora {
            model.add_lora(lora, seed)?;
        }
        Ok(model)
    }

    /// Creates a model whose weights those of a checkpoint replace.
    fn with_new_weights(&self, device: &Device) -> Result<Decoder, Error> {
        let initializer = Initializer::new(device).with_seed(0);
        let initializer = match self.compute_dtype {
            Some(dtype) => initializer.with_compute_dtype(dtype),
            None => initializer,
        };
        Decoder::new(self.config.clone(), &initializer)
    }
}

/// Checks that the weights under a run's adapters are those that it began with.
pub fn check_base(config: &ModelConfig, stored: &Stored) -> Result<(), Error> {
    let (Some(_), Some(folder), Some(wanted)) = (config.lora(), &stored.model, &stored.model_hash) else {
        return Ok(());
    };
    let found = Decoder::hash_of_weights(folder)?;
    match found == *wanted {
        true => Ok(()),
        false => Err(Error::File {
            path: folder.display().to_string(),
            found: format!("weights with the hash {found}"),
            wanted: format!("{wanted}, the base of the run's adapters"),
        }),
    }
}

/// The model of a run.
pub enum RunModel {
    Gpt(Box<Gpt>),
    Decoder(Box<Decoder>),
}

/// New ids, one after another.
type Ids<'m> = Box<dyn Iterator<Item = Result<u32, Error>> + 'm>;

impl RunModel {
    fn of_gpt(model: Gpt) -> RunModel {
        RunModel::Gpt(Box::new(model))
    }

    fn of_decoder(model: Decoder) -> RunModel {
        RunModel::Decoder(Box::new(model))
    }

    fn inner(&self) -> &dyn LanguageModel {
        match self {
            RunModel::Gpt(model) => &**model,
            RunModel::Decoder(model) => &**model,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn LanguageModel {
        match self {
            RunModel::Gpt(model) => &mut **model,
            RunModel::Decoder(model) => &mut **model,
        }
    }

    /// Returns the ids that continue a prompt, at most `length`. GPT-2's form goes on past `context`, its training's. A decoder ends
    /// at the end of its own, and before an id that ends a text.
    pub fn continued(
        &self,
        prompt: &[u32],
        (sampler, seed): (SamplerOptions, u64),
        context: usize,
        length: u64,
    ) -> Result<Ids<'_>, Error> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let model = match self {
            RunModel::Gpt(model) => {
                let generation = Generation::new(model, prompt, Sampler::new(sampler, seed)?)?;
                return Ok(Box::new(generation.with_context(context)?.take(length)));
            }
            RunModel::Decoder(model) => model,
        };
        let context = model.config().context();
        if prompt.len() > context {
            return Err(Error::InvalidArgument {
                operation: "generate",
                found: format!("a prompt of {} ids", prompt.len()),
                wanted: format!("at most {context}, the context of the model"),
            });
        }
        // The last new id is not read.
        let max_new_ids = length.min(context - prompt.len() + 1);
        let options = GenerationOptions { max_new_ids, sampler, seed, ..GenerationOptions::default() };
        let generation = DecoderGeneration::new(model, &[prompt], &options)?;
        let end_ids = model.config().end_ids();
        let ids = generation.filter_map(|step| step.map(|ids| ids.into_iter().flatten().next()).transpose());
        Ok(Box::new(ids.take_while(|id| !id.as_ref().is_ok_and(|id| end_ids.contains(id)))))
    }
}

impl Module for RunModel {
    fn forward(&self, input: &Variable) -> Result<Variable, Error> {
        self.inner().forward(input)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        self.inner().named_parameters()
    }

    fn named_buffers(&self) -> Vec<(String, Variable)> {
        self.inner().named_buffers()
    }

    fn set_training(&mut self, is_training: bool) {
        self.inner_mut().set_training(is_training);
    }

    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<(), Error> {
        self.inner_mut().load_state_dict(entries)
    }
}

impl LanguageModel for RunModel {
    fn loss(&self, batch: &Batch) -> Result<Variable, Error> {
        self.inner().loss(batch)
    }

    fn vocab_size(&self) -> usize {
        self.inner().vocab_size()
    }

    fn context(&self) -> usize {
        self.inner().context()
    }

    fn to_json(&self) -> Value {
        self.inner().to_json()
    }

    fn generator(&self) -> Option<Generator> {
        self.inner().generator()
    }

    fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable, Error> {
        self.inner().loss_with_recompute(batch, recompute)
    }
}
