//! The schedule of a row program in one kernel: the threads of a row, and the memory that holds it between the
//! reductions.
//!
//! A warp, or some of its threads, folds a segment of the tree of [`Reduction`](crate::fuse::Reduction). Rows of
//! at most [`HELD_SEGMENTS`] segments ([`HEAVY_SEGMENTS`] for some) have a warp for each segment and stay in registers, in their
//! dtype in memory. Longer rows, unaligned ones of more than [`UNALIGNED_SEGMENTS`], and programs with too many values for
//! registers hold their row in shared memory, of one block or of a cluster (`rows_storage`). Of a row of one segment, shared
//! memory holds the values of several arrays that stages share, in place of the arrays in registers. Rows that do not fit
//! are read again in each stage. Rows whose elements are further apart than those of neighbouring rows are planned in
//! tiles (`rows_columns`). Other programs run as several kernels, for a reason that
//! [`RowExplanation`](crate::fuse::RowExplanation) gives.
//!
//! A row of several folded dimensions consists of spans, one for each index of all but the innermost. The element
//! at an index of the row has the coordinates of that index, in the order of the axes, so segments do not depend on
//! spans. Accesses are vectors if every span is whole vectors, so that none crosses the end of a span; a multiplication by a
//! reciprocal finds the span. An input with one value for each span, such as a weight of group norm, is loaded once for a
//! vector.
//!
//! The text of a kernel depends only on the program and the [`RowKey`], and the schedule never changes a bit of a
//! result.

use super::compiled_rows::{CompiledRows, RowReduction};
use super::reduction::{BLOCK, LANES, ROUNDS, ReductionParameters, SEGMENT, WARP};
use super::reduction_dimensions::Dimensions;
use super::rows_operand_layout::OperandLayout;
use super::rows_shape::RowShape;
use super::rows_stages::{KEPT_COST, RowStages};
use super::rows_storage::{RowBlocks, RowDevice, RowKind, RowStorage, SharedRow};
use super::rows_sums::MOST_REGISTERS as MOST_REGISTERS_WITH_SUMS;
use crate::types::{DType, Layout};

/// The most segments of a row in registers: the warps of a block.
const HELD_SEGMENTS: usize = 32;
/// The most segments of an unaligned row in registers.
const UNALIGNED_SEGMENTS: usize = 2;
/// The most segments of a row of 16-bit elements with [`MANY_INSTRUCTIONS`] in registers. A multiprocessor rarely holds two blocks
/// of more warps, and only two overlap the memory of one with the instructions of the other.
const HEAVY_SEGMENTS: usize = 8;
/// Warps of a block that reads its row again.
const READING_WARPS: usize = 16;
/// The instructions of a 16-bit element, a softmax's but no norm's, that take as long as its memory.
const MANY_INSTRUCTIONS: usize = 32;
/// The most segments of a row: a lane folds 64 neighbouring values of segments.
const MOST_SEGMENTS: usize = 2048;
/// The number of rows below which a block for each long row would leave most of a device idle.
const FEW_ROWS: usize = 16;
/// The most segments of a row in registers beside sums over groups with the registers for values of few instructions.
const FEW_SEGMENTS: usize = 4;
/// The most bytes that a warp has in registers for each in shared memory that could take their place, a value of several
/// operands.
const MOST_HELD: usize = 2;
/// The most instructions on the elements of a warp's row that stays in registers with [`MOST_HELD`] bytes: in shared memory, a
/// loop has a fourth of the text.
const HELD_INSTRUCTIONS_OF_WARP: usize = 2400;
/// Bytes of static shared memory.
pub(super) const SHARED_BYTES: usize = 48 * 1024;
/// The most instructions on elements of a kernel with the row in registers, and of any kernel. A longer text takes
/// more than 0.2 seconds to assemble.
pub(super) const HELD_INSTRUCTIONS: usize = 3000;
pub(super) const MOST_INSTRUCTIONS: usize = 6000;
/// Registers of a multiprocessor; those of a thread by the estimate, above which assemblers spilled f64 rows; and those that a
/// thread needs beside the row.
pub(super) const REGISTERS: usize = 65536;
pub(super) const MOST_REGISTERS: usize = 176;
pub(super) const OTHER_REGISTERS: usize = 28;
/// The most bytes that a thread with the row in registers reads. Assemblers load all of them early, and spilled
/// three inputs of f64.
pub(super) const HELD_BYTES: usize = 640;

/// The access to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum RowAccess {
    /// One element for the whole row.
    Still,
    /// Adjacent elements, one access for a vector.
    Contiguous,
    /// Adjacent elements along the innermost folded dimension, which whole vectors divide: one access for a vector.
    Spans,
    /// One element for a vector: along the innermost folded dimension, which whole vectors divide, or for the columns of a
    /// thread.
    OfSpan,
    /// Any strides, one access an element.
    Strided,
}

/// Everything but the program that the text of a kernel depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::fuse) struct RowKey {
    pub(in crate::fuse) storage: RowStorage,
    /// Blocks that share a row.
    pub(in crate::fuse) cluster: usize,
    /// Blocks that share a segment of a column.
    pub(in crate::fuse) parts: usize,
    /// True if indices have 64 bits.
    pub(in crate::fuse) wide: bool,
    /// Adjacent elements of one access: of a row, or of neighbouring columns.
    pub(in crate::fuse) vector: usize,
    /// Threads that share a segment, and accesses of each in a round.
    pub(in crate::fuse) threads: usize,
    pub(in crate::fuse) groups: usize,
    pub(in crate::fuse) rounds: usize,
    /// The fewest instructions of a value that later stages keep rather than compute again.
    pub(in crate::fuse) kept_cost: usize,
    /// Warps of a row in each block.
    pub(in crate::fuse) warps: usize,
    /// The power of two above the number of segments.
    pub(in crate::fuse) slots: usize,
    /// Rows of a block.
    pub(in crate::fuse) across: usize,
    /// True if neighbouring threads of a block take neighbouring rows.
    pub(in crate::fuse) has_columns: bool,
    /// Numbers of dimensions.
    pub(in crate::fuse) kept: usize,
    pub(in crate::fuse) folded: usize,
    /// By operand, inputs before outputs.
    pub(in crate::fuse) accesses: Vec<RowAccess>,
    /// True if some lanes have fewer elements.
    pub(in crate::fuse) tail: bool,
    /// True for compute capability 8.0 or higher, which has conversions to bf16 and extremes that are NaN beside NaN.
    pub(in crate::fuse) is_ampere: bool,
}

/// The launch of a program in one kernel.
pub(in crate::fuse) struct RowPlan {
    pub(in crate::fuse) key: RowKey,
    pub(in crate::fuse) blocks: u32,
    pub(in crate::fuse) threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub(in crate::fuse) shared: u32,
    pub(in crate::fuse) parameters: ReductionParameters,
    /// The parameter block, with space for the scalars.
    pub(in crate::fuse) block: Vec<u8>,
    /// By operand, the byte offset of its first element.
    pub(in crate::fuse) offsets: Vec<usize>,
    /// The registers of a thread that holds its row, by an estimate.
    pub(in crate::fuse) registers: usize,
}

impl RowKey {
    /// Returns the schedule in words.
    pub(in crate::fuse) fn schedule(&self) -> String {
        if self.has_columns {
            return self.schedule_of_columns();
        }
        let place = match self.storage {
            RowStorage::Registers => "in registers",
            RowStorage::Shared(_) => "in shared memory",
            RowStorage::Ahead(_) => "in shared memory beside the next row",
            RowStorage::Global => "that each stage reads",
        };
        let schedule = match (self.cluster, self.warps, self.threads) {
            (1, 1, WARP) => format!("a warp for each row, {place}; {} rows a block", self.across),
            (1, 1, threads) => {
                format!("{threads} threads for each row, {place}; {} rows a block", self.across)
            }
            (1, warps, _) => format!("a block of {warps} warps for each row, {place}"),
            (cluster, warps, _) => {
                format!("a cluster of {cluster} blocks of {warps} warps for each row, {place}")
            }
        };
        match self.accesses.contains(&RowAccess::Spans) {
            true => format!("{schedule}; vectors of {} elements within spans", self.vector),
            false if self.accesses.contains(&RowAccess::Strided) => format!("{schedule}; element by element"),
            false => schedule,
        }
    }
}

/// The operands of a plan: inputs in the order of the stages' expression, then outputs.
pub(in crate::fuse) struct RowOperands<'a> {
    pub(in crate::fuse) inputs: &'a [(DType, Layout)],
    pub(in crate::fuse) outputs: &'a [(DType, Layout)],
    /// Addresses modulo [`WIDEST`], inputs of the program before outputs.
    pub(in crate::fuse) starts: &'a [u64],
}

impl CompiledRows {
    /// Returns the program's inputs in the order of the kernel's operands.
    pub(in crate::fuse) fn kernel_inputs(stages: &RowStages) -> Vec<usize> {
        stages.operands.numbers().collect()
    }

    /// Plans a run in one kernel.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(in crate::fuse) fn plan(
        &self,
        shape: &RowShape,
        given: &RowOperands<'_>,
        device: RowDevice,
    ) -> Result<RowPlan, &'static str> {
        self.plan_for(shape, given, device, None)
    }

    /// Plans a run in one kernel. With `sums`, the registers of the sums over groups of an element, blocks loop over rows,
    /// and share long rows in clusters.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(super) fn plan_for(
        &self,
        shape: &RowShape,
        given: &RowOperands<'_>,
        device: RowDevice,
        sums: Option<usize>,
    ) -> Result<RowPlan, &'static str> {
        let stages = self.stages.as_ref().map_err(|reason| *reason)?;
        if shape.size == 0 || shape.groups.count() == 0 {
            return Err("there are no elements");
        }
        if given.outputs.iter().any(|(_, layout)| layout.may_overlap()) {
            return Err("elements of an output overlap");
        }
        let numbers = CompiledRows::kernel_inputs(stages);
        let (mut operands, mut starts) = (Vec::new(), Vec::new());
        for &number in &numbers {
            operands.push(given.inputs[number]);
            starts.push(given.starts[number]);
        }
        operands.extend(given.outputs);
        starts.extend(&given.starts[given.inputs.len()..]);
        let expanded: Result<Vec<Layout>, _> =
            operands.iter().map(|(_, layout)| layout.expand(&shape.elements)).collect();
        let expanded = expanded.map_err(|_| "an operand does not broadcast to the elements")?;
        let dimensions = Dimensions::of_operands(&shape.elements, &expanded, numbers.len(), |axis| {
            shape.groups[axis] != shape.elements[axis]
        });
        let layout = OperandLayout { dimensions: &dimensions, operands: &operands, starts: &starts };
        // The position of an element follows from those of its row and of the element in it.
        if stages.has_positions() && (dimensions.kept.len() > 1 || !shape.has_trailing_groups()) {
            return Err("positions, such as of random words, need groups of the last axes");
        }
        match (layout.has_columns(), sums) {
            (false, _) => self.plan_rows(stages, &layout, device, sums),
            (true, None) => self.plan_columns(stages, &layout, device),
            (true, Some(_)) => {
                Err("the elements of a group are further apart than those of neighbouring groups")
            }
        }
    }

    /// Returns the instructions that an element of a vector takes in all stages.
    ///
    /// # Errors
    ///
    /// The reason why the program runs as several kernels.
    pub(in crate::fuse) fn instructions(
        &self,
        stages: &RowStages,
        uniform: &[bool],
        vector: usize,
    ) -> Result<usize, &'static str> {
        let program = &stages.expression.program;
        if stages.indices().any(|index| !uniform[program.outputs[index][0].index()]) {
            return Err("an index of at_group differs within a group");
        }
        let of_stage = |stage: &super::rows_stages::Stage| {
            let of_elements = (0..uniform.len()).filter(|&step| stage.wanted[step] && !uniform[step]);
            // In quarters, as up to 4 elements share a step.
            of_elements.map(|step| 4 / stages.sharing(step, vector)).sum::<usize>().div_ceil(4)
        };
        let folds = self.reductions.iter().map(|reduction| {
            let rules = &reduction.reduction.rules;
            // The square of an element is no step.
            let square = usize::from(reduction.reduction.rescaled.is_some());
            rules.append.steps.len() + rules.kinds.len() + square
        });
        Ok(stages.stages.iter().map(of_stage).sum::<usize>() + folds.sum::<usize>())
    }

    fn plan_rows(
        &self,
        stages: &RowStages,
        layout: &OperandLayout<'_>,
        device: RowDevice,
        sums: Option<usize>,
    ) -> Result<RowPlan, &'static str> {
        let (dimensions, operands) = (layout.dimensions, layout.operands);
        let (row, rows) = (dimensions.row, dimensions.rows);
        let segments = row.div_ceil(SEGMENT);
        if segments > MOST_SEGMENTS {
            return Err("a group has more than 2097152 elements");
        }
        let (accesses, vector) = layout.accesses();
        let lanes = row.min(LANES).next_power_of_two();
        let threads = row.div_ceil(vector.max(4)).next_power_of_two().min(WARP);
        let groups = (lanes / (threads * vector)).max(1);
        let rounds = row.div_ceil(LANES).min(ROUNDS);
        let uniform = stages.uniform(&stages.still(&accesses));
        let of_element = self.instructions(stages, &uniform, vector)?;
        let copies = vector * groups;
        if of_element * copies > MOST_INSTRUCTIONS {
            return Err("the expression has too many instructions for one kernel");
        }
        let aligned = vector > 1 || row < LANES && segments == 1;
        let warps = if segments > 1 { segments } else { 1 };
        let block = if warps > 1 { warps * WARP } else { BLOCK };
        let registers = (REGISTERS / block.max(BLOCK)).min(MOST_REGISTERS);
        let of_row = |holds_inputs: bool, kept_cost: usize| {
            let kept = stages.kept(&uniform, kept_cost);
            let of_element = layout.registers(stages, &accesses, &kept, holds_inputs);
            of_element * copies * rounds + OTHER_REGISTERS
        };
        let mut kept_cost = KEPT_COST;
        let mut registers_of_row = of_row(true, kept_cost);
        let instructions = of_element * copies * rounds;
        let is_short = instructions <= HELD_INSTRUCTIONS;
        let is_narrow = operands.iter().all(|(dtype, _)| dtype.size() <= 2);
        // Loops over rows overlap memory and instructions by themselves.
        let is_heavy = is_narrow && of_element > MANY_INSTRUCTIONS && device.has_clusters() && sums.is_none();
        let most_held = match (aligned, is_heavy) {
            (false, _) => UNALIGNED_SEGMENTS,
            (true, false) => HELD_SEGMENTS,
            (true, true) => HEAVY_SEGMENTS,
        };
        let held = segments <= most_held
            && is_short
            && registers_of_row <= registers
            && layout.bytes_read(stages, &accesses, vector) * groups * rounds <= HELD_BYTES;
        let slots = segments.next_power_of_two();
        // A loop over rows has the slots of two, and each reduction at most a barrier and the ends of two planes.
        let copies_of_slots = if sums.is_some() { 2 } else { 1 };
        let of_slots = |reduction| slot_bytes(reduction) * slots * copies_of_slots + 64;
        let values: usize = self.reductions.iter().map(of_slots).sum();
        if segments > 1 && values > SHARED_BYTES {
            return Err("the values of segments do not fit shared memory");
        }
        let has_spans = accesses.contains(&RowAccess::Spans);
        let kind = RowKind {
            has_spans,
            is_narrow: is_narrow && !has_spans && (aligned || is_heavy),
            has_many_instructions: is_heavy,
        };
        let row_in_shared = |kept_cost: Option<usize>| {
            let operands = layout.row_operands(&accesses);
            let row = SharedRow::new(stages, &operands, &uniform, vector, kept_cost, device.is_ampere())?;
            let begins_anywhere = device.is_ampere() && vector == 1 && segments > 1;
            Some(if begins_anywhere { row.with_outputs(stages, &operands) } else { row })
        };
        // Kept values take space, and without them more rows fit.
        let in_shared = |kept_cost: Option<usize>| {
            let row = row_in_shared(kept_cost)?;
            let blocks = RowBlocks::new(segments, row.stride, values, kind, device)?;
            Some((RowStorage::Shared(row), blocks))
        };
        let rows_of_block = match segments {
            1 => (BLOCK / threads).min(rows.next_power_of_two()).max(WARP / threads),
            _ => 1,
        };
        // A row of one segment. A value of few instructions takes less space than several operands.
        let in_warp = || {
            let long = row_in_shared(Some(KEPT_COST)).map(|row| (KEPT_COST, row));
            let all = row_in_shared(Some(1)).map(|row| (1, row));
            let (kept_cost, row) = long.into_iter().chain(all).min_by_key(|(_, row)| row.stride)?;
            let blocks = RowBlocks::of_short_rows(row.stride, rows_of_block, device)?;
            Some((kept_cost, row, blocks))
        };
        let of_block = |warps: usize| RowBlocks { cluster: 1, warps, rows: rows_of_block, bytes: 0 };
        let ahead = || {
            let row = SharedRow::ahead(stages, &layout.row_operands(&accesses), vector)?;
            let blocks = RowBlocks::of_chunks(segments, row.stride, values, device)?;
            Some((RowStorage::Ahead(row), blocks))
        };
        let ahead = if sums.is_some() && is_short { ahead() } else { None };
        if let Some(sums) = sums {
            // Instructions limit narrow elements, and those of f32 memory. So the former keep what costs one.
            let is_narrow = operands.iter().any(|(dtype, _)| dtype.size() == 2);
            let registers = of_row(ahead.is_none(), 1) + sums * copies * rounds;
            let has_space = registers <= MOST_REGISTERS_WITH_SUMS
                && (ahead.is_some() || held && segments <= FEW_SEGMENTS);
            if is_narrow && has_space {
                kept_cost = 1;
            }
            registers_of_row = of_row(ahead.is_none(), kept_cost);
        }
        let is_of_warp = segments == 1 && threads == WARP && sums.is_none();
        let bytes_held = (registers_of_row - OTHER_REGISTERS) * WARP * size_of::<u32>();
        let in_warp = if is_of_warp { in_warp() } else { None };
        let is_long = instructions > HELD_INSTRUCTIONS_OF_WARP;
        let stays = |row: &SharedRow| match is_long {
            true => bytes_held < MOST_HELD * row.stride,
            false => bytes_held <= MOST_HELD * row.stride,
        };
        let in_warp = in_warp.filter(|(_, row, _)| !held || !stays(row));
        let in_warp = in_warp.map(|(least, row, blocks)| {
            kept_cost = least;
            (RowStorage::Shared(row), blocks)
        });
        let (storage, RowBlocks { cluster, warps, rows: across, bytes: shared }) =
            match (in_warp.or(ahead), held) {
                (Some(planned), _) => planned,
                (None, true) => (RowStorage::Registers, of_block(warps)),
                (None, false) => in_shared(Some(KEPT_COST))
                    .or_else(|| in_shared(None))
                    .unwrap_or_else(|| (RowStorage::Global, of_block(segments.min(READING_WARPS)))),
            };
        if segments > HELD_SEGMENTS && rows * cluster < FEW_ROWS {
            return Err("several blocks share each of few long groups");
        }
        let covered = if segments == 1 { lanes * rounds } else { SEGMENT };
        // A warp may have no segment.
        let lacks_segments = !matches!(storage, RowStorage::Global) && cluster * warps > segments;
        let key = RowKey {
            storage,
            cluster,
            parts: 1,
            wide: dimensions.is_wide(),
            vector,
            threads,
            groups,
            rounds,
            kept_cost,
            warps,
            slots,
            across,
            has_columns: false,
            kept: dimensions.kept.len(),
            folded: dimensions.folded.len(),
            accesses,
            tail: !row.is_multiple_of(covered) || lacks_segments,
            is_ampere: device.is_ampere(),
        };
        let threads = threads * warps * across;
        layout.planned(stages, key, [segments, threads, shared, registers_of_row])
    }
}

/// Returns the bytes of a segment's value.
pub(super) fn slot_bytes(reduction: &RowReduction) -> usize {
    reduction.reduction.rules.bytes()
}
