//! Indexed copies on a CUDA device: the kernels of `csrc/kernels/{gather,scatter,scatter_mark}.cu`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::report;
use super::space::Space;
use crate::driver::{ByValue, Device, DeviceBuffer, Function, LaunchConfig, RawAddress, Stream};
use crate::error::Result;
use crate::images;
use crate::types::DType;

const THREADS: usize = 256;
/// What a thread takes: `ITEMS` of indexed.cuh.
const ITEMS: usize = 4;

/// Families by the bytes of a unit, of which these are the logarithms.
const GATHER: [&str; 5] = ["gather_8", "gather_16", "gather_32", "gather_64", "gather_128"];
const SCATTER: [&str; 5] = ["scatter_8", "scatter_16", "scatter_32", "scatter_64", "scatter_128"];

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

/// The kernel, looked up once a device: asking the driver for one takes longer than a small launch.
fn function(device: Device, family: &'static str, entry: &'static str) -> Result<Function> {
    type Functions = HashMap<(Device, &'static str, &'static str), Function>;
    static KNOWN: Mutex<Option<Functions>> = Mutex::new(None);
    // Nothing below the locks calls out, so a panic cannot leave the map half changed.
    let place = (device, family, entry);
    let known =
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().get(&place).cloned();
    if let Some(function) = known {
        return Ok(function);
    }
    let function = images::load(&device, family)?.function(entry)?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().insert(place, function.clone());
    Ok(function)
}

fn family(families: [&'static str; 5], unit: usize) -> &'static str {
    families[unit.trailing_zeros().min(4) as usize]
}

fn config(count: usize) -> LaunchConfig {
    // The kernels loop, so a grid that is cut off is right too.
    let blocks = count.div_ceil(THREADS * ITEMS).clamp(1, i32::MAX as usize);
    LaunchConfig::new(blocks as u32, THREADS as u32)
}

/// Where wrong indices are reported: nowhere where nobody wants to know.
fn reported(stream: &Stream, checked: bool) -> Result<RawAddress> {
    let address = if checked { report::address(&stream.device())? } else { 0 };
    Ok(RawAddress(address))
}

/// Copies to the elements from the array.
///
/// # Safety
///
/// The space's operands are inside of the memory: the indices; the array, for any position of the axis; the elements.
///
/// # Errors
///
/// Those of loading an image and of a launch.
pub(super) unsafe fn gather(
    stream: &Stream,
    space: &Space,
    indices: Indices<'_>,
    array: &DeviceBuffer<u8>,
    elements: &mut DeviceBuffer<u8>,
    checked: bool,
) -> Result<()> {
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let entry = indices.entry(["gather_i32", "gather_i64"]);
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
/// As [`gather`], and no two elements go to one place.
///
/// # Errors
///
/// As [`gather`].
pub(super) unsafe fn scatter(
    stream: &Stream,
    space: &Space,
    indices: Indices<'_>,
    array: &mut DeviceBuffer<u8>,
    elements: &DeviceBuffer<u8>,
    checked: bool,
) -> Result<()> {
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let entry = indices.entry(["scatter_i32", "scatter_i64"]);
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

/// Copies the elements to the array, the last one where several go to one place: those are found first, with `marks` words
/// of memory and the space of `marking`.
///
/// # Safety
///
/// As [`gather`], for both spaces; operands are those of [`Space::new`], positions below 2^32 - 1.
///
/// # Errors
///
/// As [`gather`].
pub(super) unsafe fn scatter_last(
    stream: &Stream,
    (space, marking, marks): (&Space, &Space, usize),
    indices: Indices<'_>,
    array: &mut DeviceBuffer<u8>,
    elements: &DeviceBuffer<u8>,
    checked: bool,
) -> Result<()> {
    let mut marks = stream.zeros::<u32>(marks)?;
    let entry = indices.entry(["scatter_mark_i32", "scatter_mark_i64"]);
    let mark = function(stream.device(), "scatter_mark", entry)?;
    let (space, unit) = space.in_units([array.address(), elements.address()]);
    let entry = indices.entry(["scatter_last_i32", "scatter_last_i64"]);
    let scatter = function(stream.device(), family(SCATTER, unit), entry)?;
    let report = reported(stream, checked)?;
    // SAFETY: as for `gather`; the marks are as many as the space of `marking` reaches.
    unsafe {
        let (marking, count) = (marking.for_kernels(), marking.count());
        let arguments = (indices.memory, &mut marks, ByValue(marking), count as u64, report);
        mark.launch(stream, config(count), arguments)?;
        let count = space.count();
        let arguments = (indices.memory, array, elements, &marks, ByValue(space), count as u64);
        scatter.launch(stream, config(count), arguments)
    }
}
