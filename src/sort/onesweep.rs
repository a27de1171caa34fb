//! Long rows on a CUDA device: a radix sort with one kernel for each digit of the keys.

use bytemuck::{Pod, Zeroable};

use super::device::{Results, by_width, flag, function};
use super::key::SortKey;
use super::{Rows, device};
use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::DeviceProperties;

/// By the width of an element.
pub(super) const HISTOGRAM: [&str; 4] =
    ["sort_histogram_8", "sort_histogram_16", "sort_histogram_32", "sort_histogram_64"];
pub(super) const PASS: [&str; 4] = ["sort_pass_8", "sort_pass_16", "sort_pass_32", "sort_pass_64"];

/// Threads of a block of a pass. This and the constants to the flags are those of `sort.cu`.
const THREADS: usize = 384;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
const MAX_PASSES: usize = 8;
const IS_FIRST: u32 = 1;
const IS_LAST: u32 = 2;
pub(super) const HAS_VALUES: u32 = 4;
pub(super) const HAS_POSITIONS: u32 = 8;

/// The fewest elements of a thread.
const MIN_ITEMS: usize = 4;
/// Blocks of the histogram: enough to fill every device, and few enough that their sums take little time.
const HISTOGRAM_BLOCKS: usize = 2048;
/// The fewest elements of a block of the histogram.
const HISTOGRAM_ELEMENTS: usize = 8192;

/// A pass; exactly `PassRun` of `sort.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PassRun {
    length: u64,
    infinity: u64,
    rows: u32,
    tiles: u32,
    items: u32,
    pass: u32,
    passes: u32,
    flags: u32,
    kind: u32,
    descending: u32,
}

/// Returns the most elements of a thread for elements of so many bytes.
fn maximum_items(size: usize) -> usize {
    if size > 4 { 10 } else { 14 }
}

/// Returns the blocks of a pass that a multiprocessor has at a time, for elements of so many bytes.
fn resident_blocks(size: usize) -> usize {
    if size == 4 { 3 } else { 2 }
}

/// Returns the elements of a thread that give each multiprocessor its blocks, or as many as a thread takes.
fn items_of(elements: usize, size: usize, multiprocessors: usize) -> usize {
    let threads = THREADS * resident_blocks(size) * multiprocessors.max(1);
    elements.div_ceil(threads).clamp(MIN_ITEMS, maximum_items(size))
}

/// Writes the elements of rows in sorted order, and their positions, each if there is memory for it.
///
/// A pass reads from one of two memories and writes to the other one: the results', and spare memory. So that the last pass
/// writes the results, the pass before it writes spare memory, and so on back to the first, which reads the elements.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for rows that the words of a look-back cannot count or a grid cannot have,
/// [`Error::OutOfMemory`], and those of a launch.
pub(super) fn sort_by_digits(
    stream: &Stream,
    operation: &'static str,
    key: SortKey,
    elements: &DeviceSlice<'_, u8>,
    rows: Rows,
    (sorted, positions): Results<'_>,
) -> Result<()> {
    let (size, count) = (key.dtype().size(), rows.count * rows.length);
    // A word has the offsets of a row behind the counts of a tile.
    let longest = u32::MAX as usize - THREADS * maximum_items(size) - 2;
    if rows.length > longest {
        let found = format!("rows of {} elements", rows.length);
        return Err(Error::invalid(operation, found, format!("at most {longest} elements a row")));
    }
    let multiprocessors = DeviceProperties::from_device(&stream.device())?.multiprocessors as usize;
    let items = items_of(count, size, multiprocessors);
    let tiles = rows.length.div_ceil(THREADS * items);
    let chunks = (HISTOGRAM_BLOCKS / rows.count).clamp(1, rows.length.div_ceil(HISTOGRAM_ELEMENTS));
    let grid = |blocks: usize| {
        let blocks = i32::try_from(blocks).ok();
        let found = || format!("{} rows of {} elements", rows.count, rows.length);
        blocks.ok_or_else(|| {
            Error::invalid(operation, found(), format!("at most {} blocks of a grid", i32::MAX))
        })
    };
    let (of_tiles, of_chunks) = (grid(rows.count * tiles)?, grid(rows.count * chunks)?);

    let passes = key.bits().div_ceil(DIGIT_BITS) as usize;
    let counters = MAX_PASSES + rows.count * passes * DIGITS;
    let mut workspace = stream.zeros::<u32>(counters + 2 * rows.count * tiles * DIGITS)?;
    let (has_values, has_positions) = (sorted.is_some(), positions.is_some());
    let spare = if passes > 1 { count } else { 0 };
    let of_positions = if has_positions { spare } else { 0 };
    let mut spare = (stream.uninitialized::<u8>(spare * size)?, stream.uninitialized::<u32>(of_positions)?);
    // Between the first pass and the last one, elements need a second memory also where the caller wants positions only.
    let unwanted = if passes > 2 && !has_values { count } else { 0 };
    let mut unwanted: DeviceBuffer<u8> = stream.uninitialized(unwanted * size)?;
    let mut no_positions: DeviceBuffer<u32> = stream.uninitialized(0)?;
    let mut spare = (DeviceSliceMut::from(&mut spare.0), DeviceSliceMut::from(&mut spare.1));
    let of_positions = positions.map(|positions| positions.reinterpret::<u32>()).transpose()?;
    let mut result = (
        sorted.unwrap_or_else(|| DeviceSliceMut::from(&mut unwanted)),
        of_positions.unwrap_or_else(|| DeviceSliceMut::from(&mut no_positions)),
    );
    let wanted = flag(HAS_VALUES, has_values) | flag(HAS_POSITIONS, has_positions);

    let (kind, infinity, descending) = (key.code(), key.infinity(), u32::from(key.is_descending()));
    let histogram = function(stream, by_width(HISTOGRAM, size))?;
    let config = LaunchConfig::new(of_chunks as u32, device::THREADS);
    let length = rows.length as u64;
    let arguments =
        (elements, &mut workspace, length, chunks as u32, passes as u32, kind, infinity, descending);
    // SAFETY: the kernel reads the elements of all rows, and adds to the 256 counts of each row and pass.
    unsafe { histogram.launch(stream, config, arguments)? };

    let kernel = function(stream, by_width(PASS, size))?;
    let config = LaunchConfig::new(of_tiles as u32, THREADS as u32);
    for pass in 0..passes {
        let (is_first, is_last) = (pass == 0, pass + 1 == passes);
        let run = ByValue(PassRun {
            length,
            infinity,
            rows: rows.count as u32,
            tiles: tiles as u32,
            items: items as u32,
            pass: pass as u32,
            passes: passes as u32,
            flags: flag(IS_FIRST, is_first) | flag(IS_LAST, is_last) | wanted,
            kind,
            descending,
        });
        let writes_result = (passes - 1 - pass).is_multiple_of(2);
        let (from, to) = if writes_result { (&spare, &mut result) } else { (&result, &mut spare) };
        let source = if is_first { *elements } else { DeviceSlice::from(&from.0) };
        let arguments = (&source, &from.1, &mut to.0, &mut to.1, &mut workspace, run);
        // SAFETY: the kernel reads and writes the elements and positions of all rows where the flags say so, which the memories
        // hold, and the words and counts of the workspace.
        unsafe { kernel.launch(stream, config, arguments)? };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_more_elements_once_every_multiprocessor_has_its_blocks() {
        let block = 132 * THREADS;
        for (elements, size, wanted) in [
            (2049, 4, 4),
            (12 * block, 4, 4),
            (12 * block + 1, 4, 5),
            (60 * block, 4, 14),
            (40 * block, 8, 10),
        ] {
            assert_eq!(items_of(elements, size, 132), wanted, "{elements} elements of {size} bytes");
        }
    }
}
