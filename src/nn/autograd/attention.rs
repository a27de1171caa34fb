//! [`scaled_dot_product_attention`], by an engine that stores no scores ([`EngineAttention`]) or as two products and a softmax.
//!
//! Of the products and the softmax, the forward saves the probabilities and, with dropout, which of them are kept. With probabilities P, kept ones P' and
//! the result's gradient G the backward is
//!
//! ```text
//! dV = P'ᵀ G     dS = P (dP - Σ P dP) with dP = G Vᵀ where kept     dQ = scale dS K     dK = scale dSᵀ Q
//! ```
//!
//! Queries that share a key/value head are rows of one product, so keys and values are never repeated. A causal mask is a
//! comparison of two vectors of positions within the softmax. Scores of f16 and bf16 operands are f32, and probabilities are
//! rounded once.
//!
//! Tests: `tests/nn/attention.rs`.

use std::sync::OnceLock;

use super::attention_engine::{EngineAttention, PackedHeads, default_scale};
use super::shape::in_shape;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::nn::precision::wide_dtype;
use crate::tensor::{Fused, Generator, Matmul, ResultOrder, Tensor};
use crate::types::DType;

pub(super) const OPERATION: &str = "scaled_dot_product_attention";

/// The options of [`scaled_dot_product_attention`].
#[derive(Debug, Clone, Default)]
pub struct AttentionOptions {
    /// A mask that broadcasts to (batch, query heads, query length, key length): bools that are true where a query reads a
    /// key, or floats that are added to the scaled scores. None by default.
    pub mask: Option<Variable>,
    /// True if a query reads no later key; false by default. The last query is at the last key's position, so with more keys than
    /// queries the first keys are those of a cache. A mask applies too.
    pub is_causal: bool,
    /// The factor of the scores: 1 / sqrt(head dimension).
    pub scale: Option<f64>,
    /// The probability that a probability is replaced by 0: 0. The others are scaled by 1 / (1 - dropout).
    pub dropout: f64,
    /// The generator of the dropout: the device's own.
    pub generator: Option<Generator>,
}

/// Returns softmax(scale · q kᵀ + mask) v for queries (batch, heads, length, head dimension). Keys and values have the same
/// axes, with a length of their own and a number of heads that divides the queries': query head h reads head
/// h · key heads / query heads.
///
/// A query that may read no key has a result of 0.
///
/// On a device of compute capability 9.0, attention of f16 and bf16 without a mask and dropout, with a head dimension that is a multiple
/// of 8, stores no scores ([`crate::attention`]): up to 128 where a gradient is wanted, else up to 256. Otherwise the scores take memory
/// in proportion to the product of the lengths, and the log says why.
///
/// ```
/// use selvedge::nn::{AttentionOptions, Variable, scaled_dot_product_attention};
/// use selvedge::{Device, Tensor};
/// let x = Variable::new(Tensor::new([1.0f32, 0.0, 0.0, 0.0], &Device::cpu())?.reshape(&[1, 1, 2, 2])?);
/// let values = Variable::new(Tensor::new([2.0f32, 6.0], &Device::cpu())?.reshape(&[1, 1, 2, 1])?);
/// let options = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
/// let result = scaled_dot_product_attention(&x, &x, &values, &options)?;
/// assert_eq!(result.tensor().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] with all shapes where they do not meet, for a mask that does not broadcast to the scores, and
/// for a dropout outside 0 to 1; [`Error::DTypeMismatch`] for a mask of integers and for different dtypes; errors of the
/// operations.
pub fn scaled_dot_product_attention(
    queries: &Variable,
    keys: &Variable,
    values: &Variable,
    options: &AttentionOptions,
) -> Result<Variable> {
    let inputs = [queries, keys, values];
    let parents = inputs.map(Variable::tracked);
    let engine = EngineAttention::new(options);
    if let Some(result) = engine.map(|engine| engine.recorded(inputs)).transpose()?.flatten() {
        return Ok(result);
    }
    let wanted = parents.each_ref().map(Option::is_some);
    let (result, state) = AttentionState::new(inputs.map(Variable::tensor), options, ResultOrder::ByHead)?;
    let saved = inputs.map(Variable::save);
    let mask = options.mask.as_ref().and_then(Variable::tracked);
    let has_mask_gradient = mask.is_some();
    let parents = parents.into_iter().chain([mask]).collect();
    Ok(Variable::new(result).recorded(OPERATION, parents, |_| {
        Box::new(move |gradient| {
            let [queries, keys, values] = saved.each_ref().map(|saved| saved.tensor(OPERATION));
            let inputs = [queries?, keys?, values?];
            let mut of_inputs = [None, None, None];
            let mut store = |which: usize, product: Matmul<'_>, [a, b]: [&Tensor; 2]| {
                of_inputs[which] = Some(in_shape(&product.of(a, b)?, inputs[which].shape())?);
                Ok(())
            };
            let of_scores = state.gradients(&inputs, wanted, has_mask_gradient, gradient, &mut store)?;
            Ok(of_inputs.into_iter().chain([of_scores]).collect())
        })
    }))
}

/// As [`scaled_dot_product_attention`] of queries, keys and values in one input of shape (batch, length,
/// (heads + 2 · key heads) · head dimension): the heads of the queries, then those of the keys, then those of the values.
/// The result has shape (batch, length, heads · head dimension). The input's gradient is written once.
pub(in crate::nn) fn packed_attention(
    packed: &Variable,
    heads: usize,
    key_heads: usize,
    options: &AttentionOptions,
) -> Result<Variable> {
    let engine = EngineAttention::new(options);
    let packed_heads = PackedHeads { heads, key_heads };
    if let Some(result) =
        engine.map(|engine| engine.recorded_packed(packed, packed_heads)).transpose()?.flatten()
    {
        return Ok(result);
    }
    let shape = packed.shape();
    let (result, state) =
        AttentionState::new(packed_heads.split(packed.tensor())?, options, ResultOrder::ByPosition)?;
    let result = result.transpose(1, 2)?.flatten(2, 3)?;
    let mask = options.mask.as_ref().and_then(Variable::tracked);
    let (is_wanted, has_mask_gradient) = (packed.tracked().is_some(), mask.is_some());
    let saved = packed.save();
    Ok(Variable::new(result).recorded(OPERATION, vec![packed.tracked(), mask], |_| {
        Box::new(move |gradient| {
            let gradient = gradient.unflatten(-1, &[heads as isize, -1])?.transpose(1, 2)?;
            let inputs = packed_heads.split(saved.tensor(OPERATION)?)?;
            let mut of_packed = match is_wanted {
                true => {
                    let &[batch, _, length, width] = &inputs[0].shape()[..] else {
                        return Err(Error::invalid(
                            OPERATION,
                            format!("queries of shape {}", inputs[0].shape()),
                            "four axes",
                        ));
                    };
                    let sizes = [batch, length, packed_heads.all(), width];
                    Some(Tensor::empty(&sizes, gradient.dtype(), &gradient.device())?)
                }
                false => None,
            };
            // Each product writes its part of the packed gradient, which no copy joins later.
            let mut store = |which: usize, product: Matmul<'_>, [a, b]: [&Tensor; 2]| {
                let Some(of_packed) = &mut of_packed else { return Ok(()) };
                let (first, count) = packed_heads.parts()[which];
                let mut part = of_packed.in_place().narrow(2, first, count)?.transpose(1, 2)?;
                if which == 0 && heads != key_heads {
                    part.assign(&in_shape(&product.of(a, b)?, part.shape())?)?;
                    return Ok(());
                }
                product.add_to(part, 0, a, b)
            };
            let of_scores =
                state.gradients(&inputs, [is_wanted; 3], has_mask_gradient, &gradient, &mut store)?;
            let of_packed = of_packed.map(|of_packed| in_shape(&of_packed, &shape)).transpose()?;
            Ok(vec![of_packed, of_scores])
        })
    }))
}

/// e^x / Σ e^x, and 0 for a row of -∞ alone.
fn safe_softmax(x: Expr<'_>) -> Expr<'_> {
    let largest = x.max_group();
    let powers = (x - largest).exp();
    largest.eq(f64::NEG_INFINITY).choose(0.0, powers * powers.sum_group().reciprocal())
}

/// The scores, and -∞ where a mask of bools is false or plus a mask of floats.
fn masked<'g>(scores: Expr<'g>, mask: Expr<'g>) -> Expr<'g> {
    if mask.dtype() == DType::Bool { mask.choose(scores, f64::NEG_INFINITY) } else { scores + mask }
}

/// The scores, and -∞ where a key's position is after the query's.
fn causal<'g>(scores: Expr<'g>, query: Expr<'g>, key: Expr<'g>) -> Expr<'g> {
    key.le(query).choose(scores, f64::NEG_INFINITY)
}

/// The functions of one number of operands, for results of the scores' dtype, f16 and bf16.
type Softmaxes<const N: usize> = [OnceLock<Fused<N>>; 3];

/// Returns the probabilities of scores, in a dtype: theirs, f16 or bf16.
fn probabilities(scores: &Tensor, mask: Option<&Tensor>, is_causal: bool, dtype: DType) -> Result<Tensor> {
    static PLAIN: Softmaxes<1> = [const { OnceLock::new() }; 3];
    static MASKED: Softmaxes<2> = [const { OnceLock::new() }; 3];
    static CAUSAL: Softmaxes<3> = [const { OnceLock::new() }; 3];
    static BOTH: Softmaxes<4> = [const { OnceLock::new() }; 3];
    let (narrow, which) = match dtype {
        DType::F16 => (Some(DType::F16), 1),
        DType::BF16 => (Some(DType::BF16), 2),
        _ => (None, 0),
    };
    let &[_, _, length, key_length] = &scores.shape()[..] else {
        let found = format!("scores of shape {}", scores.shape());
        return Err(Error::invalid(OPERATION, found, "four axes"));
    };
    if scores.count() == 0 {
        return Tensor::zeros(scores.shape(), dtype, &scores.device());
    }
    // The last query reads every key.
    if !is_causal || length == 1 {
        return match mask {
            None => PLAIN[which]
                .get_or_init(|| Fused::new(move |[x]| safe_softmax(x).cast(narrow.unwrap_or(x.dtype()))))
                .run([scores]),
            Some(mask) => MASKED[which]
                .get_or_init(|| {
                    Fused::new(move |[x, mask]| {
                        safe_softmax(masked(x, mask)).cast(narrow.unwrap_or(x.dtype()))
                    })
                })
                .run([scores, mask]),
        };
    }
    // Two vectors instead of the kernel's own indices: a row program with indices takes several kernels.
    let longest = length.max(key_length);
    let positions = Tensor::arange(0, longest, 1, DType::I32, &scores.device())?;
    let query = positions.narrow(0, longest - length, length)?.unsqueeze(-1)?;
    let key = positions.narrow(0, longest - key_length, key_length)?;
    match mask {
        None => CAUSAL[which]
            .get_or_init(|| {
                Fused::new(move |[x, query, key]| {
                    safe_softmax(causal(x, query, key)).cast(narrow.unwrap_or(x.dtype()))
                })
            })
            .run([scores, &query, &key]),
        Some(mask) => BOTH[which]
            .get_or_init(|| {
                Fused::new(move |[x, mask, query, key]| {
                    safe_softmax(causal(masked(x, mask), query, key)).cast(narrow.unwrap_or(x.dtype()))
                })
            })
            .run([scores, mask, &query, &key]),
    }
}

/// The choice of a dropout.
struct Kept {
    /// True for probabilities that are kept.
    mask: Tensor,
    scale: f64,
}

impl Kept {
    /// Returns the scaled probabilities, and 0 for those that are not kept.
    fn of(&self, probabilities: &Tensor) -> Result<Tensor> {
        static FUNCTION: OnceLock<Fused<3>> = OnceLock::new();
        let function = || Fused::new(|[kept, x, scale]| kept.choose(x * scale, 0.0));
        FUNCTION.get_or_init(function).run((&self.mask, probabilities, self.scale))
    }
}

/// Takes a gradient as a product of two tensors: that of the queries (0), keys (1) or values (2).
type Store<'a> = &'a mut dyn FnMut(usize, Matmul<'_>, [&Tensor; 2]) -> Result<()>;

/// The values that the backward reads besides queries, keys and values.
struct AttentionState {
    scale: f64,
    key_heads: usize,
    probabilities: Tensor,
    kept: Option<Kept>,
}

impl AttentionState {
    /// Returns the result and the state of a call.
    fn new(
        [queries, keys, values]: [Tensor; 3],
        options: &AttentionOptions,
        order: ResultOrder,
    ) -> Result<(Tensor, AttentionState)> {
        let refused = |wanted: &str| {
            let found = format!(
                "queries of shape {}, keys of shape {} and values of shape {}",
                queries.shape(),
                keys.shape(),
                values.shape()
            );
            Err(Error::invalid(OPERATION, found, wanted))
        };
        let shapes = (&queries.shape()[..], &keys.shape()[..], &values.shape()[..]);
        let (
            &[batch, heads, length, width],
            &[key_batch, key_heads, key_length, key_width],
            &[value_batch, value_heads, value_length, value_width],
        ) = shapes
        else {
            return refused("four axes each: (batch, heads, length, head dimension)");
        };
        if key_batch != batch || value_batch != batch {
            return refused("equal batches");
        }
        if key_width != width {
            return refused("queries and keys of one head dimension");
        }
        if (value_heads, value_length) != (key_heads, key_length) {
            return refused("keys and values of equal heads and lengths");
        }
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            return refused("a number of key heads that divides the query heads");
        }
        let scores_shape = [batch, heads, length, key_length];
        let mask = options.mask.as_ref().map(Variable::tensor);
        if let Some(mask) = &mask {
            check_mask(mask, &scores_shape)?;
        }
        let dropout = options.dropout;
        if !(0.0..=1.0).contains(&dropout) {
            return Err(Error::invalid(OPERATION, format!("a dropout of {dropout}"), "one from 0 to 1"));
        }
        let scale = options.scale.unwrap_or(default_scale(width));
        let scores = Matmul::new()
            .alpha(scale)
            .result(wide_dtype(queries.dtype()))
            .of(&by_key_head(&queries, key_heads)?, &keys.transpose(-2, -1)?)?
            .reshape(&signed(scores_shape))?;
        let probabilities = probabilities(&scores, mask.as_ref(), options.is_causal, queries.dtype())?;
        drop(scores);
        let kept = match dropout > 0.0 {
            false => None,
            true => {
                let device = queries.device();
                let generator = options.generator.clone().unwrap_or_else(|| device.generator());
                let mask = generator.bernoulli(1.0 - dropout, &scores_shape, DType::Bool, &device)?;
                // Nothing is kept with a dropout of 1, and 1 / 0 is no factor.
                Some(Kept { mask, scale: if dropout < 1.0 { 1.0 / (1.0 - dropout) } else { 0.0 } })
            }
        };
        let state = AttentionState { scale, key_heads, probabilities, kept };
        let weights = by_key_head(&state.weights()?, key_heads)?;
        if order == ResultOrder::ByPosition && key_heads == heads {
            let sizes = [batch, length, heads, value_width];
            let mut result = Tensor::empty(&sizes, values.dtype(), &values.device())?;
            Matmul::new().add_to(result.in_place().transpose(1, 2)?, 0, &weights, &values)?;
            return Ok((result.transpose(1, 2)?, state));
        }
        let result = weights.matmul(&values)?.reshape(&signed([batch, heads, length, value_width]))?;
        Ok((result, state))
    }

    /// Returns the factors of the values: the probabilities after the dropout.
    fn weights(&self) -> Result<Tensor> {
        match &self.kept {
            None => Ok(self.probabilities.clone()),
            Some(kept) => kept.of(&self.probabilities),
        }
    }

    /// Stores the wanted gradients of queries, keys and values, and returns that of the scaled scores.
    fn gradients(
        &self,
        [queries, keys, values]: &[Tensor; 3],
        [of_queries, of_keys, of_values]: [bool; 3],
        of_scores: bool,
        gradient: &Tensor,
        store: Store<'_>,
    ) -> Result<Option<Tensor>> {
        let gradient = by_key_head(gradient, self.key_heads)?;
        let product = Matmul::new();
        if of_values {
            let weights = by_key_head(&self.weights()?, self.key_heads)?.transpose(-2, -1)?;
            store(2, product, [&weights, &gradient])?;
        }
        if !(of_queries || of_keys || of_scores) {
            return Ok(None);
        }
        let of_weights = in_shape(&gradient.matmul(&values.transpose(-2, -1)?)?, self.probabilities.shape())?;
        let scores = match of_weights.count() {
            0 => self.probabilities.zeros_like()?,
            _ => self.scores_gradient(&of_weights)?,
        };
        drop(of_weights);
        let rows = by_key_head(&scores, self.key_heads)?;
        let product = product.alpha(self.scale);
        if of_queries {
            store(0, product, [&rows, keys])?;
        }
        if of_keys {
            store(1, product, [&rows.transpose(-2, -1)?, &by_key_head(queries, self.key_heads)?])?;
        }
        Ok(of_scores.then_some(scores))
    }

    /// P (G - Σ P G) for the gradient G of the probabilities.
    fn scores_gradient(&self, of_weights: &Tensor) -> Result<Tensor> {
        static DROPPED: OnceLock<Fused<4>> = OnceLock::new();
        let Some(kept) = &self.kept else { return self.probabilities.softmax_backward(of_weights, -1, None) };
        DROPPED
            .get_or_init(|| {
                Fused::new(|[p, g, kept, scale]| {
                    let g = kept.choose(g * scale, 0.0);
                    (p * (g - (p * g).sum_group())).cast(p.dtype())
                })
            })
            .run((&self.probabilities, of_weights, &kept.mask, kept.scale))
    }
}

fn signed(sizes: [usize; 4]) -> [isize; 4] {
    sizes.map(|size| size as isize)
}

/// Returns (batch, heads, length, n) as (batch, key heads, heads / key heads · length, n).
fn by_key_head(x: &Tensor, key_heads: usize) -> Result<Tensor> {
    match &x.shape()[..] {
        &[batch, heads, length, last] if heads != key_heads => {
            x.reshape(&signed([batch, key_heads, heads / key_heads * length, last]))
        }
        _ => Ok(x.clone()),
    }
}

/// Checks a mask's dtype and that it broadcasts to the scores.
fn check_mask(mask: &Tensor, scores: &[usize; 4]) -> Result<()> {
    if mask.dtype() != DType::Bool && !mask.dtype().is_float() {
        let wanted = "a mask of bools or floats".to_owned();
        return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found: mask.dtype().to_string() });
    }
    let shape = mask.shape();
    let fits = |(&size, &of_scores): (&usize, &usize)| size == 1 || size == of_scores;
    if shape.rank() > 4 || !shape.iter().rev().zip(scores.iter().rev()).all(fits) {
        let found = format!("a mask of shape {shape} for scores of shape {scores:?}");
        return Err(Error::invalid(OPERATION, found, "a mask that broadcasts to the scores"));
    }
    Ok(())
}
