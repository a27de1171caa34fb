//! Sorting of keys on the CPU, with their positions or alone.
//!
//! A key and its position are one integer, the position in the lower 32 bits. Distinct positions make the integers distinct,
//! so any sorting algorithm gives the same result, and it is stable. Short rows use the comparison sort of the standard
//! library, long rows a radix sort by the least significant digit first, whose passes are shared by threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::driver::prefer_large_pages;
use crate::error::{Error, Result};
use crate::threads::run_on_threads;

/// The bits of a position, below its key.
pub(super) const POSITION_BITS: u32 = 32;

/// An integer that holds a key.
pub(super) trait KeyWord: Copy + Ord + Default + Send + Sync {
    /// Returns the digit that begins at this bit.
    fn digit(self, shift: u32) -> usize;

    /// Returns the low bits, which are a position in words of a key and a position.
    fn position(self) -> u32;
}

macro_rules! key_words {
    ($($integer:ident)*) => {
        $(impl KeyWord for $integer {
            #[inline(always)]
            fn digit(self, shift: u32) -> usize {
                (self >> shift) as usize & (DIGITS - 1)
            }

            #[inline(always)]
            fn position(self) -> u32 {
                self as u32
            }
        })*
    };
}
key_words!(u32 u64 u128);

/// A pass sorts by so many bits: three passes for 32-bit keys, six for 64-bit keys.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
/// The fewest elements for which a radix sort is faster than a comparison sort.
const MIN_RADIX: usize = 1 << 12;
/// The fewest elements that are worth a second thread.
const ELEMENTS_OF_A_THREAD: usize = 1 << 15;

/// Returns a vector of default elements, or the error of a host without memory for it.
pub(super) fn allocate<T: Copy + Default>(operation: &'static str, length: usize) -> Result<Vec<T>> {
    let mut vector: Vec<T> = Vec::new();
    let none = |_| Error::host_memory(length.saturating_mul(size_of::<T>()), operation);
    vector.try_reserve_exact(length).map_err(none)?;
    prefer_large_pages(vector.as_mut_ptr().cast(), length * size_of::<T>());
    vector.resize(length, T::default());
    Ok(vector)
}

/// A pointer that several threads write through, each to elements of its own.
struct Destination<T>(*mut T);

// SAFETY: `scatter` gives each element to one thread.
unsafe impl<T: Send> Sync for Destination<T> {}

/// Sorts `elements` in place by the keys in these bits, with at most so many threads. `spare` has the same length. Bits below
/// the keys are in order already, and those above them are equal.
pub(super) fn sort<T: KeyWord>(elements: &mut [T], spare: &mut [T], bits: Range<u32>, threads: usize) {
    if elements.len() < MIN_RADIX {
        return elements.sort_unstable();
    }
    let threads = threads.min(elements.len() / ELEMENTS_OF_A_THREAD).max(1);
    let chunk = elements.len().div_ceil(threads);
    let mut counts = vec![[0usize; DIGITS]; elements.len().div_ceil(chunk)];
    let (mut from, mut to) = (elements, spare);
    let mut is_swapped = false;
    for shift in bits.step_by(DIGIT_BITS as usize) {
        count(from, chunk, shift, &mut counts, threads);
        if !to_offsets(&mut counts, from.len()) {
            // All keys have one digit here.
            continue;
        }
        scatter(from, to, chunk, shift, &mut counts, threads);
        std::mem::swap(&mut from, &mut to);
        is_swapped = !is_swapped;
    }
    if is_swapped {
        // `from`, the sorted elements, is the spare memory.
        to.copy_from_slice(from);
    }
}

/// Counts the digits of each chunk.
fn count<T: KeyWord>(from: &[T], chunk: usize, shift: u32, counts: &mut [[usize; DIGITS]], threads: usize) {
    let work = Mutex::new(from.chunks(chunk).zip(counts.iter_mut()));
    run_on_threads(threads, &|| {
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((elements, counts)) = next else { break };
            counts.fill(0);
            for element in elements {
                counts[element.digit(shift)] += 1;
            }
        }
    });
}

/// Replaces counts by the offsets of each chunk's first element with each digit. Returns false if one digit has all elements.
fn to_offsets(counts: &mut [[usize; DIGITS]], elements: usize) -> bool {
    let mut offset = 0;
    for digit in 0..DIGITS {
        let before = offset;
        for of_chunk in counts.iter_mut() {
            offset += std::mem::replace(&mut of_chunk[digit], offset);
        }
        if offset - before == elements {
            return false;
        }
    }
    true
}

/// Moves each chunk's elements to their offsets.
fn scatter<T: KeyWord>(
    from: &[T],
    to: &mut [T],
    chunk: usize,
    shift: u32,
    offsets: &mut [[usize; DIGITS]],
    threads: usize,
) {
    let length = to.len();
    let destination = Destination(to.as_mut_ptr());
    let work = Mutex::new(from.chunks(chunk).zip(offsets.iter_mut()));
    run_on_threads(threads, &|| {
        let destination = &destination;
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((elements, offsets)) = next else { break };
            for element in elements {
                let offset = &mut offsets[element.digit(shift)];
                if *offset < length {
                    // SAFETY: the offset is inside of the memory. The table divides the offsets among chunks and digits by
                    // the counts of the same elements, so no two elements have the same offset.
                    unsafe { destination.0.add(*offset).write(*element) };
                }
                *offset += 1;
            }
        }
    });
}
