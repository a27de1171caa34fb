//! Stable sorting of rows, binary search in sorted rows, and counting, on memory of the CPU and of CUDA devices.
//!
//! The module knows dtypes, bytes and rows, not tensors. Memory holds contiguous rows of equal length, and a row is sorted by
//! itself. [`argsort`] and [`argsort_host`] return positions. Elements keep their bits in [`sort()`], in [`sort_values`] and in a
//! caller's gather, so NaN payloads and the sign of zero survive.
//!
//! | function | result |
//! |---|---|
//! | [`argsort`], [`argsort_host`] | the position in its row of each element in sorted order |
//! | [`sort()`] | the elements of each row in sorted order, with these positions |
//! | [`sort_values`], [`sort_values_host`] | the elements of each row in sorted order |
//! | [`topk`] | the positions of the first elements of each row in sorted order |
//! | [`search`], [`search_host`] | for each value, the number of elements of a sorted row that come before it |
//! | [`tally`], [`tally_host`] | the number of occurrences of each index |
//! | [`count_in_range`], [`count_between_edges`] | the number of elements in each bin |
//! | [`Selection`], [`true_positions_host`] | the positions of the elements that are not 0, or the elements at them |
//!
//! The order is that of [`SortKey`]: every function compares unsigned integers that a key map makes of the elements. Real
//! numbers are in numeric order, -0 equals 0, and every NaN equals every other NaN and comes after all numbers, as in
//! PyTorch. A descending order is the exact opposite, so NaN comes first. Both orders are stable.
//!
//! Invariants: equal input gives equal positions on the CPU, with any number of threads, and on every device, because the
//! order of distinct positions is total. A row has fewer than 2^32 elements, on a device some thousand fewer.
//!
//! Tests: in the files, `tests/fake/emulated/sort.rs`, `tests/fake/emulated/select.rs`, `tests/fake/emulated/histogram.rs`,
//! `tests/fake/emulated/topk.rs`, `tests/tensor/sorting.rs`.

mod device;
mod elements;
mod histogram;
mod host;
mod key;
mod onesweep;
mod radix;
mod search;
mod select;
mod topk;

pub use device::{argsort, search, sort, sort_values};
pub use histogram::{MAX_BINS, count_between_edges, count_in_range, tally};
pub use host::{argsort_host, sort_values_host, tally_host};
pub use key::SortKey;
pub use search::{first_unsorted_host, search_host};
pub use select::{Selection, true_positions_host};
pub use topk::{has_topk, topk};

use crate::error::{Error, Result};
use crate::trace;

/// The number and length of contiguous rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rows {
    count: usize,
    length: usize,
}

impl Rows {
    /// Divides so many elements into rows.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number of rows that does not divide the elements, or rows of 2^32 elements and more.
    fn new(operation: &'static str, elements: usize, count: usize) -> Result<Rows> {
        let length = elements.checked_div(count).unwrap_or(0);
        if length.checked_mul(count) != Some(elements) {
            let found = format!("{elements} elements in {count} rows");
            return Err(Error::invalid(operation, found, "rows of one length"));
        }
        if length > u32::MAX as usize {
            let found = format!("rows of {length} elements");
            return Err(Error::invalid(operation, found, format!("at most {} elements a row", u32::MAX)));
        }
        Ok(Rows { count, length })
    }

    /// The call of an engine on these rows in a trace.
    fn traced(self, operation: &'static str, key: SortKey, planned: &'static str) -> trace::Range {
        trace::span("engine", || {
            let rows = format!("{} x {}", self.count, self.length);
            let dtype = key.dtype().name();
            (
                operation.into(),
                vec![("rows", rows.into()), ("dtype", dtype.into()), ("engine", planned.into())],
            )
        })
    }
}

/// # Errors
///
/// [`Error::LengthMismatch`].
fn check_length(operation: &'static str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(Error::LengthMismatch { operation, wanted, found }) }
}
