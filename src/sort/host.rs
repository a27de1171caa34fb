//! The CPU implementations: [`argsort_host`], [`search_host`] and [`tally_host`].

use std::sync::{Mutex, PoisonError};

use super::key::SortKey;
use super::radix::{KeyedPosition, allocate, sort};
use super::{Rows, check_length};
use crate::error::{Error, Result};
use crate::threads::{run_on_threads, thread_count};
use crate::types::DType;

/// The elements in a unit of work of a thread.
const UNIT: usize = 1 << 15;

/// Writes the position of each element of a row in sorted order, for each row of `elements`.
///
/// `elements` are the bytes of contiguous rows of `key.dtype()`.
///
/// ```
/// use selvedge::DType;
/// use selvedge::sort::{SortKey, argsort_host};
/// let elements: Vec<u8> = [3i16, -1, 2, 5, 5, 4].iter().flat_map(|x| x.to_ne_bytes()).collect();
/// let mut positions = [0; 6];
/// argsort_host(SortKey::new("argsort", DType::I16, false)?, &elements, 2, &mut positions)?;
/// assert_eq!(positions, [1, 2, 0, 2, 0, 1]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for bytes that are not whole rows, [`Error::LengthMismatch`] for another number of positions,
/// [`Error::OutOfMemory`].
pub fn argsort_host(key: SortKey, elements: &[u8], rows: usize, positions: &mut [i64]) -> Result<()> {
    const OPERATION: &str = "argsort";
    let elements = Elements::new(OPERATION, key, elements)?;
    let rows = Rows::new(OPERATION, elements.count(), rows)?;
    check_length(OPERATION, positions.len(), elements.count())?;
    if elements.count() == 0 {
        return Ok(());
    }
    if key.bits() <= 32 {
        sort_rows::<u64>(elements, rows, positions)
    } else {
        sort_rows::<u128>(elements, rows, positions)
    }
}

fn sort_rows<T: KeyedPosition>(elements: Elements<'_>, rows: Rows, positions: &mut [i64]) -> Result<()> {
    let threads = thread_count();
    // Few long rows are shared by the threads; of many, each thread takes whole ones.
    if rows.length >= 2 * UNIT && rows.count < 2 * threads {
        let mut keyed: Vec<T> = allocate("argsort", rows.length)?;
        let mut spare: Vec<T> = allocate("argsort", rows.length)?;
        for (row, positions) in positions.chunks_exact_mut(rows.length).enumerate() {
            let start = row * rows.length;
            in_units(threads, &mut keyed, |first, keyed| elements.keyed(start + first, first, keyed));
            sort(&mut keyed, &mut spare, elements.key.bits(), threads);
            let keyed = &keyed;
            in_units(threads, positions, |first, positions| {
                let keyed = keyed.iter().skip(first);
                positions.iter_mut().zip(keyed).for_each(|(to, from)| *to = i64::from(from.position()));
            });
        }
        return Ok(());
    }
    let group = (UNIT / rows.length).max(1);
    let work = Mutex::new(positions.chunks_mut(group * rows.length).enumerate());
    let failure = Mutex::new(None);
    run_on_threads(threads.min(rows.count.div_ceil(group)), &|| {
        let memory = || Ok((allocate::<T>("argsort", rows.length)?, allocate::<T>("argsort", rows.length)?));
        let (mut keyed, mut spare) = match memory() {
            Ok(memory) => memory,
            Err(error) => {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return;
            }
        };
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, positions)) = next else { break };
            for (row, positions) in positions.chunks_exact_mut(rows.length).enumerate() {
                elements.keyed((number * group + row) * rows.length, 0, &mut keyed);
                sort(&mut keyed, &mut spare, elements.key.bits(), 1);
                let keyed = keyed.iter();
                positions.iter_mut().zip(keyed).for_each(|(to, from)| *to = i64::from(from.position()));
            }
        }
    });
    // A thread without memory leaves its rows to the others; the calling thread is the last to give up.
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) if work.into_inner().unwrap_or_else(PoisonError::into_inner).next().is_some() => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Runs `work` on units of a slice, with the index of the unit's first element.
fn in_units<T: Send>(threads: usize, slice: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
    let threads = threads.min(slice.len().div_ceil(UNIT));
    let units = Mutex::new(slice.chunks_mut(UNIT).enumerate());
    run_on_threads(threads, &|| {
        loop {
            let next = units.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, unit)) = next else { break };
            work(number * UNIT, unit);
        }
    });
}

/// Elements in memory, read as keys.
#[derive(Clone, Copy)]
struct Elements<'a> {
    key: SortKey,
    bytes: &'a [u8],
}

impl<'a> Elements<'a> {
    fn new(operation: &'static str, key: SortKey, bytes: &'a [u8]) -> Result<Elements<'a>> {
        if !bytes.len().is_multiple_of(key.dtype().size()) {
            let found = format!("{} bytes", bytes.len());
            return Err(Error::invalid(operation, found, format!("whole elements of {}", key.dtype())));
        }
        Ok(Elements { key, bytes })
    }

    fn count(self) -> usize {
        self.bytes.len() / self.key.dtype().size()
    }

    /// Calls `work` with the keys of elements from `start` on.
    #[inline(always)]
    fn for_keys(self, start: usize, count: usize, mut work: impl FnMut(u64)) {
        macro_rules! read {
            ($($size:literal $unsigned:ident: $($dtype:ident)*;)*) => {
                match self.key.dtype() {
                    $($(DType::$dtype => {
                        // The map of a constant dtype leaves no decision to the loop.
                        let key = self.key.of_dtype(DType::$dtype);
                        let bytes = self.bytes.get(start * $size..(start + count) * $size).unwrap_or_default();
                        for element in bytes.chunks_exact($size) {
                            let bits = element.try_into().map_or(0, <$unsigned>::from_ne_bytes);
                            work(key.of_bits(bits.into()));
                        }
                    })*)*
                    DType::C64 | DType::C128 | DType::F8E4M3 | DType::F8E5M2 => {}
                }
            };
        }
        read! {
            1 u8: Bool U8 I8;
            2 u16: U16 I16 F16 BF16;
            4 u32: U32 I32 F32;
            8 u64: U64 I64 F64;
        }
    }

    /// Writes the keys of elements from `start` on, with positions from `position` on.
    fn keyed<T: KeyedPosition>(self, start: usize, position: usize, to: &mut [T]) {
        let count = to.len();
        let (mut position, mut to) = (position as u32, to.iter_mut());
        self.for_keys(start, count, |key| {
            if let Some(to) = to.next() {
                *to = T::new(key, position);
            }
            position = position.wrapping_add(1);
        });
    }

    /// Returns the keys of all elements.
    fn keys(self, operation: &'static str) -> Result<Vec<u64>> {
        let mut keys = allocate(operation, self.count())?;
        in_units(thread_count(), &mut keys, |first, keys| {
            let count = keys.len();
            let mut keys = keys.iter_mut();
            self.for_keys(first, count, |key| keys.next().into_iter().for_each(|to| *to = key));
        });
        Ok(keys)
    }
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
/// As [`argsort_host`].
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
    let sequences = sequences.keys(OPERATION)?;
    in_units(thread_count(), positions, |first, positions| {
        let (mut number, count) = (first, positions.len());
        let mut positions = positions.iter_mut();
        values.for_keys(first, count, |key| {
            let start = number / of_values.length.max(1) * of_sequences.length;
            let sequence = sequences.get(start..start + of_sequences.length).unwrap_or_default();
            let place = sequence.partition_point(|other| if right { *other <= key } else { *other < key });
            positions.next().into_iter().for_each(|to| *to = place as i64);
            number += 1;
        });
    });
    Ok(())
}

/// Adds to each of the counts the number of indices that name it. An index that names none is left out.
///
/// ```
/// use selvedge::sort::tally_host;
/// let mut counts = [0; 3];
/// tally_host(&[2, 0, 2, -1, 3], &mut counts);
/// assert_eq!(counts, [1, 0, 2]);
/// ```
pub fn tally_host(indices: &[i64], counts: &mut [i64]) {
    for index in indices {
        let count = usize::try_from(*index).ok().and_then(|index| counts.get_mut(index));
        count.into_iter().for_each(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a linear congruential generator, of which `mask` leaves some bits.
    fn words(count: usize, mask: u64) -> Vec<u64> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 7 ^ state << 40) & mask
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn rows_are_sorted_alike_with_any_number_of_threads() {
        // Rows below and above the lengths at which the algorithm changes; few distinct keys, and constant digits.
        for (rows, length) in [(1, 1), (7, 100), (3, 5000), (1, 70_001), (70, 3)] {
            for mask in [u64::MAX, 3, 0xffff_0000_0000] {
                let words = words(rows * length, mask);
                let wanted: Vec<i64> = words
                    .chunks(length)
                    .flat_map(|row| {
                        let mut order: Vec<i64> = (0..length as i64).collect();
                        order.sort_by_key(|at| row[*at as usize]);
                        order
                    })
                    .collect();
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                let key = SortKey::new("sort", DType::U64, false).unwrap();
                for threads in [1, 3] {
                    let mut found = vec![0; words.len()];
                    crate::set_threads(threads);
                    argsort_host(key, &bytes, rows, &mut found).unwrap();
                    crate::set_threads(0);
                    assert!(found == wanted, "{rows} rows of {length}, mask {mask:x}, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let key = SortKey::new("sort", DType::U16, false).unwrap();
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert!(text(argsort_host(key, &[0; 3], 1, &mut [0])).contains("3 bytes"));
        assert!(text(argsort_host(key, &[0; 6], 2, &mut [0; 3])).contains("3 elements in 2 rows"));
        assert!(argsort_host(key, &[0; 6], 1, &mut [0; 2]).is_err());
        assert!(argsort_host(key, &[0; 6], 0, &mut [0; 3]).is_err());
        argsort_host(key, &[], 0, &mut []).unwrap();
        search_host(key, &[], &[0; 4], 1, true, &mut [7; 2]).unwrap();
        assert!(search_host(key, &[0; 6], &[0; 8], 3, true, &mut [0; 4]).is_err());
    }
}
