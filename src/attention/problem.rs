//! The description of an attention: dtype, layouts, and how scores become probabilities.

use crate::driver::DeviceSlice;
use crate::error::{Error, Result};
use crate::types::{DType, Layout};

const OPERATION: &str = "attention";

/// The keys that a query reads, by their distance from its position; `None` where nothing limits them.
///
/// ```
/// use selvedge::attention::Band;
/// assert_eq!(Band::causal().after, Some(0));
/// assert!(Band::default().is_full());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Band {
    /// How many keys before its own position a query reads.
    pub before: Option<usize>,
    /// How many keys after its own position a query reads.
    pub after: Option<usize>,
}

impl Band {
    /// Returns the band of a causal mask: no key after a query's own position.
    pub fn causal() -> Band {
        Band { before: None, after: Some(0) }
    }

    /// Returns `true` if every query reads every key.
    pub fn is_full(self) -> bool {
        self.before.is_none() && self.after.is_none()
    }

    /// Returns how many pairs of a query and a key are in the band.
    pub(super) fn pairs(self, queries: usize, keys: usize) -> f64 {
        let keys_of = |query: usize| {
            // The last query and the last key are at one position.
            let position = (query + keys).checked_sub(queries);
            let end = match (self.after, position) {
                (None, _) => keys,
                (Some(after), Some(position)) => keys.min(position.saturating_add(after).saturating_add(1)),
                (Some(after), None) => {
                    keys.min((query + keys + 1).saturating_add(after).saturating_sub(queries))
                }
            };
            let start = match (self.before, position) {
                (Some(before), Some(position)) => position.saturating_sub(before),
                _ => 0,
            };
            end.saturating_sub(start)
        };
        if self.is_full() {
            return queries as f64 * keys as f64;
        }
        (0..queries).map(keys_of).sum::<usize>() as f64
    }
}

/// Random probabilities that are replaced by 0; the others are multiplied by 65536 / (65536 - `threshold`).
///
/// A probability is replaced if 16 random bits of its position are below the threshold. A block of Philox 4x32-10 has the bits of eight
/// positions. Blocks are counted from `offset` on, by head of all batches, 16 queries, 16 keys, and 32 lanes. Word w of lane l has those
/// of query l / 4 + 8 (w % 2) and of keys 2 (l % 4) + 8 (w / 2), in the lower half, and the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropout {
    /// The key of the stream.
    pub seed: u64,
    /// The first block of the stream; with [`Operands::generator`] the distance from the block that is in memory.
    pub offset: u64,
    /// The probability in units of 1 / 65536, at most 65536.
    pub threshold: u32,
}

impl Dropout {
    /// Returns a probability in units of 1 / 65536, rounded.
    pub fn threshold(probability: f64) -> u32 {
        (probability * 65536.0).round() as u32
    }

    /// Returns the factor of the probabilities that stay; 0 where none does.
    pub fn scale(self) -> f64 {
        if self.threshold < 1 << 16 { 65536.0 / (65536.0 - f64::from(self.threshold)) } else { 0.0 }
    }

    /// Returns how many blocks of the stream an attention takes.
    pub fn blocks(batch: usize, heads: usize, queries: usize, keys: usize) -> u64 {
        (batch * heads) as u64 * queries.div_ceil(16) as u64 * keys.div_ceil(16) as u64 * 32
    }
}

/// The most queries of a sequence that [`decode`](fn@super::decode) takes.
pub const MAX_DECODE_QUERIES: usize = 8;

/// Sequences of different lengths, whose first positions and lengths are in [`Operands::sequences`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences {
    /// The number of sequences.
    pub count: usize,
    /// True if the sequences lie one after the other in a batch of 1. Else each is the beginning of its batch's positions, and results
    /// and gradients of the other positions are 0. The first positions in memory are then unused.
    pub is_packed: bool,
    /// The most queries of a sequence.
    pub max_queries: usize,
    /// The most keys of a sequence.
    pub max_keys: usize,
}

/// An attention: layouts of (batch, heads, length, head dimension) in elements of one dtype, and how scores become probabilities.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// The dtype of queries, keys, values, the result and the gradients.
    pub dtype: DType,
    /// The layout of the queries.
    pub queries: Layout,
    /// The layout of the keys. Query head h reads head h · key heads / query heads.
    pub keys: Layout,
    /// The layout of the values: heads and length of the keys.
    pub values: Layout,
    /// The keys that each query reads.
    pub band: Band,
    /// The factor of the scores.
    pub scale: f64,
    /// The limit c of scaled scores x, which become c tanh(x / c). The kernels compute the hyperbolic tangent by `tanh.approx.f32`,
    /// whose relative error is at most 2^-11, so scores have an error of up to 5e-4 c.
    pub soft_cap: Option<f64>,
    /// Which probabilities are replaced by 0.
    pub dropout: Option<Dropout>,
    /// The sequences; without them each batch is one.
    pub sequences: Option<Sequences>,
}

/// The memory that an attention reads, from the layouts' offsets on.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// The memory of the queries, in bytes.
    pub queries: DeviceSlice<'a, u8>,
    /// The memory of the keys, in bytes.
    pub keys: DeviceSlice<'a, u8>,
    /// The memory of the values, in bytes.
    pub values: DeviceSlice<'a, u8>,
    /// For each of the [`Sequences`] its first query, its number of queries, its first key and its number of keys, from a multiple of
    /// 16 bytes on. Negative numbers, and those that exceed the layouts or the most of a sequence, are limited, so no memory outside is
    /// read or written. They are a [device-side error](crate::driver::KernelError) of the operation, and so is a packed sequence that begins
    /// before the end of the one before it.
    pub sequences: Option<DeviceSlice<'a, i32>>,
    /// The seed and the first block of the [`Dropout`], in place of its seed.
    pub generator: Option<DeviceSlice<'a, u64>>,
}

impl<'a> Operands<'a> {
    /// Returns operands without sequences and a generator.
    pub fn new(queries: DeviceSlice<'a, u8>, keys: DeviceSlice<'a, u8>, values: DeviceSlice<'a, u8>) -> Self {
        Operands { queries, keys, values, sequences: None, generator: None }
    }
}

/// The sizes of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub batch: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub dimension: usize,
    pub value_dimension: usize,
}

impl Problem {
    /// Returns the attention of queries, keys and values without a band, whose scale is 1 / sqrt(head dimension).
    pub fn new(dtype: DType, queries: Layout, keys: Layout, values: Layout) -> Problem {
        let dimension = queries.shape().last().copied().unwrap_or(1).max(1);
        Problem {
            dtype,
            queries,
            keys,
            values,
            band: Band::default(),
            scale: 1.0 / (dimension as f64).sqrt(),
            soft_cap: None,
            dropout: None,
            sequences: None,
        }
    }

    /// Returns whether the problem has a soft cap, dropout or sequences.
    pub(super) fn has_options(&self) -> bool {
        self.soft_cap.is_some() || self.dropout.is_some() || self.sequences.is_some()
    }

    /// Checks the shapes and returns the sizes.
    ///
    /// # Errors
    ///
    /// As [`Sizes::new`].
    pub(super) fn sizes(&self) -> Result<Sizes> {
        Sizes::new(OPERATION, [&self.queries, &self.keys, &self.values])
    }
}

impl Sizes {
    /// Checks the shapes of queries, keys and values and returns their sizes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with all three shapes where they do not meet.
    pub fn new(operation: &'static str, [queries, keys, values]: [&Layout; 3]) -> Result<Sizes> {
        let refused = |wanted: &str| {
            let (queries, keys, values) = (queries.shape(), keys.shape(), values.shape());
            let found =
                format!("queries of shape {queries}, keys of shape {keys} and values of shape {values}");
            Err(Error::invalid(operation, found, wanted))
        };
        let shapes = (&queries.shape()[..], &keys.shape()[..], &values.shape()[..]);
        let (
            &[batch, heads, queries, dimension],
            &[key_batch, key_heads, keys, key_dimension],
            &[value_batch, value_heads, value_length, value_dimension],
        ) = shapes
        else {
            return refused("four axes each: (batch, heads, length, head dimension)");
        };
        if key_batch != batch || value_batch != batch {
            return refused("equal batches");
        }
        if key_dimension != dimension {
            return refused("queries and keys of one head dimension");
        }
        if (value_heads, value_length) != (key_heads, keys) {
            return refused("keys and values of equal heads and lengths");
        }
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            return refused("a number of key heads that divides the query heads");
        }
        Ok(Sizes { batch, heads, key_heads, queries, keys, dimension, value_dimension })
    }
}

/// Returns the address of a layout's first element of 16 bits, and its strides between batches, heads and positions.
pub(super) fn address_and_strides(address: u64, layout: &Layout) -> (u64, [i64; 3]) {
    let strides = layout.strides();
    let stride = |axis: usize| strides.get(axis).copied().unwrap_or(0) as i64;
    (address + (layout.offset() * size_of::<u16>()) as u64, [stride(0), stride(1), stride(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_a_band_are_counted() {
        let count = |band: Band, queries: usize, keys: usize| {
            let is_pair = |query: usize, key: usize| {
                let distance = key as isize - (query + keys) as isize + queries as isize;
                band.before.is_none_or(|before| -distance <= before as isize)
                    && band.after.is_none_or(|after| distance <= after as isize)
            };
            let pairs = (0..queries).flat_map(|query| (0..keys).map(move |key| (query, key)));
            pairs.filter(|&(query, key)| is_pair(query, key)).count() as f64
        };
        for limits in [(None, None), (None, Some(0)), (Some(2), Some(0)), (Some(1), Some(2)), (Some(0), None)]
        {
            let band = Band { before: limits.0, after: limits.1 };
            for (queries, keys) in [(5, 5), (3, 7), (7, 3), (1, 4), (0, 4), (4, 0)] {
                assert_eq!(
                    band.pairs(queries, keys),
                    count(band, queries, keys),
                    "{band:?} {queries} {keys}"
                );
            }
        }
    }
}
