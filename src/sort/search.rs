//! The CPU's binary search, [`search_host`], and its check of sequences, [`first_unsorted_host`].

use std::sync::atomic::{AtomicUsize, Ordering};

use super::elements::Elements;
use super::host::UNIT;
use super::key::SortKey;
use super::{Rows, check_length};
use crate::error::Result;
use crate::threads::{in_units, run_on_threads, thread_count};

/// The elements of the sequences for each value above which a search maps only those elements to keys that it reads.
const SPARSE: usize = 64;

/// Returns the row and the position in it of the first element that comes before its predecessor, if there is one.
///
/// # Errors
///
/// As [`argsort_host`](super::argsort_host).
pub fn first_unsorted_host(key: SortKey, elements: &[u8], rows: usize) -> Result<Option<(usize, usize)>> {
    const OPERATION: &str = "searchsorted";
    let elements = Elements::new(OPERATION, key, elements)?;
    let (count, length) = (elements.count(), Rows::new(OPERATION, elements.count(), rows)?.length);
    let (next, found) = (AtomicUsize::new(0), AtomicUsize::new(count));
    run_on_threads(thread_count().min(count.div_ceil(UNIT)), &|| {
        loop {
            let start = next.fetch_add(1, Ordering::Relaxed) * UNIT;
            // Threads take the units in order, so all before the first decrease are read.
            let end = found.load(Ordering::Relaxed);
            if start >= end {
                break;
            }
            if let Some(at) = elements.first_decrease(start..end.min(start + UNIT), length) {
                found.fetch_min(at, Ordering::Relaxed);
            }
        }
    });
    let at = found.into_inner();
    Ok((at < count).then(|| (at / length, at % length)))
}

/// Writes, for each value, the number of elements of its sorted row that come before it: those less than the value, or, if
/// `right`, those not greater than it.
///
/// `sequences` and `values` are the bytes of as many contiguous rows of `key.dtype()`. In a row that is not sorted the result
/// is some number up to the row's length.
///
/// ```
/// use selvedge::DType;
/// use selvedge::sort::{SortKey, search_host};
/// let key = SortKey::new("search", DType::U8, false)?;
/// let mut positions = [0; 3];
/// search_host(key, &[1, 3, 3, 5], &[0, 3, 9], 1, false, &mut positions)?;
/// assert_eq!(positions, [0, 1, 4]);
/// search_host(key, &[1, 3, 3, 5], &[0, 3, 9], 1, true, &mut positions)?;
/// assert_eq!(positions, [0, 3, 4]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// As [`argsort_host`](super::argsort_host).
pub fn search_host(
    key: SortKey,
    sequences: &[u8],
    values: &[u8],
    rows: usize,
    right: bool,
    positions: &mut [i64],
) -> Result<()> {
    const OPERATION: &str = "searchsorted";
    let (sequences, values) =
        (Elements::new(OPERATION, key, sequences)?, Elements::new(OPERATION, key, values)?);
    let of_sequences = Rows::new(OPERATION, sequences.count(), rows)?;
    let of_values = Rows::new(OPERATION, values.count(), rows)?;
    check_length(OPERATION, positions.len(), values.count())?;
    if positions.is_empty() {
        return Ok(());
    }
    let length = of_sequences.length;
    let is_before = |other: u64, key: u64| if right { other <= key } else { other < key };
    // A few values read few elements.
    if values.count() < sequences.count() / SPARSE {
        search_rows(values, (of_values.length, length), positions, |start, key| {
            let (mut first, mut end) = (0, length);
            while first < end {
                let middle = first.midpoint(end);
                match is_before(sequences.key_at(start + middle), key) {
                    true => first = middle + 1,
                    false => end = middle,
                }
            }
            first
        });
        return Ok(());
    }
    let sequences = sequences.keys(OPERATION)?;
    search_rows(values, (of_values.length, length), positions, |start, key| {
        let sequence = sequences.get(start..start + length).unwrap_or_default();
        sequence.partition_point(|other| is_before(*other, key))
    });
    Ok(())
}

/// Writes what `find` returns for the first element of each value's sequence and the value's key. The lengths are those of rows
/// of values and of sequences.
fn search_rows(
    values: Elements<'_>,
    (of_values, of_sequences): (usize, usize),
    positions: &mut [i64],
    find: impl Fn(usize, u64) -> usize + Sync,
) {
    in_units(thread_count(), UNIT, positions, |first, positions| {
        let (mut index, count, mut positions) = (first, positions.len(), positions.iter_mut());
        values.for_keys(first, count, |keys| {
            for (key, to) in keys.iter().zip(positions.by_ref()) {
                *to = find(index / of_values.max(1) * of_sequences, *key) as i64;
                index += 1;
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::super::host::sort_values_host;
    use super::super::host::tests::words;
    use super::*;
    use crate::types::DType;

    #[test]
    fn the_first_decrease_is_found_with_any_number_of_threads() {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8, DType::Bool] {
            let size = dtype.size();
            let [least, most]: [u64; 2] = match dtype {
                DType::F16 => [0x8000, 0x7e00],
                DType::BF16 => [0x8000, 0x7fc0],
                DType::F32 => [0x8000_0000, 0x7fc0_0000],
                DType::F64 => [1 << 63, 0x7ff8 << 48],
                DType::I64 => [u64::MAX, 5],
                _ => [0, 1],
            };
            // The low bytes of these bits, which both zeros and NaN of both signs follow: no decrease in a row.
            let bytes_of = |bits: u64| bits.to_le_bytes().into_iter().take(size);
            let sign = if dtype.is_float() { 1u64 << (8 * size - 1) } else { 0 };
            for (rows, length) in [(1, 100_000), (25, 4000), (20_000, 5), (1, 1)] {
                let zeros = (length / 2).min(100);
                let element = |at: usize| match at % length {
                    position if position < zeros => {
                        if position % 2 == 0 {
                            least
                        } else {
                            least & !sign
                        }
                    }
                    position => {
                        if position % 3 == 0 {
                            most | sign
                        } else {
                            most
                        }
                    }
                };
                let mut bytes: Vec<u8> = (0..rows * length).flat_map(|at| bytes_of(element(at))).collect();
                let key = SortKey::new("searchsorted", dtype, false).unwrap();
                let check = |bytes: &[u8], wanted: Option<usize>| {
                    for threads in [1, 3] {
                        crate::set_threads(threads);
                        let found = first_unsorted_host(key, bytes, rows).unwrap();
                        crate::set_threads(0);
                        let wanted = wanted.map(|at| (at / length, at % length));
                        assert_eq!(found, wanted, "{dtype}, {rows} rows, {threads} threads");
                    }
                };
                check(&bytes, None);
                // From the end on, so that the newest decrease is the first one.
                let mut positions = vec![32_768, 32_767, 513, 512, 511, zeros + 1];
                positions.retain(|at| at % length > zeros && *at < rows * length);
                for at in positions {
                    let low: Vec<u8> = bytes_of(least).collect();
                    bytes[at * size..(at + 1) * size].copy_from_slice(&low);
                    check(&bytes, Some(at));
                }
            }
        }
    }

    #[test]
    fn a_few_values_find_the_places_that_many_do() {
        for dtype in [DType::F32, DType::I16, DType::U64] {
            let key = SortKey::new("searchsorted", dtype, false).unwrap();
            for (rows, length) in [(1, 5000), (4, 1000)] {
                let elements = words(rows * length * dtype.size() / 8, u64::MAX);
                let bytes: Vec<u8> = elements.iter().flat_map(|word| word.to_ne_bytes()).collect();
                let mut sorted = vec![0; bytes.len()];
                sort_values_host(key, &bytes, rows, &mut sorted).unwrap();
                for right in [false, true] {
                    let mut many = vec![0; rows * length];
                    search_host(key, &sorted, &bytes, rows, right, &mut many).unwrap();
                    // The first values of each row alone.
                    let few: Vec<u8> = bytes
                        .chunks(length * dtype.size())
                        .flat_map(|row| &row[..3 * dtype.size()])
                        .copied()
                        .collect();
                    let mut found = vec![0; 3 * rows];
                    search_host(key, &sorted, &few, rows, right, &mut found).unwrap();
                    let wanted: Vec<i64> = many.chunks(length).flat_map(|row| &row[..3]).copied().collect();
                    assert_eq!(found, wanted, "{dtype}, {rows} rows, right: {right}");
                }
            }
        }
    }
}
