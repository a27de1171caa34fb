//! The CUDA implementations: the kernels of `csrc/kernels/sort.cu`.

use super::key::SortKey;
use super::onesweep::{HAS_POSITIONS, HAS_VALUES, sort_by_digits};
use super::{Rows, check_length};
use crate::driver::{DeviceSlice, DeviceSliceMut, Function, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::{self, Entry};

const FAMILY: &str = "sort";
/// By the width of an element.
const ROWS: [&str; 4] = ["sort_rows_8", "sort_rows_16", "sort_rows_32", "sort_rows_64"];
const SEARCH: [&str; 4] = ["sort_search_8", "sort_search_16", "sort_search_32", "sort_search_64"];

/// Threads of a block, except of a pass. This and the longest row are those of `sort.cu`.
pub(super) const THREADS: u32 = 256;
/// The longest row that one block sorts.
const MAX_ROW: usize = 2048;

/// The most blocks of a kernel that loops: enough to fill every device.
const LOOPING_BLOCKS: usize = 1 << 14;

pub(super) fn function(stream: &Stream, entry: &'static str) -> Result<Function> {
    images::kernel(&stream.device(), FAMILY, Entry::Name(entry))
}

/// The grid of a kernel that loops over `units`, one a thread.
fn looping(units: usize) -> LaunchConfig {
    blocks(units.div_ceil(THREADS as usize).clamp(1, LOOPING_BLOCKS))
}

/// Returns the flag if it holds.
pub(super) fn flag(flag: u32, holds: bool) -> u32 {
    if holds { flag } else { 0 }
}

fn blocks(count: usize) -> LaunchConfig {
    LaunchConfig::new(count as u32, THREADS)
}

/// Returns the entry for elements of so many bytes.
pub(super) fn by_width(entries: [&'static str; 4], size: usize) -> &'static str {
    entries[size.trailing_zeros().min(3) as usize]
}

/// Returns the number of elements in memory.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for bytes that are not whole and aligned elements.
fn count_of(operation: &'static str, key: SortKey, elements: &DeviceSlice<'_, u8>) -> Result<usize> {
    let size = key.dtype().size();
    if !elements.len().is_multiple_of(size) || !elements.address().is_multiple_of(size as u64) {
        let found = format!("{} bytes at address {:#x}", elements.len(), elements.address());
        let wanted = format!("whole and aligned elements of {}", key.dtype());
        return Err(Error::invalid(operation, found, wanted));
    }
    Ok(elements.len() / size)
}

/// Writes the position of each element of a row in sorted order, as [`argsort_host`](super::argsort_host) does.
///
/// `elements` are the bytes of contiguous rows of `key.dtype()`, aligned for it. For rows that one block does not sort the call
/// allocates room for positions of 32 bits and for one or two copies of the elements.
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
    sort_rows("argsort", stream, key, &elements.into(), rows, (None, Some(positions.into())))
}

/// Writes the elements of each row in sorted order, and the position that each had, as [`argsort`] does.
///
/// Elements keep their bits: NaN payloads and the sign of zero survive.
///
/// # Errors
///
/// As [`argsort`], and [`Error::LengthMismatch`] for another number of bytes in `sorted`.
pub fn sort<'a>(
    stream: &Stream,
    key: SortKey,
    elements: impl Into<DeviceSlice<'a, u8>>,
    rows: usize,
    sorted: impl Into<DeviceSliceMut<'a, u8>>,
    positions: impl Into<DeviceSliceMut<'a, i64>>,
) -> Result<()> {
    sort_rows("sort", stream, key, &elements.into(), rows, (Some(sorted.into()), Some(positions.into())))
}

/// Writes the elements of each row in sorted order, as [`sort()`](sort) does. Nothing is read, written or allocated for
/// positions.
///
/// # Errors
///
/// As [`sort()`](sort).
pub fn sort_values<'a>(
    stream: &Stream,
    key: SortKey,
    elements: impl Into<DeviceSlice<'a, u8>>,
    rows: usize,
    sorted: impl Into<DeviceSliceMut<'a, u8>>,
) -> Result<()> {
    sort_rows("sorted", stream, key, &elements.into(), rows, (Some(sorted.into()), None))
}

/// The memory of the sorted elements, and that of their positions.
pub(super) type Results<'a> = (Option<DeviceSliceMut<'a, u8>>, Option<DeviceSliceMut<'a, i64>>);

fn sort_rows(
    operation: &'static str,
    stream: &Stream,
    key: SortKey,
    elements: &DeviceSlice<'_, u8>,
    rows: usize,
    (sorted, positions): Results<'_>,
) -> Result<()> {
    let count = count_of(operation, key, elements)?;
    let rows = Rows::new(operation, count, rows)?;
    if let Some(sorted) = &sorted {
        check_length(operation, sorted.len(), elements.len())?;
        if !sorted.address().is_multiple_of(key.dtype().size() as u64) {
            let found = format!("an address {:#x} of sorted elements", sorted.address());
            return Err(Error::invalid(operation, found, format!("one that is aligned for {}", key.dtype())));
        }
    }
    if let Some(positions) = &positions {
        check_length(operation, positions.len(), count)?;
    }
    if count == 0 {
        return Ok(());
    }
    let planned = if rows.length > MAX_ROW { "radix passes" } else { "a block a row" };
    let _traced = rows.traced(operation, key, planned);
    if rows.length > MAX_ROW {
        return sort_by_digits(stream, operation, key, elements, rows, (sorted, positions));
    }
    let (length, padded) = (rows.length as u32, rows.length.next_power_of_two() as u32);
    let flags = flag(HAS_VALUES, sorted.is_some()) | flag(HAS_POSITIONS, positions.is_some());
    let (kind, infinity, descending) = (key.code(), key.infinity(), u32::from(key.is_descending()));
    let (mut no_elements, mut no_positions) =
        (stream.uninitialized::<u8>(0)?, stream.uninitialized::<i64>(0)?);
    let sorted = sorted.unwrap_or_else(|| DeviceSliceMut::from(&mut no_elements));
    let positions = positions.unwrap_or_else(|| DeviceSliceMut::from(&mut no_positions));
    let count = rows.count as u64;
    let arguments = (elements, positions, sorted, count, length, padded, flags, kind, infinity, descending);
    let config = blocks(rows.count.min(LOOPING_BLOCKS));
    // SAFETY: the kernel reads the elements of all rows and writes an element and a position for each if there is memory for it.
    unsafe { function(stream, by_width(ROWS, key.dtype().size()))?.launch(stream, config, arguments) }
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
    let (sequences, values, positions) = (sequences.into(), values.into(), positions.into());
    let of_sequences = Rows::new(OPERATION, count_of(OPERATION, key, &sequences)?, rows)?;
    let count = count_of(OPERATION, key, &values)?;
    let of_values = Rows::new(OPERATION, count, rows)?;
    check_length(OPERATION, positions.len(), count)?;
    if count == 0 {
        return Ok(());
    }
    let _traced = of_sequences.traced(OPERATION, key, "a thread a value");
    let sizes = (of_sequences.length as u64, of_values.length as u64, count as u64);
    let order = (key.code(), key.infinity(), u32::from(key.is_descending()));
    let right = u32::from(right);
    let arguments =
        (&sequences, &values, positions, sizes.0, sizes.1, sizes.2, right, order.0, order.1, order.2);
    let kernel = function(stream, by_width(SEARCH, key.dtype().size()))?;
    // SAFETY: the kernel reads all values and rows of as many elements as there are, and writes a position a value.
    unsafe { kernel.launch(stream, looping(count), arguments) }
}

#[cfg(test)]
mod tests {
    use super::super::onesweep::{HISTOGRAM, PASS};
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let mut looked_up = [ROWS, HISTOGRAM, PASS, SEARCH].concat();
        looked_up.sort_unstable();
        assert_eq!(entries::declared(FAMILY, "sm_60"), looked_up);
    }
}
