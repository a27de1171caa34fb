//! [`Selection`], the elements of an array in device memory that are not 0, by the kernels of `csrc/kernels/select.cu`, and
//! [`true_positions_host`].

use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use crate::driver::{ByValue, DeviceBuffer, DeviceSlice, DeviceSliceMut, Function, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::images::{self, Entry};
use crate::threads::{run_on_threads, thread_count};
use crate::types::{DType, MAX_RANK, divisor};

use super::check_length;

const FAMILY: &str = "select";
/// By the width of an element.
const MARK: [&str; 4] = ["select_mark_8", "select_mark_16", "select_mark_32", "select_mark_64"];
const ELEMENTS: [&str; 5] = [
    "select_elements_8",
    "select_elements_16",
    "select_elements_32",
    "select_elements_64",
    "select_elements_128",
];
const SCAN: &str = "select_scan";
const POSITIONS: &str = "select_positions";

/// Threads of a block. This and the constant below are those of `select.cu`.
const THREADS: u32 = 256;
/// Elements of a tile.
const TILE: usize = 512 * 32;

/// The elements in a unit of work of a thread of the CPU.
const UNIT: usize = 1 << 16;

/// The elements of an array in device memory that are not 0. NaN is not 0, -0 is.
///
/// A selection has one bit an element, and the sum of the selected elements before each tile. Both stay on the device.
#[derive(Debug)]
pub struct Selection {
    words: DeviceBuffer<u32>,
    offsets: DeviceBuffer<u64>,
    length: usize,
    count: usize,
}

/// The sizes of an array, the innermost first; exactly `Shape` of `select.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SelectShape {
    size: [u64; MAX_RANK],
    factor: [u32; MAX_RANK],
    shift: [u32; MAX_RANK],
    rank: u32,
    is_small: u32,
}

fn function(stream: &Stream, entry: &'static str) -> Result<Function> {
    images::kernel(&stream.device(), FAMILY, Entry::Name(entry))
}

/// Returns the bits of an element that are no part of the comparison with 0, or `None` for dtypes without a kernel.
fn ignored_bits(dtype: DType) -> Option<u64> {
    match dtype {
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some(0),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some(0),
        DType::F16 | DType::BF16 => Some(1 << 15),
        DType::F32 => Some(1 << 31),
        DType::F64 => Some(1 << 63),
        DType::C64 => Some(1 << 63 | 1 << 31),
        DType::C128 | DType::F8E4M3 | DType::F8E5M2 => None,
    }
}

impl Selection {
    /// Returns true if [`new`](Self::new) reads elements of a dtype.
    pub fn supports(dtype: DType) -> bool {
        ignored_bits(dtype).is_some()
    }

    /// Selects the elements of an array that are not 0, and waits for their number.
    ///
    /// `elements` are the bytes of a contiguous array, aligned for its dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for a dtype that [`supports`](Self::supports) excludes, [`Error::InvalidArgument`] for bytes
    /// that are not whole or aligned elements, [`Error::OutOfMemory`], and the errors of loading an image, of a launch and of
    /// the wait.
    pub fn new<'a>(
        stream: &Stream,
        operation: &'static str,
        dtype: DType,
        elements: impl Into<DeviceSlice<'a, u8>>,
    ) -> Result<Selection> {
        let elements = elements.into();
        let Some(ignored) = ignored_bits(dtype) else {
            let wanted = "bools, integers, floats of at least 16 bits, or c64".to_owned();
            return Err(Error::DTypeMismatch { operation, wanted, found: dtype.to_string() });
        };
        let size = dtype.size();
        if !elements.len().is_multiple_of(size) || !elements.address().is_multiple_of(size as u64) {
            let found = format!("{} bytes at address {:#x}", elements.len(), elements.address());
            return Err(Error::invalid(operation, found, format!("whole and aligned elements of {dtype}")));
        }
        let length = elements.len() / size;
        let Ok(tiles) = i32::try_from(length.div_ceil(TILE)) else {
            let wanted = format!("at most {} elements", i32::MAX as usize * TILE);
            return Err(Error::invalid(operation, format!("{length} elements"), wanted));
        };
        let tiles = tiles as u32;
        let mut words = stream.uninitialized::<u32>(tiles as usize * (TILE / 32))?;
        let mut offsets = stream.uninitialized::<u64>(tiles as usize + 1)?;
        if length == 0 {
            return Ok(Selection { words, offsets, length, count: 0 });
        }
        let mut counts = stream.uninitialized::<u32>(tiles as usize)?;
        let entry = MARK[size.trailing_zeros().min(3) as usize];
        let arguments = (&elements, &mut words, &mut counts, length as u64, ignored);
        // SAFETY: the kernels read `length` elements of this width and write 512 words and a count a tile, and an offset for
        // each tile and for the end.
        unsafe {
            function(stream, entry)?.launch(stream, LaunchConfig::new(tiles, THREADS), arguments)?;
            let arguments = (&counts, &mut offsets, tiles);
            function(stream, SCAN)?.launch(stream, LaunchConfig::new(1u32, THREADS), arguments)?;
        }
        let count = stream.download(&offsets.slice(tiles as usize..)?)?;
        let count = count.first().copied().unwrap_or(0) as usize;
        Ok(Selection { words, offsets, length, count })
    }

    /// Returns the number of selected elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns a block for each tile, or `None` if nothing is to be written.
    fn grid(&self) -> Option<LaunchConfig> {
        let tiles = self.length.div_ceil(TILE) as u32;
        (self.count > 0).then(|| LaunchConfig::new(tiles, THREADS))
    }

    /// Writes the coordinates of the selected elements in an array of these sizes: a row of `sizes.len()` numbers for each.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for sizes of another array, and for another number of coordinates; the errors of a launch.
    pub fn coordinates<'a>(
        &self,
        stream: &Stream,
        sizes: &[usize],
        coordinates: impl Into<DeviceSliceMut<'a, i64>>,
    ) -> Result<()> {
        const OPERATION: &str = "nonzero";
        let coordinates = coordinates.into();
        check_length(OPERATION, sizes.iter().product(), self.length)?;
        check_length(OPERATION, coordinates.len(), self.count * sizes.len())?;
        let Some(grid) = self.grid().filter(|_| !sizes.is_empty()) else { return Ok(()) };
        let is_small = self.length < 1 << 31;
        let mut shape = SelectShape::zeroed();
        (shape.rank, shape.is_small) = (sizes.len() as u32, u32::from(is_small));
        for (dimension, size) in sizes.iter().rev().enumerate().take(MAX_RANK) {
            shape.size[dimension] = *size as u64;
            if is_small {
                [_, shape.factor[dimension], shape.shift[dimension]] = divisor(*size as u32);
            }
        }
        let arguments = (&self.words, &self.offsets, coordinates, ByValue(shape));
        // SAFETY: the kernel writes `rank` numbers for each set bit, of which there are `count`.
        unsafe { function(stream, POSITIONS)?.launch(stream, grid, arguments) }
    }

    /// Returns true if [`elements`](Self::elements) copies elements of so many bytes from this address.
    pub fn copies(address: u64, size: usize) -> bool {
        size.is_power_of_two() && size <= 16 && address.is_multiple_of(size as u64)
    }

    /// Writes the elements of another array at the positions of the selected ones. `source` and `elements` are the bytes of
    /// elements of `size` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for elements that [`copies`](Self::copies) excludes; [`Error::LengthMismatch`] for an array
    /// of another length, and for another number of elements; the errors of a launch.
    pub fn elements<'a>(
        &self,
        stream: &Stream,
        size: usize,
        source: impl Into<DeviceSlice<'a, u8>>,
        elements: impl Into<DeviceSliceMut<'a, u8>>,
    ) -> Result<()> {
        const OPERATION: &str = "masked_select";
        let (source, elements) = (source.into(), elements.into());
        for address in [source.address(), elements.address()] {
            if !Selection::copies(address, size) {
                let found = format!("elements of {size} bytes at address {address:#x}");
                return Err(Error::invalid(OPERATION, found, "aligned elements of 1, 2, 4, 8 or 16 bytes"));
            }
        }
        check_length(OPERATION, source.len(), self.length * size)?;
        check_length(OPERATION, elements.len(), self.count * size)?;
        let Some(grid) = self.grid() else { return Ok(()) };
        let entry = ELEMENTS[size.trailing_zeros().min(4) as usize];
        // SAFETY: the kernel reads elements at set bits, which are below `length`, and writes `count` elements.
        unsafe {
            function(stream, entry)?.launch(stream, grid, (&self.words, &self.offsets, source, elements))
        }
    }
}

/// Returns the positions of the bytes that are not 0, in order.
///
/// ```
/// use selvedge::sort::true_positions_host;
/// assert_eq!(true_positions_host(&[1, 0, 0, 1])?, [0, 3]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::OutOfMemory`].
pub fn true_positions_host(mask: &[u8]) -> Result<Vec<i64>> {
    let mut counts = vec![0; mask.len().div_ceil(UNIT)];
    let threads = thread_count().min(counts.len());
    let share = |work: &(dyn Fn() + Sync)| run_on_threads(threads, work);
    let units = Mutex::new(mask.chunks(UNIT).zip(&mut counts));
    share(&|| {
        loop {
            let next = units.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((unit, count)) = next else { break };
            *count = unit.iter().map(|byte| usize::from(*byte != 0)).sum();
        }
    });
    let mut positions = super::radix::allocate("nonzero", counts.iter().sum())?;
    let mut parts = Vec::with_capacity(counts.len());
    let mut rest = positions.as_mut_slice();
    for (unit_index, (unit, count)) in mask.chunks(UNIT).zip(&counts).enumerate() {
        let (part, others) = rest.split_at_mut(*count);
        rest = others;
        parts.push((unit_index * UNIT, unit, part));
    }
    let units = Mutex::new(parts.into_iter());
    share(&|| {
        loop {
            let next = units.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((first, unit, part)) = next else { break };
            let selected = unit.iter().enumerate().filter(|(_, byte)| **byte != 0);
            part.iter_mut().zip(selected).for_each(|(to, (at, _))| *to = (first + at) as i64);
        }
    });
    drop(units);
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let mut looked_up = [&MARK[..], &ELEMENTS, &[SCAN, POSITIONS]].concat();
        looked_up.sort_unstable();
        assert_eq!(entries::declared(FAMILY, "sm_60"), looked_up);
    }

    #[test]
    fn true_positions_are_in_order_across_units() {
        let mask: Vec<u8> = (0..3 * UNIT + 5).map(|at| u8::from(at % 3 == 1 || at / UNIT == 1)).collect();
        let wanted: Vec<i64> =
            (0i64..).zip(&mask).filter(|(_, byte)| **byte != 0).map(|(at, _)| at).collect();
        assert_eq!(true_positions_host(&mask).unwrap(), wanted);
        assert_eq!(true_positions_host(&[]).unwrap(), [0i64; 0]);
    }
}
