//! [`topk`], the first elements of rows in sorted order in device memory, by the kernels of `csrc/kernels/topk.cu`.

use bytemuck::{Pod, Zeroable};

use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::{self, DeviceProperties, Entry};

use super::key::SortKey;
use super::{Rows, check_length};

const OPERATION: &str = "topk";
const FAMILY: &str = "topk";
/// By the width of an element.
const ELEMENTS: [&str; 4] = ["topk_elements_8", "topk_elements_16", "topk_elements_32", "topk_elements_64"];
/// By the width of a key: 32 bits, then 64.
const ITEMS: [&str; 2] = ["topk_items_32", "topk_items_64"];

/// Threads of a block. This and the most items of a block's buffer are those of `topk.cu`.
const THREADS: u32 = 256;
const MAX_CAPACITY: usize = 2048;
/// The items of a buffer that a block sorts about as fast as a smaller one.
const MIN_CAPACITY: usize = 512;
/// The most elements that are taken of a row.
const MAX_K: usize = 1024;
/// The longest row that one block sorts whole in no more time.
const SHORT_ROW: usize = 2048;
/// The fewest items of a row for which another block is worth its sorts.
const SEGMENT: usize = 8192;
/// Blocks of a multiprocessor, which hide each other's waits.
const BLOCKS: usize = 4;

/// A launch; exactly `Run` of `topk.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct TopKRun {
    length: u64,
    segment: u64,
    segments: u32,
    k: u32,
    capacity: u32,
    is_last: u32,
}

/// Keys with positions: the first k of each segment of each row.
struct Items {
    keys: DeviceBuffer<u8>,
    positions: DeviceBuffer<u32>,
}

/// The rows from which a launch selects.
enum Source<'a> {
    Elements(DeviceSlice<'a, u8>),
    Items(Items),
}

/// The parts that all launches share.
struct TopK<'a> {
    stream: &'a Stream,
    key: SortKey,
    rows: usize,
    k: usize,
}

/// Returns true if [`topk`] takes the first `k` elements of rows of `length` elements, in less time than a sort.
pub fn has_topk(length: usize, k: usize) -> bool {
    (1..=MAX_K).contains(&k) && length > SHORT_ROW && k <= length / 2
}

/// Writes, for each row, the positions of the first `k` elements in sorted order, those of [`argsort`](super::argsort).
///
/// `elements` are the bytes of contiguous rows of `key.dtype()`, aligned for it.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for bytes that are not whole rows and for a `k` that [`has_topk`] excludes,
/// [`Error::LengthMismatch`] for another number of positions, [`Error::OutOfMemory`], and the errors of loading an image and
/// of a launch.
pub fn topk<'a>(
    stream: &Stream,
    key: SortKey,
    elements: impl Into<DeviceSlice<'a, u8>>,
    rows: usize,
    k: usize,
    positions: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    let (elements, mut positions) = (elements.into(), positions.into());
    let size = key.dtype().size();
    if !elements.len().is_multiple_of(size) || !elements.address().is_multiple_of(size as u64) {
        let found = format!("{} bytes at address {:#x}", elements.len(), elements.address());
        return Err(Error::invalid(
            OPERATION,
            found,
            format!("whole and aligned elements of {}", key.dtype()),
        ));
    }
    let rows = Rows::new(OPERATION, elements.len() / size, rows)?;
    check_length(OPERATION, positions.len(), rows.count.saturating_mul(k))?;
    if rows.count == 0 {
        return Ok(());
    }
    if !has_topk(rows.length, k) {
        let found = format!("k = {k} of {} elements", rows.length);
        let wanted = format!("a k of 1 to {MAX_K}, for more than {SHORT_ROW} and twice as many elements");
        return Err(Error::invalid(OPERATION, found, wanted));
    }
    let blocks = BLOCKS * DeviceProperties::from_device(&stream.device())?.multiprocessors as usize;
    let mut segments = (blocks / rows.count).clamp(1, rows.length.div_ceil(SEGMENT));
    let _traced = rows.traced(OPERATION, key, "segments");
    let launch = TopK { stream, key, rows: rows.count, k };
    let mut items = launch.run(&Source::Elements(elements), rows.length, segments, &mut positions)?;
    while segments > 1 {
        let length = segments * k;
        segments = if length <= 2 * SEGMENT { 1 } else { length.div_ceil(SEGMENT) };
        items = launch.run(&Source::Items(items), length, segments, &mut positions)?;
    }
    Ok(())
}

impl TopK<'_> {
    /// Selects from rows of `length` items in so many segments. One segment writes the positions, several return their items.
    fn run(
        &self,
        source: &Source<'_>,
        length: usize,
        segments: usize,
        positions: &mut DeviceSliceMut<'_, i64>,
    ) -> Result<Items> {
        let TopK { stream, key, rows, k } = *self;
        let Ok(blocks) = i32::try_from(rows * segments) else {
            let wanted = format!("at most {} rows", i32::MAX);
            return Err(Error::invalid(OPERATION, format!("{rows} rows"), wanted));
        };
        let size = key.dtype().size();
        let is_last = segments == 1;
        let kept = if is_last { 0 } else { rows * segments * k };
        let mut items = Items {
            keys: stream.uninitialized::<u8>(kept * size.max(4))?,
            positions: stream.uninitialized::<u32>(kept)?,
        };
        let run = ByValue(TopKRun {
            length: length as u64,
            segment: length.div_ceil(segments) as u64,
            segments: segments as u32,
            k: k as u32,
            capacity: (4 * k).next_power_of_two().clamp(MIN_CAPACITY, MAX_CAPACITY) as u32,
            is_last: u32::from(is_last),
        });
        let config = LaunchConfig::new(blocks as u32, THREADS);
        let function = |entry| images::kernel(&stream.device(), FAMILY, Entry::Name(entry));
        let (keys, first) = (&mut items.keys, &mut items.positions);
        // SAFETY: the kernels read `length` elements or items a row, and write k items a segment, or k positions a row.
        unsafe {
            match source {
                Source::Elements(elements) => {
                    let kind = (key.code(), key.infinity(), u32::from(key.is_descending()));
                    let arguments = (elements, keys, first, positions, run, kind.0, kind.1, kind.2);
                    let entry = ELEMENTS[size.trailing_zeros().min(3) as usize];
                    function(entry)?.launch(stream, config, arguments)?;
                }
                Source::Items(from) => {
                    let arguments = (&from.keys, &from.positions, keys, first, positions, run);
                    function(ITEMS[usize::from(size > 4)])?.launch(stream, config, arguments)?;
                }
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let mut looked_up = [&ELEMENTS[..], &ITEMS].concat();
        looked_up.sort_unstable();
        assert_eq!(entries::declared(FAMILY, "sm_60"), looked_up);
    }

    #[test]
    fn rows_that_a_block_sorts_and_large_k_are_left_to_the_sort() {
        let cases =
            [(2048, 1, false), (2049, 1, true), (2049, 0, false), (2049, 1024, true), (1 << 20, 1025, false)];
        for (length, k, wanted) in cases {
            assert_eq!(has_topk(length, k), wanted, "{k} of {length}");
        }
    }
}
