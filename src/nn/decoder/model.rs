//! [`Decoder`], the model.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DECODER;
use super::block::{Block, Pass};
use super::cache::DecoderCache;
use super::config::DecoderConfig;
use super::lora::Lora;
use super::parameters::{Norm, ParameterRole, Projection, Source, Specification};
use super::rotation::RotaryTables;
use crate::error::{Error, Result};
use crate::nn::layers::linear;
use crate::nn::precision::{in_compute_dtype, wide_dtype};
use crate::nn::{FusedFunction, Initializer, Module, Variable, VariableOperand};
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// The deviation of weights in a new model.
const DEVIATION: f64 = 0.02;

/// A decoder-only transformer of the form that a [`DecoderConfig`] describes. [`forward`](Module::forward) takes ids (batch, length)
/// and returns logits (batch, length, vocabulary).
///
/// Parameters have the names and the shapes of the family's Hugging Face files. The model drops nothing in training.
/// [`add_lora`](Self::add_lora) leaves them as they are and trains adapters in their place.
///
/// ```
/// use selvedge::nn::{Decoder, DecoderConfig, Initializer, Module, Variable};
/// use selvedge::{Device, Tensor};
/// let text = r#"{"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
///     "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_act": "silu", "max_position_embeddings": 16,
///     "rms_norm_eps": 1e-5}"#;
/// let device = Device::cpu();
/// let model = Decoder::new(DecoderConfig::from_json(text, None)?, &Initializer::new(&device).with_seed(1))?;
/// let ids = Variable::new(Tensor::new([[1i64, 2, 3], [4, 5, 10]], &device)?);
/// assert_eq!(model.forward(&ids)?.shape()[..], [2, 3, 11]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct Decoder {
    config: DecoderConfig,
    pub(super) weights: Weights,
    pub(super) named: Vec<(String, Variable)>,
    tables: Vec<RotaryTables>,
    compute_dtype: Option<DType>,
    pub(super) lora: Option<Lora>,
    /// True once a length beyond the context was reported.
    has_warned: AtomicBool,
}

/// The parameters in their layers.
pub(super) struct Weights {
    embedding: Variable,
    positions: Option<Variable>,
    blocks: Vec<Block>,
    final_norm: Norm,
    /// `None` if the token embedding is the head.
    head: Option<Variable>,
}

impl Weights {
    /// Creates the layers of a source's parameters.
    pub fn new(config: &DecoderConfig, compute_dtype: Option<DType>, source: Source<'_>) -> Result<Weights> {
        let names = config.names;
        let table = |name: String, rows, source: Source<'_>| {
            source(Specification {
                name: format!("{name}.weight"),
                shape: vec![rows, config.width],
                role: ParameterRole::Matrix,
            })
        };
        let full = |name: &str| format!("{}{name}", names.prefix);
        let embedding = table(full(names.embedding), config.vocab_size, source)?;
        let positions = match config.has_learned_positions {
            true => Some(table(full(names.positions), config.context, source)?),
            false => None,
        };
        let mut blocks = Vec::with_capacity(config.layers());
        for index in 0..config.layers() {
            blocks.push(Block::new(index, config, compute_dtype, source)?);
        }
        Ok(Weights {
            embedding,
            positions,
            blocks,
            final_norm: Norm::new(&full(names.final_norm), config.width, config.norm, source)?,
            head: match config.has_tied_head {
                true => None,
                false => Some(table(names.head.to_owned(), config.vocab_size, source)?),
            },
        })
    }
}

impl Weights {
    /// Returns the linear layers of the blocks, in the order of the model.
    pub fn projections(&self) -> impl Iterator<Item = &Projection> {
        self.blocks.iter().flat_map(Block::projections)
    }

    pub fn projections_mut(&mut self) -> impl Iterator<Item = &mut Projection> {
        self.blocks.iter_mut().flat_map(Block::projections_mut)
    }
}

impl Decoder {
    /// Creates a model with new weights: normal with deviation 0.02, those of products before a residual with
    /// 0.02 / sqrt(2 layers), norms of factor 1 and biases of 0.
    ///
    /// # Errors
    ///
    /// Errors of memory.
    pub fn new(config: DecoderConfig, initializer: &Initializer) -> Result<Decoder> {
        let residual = DEVIATION / (2.0 * config.layers() as f64).sqrt();
        let compute_dtype = initializer.compute_dtype();
        Decoder::from_source(config, compute_dtype, &mut |parameter| match parameter.role {
            ParameterRole::Matrix => initializer.normal(DEVIATION, &parameter.shape),
            ParameterRole::Residual => initializer.normal(residual, &parameter.shape),
            ParameterRole::One => initializer.ones(&parameter.shape),
            ParameterRole::Zero => initializer.zeros(&parameter.shape),
        })
    }

    /// Creates a model of a source's parameters.
    pub(super) fn from_source(
        config: DecoderConfig,
        compute_dtype: Option<DType>,
        source: Source<'_>,
    ) -> Result<Decoder> {
        let mut named = Vec::new();
        let weights = Weights::new(&config, compute_dtype, &mut |parameter| {
            let name = parameter.name.clone();
            let variable = source(parameter)?;
            named.push((name, variable.clone()));
            Ok(variable)
        })?;
        let tables = config.rotary.iter().cloned().map(RotaryTables::new).collect();
        let has_warned = AtomicBool::new(false);
        Ok(Decoder { config, weights, named, tables, compute_dtype, lora: None, has_warned })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Returns the device of the parameters.
    pub fn device(&self) -> Device {
        self.weights.embedding.device()
    }

    /// Returns the dtype of the parameters.
    pub fn dtype(&self) -> DType {
        self.weights.embedding.dtype()
    }

    /// Returns the dtype of activations and products, or none if it is that of the parameters.
    pub fn compute_dtype(&self) -> Option<DType> {
        self.compute_dtype
    }

    /// As [`forward`](Module::forward) for sequences of different lengths that end at the last position: the first `padding[i]`
    /// ids of sequence i are no part of it. Positions count from its first id. Logits of padding have no meaning.
    ///
    /// Sequences that are padded on the right need no mask: no position reads a later one.
    ///
    /// # Errors
    ///
    /// As [`forward`](Module::forward); [`Error::InvalidArgument`] for another number of sequences than the batch, and for a
    /// sequence of padding alone.
    pub fn forward_padded(&self, ids: &Tensor, padding: &[usize]) -> Result<Variable> {
        let mut pass = self.pass(ids, 0, padding, None)?;
        let x = self.hidden(ids, padding, &mut pass, &mut |_, _| Ok(()))?;
        self.logits(&x)
    }

    /// Returns the logits (batch, vocabulary) of the last position of `ids` (batch, length), which follow the positions in the
    /// cache. The cache takes their keys and values. Nothing is recorded of the keys and values in the cache, so gradients do
    /// not reach them: use it within [`no_grad`](crate::nn::no_grad).
    ///
    /// All ids are computed anew if the longer total length changes the rotary frequencies of all positions (longrope).
    ///
    /// # Errors
    ///
    /// As [`forward_padded`](Self::forward_padded); [`Error::InvalidArgument`] for another batch than the cache's.
    pub fn forward_cached(&self, ids: &Tensor, cache: &mut DecoderCache) -> Result<Variable> {
        self.forward_watched(ids, cache, &mut |_, _| Ok(()))
    }

    /// Returns the name of the first part whose result has a NaN, of the pass over `ids` that the cache took last.
    pub(super) fn first_nan(&self, ids: &Tensor, cache: &mut DecoderCache) -> Result<Option<String>> {
        let mut first = None;
        cache.rewind(cache.length().saturating_sub(ids.shape()[1]));
        let logits = self.forward_watched(ids, cache, &mut |part, x| {
            if first.is_none() && has_nan(x)? {
                let names = self.config.names;
                first = Some(match part {
                    None => names.embedding.to_owned(),
                    Some(index) => format!("{}.{index}", names.layers),
                });
            }
            Ok(())
        })?;
        Ok(match first {
            None if has_nan(&logits)? => {
                Some(format!("{} or {}", self.config.names.final_norm, self.config.names.head))
            }
            first => first,
        })
    }

    /// As [`forward_cached`](Self::forward_cached), with a function that gets the embeddings and the result of each layer.
    fn forward_watched(&self, ids: &Tensor, cache: &mut DecoderCache, watch: Watch<'_>) -> Result<Variable> {
        let (past, padding) = (cache.length(), cache.padding().to_vec());
        let length = self.check_ids(ids, past)?;
        cache.check(self, ids)?;
        // The longest sequence's positions.
        let shortest = padding.iter().copied().min().unwrap_or(0);
        let [before, total] = [past, past + length].map(|positions| positions.saturating_sub(shortest));
        let is_new = past > 0 && self.config.crosses_switch(before, total);
        let (all, start) = match is_new {
            true => (cache.all_ids(ids)?, 0),
            false => (ids.clone(), past),
        };
        let result = (|| {
            let mut pass = self.pass(&all, start, &padding, Some(&mut *cache))?;
            let x = self.hidden(&all, &padding, &mut pass, watch)?;
            self.logits(&x.select(1, -1)?)
        })();
        match result {
            Ok(logits) => {
                cache.advance(ids, past + length, self.config.has_switch());
                Ok(logits)
            }
            Err(error) => {
                if is_new {
                    // Keys of both frequencies may be in it.
                    cache.clear();
                }
                Err(error)
            }
        }
    }

    /// Returns the length of ids of shape (batch, length) that fit behind `past` positions.
    fn check_ids(&self, ids: &Tensor, past: usize) -> Result<usize> {
        let shape = ids.shape();
        let &[_, length] = &shape[..] else {
            return Err(Error::invalid(DECODER, format!("ids of shape {shape}"), "(batch, length)"));
        };
        if ids.dtype() != DType::I64 && ids.dtype() != DType::I32 {
            return Err(Error::invalid(DECODER, format!("ids of {}", ids.dtype()), "i64 or i32"));
        }
        if length == 0 {
            return Err(Error::invalid(DECODER, "a length of 0", "at least one id"));
        }
        let (context, total) = (self.config.context, past.saturating_add(length));
        if total > context {
            if self.config.has_learned_positions {
                let found = format!("{length} ids at position {past}");
                return Err(Error::invalid(DECODER, found, format!("1 to {context} positions")));
            }
            if !self.has_warned.swap(true, Ordering::Relaxed) {
                log::warn!("{DECODER}: {total} positions, but the model was made for {context}");
            }
        }
        Ok(length)
    }

    /// Returns the shared values of a pass over ids behind `past` positions.
    fn pass<'a>(
        &self,
        ids: &Tensor,
        past: usize,
        padding: &[usize],
        cache: Option<&'a mut DecoderCache>,
    ) -> Result<Pass<'a>> {
        let length = self.check_ids(ids, past)?;
        let (batch, total, device) = (ids.shape()[0], past + length, self.device());
        let dtype = wide_dtype(self.compute_dtype.unwrap_or_else(|| self.dtype()));
        if padding.iter().all(|&count| count == 0) && (padding.is_empty() || padding.len() == batch) {
            let angles = self.tables.iter().map(|table| table.at(past, length, dtype, &device));
            return Ok(Pass { angles: angles.collect::<Result<_>>()?, mask: None, past, cache });
        }
        if padding.len() != batch || padding.iter().any(|&count| count >= total) {
            let found = format!("padding of {padding:?} for {batch} sequences of length {total}");
            return Err(Error::invalid(DECODER, found, "a number below the length for each sequence"));
        }
        let longest = total - padding.iter().copied().min().unwrap_or(0);
        let positions = self.positions(padding, past, length, &device)?;
        let angles = self.tables.iter().map(|table| table.of_positions(&positions, longest, dtype, &device));
        let mask: Vec<u8> =
            padding.iter().flat_map(|&count| (0..total).map(move |key| u8::from(key >= count))).collect();
        Ok(Pass {
            angles: angles.collect::<Result<_>>()?,
            mask: Some(Tensor::from_bytes(&mask, DType::Bool, &[batch, 1, 1, total], &device)?),
            past,
            cache,
        })
    }

    /// Returns the position of each id, (batch, length), 0 for padding.
    fn positions(&self, padding: &[usize], past: usize, length: usize, device: &Device) -> Result<Tensor> {
        let of_sequence =
            |&count: &usize| (past..past + length).map(move |index| index.saturating_sub(count) as i64);
        let positions: Vec<i64> = padding.iter().flat_map(of_sequence).collect();
        Tensor::from_vec(positions, &[padding.len(), length], device)
    }

    /// Returns the result of all layers.
    fn hidden(
        &self,
        ids: &Tensor,
        padding: &[usize],
        pass: &mut Pass<'_>,
        watch: Watch<'_>,
    ) -> Result<Variable> {
        let mut x = self.embed(ids, padding, pass.past)?;
        watch(None, &x)?;
        for (index, block) in self.weights.blocks.iter().enumerate() {
            let names = self.config.names;
            let _traced =
                crate::trace::span("layer", || (format!("{}.{index}", names.layers).into(), Vec::new()));
            x = block.forward(&x, pass)?;
            watch(Some(index), &x)?;
        }
        Ok(x)
    }

    fn embed(&self, ids: &Tensor, padding: &[usize], past: usize) -> Result<Variable> {
        let mut x = self.weights.embedding.embedding(ids)?;
        if let Some(table) = &self.weights.positions {
            let length = ids.shape()[1];
            let rows = match padding.iter().all(|&count| count == 0) {
                true => table.narrow(0, past, length)?,
                false => table.embedding(&self.positions(padding, past, length, &ids.device())?)?,
            };
            x = (x + rows)?;
        }
        let x = in_compute_dtype(&x, self.compute_dtype)?;
        match self.config.embedding_scale {
            // The factor has the dtype of the elements, as in the models' own code.
            Some(scale) => &x * rounded(scale, x.dtype()),
            None => Ok(x),
        }
    }

    /// Returns the layers' result for whole sequences.
    pub(super) fn last_hidden(&self, ids: &Tensor) -> Result<Variable> {
        let mut pass = self.pass(ids, 0, &[], None)?;
        self.hidden(ids, &[], &mut pass, &mut |_, _| Ok(()))
    }

    /// Returns the operands of the product with the head, whose weight is (width, vocabulary).
    pub(super) fn head_operands(&self, x: &Variable) -> Result<(Variable, Variable)> {
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        Ok((self.weights.final_norm.forward(x)?, in_compute_dtype(head, self.compute_dtype)?.t()?))
    }

    /// Returns the logits of the layers' result.
    pub(super) fn logits(&self, x: &Variable) -> Result<Variable> {
        static CAPPED: OnceLock<FusedFunction<2>> = OnceLock::new();
        let (x, head) = self.head_operands(x)?;
        let logits = linear(&x, &head, None)?;
        match self.config.logit_cap {
            Some(cap) => CAPPED
                .get_or_init(|| FusedFunction::new(|[x, cap]| (x / cap).tanh() * cap))
                .run([VariableOperand::from(&logits), VariableOperand::from(cap)]),
            None => Ok(logits),
        }
    }
}

/// Gets the embeddings (`None`) and the result of each layer.
type Watch<'a> = &'a mut dyn FnMut(Option<usize>, &Variable) -> Result<()>;

fn has_nan(x: &Variable) -> Result<bool> {
    Ok(x.tensor().cast(DType::F64)?.to_vec::<f64>()?.iter().any(|element| element.is_nan()))
}

/// Returns a number rounded to a dtype.
fn rounded(number: f64, dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => half::bf16::from_f64(number).to_f64(),
        DType::F16 => half::f16::from_f64(number).to_f64(),
        _ => number,
    }
}

impl Module for Decoder {
    fn forward(&self, input: &Variable) -> Result<Variable> {
        self.forward_padded(&input.tensor(), &[])
    }

    fn named_parameters(&self) -> Vec<(String, Variable)> {
        self.lora.as_ref().map_or(&self.named, |lora| &lora.named).clone()
    }
}
