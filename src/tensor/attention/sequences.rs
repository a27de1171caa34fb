//! The offsets and lengths of sequences of different lengths: a table for an engine, and a mask for the products and the softmax.

use super::super::device::Device;
use super::super::tensor::{Tensor, mismatch};
use super::OPERATION;
use super::options::SequenceLengths;
use crate::attention::{Band, Sequences};
use crate::error::{Error, Result};
use crate::types::DType;

/// Sequences in arrays of so many queries and keys.
#[derive(Clone)]
pub(super) struct SequenceOffsets {
    pub sequences: Sequences,
    /// The first query, the number of queries, the first key and the number of keys of each, i32 of shape (sequences, 4).
    pub table: Tensor,
}

impl SequenceOffsets {
    /// Returns the offsets of sequences.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for offsets that fall or leave the arrays, another number of them, or a batch that does not fit;
    /// [`Error::DTypeMismatch`] for lengths that are no integers; [`Error::DeviceMismatch`] for lengths elsewhere. Lengths that leave
    /// the arrays are an error of indexing: at once on the CPU, at the next wait on a device.
    pub fn new(
        lengths: &SequenceLengths,
        [batch, queries, keys]: [usize; 3],
        device: &Device,
    ) -> Result<SequenceOffsets> {
        match lengths {
            SequenceLengths::Packed { query_offsets, key_offsets } => {
                packed([query_offsets, key_offsets], [batch, queries, keys], device)
            }
            SequenceLengths::Padded { queries: of_queries, keys: of_keys } => {
                let first = Tensor::zeros(&[batch], DType::I32, device)?;
                let query_counts = counts("query lengths", of_queries.as_ref(), batch, queries, device)?;
                let key_counts = counts("key lengths", of_keys.as_ref(), batch, keys, device)?;
                let table = Tensor::stack(&[&first, &query_counts, &first, &key_counts], 1)?;
                let (max_queries, max_keys) = (queries, keys);
                let sequences = Sequences { count: batch, is_packed: false, max_queries, max_keys };
                Ok(SequenceOffsets { sequences, table })
            }
        }
    }

    /// Returns bools of (batch, 1, length, 1) that are true for queries and for keys of a sequence.
    ///
    /// # Errors
    ///
    /// As operations.
    pub fn inside(&self, queries: usize, keys: usize) -> Result<[Tensor; 2]> {
        let device = self.table.device();
        let Sequences { count, is_packed, .. } = self.sequences;
        let of = |first: usize, length: usize| {
            let column = |index: usize| self.table.narrow(1, index, 1)?.reshape(&[count as isize, 1, 1, 1]);
            let positions = Tensor::arange(0, length, 1, DType::I32, &device)?.unsqueeze(-1)?;
            let position = (&positions - &column(first)?)?;
            let is_inside = position.ge(0)?.logical_and(&position.lt(&column(first + 1)?)?)?;
            if is_packed { is_inside.any_keepdim(0) } else { Ok(is_inside) }
        };
        Ok([of(0, queries)?, of(2, keys)?])
    }

    /// Returns bools of (batch, 1, query, key) that are true where a query reads a key of its sequence's band.
    ///
    /// # Errors
    ///
    /// As operations.
    pub fn mask(&self, band: Band, queries: usize, keys: usize) -> Result<Tensor> {
        let device = self.table.device();
        let Sequences { count, is_packed, .. } = self.sequences;
        let column = |index: usize| self.table.narrow(1, index, 1)?.reshape(&[count as isize, 1, 1, 1]);
        let [first_query, query_count, first_key, key_count] =
            [column(0)?, column(1)?, column(2)?, column(3)?];
        let query = Tensor::arange(0, queries, 1, DType::I32, &device)?.unsqueeze(-1)?;
        let query = (&query - &first_query)?;
        let key = (&Tensor::arange(0, keys, 1, DType::I32, &device)? - &first_key)?;
        let inside = |position: &Tensor, count: &Tensor| position.ge(0)?.logical_and(&position.lt(count)?);
        let is_inside = inside(&query, &query_count)?.logical_and(&inside(&key, &key_count)?)?;
        let position = (&query + &(&key_count - &query_count)?)?;
        let is_inside = is_inside.logical_and(&in_band(band, &position, &key)?)?;
        // A position is of one sequence at most.
        if is_packed { is_inside.any_keepdim(0) } else { Ok(is_inside) }
    }
}

/// Returns bools that are true where a query at a position reads a key.
///
/// # Errors
///
/// As operations.
pub(super) fn in_band(band: Band, position: &Tensor, key: &Tensor) -> Result<Tensor> {
    let distance = (key - position)?;
    let limit = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX).min(i64::from(i32::MAX / 2));
    let mut is_read = distance.ge(i64::from(-(i32::MAX / 2)))?;
    if let Some(before) = band.before {
        is_read = is_read.logical_and(&distance.ge(-limit(before))?)?;
    }
    if let Some(after) = band.after {
        is_read = is_read.logical_and(&distance.le(limit(after))?)?;
    }
    Ok(is_read)
}

/// Returns the offsets of sequences one after the other.
fn packed(
    offsets: [&Vec<usize>; 2],
    [batch, queries, keys]: [usize; 3],
    device: &Device,
) -> Result<SequenceOffsets> {
    if batch != 1 {
        return Err(Error::invalid(
            OPERATION,
            format!("packed sequences in a batch of {batch}"),
            "a batch of 1",
        ));
    }
    for (name, offsets, length) in [("query", offsets[0], queries), ("key", offsets[1], keys)] {
        let falls = offsets.windows(2).position(|pair| pair[0] > pair[1]);
        if let Some(at) = falls {
            let found = format!("{name} offsets that fall from {} to {}", offsets[at], offsets[at + 1]);
            return Err(Error::invalid(OPERATION, found, "ascending offsets"));
        }
        match offsets.last() {
            Some(end) if *end > length => {
                let found = format!("{name} offsets up to {end}");
                return Err(Error::invalid(
                    OPERATION,
                    found,
                    format!("at most {length}, the length of the array"),
                ));
            }
            Some(_) => {}
            None => {
                return Err(Error::invalid(
                    OPERATION,
                    format!("no {name} offsets"),
                    "one more than sequences",
                ));
            }
        }
    }
    let count = offsets[0].len() - 1;
    if offsets[1].len() != count + 1 {
        let found = format!("{} query offsets and {} key offsets", offsets[0].len(), offsets[1].len());
        return Err(Error::invalid(OPERATION, found, "as many of both"));
    }
    let mut table = Vec::with_capacity(4 * count);
    let mut most = [0; 2];
    for index in 0..count {
        for (which, offsets) in offsets.iter().enumerate() {
            let (first, end) = (offsets[index], offsets[index + 1]);
            most[which] = most[which].max(end - first);
            for value in [first, end - first] {
                let value = i32::try_from(value)
                    .map_err(|_| Error::invalid(OPERATION, format!("position {value}"), "fewer than 2^31"))?;
                table.push(value);
            }
        }
    }
    let table = Tensor::from_slice(&table, &[count, 4], device)?;
    let [max_queries, max_keys] = most;
    Ok(SequenceOffsets { sequences: Sequences { count, is_packed: true, max_queries, max_keys }, table })
}

/// Returns the lengths of batches as i32, each of which is checked.
fn counts(
    name: &str,
    lengths: Option<&Tensor>,
    batch: usize,
    most: usize,
    device: &Device,
) -> Result<Tensor> {
    let Some(lengths) = lengths else { return Tensor::full(&[batch], most as i64, DType::I32, device) };
    if lengths.shape()[..] != [batch] {
        let found = format!("{name} of shape {}", lengths.shape());
        return Err(Error::invalid(OPERATION, found, format!("shape ({batch})")));
    }
    if lengths.device() != *device {
        return Err(mismatch(OPERATION, lengths.device(), *device));
    }
    lengths.checked_lengths(most)
}
