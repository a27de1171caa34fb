//! The CPU implementations: [`argsort_host`], [`sort_values_host`], [`search_host`] and [`tally_host`].

use std::ops::{BitOr, Range, Shl};
use std::sync::{Mutex, PoisonError};

use super::key::SortKey;
use super::radix::{KeyWord, POSITION_BITS, allocate, sort};
use super::{Rows, check_length};
use crate::error::{Error, Result};
use crate::threads::{in_units, run_on_threads, thread_count};
use crate::types::DType;

/// The elements in a unit of work of a thread.
const UNIT: usize = 1 << 15;
/// The keys that are read at a time, so that the cache holds them.
const BLOCK: usize = 512;

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
    match key.bits() <= 32 {
        true => write_positions::<u64>(OPERATION, elements, rows, positions),
        false => write_positions::<u128>(OPERATION, elements, rows, positions),
    }
}

/// Writes the positions of elements by sorting words of a key and a position.
fn write_positions<T: KeyWord + From<u64> + Shl<u32, Output = T> + BitOr<Output = T>>(
    operation: &'static str,
    elements: Elements<'_>,
    rows: Rows,
    positions: &mut [i64],
) -> Result<()> {
    sort_rows::<T, i64>(
        operation,
        (rows, POSITION_BITS..POSITION_BITS + elements.key.bits()),
        (positions, 1),
        &|first, position, words| {
            let keyed = |key, at| T::from(key) << POSITION_BITS | T::from(at);
            elements.keyed(first, position, words, keyed);
        },
        &|words, positions| {
            positions.iter_mut().zip(words).for_each(|(to, word)| *to = i64::from(word.position()));
        },
        &|_, _, _| {},
    )
}

/// Writes the elements of each row of `elements` in sorted order, as many bytes. Elements keep their bits, and equal ones their
/// order.
///
/// ```
/// use selvedge::DType;
/// use selvedge::sort::{SortKey, sort_values_host};
/// let mut sorted = [0; 6];
/// sort_values_host(SortKey::new("sorted", DType::U8, true)?, &[3, 1, 2, 5, 5, 4], 2, &mut sorted)?;
/// assert_eq!(sorted, [3, 2, 1, 5, 5, 4]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// As [`argsort_host`].
pub fn sort_values_host(key: SortKey, elements: &[u8], rows: usize, sorted: &mut [u8]) -> Result<()> {
    const OPERATION: &str = "sorted";
    check_length(OPERATION, sorted.len(), elements.len())?;
    let elements = Elements::new(OPERATION, key, elements)?;
    let rows = Rows::new(OPERATION, elements.count(), rows)?;
    if elements.count() == 0 {
        return Ok(());
    }
    let (size, inverse) = (key.dtype().size(), key.inverse());
    if size <= 4 {
        sort_rows::<u32, u8>(
            OPERATION,
            (rows, 0..key.bits()),
            (sorted, size),
            &|first, position, words| elements.keyed(first, position, words, |key, _| key as u32),
            &|words, bytes| match size {
                1 => bytes
                    .iter_mut()
                    .zip(words)
                    .for_each(|(to, word)| *to = inverse.bits_of(u64::from(*word)) as u8),
                2 => write_elements(words, bytes, |word| {
                    (inverse.bits_of(u64::from(word)) as u16).to_ne_bytes()
                }),
                _ => write_elements(words, bytes, |word| {
                    (inverse.bits_of(u64::from(word)) as u32).to_ne_bytes()
                }),
            },
            &|words, row, bytes| elements.restore_bits(words, row * rows.length, bytes),
        )
    } else {
        sort_rows::<u64, u8>(
            OPERATION,
            (rows, 0..key.bits()),
            (sorted, size),
            &|first, position, words| elements.keyed(first, position, words, |key, _| key),
            &|words, bytes| write_elements(words, bytes, |word| inverse.bits_of(word).to_ne_bytes()),
            &|words, row, bytes| elements.restore_bits(words, row * rows.length, bytes),
        )
    }
}

fn write_elements<T: Copy, const SIZE: usize>(words: &[T], bytes: &mut [u8], bits: impl Fn(T) -> [u8; SIZE]) {
    bytes.chunks_exact_mut(SIZE).zip(words).for_each(|(to, word)| to.copy_from_slice(&bits(*word)));
}

/// Reads words of the elements from the first argument on, the positions of which in their row begin at the second one.
type ReadWords<'a, T> = &'a (dyn Fn(usize, usize, &mut [T]) + Sync);
/// Writes the results of sorted words.
type WriteResults<'a, T, R> = &'a (dyn Fn(&[T], &mut [R]) + Sync);
/// Completes the results of a whole row: its words, its number and its results.
type FinishRow<'a, T, R> = &'a (dyn Fn(&[T], usize, &mut [R]) + Sync);

/// Sorts rows by the keys in these bits of words, and writes so many results an element.
fn sort_rows<T: KeyWord, R: Send>(
    operation: &'static str,
    (rows, bits): (Rows, Range<u32>),
    (results, width): (&mut [R], usize),
    read: ReadWords<'_, T>,
    write: WriteResults<'_, T, R>,
    finish: FinishRow<'_, T, R>,
) -> Result<()> {
    let threads = thread_count();
    // Few long rows are shared by the threads; of many, each thread takes whole ones.
    if rows.length >= 2 * UNIT && rows.count < 2 * threads {
        let mut words: Vec<T> = allocate(operation, rows.length)?;
        let mut spare: Vec<T> = allocate(operation, rows.length)?;
        for (row, results) in results.chunks_exact_mut(rows.length * width).enumerate() {
            let start = row * rows.length;
            in_units(threads, UNIT, &mut words, |first, words| read(start + first, first, words));
            sort(&mut words, &mut spare, bits.clone(), threads);
            let words = &words;
            in_units(threads, UNIT * width, results, |first, results| {
                let (first, count) = (first / width, results.len() / width);
                write(words.get(first..first + count).unwrap_or_default(), results);
            });
            finish(words, row, results);
        }
        return Ok(());
    }
    let group = (UNIT / rows.length).max(1);
    let work = Mutex::new(results.chunks_mut(group * rows.length * width).enumerate());
    let failure = Mutex::new(None);
    run_on_threads(threads.min(rows.count.div_ceil(group)), &|| {
        let memory = || Ok((allocate::<T>(operation, rows.length)?, allocate::<T>(operation, rows.length)?));
        let (mut words, mut spare) = match memory() {
            Ok(memory) => memory,
            Err(error) => {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return;
            }
        };
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, results)) = next else { break };
            for (row, results) in results.chunks_exact_mut(rows.length * width).enumerate() {
                let row = number * group + row;
                read(row * rows.length, 0, &mut words);
                sort(&mut words, &mut spare, bits.clone(), 1);
                write(&words, results);
                finish(&words, row, results);
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

    /// Writes the keys of elements from `start` on.
    fn read(self, start: usize, to: &mut [u64]) {
        macro_rules! read {
            ($($size:literal $unsigned:ident: $($dtype:ident)*;)*) => {
                match self.key.dtype() {
                    $($(DType::$dtype => {
                        // The map of a constant dtype leaves no decision to the loop.
                        let key = self.key.of_dtype(DType::$dtype);
                        let bytes = self.bytes.get(start * $size..(start + to.len()) * $size).unwrap_or_default();
                        for (to, element) in to.iter_mut().zip(bytes.chunks_exact($size)) {
                            let bits = element.try_into().map_or(0, <$unsigned>::from_ne_bytes);
                            *to = key.of_bits(bits.into());
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

    /// Calls `work` with the keys of elements from `start` on, a block at a time. An iterator over more than the block comes
    /// second in a `zip` with the keys, so that the last block's end takes none of it.
    #[inline(always)]
    fn for_keys(self, start: usize, count: usize, mut work: impl FnMut(&[u64])) {
        let mut keys = [0; BLOCK];
        for first in (0..count).step_by(BLOCK) {
            let keys = keys.get_mut(..BLOCK.min(count - first)).unwrap_or_default();
            self.read(start + first, keys);
            work(keys);
        }
    }

    /// Writes words of the keys of elements from `start` on, and of positions from `position` on.
    #[inline(always)]
    fn keyed<T>(self, start: usize, position: usize, to: &mut [T], word: impl Fn(u64, u64) -> T) {
        let (mut position, count) = (position as u64, to.len());
        let mut to = to.iter_mut();
        self.for_keys(start, count, |keys| {
            for (key, to) in keys.iter().zip(to.by_ref()) {
                *to = word(*key, position);
                position += 1;
            }
        });
    }

    /// Returns the keys of all elements.
    fn keys(self, operation: &'static str) -> Result<Vec<u64>> {
        let mut keys = allocate(operation, self.count())?;
        in_units(thread_count(), UNIT, &mut keys, |first, keys| self.read(first, keys));
        Ok(keys)
    }

    /// Writes the elements of a row again whose key others of other bits have, in the order in which they are in the row.
    fn restore_bits<T: Copy + Into<u64>>(self, sorted: &[T], start: usize, results: &mut [u8]) {
        let size = self.key.dtype().size();
        for shared in self.key.shared_keys() {
            let first = sorted.partition_point(|key| (*key).into() < shared);
            let count = sorted.partition_point(|key| (*key).into() <= shared) - first;
            let run = results.get_mut(first * size..(first + count) * size).unwrap_or_default();
            let mut run = run.chunks_exact_mut(size).peekable();
            let mut row = self.bytes.get(start * size..).unwrap_or_default().chunks_exact(size);
            let mut left = sorted.len();
            // The search ends with the last one.
            while left > 0 && run.peek().is_some() {
                let block = left.min(BLOCK);
                self.for_keys(start + sorted.len() - left, block, |keys| {
                    for (key, element) in keys.iter().zip(row.by_ref()) {
                        if *key == shared {
                            run.next().into_iter().for_each(|to| to.copy_from_slice(element));
                        }
                    }
                });
                left -= block;
            }
        }
    }
}

/// Returns the row and the place in it of the first element that comes before its predecessor, if there is one.
///
/// # Errors
///
/// As [`argsort_host`].
pub fn first_unsorted_host(key: SortKey, elements: &[u8], rows: usize) -> Result<Option<(usize, usize)>> {
    const OPERATION: &str = "searchsorted";
    let elements = Elements::new(OPERATION, key, elements)?;
    let length = Rows::new(OPERATION, elements.count(), rows)?.length;
    for row in 0..rows {
        let (mut previous, mut place, mut found) = (0, 0, None);
        elements.for_keys(row * length, length, |keys| {
            // Without a decision for each key, since nearly every row is sorted.
            let before = std::iter::once(previous).chain(keys.iter().copied());
            let is_sorted =
                keys.iter().zip(before).fold(true, |sorted, (key, before)| sorted & (before <= *key));
            if !is_sorted && found.is_none() {
                let before = std::iter::once(previous).chain(keys.iter().copied());
                found = keys.iter().zip(before).position(|(key, before)| before > *key).map(|at| place + at);
            }
            previous = keys.last().copied().unwrap_or(previous);
            place += keys.len();
        });
        if let Some(place) = found {
            return Ok(Some((row, place)));
        }
    }
    Ok(None)
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
    in_units(thread_count(), UNIT, positions, |first, positions| {
        let (mut number, count, mut positions) = (first, positions.len(), positions.iter_mut());
        values.for_keys(first, count, |keys| {
            for (key, to) in keys.iter().zip(positions.by_ref()) {
                let start = number / of_values.length.max(1) * of_sequences.length;
                let sequence = sequences.get(start..start + of_sequences.length).unwrap_or_default();
                *to = sequence.partition_point(|other| if right { other <= key } else { other < key }) as i64;
                number += 1;
            }
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
                    let mut sorted = vec![0; bytes.len()];
                    sort_values_host(key, &bytes, rows, &mut sorted).unwrap();
                    crate::set_threads(0);
                    let subject = format!("{rows} rows of {length}, mask {mask:x}, {threads} threads");
                    assert!(found == wanted, "{subject}");
                    let at = |(place, at): (usize, &i64)| words[place / length * length + *at as usize];
                    let values = wanted.iter().enumerate().map(at);
                    assert!(values.flat_map(u64::to_ne_bytes).eq(sorted), "{subject}");
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
        assert!(sort_values_host(key, &[0; 6], 1, &mut [0; 4]).is_err());
        assert!(text(sort_values_host(key, &[0; 3], 1, &mut [0; 3])).contains("3 bytes"));
        search_host(key, &[], &[0; 4], 1, true, &mut [7; 2]).unwrap();
        assert!(search_host(key, &[0; 6], &[0; 8], 3, true, &mut [0; 4]).is_err());
    }
}
