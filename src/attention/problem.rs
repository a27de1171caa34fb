//! The description of an attention: dtype, layouts, scale and band.

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
}

/// An attention: layouts of (batch, heads, length, head dimension), in elements of one dtype, the band and the scale.
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
}

/// The sizes of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub batch: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub dimension: usize,
    pub value_dimension: usize,
}

impl Problem {
    /// Checks the shapes and returns the sizes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with all three shapes where they do not meet.
    pub(super) fn sizes(&self) -> Result<Sizes> {
        let refused = |wanted: &str| {
            let (queries, keys, values) = (self.queries.shape(), self.keys.shape(), self.values.shape());
            let found =
                format!("queries of shape {queries}, keys of shape {keys} and values of shape {values}");
            Err(Error::invalid(OPERATION, found, wanted))
        };
        let shapes = (&self.queries.shape()[..], &self.keys.shape()[..], &self.values.shape()[..]);
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
