//! Scaled dot-product attention of tensors: [`Tensor::scaled_dot_product_attention`].
//!
//! | file | what it does |
//! |---|---|
//! | `options` | [`AttentionOptions`], [`SequenceLengths`] |
//! | `sequences` | the offsets of sequences of different lengths |
//! | `engine` | attention that stores no scores, by [`crate::attention`] |
//! | `composed` | two products and a softmax, which store the probabilities: masks, and devices without an engine |
//! | `decode` | new positions against a cache on a device, in one kernel |
//! | `dropout` | which probabilities are dropped, by position |

mod composed;
mod decode;
mod dropout;
mod engine;
mod options;
mod sequences;

pub(crate) use composed::ComposedAttention;
pub(crate) use decode::{DecodeAngles, DecodeSettings};
pub(crate) use engine::{Attention, AttentionResult, ResultOrder};
pub use options::{AttentionOptions, SequenceLengths};

use super::tensor::Tensor;
use crate::attention::Pass;
use crate::error::Result;

pub(crate) const OPERATION: &str = "scaled_dot_product_attention";

impl Tensor {
    /// Returns softmax(scale · q kᵀ) v for queries (batch, heads, length, head dimension), which are `self`. Keys and values have the same
    /// axes, with a length of their own and a number of heads that divides the queries': query head h reads head
    /// h · key heads / query heads. The values may have a head dimension of their own.
    ///
    /// A causal mask is aligned to the bottom right, as in FlashAttention: the last query reads every key. PyTorch aligns it to the
    /// top left; the two agree only for equal lengths. A query that may read no key has a result of 0.
    ///
    /// Without a mask, attention stores no scores on the CPU, and
    /// of f16 and bf16 on devices of compute capability 9.0 where the head dimension is a multiple of 8
    /// ([`crate::attention`]); otherwise the scores take memory in proportion to the product of the lengths, and the log says why.
    ///
    /// ```
    /// use selvedge::tensor::AttentionOptions;
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1.0f32, 0.0, 0.0, 0.0], &Device::cpu())?.reshape(&[1, 1, 2, 2])?;
    /// let values = Tensor::new([2.0f32, 6.0], &Device::cpu())?.reshape(&[1, 1, 2, 1])?;
    /// let options = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
    /// let result = x.scaled_dot_product_attention(&x, &values, &options)?;
    /// assert_eq!(result.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) with all shapes where they do not meet, for a mask that does not broadcast
    /// to the scores, a dropout outside 0 to 1, a soft cap that is not positive, and lengths that leave the arrays (on a device
    /// at the next wait); [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) for a mask of integers and for different dtypes;
    /// errors of the operations.
    pub fn scaled_dot_product_attention(
        &self,
        keys: &Tensor,
        values: &Tensor,
        options: &AttentionOptions,
    ) -> Result<Tensor> {
        let inputs = [self.clone(), keys.clone(), values.clone()];
        match Attention::new(&inputs, options, Pass::Forward)? {
            Some(attention) => Ok(attention.forward(ResultOrder::ByHead)?.result),
            None => Ok(ComposedAttention::new(inputs, options, ResultOrder::ByHead)?.0),
        }
    }
}
