//! The CPU implementations: [`argsort_host`], [`sort_values_host`] and [`tally_host`].

use std::ops::{BitOr, Range, Shl};
use std::sync::{Mutex, PoisonError};

use super::elements::Elements;
use super::key::SortKey;
use super::radix::{KeyWord, POSITION_BITS, allocate, sort};
use super::{Rows, check_length};
use crate::error::Result;
use crate::threads::{in_units, run_on_threads, thread_count};

/// The elements in a unit of work of a thread.
pub(super) const UNIT: usize = 1 << 15;

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
/// [`InvalidArgument`](crate::Error::InvalidArgument) for bytes that are not whole rows,
/// [`LengthMismatch`](crate::Error::LengthMismatch) for another number of positions,
/// [`OutOfMemory`](crate::Error::OutOfMemory).
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
        &|_, _, _, _| {},
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
            &|words, row, bytes, threads| {
                elements.restore_bits(words, row * rows.length, bytes, threads);
            },
        )
    } else {
        sort_rows::<u64, u8>(
            OPERATION,
            (rows, 0..key.bits()),
            (sorted, size),
            &|first, position, words| elements.keyed(first, position, words, |key, _| key),
            &|words, bytes| write_elements(words, bytes, |word| inverse.bits_of(word).to_ne_bytes()),
            &|words, row, bytes, threads| {
                elements.restore_bits(words, row * rows.length, bytes, threads);
            },
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
/// Completes the results of a whole row: its words, its number and its results, on at most so many threads.
type FinishRow<'a, T, R> = &'a (dyn Fn(&[T], usize, &mut [R], usize) + Sync);

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
            finish(words, row, results, threads);
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
            let Some((part_index, results)) = next else { break };
            for (row, results) in results.chunks_exact_mut(rows.length * width).enumerate() {
                let row = part_index * group + row;
                read(row * rows.length, 0, &mut words);
                sort(&mut words, &mut spare, bits.clone(), 1);
                write(&words, results);
                finish(&words, row, results, 1);
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
pub(super) mod tests {
    use super::super::search_host;
    use super::*;
    use crate::types::DType;

    /// Words of a linear congruential generator, of which `mask` leaves some bits.
    pub fn words(count: usize, mask: u64) -> Vec<u64> {
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
                    let at = |(index, at): (usize, &i64)| words[index / length * length + *at as usize];
                    let values = wanted.iter().enumerate().map(at);
                    assert!(values.flat_map(u64::to_ne_bytes).eq(sorted), "{subject}");
                }
            }
        }
    }

    #[test]
    fn elements_of_one_key_keep_their_bits_and_order_with_any_number_of_threads() {
        let special = [0.0, -0.0, f32::NAN, -f32::NAN, f32::from_bits(0x7fc0_1234), 1.0, -1.0];
        for (rows, length) in [(1, 70_001), (3, 5000), (300, 7)] {
            // All kinds of bits, and all but one element with the bits of the map from keys.
            for kinds in [special.len(), 1] {
                let count = rows * length;
                let mut values: Vec<f32> =
                    words(count, u64::MAX).iter().map(|word| special[*word as usize % kinds]).collect();
                values[count - 2] = -0.0;
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
                for is_descending in [false, true] {
                    let key = SortKey::new("sort", DType::F32, is_descending).unwrap();
                    let mut wanted = values.clone();
                    for row in wanted.chunks_mut(length) {
                        row.sort_by_key(|x| key.of_bits(x.to_bits().into()));
                    }
                    let wanted: Vec<u8> = wanted.iter().flat_map(|x| x.to_ne_bytes()).collect();
                    for threads in [1, 3] {
                        let mut sorted = vec![0; bytes.len()];
                        crate::set_threads(threads);
                        sort_values_host(key, &bytes, rows, &mut sorted).unwrap();
                        crate::set_threads(0);
                        assert!(sorted == wanted, "{rows} rows, {kinds} kinds, {threads} threads");
                    }
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
