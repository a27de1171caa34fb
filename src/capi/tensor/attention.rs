//! Scaled dot-product attention.

use super::super::arguments::{check_unused, collected, slice, structure};
use super::super::error::{Failure, Result};
use super::super::handle::{sv_generator, sv_tensor};
use super::random::generator;
use super::{flag, give, optional, tensor};
use crate::attention::Band;
use crate::tensor::{AttentionOptions, Device, SequenceLengths};

/// Options of scaled dot-product attention. Zeros are the defaults, but for `size`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_attention_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// A mask that broadcasts to (batch, query heads, query length, key length): bools that are true where a query reads a key, or
    /// floats that are added to the scaled scores. NULL for none.
    pub mask: sv_tensor,
    /// The generator of the dropout; 0 for the device's own.
    pub generator: sv_generator,
    /// The number of queries of each batch, integers of shape (batch). 0 for all.
    pub query_lengths: sv_tensor,
    /// The number of keys of each batch. 0 for all.
    pub key_lengths: sv_tensor,
    /// The first query of each sequence in a batch of 1, and the end of the last one; NULL where each batch is one sequence.
    pub query_offsets: *const i64,
    /// The first key of each sequence in a batch of 1, and the end of the last one.
    pub key_offsets: *const i64,
    /// The number of elements of `query_offsets`, and of `key_offsets`: one more than there are sequences. 0 without them.
    pub offset_count: usize,
    /// The factor of the scores. 0 without `has_scale`.
    pub scale: f64,
    /// The limit c of the scaled scores x, which become c tanh(x / c). 0 for none.
    pub soft_cap: f64,
    /// The probability that a probability is replaced by 0.
    pub dropout: f64,
    /// How many keys before its own position a query reads. 0 without `has_window_before`.
    pub window_before: i64,
    /// How many keys after its own position a query reads. 0 without `has_window_after`.
    pub window_after: i64,
    /// 1 for the factor `scale`; 0 for 1 / sqrt(head dimension).
    pub has_scale: i32,
    /// 1 if a query reads no later key. The last query is at the last key's position.
    pub is_causal: i32,
    /// 1 to limit the keys before a query's position.
    pub has_window_before: i32,
    /// 1 to limit the keys after a query's position.
    pub has_window_after: i32,
}

/// Reads the window's number of keys on one side.
fn window(keys: i64, is_given: i32, name: &str) -> Result<Option<usize>> {
    let name = |prefix| format!("options.{prefix}window_{name}");
    if !flag(is_given, &name("has_"))? {
        check_unused(&name(""), keys as f64, &format!("{} 1", name("has_")))?;
        return Ok(None);
    }
    let keys = usize::try_from(keys).map_err(|_| Failure::argument(&name(""), keys, "a number from 0 on"))?;
    Ok(Some(keys))
}

/// Reads the offsets of packed sequences.
///
/// # Safety
///
/// As [`slice`].
unsafe fn offsets(offsets: *const i64, count: usize, name: &str) -> Result<Vec<usize>> {
    let offsets = slice(offsets, count, name)?;
    if let Some(negative) = offsets.iter().find(|offset| **offset < 0) {
        return Err(Failure::argument(name, negative, "offsets from 0 on"));
    }
    collected(count, name, offsets.iter().map(|offset| *offset as usize))
}

impl sv_attention_options {
    /// Returns the lengths of sequences that the options describe.
    ///
    /// # Safety
    ///
    /// The offsets are NULL or point to `offset_count` numbers each.
    unsafe fn lengths(&self) -> Result<Option<SequenceLengths>> {
        let queries = optional(self.query_lengths, "options.query_lengths")?;
        let keys = optional(self.key_lengths, "options.key_lengths")?;
        let is_packed = self.offset_count > 0;
        match (is_packed, queries.is_some() || keys.is_some()) {
            (false, false) => Ok(None),
            (false, true) => Ok(Some(SequenceLengths::Padded { queries, keys })),
            (true, false) => {
                let count = self.offset_count;
                let query_offsets = offsets(self.query_offsets, count, "options.query_offsets")?;
                let key_offsets = offsets(self.key_offsets, count, "options.key_offsets")?;
                Ok(Some(SequenceLengths::Packed { query_offsets, key_offsets }))
            }
            (true, true) => Err(Failure::argument(
                "options.query_lengths and options.key_lengths",
                "tensors beside offsets",
                "0 with offsets",
            )),
        }
    }

    /// Returns the options of attention on a device.
    ///
    /// # Safety
    ///
    /// As `lengths`.
    unsafe fn read(&self, device: &Device) -> Result<AttentionOptions> {
        let has_scale = flag(self.has_scale, "options.has_scale")?;
        if !has_scale {
            check_unused("options.scale", self.scale, "options.has_scale 1")?;
        }
        Ok(AttentionOptions {
            mask: optional(self.mask, "options.mask")?,
            is_causal: flag(self.is_causal, "options.is_causal")?,
            window: Band {
                before: window(self.window_before, self.has_window_before, "before")?,
                after: window(self.window_after, self.has_window_after, "after")?,
            },
            scale: has_scale.then_some(self.scale),
            soft_cap: (self.soft_cap != 0.0).then_some(self.soft_cap),
            dropout: self.dropout,
            generator: match self.generator {
                0 => None,
                handle => Some(generator(handle, device)?),
            },
            lengths: self.lengths()?,
        })
    }
}

/// Computes softmax(scale * Q K^T) V for queries of shape (batch, heads, length, head dimension). Keys and values have the same
/// axes, with a length of their own and a number of heads that divides the queries'. A query that may read no key has a result
/// of 0. `options` may be NULL. Without a mask no scores are stored on the CPU, and on devices of compute capability 9.0 for f16 and
/// bf16 where the head dimension is a multiple of 8.
///
/// # Safety
///
/// `options` is NULL or points to a struct with its size set, whose offsets point to `offset_count` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_scaled_dot_product_attention(
    queries: sv_tensor,
    keys: sv_tensor,
    values: sv_tensor,
    options: *const sv_attention_options,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_scaled_dot_product_attention", result, || {
        let queries = tensor(queries, "queries")?;
        let (keys, values) = (tensor(keys, "keys")?, tensor(values, "values")?);
        let options = match options.is_null() {
            true => AttentionOptions::default(),
            false => structure(options, "options")?.read(&queries.device())?,
        };
        Ok(queries.scaled_dot_product_attention(&keys, &values, &options)?)
    })
}
