//! Elements in the CPU's memory, read as keys.

use std::ops::Range;

use super::host::UNIT;
use super::key::SortKey;
use super::radix::allocate;
use crate::error::{Error, Result};
use crate::threads::{in_units, thread_count};
use crate::types::DType;

/// The keys that are read at a time, so that the cache holds them.
const BLOCK: usize = 512;
/// The chunks of a row whose bits threads restore.
const CHUNKS: usize = 64;

/// Elements in memory, read as keys.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    pub key: SortKey,
    bytes: &'a [u8],
}

impl<'a> Elements<'a> {
    pub fn new(operation: &'static str, key: SortKey, bytes: &'a [u8]) -> Result<Elements<'a>> {
        if !bytes.len().is_multiple_of(key.dtype().size()) {
            let found = format!("{} bytes", bytes.len());
            return Err(Error::invalid(operation, found, format!("whole elements of {}", key.dtype())));
        }
        Ok(Elements { key, bytes })
    }

    pub fn count(self) -> usize {
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
    pub fn for_keys(self, start: usize, count: usize, mut work: impl FnMut(&[u64])) {
        let mut keys = [0; BLOCK];
        for first in (0..count).step_by(BLOCK) {
            let keys = keys.get_mut(..BLOCK.min(count - first)).unwrap_or_default();
            self.read(start + first, keys);
            work(keys);
        }
    }

    /// Writes words of the keys of elements from `start` on, and of positions from `position` on.
    #[inline(always)]
    pub fn keyed<T>(self, start: usize, position: usize, to: &mut [T], word: impl Fn(u64, u64) -> T) {
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
    pub fn keys(self, operation: &'static str) -> Result<Vec<u64>> {
        let mut keys = allocate(operation, self.count())?;
        in_units(thread_count(), UNIT, &mut keys, |first, keys| self.read(first, keys));
        Ok(keys)
    }

    /// Returns the key of one element.
    #[inline(always)]
    pub fn key_at(self, index: usize) -> u64 {
        let mut key = [0];
        self.read(index, &mut key);
        key[0]
    }

    /// Returns how many elements in a range have these bits.
    fn count_bits(self, range: Range<usize>, bits: u64) -> usize {
        fn count<const SIZE: usize>(elements: &[u8], bits: [u8; SIZE]) -> usize {
            elements.chunks_exact(SIZE).filter(|element| *element == bits).count()
        }
        let size = self.key.dtype().size();
        let elements = self.bytes.get(range.start * size..range.end * size).unwrap_or_default();
        match size {
            1 => count(elements, (bits as u8).to_ne_bytes()),
            2 => count(elements, (bits as u16).to_ne_bytes()),
            4 => count(elements, (bits as u32).to_ne_bytes()),
            _ => count(elements, bits.to_ne_bytes()),
        }
    }

    /// Returns how many elements in a range have this key.
    fn count_key(self, range: Range<usize>, key: u64) -> usize {
        let mut count = 0;
        self.for_keys(range.start, range.len(), |keys| {
            count += keys.iter().filter(|other| **other == key).count();
        });
        count
    }

    /// Writes the elements in a range that have this key to `results`, which has room for these alone.
    fn write_with_key(self, range: Range<usize>, key: u64, results: &mut [u8]) {
        let size = self.key.dtype().size();
        let mut results = results.chunks_exact_mut(size).peekable();
        let mut elements = self.bytes.get(range.start * size..).unwrap_or_default().chunks_exact(size);
        for start in range.clone().step_by(BLOCK) {
            // The search ends with the last one.
            if results.peek().is_none() {
                return;
            }
            self.for_keys(start, BLOCK.min(range.end - start), |keys| {
                for (other, element) in keys.iter().zip(elements.by_ref()) {
                    if *other == key {
                        results.next().into_iter().for_each(|to| to.copy_from_slice(element));
                    }
                }
            });
        }
    }

    /// Writes the elements of a row again whose key others of other bits have, in the order in which they are in the row.
    pub fn restore_bits<T: Copy + Into<u64>>(
        self,
        sorted: &[T],
        start: usize,
        results: &mut [u8],
        threads: usize,
    ) {
        let size = self.key.dtype().size();
        let chunks = if threads > 1 { CHUNKS } else { 1 };
        let row = sorted.len();
        let length = row.div_ceil(chunks);
        let range = |chunk: usize| {
            let [first, end] = [chunk, chunk + 1].map(|chunk| start + (chunk * length).min(row));
            first..end
        };
        let in_chunks = |count: &(dyn Fn(Range<usize>) -> usize + Sync)| {
            let mut counts = [0; CHUNKS];
            let used = counts.get_mut(..chunks).unwrap_or_default();
            in_units(threads, 1, used, |chunk, counts| counts.fill(count(range(chunk))));
            counts
        };
        for key in self.key.shared_keys() {
            let first = sorted.partition_point(|other| (*other).into() < key);
            let count = sorted.partition_point(|other| (*other).into() <= key) - first;
            // Nearly always all of them have the bits of the map from keys, which are in the results.
            let bits = self.key.inverse().bits_of(key);
            if count == 0 || in_chunks(&|range| self.count_bits(range, bits)).iter().sum::<usize>() == count {
                continue;
            }
            let run = results.get_mut(first * size..(first + count) * size).unwrap_or_default();
            if chunks == 1 {
                self.write_with_key(range(0), key, run);
                continue;
            }
            let counts = in_chunks(&|range| self.count_key(range, key));
            let mut left = run;
            let mut runs = counts.map(|count| {
                let (run, rest) = std::mem::take(&mut left).split_at_mut(count * size);
                left = rest;
                run
            });
            in_units(threads, 1, &mut runs, |chunk, runs| {
                runs.iter_mut().for_each(|run| self.write_with_key(range(chunk), key, run));
            });
        }
    }

    /// Returns whether elements in a range of one row are in ascending order, compared without a map to keys. A range with NaN,
    /// or with zeros of both signs in some dtypes, may be in order all the same.
    fn is_ascending(self, range: Range<usize>) -> bool {
        macro_rules! compare {
            ($($dtype:ident $integer:ident $order:expr;)*) => {
                match self.key.dtype() {
                    $(DType::$dtype => {
                        const SIZE: usize = size_of::<$integer>();
                        let bytes = self.bytes.get(range.start * SIZE..range.end * SIZE).unwrap_or_default();
                        let values = |bytes: &'a [u8]| bytes.chunks_exact(SIZE).map(|element| {
                            $order(element.try_into().map_or_else(|_| Default::default(), <$integer>::from_ne_bytes))
                        });
                        let next = bytes.get(SIZE..).unwrap_or_default();
                        // Without a decision for each element, since nearly every row is sorted.
                        values(bytes).zip(values(next)).fold(true, |sorted, (x, y)| sorted & (x <= y))
                    })*
                    DType::C64 | DType::C128 | DType::F8E4M3 | DType::F8E5M2 => false,
                }
            };
        }
        /// The order of 16-bit floats but for NaN and the signs of zeros: the magnitude of a negative one is inverted.
        fn half_order(bits: i16) -> i16 {
            bits ^ ((bits >> 15) & i16::MAX)
        }
        if self.key.is_descending() {
            return false;
        }
        compare! {
            Bool u8 std::convert::identity;
            U8 u8 std::convert::identity;
            U16 u16 std::convert::identity;
            U32 u32 std::convert::identity;
            U64 u64 std::convert::identity;
            I8 i8 std::convert::identity;
            I16 i16 std::convert::identity;
            I32 i32 std::convert::identity;
            I64 i64 std::convert::identity;
            F16 i16 half_order;
            BF16 i16 half_order;
            F32 f32 std::convert::identity;
            F64 f64 std::convert::identity;
        }
    }

    /// Returns the first element in a range that comes before its predecessor in a row of this length.
    pub fn first_decrease(self, range: Range<usize>, length: usize) -> Option<usize> {
        let mut row = range.start / length * length;
        while row < range.end {
            // The predecessor of the range's first element is in its row, unless it begins the row.
            let (mut first, end) = (row.max(range.start.saturating_sub(1)), range.end.min(row + length));
            if !self.is_ascending(first..end) {
                let mut keys = [0; BLOCK];
                // The last key of a block is the first of the next one.
                while first + 1 < end {
                    let keys = keys.get_mut(..BLOCK.min(end - first)).unwrap_or_default();
                    self.read(first, keys);
                    if let Some(at) = keys.windows(2).position(|pair| pair.first() > pair.last()) {
                        return Some(first + at + 1);
                    }
                    first += keys.len() - 1;
                }
            }
            row += length;
        }
        None
    }
}
