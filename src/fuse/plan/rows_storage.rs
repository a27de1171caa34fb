//! The layout of a row in shared memory, and the blocks and clusters that hold it. `rows_schedule` chooses between registers and
//! shared memory.
//!
//! A warp owns segments of a row in shared memory: their stride does not depend on the length of the row, so the
//! text of a kernel does not either. Segment (k · C + r) · W + w belongs to warp w of the W in block r of C. A
//! thread reads what it has copied itself, so a row in shared memory needs no barrier; rows that begin anywhere
//! are copied by whole warps.
//!
//! A segment has one array for each operand in shared memory. A value that a later stage would compute again from
//! many instructions has arrays too, which may be those of operands and values that no later stage reads. Of a row of one
//! segment, which has a warp, a value of few instructions takes the place of several operands if no later stage reads these.
//! 16-bit outputs of rows of several segments that begin anywhere have arrays as well, and leave them in whole lines.

use super::reduction::SEGMENT;
use super::rows_access::RowAccess;
use super::rows_limits::{
    BLOCK_BYTES, CHUNK_SEGMENTS, FEW_SEGMENTS, FEW_WARPS, MAX_CHUNK_SEGMENTS, MAX_WARPS, MIN_ROWS,
    SLICE_BYTES, SMALL_BYTES, STATIC_SHARED_BYTES,
};
use super::rows_stages::RowStages;
use crate::driver::{Device, driver_isa};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::parts;
use crate::types::DType;

/// The bytes of an element of an output with an array.
const NARROW: usize = 2;

/// Rows in shared memory of a block that loops over rows: the current one and the next.
pub(in crate::fuse) const BUFFERS: usize = 2;

/// The place of a row between the stages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum RowStorage {
    Registers,
    Shared(SharedRow),
    /// Shared memory, in a loop over rows that copies the next row meanwhile. A warp has one segment, and saved values
    /// stay in registers.
    SharedDoubleBuffered(SharedRow),
    /// Each stage reads the row again.
    Reread,
}

impl RowStorage {
    /// Returns whether stages save values for later ones.
    pub(in crate::fuse) fn saves_values(&self) -> bool {
        match self {
            RowStorage::Registers | RowStorage::SharedDoubleBuffered(_) => true,
            RowStorage::Shared(row) => !row.saved.is_empty(),
            RowStorage::Reread => false,
        }
    }
}

/// The operands and values of a row in shared memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct SharedRow {
    /// By operand, its array. Threads fill that of an output, and warps copy it to global memory.
    pub(in crate::fuse) operands: Vec<Option<SharedArray>>,
    /// Steps of the expression, with the arrays of their chunks of 16 bytes.
    pub(in crate::fuse) saved: Vec<(usize, Vec<SharedArray>)>,
    /// Bytes of a segment.
    pub(in crate::fuse) stride: usize,
}

/// The properties of an operand that decide its array and its copy in shared memory.
pub(super) struct RowOperand {
    pub(in crate::fuse) dtype: DType,
    pub(in crate::fuse) access: RowAccess,
    /// True if each row has other elements than the previous one.
    pub(super) varies: bool,
    /// The address of the first row, and the distances of rows along each kept dimension, modulo a line.
    pub(in crate::fuse) misalignments: Vec<usize>,
}

/// A part of each segment in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct SharedArray {
    /// Bytes before the array in its segment.
    pub(in crate::fuse) offset: usize,
    /// Bytes of an access.
    pub(in crate::fuse) width: usize,
    /// The way in which the operand is copied.
    pub(in crate::fuse) copy: RowCopy,
}

/// The copy of an operand to shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum RowCopy {
    /// Each thread loads and stores its elements.
    Registers,
    /// Each thread copies its elements asynchronously.
    Threads,
    /// A warp copies the lines of 16 bytes that contain its segment of this operand asynchronously.
    Lines(usize),
}

/// The properties of a device that the choice of a schedule depends on.
#[derive(Debug, Clone, Copy)]
pub(in crate::fuse) struct RowDevice {
    capability: (i32, i32),
    /// The newest PTX ISA that the driver assembles.
    isa: (i32, i32),
}

/// The PTX ISA of kernels of clusters.
const CLUSTER_ISA: (i32, i32) = (8, 1);

impl RowDevice {
    /// Describes a device.
    pub(in crate::fuse) fn of(device: &Device) -> RowDevice {
        // If the version of the driver is unknown, kernels have no clusters.
        RowDevice { capability: device.compute_capability(), isa: driver_isa().unwrap_or((8, 0)) }
    }

    /// Describes a device of this compute capability with a driver of CUDA 12.1 or later.
    pub(in crate::fuse) fn of_capability(capability: (i32, i32)) -> RowDevice {
        RowDevice { capability, isa: CLUSTER_ISA }
    }

    /// Returns whether the device has asynchronous copies and conversions to bf16.
    pub(in crate::fuse) fn is_ampere(self) -> bool {
        self.capability >= (8, 0)
    }

    /// Returns whether blocks of the device form clusters, and its driver assembles `st.async`.
    pub(super) fn has_clusters(self) -> bool {
        self.capability >= (9, 0) && self.isa >= CLUSTER_ISA
    }

    /// Returns the most bytes of shared memory of a block.
    fn shared(self) -> usize {
        let kilobytes = match self.capability {
            (..=6, _) => 48,
            (7, 5) => 64,
            (7, _) => 96,
            (8, 0 | 7) => 163,
            (8, _) | (12.., _) => 99,
            (9..=11, _) => 227,
        };
        kilobytes * 1024
    }
}

/// The properties of a row that its blocks depend on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowKind {
    pub(super) has_spans: bool,
    /// True for adjacent elements of 16 bits or fewer that begin at whole vectors or have many instructions.
    pub(super) is_narrow: bool,
    /// True for elements of 16 bits or fewer whose instructions take as long as their memory.
    pub(super) is_compute_bound: bool,
}

/// The blocks of a row in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowBlocks {
    /// Blocks that share a row.
    pub(in crate::fuse) cluster: usize,
    /// Warps of a block.
    pub(in crate::fuse) warps: usize,
    /// Rows of a block.
    pub(in crate::fuse) rows: usize,
    /// Bytes of a block.
    pub(in crate::fuse) bytes: usize,
}

impl RowBlocks {
    /// Returns the fewest small blocks of a narrow row, or else the fewest blocks, that hold so many segments of `stride` bytes,
    /// beside `values` bytes for the values of segments; `None` if no cluster does.
    pub(super) fn new(
        segments: usize,
        stride: usize,
        values: usize,
        kind: RowKind,
        device: RowDevice,
    ) -> Option<RowBlocks> {
        let clusters: &[usize] = if device.has_clusters() { &[1, 2, 4, 8] } else { &[1] };
        let blocks = |cluster: usize, most: usize| {
            // The last warps may have one segment less than others, or none.
            let each = segments.div_ceil(cluster * most);
            let warps = segments.div_ceil(cluster * each);
            RowBlocks { cluster, warps, rows: 1, bytes: each * warps * stride }
        };
        let fits = |blocks: &RowBlocks, limit: usize| blocks.bytes + values <= limit.min(device.shared());
        let clusters = || clusters.iter().copied().filter(|&cluster| segments >= 2 * cluster);
        if kind.is_narrow && device.has_clusters() {
            let mut small = clusters().map(|cluster| blocks(cluster, FEW_WARPS));
            if let Some(small) = small.find(|blocks| fits(blocks, SMALL_BYTES)) {
                return Some(small);
            }
        }
        let mut all = clusters().map(|cluster| {
            let has_few = segments <= FEW_SEGMENTS * cluster || kind.is_compute_bound;
            blocks(cluster, if has_few { FEW_WARPS } else { MAX_WARPS })
        });
        all.find(|blocks| {
            let limit = match blocks.cluster {
                1 => BLOCK_BYTES,
                2 | 4 if !kind.has_spans => SLICE_BYTES,
                2 | 4 => BLOCK_BYTES,
                _ => device.shared(),
            };
            fits(blocks, limit)
        })
    }

    /// Returns the block of rows of one segment of `stride` bytes, a warp each, with at most `most` rows in the bytes of
    /// static shared memory; `None` if a multiprocessor holds too few rows.
    pub(super) fn of_short_rows(stride: usize, most: usize, device: RowDevice) -> Option<RowBlocks> {
        let rows = most.min(1 << (STATIC_SHARED_BYTES / stride).checked_ilog2()?);
        let blocks = RowBlocks { cluster: 1, warps: 1, rows, bytes: rows * stride };
        (device.shared() / stride >= MIN_ROWS).then_some(blocks)
    }

    /// Returns the fewest blocks of a cluster that loop over rows of so many segments, a warp for each; `None` if no
    /// cluster holds the current row and the next.
    pub(super) fn of_chunks(
        segments: usize,
        stride: usize,
        values: usize,
        device: RowDevice,
    ) -> Option<RowBlocks> {
        if !device.has_clusters() || segments <= CHUNK_SEGMENTS {
            return None;
        }
        let cluster = [2, 4].into_iter().find(|cluster| segments <= CHUNK_SEGMENTS * cluster).unwrap_or(8);
        let warps = segments.div_ceil(cluster);
        let bytes = BUFFERS * warps * stride;
        let fits = warps <= MAX_CHUNK_SEGMENTS && bytes + values <= device.shared();
        fits.then_some(RowBlocks { cluster, warps, rows: 1, bytes })
    }
}

impl SharedRow {
    /// Arranges the operands that vary from row to row and that several stages read. Stages do not compute values of at
    /// least `min_recompute_cost` instructions again, if there is one. Returns `None` if nothing is to be arranged.
    pub(super) fn new(
        stages: &RowStages,
        operands: &[RowOperand],
        uniform: &[bool],
        vector: usize,
        min_recompute_cost: Option<usize>,
        is_async: bool,
    ) -> Option<SharedRow> {
        let steps = &stages.expression.program.steps;
        let saved =
            min_recompute_cost.map_or_else(|| stages.saved_nowhere(), |least| stages.saved(uniform, least));
        let (read, computed) = (stages.read(&saved), stages.computed(&saved));
        let mut row = SharedRow::empty(operands.len());
        // Planes with the last stage that reads them.
        let mut dying: Vec<(SharedArray, usize)> = Vec::new();
        for (input, operand) in stages.operand_of().into_iter().enumerate() {
            let Some(operand) = operand else { continue };
            let &RowOperand { dtype, access, varies, .. } = &operands[operand];
            let loads = |stage: &usize| stages.is_loaded(input, &computed[*stage]);
            let readers: Vec<usize> = (0..computed.len()).filter(loads).collect();
            let is_single = matches!(access, RowAccess::Broadcast | RowAccess::OfSpan);
            if is_single || !varies || readers.len() < 2 {
                continue;
            }
            let width = vector * dtype.size();
            // A single element of several parts may have the alignment of one.
            let is_aligned = vector > 1 || parts(dtype) == 1;
            let copy = match access {
                RowAccess::Contiguous if is_async && is_aligned && width < 16 => RowCopy::Lines(operand),
                _ if is_async && is_aligned && width >= 4 => RowCopy::Threads,
                _ => RowCopy::Registers,
            };
            let array = row.array(width, copy, vector);
            row.operands[operand] = Some(array);
            dying.extend(readers.last().map(|&last| (array, last)));
        }
        for (stage, saved) in saved.iter().enumerate() {
            let mut newly = Vec::new();
            for step in (0..saved.len()).filter(|&step| saved[step]) {
                let is_wide = steps[step].1 == RegisterKind::Float64;
                let bytes = vector * if is_wide { 8 } else { 4 };
                let width = bytes.min(16);
                let mut arrays = Vec::with_capacity(bytes / width);
                while arrays.len() < bytes / width {
                    let dead = dying.iter().position(|(array, last)| array.width == width && *last <= stage);
                    arrays.push(match dead {
                        Some(at) => dying.swap_remove(at).0,
                        None => row.array(width, RowCopy::Registers, vector),
                    });
                }
                let last = (0..read.len()).filter(|&stage| read[stage][step]).max().unwrap_or(stage);
                newly.extend(arrays.iter().map(|&array| (array, last)));
                row.saved.push((step, arrays));
            }
            dying.extend(newly);
        }
        (row.stride > 0).then_some(row)
    }

    /// Arranges the 16-bit outputs of rows that begin anywhere: in the array of an operand with elements at the same indices of
    /// lines, or in their own.
    pub(super) fn with_outputs(mut self, stages: &RowStages, operands: &[RowOperand]) -> SharedRow {
        let inputs = stages.operand_of().iter().flatten().count();
        for (operand, output) in operands.iter().enumerate().skip(inputs) {
            if output.access != RowAccess::Contiguous
                || output.dtype.size() != NARROW
                || parts(output.dtype) != 1
            {
                continue;
            }
            let is_free = |&input: &usize| {
                let has_lines =
                    matches!(self.operands[input], Some(SharedArray { copy: RowCopy::Lines(_), .. }));
                let is_taken = self.operands[inputs..].contains(&self.operands[input]);
                let given = &operands[input];
                has_lines
                    && !is_taken
                    && given.dtype.size() == NARROW
                    && given.misalignments == output.misalignments
            };
            let array = match (0..inputs).find(is_free) {
                Some(input) => self.operands[input],
                None => Some(self.array(NARROW, RowCopy::Lines(operand), 1)),
            };
            self.operands[operand] = array;
        }
        self
    }

    fn empty(operands: usize) -> SharedRow {
        SharedRow { operands: vec![None; operands], saved: Vec::new(), stride: 0 }
    }

    /// Arranges the operands that vary from row to row, for asynchronous copies by the threads that read them. Returns
    /// `None` if that is nothing, or if an operand does not suit such copies. Elements of f64 spill beside their sums.
    pub(super) fn double_buffered(
        stages: &RowStages,
        operands: &[RowOperand],
        vector: usize,
    ) -> Option<SharedRow> {
        let mut row = SharedRow::empty(operands.len());
        for operand in stages.operand_of().into_iter().flatten() {
            let &RowOperand { dtype, access, varies, .. } = &operands[operand];
            if access == RowAccess::Broadcast || !varies {
                continue;
            }
            let width = vector * dtype.size();
            if access != RowAccess::Contiguous || vector == 1 || width < 4 || dtype.size() > 4 {
                return None;
            }
            row.operands[operand] = Some(row.array(width, RowCopy::Threads, vector));
        }
        (row.stride > 0).then_some(row)
    }

    fn array(&mut self, width: usize, copy: RowCopy, vector: usize) -> SharedArray {
        let array = SharedArray { offset: self.stride, width, copy };
        let line = if let RowCopy::Lines(_) = copy { 16 } else { 0 };
        self.stride += (SEGMENT / vector * width).next_multiple_of(16) + line;
        array
    }

    /// Returns the array of an operand.
    pub(in crate::fuse) fn operand(&self, operand: usize) -> Option<SharedArray> {
        self.operands.get(operand).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that does not assemble asynchronous stores gets kernels without clusters.
    #[test]
    fn an_older_driver_has_no_clusters() {
        let new = RowDevice::of_capability((9, 0));
        let old = RowDevice { isa: (8, 0), ..new };
        let [clustered, alone] =
            [new, old].map(|device| RowBlocks::new(64, 4096, 512, RowKind::default(), device));
        assert_eq!(clustered.map(|blocks| blocks.cluster), Some(4));
        assert_eq!(alone, None);
        assert_eq!(RowDevice::of_capability((8, 0)).has_clusters(), old.has_clusters());
    }
}
