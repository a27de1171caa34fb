//! Indexed copies on the CPU: the same spaces as the kernels walk, a run of bytes at a time.
//!
//! Invariants: the result does not depend on the number of threads. A gather's threads have parts of the result;
//! a scatter's have parts of the axis, and each goes through all indices in order, so the last one writes last.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

use super::space::{IndexSpace, OPERANDS};
use crate::threads::{run_on_threads, thread_count};
use crate::types::{DType, Layout};

/// Bytes from which a second thread is worth its start.
const BYTES_OF_A_THREAD: usize = 1 << 18;
/// Indices that a thread checks at a time.
const INDICES_AT_A_TIME: usize = 1 << 14;

/// Indices in memory: i32 where they are not i64.
#[derive(Clone, Copy)]
pub(super) struct Indices<'a> {
    memory: &'a [u8],
    bytes: usize,
}

impl<'a> Indices<'a> {
    pub(super) fn new(memory: &'a [u8], dtype: DType) -> Indices<'a> {
        Indices { memory, bytes: dtype.size() }
    }

    /// The one at an element's offset, which a layout of the memory names.
    #[inline(always)]
    fn at(self, offset: i64) -> i64 {
        let start = offset as usize * self.bytes;
        match self.bytes {
            8 => self.bytes_at(start).map_or(0, i64::from_ne_bytes),
            _ => self.bytes_at(start).map_or(0, |bytes| i64::from(i32::from_ne_bytes(bytes))),
        }
    }

    #[inline(always)]
    fn bytes_at<const COUNT: usize>(self, start: usize) -> Option<[u8; COUNT]> {
        self.memory.get(start..)?.first_chunk().copied()
    }

    /// The first one, in the layout's order, that is none of `size` positions.
    pub(super) fn first_outside(self, layout: &Layout, size: usize) -> Option<i64> {
        // Repeated indices are checked once.
        let mut once = *layout;
        for (axis, stride) in layout.strides().iter().enumerate() {
            if *stride == 0 {
                once = once.narrow(axis as isize, 0, layout.shape()[axis].min(1)).unwrap_or(once);
            }
        }
        let operand = super::space::IndexedOperand::new(once.strides(), once.offset());
        let space = IndexSpace::new(once.shape(), &[operand], None, (0, 0, size)).ok()?;
        let (count, next, first) = (space.count(), AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        run_on_threads(threads(count * self.bytes), &|| {
            loop {
                let start = next.fetch_add(INDICES_AT_A_TIME, Ordering::Relaxed);
                // Indices after the first wrong one do not matter.
                if start >= count.min(first.load(Ordering::Relaxed)) {
                    break;
                }
                let end = count.min(start + INDICES_AT_A_TIME);
                let (mut walk, mut current) = (space.walk(start), start);
                while current < end {
                    let (runs, strides) = walk.line();
                    let runs = runs.min(end - current);
                    let at = |run: usize| self.at(walk.offsets[0] + run as i64 * strides[0]);
                    if let Some(wrong) = (0..runs).find(|run| position(at(*run), size).is_none()) {
                        first.fetch_min(current + wrong, Ordering::Relaxed);
                        break;
                    }
                    walk.advance(runs);
                    current += runs;
                }
            }
        });
        let first = first.into_inner();
        (first < count).then(|| self.at(space.walk(first).offsets[0]))
    }
}

/// The position that an index names: from the end where it is negative.
#[inline(always)]
fn position(index: i64, size: usize) -> Option<i64> {
    let position = if index < 0 { index.wrapping_add(size as i64) } else { index };
    (0..size as i64).contains(&position).then_some(position)
}

fn threads(bytes: usize) -> usize {
    thread_count().min(bytes.div_ceil(BYTES_OF_A_THREAD)).max(1)
}

/// Calls `work` with the offsets and the position of each of some runs, in order; no position where the index is out of
/// range.
#[inline(always)]
fn for_runs(
    space: &IndexSpace,
    indices: Indices<'_>,
    runs: Range<usize>,
    mut work: impl FnMut(&[i64; OPERANDS], Option<i64>),
) {
    // A space without elements has no first run.
    if runs.is_empty() {
        return;
    }
    let mut walk = space.walk(runs.start);
    let mut left = runs.len();
    while left > 0 {
        let (runs, strides) = walk.line();
        let runs = runs.min(left);
        let mut offsets = walk.offsets;
        for _ in 0..runs {
            work(&offsets, position(indices.at(offsets[0]), space.size()));
            offsets.iter_mut().zip(strides).for_each(|(offset, stride)| *offset += stride);
        }
        walk.advance(runs);
        left -= runs;
    }
}

/// Copies to the elements (contiguous memory, all of it) from the array, zeros where an index is out of range. Returns
/// whether all indices are in range.
pub(super) fn gather(space: &IndexSpace, indices: Indices<'_>, array: &[u8], elements: &mut [u8]) -> bool {
    match space.run() {
        1 => gather_runs::<1>(space, indices, array, elements),
        2 => gather_runs::<2>(space, indices, array, elements),
        4 => gather_runs::<4>(space, indices, array, elements),
        8 => gather_runs::<8>(space, indices, array, elements),
        16 => gather_runs::<16>(space, indices, array, elements),
        _ => gather_runs::<0>(space, indices, array, elements),
    }
}

/// Runs of a length that the compiler knows, which is 0 where it does not.
fn gather_runs<const RUN: usize>(
    space: &IndexSpace,
    indices: Indices<'_>,
    array: &[u8],
    elements: &mut [u8],
) -> bool {
    let run = if RUN == 0 { space.run() } else { RUN };
    let part = (BYTES_OF_A_THREAD / 4).div_ceil(run);
    let count = threads(elements.len());
    let all_inside = AtomicBool::new(true);
    let parts = Mutex::new(elements.chunks_mut(part * run).enumerate());
    run_on_threads(count, &|| {
        loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((part_index, mut elements)) = next else { break };
            let mut walk = space.walk(part_index * part);
            let mut inside = true;
            while !elements.is_empty() {
                let (runs, strides) = walk.line();
                let runs = runs.min(elements.len() / run);
                let (now, later) = elements.split_at_mut(runs * run);
                let line = Line { offsets: walk.offsets, strides, size: space.size(), reach: space.reach(1) };
                inside &= match indices.bytes {
                    _ if RUN == 0 => line.gather(indices, array, now.chunks_exact_mut(run)),
                    8 => line.gather_units::<i64, RUN>(indices, array, now),
                    _ => line.gather_units::<i32, RUN>(indices, array, now),
                };
                if later.is_empty() {
                    break;
                }
                walk.advance(runs);
                elements = later;
            }
            if !inside {
                all_inside.store(false, Ordering::Relaxed);
            }
        }
    });
    all_inside.into_inner()
}

/// Runs whose offsets are at equal distances.
struct Line {
    offsets: [i64; OPERANDS],
    strides: [i64; OPERANDS],
    /// Positions of the axis, and the distance between two in the array.
    size: usize,
    reach: i64,
}

impl Line {
    /// Copies runs of any length. Returns whether all indices are in range.
    fn gather<'r>(
        &self,
        indices: Indices<'_>,
        array: &[u8],
        rooms: impl Iterator<Item = &'r mut [u8]>,
    ) -> bool {
        let mut inside = true;
        let mut offsets = self.offsets;
        for room in rooms {
            let position = position(indices.at(offsets[0]), self.size);
            let from = position.map(|position| (offsets[1] + position * self.reach) as usize);
            match from.and_then(|from| array.get(from..from + room.len())) {
                Some(bytes) => room.copy_from_slice(bytes),
                None => room.fill(0),
            }
            inside &= position.is_some();
            offsets.iter_mut().zip(self.strides).for_each(|(offset, stride)| *offset += stride);
        }
        inside
    }

    /// Copies runs of `RUN` bytes. Memory is checked once for the whole line. Returns whether all indices are in range.
    #[inline(always)]
    fn gather_units<I: Pod + Into<i64>, const RUN: usize>(
        &self,
        indices: Indices<'_>,
        array: &[u8],
        elements: &mut [u8],
    ) -> bool {
        let runs = elements.len() / RUN;
        let last = runs as i64 - 1;
        // The first and the last unit that `steps` and positions lead to.
        let bounds = |start: i64, steps: [(i64, i64); 2]| {
            let ends = steps.map(|(count, stride)| count.saturating_mul(stride));
            let low = ends.iter().fold(start, |sum, end| sum.saturating_add((*end).min(0)));
            (low, ends.iter().fold(start, |sum, end| sum.saturating_add((*end).max(0))))
        };
        let (first, end) = bounds(self.offsets[0], [(last, self.strides[0]), (0, 0)]);
        let of_indices = first >= 0 && (end as usize) < indices.memory.len() / size_of::<I>();
        let (first, end) =
            bounds(self.offsets[1], [(last, self.strides[1]), (self.size as i64 - 1, self.reach)]);
        let of_array = first >= 0 && (end as usize).saturating_add(RUN) <= array.len();
        if self.size == 0 || !of_indices || !of_array {
            return self.gather(indices, array, elements.chunks_exact_mut(RUN));
        }
        let units = Units::<I, RUN> {
            indices: indices.memory.as_ptr().cast::<I>().wrapping_offset(self.offsets[0] as isize),
            array: array.as_ptr().wrapping_offset(self.offsets[1] as isize),
            index_stride: self.strides[0] as isize,
            array_stride: self.strides[1] as isize,
            reach: self.reach as isize,
            size: self.size as i64,
        };
        // Distances that the compiler knows leave few instructions for an element, so that the processor has the reads of
        // many elements under way.
        // SAFETY: offsets from the first to the last are inside of the indices' and the array's memory.
        unsafe {
            match (self.strides, self.reach == RUN as i64) {
                ([1, 0, ..], true) => {
                    Units { index_stride: 1, array_stride: 0, reach: RUN as isize, ..units }.copy_to(elements)
                }
                _ => units.copy_to(elements),
            }
        }
    }
}

/// The units of a [`Line`], with the addresses of its first index and of the unit of position 0 there.
///
/// All is inlined, and no call of the standard library is left in the loop that has a path to a panic: whether LLVM inlines such
/// a call depends on its threshold and on how the crate is divided, and one call an element doubles the time.
struct Units<I, const RUN: usize> {
    indices: *const I,
    array: *const u8,
    index_stride: isize,
    array_stride: isize,
    /// The distance in bytes between two positions, and their number, which is not 0.
    reach: isize,
    size: i64,
}

impl<I: Pod + Into<i64>, const RUN: usize> Units<I, RUN> {
    /// Units that are checked together. The compiler knows the number, so the check and the copy have no loop.
    const AT_A_TIME: usize = 8;

    /// # Safety
    ///
    /// The indices' memory has the index of this unit.
    #[inline(always)]
    unsafe fn index(&self, unit: usize) -> i64 {
        // SAFETY: the caller guarantees it.
        unsafe { self.indices.wrapping_offset(unit as isize * self.index_stride).read_unaligned().into() }
    }

    /// # Safety
    ///
    /// The axis has the position, and the array's memory has the unit there.
    #[inline(always)]
    unsafe fn at(&self, unit: usize, position: i64) -> [u8; RUN] {
        let distance = unit as isize * self.array_stride + position as isize * self.reach;
        // SAFETY: the caller guarantees it.
        unsafe { self.array.wrapping_offset(distance).cast::<[u8; RUN]>().read() }
    }

    /// Copies the units to the elements, zeros where an index is out of range. Returns whether all indices are in range.
    ///
    /// # Safety
    ///
    /// The indices' and the array's memory has every unit of the elements, at any position of the axis.
    #[inline(always)]
    unsafe fn copy_to(self, elements: &mut [u8]) -> bool {
        let count = elements.len() / RUN;
        let to = elements.as_mut_ptr().cast::<[u8; RUN]>();
        let (mut outside, mut start) = (false, 0);
        while start < count {
            let end = count.min(start + Self::AT_A_TIME);
            // Indices that are positions, as nearly all are, need no selection. Signs of words join without a branch for each.
            let mut are_positions = end - start == Self::AT_A_TIME;
            if are_positions {
                let mut signs = 0;
                for unit in start..start + Self::AT_A_TIME {
                    // SAFETY: the unit is below the count.
                    let index = unsafe { self.index(unit) };
                    // Negative for a negative index and for one beyond the last position.
                    signs |= index | (self.size - 1).wrapping_sub(index);
                }
                are_positions = signs >= 0;
            }
            if are_positions {
                for unit in start..start + Self::AT_A_TIME {
                    // SAFETY: the unit is below the count, and its index is a position.
                    unsafe { to.add(unit).write(self.at(unit, self.index(unit))) };
                }
            } else {
                for unit in start..end {
                    // SAFETY: the unit is below the count.
                    let index = unsafe { self.index(unit) };
                    let position = if index < 0 { index.wrapping_add(self.size) } else { index };
                    let is_outside = position as u64 >= self.size as u64;
                    // SAFETY: as above; the axis has position 0.
                    let found = unsafe { self.at(unit, if is_outside { 0 } else { position }) };
                    // SAFETY: the elements have so many units.
                    unsafe { to.add(unit).write(if is_outside { [0; RUN] } else { found }) };
                    outside |= is_outside;
                }
            }
            start = end;
        }
        !outside
    }
}

/// Memory that threads write different parts of.
struct Shared {
    start: *mut u8,
    length: usize,
}

// SAFETY: who writes vouches for the parts; see `scatter_runs`.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    ///
    /// No other thread reads or writes these bytes at the same time.
    #[inline(always)]
    unsafe fn write(&self, at: usize, bytes: &[u8]) {
        if at.checked_add(bytes.len()).is_some_and(|end| end <= self.length) {
            // SAFETY: inside of the memory, and not touched by others.
            unsafe { self.start.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
    }
}

/// Copies the elements to the array, whose own elements do not overlap; the last one where several go to one position, none
/// where an index is out of range.
pub(super) fn scatter(space: &IndexSpace, indices: Indices<'_>, array: &mut [u8], elements: &[u8]) {
    match space.run() {
        1 => scatter_runs::<1>(space, indices, array, elements),
        2 => scatter_runs::<2>(space, indices, array, elements),
        4 => scatter_runs::<4>(space, indices, array, elements),
        8 => scatter_runs::<8>(space, indices, array, elements),
        16 => scatter_runs::<16>(space, indices, array, elements),
        _ => scatter_runs::<0>(space, indices, array, elements),
    }
}

fn scatter_runs<const RUN: usize>(
    space: &IndexSpace,
    indices: Indices<'_>,
    array: &mut [u8],
    elements: &[u8],
) {
    let run = if RUN == 0 { space.run() } else { RUN };
    let runs = space.count() / run;
    let count = threads(space.count());
    let part = space.size().div_ceil(count).max(1);
    let parts = Mutex::new((0..space.size()).step_by(part));
    let array = Shared { start: array.as_mut_ptr(), length: array.len() };
    run_on_threads(count, &|| {
        loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(first) = next else { break };
            let mine = first as i64..first.saturating_add(part) as i64;
            for_runs(space, indices, 0..runs, |offsets, position| {
                let Some(position) = position.filter(|position| mine.contains(position)) else { return };
                let (to, from) = (offsets[1] + position * space.reach(1), offsets[2] as usize);
                let bytes = elements.get(from..from + run).unwrap_or_default();
                // SAFETY: elements of the array at different positions of the axis do not overlap, and only this thread has
                // these positions.
                unsafe { array.write(to as usize, bytes) };
            });
        }
    });
}
