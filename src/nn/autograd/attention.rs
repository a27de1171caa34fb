//! [`scaled_dot_product_attention`], by an engine that stores no scores ([`EngineAttention`]) or as two products and a softmax
//! ([`ComposedAttention`](crate::tensor::ComposedAttention)).
//!
//! The engine is taken where it computes the whole problem and, if a gradient is required, its backward too; a larger head
//! dimension has a forward alone. The log (debug) says why it is not.
//!
//! Tests: `tests/nn/attention.rs`.

use super::attention_engine::{EngineAttention, PackedHeads};
use super::shape::in_shape;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::tensor::{ComposedAttention, Matmul, ResultOrder, Tensor};

pub(super) const OPERATION: &str = "scaled_dot_product_attention";

/// The options of [`scaled_dot_product_attention`]: those of [tensors](crate::tensor::AttentionOptions), with a mask that may have a
/// gradient.
pub type AttentionOptions = crate::tensor::AttentionOptions<Variable>;

/// Returns softmax(scale · q kᵀ + mask) v for queries (batch, heads, length, head dimension). Keys and values have the same
/// axes, with a length of their own and a number of heads that divides the queries': query head h reads head
/// h · key heads / query heads.
///
/// A causal mask is aligned to the bottom right, as in FlashAttention: the last query reads every key. PyTorch aligns it to the
/// top left; the two agree only for equal lengths. A query that may read no key has a result of 0.
///
/// Without a mask, attention stores no scores on the CPU, and of f16 and bf16 with a head dimension that is a multiple of 8 on a device of
/// compute capability 9.0 ([`crate::attention`]): up to 128 where a gradient is wanted, else up to 256. Otherwise the scores take memory
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
    let tensor_options = options.map_mask(Variable::tensor);
    if let Some(result) = EngineAttention::new(&tensor_options).recorded(inputs)? {
        return Ok(result);
    }
    let wanted = parents.each_ref().map(Option::is_some);
    let (result, state) =
        ComposedAttention::new(inputs.map(Variable::tensor), &tensor_options, ResultOrder::ByHead)?;
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
    let tensor_options = options.map_mask(Variable::tensor);
    let packed_heads = PackedHeads { heads, key_heads };
    if let Some(result) = EngineAttention::new(&tensor_options).recorded_packed(packed, packed_heads)? {
        return Ok(result);
    }
    let shape = packed.shape();
    let (result, state) = ComposedAttention::new(
        packed_heads.split(packed.tensor())?,
        &tensor_options,
        ResultOrder::ByPosition,
    )?;
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
