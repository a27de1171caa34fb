//! [`ComposedAttention`]: attention as two products and a softmax, which keeps the probabilities, and their gradients.
//!
//! The forward keeps the probabilities P and, with dropout, which of them are kept, P'. With the result's gradient G the backward is
//!
//! ```text
//! dV = P'ᵀ G     dS = P (dP - Σ P dP) with dP = G Vᵀ where kept     dQ = scale dS K     dK = scale dSᵀ Q
//! ```
//!
//! where dS of capped scores has the factor of their derivative in dQ and dK. Queries that share a key/value head are rows of one
//! product, so keys and values are never repeated. A causal mask is a comparison of two vectors of positions within the softmax.
//! Scores of f16 and bf16 operands are f32, and probabilities are rounded once.
//!
//! Tests: `tests/nn/attention.rs`.

use std::sync::OnceLock;

use super::super::fused::Fused;
use super::super::matmul::Matmul;
use super::super::shape::in_shape;
use super::super::tensor::Tensor;
use super::OPERATION;
use super::dropout::keep_mask;
use super::engine::ResultOrder;
use super::options::{AttentionOptions, SequenceLengths};
use super::sequences::{SequenceOffsets, in_band};
use crate::attention::{Band, Dropout, Sizes};
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::types::{DType, wide_dtype};

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

/// Returns c tanh(x / c) of scores x, and its derivative.
fn capped(scores: &Tensor, limit: f64) -> Result<(Tensor, Tensor)> {
    static CAPPED: OnceLock<Fused<2>> = OnceLock::new();
    static SLOPE: OnceLock<Fused<2>> = OnceLock::new();
    let capped =
        CAPPED.get_or_init(|| Fused::new(|[x, limit]| (x / limit).tanh() * limit)).run((scores, limit))?;
    let slope = SLOPE.get_or_init(|| {
        Fused::new(|[capped, limit]| {
            let t = capped / limit;
            (t * t * -1.0) + 1.0
        })
    });
    let slope = slope.run((&capped, limit))?;
    Ok((capped, slope))
}

/// Returns the mask of an option with those of the band and of the lengths, and whether a causal mask is to be applied besides.
fn all_masks(
    options: &AttentionOptions,
    offsets: Option<&SequenceOffsets>,
    queries: &Tensor,
    key_length: usize,
) -> Result<(Option<Tensor>, bool)> {
    let (band, mask, length) = (options.band(), options.mask.as_ref(), queries.shape()[2]);
    let base_mask = match offsets {
        Some(offsets) => offsets.mask(band, length, key_length)?,
        None if band == Band::causal() || band.is_full() => return Ok((mask.cloned(), !band.is_full())),
        None => {
            let device = queries.device();
            let shift = key_length as i64 - length as i64;
            let positions =
                Tensor::arange(shift, key_length as i64, 1, DType::I32, &device)?.unsqueeze(-1)?;
            in_band(band, &positions, &Tensor::arange(0, key_length, 1, DType::I32, &device)?)?
        }
    };
    let all = match mask {
        None => base_mask,
        Some(mask) if mask.dtype() == DType::Bool => base_mask.logical_and(mask)?,
        Some(mask) => base_mask.choose(mask, f64::NEG_INFINITY)?,
    };
    Ok((Some(all), false))
}

/// Returns bools that are true for probabilities that the dropout keeps.
fn keep_probabilities_mask(
    options: &AttentionOptions,
    offsets: Option<&SequenceOffsets>,
    queries: &Tensor,
    key_length: usize,
) -> Result<Tensor> {
    let (threshold, generator, device) = (options.threshold(), options.generator.as_ref(), queries.device());
    let &[batch, heads, length, _] = &queries.shape()[..] else {
        return Err(Error::invalid(OPERATION, format!("queries of shape {}", queries.shape()), "four axes"));
    };
    let (Some(offsets), Some(SequenceLengths::Packed { query_offsets, key_offsets })) =
        (offsets, &options.lengths)
    else {
        return keep_mask(generator, threshold, [batch, heads, length, key_length], &device);
    };
    // Positions are counted from each sequence's first.
    let sizes = [offsets.sequences.count, heads, offsets.sequences.max_queries, offsets.sequences.max_keys];
    let of_sequences = keep_mask(generator, threshold, sizes, &device)?;
    let mut all = Tensor::zeros(&[batch, heads, length, key_length], DType::Bool, &device)?;
    for index in 0..offsets.sequences.count {
        let (query, key) = (query_offsets[index], key_offsets[index]);
        let (count, key_count) = (query_offsets[index + 1] - query, key_offsets[index + 1] - key);
        let sequence_mask = of_sequences.narrow(0, index, 1)?.narrow(2, 0, count)?.narrow(3, 0, key_count)?;
        all.in_place().narrow(2, query, count)?.narrow(3, key, key_count)?.assign(&sequence_mask)?;
    }
    Ok(all)
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
pub(crate) type Store<'a> = &'a mut dyn FnMut(usize, Matmul<'_>, [&Tensor; 2]) -> Result<()>;

/// The values that the backward reads besides queries, keys and values.
pub(crate) struct ComposedAttention {
    scale: f64,
    key_heads: usize,
    probabilities: Tensor,
    kept: Option<Kept>,
    /// The derivatives of capped scores.
    slopes: Option<Tensor>,
    /// True for the queries and for the keys of a sequence. The others may be anything.
    inside: Option<[Tensor; 2]>,
}

/// Returns a tensor with zeros outside of sequences, because the product of a probability of 0 and NaN is NaN.
fn cleared(x: &Tensor, inside: Option<&Tensor>) -> Result<Tensor> {
    match inside {
        Some(inside) => inside.choose(x, 0.0),
        None => Ok(x.clone()),
    }
}

impl ComposedAttention {
    /// Returns the result and the state of a call.
    ///
    /// # Errors
    ///
    /// As [`Tensor::scaled_dot_product_attention`].
    pub fn new(
        [queries, keys, values]: [Tensor; 3],
        options: &AttentionOptions,
        order: ResultOrder,
    ) -> Result<(Tensor, ComposedAttention)> {
        options.check()?;
        let sizes = Sizes::new(OPERATION, [queries.layout(), keys.layout(), values.layout()])?;
        let Sizes { batch, heads, key_heads, queries: length, keys: key_length, .. } = sizes;
        let (width, value_width) = (sizes.dimension, sizes.value_dimension);
        let scores_shape = [batch, heads, length, key_length];
        if let Some(mask) = &options.mask {
            check_mask(mask, &scores_shape)?;
        }
        let device = queries.device();
        let offsets = match &options.lengths {
            Some(lengths) => Some(SequenceOffsets::new(lengths, [batch, length, key_length], &device)?),
            None => None,
        };
        let inside = offsets.as_ref().map(|offsets| offsets.inside(length, key_length)).transpose()?;
        let (of_queries, of_keys) =
            (inside.as_ref().map(|inside| &inside[0]), inside.as_ref().map(|inside| &inside[1]));
        let (queries, keys) = (cleared(&queries, of_queries)?, cleared(&keys, of_keys)?);
        let values = cleared(&values, of_keys)?;
        let (mask, is_causal) = all_masks(options, offsets.as_ref(), &queries, key_length)?;
        let scale = options.scale_of(width);
        let scores = Matmul::new()
            .alpha(scale)
            .result(wide_dtype(queries.dtype()))
            .of(&by_key_head(&queries, key_heads)?, &keys.transpose(-2, -1)?)?
            .reshape(&signed(scores_shape))?;
        let (scores, slopes) = match options.soft_cap {
            Some(limit) => {
                let (scores, slopes) = capped(&scores, limit)?;
                (scores, Some(slopes))
            }
            None => (scores, None),
        };
        let probabilities = probabilities(&scores, mask.as_ref(), is_causal, queries.dtype())?;
        drop(scores);
        let kept = match options.threshold() {
            0 => None,
            threshold => {
                let mask = keep_probabilities_mask(options, offsets.as_ref(), &queries, key_length)?;
                Some(Kept { mask, scale: Dropout { seed: 0, offset: 0, threshold }.scale() })
            }
        };
        let state = ComposedAttention { scale, key_heads, probabilities, kept, slopes, inside };
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
    ///
    /// # Errors
    ///
    /// As the operations.
    pub fn gradients(
        &self,
        [queries, keys, values]: &[Tensor; 3],
        [of_queries, of_keys, of_values]: [bool; 3],
        of_scores: bool,
        gradient: &Tensor,
        store: Store<'_>,
    ) -> Result<Option<Tensor>> {
        let inside = self.inside.as_ref();
        let (inside_queries, inside_keys) =
            (inside.map(|inside| &inside[0]), inside.map(|inside| &inside[1]));
        let (queries, keys) = (&cleared(queries, inside_queries)?, &cleared(keys, inside_keys)?);
        let values = &cleared(values, inside_keys)?;
        let gradient = by_key_head(&cleared(gradient, inside_queries)?, self.key_heads)?;
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
        let of_products = match &self.slopes {
            Some(slopes) => (&scores * slopes)?.cast(scores.dtype())?,
            None => scores.clone(),
        };
        let rows = by_key_head(&of_products, self.key_heads)?;
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
