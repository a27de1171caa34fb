//! Row programs on the CPU by blocks of rows that stay in the cache: all phases of a block run one after another.
//!
//! A phase before a reduction is machine code over the elements of a block, into scratch memory that the fold reads. The
//! values of groups are spread over their elements for the phases after it. The last phases write the outputs directly.
//! A program keeps the plan of its last run: the operands' strides, the scratch memory, and the constants of its code. A
//! run with the same layouts and scalars therefore checks and computes nothing else.
//!
//! A plan exists if every phase has machine code, elements of a group are adjacent or one for all, and every reduction's
//! value is its fold. Other runs execute phase by phase (`run`), which is the reference. Folds of rows are those of
//! [`Reduction`](super::Reduction), so both give the same bits.
//!
//! Invariants: a plan depends on layouts without their offsets, dtypes, axes and scalars alone, and its lookup compares all
//! of these. No two blocks write the same element.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::expression::ExpressionState;
use super::super::host::memory::spread;
use super::super::host::native::{CallBuffers, Constants};
use super::super::host::{HostInput, HostOutput};
use super::super::number::Number;
use super::super::reduce::dimensions::Dimensions;
use super::shape::RowShape;
use super::split::PhaseInput;
use super::{PhaseOperands, RowProgramState};
use crate::threads::{run_on_threads, threads_for};
use crate::types::{DType, Layout};

/// The elements of a block of short rows: few enough that its operands stay in the L1 cache.
const BLOCK_ELEMENTS: usize = 2048;
/// The most elements of a row.
const LONGEST_ROW: usize = 8192;
/// Rows shorter than this are faster by columns, if there are many.
const SHORT_ROW: usize = 32;
/// The alignment of scratch memory, in bytes.
const ALIGNMENT: usize = 64;

/// The plan of a program's last run.
#[derive(Default)]
pub(super) struct LastPlan(Mutex<Option<Arc<BlockPlan>>>);

/// The access to the elements of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockAccess {
    /// Neighbouring rows are adjacent, so a block is contiguous.
    Contiguous,
    /// The elements of a row are adjacent.
    Row,
    /// One element for the whole row.
    Still,
}

/// An operand of the program: inputs before outputs.
struct BlockOperand {
    /// The bytes of an element.
    size: usize,
    access: BlockAccess,
    /// The distances of rows by kept dimension, innermost first, in elements.
    strides: Vec<isize>,
    /// The place of a block's elements in scratch memory, in bytes.
    scratch: usize,
}

impl BlockOperand {
    /// Returns whether all rows have the same elements.
    fn is_same_for_all(&self) -> bool {
        self.strides.iter().all(|stride| *stride == 0)
    }
}

/// The values of a reduction for the rows of a block, in scratch memory.
struct BlockValues {
    size: usize,
    /// The place of one value a row.
    values: usize,
    /// The place of the values spread over their rows' elements, if a phase reads them.
    spread: Option<usize>,
}

/// The source of a phase's input.
#[derive(Clone, Copy)]
enum BlockSource {
    Operand(usize),
    Values(usize),
    Spread(usize),
}

/// A phase of a block.
struct BlockStage {
    expression: Arc<ExpressionState>,
    /// The constants of the machine code; none if the fold reads the first source as it is.
    constants: Option<Constants>,
    sources: Vec<BlockSource>,
    /// The bytes of an element of each source and output.
    sizes: Vec<usize>,
    /// The reduction whose elements the stage computes; none for outputs.
    reduction: Option<usize>,
    is_per_group: bool,
    /// The operands that the stage writes.
    outputs: Vec<usize>,
}

/// The plan of a run by blocks of rows.
struct BlockPlan {
    dtypes: Vec<DType>,
    layouts: Vec<Layout>,
    axes: Vec<isize>,
    scalars: Vec<Number>,
    row: usize,
    rows: usize,
    /// The rows of a block.
    block: usize,
    /// The sizes of kept dimensions, innermost first.
    kept: Vec<usize>,
    inputs: usize,
    operands: Vec<BlockOperand>,
    values: Vec<BlockValues>,
    stages: Vec<BlockStage>,
    /// The place of the elements that a fold reads.
    folded: usize,
    /// The bytes of scratch memory.
    bytes: usize,
    /// The estimated time of the run in picoseconds.
    estimate: usize,
}

/// 64 bytes at an address of a multiple of 64.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// The memory of a thread, which all its runs reuse.
#[derive(Default)]
struct Workspace {
    scratch: Vec<Line>,
    buffers: CallBuffers,
    pointers: Vec<*mut u8>,
    /// The addresses of the inputs of the block at hand.
    inputs: Vec<*mut u8>,
    /// By input, true if the scratch memory holds its elements for all blocks.
    is_filled: Vec<bool>,
}

thread_local! {
    static WORKSPACE: Cell<Option<Box<Workspace>>> = const { Cell::new(None) };
}

fn is_same_number(one: &Number, other: &Number) -> bool {
    match (one, other) {
        (Number::Real(one), Number::Real(other)) => one.to_bits() == other.to_bits(),
        (Number::Complex(one), Number::Complex(other)) => {
            (one.re.to_bits(), one.im.to_bits()) == (other.re.to_bits(), other.im.to_bits())
        }
        (one, other) => one == other,
    }
}

impl RowProgramState {
    /// Runs the program by the plan of its last run. Returns false if the operands differ from that run's.
    pub(super) fn run_last_plan(
        &self,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> bool {
        let last = self.last_plan.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(plan) = last.filter(|plan| plan.fits(inputs, scalars, axes, outputs)) else { return false };
        self.run_plan(&plan, inputs, outputs)
    }

    /// Runs the program by blocks of rows, if a plan exists. The operands have been checked.
    pub(super) fn run_in_blocks(
        &self,
        shape: &RowShape,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> bool {
        let of_inputs = inputs.iter().map(HostInput::described);
        let all: Vec<(DType, Layout)> = of_inputs.chain(outputs.iter().map(HostOutput::described)).collect();
        let Some(plan) = self.plan_blocks(shape, &all, scalars, axes) else { return false };
        let plan = Arc::new(plan);
        *self.last_plan.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan.clone());
        self.run_plan(&plan, inputs, outputs)
    }

    fn run_plan(&self, plan: &BlockPlan, inputs: &[HostInput<'_>], outputs: &mut [HostOutput<'_>]) -> bool {
        let mut memory: Vec<*mut u8> = Vec::with_capacity(plan.operands.len());
        for (input, operand) in inputs.iter().zip(&plan.operands) {
            let Some(pointer) = input.memory() else { return false };
            memory.push(pointer.cast_mut().wrapping_add(input.layout().offset() * operand.size));
        }
        for (output, operand) in outputs.iter().zip(&plan.operands[plan.inputs..]) {
            memory.push(output.memory().wrapping_add(output.layout().offset() * operand.size));
        }
        BlockRun { state: self, plan, memory }.all();
        true
    }

    /// Plans a run by blocks, or returns none if phases should run one by one.
    fn plan_blocks(
        &self,
        shape: &RowShape,
        operands: &[(DType, Layout)],
        scalars: &[Number],
        axes: &[isize],
    ) -> Option<BlockPlan> {
        let (row, rows) = (shape.size, shape.groups.count());
        let suits = self.sums.is_none() && self.places.is_none() && self.stored.is_empty();
        let suits = suits && self.indices.is_empty() && !self.writes_in_turns();
        let suits = suits && !self.reductions.is_empty() && row > 0 && row <= LONGEST_ROW && rows > 0;
        if !suits || row < SHORT_ROW && rows > row {
            return None;
        }
        let inputs = self.inputs.len();
        if operands[inputs..].iter().any(|(_, layout)| layout.may_overlap()) {
            return None;
        }
        let expanded: Option<Vec<Layout>> =
            operands.iter().map(|(_, layout)| layout.expand(&shape.elements).ok()).collect();
        let dimensions = Dimensions::of_operands(&shape.elements, &expanded?, inputs, |axis| {
            shape.groups[axis] != shape.elements[axis]
        });
        let block = (BLOCK_ELEMENTS / row).clamp(1, rows);
        let mut plan = BlockPlan {
            dtypes: operands.iter().map(|(dtype, _)| *dtype).collect(),
            layouts: operands.iter().map(|(_, layout)| *layout).collect(),
            axes: axes.to_vec(),
            scalars: scalars.to_vec(),
            row,
            rows,
            block,
            kept: dimensions.kept.iter().map(|dimension| dimension.size).collect(),
            inputs,
            operands: Vec::with_capacity(operands.len()),
            values: Vec::with_capacity(self.reductions.len()),
            stages: Vec::with_capacity(self.reductions.len() + self.finishes.len()),
            folded: 0,
            bytes: 0,
            estimate: 0,
        };
        for (operand, (dtype, _)) in operands.iter().enumerate() {
            let is_per_group = operand.checked_sub(inputs).is_some_and(|at| self.outputs[at].is_per_group);
            let access = access(&dimensions, operand, is_per_group)?;
            let elements = if is_per_group { block } else { block * row };
            let strides = dimensions.kept.iter().map(|dimension| dimension.strides[operand]).collect();
            let scratch = plan.reserve(elements * dtype.size());
            plan.operands.push(BlockOperand { size: dtype.size(), access, strides, scratch });
        }
        plan.folded = plan.reserve(block * row * size_of::<u64>());
        for (number, reduction) in self.reductions.iter().enumerate() {
            let of = &reduction.reduction;
            let size = of.row_value()?.size();
            let stage = plan.stage(
                &of.0.prologue,
                &reduction.operands,
                scalars,
                shape,
                Some((number, of.is_plain())),
            )?;
            plan.stages.push(stage);
            let values = plan.reserve(block * size);
            plan.values.push(BlockValues { size, values, spread: None });
        }
        for finish in &self.finishes {
            let mut stage = plan.stage(&finish.expression.0, &finish.operands, scalars, shape, None)?;
            stage.outputs = finish.outputs.iter().map(|output| inputs + output).collect();
            stage.is_per_group = finish.is_per_group;
            if finish.is_per_group {
                for source in &mut stage.sources {
                    match *source {
                        BlockSource::Spread(value) => *source = BlockSource::Values(value),
                        _ => return None,
                    }
                }
            }
            plan.stages.push(stage);
        }
        for value in 0..plan.values.len() {
            let mut sources = plan.stages.iter().flat_map(|stage| &stage.sources);
            if sources.any(|source| matches!(source, BlockSource::Spread(of) if *of == value)) {
                let size = plan.values[value].size;
                plan.values[value].spread = Some(plan.reserve(block * row * size));
            }
        }
        Some(plan)
    }
}

/// Returns the access to an operand; none if its elements are further apart than neighbours.
fn access(dimensions: &Dimensions, operand: usize, is_per_group: bool) -> Option<BlockAccess> {
    let stride = match &dimensions.folded[..] {
        [] => 1,
        [one] => one.strides[operand],
        _ if dimensions.folded.iter().all(|dimension| dimension.strides[operand] == 0) => 0,
        _ => return None,
    };
    let pitch = if is_per_group { 1 } else { dimensions.row as isize };
    let is_contiguous = match &dimensions.kept[..] {
        [] => true,
        [one] => one.strides[operand] == pitch,
        _ => false,
    };
    match stride {
        _ if is_per_group => Some(if is_contiguous { BlockAccess::Contiguous } else { BlockAccess::Row }),
        1 => Some(if is_contiguous { BlockAccess::Contiguous } else { BlockAccess::Row }),
        0 => Some(BlockAccess::Still),
        _ => None,
    }
}

impl BlockPlan {
    /// Returns the place of so many bytes of scratch memory.
    fn reserve(&mut self, bytes: usize) -> usize {
        let place = self.bytes;
        self.bytes += bytes.next_multiple_of(ALIGNMENT);
        place
    }

    /// Plans a phase. `reduction` is the number of the reduction after it, with true if it folds an input as it is.
    fn stage(
        &mut self,
        expression: &Arc<ExpressionState>,
        operands: &PhaseOperands,
        scalars: &[Number],
        shape: &RowShape,
        reduction: Option<(usize, bool)>,
    ) -> Option<BlockStage> {
        let elements = self.row.saturating_mul(self.rows);
        let is_plain = reduction.is_some_and(|(_, is_plain)| is_plain);
        let constants = match is_plain {
            true => None,
            false => {
                let native = expression.cpu_code.for_run(expression, elements)?;
                if native.reads_coordinates() {
                    return None;
                }
                let bits = expression.scalar_bits(&operands.scalars(scalars, shape)).ok()?;
                Some(native.constants(&expression.program, &expression.schedule, &bits))
            }
        };
        let each = if is_plain { 100 } else { 200 + 15 * expression.schedule.each.len() };
        self.estimate = self.estimate.saturating_add(elements.saturating_mul(each));
        let source = |input: &PhaseInput| match *input {
            PhaseInput::Input(input) => Some(BlockSource::Operand(input)),
            PhaseInput::Group(value) => Some(BlockSource::Spread(value)),
            PhaseInput::Index | PhaseInput::Stored(_) => None,
        };
        let dtypes = expression.inputs.iter().chain(&expression.outputs);
        Some(BlockStage {
            sizes: dtypes.map(|dtype| dtype.size()).collect(),
            expression: expression.clone(),
            constants,
            sources: operands.inputs.iter().map(source).collect::<Option<Vec<_>>>()?,
            reduction: reduction.map(|(number, _)| number),
            is_per_group: false,
            outputs: Vec::new(),
        })
    }

    /// Returns whether the plan is that of a run with these operands.
    fn fits(
        &self,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &[HostOutput<'_>],
    ) -> bool {
        let given = inputs.iter().map(|input| (input.dtype(), input.layout()));
        let given = given.chain(outputs.iter().map(|output| (output.dtype(), output.layout())));
        let mut own = self.dtypes.iter().zip(&self.layouts).zip(given);
        (inputs.len(), outputs.len()) == (self.inputs, self.operands.len() - self.inputs)
            && self.axes == axes
            && self.scalars.len() == scalars.len()
            && own.all(|((own, layout), (dtype, other))| {
                *own == dtype
                    && layout.rank() == other.rank()
                    && layout.dimensions().zip(other.dimensions()).all(|(own, other)| own == other)
            })
            && self.scalars.iter().zip(scalars).all(|(own, given)| is_same_number(own, given))
    }

    /// Returns the distance of a row from the first one, in bytes.
    fn distance(&self, operand: &BlockOperand, row: usize) -> isize {
        let (mut rest, mut distance) = (row, 0);
        for (size, stride) in self.kept.iter().zip(&operand.strides) {
            distance += (rest % size) as isize * stride;
            rest /= size;
        }
        distance * operand.size as isize
    }
}

/// A run in progress, shared by its threads.
struct BlockRun<'a> {
    state: &'a RowProgramState,
    plan: &'a BlockPlan,
    /// By operand, the address of the first row.
    memory: Vec<*mut u8>,
}

// SAFETY: threads read the inputs, and each writes rows of outputs that no other thread accesses.
unsafe impl Sync for BlockRun<'_> {}

impl BlockRun<'_> {
    fn all(&self) {
        let plan = self.plan;
        let blocks = plan.rows.div_ceil(plan.block);
        let next = AtomicUsize::new(0);
        let work = || {
            // A thread that ends has no workspace any more.
            let mut workspace = WORKSPACE.try_with(Cell::take).ok().flatten().unwrap_or_default();
            let lines = plan.bytes.div_ceil(ALIGNMENT);
            if workspace.scratch.len() < lines {
                workspace.scratch.resize(lines, Line([0; ALIGNMENT]));
            }
            workspace.is_filled.clear();
            workspace.is_filled.resize(plan.inputs, false);
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    break;
                }
                let first = block * plan.block;
                // SAFETY: each block is claimed once.
                unsafe { self.block(&mut workspace, first, plan.block.min(plan.rows - first)) };
            }
            let _ = WORKSPACE.try_with(|kept| kept.set(Some(workspace)));
        };
        run_on_threads(threads_for(plan.estimate).min(blocks), &work);
    }

    /// Computes `count` rows from row `first` on.
    ///
    /// # Safety
    ///
    /// Nobody else computes these rows, and the workspace has the plan's scratch memory.
    unsafe fn block(&self, workspace: &mut Workspace, first: usize, count: usize) {
        let (plan, elements) = (self.plan, count * self.plan.row);
        let Workspace { scratch, buffers, pointers, inputs, is_filled } = workspace;
        let scratch = scratch.as_mut_ptr().cast::<u8>();
        let at = |place: usize| scratch.wrapping_add(place);
        inputs.clear();
        for (operand, is_filled) in is_filled.iter_mut().enumerate() {
            // SAFETY: the caller guarantees it.
            inputs.push(unsafe { self.input(operand, first, count, scratch, is_filled) });
        }
        for stage in &plan.stages {
            pointers.clear();
            pointers.extend(stage.sources.iter().map(|source| match *source {
                BlockSource::Operand(input) => inputs[input],
                BlockSource::Values(value) => at(plan.values[value].values),
                BlockSource::Spread(value) => at(plan.values[value].spread.unwrap_or_default()),
            }));
            let sources = pointers.len();
            if stage.reduction.is_some() {
                pointers.push(at(plan.folded));
            }
            for &output in &stage.outputs {
                pointers.push(self.target(output, first, count).unwrap_or(at(plan.operands[output].scratch)));
            }
            let computed = if stage.is_per_group { count } else { elements };
            if let (Some(native), Some(constants)) = (stage.expression.cpu_code.ready(), &stage.constants) {
                let calls = native.calls(constants);
                // SAFETY: each pointer has so many elements, in scratch memory or by its layout, which has been checked.
                unsafe { calls.run(buffers, &stage.sizes, sources, pointers, computed) };
            }
            if let Some(number) = stage.reduction {
                let from = if stage.constants.is_some() { at(plan.folded) } else { pointers[0] };
                let values = &plan.values[number];
                let reduction = &self.state.reductions[number].reduction;
                // SAFETY: as above, and the scratch memory has a value for each row.
                unsafe { reduction.fold_rows(from, plan.row, count, at(values.values)) };
                for row in 0..if values.spread.is_some() { count } else { 0 } {
                    let to = at(values.spread.unwrap_or_default() + row * plan.row * values.size);
                    // SAFETY: the scratch memory has a block of elements.
                    unsafe { spread(at(values.values + row * values.size), to, values.size, plan.row) };
                }
            }
            for &output in &stage.outputs {
                if self.target(output, first, count).is_none() {
                    // SAFETY: the rows are those of the output's layout, which has been checked.
                    unsafe { self.store(output, first, count, at(plan.operands[output].scratch)) };
                }
            }
        }
    }

    /// Returns the address of a block's elements of an input, which are in scratch memory if they are not contiguous.
    ///
    /// # Safety
    ///
    /// As [`block`](Self::block).
    unsafe fn input(
        &self,
        index: usize,
        first: usize,
        count: usize,
        scratch: *mut u8,
        is_filled: &mut bool,
    ) -> *mut u8 {
        let (plan, operand) = (self.plan, &self.plan.operands[index]);
        let memory = self.memory[index];
        match operand.access {
            BlockAccess::Contiguous => return memory.wrapping_add(first * plan.row * operand.size),
            BlockAccess::Row if count == 1 => return memory.wrapping_offset(plan.distance(operand, first)),
            BlockAccess::Row | BlockAccess::Still => {}
        }
        let scratch = scratch.wrapping_add(operand.scratch);
        if *is_filled {
            return scratch;
        }
        let bytes = plan.row * operand.size;
        for row in 0..count {
            let from = memory.wrapping_offset(plan.distance(operand, first + row));
            let to = scratch.wrapping_add(row * bytes);
            // SAFETY: the elements are those of the layout, which has been checked, and the scratch memory holds a block.
            unsafe {
                match operand.access {
                    BlockAccess::Still => spread(from, to, operand.size, plan.row),
                    _ => to.copy_from_nonoverlapping(from, bytes),
                }
            }
        }
        // The last block may be shorter than the others, but no block is longer than the first one.
        *is_filled = operand.is_same_for_all() && count == plan.block;
        scratch
    }

    /// Returns the address of a block's elements of an output, if they are contiguous.
    fn target(&self, index: usize, first: usize, count: usize) -> Option<*mut u8> {
        let (plan, operand) = (self.plan, &self.plan.operands[index]);
        let width = if self.is_per_group(index) { 1 } else { plan.row };
        match operand.access {
            BlockAccess::Contiguous => Some(self.memory[index].wrapping_add(first * width * operand.size)),
            _ if count == 1 => Some(self.memory[index].wrapping_offset(plan.distance(operand, first))),
            _ => None,
        }
    }

    fn is_per_group(&self, operand: usize) -> bool {
        self.state.outputs[operand - self.plan.inputs].is_per_group
    }

    /// Stores a block's elements of an output whose rows are apart.
    ///
    /// # Safety
    ///
    /// As [`block`](Self::block).
    unsafe fn store(&self, index: usize, first: usize, count: usize, scratch: *const u8) {
        let (plan, operand) = (self.plan, &self.plan.operands[index]);
        let bytes = operand.size * if self.is_per_group(index) { 1 } else { plan.row };
        for row in 0..count {
            let to = self.memory[index].wrapping_offset(plan.distance(operand, first + row));
            // SAFETY: the caller guarantees it.
            unsafe { to.copy_from_nonoverlapping(scratch.wrapping_add(row * bytes), bytes) };
        }
    }
}
