//! [`Decoder`], the model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::DECODER;
use super::block::{Block, Pass};
use super::cache::CacheSizes;
use super::config::DecoderConfig;
use super::lora::Lora;
use super::parameters::{Norm, ParameterRole, Projection, Source, Specification};
use super::rotation::RotaryTables;
use super::rows::head_of_rows;
use crate::error::{Error, Result};
use crate::nn::layers::linear;
use crate::nn::precision::{in_compute_dtype, wide_dtype};
use crate::nn::{FusedFunction, Initializer, Module, Recompute, Variable, VariableOperand, checkpoint};
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
    pub(super) config: DecoderConfig,
    pub(super) weights: Weights,
    pub(super) named: Vec<(String, Variable)>,
    pub(super) tables: Vec<RotaryTables>,
    pub(super) compute_dtype: Option<DType>,
    pub(super) lora: Option<Lora>,
    /// True once a length beyond the context was reported.
    has_warned: AtomicBool,
}

/// The parameters in their layers.
pub(super) struct Weights {
    pub(super) embedding: Variable,
    pub(super) positions: Option<Variable>,
    /// A recomputation shares its block.
    pub(super) blocks: Vec<Arc<Block>>,
    pub(super) final_norm: Norm,
    /// `None` if the token embedding is the head.
    pub(super) head: Option<Variable>,
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
            blocks.push(Arc::new(Block::new(index, config, compute_dtype, source)?));
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
        self.blocks.iter().flat_map(|block| block.projections())
    }

    /// As [`projections`](Self::projections), of new layers, which no recomputation has.
    pub fn projections_mut(&mut self) -> impl Iterator<Item = &mut Projection> {
        self.blocks.iter_mut().filter_map(Arc::get_mut).flat_map(Block::projections_mut)
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

    /// Returns the sizes of a cache.
    pub(super) fn cache_sizes(&self) -> CacheSizes {
        let DecoderConfig { key_heads, head_dim, .. } = self.config;
        CacheSizes { layers: self.config.layers(), key_heads, head_dim }
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
        self.logits(&self.last_hidden(ids, padding, Recompute::Nothing)?)
    }

    /// Checks ids of shape (batch, length) that end at a total length.
    pub(super) fn check_ids(&self, ids: &Tensor, total: usize) -> Result<()> {
        let &[_, length] = &ids.shape()[..] else { return Err(not_two_axes(ids)) };
        if ids.dtype() != DType::I64 && ids.dtype() != DType::I32 {
            return Err(Error::invalid(DECODER, format!("ids of {}", ids.dtype()), "i64 or i32"));
        }
        if length == 0 {
            return Err(Error::invalid(DECODER, "a length of 0", "at least one id"));
        }
        self.check_total(length, total)
    }

    /// Checks a total length whose last `length` positions are new.
    pub(super) fn check_total(&self, length: usize, total: usize) -> Result<()> {
        let context = self.config.context;
        if total > context {
            if self.config.has_learned_positions {
                let found = format!("{length} ids at position {}", total - length);
                return Err(Error::invalid(DECODER, found, format!("1 to {context} positions")));
            }
            if !self.has_warned.swap(true, Ordering::Relaxed) {
                log::warn!("{DECODER}: {total} positions, but the model was made for {context}");
            }
        }
        Ok(())
    }

    /// Returns the dtype of activations, keys and values.
    pub(super) fn pass_dtype(&self) -> DType {
        self.compute_dtype.unwrap_or_else(|| self.dtype())
    }

    /// Returns the dtype of angles.
    pub(super) fn angle_dtype(&self) -> DType {
        wide_dtype(self.pass_dtype())
    }

    /// Returns the shared values of a pass over sequences that are padded on the left, and the positions of their ids.
    fn padded_pass(&self, ids: &Tensor, padding: &[usize]) -> Result<(Pass<'static>, Positions)> {
        let total = ids.shape().get(1).copied().unwrap_or(0);
        self.check_ids(ids, total)?;
        let (batch, device, dtype) = (ids.shape()[0], self.device(), self.angle_dtype());
        let is_padding = padding.len() == batch && padding.iter().all(|&count| count < total);
        if !padding.is_empty() && !is_padding {
            let found = format!("padding of {padding:?} for {batch} sequences of length {total}");
            return Err(Error::invalid(DECODER, found, "a number below the length for each sequence"));
        }
        let longest = total - padding.iter().copied().min().unwrap_or(0);
        let starts: Vec<i64> = padding.iter().map(|&count| -(count as i64)).collect();
        let positions = self.positions(ids, &starts)?;
        let angles = self.tables.iter().map(|table| match &positions {
            Positions::From(first) => table.at(*first, total, dtype, &device),
            Positions::Each(each) => table.of_positions(each, longest, dtype, &device),
        });
        let angles = angles.collect::<Result<_>>()?;
        let mask = match &positions {
            Positions::From(_) => None,
            Positions::Each(_) => {
                let is_key = |&count: &usize| (0..total).map(move |key| u8::from(key >= count));
                let mask: Vec<u8> = padding.iter().flat_map(is_key).collect();
                Some(Tensor::from_bytes(&mask, DType::Bool, &[batch, 1, 1, total], &device)?)
            }
        };
        Ok((Pass { angles, mask, lengths: None, recompute: Recompute::Nothing, cached: None }, positions))
    }

    /// Returns the positions of ids whose sequences start at these ones. Positions before 0 are 0.
    pub(super) fn positions(&self, ids: &Tensor, starts: &[i64]) -> Result<Positions> {
        if starts.iter().all(|&start| start == 0) {
            return Ok(Positions::From(0));
        }
        let length = ids.shape()[1] as i64;
        let positions: Vec<i64> =
            starts.iter().flat_map(|start| (0..length).map(move |index| (start + index).max(0))).collect();
        let sizes = [starts.len(), length as usize];
        Ok(Positions::Each(Tensor::from_vec(positions, &sizes, &self.device())?))
    }

    /// Returns the result of all layers.
    pub(super) fn hidden(
        &self,
        ids: &Tensor,
        positions: &Positions,
        pass: &mut Pass<'_>,
        watch: Watch<'_>,
    ) -> Result<Variable> {
        let mut x = self.embed(ids, positions)?;
        watch(None, &x)?;
        for (index, block) in self.weights.blocks.iter().enumerate() {
            let names = self.config.names;
            let _traced =
                crate::trace::span("layer", || (format!("{}.{index}", names.layers).into(), Vec::new()));
            x = match pass.recompute {
                Recompute::Nothing => block.forward(&x, pass)?,
                Recompute::FeedForward => block.forward_recomputed(&x, pass)?,
                Recompute::Blocks => {
                    let (block, pass) = (block.clone(), pass.uncached());
                    checkpoint(move |x| block.forward(&x[0], &mut pass.uncached()), &[&x])?
                }
            };
            watch(Some(index), &x)?;
        }
        Ok(x)
    }

    fn embed(&self, ids: &Tensor, positions: &Positions) -> Result<Variable> {
        let mut x = self.weights.embedding.embedding(ids)?;
        if let Some(table) = &self.weights.positions {
            let rows = match positions {
                Positions::From(first) => table.narrow(0, *first, ids.shape()[1])?,
                // Positions of padding may be behind the last one.
                Positions::Each(each) => table.embedding(&each.minimum(self.config.context as i64 - 1)?)?,
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

    /// Returns the layers' result for whole sequences, as [`forward_padded`](Self::forward_padded) takes them.
    pub(super) fn last_hidden(
        &self,
        ids: &Tensor,
        padding: &[usize],
        recompute: Recompute,
    ) -> Result<Variable> {
        let (pass, positions) = self.padded_pass(ids, padding)?;
        let mut pass = Pass { recompute, ..pass };
        self.hidden(ids, &positions, &mut pass, &mut |_, _| Ok(()))
    }

    /// Returns the operands of the product with the head, whose weight is (width, vocabulary).
    pub(super) fn head_operands(&self, x: &Variable) -> Result<(Variable, Variable)> {
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        Ok((self.weights.final_norm.forward(x)?, in_compute_dtype(head, self.compute_dtype)?.t()?))
    }

    /// Returns the logits of the layers' result.
    pub(super) fn logits(&self, x: &Variable) -> Result<Variable> {
        let (x, head) = self.head_operands(x)?;
        self.capped(linear(&x, &head, None)?)
    }

    /// As [`logits`](Self::logits), for one position of a few sequences, by one kernel if there is one.
    pub(super) fn logits_of_rows(&self, x: &Variable) -> Result<Variable> {
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        match head_of_rows(&x.tensor(), &self.weights.final_norm, &head.tensor())? {
            Some(logits) => self.capped(Variable::new(logits)),
            None => self.logits(x),
        }
    }

    /// Returns logits with the model's cap, if it has one.
    fn capped(&self, logits: Variable) -> Result<Variable> {
        static CAPPED: OnceLock<FusedFunction<2>> = OnceLock::new();
        match self.config.logit_cap {
            Some(cap) => CAPPED
                .get_or_init(|| FusedFunction::new(|[x, cap]| (x / cap).tanh() * cap))
                .run([VariableOperand::from(&logits), VariableOperand::from(cap)]),
            None => Ok(logits),
        }
    }
}

/// The positions of ids.
#[allow(clippy::large_enum_variant, reason = "one is made a pass")]
pub(super) enum Positions {
    /// One after the other in each sequence, from this one on.
    From(usize),
    /// Of shape (batch, length).
    Each(Tensor),
}

pub(super) fn not_two_axes(ids: &Tensor) -> Error {
    Error::invalid(DECODER, format!("ids of shape {}", ids.shape()), "(batch, length)")
}

/// Gets the embeddings (`None`) and the result of each layer.
pub(super) type Watch<'a> = &'a mut dyn FnMut(Option<usize>, &Variable) -> Result<()>;

pub(super) fn has_nan(x: &Variable) -> Result<bool> {
    Ok(x.tensor().cast(DType::F64)?.to_vec::<f64>()?.iter().any(|element| element.is_nan()))
}

/// Returns a number rounded to a dtype.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => half::bf16::from_f64(value).to_f64(),
        DType::F16 => half::f16::from_f64(value).to_f64(),
        _ => value,
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
