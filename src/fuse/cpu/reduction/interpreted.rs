//! Reductions by the interpreter: the same tree, block by block.
//!
//! A block of 256 lanes holds adjacent elements of one row, which are the lanes of a segment, or the same
//! element of adjacent rows if those are closer in memory. A task covers some rows and some segments of each,
//! as many as form a node of the tree. Threads share the tasks, so no result depends on the number of
//! threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ROWS_OF_A_TASK, SEGMENTS_OF_A_TASK, is_across, slots};
use crate::error::Result;
use crate::fuse::cpu::block::{Block, LANES as WIDTH};
use crate::fuse::cpu::memory::HostOperand;
use crate::fuse::cpu::run_on_inputs;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::Program;
use crate::fuse::language::fold::bytes;
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::reduction::{LANES, SEGMENT};
use crate::fuse::plan::reduction_dimensions::Dimensions;
use crate::fuse::plan::register_allocation::RegisterAllocation;
use crate::fuse::plan::space::Space;
use crate::threads::{run_on_threads, thread_count};

// A block holds the lanes of a segment.
const _: () = assert!(LANES == WIDTH);

/// The number of elements above which another thread pays for its start.
const ELEMENTS_OF_A_THREAD: usize = 1 << 16;
/// The parts of values, by lane.
pub(in super::super) type BlockParts = [Block; 2];

/// The pending values of a tree of neighbours, by level.
struct Tree {
    levels: Vec<(bool, Box<BlockParts>)>,
    depth: usize,
}

/// True if a value exists at its position.
type Present = bool;

/// Runs a reduction of at least one element.
pub(super) fn run(
    compiled: &CompiledReduction,
    dimensions: Dimensions,
    operands: Vec<HostOperand>,
    scalars: &[[u64; 2]],
) -> Result<()> {
    Run::new(compiled, dimensions, operands, scalars).all()
}

/// A run in progress, shared by its threads.
struct Run<'a> {
    compiled: &'a CompiledReduction,
    /// True if a block holds elements of adjacent rows.
    across: bool,
    row: usize,
    rows: usize,
    /// The space in block order, and the space with the rows innermost for the output.
    space: Space,
    of_rows: Space,
    operands: Vec<HostOperand>,
    scalars: (&'a [[u64; 2]], &'a [[u64; 2]]),
}

// SAFETY: threads read the inputs, and each writes output elements that no other thread accesses.
unsafe impl Sync for Run<'_> {}

/// The registers and buffers of a thread.
struct Workspace {
    prologue: Vec<Block>,
    epilogue: Vec<Block>,
    merge: Vec<Block>,
    append: Vec<Block>,
    restore: Vec<Block>,
    element: Box<BlockParts>,
    lanes: Box<BlockParts>,
    upper: Box<BlockParts>,
    of_lanes: Tree,
    of_segments: Tree,
}

impl<'a> Run<'a> {
    fn new(
        compiled: &'a CompiledReduction,
        dimensions: Dimensions,
        operands: Vec<HostOperand>,
        scalars: &'a [[u64; 2]],
    ) -> Run<'a> {
        let across = is_across(&dimensions);
        let Dimensions { row, rows, .. } = dimensions;
        Run {
            compiled,
            across,
            row,
            rows,
            space: dimensions.space(!across),
            of_rows: dimensions.space(false),
            operands,
            scalars: scalars.split_at(compiled.prologue.scalars.len()),
        }
    }

    fn all(&self) -> Result<()> {
        let segments = self.row.div_ceil(SEGMENT);
        let width = if self.across || self.row < WIDTH { WIDTH } else { ROWS_OF_A_TASK };
        let of_rows = self.rows.div_ceil(width);
        let threads = thread_count().min((self.row * self.rows).div_ceil(ELEMENTS_OF_A_THREAD));
        let few = of_rows < 4 * threads && segments > SEGMENTS_OF_A_TASK;
        let together = if few { SEGMENTS_OF_A_TASK } else { segments };
        let of_segments = segments.div_ceil(together);
        // Partial values by group of rows and group of segments; used only if a row takes several tasks.
        let partial: Vec<Mutex<Option<Box<BlockParts>>>> =
            slots(self.compiled.fold.name(), if few { of_rows * of_segments } else { 0 })?;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut workspace = Workspace::new(self);
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= of_rows * of_segments {
                    break;
                }
                let (group, part) = (task / of_segments, task % of_segments);
                let rows = group * width..self.rows.min((group + 1) * width);
                let some = part * together..segments.min((part + 1) * together);
                self.task(&mut workspace, rows.clone(), some);
                if few {
                    let mut slot = partial[task].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *slot = Some(workspace.lanes.clone());
                } else {
                    self.store(&mut workspace, rows);
                }
            }
        };
        run_on_threads(threads, &work);
        let mut workspace = Workspace::new(self);
        for (group, parts) in partial.chunks(of_segments).enumerate() {
            let rows = group * width..self.rows.min((group + 1) * width);
            workspace.of_segments.depth = 0;
            for (at, part) in parts.iter().enumerate() {
                let mut part = part.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if let Some(values) = part.take() {
                    *workspace.lanes = *values;
                }
                self.push_segment(&mut workspace, at, rows.len());
            }
            self.top(&mut workspace, rows.len());
            self.store(&mut workspace, rows);
        }
        Ok(())
    }

    /// Folds segments of rows; the values are in `lanes`, by row.
    fn task(
        &self,
        workspace: &mut Workspace,
        rows: std::ops::Range<usize>,
        segments: std::ops::Range<usize>,
    ) {
        workspace.of_segments.depth = 0;
        let count = rows.len();
        let first = segments.start;
        for segment in segments {
            if self.across {
                self.segment_across(workspace, rows.clone(), segment);
            } else {
                // The values of rows, until all are computed.
                let mut values: [[u64; WIDTH]; 2] = [[0; WIDTH]; 2];
                for (lane, row) in rows.clone().enumerate() {
                    let value = self.segment_along(workspace, row, segment);
                    (values[0][lane], values[1][lane]) = (value[0], value[1]);
                }
                for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
                    for (lane, &bits) in values[part][..count].iter().enumerate() {
                        set(&mut workspace.lanes[part], *kind, lane, bits);
                    }
                }
            }
            self.push_segment(workspace, segment - first, count);
        }
        self.top(workspace, count);
    }

    /// Folds a segment of a row whose lanes are a block.
    fn segment_along(&self, workspace: &mut Workspace, row: usize, segment: usize) -> [u64; 2] {
        let (start, end) = (segment * SEGMENT, self.row.min((segment + 1) * SEGMENT));
        let mut present = WIDTH.min(end - start);
        for (round, from) in (start..end).step_by(WIDTH).enumerate() {
            let count = WIDTH.min(end - from);
            self.elements(workspace, row * self.row + from, count);
            if self.compiled.fold.has_index() {
                for (lane, index) in workspace.element[1][..count].iter_mut().zip(from..) {
                    *lane = index as u64;
                }
            }
            self.take_element(workspace, round, count);
        }
        while present > 1 {
            let half = present.next_power_of_two() / 2;
            for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
                let (lanes, upper) = (&workspace.lanes[part], &mut workspace.upper[part]);
                let size = bytes(*kind);
                let from: &[u8] = bytemuck::cast_slice(lanes);
                let to: &mut [u8] = bytemuck::cast_slice_mut(upper);
                to[..(present - half) * size].copy_from_slice(&from[half * size..present * size]);
            }
            let Workspace { merge, lanes, upper, .. } = workspace;
            self.combine(true, merge, lanes, upper, present - half);
            present = half;
        }
        let mut value = [0; 2];
        for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
            value[part] = get(&workspace.lanes[part], *kind, 0);
        }
        value
    }

    /// Folds a segment of several rows: one lane of the segment after another, each for all rows, in the
    /// order that turns the halving of lanes into a tree of neighbours.
    fn segment_across(&self, workspace: &mut Workspace, rows: std::ops::Range<usize>, segment: usize) {
        let (start, end) = (segment * SEGMENT, self.row.min((segment + 1) * SEGMENT));
        let lanes = LANES.min(end - start).next_power_of_two();
        let bits = lanes.trailing_zeros();
        workspace.of_lanes.depth = 0;
        for index in 0..lanes {
            let lane = if bits == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - bits) };
            let present = start + lane < end;
            for (round, element) in (start + lane..end).step_by(LANES).enumerate() {
                self.elements(workspace, element * self.rows + rows.start, rows.len());
                if self.compiled.fold.has_index() {
                    workspace.element[1][..rows.len()].fill(element as u64);
                }
                self.take_element(workspace, round, rows.len());
            }
            let Workspace { merge, lanes, of_lanes, .. } = workspace;
            self.push(merge, of_lanes, lanes, present, index, rows.len());
        }
        let Workspace { merge, lanes, of_lanes, .. } = workspace;
        self.finish(merge, of_lanes, lanes, rows.len());
    }

    /// Computes the values of `count` elements.
    fn elements(&self, workspace: &mut Workspace, start: usize, count: usize) {
        let ExpressionParts { program, allocation } = ExpressionParts::of(&self.compiled.prologue);
        let mut load = |input: u32, part: u32, block: &mut Block| {
            let (operand, part) = (input as usize, part as usize);
            // SAFETY: the space's elements are those of the layouts, which have been checked against the
            // memory, and nobody writes an input.
            unsafe { self.operands[operand].load(&self.space, operand, part, start, count, block) };
        };
        let registers = &mut workspace.prologue;
        run_on_inputs(program, allocation, self.scalars.0, registers, &allocation.each, count, &mut load);
        let parts = if self.compiled.fold.has_index() { 1 } else { self.compiled.rules.kinds.len() };
        for (part, kind) in self.compiled.rules.kinds[..parts].iter().enumerate() {
            let value = program.outputs[0][part];
            copy(&workspace.prologue[allocation.register(value)], &mut workspace.element[part], *kind, count);
        }
    }

    /// Appends the elements to the lanes; round 0 initializes the lanes.
    fn take_element(&self, workspace: &mut Workspace, round: usize, count: usize) {
        let Workspace { append, lanes, element, .. } = workspace;
        if round > 0 {
            return self.combine(false, append, lanes, element, count);
        }
        for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
            copy(&element[part], &mut lanes[part], *kind, count);
        }
    }

    /// Folds `right` into `left`.
    fn combine(
        &self,
        merge: bool,
        registers: &mut [Block],
        left: &mut BlockParts,
        right: &BlockParts,
        count: usize,
    ) {
        combine(self.compiled, merge, registers, left, right, count);
    }

    fn push_segment(&self, workspace: &mut Workspace, index: usize, count: usize) {
        let Workspace { merge, lanes, of_segments, .. } = workspace;
        self.push(merge, of_segments, lanes, true, index, count);
    }

    fn top(&self, workspace: &mut Workspace, count: usize) {
        let Workspace { merge, lanes, of_segments, .. } = workspace;
        self.finish(merge, of_segments, lanes, count);
    }

    /// Adds leaf `index` of a tree of neighbours, and folds the nodes that it completes.
    fn push(
        &self,
        registers: &mut [Block],
        tree: &mut Tree,
        values: &mut BlockParts,
        present: Present,
        index: usize,
        count: usize,
    ) {
        let mut present = present;
        let mut rest = index;
        while rest & 1 == 1 {
            tree.depth -= 1;
            let (exists, left) = &mut tree.levels[tree.depth];
            // Missing values are at the end: a right value exists only beside its left one.
            if *exists {
                if present {
                    self.combine(true, registers, left, values, count);
                }
                present = true;
                self.copy_parts(left, values, count);
            }
            rest >>= 1;
        }
        if tree.levels.len() == tree.depth {
            tree.levels.push((false, Box::new([[0; WIDTH]; 2])));
        }
        let (exists, level) = &mut tree.levels[tree.depth];
        *exists = present;
        if present {
            self.copy_parts(values, level, count);
        }
        tree.depth += 1;
    }

    /// Folds the pending values of a tree.
    fn finish(&self, registers: &mut [Block], tree: &mut Tree, values: &mut BlockParts, count: usize) {
        let mut any = false;
        while tree.depth > 0 {
            tree.depth -= 1;
            let (exists, left) = &mut tree.levels[tree.depth];
            if !*exists {
                continue;
            }
            if any {
                self.combine(true, registers, left, values, count);
            }
            any = true;
            self.copy_parts(left, values, count);
        }
    }

    fn copy_parts(&self, from: &BlockParts, to: &mut BlockParts, count: usize) {
        for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
            copy(&from[part], &mut to[part], *kind, count);
        }
    }

    /// Stores the results of the values in `lanes`.
    fn store(&self, workspace: &mut Workspace, rows: std::ops::Range<usize>) {
        let ExpressionParts { program, allocation } = ExpressionParts::of(&self.compiled.epilogue);
        let has_index = self.compiled.fold.has_index();
        let (count, kinds) = (rows.len(), &self.compiled.rules.kinds);
        restore(self.compiled, &mut workspace.restore, &mut workspace.lanes, count);
        let lanes = &workspace.lanes;
        let mut load = |_: u32, part: u32, block: &mut Block| {
            let part = if has_index { 1 } else { part as usize };
            copy(&lanes[part], block, kinds[part], count);
        };
        let registers = &mut workspace.epilogue;
        run_on_inputs(program, allocation, self.scalars.1, registers, &allocation.each, count, &mut load);
        let values = program.outputs[0].map(|value| &workspace.epilogue[allocation.register(value)]);
        let output = self.operands.len() - 1;
        // SAFETY: the elements are those of the output's layout, which has been checked against the memory,
        // and no other task has these rows.
        unsafe { self.operands[output].store(&self.of_rows, output, rows.start, count, values) };
    }
}

/// The program and allocation of an expression.
struct ExpressionParts<'a> {
    program: &'a Program,
    allocation: &'a RegisterAllocation,
}

impl ExpressionParts<'_> {
    fn of(compiled: &CompiledExpression) -> ExpressionParts<'_> {
        ExpressionParts { program: &compiled.program, allocation: &compiled.allocation }
    }
}

impl Workspace {
    fn new(run: &Run<'_>) -> Workspace {
        let CompiledReduction { prologue, epilogue, rules, merge, append, .. } = run.compiled;
        let empty = || Box::new([[0; WIDTH]; 2]);
        let tree = || Tree { levels: Vec::new(), depth: 0 };
        Workspace {
            prologue: registers(&prologue.program, &prologue.allocation, run.scalars.0),
            epilogue: registers(&epilogue.program, &epilogue.allocation, run.scalars.1),
            merge: registers(&rules.merge, merge, &[]),
            append: registers(&rules.append, append, &[]),
            restore: registers_to_restore(run.compiled),
            element: empty(),
            lanes: empty(),
            upper: empty(),
            of_lanes: tree(),
            of_segments: tree(),
        }
    }
}

/// Folds `right` into `left`: two values if `merge` is set, otherwise elements that follow them.
pub(in super::super) fn combine(
    compiled: &CompiledReduction,
    merge: bool,
    registers: &mut [Block],
    left: &mut BlockParts,
    right: &BlockParts,
    count: usize,
) {
    let CompiledReduction { rules, merge: of_merge, append: of_append, .. } = compiled;
    let (program, allocation) = if merge { (&rules.merge, of_merge) } else { (&rules.append, of_append) };
    let mut load = |input: u32, part: u32, block: &mut Block| {
        let from = if input == 0 { &left[part as usize] } else { &right[part as usize] };
        copy(from, block, rules.kinds[part as usize], count);
    };
    run_on_inputs(program, allocation, &[], registers, &allocation.each, count, &mut load);
    for (part, kind) in rules.kinds.iter().enumerate() {
        let value = program.outputs[0][part];
        copy(&registers[allocation.register(value)], &mut left[part], *kind, count);
    }
}

/// Converts folded values to the values that they represent.
pub(in super::super) fn restore(
    compiled: &CompiledReduction,
    registers: &mut [Block],
    values: &mut BlockParts,
    count: usize,
) {
    let (Some(program), Some(allocation)) = (&compiled.rules.restore, &compiled.restore) else { return };
    let kinds = &compiled.rules.kinds;
    let mut load = |_: u32, part: u32, block: &mut Block| {
        copy(&values[part as usize], block, kinds[part as usize], count);
    };
    run_on_inputs(program, allocation, &[], registers, &allocation.each, count, &mut load);
    for (part, kind) in kinds.iter().enumerate() {
        let value = program.outputs[0][part];
        copy(&registers[allocation.register(value)], &mut values[part], *kind, count);
    }
}

pub(in super::super) fn registers_to_restore(compiled: &CompiledReduction) -> Vec<Block> {
    let both = compiled.rules.restore.as_ref().zip(compiled.restore.as_ref());
    both.map_or_else(Vec::new, |(program, allocation)| registers(program, allocation, &[]))
}

/// Returns the registers of a program, with the values that all blocks share already computed.
pub(in super::super) fn registers(
    program: &Program,
    allocation: &RegisterAllocation,
    scalars: &[[u64; 2]],
) -> Vec<Block> {
    let mut registers: Vec<Block> = vec![[0; WIDTH]; allocation.registers];
    // These steps load nothing.
    run_on_inputs(program, allocation, scalars, &mut registers, &allocation.once, WIDTH, &mut |_, _, _| {});
    registers
}

/// Copies the first `count` lanes.
fn copy(from: &Block, to: &mut Block, kind: RegisterKind, count: usize) {
    let bytes = count * bytes(kind);
    bytemuck::cast_slice_mut::<u64, u8>(to)[..bytes]
        .copy_from_slice(&bytemuck::cast_slice::<u64, u8>(from)[..bytes]);
}

pub(in super::super) fn get(block: &Block, kind: RegisterKind, lane: usize) -> u64 {
    match bytes(kind) {
        8 => block[lane],
        _ => u64::from(bytemuck::cast_slice::<u64, u32>(block)[lane]),
    }
}

pub(in super::super) fn set(block: &mut Block, kind: RegisterKind, lane: usize, bits: u64) {
    match bytes(kind) {
        8 => block[lane] = bits,
        _ => bytemuck::cast_slice_mut::<u64, u32>(block)[lane] = bits as u32,
    }
}
