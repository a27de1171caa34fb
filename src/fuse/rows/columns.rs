//! The schedule of a row program over strided groups: tiles of neighbouring groups, the columns of a matrix.
//!
//! A block takes a tile of columns. Neighbouring threads read neighbouring columns, so an access of a warp is one or a few
//! lines of memory. The threads of a column hold the lanes of its segment in registers. Columns of several segments have a
//! cluster of blocks, one for each segment.

use super::super::reduce::plan::{BLOCK, LANES, ROUNDS, SEGMENT};
use super::plan::{
    HELD_BYTES, HELD_INSTRUCTIONS, MOST_REGISTERS, OTHER_REGISTERS, OperandLayout, REGISTERS, RowKey,
    RowPlan, SHARED_BYTES, slot_bytes,
};
use super::stages::{KEPT_COST, RowStages};
use super::storage::{RowDevice, RowStorage};
use super::{RowProgramState, RowReduction};

/// Columns of a tile, the most before fewer; a tile of short columns has more.
const TILES: [usize; 4] = [32, 16, 8, 4];
/// The fewest bytes of a tile's row: half the unit in which the L2 cache reads memory. A neighbouring block reads the other half.
const ROW_BYTES: usize = 16;
/// Elements of a thread, the most before fewer.
const ELEMENTS: [usize; 3] = [32, 16, 8];
/// Threads of a block.
const MOST_THREADS: usize = 1024;
/// Registers of an element for its address, if groups have several dimensions. Assemblers compute them once for all stages.
const ADDRESS: usize = 2;
/// Registers of a thread for the addresses of its first elements, and for each word of a reduction's value: those of
/// lanes that wait for their other half, and the merge. Assemblers spilled with fewer.
const FIRST_ADDRESSES: usize = 10;
const MERGED: usize = 4;
/// Blocks of a portable cluster.
const MOST_BLOCKS: usize = 8;

/// The threads of a tile.
struct ColumnTile {
    columns: usize,
    /// Threads of a column in each block, and the lanes of each.
    threads: usize,
    groups: usize,
    registers: usize,
}

impl RowKey {
    /// Returns the schedule of a tile of columns in words.
    pub(super) fn schedule_of_columns(&self) -> String {
        let (threads, columns) = (self.threads, self.across);
        match self.cluster {
            1 => format!("{threads} threads for each column, in registers; tiles of {columns} columns"),
            cluster => format!(
                "a cluster of {cluster} blocks for each tile of {columns} columns, each with {threads} threads for each \
                 column, in registers"
            ),
        }
    }
}

impl RowProgramState {
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
        if segments > MOST_BLOCKS {
            return Err("a group of strided elements has more than 8192");
        }
        if segments > 1 && device.capability < (9, 0) {
            return Err("a group of strided elements has more than 1024, and the device has no clusters");
        }
        let (accesses, vector) = layout.accesses();
        let uniform = stages.uniform(&stages.still(&accesses));
        let of_element = self.instructions(stages, &uniform, vector)?;
        let lanes = row.min(LANES).next_power_of_two();
        let rounds = row.div_ceil(LANES).min(ROUNDS);
        let kept = stages.kept(&uniform, KEPT_COST);
        let of_kept = layout.registers(stages, &accesses, &kept, true);
        let bytes_read = layout.bytes_read(stages, &accesses, vector);
        let size = layout.operands[dimensions.leader].0.size();
        let address = if dimensions.folded.len() > 1 { ADDRESS } else { 0 };
        let words = self.reductions.iter().map(|reduction| slot_bytes(reduction).div_ceil(4)).sum::<usize>();
        let others = OTHER_REGISTERS + FIRST_ADDRESSES + MERGED * words;
        let tile = |columns: usize, elements: usize| {
            let threads = (lanes * rounds / elements).next_power_of_two().clamp(1, lanes);
            // Short columns share a block.
            let most = dimensions.rows.next_power_of_two();
            let columns = columns.max((BLOCK / threads).min(most));
            let (block, groups) = (threads * columns, lanes / threads);
            let held = groups * rounds;
            let registers = (of_kept + address) * held + others;
            let slots = |reduction: &RowReduction| slot_bytes(reduction) * (block + segments * columns) + 64;
            let fits = block <= MOST_THREADS
                && registers <= (REGISTERS / block.max(BLOCK)).min(MOST_REGISTERS)
                && of_element * held <= HELD_INSTRUCTIONS
                && bytes_read * held <= HELD_BYTES
                && self.reductions.iter().map(slots).sum::<usize>() <= SHARED_BYTES;
            fits.then_some(ColumnTile { columns, threads, groups, registers })
        };
        let tiles = TILES.iter().filter(|&columns| columns * size >= ROW_BYTES);
        let mut tiles = tiles.flat_map(|&columns| ELEMENTS.iter().map(move |&elements| (columns, elements)));
        let Some(tile) = tiles.find_map(|(columns, elements)| tile(columns, elements)) else {
            return Err("the strided elements of a group do not fit the registers of its threads");
        };
        let ColumnTile { columns, threads, groups, registers } = tile;
        let covered = if segments == 1 { lanes * rounds } else { SEGMENT };
        let key = RowKey {
            storage: RowStorage::Registers,
            cluster: segments,
            wide: dimensions.is_wide(),
            vector,
            threads,
            groups,
            rounds,
            kept_cost: KEPT_COST,
            warps: 1,
            slots: 1,
            across: columns,
            has_columns: true,
            kept: dimensions.kept.len(),
            folded: dimensions.folded.len(),
            accesses,
            tail: !row.is_multiple_of(covered),
            is_ampere: device.is_ampere(),
        };
        layout.planned(stages, key, [segments, threads * columns, 0, registers])
    }
}
