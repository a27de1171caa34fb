//! Low-rank adapters of a [`Decoder`]'s linear layers (LoRA, Hu et al. 2021): y = x Wᵀ + x Aᵀ Bᵀ · alpha / rank, of which A
//! and B alone are trained. Names and shapes are peft's: A is (rank, inputs), B is (outputs, rank), also for GPT-2's weights
//! (inputs, outputs).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::DecoderConfig;
use super::load::weights_path;
use super::model::{Decoder, Weights};
use super::parameters::Projection;
use crate::error::{Error, Result};
use crate::io::safetensors::SafetensorsFile;
use crate::nn::layers::linear;
use crate::nn::precision::{in_compute_dtype, wide_dtype};
use crate::nn::training::hash_of;
use crate::nn::{Initializer, Variable};
use crate::tensor::Tensor;
use crate::types::DType;

const OPERATION: &str = "LoraOptions";

/// The low-rank adapters of a decoder.
///
/// ```
/// use selvedge::nn::{Decoder, DecoderConfig, Initializer, LoraOptions, Module};
/// use selvedge::Device;
/// let text = r#"{"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
///     "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_act": "silu", "max_position_embeddings": 16,
///     "rms_norm_eps": 1e-5}"#;
/// let mut model = Decoder::new(DecoderConfig::from_json(text, None)?, &Initializer::new(&Device::cpu()).with_seed(1))?;
/// model.add_lora(&LoraOptions::new(2), 1)?;
/// let names: Vec<String> = model.state_dict().into_keys().collect();
/// assert_eq!(names.len(), 4);
/// assert_eq!(names[0], "model.layers.0.self_attn.q_proj.lora_A.weight");
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoraOptions {
    /// The rank of each adapter's product.
    pub rank: usize,
    /// The adapters are multiplied by alpha / rank.
    pub alpha: f64,
    /// The layers with adapters, as peft's `target_modules`: whole names, or their ends, such as `q_proj`. `None` is the projections
    /// of queries and values, or the packed projection of a family that has one.
    pub layers: Option<Vec<String>>,
}

impl LoraOptions {
    /// Returns options of a rank, with an alpha of twice the rank.
    pub fn new(rank: usize) -> LoraOptions {
        LoraOptions { rank, alpha: 2.0 * rank as f64, layers: None }
    }

    /// Returns the factor of the adapters.
    pub fn scale(&self) -> f64 {
        self.alpha / self.rank as f64
    }

    /// Checks the options without a model.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a rank of 0, an alpha that is not finite, and an empty list or name of layers.
    pub fn check(&self) -> Result<()> {
        if self.rank == 0 {
            return Err(Error::invalid(OPERATION, "a rank of 0", "at least 1"));
        }
        if !self.alpha.is_finite() {
            return Err(Error::invalid(OPERATION, format!("alpha = {}", self.alpha), "a finite number"));
        }
        match &self.layers {
            Some(layers) if layers.is_empty() || layers.iter().any(String::is_empty) => {
                Err(Error::invalid(OPERATION, format!("layers {layers:?}"), "at least one name"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the names of layers, those of a configuration by default.
    pub(super) fn targets(&self, config: &DecoderConfig) -> Vec<String> {
        let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
        match (&self.layers, config.is_packed) {
            (Some(layers), _) => layers.clone(),
            (None, true) => vec![last(config.names.packed_projections)],
            (None, false) => vec![last(config.names.projections[0]), last(config.names.projections[2])],
        }
    }
}

/// The adapters of a model.
pub(super) struct Lora {
    pub options: LoraOptions,
    pub named: Vec<(String, Variable)>,
}

/// The factors of one layer's adapter.
pub(super) struct Adapter {
    /// (rank, inputs)
    a: Variable,
    /// (outputs, rank)
    b: Variable,
    scale: f64,
}

/// A source of A and B, by the name of a layer and the numbers of its inputs and outputs.
pub(super) type Factors<'a> = &'a mut dyn FnMut(&str, [usize; 2]) -> Result<[Variable; 2]>;

/// The ends of the names of an adapter's factors.
const ENDS: [&str; 2] = ["lora_A.weight", "lora_B.weight"];

impl Adapter {
    /// Returns the adapter's part of a layer's result, computed in a dtype.
    pub fn forward(&self, x: &Variable, dtype: DType) -> Result<Variable> {
        let factor = |factor: &Variable| in_compute_dtype(factor, Some(dtype))?.t();
        let low = (linear(x, &factor(&self.a)?, None)? * self.scale)?;
        linear(&low, &factor(&self.b)?, None)
    }

    /// Returns A and B.
    pub fn factors(&self) -> [&Variable; 2] {
        [&self.a, &self.b]
    }

    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns B A · scale, (outputs, inputs).
    fn product(&self, dtype: DType) -> Result<Tensor> {
        let [a, b] = [&self.a, &self.b].map(|factor| factor.tensor().cast(dtype));
        b?.matmul(&a?)? * self.scale
    }
}

/// Returns whether a layer is one that a target names, as peft compares them.
pub(super) fn is_target(layer: &str, target: &str) -> bool {
    layer.strip_suffix(target).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl Decoder {
    /// Adds adapters to layers: A uniform in ±1 / sqrt(inputs), as peft draws it, and B of zeros, so that the results stay. From then
    /// on the parameters of the model are the adapters, in f32 (f64 for weights of f64). The weights of the base have no gradient and
    /// are no part of [`state_dict`](crate::nn::Module::state_dict).
    ///
    /// # Errors
    ///
    /// As [`LoraOptions::check`]; [`Error::InvalidArgument`] for a name that no layer has, with those that exist, and for a model with
    /// adapters; [`Error::OutOfMemory`].
    pub fn add_lora(&mut self, options: &LoraOptions, seed: u64) -> Result<()> {
        let dtype = wide_dtype(self.dtype());
        let initializer = Initializer::new(&self.device()).with_seed(seed).with_dtype(dtype);
        let rank = options.rank;
        self.set_lora(options, &mut |_, [inputs, outputs]| {
            let a = initializer.uniform(1.0 / (inputs as f64).sqrt(), &[rank, inputs])?;
            Ok([a, initializer.zeros(&[outputs, rank])?])
        })
    }

    /// Adds adapters whose factors a function creates, of the name and the sizes of a layer.
    pub(super) fn set_lora(&mut self, options: &LoraOptions, factors: Factors<'_>) -> Result<()> {
        options.check()?;
        if let Some(lora) = &self.lora {
            let found = format!("a model with adapters of rank {}", lora.options.rank);
            let wanted = "a model without; Decoder::merge_lora adds them to the weights";
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        let targets = options.targets(self.config());
        let layers: Vec<&str> = self.weights.projections().map(Projection::name).collect();
        if let Some(missing) =
            targets.iter().find(|target| !layers.iter().any(|layer| is_target(layer, target)))
        {
            let mut ends: Vec<&str> = layers.iter().filter_map(|layer| layer.rsplit('.').next()).collect();
            ends.sort_unstable();
            ends.dedup();
            let found = format!("the layer '{missing}', which the model does not have");
            return Err(Error::invalid(OPERATION, found, ends.join(", ")));
        }
        let mut weights = self.rebuilt(&mut |_, tensor| Ok(Variable::new(tensor)))?;
        let mut named = Vec::new();
        for projection in weights.0.projections_mut() {
            let name = projection.name().to_owned();
            if !targets.iter().any(|target| is_target(&name, target)) {
                continue;
            }
            let [a, b] = factors(&name, projection.sizes())?;
            named.extend(ENDS.iter().zip([&a, &b]).map(|(end, x)| (format!("{name}.{end}"), x.clone())));
            projection.set_adapter(Adapter { a, b, scale: options.scale() });
        }
        (self.weights, self.named) = weights;
        self.lora = Some(Lora { options: options.clone(), named });
        Ok(())
    }

    /// Returns the options of the adapters, if there are some.
    pub fn lora(&self) -> Option<&LoraOptions> {
        self.lora.as_ref().map(|lora| &lora.options)
    }

    /// Adds the adapters to the weights, rounded once, and removes them. The weights are the parameters again. Without adapters nothing
    /// changes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; the model stays as it was.
    pub fn merge_lora(&mut self) -> Result<()> {
        if self.lora.is_none() {
            return Ok(());
        }
        let dtype = self.dtype();
        let wide = wide_dtype(dtype);
        let mut merged: BTreeMap<String, Tensor> = BTreeMap::new();
        for projection in self.weights.projections() {
            let Some(adapter) = projection.adapter() else { continue };
            let product = adapter.product(wide)?;
            let product = if projection.is_input_major() { product.transpose(0, 1)? } else { product };
            let sum = (projection.weight().tensor().cast(wide)? + product)?;
            merged.insert(format!("{}.weight", projection.name()), sum.cast(dtype)?);
        }
        (self.weights, self.named) =
            self.rebuilt(&mut |name, tensor| Variable::with_grad(merged.remove(name).unwrap_or(tensor)))?;
        self.lora = None;
        Ok(())
    }

    /// Returns the layers of variables that a function creates of the weights.
    fn rebuilt(
        &self,
        variable: &mut dyn FnMut(&str, Tensor) -> Result<Variable>,
    ) -> Result<(Weights, Vec<(String, Variable)>)> {
        let mut named = Vec::with_capacity(self.named.len());
        let mut old = self.named.iter();
        let weights = Weights::new(self.config(), self.compute_dtype(), &mut |wanted| {
            // Both lists have the order of the configuration.
            let Some((name, weight)) = old.next().filter(|(name, _)| *name == wanted.name) else {
                return Err(Error::invalid(OPERATION, format!("no '{}'", wanted.name), "each weight"));
            };
            let variable = variable(name, weight.tensor())?;
            named.push((name.clone(), variable.clone()));
            Ok(variable)
        })?;
        Ok((weights, named))
    }

    /// Returns the SHA-256 of the weights of a folder, in hexadecimal digits: adapters belong to these weights alone.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a folder without weights, and for a file that cannot be read.
    pub fn hash_of_weights(folder: impl AsRef<Path>) -> Result<String> {
        let file = SafetensorsFile::open(weights_path(folder.as_ref())?)?;
        let mut hash = Sha256::new();
        for path in file.files() {
            hash.update(hash_of(Path::new(path))?);
        }
        Ok(format!("{:x}", hash.finalize()))
    }
}
