//! The choice of the memory that holds a row between its stages, for groups of adjacent elements.
//!
//! A warp, or some of its threads, folds a segment (1024 elements) of the tree of [`Reduction`](crate::fuse::Reduction). A row in
//! registers has a warp for each segment, in the dtype of its memory. A row is in shared memory, of one block or of a cluster
//! (`rows_storage`), if one of these holds (`RowSchedule::why_not_registers`):
//!
//! - It has more segments than registers may hold: 32, 8 of 16-bit elements with many instructions, 2 if accesses are not
//!   vectors.
//! - A thread would execute too many instructions, hold too many registers or load too many bytes.
//! - It has one segment, and shared memory holds fewer bytes: the values of several arrays that stages share, in place of the
//!   arrays in registers.
//!
//! In a loop over rows, beside sums over groups, shared memory may hold the next row, too. Rows that do not fit are read again in
//! each stage.
//!
//! [`RowSchedule`] has the threads of a row and what a thread computes. Each of its functions is one screen: an estimate, a limit
//! of `rows_limits`, or a storage with its blocks if the row suits it. Names end in the unit: segments, instructions, registers
//! of a thread, bytes.

use super::compiled_rows::CompiledRows;
use super::reduction::{BLOCK, LANES, ROUNDS, SEGMENT, WARP};
use super::rows::slot_bytes;
use super::rows_access::RowAccess;
use super::rows_key::{RowKey, RowPlan};
use super::rows_limits::{
    COMPUTE_BOUND_INSTRUCTIONS, MAX_BYTES_PER_SHARED_BYTE, MAX_COMPUTE_BOUND_SEGMENTS, MAX_INSTRUCTIONS,
    MAX_LOADED_BYTES, MAX_REGISTER_INSTRUCTIONS, MAX_REGISTER_SEGMENTS, MAX_REGISTERS_WITH_SUMS,
    MAX_SAVED_SUM_SEGMENTS, MAX_SEGMENTS, MAX_THREAD_REGISTERS, MAX_UNALIGNED_SEGMENTS,
    MAX_WARP_INSTRUCTIONS, MIN_LONG_ROW_BLOCKS, MIN_RECOMPUTE_COST, MULTIPROCESSOR_REGISTERS,
    OTHER_REGISTERS, REREAD_WARPS, STATIC_SHARED_BYTES,
};
use super::rows_operand_layout::OperandLayout;
use super::rows_stages::RowStages;
use super::rows_storage::{RowBlocks, RowDevice, RowKind, RowStorage, SharedRow};
use super::rows_storage_reason::{NotInRegisters, NotInShared, RowStorageReasons, UnalignedAccess};

/// The least value of `min_recompute_cost`, by which later stages compute no value again.
const SAVE_ALL: usize = 1;

/// The threads of a row, for the choice of its storage.
struct RowSchedule<'a> {
    program: &'a CompiledRows,
    stages: &'a RowStages,
    layout: &'a OperandLayout<'a>,
    device: RowDevice,
    /// The registers of the sums over groups of an element, if the kernel has any. Its blocks then loop over rows.
    sum_registers: Option<usize>,
    accesses: Vec<RowAccess>,
    /// By step, whether a row has one value.
    uniform: Vec<bool>,
    segments: usize,
    lanes: usize,
    /// Adjacent elements of an access.
    vector: usize,
    /// Threads that share a segment, and accesses of each in a round.
    threads: usize,
    accesses_per_round: usize,
    rounds: usize,
    element_instructions: usize,
}

/// The storage of a row, with the blocks that it takes.
struct StorageChoice {
    storage: RowStorage,
    blocks: RowBlocks,
    /// The fewest instructions of a value that is saved for later stages.
    min_recompute_cost: usize,
    row_registers: usize,
    reasons: RowStorageReasons,
}

/// The storage in shared memory of a row of one segment.
struct WarpChoice {
    storage: RowStorage,
    blocks: RowBlocks,
    min_recompute_cost: usize,
    reason: NotInRegisters,
}

impl CompiledRows {
    /// Plans a run in one kernel over groups of adjacent elements.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(super) fn plan_rows(
        &self,
        stages: &RowStages,
        layout: &OperandLayout<'_>,
        device: RowDevice,
        sum_registers: Option<usize>,
    ) -> Result<RowPlan, &'static str> {
        RowSchedule::new(self, stages, layout, device, sum_registers)?.plan()
    }
}

impl<'a> RowSchedule<'a> {
    /// Divides a row among threads.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels: too many segments or instructions.
    fn new(
        program: &'a CompiledRows,
        stages: &'a RowStages,
        layout: &'a OperandLayout<'a>,
        device: RowDevice,
        sum_registers: Option<usize>,
    ) -> Result<RowSchedule<'a>, &'static str> {
        let row = layout.dimensions.row;
        let segments = row.div_ceil(SEGMENT);
        if segments > MAX_SEGMENTS {
            return Err("a group has more than 2097152 elements");
        }
        let (accesses, vector) = layout.accesses();
        let lanes = row.min(LANES).next_power_of_two();
        let threads = row.div_ceil(vector.max(4)).next_power_of_two().min(WARP);
        let uniform = stages.uniform(&stages.broadcast(&accesses));
        let element_instructions = program.instructions(stages, &uniform, vector)?;
        let schedule = RowSchedule {
            program,
            stages,
            layout,
            device,
            sum_registers,
            accesses,
            uniform,
            segments,
            lanes,
            vector,
            threads,
            accesses_per_round: (lanes / (threads * vector)).max(1),
            rounds: row.div_ceil(LANES).min(ROUNDS),
            element_instructions,
        };
        match schedule.element_instructions * schedule.round_elements() > MAX_INSTRUCTIONS {
            true => Err("the expression has too many instructions for one kernel"),
            false => Ok(schedule),
        }
    }

    /// Returns the elements of a thread in one round.
    fn round_elements(&self) -> usize {
        self.vector * self.accesses_per_round
    }

    /// Returns the elements of a thread.
    fn thread_elements(&self) -> usize {
        self.round_elements() * self.rounds
    }

    /// Returns the instructions of a thread that holds its row in registers.
    fn thread_instructions(&self) -> usize {
        self.element_instructions * self.thread_elements()
    }

    fn has_few_instructions(&self) -> bool {
        self.thread_instructions() <= MAX_REGISTER_INSTRUCTIONS
    }

    /// Returns whether accesses are vectors, or a row is so short that they need not be.
    fn is_aligned(&self) -> bool {
        self.vector > 1 || self.layout.dimensions.row < LANES && self.segments == 1
    }

    /// Returns whether all operands have at most 16 bits.
    fn is_narrow(&self) -> bool {
        self.layout.operands.iter().all(|(dtype, _)| dtype.size() <= 2)
    }

    /// Returns whether the instructions of narrow elements take as long as their memory. Loops over rows overlap the two by
    /// themselves.
    fn is_compute_bound(&self) -> bool {
        self.is_narrow()
            && self.element_instructions > COMPUTE_BOUND_INSTRUCTIONS
            && self.device.has_clusters()
            && self.sum_registers.is_none()
    }

    /// Returns the most segments of the row that registers may hold.
    fn max_segments_in_registers(&self) -> usize {
        match (self.is_aligned(), self.is_compute_bound()) {
            (false, _) => MAX_UNALIGNED_SEGMENTS,
            (true, false) => MAX_REGISTER_SEGMENTS,
            (true, true) => MAX_COMPUTE_BOUND_SEGMENTS,
        }
    }

    /// Returns the registers that the blocks of a row with a warp for each segment leave to a thread.
    fn max_registers(&self) -> usize {
        let block_threads = if self.segments > 1 { self.segments * WARP } else { BLOCK };
        (MULTIPROCESSOR_REGISTERS / block_threads.max(BLOCK)).min(MAX_THREAD_REGISTERS)
    }

    /// Returns the registers of a thread whose stages save values of at least `min_recompute_cost` instructions in registers.
    fn row_registers(&self, holds_inputs: bool, min_recompute_cost: usize) -> usize {
        let saved = self.stages.saved(&self.uniform, min_recompute_cost);
        let element_registers = self.layout.registers(self.stages, &self.accesses, &saved, holds_inputs);
        element_registers * self.thread_elements() + OTHER_REGISTERS
    }

    /// Returns the bytes of inputs that a thread with the row in registers reads.
    fn loaded_bytes(&self) -> usize {
        self.layout.bytes_read(self.stages, &self.accesses, self.vector)
            * self.accesses_per_round
            * self.rounds
    }

    /// Returns the reason why registers may not hold the row, which takes `row_registers` of a thread; `None` if they may.
    fn why_not_registers(&self, row_registers: usize) -> Option<NotInRegisters> {
        let (segments, most) = (self.segments, self.max_registers());
        if segments > self.max_segments_in_registers() {
            let element_instructions = self.element_instructions;
            return Some(match (self.is_aligned(), segments > MAX_REGISTER_SEGMENTS) {
                (_, true) => NotInRegisters::Segments(segments),
                (false, false) => NotInRegisters::Unaligned { segments, access: self.unaligned_access() },
                (true, false) => NotInRegisters::ComputeBound { segments, element_instructions },
            });
        }
        if !self.has_few_instructions() {
            return Some(NotInRegisters::Instructions(self.thread_instructions()));
        }
        if row_registers > most {
            return Some(NotInRegisters::Registers { registers: row_registers, most });
        }
        let loaded_bytes = self.loaded_bytes();
        (loaded_bytes > MAX_LOADED_BYTES).then_some(NotInRegisters::LoadedBytes(loaded_bytes))
    }

    /// Returns the reason why accesses are not vectors.
    fn unaligned_access(&self) -> UnalignedAccess {
        match self.accesses.contains(&RowAccess::Strided) {
            true => UnalignedAccess::Strided,
            false => UnalignedAccess::Misaligned,
        }
    }

    /// Returns the bytes of shared memory for the values of segments.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    fn all_slot_bytes(&self) -> Result<usize, &'static str> {
        // A loop over rows has the slots of two, and each reduction at most a barrier and the ends of two planes.
        let slots = self.partial_slots() * if self.sum_registers.is_some() { 2 } else { 1 };
        let reductions = self.program.reductions.iter();
        let bytes = reductions.map(|reduction| slot_bytes(reduction) * slots + 64).sum();
        match self.segments > 1 && bytes > STATIC_SHARED_BYTES {
            true => Err("the values of segments do not fit shared memory"),
            false => Ok(bytes),
        }
    }

    fn partial_slots(&self) -> usize {
        self.segments.next_power_of_two()
    }

    /// Returns the properties that the blocks of a row in shared memory depend on.
    fn kind(&self) -> RowKind {
        let has_spans = self.accesses.contains(&RowAccess::Spans);
        RowKind {
            has_spans,
            is_narrow: self.is_narrow() && !has_spans && (self.is_aligned() || self.is_compute_bound()),
            is_compute_bound: self.is_compute_bound(),
        }
    }

    /// Returns the rows of a block whose rows have one segment; 1 for longer rows.
    fn block_rows(&self) -> usize {
        let rows = self.layout.dimensions.rows;
        match self.segments {
            1 => (BLOCK / self.threads).min(rows.next_power_of_two()).max(WARP / self.threads),
            _ => 1,
        }
    }

    /// Returns the blocks of so many warps for each row, without dynamic shared memory.
    fn blocks_of(&self, warps: usize) -> RowBlocks {
        RowBlocks { cluster: 1, warps, rows: self.block_rows(), bytes: 0 }
    }

    /// Arranges the row in shared memory; `None` if nothing is to be arranged.
    fn shared_row(&self, min_recompute_cost: Option<usize>) -> Option<SharedRow> {
        let operands = self.layout.row_operands(&self.accesses);
        let (stages, is_ampere) = (self.stages, self.device.is_ampere());
        let row =
            SharedRow::new(stages, &operands, &self.uniform, self.vector, min_recompute_cost, is_ampere)?;
        let begins_anywhere = is_ampere && self.vector == 1 && self.segments > 1;
        Some(if begins_anywhere { row.with_outputs(stages, &operands) } else { row })
    }

    /// Returns the storage in shared memory of a block or cluster, beside the values of segments; `None` if it does not fit.
    fn in_shared(
        &self,
        min_recompute_cost: Option<usize>,
        slot_bytes: usize,
    ) -> Option<(RowStorage, RowBlocks)> {
        let row = self.shared_row(min_recompute_cost)?;
        let blocks = RowBlocks::new(self.segments, row.stride, slot_bytes, self.kind(), self.device)?;
        Some((RowStorage::Shared(row), blocks))
    }

    /// Returns the storage in shared memory of a row of one segment with its value of `min_recompute_cost`, whichever takes
    /// fewer bytes: a value of few instructions may take less space than several operands. `None` if the row does not fit, or
    /// stays in registers, because these may hold it and hold few bytes for each in shared memory. The reason is
    /// `not_registers`, or that shared memory holds fewer bytes.
    fn in_warp(&self, not_registers: Option<NotInRegisters>, row_registers: usize) -> Option<WarpChoice> {
        if self.segments != 1 || self.threads != WARP || self.sum_registers.is_some() {
            return None;
        }
        let arranged = |min_recompute_cost: usize| {
            self.shared_row(Some(min_recompute_cost)).map(|row| (min_recompute_cost, row))
        };
        let candidates = [MIN_RECOMPUTE_COST, SAVE_ALL].into_iter().filter_map(arranged);
        let (min_recompute_cost, row) = candidates.min_by_key(|(_, row)| row.stride)?;
        let blocks = RowBlocks::of_short_rows(row.stride, self.block_rows(), self.device)?;
        let register_bytes = (row_registers - OTHER_REGISTERS) * WARP * size_of::<u32>();
        let max_register_bytes = MAX_BYTES_PER_SHARED_BYTE * row.stride;
        let stays_in_registers = match self.thread_instructions() > MAX_WARP_INSTRUCTIONS {
            true => register_bytes < max_register_bytes,
            false => register_bytes <= max_register_bytes,
        };
        if not_registers.is_none() && stays_in_registers {
            return None;
        }
        let shared_bytes = row.stride;
        let fewer = NotInRegisters::FewerSharedBytes { register_bytes, shared_bytes };
        let reason = not_registers.unwrap_or(fewer);
        Some(WarpChoice { storage: RowStorage::Shared(row), blocks, min_recompute_cost, reason })
    }

    /// Returns the storage of a loop over rows that copies the next row meanwhile, beside sums over groups; `None` if the row
    /// does not suit it.
    fn double_buffered(&self, slot_bytes: usize) -> Option<(RowStorage, RowBlocks)> {
        if self.sum_registers.is_none() || !self.has_few_instructions() {
            return None;
        }
        let operands = self.layout.row_operands(&self.accesses);
        let row = SharedRow::double_buffered(self.stages, &operands, self.vector)?;
        let blocks = RowBlocks::of_chunks(self.segments, row.stride, slot_bytes, self.device)?;
        Some((RowStorage::SharedDoubleBuffered(row), blocks))
    }

    /// Returns the fewest instructions of a value that stages beside sums over groups save.
    ///
    /// Instructions limit elements of 16 bits, and memory those of f32. So the former save every value if registers suffice.
    fn min_recompute_cost_beside_sums(
        &self,
        sum_registers: usize,
        is_double_buffered: bool,
        fits_registers: bool,
    ) -> usize {
        let has_narrow = self.layout.operands.iter().any(|(dtype, _)| dtype.size() == 2);
        let row_registers =
            self.row_registers(!is_double_buffered, SAVE_ALL) + sum_registers * self.thread_elements();
        let has_space = row_registers <= MAX_REGISTERS_WITH_SUMS
            && (is_double_buffered || fits_registers && self.segments <= MAX_SAVED_SUM_SEGMENTS);
        if has_narrow && has_space { SAVE_ALL } else { MIN_RECOMPUTE_COST }
    }

    /// Chooses the storage of the row.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    fn choose(&self) -> Result<StorageChoice, &'static str> {
        let (mut min_recompute_cost, mut row_registers) =
            (MIN_RECOMPUTE_COST, self.row_registers(true, MIN_RECOMPUTE_COST));
        let not_registers = self.why_not_registers(row_registers);
        let fits_registers = not_registers.is_none();
        let slot_bytes = self.all_slot_bytes()?;
        let double_buffered = self.double_buffered(slot_bytes);
        if let Some(sum_registers) = self.sum_registers {
            min_recompute_cost =
                self.min_recompute_cost_beside_sums(sum_registers, double_buffered.is_some(), fits_registers);
            row_registers = self.row_registers(double_buffered.is_none(), min_recompute_cost);
        }
        let mut reasons = RowStorageReasons::default();
        let (storage, blocks) = if let Some(warp) = self.in_warp(not_registers, row_registers) {
            min_recompute_cost = warp.min_recompute_cost;
            reasons.not_registers = Some(warp.reason);
            (warp.storage, warp.blocks)
        } else if let Some(double_buffered) = double_buffered {
            double_buffered
        } else if fits_registers {
            (RowStorage::Registers, self.blocks_of(self.segments.max(1)))
        } else {
            reasons.not_registers = not_registers;
            // Saved values take space, and without them more rows fit.
            let shared = self.in_shared(Some(MIN_RECOMPUTE_COST), slot_bytes);
            shared.or_else(|| self.in_shared(None, slot_bytes)).unwrap_or_else(|| {
                let costs = [Some(MIN_RECOMPUTE_COST), None];
                let is_arranged = costs.into_iter().any(|cost| self.shared_row(cost).is_some());
                reasons.not_shared =
                    Some(if is_arranged { NotInShared::TooLarge } else { NotInShared::ReadOnce });
                (RowStorage::Reread, self.blocks_of(self.segments.min(REREAD_WARPS)))
            })
        };
        Ok(StorageChoice { storage, blocks, min_recompute_cost, row_registers, reasons })
    }

    /// Returns the launch.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    fn plan(self) -> Result<RowPlan, &'static str> {
        let StorageChoice { storage, blocks, min_recompute_cost, row_registers, reasons } = self.choose()?;
        let RowBlocks { cluster, warps, rows: rows_per_block, bytes: shared_bytes } = blocks;
        let (layout, segments, dimensions) = (self.layout, self.segments, self.layout.dimensions);
        if segments > MAX_REGISTER_SEGMENTS && dimensions.rows * cluster < MIN_LONG_ROW_BLOCKS {
            return Err("several blocks share each of few long groups");
        }
        let covered_elements = if segments == 1 { self.lanes * self.rounds } else { SEGMENT };
        // A warp may have no segment.
        let lacks_segments = !matches!(storage, RowStorage::Reread) && cluster * warps > segments;
        let key = RowKey {
            storage,
            cluster,
            parts: 1,
            wide: dimensions.is_wide(),
            vector: self.vector,
            threads: self.threads,
            accesses_per_round: self.accesses_per_round,
            rounds: self.rounds,
            min_recompute_cost,
            warps,
            partial_slots: self.partial_slots(),
            rows_per_block,
            has_columns: false,
            outer_dims: dimensions.kept.len(),
            reduced_dims: dimensions.folded.len(),
            accesses: self.accesses,
            tail: !dimensions.row.is_multiple_of(covered_elements) || lacks_segments,
            is_ampere: self.device.is_ampere(),
        };
        let block_threads = self.threads * warps * rows_per_block;
        let plan =
            layout.planned(self.stages, key, [segments, block_threads, shared_bytes, row_registers])?;
        Ok(RowPlan { reasons, ..plan })
    }
}
