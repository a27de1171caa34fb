//! Indexed copies on a CUDA device: the kernels of `csrc/kernels/{gather,scatter,scatter_mark}.cu`.

use super::space::IndexSpace;
use crate::driver::{Attribute, ByValue, Device, DeviceBuffer, Function, LaunchConfig, RawAddress, Stream};
use crate::error::Result;
use crate::images::{self, Entry};
use crate::types::DType;

const THREADS: usize = 256;
/// Elements per thread: `ITEMS` of indexed.cuh.
const ITEMS: usize = 4;

/// Families by the bytes of a unit, of which these are the logarithms.
const GATHER: [&str; 5] = ["gather_8", "gather_16", "gather_32", "gather_64", "gather_128"];
const SCATTER: [&str; 5] = ["scatter_8", "scatter_16", "scatter_32", "scatter_64", "scatter_128"];
const MARK: &str = "scatter_mark";

/// The kernels' names: for indices of i32 and of i64.
const GATHER_ENTRIES: [&str; 2] = ["gather_i32", "gather_i64"];
const SCATTER_ENTRIES: [&str; 2] = ["scatter_i32", "scatter_i64"];
const MARK_ENTRIES: [&str; 2] = ["scatter_mark_i32", "scatter_mark_i64"];
const LAST_ENTRIES: [&str; 2] = ["scatter_last_i32", "scatter_last_i64"];
const MARKED_ENTRY: &str = "scatter_marked";

/// Indices in device memory.
#[derive(Clone, Copy)]
pub(super) struct Indices<'a> {
    pub(super) memory: &'a DeviceBuffer<u8>,
    pub(super) dtype: DType,
}

impl Indices<'_> {
    /// The entry for their type.
    fn entry(self, entries: [&'static str; 2]) -> &'static str {
        entries[usize::from(self.dtype != DType::I32)]
    }
}

fn function(device: Device, family: &'static str, entry: &'static str) -> Result<Function> {
    images::kernel(&device, family, Entry::Name(entry))
}

fn family(families: [&'static str; 5], unit: usize) -> &'static str {
    families[unit.trailing_zeros().min(4) as usize]
}

fn config(count: usize) -> LaunchConfig {
    // The kernels loop, so a grid that is cut off is right too.
    let blocks = count.div_ceil(THREADS * ITEMS).clamp(1, i32::MAX as usize);
    LaunchConfig::new(blocks as u32, THREADS as u32)
}

/// Returns the address for reports of wrong indices; 0 if none are reported.
fn reported(stream: &Stream, checked: bool) -> Result<RawAddress> {
    if checked { stream.device().report_address() } else { Ok(RawAddress(0)) }
}

/// Copies to the elements from the array.
///
/// # Safety
///
/// The space's operands are inside of the memory: the indices; the array, for any position of the axis; the elements.
///
/// # Errors
///
/// The errors of loading an image and of a launch.
pub(super) unsafe fn gather(
    stream: &Stream,
    space: &IndexSpace,
    indices: Indices<'_>,
    array: &DeviceBuffer<u8>,
    elements: &mut DeviceBuffer<u8>,
    checked: bool,
) -> Result<()> {
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let entry = indices.entry(GATHER_ENTRIES);
    let function = function(stream.device(), family(GATHER, unit), entry)?;
    let (count, report) = (space.count(), reported(stream, checked)?);
    // SAFETY: the kernel takes these arguments, and stays inside what the caller vouches for; a wrong index is not followed.
    unsafe {
        function.launch(
            stream,
            config(count),
            (indices.memory, array, elements, ByValue(space), count as u64, report),
        )
    }
}

/// Copies the elements to the array.
///
/// # Safety
///
/// As [`gather`], and no two elements go to one target.
///
/// # Errors
///
/// As [`gather`].
pub(super) unsafe fn scatter(
    stream: &Stream,
    space: &IndexSpace,
    indices: Indices<'_>,
    array: &mut DeviceBuffer<u8>,
    elements: &DeviceBuffer<u8>,
    checked: bool,
) -> Result<()> {
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let entry = indices.entry(SCATTER_ENTRIES);
    let function = function(stream.device(), family(SCATTER, unit), entry)?;
    let (count, report) = (space.count(), reported(stream, checked)?);
    // SAFETY: as for `gather`.
    unsafe {
        function.launch(
            stream,
            config(count),
            (indices.memory, array, elements, ByValue(space), count as u64, report),
        )
    }
}

/// The share of the L2 cache that marks are to take: the index passes through it too.
const OF_CACHE: usize = 2;
/// Sweeps over an index from which on marks outside of the cache cost less.
const MAX_SWEEPS: usize = 8;

/// How often the index is gone through, each time for a part of the marks that stays in the cache.
fn sweeps(device: Device, marks: usize) -> Result<usize> {
    let cache = usize::try_from(device.attribute(Attribute::L2_CACHE_SIZE)?).unwrap_or(0) / OF_CACHE;
    let sweeps = marks.saturating_mul(size_of::<u32>()).div_ceil(cache.max(1));
    Ok(if sweeps <= MAX_SWEEPS { sweeps.max(1) } else { 1 })
}

/// Which element is the last for each of `count` targets: its position along the axis from 1, or 0 where there is none.
///
/// # Safety
///
/// The space's operands are inside of the memory: the indices; the marks, for any position of the axis. Positions are below
/// 2^32 - 1.
///
/// # Errors
///
/// As [`gather`].
pub(super) unsafe fn mark(
    stream: &Stream,
    space: &IndexSpace,
    count: usize,
    indices: Indices<'_>,
    checked: bool,
) -> Result<DeviceBuffer<u32>> {
    let mut marks = stream.zeros::<u32>(count)?;
    let entry = indices.entry(MARK_ENTRIES);
    let function = function(stream.device(), MARK, entry)?;
    let space = space.for_kernels();
    let sweeps = sweeps(stream.device(), count)?;
    let (units, part) = (space.count(), count.div_ceil(sweeps));
    for sweep in 0..sweeps {
        // A wrong index is wrong in every sweep, and is reported once.
        let report = reported(stream, checked && sweep == 0)?;
        let (first, part) = ((sweep * part) as u64, part as u64);
        let arguments = (indices.memory, &mut marks, first, part, ByValue(space), units as u64, report);
        // SAFETY: as for `gather`; the marks are as many as the space reaches.
        unsafe { function.launch(stream, config(units), arguments)? };
    }
    Ok(marks)
}

/// Copies to the array those elements that are the last for their targets, as [`mark`] has found.
///
/// # Safety
///
/// As [`gather`], and for the marks; operands are those of [`IndexSpace::new`].
///
/// # Errors
///
/// As [`gather`].
pub(super) unsafe fn scatter_last(
    stream: &Stream,
    space: &IndexSpace,
    indices: Indices<'_>,
    array: &mut DeviceBuffer<u8>,
    elements: &DeviceBuffer<u8>,
    marks: &DeviceBuffer<u32>,
) -> Result<()> {
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let entry = indices.entry(LAST_ENTRIES);
    let function = function(stream.device(), family(SCATTER, unit), entry)?;
    let count = space.count();
    let arguments = (indices.memory, array, elements, marks, ByValue(space), count as u64);
    // SAFETY: as for `gather`.
    unsafe { function.launch(stream, config(count), arguments) }
}

/// Copies to each target of the array the element that its mark names.
///
/// # Safety
///
/// As [`gather`], with the marks as indices: those of [`mark`], which name positions of the elements.
///
/// # Errors
///
/// As [`gather`].
pub(super) unsafe fn scatter_marked(
    stream: &Stream,
    space: &IndexSpace,
    array: &mut DeviceBuffer<u8>,
    elements: &DeviceBuffer<u8>,
    marks: &DeviceBuffer<u32>,
) -> Result<()> {
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let function = function(stream.device(), family(SCATTER, unit), MARKED_ENTRY)?;
    let count = space.count();
    if count == 0 {
        return Ok(());
    }
    let arguments = (marks, array, elements, ByValue(space), count as u64);
    // SAFETY: as for `gather`.
    unsafe { function.launch(stream, config(count), arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        let assert_declared = |family: &str, looked_up: &[&str]| {
            let mut looked_up = looked_up.to_vec();
            looked_up.sort_unstable();
            assert_eq!(entries::declared(family, "sm_60"), looked_up, "{family}");
        };
        let scattered = [&SCATTER_ENTRIES[..], &LAST_ENTRIES, &[MARKED_ENTRY]].concat();
        GATHER.iter().for_each(|family| assert_declared(family, &GATHER_ENTRIES));
        SCATTER.iter().for_each(|family| assert_declared(family, &scattered));
        assert_declared(MARK, &MARK_ENTRIES);
    }
}
