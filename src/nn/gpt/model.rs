//! [`Gpt`], the model.

use std::collections::BTreeMap;

use super::cache::KeyValueCache;
use super::config::GptConfig;
use crate::error::{Error, Result};
use crate::nn::layers::linear;
use crate::nn::module::prefixed;
use crate::nn::precision::{in_compute_dtype, wide_dtype};
use crate::nn::{
    Activation, Batch, CrossEntropyOptions, Dropout, Embedding, FeedForward, FeedForwardOptions, Gelu,
    GeluTanh, Initializer, LayerNorm, Module, MultiHeadAttention, MultiHeadAttentionOptions, Recompute, Relu,
    Silu, TransformerBlock, Variable, WeightDistribution, cross_entropy, linear_cross_entropy,
};
use crate::tensor::{Device, Generator, Padding, Tensor};
use crate::types::DType;

const NAME: &str = "Gpt";
/// The deviation of weights in a new model.
const DEVIATION: f64 = 0.02;
/// The vocabulary, in widths of the model, from which logits take so much more memory than their operands that a loss computes them in chunks.
const LARGE_VOCABULARY: usize = 4;
/// Added to a seed for draws of dropout.
pub(in crate::nn) const DROPOUT: u64 = 1 << 32;
/// The first part of the names that Hugging Face gives to all but the head.
const PREFIX: &str = "transformer.";

/// A decoder-only transformer. [`forward`](Module::forward) takes ids (batch, length) and returns logits (batch, length,
/// vocabulary).
///
/// New weights are normally distributed with deviation 0.02, those of products before a residual with
/// 0.02 / sqrt(2 layers), as in the GPT-2 paper. Parameters have the names of Hugging Face's GPT-2, so a model's safetensors
/// load there and theirs load here.
///
/// ```
/// use selvedge::nn::{Gpt, GptConfig, Initializer, Module, Variable};
/// use selvedge::{Device, Tensor};
/// let device = Device::cpu();
/// let config = GptConfig { layers: 1, width: 8, heads: 2, context: 4, ..GptConfig::tiny(11) };
/// let model = Gpt::new(config, &Initializer::new(&device).with_seed(1))?;
/// let ids = Variable::new(Tensor::new([[1i64, 2, 3], [4, 5, 10]], &device)?);
/// assert_eq!(model.forward(&ids)?.shape()[..], [2, 3, 11]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct Gpt {
    pub(super) config: GptConfig,
    pub(super) wte: Embedding,
    pub(super) wpe: Embedding,
    pub(super) dropout: Option<Dropout>,
    pub(super) blocks: Vec<TransformerBlock>,
    pub(super) ln_f: LayerNorm,
    /// None if the token embedding is the head.
    pub(super) lm_head: Option<Variable>,
}

impl Gpt {
    /// Creates a model with new weights, whose dropout draws from the initializer's generator.
    ///
    /// # Errors
    ///
    /// As [`GptConfig::check`], and errors of memory.
    pub fn new(config: GptConfig, initializer: &Initializer) -> Result<Gpt> {
        Gpt::with_dropout_generator(config, initializer, initializer.generator())
    }

    /// Creates a model with new weights, whose dropout draws from `dropout`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_dropout_generator(
        config: GptConfig,
        initializer: &Initializer,
        dropout: &Generator,
    ) -> Result<Gpt> {
        config.check()?;
        let residual = DEVIATION / (2.0 * config.layers as f64).sqrt();
        let initializer = initializer
            .clone()
            .with_weights(WeightDistribution::Normal { deviation: DEVIATION })
            .with_residual_weights(WeightDistribution::Normal { deviation: residual });
        let initializer = match config.compute_dtype {
            Some(dtype) => initializer.with_compute_dtype(dtype),
            None => initializer,
        };
        let GptConfig { vocab_size, context, width, .. } = config;
        let (wte, wpe) =
            (Embedding::new(vocab_size, width, &initializer)?, Embedding::new(context, width, &initializer)?);
        let blocks =
            (0..config.layers).map(|_| block(&config, &initializer, dropout)).collect::<Result<_>>()?;
        let lm_head = match config.has_tied_head {
            true => None,
            false => Some(initializer.normal(DEVIATION, &[vocab_size, width])?),
        };
        Ok(Gpt {
            config,
            wte,
            wpe,
            dropout: match config.dropout > 0.0 {
                true => Some(Dropout::new(config.dropout, dropout)?),
                false => None,
            },
            blocks,
            ln_f: LayerNorm::new(&[width], &initializer)?.with_eps(config.norm_eps)?,
            lm_head,
        })
    }

    /// Creates a model with the weights of a seed, whose dropout draws from another generator of the seed:
    /// [`Trainer`](crate::nn::Trainer)'s new models.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_seed(config: GptConfig, seed: u64, device: &Device) -> Result<Gpt> {
        let dropout = Generator::new(seed.wrapping_add(DROPOUT));
        Gpt::with_dropout_generator(config, &Initializer::new(device).with_seed(seed), &dropout)
    }

    /// Creates a model of the parameters of a [`state_dict`](Module::state_dict), such as that of a
    /// [`Checkpoint`](crate::nn::Checkpoint), whose token embedding has the dtype of the model. A configuration of more parameters
    /// than there are is refused before it takes memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for too few parameters, as [`new`](Self::new), and as
    /// [`load_state_dict`](Module::load_state_dict).
    pub fn from_state_dict(
        config: GptConfig,
        parameters: &BTreeMap<String, Tensor>,
        device: &Device,
    ) -> Result<Gpt> {
        config.check()?;
        let found = parameters.values().fold(0usize, |sum, tensor| sum.saturating_add(tensor.count()));
        let wanted = config.parameter_count();
        if wanted > found {
            let found = format!("{found} parameters for a configuration of {wanted}");
            return Err(Error::invalid(
                "Gpt::from_state_dict",
                found,
                "the configuration of these parameters",
            ));
        }
        let embedding =
            ["transformer.wte.weight", "wte.weight"].iter().find_map(|name| parameters.get(*name));
        let dtype = embedding.map(Tensor::dtype).filter(|dtype| dtype.is_float()).unwrap_or(DType::F32);
        let mut model = Gpt::new(config, &Initializer::new(device).with_seed(0).with_dtype(dtype))?;
        model.load_state_dict(parameters)?;
        Ok(model)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &GptConfig {
        &self.config
    }

    /// Returns the device of the parameters.
    pub fn device(&self) -> Device {
        self.wte.weight().device()
    }

    /// Returns the dtype of the parameters.
    pub fn dtype(&self) -> DType {
        self.wte.weight().dtype()
    }

    /// Returns the generator of the dropout, or none for a model that drops nothing.
    pub(in crate::nn) fn generator(&self) -> Option<&Generator> {
        self.dropout.as_ref().map(Dropout::generator)
    }

    /// Returns the mean cross-entropy of a batch in nats an id, in f32 for logits of bf16. The logits of a large vocabulary are computed for some
    /// rows at a time ([`linear_cross_entropy`]).
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward) and [`cross_entropy`].
    pub fn loss(&self, batch: &Batch) -> Result<Variable> {
        self.loss_with_recompute(batch, Recompute::Nothing)
    }

    /// Returns the [`loss`](Self::loss), with a backward that computes some activations again.
    ///
    /// # Errors
    ///
    /// As [`loss`](Self::loss).
    pub fn loss_with_recompute(&self, batch: &Batch, recompute: Recompute) -> Result<Variable> {
        let x = self.hidden(&batch.inputs, recompute)?;
        if self.config.vocab_size >= LARGE_VOCABULARY * self.config.width {
            let head = in_compute_dtype(self.head(), self.config.compute_dtype)?;
            return linear_cross_entropy(&x, &head.t()?, &batch.targets, CrossEntropyOptions::default());
        }
        let logits = self.logits(&x)?;
        let rows = logits.reshape(&[-1, self.config.vocab_size as isize])?;
        let rows = in_compute_dtype(&rows, Some(wide_dtype(rows.dtype())))?;
        cross_entropy(&rows, &batch.targets.reshape(&[-1])?, CrossEntropyOptions::default())
    }

    /// Returns the logits of the last position of `ids` (batch, length), which follow the positions in the cache, as (batch,
    /// vocabulary). The cache takes their keys and values in.
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward); [`Error::InvalidArgument`] for another batch than the cache's, and for more positions
    /// than the context has.
    pub fn forward_cached(&self, ids: &Tensor, cache: &mut KeyValueCache) -> Result<Variable> {
        let length = self.check_ids(ids, cache.length())?;
        cache.check_batch(ids.shape()[0], self.blocks.len())?;
        if let Some(logits) = self.decode_on_host(ids, cache)? {
            return Ok(Variable::new(logits));
        }
        let mut x = self.embed(ids, cache.length())?;
        for (index, block) in self.blocks.iter().enumerate() {
            let _traced = crate::trace::span("layer", || (format!("h.{index}").into(), Vec::new()));
            let [queries, keys, values] = block.attn().project(&block.ln_1().forward(&x)?)?;
            let (keys, values) =
                cache.extend(index, &keys.tensor(), &values.tensor(), self.config.context)?;
            let attention = block.attn().attend(&queries, &Variable::new(keys), &Variable::new(values))?;
            x = block.after_attention(&x, &attention)?;
        }
        cache.advance(length);
        let last = x.select(1, -1)?;
        self.logits(&self.ln_f.forward(&last)?)
    }

    /// Returns the length of ids of shape (batch, length) that fit behind `past` positions.
    fn check_ids(&self, ids: &Tensor, past: usize) -> Result<usize> {
        let shape = ids.shape();
        let &[_, length] = &shape[..] else {
            return Err(Error::invalid(NAME, format!("ids of shape {shape}"), "(batch, length)"));
        };
        if ids.dtype() != DType::I64 && ids.dtype() != DType::I32 {
            return Err(Error::invalid(NAME, format!("ids of {}", ids.dtype()), "i64 or i32"));
        }
        if length == 0 || past + length > self.config.context {
            let found = format!("{length} ids at position {past}");
            return Err(Error::invalid(NAME, found, format!("1 to {} positions", self.config.context)));
        }
        Ok(length)
    }

    /// Returns the sum of both embeddings, for ids that begin at a position.
    fn embed(&self, ids: &Tensor, past: usize) -> Result<Variable> {
        let length = ids.shape()[1];
        let positions = self.wpe.weight().narrow(0, past, length)?;
        let x = (self.wte.weight().embedding(ids)? + positions)?;
        let x = in_compute_dtype(&x, self.config.compute_dtype)?;
        self.dropout.as_ref().map_or_else(|| Ok(x.clone()), |dropout| dropout.forward(&x))
    }

    /// Returns the normalised result of all blocks.
    fn hidden(&self, ids: &Tensor, recompute: Recompute) -> Result<Variable> {
        self.check_ids(ids, 0)?;
        let (mut x, mut added) = (self.embed(ids, 0)?, None);
        for (index, block) in self.blocks.iter().enumerate() {
            let _traced = crate::trace::span("layer", || (format!("h.{index}").into(), Vec::new()));
            if recompute == Recompute::Blocks {
                x = block.forward_recomputed(&x)?;
                continue;
            }
            let [sum, next] = block.forward_parts(&x, added.as_ref(), recompute)?;
            (x, added) = (sum, Some(next));
        }
        match &added {
            Some(added) => Ok(self.ln_f.forward_sum(&x, added)?[1].clone()),
            None => self.ln_f.forward(&x),
        }
    }

    /// Returns the weight of the head, (vocabulary, width).
    fn head(&self) -> &Variable {
        self.lm_head.as_ref().unwrap_or_else(|| self.wte.weight())
    }

    /// Returns the product of the last axis and the head.
    fn logits(&self, x: &Variable) -> Result<Variable> {
        let GptConfig { vocab_size, vocab_multiple, compute_dtype, .. } = self.config;
        let head = in_compute_dtype(self.head(), compute_dtype)?;
        let padding = vocab_size.next_multiple_of(vocab_multiple) - vocab_size;
        if padding == 0 {
            return linear(x, &head.t()?, None);
        }
        let head = head.pad(&[(0, padding), (0, 0)], Padding::ZEROS)?;
        linear(x, &head.t()?, None)?.narrow(-1, 0, vocab_size)
    }
}

fn block(config: &GptConfig, initializer: &Initializer, generator: &Generator) -> Result<TransformerBlock> {
    let GptConfig { width, has_bias, dropout, .. } = *config;
    let options = MultiHeadAttentionOptions {
        is_causal: true,
        has_bias,
        ..MultiHeadAttentionOptions::new(config.heads)
    };
    let mut attention = MultiHeadAttention::new(width, options, initializer)?;
    let feed_forward = FeedForward::new(
        width,
        FeedForwardOptions { has_bias, ..FeedForwardOptions::default() },
        initializer,
    )?;
    let feed_forward = match config.activation {
        Activation::GeluTanh => feed_forward.with_activation(GeluTanh),
        Activation::Gelu => feed_forward.with_activation(Gelu),
        Activation::Relu => feed_forward.with_activation(Relu),
        Activation::Silu => feed_forward.with_activation(Silu),
    };
    if dropout > 0.0 {
        attention = attention.with_dropout(dropout, generator)?;
    }
    let block = TransformerBlock::new(attention, feed_forward, initializer)?.with_eps(config.norm_eps)?;
    if dropout > 0.0 { block.with_dropout(dropout, generator) } else { Ok(block) }
}

impl Module for Gpt {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.logits(&self.hidden(&input.tensor(), Recompute::Nothing)?)
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        let mut parameters: Vec<(String, Variable)> = Vec::new();
        let mut add = |name: &str, layer: &dyn Module| {
            parameters.extend(prefixed(&format!("{PREFIX}{name}"), layer.named_parameters()));
        };
        add("wte", &self.wte);
        add("wpe", &self.wpe);
        for (index, block) in self.blocks.iter().enumerate() {
            add(&format!("h.{index}"), block);
        }
        add("ln_f", &self.ln_f);
        parameters.extend(self.lm_head.iter().map(|head| ("lm_head.weight".to_owned(), head.clone())));
        parameters
    }

    fn set_training(&mut self, is_training: bool) {
        if let Some(dropout) = &mut self.dropout {
            dropout.set_training(is_training);
        }
        self.blocks.iter_mut().for_each(|block| block.set_training(is_training));
    }

    /// As [`Module::load_state_dict`]. Names may lack `transformer.`; the masks of older files and the copy of a tied head
    /// are left out.
    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        let is_mask = |name: &str| name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
        let mut own = BTreeMap::new();
        for (name, entry) in entries {
            let is_head = name == "lm_head.weight";
            if is_mask(name) || (is_head && self.lm_head.is_none()) {
                continue;
            }
            let has_prefix = is_head || name.starts_with(PREFIX);
            let name = if has_prefix { name.clone() } else { format!("{PREFIX}{name}") };
            own.insert(name, entry.clone());
        }
        crate::nn::module::load(self.named_parameters(), &own)
    }
}
