//! The schedule of a row program over strided groups: tiles of neighbouring groups, the columns of a matrix.
//!
//! A block takes a tile of columns. Neighbouring threads read neighbouring columns, so a row of the tile is one access of a
//! warp. The threads of a column hold the lanes of its segment in registers. Columns of several segments have a cluster of
//! blocks.
//!
//! Neighbouring blocks share a line of memory, 128 bytes, if the row of a tile is shorter. A load therefore asks for the whole
//! line. On an H100, softmax of (4096, 65536) in f32 has 0.84 of the speed of the driver's copy with rows of 64 bytes (0.79
//! without asking for lines), and 0.81 with rows of 128. A plan looks for tiles whose row has 64 bytes:
//!
//! - A thread takes two neighbouring columns of 16-bit elements, one access of 32 bits, and half as many of their rows. So a
//!   warp reads 64 columns with the registers for 32. The count of columns and the strides must be even, and every operand
//!   must begin at an address of two whole elements. Otherwise a thread takes one column.
//! - Blocks of a cluster may share a segment: each takes every other lane, so that twice as many columns fit its registers.
//!   The last merge of the segment's tree is the one of the two blocks.
//!
//! The tree of a column is the same in all tiles. `ptxas` 12.9 gives a thread of a softmax or of `(x - mean) * rsqrt(var)` at
//! most 64 registers in f32 and 53 in 16 bits, so a multiprocessor holds two blocks of 512 threads.
//!
//! Columns of 1025 to 8192 elements take a cluster with one or two blocks for each segment, on compute capability 9.0 or later.
//! Lanes are merged as soon as two halves are there, so that a thread of 512 has the registers for 32 elements.

use super::compiled_rows::{CompiledRows, RowReduction};
use super::reduction::{BLOCK, LANES, ROUNDS, SEGMENT, WARP};
use super::rows::slot_bytes;
use super::rows_access::RowAccess;
use super::rows_key::{RowKey, RowPlan};
use super::rows_limits::{
    MAX_LOADED_BYTES, MAX_REGISTER_INSTRUCTIONS, MAX_THREAD_REGISTERS, MIN_RECOMPUTE_COST,
    MULTIPROCESSOR_REGISTERS, OTHER_REGISTERS, STATIC_SHARED_BYTES,
};
use super::rows_operand_layout::OperandLayout;
use super::rows_stages::RowStages;
use super::rows_storage::{RowDevice, RowStorage};

/// Columns of a tile, the most before fewer; a tile of short columns has more.
const TILES: [usize; 5] = [64, 32, 16, 8, 4];
/// The bytes of a tile's row that a plan looks for: half a line of the L2 cache.
const ROW_BYTES: usize = 64;
/// The fewest bytes of a tile's row: half the unit in which the L2 cache reads memory. A neighbouring block reads the other
/// half.
const MIN_BYTES: usize = 16;
/// The most bytes of an element of which a thread takes two columns.
const PAIRED_BYTES: usize = 2;
/// The numbers of blocks that may share a segment.
const PARTS: [usize; 2] = [1, 2];
/// Elements of a thread, the most before fewer.
const ELEMENTS: [usize; 3] = [32, 16, 8];
/// Threads of a block.
const MAX_THREADS: usize = 1024;
/// Registers of an element for its address, if groups have several dimensions. Assemblers compute them once for all stages.
const ADDRESS: usize = 2;
/// Registers of a thread for the addresses of its first elements, and for each word of a reduction's value: those of
/// lanes that wait for their other half, and the merge. Assemblers spilled with fewer.
const FIRST_ADDRESSES: usize = 10;
const MERGED: usize = 4;
/// Blocks of a portable cluster.
const MAX_BLOCKS: usize = 8;

/// The threads of a tile.
struct ColumnTile {
    columns: usize,
    /// Blocks that share a segment.
    parts: usize,
    /// Threads of a column in each block, and the lanes of each.
    threads: usize,
    accesses_per_round: usize,
    registers: usize,
}

impl RowKey {
    /// Returns the schedule of a tile of columns in words.
    pub(super) fn schedule_of_columns(&self) -> String {
        let (threads, columns) = (self.threads, self.rows_per_block);
        let each = if self.vector > 1 { "two columns" } else { "column" };
        match self.cluster {
            1 => format!("{threads} threads for each {each}, in registers; tiles of {columns} columns"),
            cluster => format!(
                "a cluster of {cluster} blocks for each tile of {columns} columns, each with {threads} threads for each \
                 {each}, in registers"
            ),
        }
    }

    /// Returns the rows whose elements a thread holds: the columns of an access.
    pub(in crate::fuse) fn rows_of_thread(&self) -> usize {
        if self.has_columns { self.vector } else { 1 }
    }

    /// Returns the elements of an access that are adjacent in a row.
    pub(in crate::fuse) fn vector_along(&self) -> usize {
        self.vector / self.rows_of_thread()
    }

    /// Returns the threads of a row of a tile.
    pub(in crate::fuse) fn threads_across(&self) -> usize {
        self.rows_per_block / self.vector
    }

    /// Returns the threads of a column in a warp, which exchange values by shuffles. A block of a few columns is less than a
    /// warp and has no shuffles.
    pub(in crate::fuse) fn threads_in_warp(&self) -> usize {
        let across = self.threads_across();
        if across * self.threads < WARP { 1 } else { (WARP / across).max(1) }
    }
}

impl OperandLayout<'_> {
    /// Returns the accesses to operands by threads with two neighbouring columns; `None` if threads have one.
    fn paired(&self, stages: &RowStages, accesses: &[RowAccess]) -> Option<Vec<RowAccess>> {
        let dimensions = self.dimensions;
        let [across, others @ ..] = &dimensions.kept[..] else { return None };
        let is_narrow = self.operands[dimensions.leader].0.size() <= PAIRED_BYTES;
        if !is_narrow || !across.size.is_multiple_of(2) || stages.has_positions() {
            return None;
        }
        let access = |(operand, &access): (usize, &RowAccess)| match (access, across.strides[operand]) {
            (RowAccess::Broadcast, _) => Some(RowAccess::Broadcast),
            (_, 0) => Some(RowAccess::OfSpan),
            (RowAccess::Strided, 1) => {
                let mut others = others.iter().chain(&dimensions.folded);
                self.is_aligned_along(operand, 2, &mut others).then_some(RowAccess::Strided)
            }
            _ => None,
        };
        accesses.iter().enumerate().map(access).collect()
    }
}

impl CompiledRows {
    /// Plans a run in one kernel over groups whose elements are further apart than those of neighbouring groups.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(super) fn plan_columns(
        &self,
        stages: &RowStages,
        layout: &OperandLayout<'_>,
        device: RowDevice,
    ) -> Result<RowPlan, &'static str> {
        let (dimensions, row) = (layout.dimensions, layout.dimensions.row);
        let segments = row.div_ceil(SEGMENT);
        if segments > MAX_BLOCKS {
            return Err("a group of strided elements has more than 8192");
        }
        if segments > 1 && !device.has_clusters() {
            return Err(
                "a group of strided elements has more than 1024, and the device or its driver has no clusters",
            );
        }
        let (mut accesses, mut vector) = layout.accesses();
        if let Some(paired) = layout.paired(stages, &accesses) {
            (accesses, vector) = (paired, 2);
        }
        let uniform = stages.uniform(&stages.broadcast(&accesses));
        let of_element = self.instructions(stages, &uniform, vector)?;
        let lanes = row.min(LANES).next_power_of_two();
        let rounds = row.div_ceil(LANES).min(ROUNDS);
        let saved = stages.saved(&uniform, MIN_RECOMPUTE_COST);
        let element_registers = layout.registers(stages, &accesses, &saved, true);
        let bytes_read = layout.bytes_read(stages, &accesses, vector);
        let size = layout.operands[dimensions.leader].0.size();
        let address = if dimensions.folded.len() > 1 { ADDRESS } else { 0 };
        let words = self.reductions.iter().map(|reduction| slot_bytes(reduction).div_ceil(4)).sum::<usize>();
        let others = OTHER_REGISTERS + FIRST_ADDRESSES + MERGED * words;
        let tile = |parts: usize, columns: usize, elements: usize| {
            let lanes = lanes / parts;
            let threads = (lanes * rounds * vector / elements).next_power_of_two().clamp(1, lanes);
            // Short columns share a block.
            let most = dimensions.rows.next_power_of_two();
            let columns = columns.max((BLOCK / threads * vector).min(most));
            let (block, accesses_per_round) = (threads * columns / vector, lanes / threads);
            let held = accesses_per_round * rounds;
            let registers = (element_registers * vector + address) * held + others;
            let warps = if block < WARP { threads } else { threads.min(block / WARP) };
            let slots = warps + segments * parts;
            let slots = |reduction: &RowReduction| slot_bytes(reduction) * slots * columns + 96;
            let fits = block <= MAX_THREADS
                && registers <= (MULTIPROCESSOR_REGISTERS / block.max(BLOCK)).min(MAX_THREAD_REGISTERS)
                && of_element * held * vector <= MAX_REGISTER_INSTRUCTIONS
                && bytes_read * held <= MAX_LOADED_BYTES
                && self.reductions.iter().map(slots).sum::<usize>() <= STATIC_SHARED_BYTES;
            fits.then_some(ColumnTile { columns, parts, threads, accesses_per_round, registers })
        };
        let has_parts = |parts: usize| {
            parts == 1 || device.has_clusters() && row > LANES && segments * parts <= MAX_BLOCKS
        };
        let bytes = |columns: usize| columns * size;
        let tiles = || TILES.into_iter().filter(|&columns| (MIN_BYTES..=ROW_BYTES).contains(&bytes(columns)));
        // The widest tile of each number of blocks, the first of them that has whole lines, or else the widest.
        let widest = PARTS.into_iter().filter(|&parts| has_parts(parts)).filter_map(|parts| {
            tiles().find_map(|columns| ELEMENTS.iter().find_map(|&elements| tile(parts, columns, elements)))
        });
        let widest: Vec<ColumnTile> = widest.collect();
        let most = widest.iter().map(|tile| bytes(tile.columns).min(ROW_BYTES)).max();
        let Some(tile) = widest.into_iter().find(|tile| Some(bytes(tile.columns).min(ROW_BYTES)) == most)
        else {
            return Err("the strided elements of a group do not fit the registers of its threads");
        };
        let ColumnTile { columns, parts, threads, accesses_per_round, registers } = tile;
        let covered = if segments == 1 { lanes * rounds } else { SEGMENT };
        let key = RowKey {
            storage: RowStorage::Registers,
            cluster: segments * parts,
            parts,
            wide: dimensions.is_wide(),
            vector,
            threads,
            accesses_per_round,
            rounds,
            min_recompute_cost: MIN_RECOMPUTE_COST,
            warps: 1,
            partial_slots: 1,
            rows_per_block: columns,
            has_columns: true,
            outer_dims: dimensions.kept.len(),
            reduced_dims: dimensions.folded.len(),
            accesses,
            tail: !row.is_multiple_of(covered),
            is_ampere: device.is_ampere(),
        };
        layout.planned(stages, key, [segments, threads * columns / vector, 0, registers])
    }
}
