//! The CUDA implementations: the kernels of `csrc/kernels/sort.cu`.

use super::key::SortKey;
use super::{Rows, check_length};
use crate::driver::{DeviceBuffer, DeviceSlice, DeviceSliceMut, Function, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::{self, Entry};

const FAMILY: &str = "sort";
/// By the width of an element.
const KEYS: [&str; 4] = ["sort_keys_8", "sort_keys_16", "sort_keys_32", "sort_keys_64"];
/// By the width of a key: 32 bits, then 64.
const ROWS: [&str; 2] = ["sort_rows_32", "sort_rows_64"];
const COUNT: [&str; 2] = ["sort_count_32", "sort_count_64"];
const SCATTER: [&str; 2] = ["sort_scatter_32", "sort_scatter_64"];
const SEARCH: [&str; 2] = ["sort_search_32", "sort_search_64"];
const SCAN: &str = "sort_scan";

/// Threads of a block. This and the five constants below are those of `sort.cu`.
const THREADS: u32 = 256;
/// Bytes of the keys in a tile.
const TILE_BYTES: usize = THREADS as usize * 64;
/// The longest row that one block sorts.
const MAXIMUM_ROW: usize = 2048;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Flags of a pass.
const IS_FIRST: u32 = 1;
const IS_LAST: u32 = 2;

/// The most blocks of a kernel that loops: enough to fill every device.
const LOOPING_BLOCKS: usize = 1 << 14;

fn function(stream: &Stream, entry: &'static str) -> Result<Function> {
    images::kernel(&stream.device(), FAMILY, Entry::Name(entry))
}

/// The grid of a kernel that loops over `units`, one a thread.
fn looping(units: usize) -> LaunchConfig {
    blocks(units.div_ceil(THREADS as usize).clamp(1, LOOPING_BLOCKS))
}

fn blocks(count: usize) -> LaunchConfig {
    LaunchConfig::new(count as u32, THREADS)
}

/// Keys in device memory, of 4 bytes for elements of at most 4 bytes and of 8 bytes for others.
struct DeviceKeys {
    memory: DeviceBuffer<u8>,
    key: SortKey,
    count: usize,
}

impl DeviceKeys {
    /// Launches the kernel that maps elements to keys.
    fn new(
        stream: &Stream,
        operation: &'static str,
        key: SortKey,
        elements: &DeviceSlice<'_, u8>,
    ) -> Result<DeviceKeys> {
        let size = key.dtype().size();
        if !elements.len().is_multiple_of(size) || !elements.address().is_multiple_of(size as u64) {
            let found = format!("{} bytes at address {:#x}", elements.len(), elements.address());
            return Err(Error::invalid(
                operation,
                found,
                format!("whole and aligned elements of {}", key.dtype()),
            ));
        }
        let count = elements.len() / size;
        let width = Self::width_of(key);
        let mut memory = stream.uninitialized::<u8>(count * width)?;
        if count > 0 {
            let entry = KEYS[size.trailing_zeros().min(3) as usize];
            let rule = (key.code(), key.infinity(), u32::from(key.is_descending()));
            let arguments = (elements, &mut memory, count as u64, rule.0, rule.1, rule.2);
            // SAFETY: the kernel reads `count` elements of this width, and writes as many keys.
            unsafe { function(stream, entry)?.launch(stream, looping(count), arguments)? };
        }
        Ok(DeviceKeys { memory, key, count })
    }

    fn width_of(key: SortKey) -> usize {
        key.dtype().size().max(4)
    }

    fn width(&self) -> usize {
        Self::width_of(self.key)
    }

    /// Returns the kernel for the width.
    fn entry(&self, entries: [&'static str; 2]) -> &'static str {
        entries[usize::from(self.width() > 4)]
    }
}

/// Writes the position of each element of a row in sorted order, as [`argsort_host`](super::argsort_host) does.
///
/// `elements` are the bytes of contiguous rows of `key.dtype()`, aligned for it. The call allocates keys and positions twice,
/// 16 to 24 bytes an element, for rows that one block does not sort.
///
/// ```no_run
/// use selvedge::DType;
/// use selvedge::driver::Device;
/// use selvedge::sort::{SortKey, argsort};
/// # fn main() -> selvedge::Result<()> {
/// let stream = Device::new(0)?.stream()?;
/// let elements = stream.upload(&[3u8, 1, 2])?;
/// let mut positions = stream.zeros::<i64>(3)?;
/// argsort(&stream, SortKey::new("argsort", DType::U8, false)?, &elements, 1, &mut positions)?;
/// assert_eq!(stream.download(&positions)?, [1, 2, 0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for bytes that are not whole rows, [`Error::LengthMismatch`] for another number of positions,
/// [`Error::OutOfMemory`], and the errors of loading an image and of a launch.
pub fn argsort<'a>(
    stream: &Stream,
    key: SortKey,
    elements: impl Into<DeviceSlice<'a, u8>>,
    rows: usize,
    positions: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    const OPERATION: &str = "argsort";
    let (elements, mut positions) = (elements.into(), positions.into());
    let rows = Rows::new(OPERATION, elements.len() / key.dtype().size(), rows)?;
    check_length(OPERATION, positions.len(), rows.count * rows.length)?;
    let keys = DeviceKeys::new(stream, OPERATION, key, &elements)?;
    if keys.count == 0 {
        return Ok(());
    }
    if rows.length <= MAXIMUM_ROW {
        let padded = rows.length.next_power_of_two() as u32;
        let config = blocks(rows.count.min(LOOPING_BLOCKS));
        let arguments = (&keys.memory, &mut positions, rows.count as u64, rows.length as u32, padded);
        // SAFETY: the kernel reads the keys of all rows and writes a position for each.
        return unsafe { function(stream, keys.entry(ROWS))?.launch(stream, config, arguments) };
    }
    sort_by_digits(stream, keys, rows, &mut positions)
}

/// Sorts long rows, a digit a pass.
fn sort_by_digits(
    stream: &Stream,
    keys: DeviceKeys,
    rows: Rows,
    positions: &mut DeviceSliceMut<'_, i64>,
) -> Result<()> {
    let tiles = rows.length.div_ceil(TILE_BYTES / keys.width());
    // Rows and tiles of this many elements are more than memory has, unless the count fits.
    let grid = u32::try_from(rows.count * tiles.max(DIGITS)).ok().filter(|grid| i32::try_from(*grid).is_ok());
    let Some(_) = grid else {
        let found = format!("{} rows of {} elements", rows.count, rows.length);
        return Err(Error::invalid("argsort", found, format!("at most {} blocks of a grid", i32::MAX)));
    };
    let [count, scan, scatter] = [keys.entry(COUNT), SCAN, keys.entry(SCATTER)];
    let (count, scan, scatter) =
        (function(stream, count)?, function(stream, scan)?, function(stream, scatter)?);
    let mut counts = stream.uninitialized::<u32>(rows.count * DIGITS * tiles)?;
    let mut totals = stream.uninitialized::<u32>(rows.count * DIGITS)?;
    let passes = keys.key.bits() / DIGIT_BITS;
    // One pass keeps neither keys nor narrow positions.
    let kept = if passes > 1 { keys.count } else { 0 };
    let mut other_keys = stream.uninitialized::<u8>(kept * keys.width())?;
    let [mut narrow, mut other_narrow] =
        [stream.uninitialized::<u32>(kept)?, stream.uninitialized::<u32>(kept)?];
    let mut keys = keys.memory;
    let (length, tiles) = (rows.length as u64, tiles as u32);
    for pass in 0..passes {
        let shift = pass * DIGIT_BITS;
        let is = |flag, holds| if holds { flag } else { 0 };
        let flags = is(IS_FIRST, pass == 0) | is(IS_LAST, pass + 1 == passes);
        let of_tiles = blocks(rows.count * tiles as usize);
        // SAFETY: the kernels stay inside of the rows' keys and positions, of which buffers hold `length` a row where the flags
        // let them be used, and of the 256 counts of each tile and row.
        unsafe {
            count.launch(stream, of_tiles, (&keys, &mut counts, length, tiles, shift))?;
            scan.launch(stream, blocks(rows.count * DIGITS), (&mut counts, &mut totals, tiles))?;
            let out = (&mut other_keys, &mut other_narrow, &mut *positions);
            let arguments =
                (&keys, &narrow, out.0, out.1, out.2, &counts, &totals, length, tiles, shift, flags);
            scatter.launch(stream, of_tiles, arguments)?;
        }
        std::mem::swap(&mut keys, &mut other_keys);
        std::mem::swap(&mut narrow, &mut other_narrow);
    }
    Ok(())
}

/// Writes, for each value, the number of elements of its sorted row that come before it, as
/// [`search_host`](super::search_host) does.
///
/// # Errors
///
/// As [`argsort`].
pub fn search<'a>(
    stream: &Stream,
    key: SortKey,
    sequences: impl Into<DeviceSlice<'a, u8>>,
    values: impl Into<DeviceSlice<'a, u8>>,
    rows: usize,
    right: bool,
    positions: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    const OPERATION: &str = "searchsorted";
    let positions = positions.into();
    let sequences = DeviceKeys::new(stream, OPERATION, key, &sequences.into())?;
    let values = DeviceKeys::new(stream, OPERATION, key, &values.into())?;
    let of_sequences = Rows::new(OPERATION, sequences.count, rows)?;
    let of_values = Rows::new(OPERATION, values.count, rows)?;
    check_length(OPERATION, positions.len(), values.count)?;
    if values.count == 0 {
        return Ok(());
    }
    let sizes = (of_sequences.length as u64, of_values.length as u64, values.count as u64);
    let arguments =
        (&sequences.memory, &values.memory, positions, sizes.0, sizes.1, sizes.2, u32::from(right));
    // SAFETY: the kernel reads all values and rows of as many elements as there are, and writes a position a value.
    unsafe { function(stream, values.entry(SEARCH))?.launch(stream, looping(values.count), arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let mut looked_up = [&KEYS[..], &ROWS, &COUNT, &SCATTER, &SEARCH, &[SCAN]].concat();
        looked_up.sort_unstable();
        assert_eq!(entries::declared(FAMILY, "sm_60"), looked_up);
    }
}
