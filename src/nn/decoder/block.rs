//! [`Block`], one layer: attention and feed-forward, each with its norms and its residual.

use std::sync::{Arc, OnceLock};

use super::DECODER;
use super::cache::{DecoderCache, NewPositions};
use super::config::{DecoderConfig, LayerConfig};
use super::parameters::{Norm, ParameterRole, Projection, ProjectionForm, Source};
use super::rotation::{Angles, rotate};
use crate::attention::{Band, DecodeWorkspace};
use crate::error::{Error, Result};
use crate::nn::autograd::packed_attention;
use crate::nn::{
    Activation, AttentionOptions, FusedFunction, Recompute, Variable, checkpoint,
    scaled_dot_product_attention,
};
use crate::tensor::{DecodeSettings, SequenceLengths, Tensor};
use crate::types::DType;

/// The values that all layers of one pass share.
pub(super) struct Pass<'a> {
    /// The angles of each rotary setting: of the new positions, or of all positions of the cache if a kernel rotates.
    pub angles: Vec<Angles>,
    /// True for keys that are no padding, (batch, 1, 1, keys).
    pub mask: Option<Tensor>,
    /// The new positions and all positions of each sequence, if they differ.
    pub lengths: Option<SequenceLengths>,
    /// The activations that a backward computes again, of a pass without a cache.
    pub recompute: Recompute,
    pub cached: Option<CachedPass<'a>>,
}

impl Pass<'_> {
    /// Returns a pass with the shared values and without a cache.
    pub fn uncached(&self) -> Pass<'static> {
        let Pass { angles, mask, lengths, recompute, .. } = self;
        let (angles, mask, lengths) = (angles.clone(), mask.clone(), lengths.clone());
        Pass { angles, mask, lengths, recompute: *recompute, cached: None }
    }
}

/// A pass over new positions of a cache.
pub(super) struct CachedPass<'a> {
    pub cache: &'a mut DecoderCache,
    pub positions: NewPositions<'a>,
    /// The kernel that writes new positions and attends to all of them, if one does.
    pub decoding: Option<Decoding<'a>>,
}

/// The lengths and the memory that [`DecodeSettings::run`] takes beside a layer's operands.
pub(super) struct Decoding<'a> {
    /// The positions of each sequence with the new ones, i32 on the device.
    pub lengths: &'a Tensor,
    pub workspace: &'a mut Option<DecodeWorkspace>,
}

/// One layer.
pub(super) struct Block {
    pub(super) index: usize,
    pub(super) layer: LayerConfig,
    pub(super) heads: [usize; 3],
    pub(super) score_cap: Option<f64>,
    pub(super) attention_norm: Norm,
    pub(super) projections: Projections,
    pub(super) head_norms: Option<[Norm; 2]>,
    pub(super) output: Projection,
    pub(super) after_attention: Option<Norm>,
    pub(super) feed_forward_norm: Norm,
    pub(super) feed_forward: FeedForward,
    pub(super) after_feed_forward: Option<Norm>,
}

/// The products of queries, keys and values.
pub(super) enum Projections {
    Packed(Projection),
    Separate([Projection; 3]),
}

/// The products and the activation of a feed-forward.
pub(super) struct FeedForward {
    pub(super) form: FeedForwardForm,
    pub(super) down: Projection,
    pub(super) activation: Activation,
}

pub(super) enum FeedForwardForm {
    Plain(Projection),
    PackedGate(Projection),
    Gate([Projection; 2]),
}

impl Projections {
    /// Returns the products, whose results are queries, keys and values behind each other.
    pub(super) fn list(&self) -> &[Projection] {
        match self {
            Projections::Packed(packed) => std::slice::from_ref(packed),
            Projections::Separate(separate) => separate,
        }
    }

    fn list_mut(&mut self) -> &mut [Projection] {
        match self {
            Projections::Packed(packed) => std::slice::from_mut(packed),
            Projections::Separate(separate) => separate,
        }
    }
}

impl FeedForwardForm {
    /// Returns the products of the input, the gate before its factor.
    pub(super) fn list(&self) -> &[Projection] {
        match self {
            FeedForwardForm::Plain(one) | FeedForwardForm::PackedGate(one) => std::slice::from_ref(one),
            FeedForwardForm::Gate(both) => both,
        }
    }

    fn list_mut(&mut self) -> &mut [Projection] {
        match self {
            FeedForwardForm::Plain(one) | FeedForwardForm::PackedGate(one) => std::slice::from_mut(one),
            FeedForwardForm::Gate(both) => both,
        }
    }
}

impl Block {
    pub fn new(
        index: usize,
        config: &DecoderConfig,
        compute_dtype: Option<DType>,
        source: Source<'_>,
    ) -> Result<Block> {
        let names = config.names;
        let full = |name: &str| format!("{}{}.{index}.{name}", names.prefix, names.layers);
        let norm = |name: &str, width, source: Source<'_>| Norm::new(&full(name), width, config.norm, source);
        let (width, hidden) = (config.width, config.hidden);
        let project = |name: &str, [inputs, outputs]: [usize; 2], has_bias, role, source: Source<'_>| {
            let form = ProjectionForm { inputs, outputs, has_bias, role };
            Projection::new(&full(name), form, config, compute_dtype, source)
        };
        let (biases, widths) = (config.biases, config.projection_widths());
        let matrix = ParameterRole::Matrix;
        let attention_norm = norm(names.attention_norm, width, source)?;
        let projection = |name, outputs, source: Source<'_>| {
            project(name, [width, outputs], biases.projections, matrix, source)
        };
        let projections = match config.is_packed {
            true => Projections::Packed(projection(names.packed_projections, widths.iter().sum(), source)?),
            false => {
                let [query, key, value] = names.projections;
                Projections::Separate([
                    projection(query, widths[0], source)?,
                    projection(key, widths[1], source)?,
                    projection(value, widths[2], source)?,
                ])
            }
        };
        let head_norms = match config.has_head_norms {
            true => {
                let [query, key] = names.head_norms;
                Some([norm(query, config.head_dim, source)?, norm(key, config.head_dim, source)?])
            }
            false => None,
        };
        let output =
            project(names.output, [widths[0], width], biases.output, ParameterRole::Residual, source)?;
        let [after_attention, feed_forward_norm, after_feed_forward] = match config.has_four_norms {
            true => names.four_norms.map(Some),
            false => [None, Some(names.feed_forward_norm), None],
        };
        let after_attention = after_attention.map(|name| norm(name, width, source)).transpose()?;
        let feed_forward_norm = norm(feed_forward_norm.unwrap_or_default(), width, source)?;
        let up = |name, outputs, source: Source<'_>| {
            project(name, [width, outputs], biases.feed_forward, matrix, source)
        };
        let form = match (config.is_gated, config.is_packed) {
            (false, _) => FeedForwardForm::Plain(up(names.up, hidden, source)?),
            (true, true) => FeedForwardForm::PackedGate(up(names.packed_gate, 2 * hidden, source)?),
            (true, false) => {
                FeedForwardForm::Gate([up(names.gate, hidden, source)?, up(names.up, hidden, source)?])
            }
        };
        let down =
            project(names.down, [hidden, width], biases.feed_forward, ParameterRole::Residual, source)?;
        Ok(Block {
            index,
            layer: config.layers[index],
            heads: [config.heads, config.key_heads, config.key_heads],
            score_cap: config.score_cap,
            attention_norm,
            projections,
            head_norms,
            output,
            after_attention,
            feed_forward_norm,
            feed_forward: FeedForward { form, down, activation: config.activation },
            after_feed_forward: after_feed_forward.map(|name| norm(name, width, source)).transpose()?,
        })
    }

    /// Returns the linear layers in the order of the parameters.
    pub fn projections(&self) -> impl Iterator<Item = &Projection> {
        let FeedForward { form, down, .. } = &self.feed_forward;
        self.projections.list().iter().chain([&self.output]).chain(form.list()).chain([down])
    }

    /// As [`projections`](Self::projections).
    pub fn projections_mut(&mut self) -> impl Iterator<Item = &mut Projection> {
        let FeedForward { form, down, .. } = &mut self.feed_forward;
        let attention = self.projections.list_mut().iter_mut().chain([&mut self.output]);
        attention.chain(form.list_mut()).chain([down])
    }

    /// Returns the layer's result for its input (batch, length, width).
    pub fn forward(&self, x: &Variable, pass: &mut Pass<'_>) -> Result<Variable> {
        if let Some(result) = self.forward_rows(x, pass)? {
            return Ok(result);
        }
        let attention = self.normalized_attention(x, pass)?;
        let [x, normalized] = self.feed_forward_norm.forward_sum(x, &attention)?;
        x + self.normalized_feed_forward(&normalized)?
    }

    /// As [`forward`](Self::forward) without a cache, with a backward that computes the feed-forward and its norms again. The bits
    /// are the same: a norm of a sum has the bits of the sum and its norm.
    pub fn forward_recomputed(self: &Arc<Self>, x: &Variable, pass: &mut Pass<'_>) -> Result<Variable> {
        let x = (x + self.normalized_attention(x, pass)?)?;
        let block = self.clone();
        let feed_forward =
            move |x: &[Variable]| block.normalized_feed_forward(&block.feed_forward_norm.forward(&x[0])?);
        &x + checkpoint(feed_forward, &[&x])?
    }

    fn normalized_attention(&self, x: &Variable, pass: &mut Pass<'_>) -> Result<Variable> {
        let attention = self.attention(&self.attention_norm.forward(x)?, pass)?;
        normalized(self.after_attention.as_ref(), attention)
    }

    fn normalized_feed_forward(&self, x: &Variable) -> Result<Variable> {
        normalized(self.after_feed_forward.as_ref(), self.feed_forward.forward(x)?)
    }

    fn attention_options(&self, pass: &Pass<'_>) -> AttentionOptions {
        AttentionOptions {
            mask: pass.mask.clone().map(Variable::new),
            is_causal: true,
            window: Band { before: self.layer.window.map(|window| window - 1), after: Some(0) },
            scale: Some(self.layer.score_scale),
            soft_cap: self.score_cap,
            lengths: pass.lengths.clone(),
            ..AttentionOptions::default()
        }
    }

    /// Returns how a kernel attends to a cache.
    pub fn decode_settings(&self) -> DecodeSettings {
        let before = self.layer.window.map(|window| window - 1);
        DecodeSettings {
            band: Band { before, after: Some(0) },
            scale: self.layer.score_scale,
            soft_cap: self.score_cap,
        }
    }

    fn attention(&self, x: &Variable, pass: &mut Pass<'_>) -> Result<Variable> {
        let options = self.attention_options(pass);
        let split = |x: &Variable, heads: usize| x.unflatten(-1, &[heads as isize, -1]);
        let [heads, key_heads, _] = self.heads;
        let [queries, keys, values] = match &self.projections {
            Projections::Packed(projection) => {
                let packed = projection.forward(x)?;
                let is_plain = self.head_norms.is_none() && self.layer.rotary.is_none();
                if is_plain && pass.cached.is_none() {
                    return self.output.forward(&packed_attention(&packed, heads, key_heads, &options)?);
                }
                self.parts(&packed)?
            }
            Projections::Separate([query, key, value]) => [
                split(&query.forward(x)?, heads)?,
                split(&key.forward(x)?, key_heads)?,
                split(&value.forward(x)?, key_heads)?,
            ],
        };
        if matches!(&pass.cached, Some(CachedPass { decoding: Some(_), .. })) {
            return self.output.forward(&self.decode([queries, keys, values], pass)?.flatten(2, 3)?);
        }
        let (queries, keys) = self.with_head_norms(queries, keys)?;
        let angles = self.layer.rotary.and_then(|index| pass.angles.get(index));
        let (queries, keys) = match angles {
            Some(angles) => (rotate(&queries, angles)?, rotate(&keys, angles)?),
            None => (queries, keys),
        };
        let (queries, mut keys, mut values) =
            (queries.transpose(1, 2)?, keys.transpose(1, 2)?, values.transpose(1, 2)?);
        if let Some(CachedPass { cache, positions, .. }) = &mut pass.cached {
            let [all_keys, all_values] =
                cache.extend(self.index, [&keys.tensor(), &values.tensor()], positions)?;
            (keys, values) = (Variable::new(all_keys), Variable::new(all_values));
        }
        let result = scaled_dot_product_attention(&queries, &keys, &values, &options)?;
        self.output.forward(&result.transpose(1, 2)?.flatten(2, 3)?)
    }
}

impl Block {
    /// Returns queries, keys and values, (batch, length, heads, head dimension), of a packed projection.
    fn parts(&self, packed: &Variable) -> Result<[Variable; 3]> {
        let [heads, key_heads, _] = self.heads;
        let packed = packed.unflatten(-1, &[(heads + 2 * key_heads) as isize, -1])?;
        Ok([
            packed.narrow(2, 0, heads)?,
            packed.narrow(2, heads, key_heads)?,
            packed.narrow(2, heads + key_heads, key_heads)?,
        ])
    }

    fn with_head_norms(&self, queries: Variable, keys: Variable) -> Result<(Variable, Variable)> {
        match &self.head_norms {
            Some([query, key]) => Ok((query.forward(&queries)?, key.forward(&keys)?)),
            None => Ok((queries, keys)),
        }
    }

    /// As [`decode`](Self::decode), of a packed projection.
    pub(super) fn attend_packed(&self, packed: &Variable, pass: &mut Pass<'_>) -> Result<Variable> {
        self.decode(self.parts(packed)?, pass)
    }

    /// Returns the attention of queries to the cache, with new keys and values, as (batch, new positions, heads, head dimension), by the
    /// kernel of the pass.
    fn decode(&self, [queries, keys, values]: [Variable; 3], pass: &mut Pass<'_>) -> Result<Variable> {
        let (queries, keys) = self.with_head_norms(queries, keys)?;
        let by_head = |x: &Variable| -> Result<Tensor> { Ok(x.transpose(1, 2)?.tensor()) };
        let (queries, keys, values) = (by_head(&queries)?, by_head(&keys)?, by_head(&values)?);
        let angles = self.layer.rotary.and_then(|index| pass.angles.get(index));
        let Some(CachedPass { cache, decoding: Some(decoding), .. }) = &mut pass.cached else {
            return Err(Error::invalid(DECODER, "a pass without a kernel", "one of a cache on a device"));
        };
        let caches = cache.layer_mut(self.index)?;
        let settings = self.decode_settings();
        let workspace = match &mut *decoding.workspace {
            Some(workspace) => workspace,
            none => none.insert(settings.workspace(&queries, &caches[0])?),
        };
        let angles = angles.map(Angles::of_cache);
        let result = settings.run(&queries, [&keys, &values], caches, decoding.lengths, angles, workspace)?;
        Ok(Variable::new(result))
    }
}

/// Returns the normalised result, if there is a norm.
pub(super) fn normalized(norm: Option<&Norm>, x: Variable) -> Result<Variable> {
    norm.map_or(Ok(x.clone()), |norm| norm.forward(&x))
}

impl FeedForward {
    pub(super) fn forward(&self, x: &Variable) -> Result<Variable> {
        let (gate, up) = match &self.form {
            FeedForwardForm::Plain(up) => return up.forward_joined(self.activation, &self.down, x),
            FeedForwardForm::PackedGate(both) => {
                let both = both.forward(x)?;
                let hidden = both.shape().last().copied().unwrap_or(0) / 2;
                (both.narrow(-1, 0, hidden)?, both.narrow(-1, hidden, hidden)?)
            }
            FeedForwardForm::Gate([gate, up]) => (gate.forward(x)?, up.forward(x)?),
        };
        self.down.forward(&gated(self.activation).run([&gate, &up])?)
    }
}

/// Returns activation(gate) · up, one kernel each way.
fn gated(activation: Activation) -> &'static FusedFunction<2> {
    static FUNCTIONS: [OnceLock<FusedFunction<2>>; 4] = [const { OnceLock::new() }; 4];
    let index = match activation {
        Activation::GeluTanh => 0,
        Activation::Gelu => 1,
        Activation::Relu => 2,
        Activation::Silu => 3,
    };
    let operation = activation.operation();
    FUNCTIONS[index].get_or_init(|| FusedFunction::new(move |[gate, up]| gate.operation(operation, &[]) * up))
}
