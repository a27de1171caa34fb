//! Row programs on the CPU by blocks of rows that stay in the cache: all phases of a block run one after another.
//!
//! A phase before a reduction is machine code over the elements of a block, into scratch memory that the fold reads. The
//! values of groups are spread over their elements for the phases after it. The last phases write the outputs directly.
//! A program keeps the plan of its last run: the operands' strides, the scratch memory, and the constants of its code. A
//! run with the same layouts and scalars therefore checks and computes nothing else.
//!
//! A plan exists if every phase has machine code, elements of a group are adjacent or one for all, and every reduction's
//! value is its fold. Other runs execute phase by phase (`run::rows_run`), which is the reference. Folds of rows are those of
//! [`Reduction`](crate::fuse::Reduction), so both give the same bits.
//!
//! Invariants: a plan depends on layouts without their offsets, dtypes, axes and scalars alone, and its lookup compares all
//! of these. No two blocks write the same element.

mod folded;
mod run;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::backend::CpuCode;
use super::native::{Constants, last_level_cache};
use super::reduction::ReductionCode;
use super::{HostInput, HostOutput};
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::compiled_rows::{CompiledRows, Finish, PhaseOperands};
use crate::fuse::plan::reduction_dimensions::Dimensions;
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::types::{DType, Layout};
pub(in crate::fuse) use folded::BlockFinishes;
use run::BlockRun;

/// The elements of a block of short rows: few enough that its operands stay in the L1 cache.
const BLOCK_ELEMENTS: usize = 2048;
/// The most elements of a row, whose operands then stay in the L2 cache.
const MAX_ROW: usize = 1 << 17;
/// Longer rows than this are faster phase by phase if there are fewer than [`FEW_ROWS`], as all threads then share a row.
const SHARED_ROW: usize = 1 << 13;
const FEW_ROWS: usize = 8;
/// Rows shorter than this are faster by columns, if there are many.
const SHORT_ROW: usize = 32;
/// The elements of a call on a part of one row, over which values of groups are spread, or before which the elements of the next
/// block are asked for.
const PART: usize = 512;
/// The alignment of scratch memory and of streaming stores, in bytes.
const ALIGNMENT: usize = 64;

/// A program's runs by blocks.
pub(in crate::fuse) struct BlockRuns {
    last_plan: Mutex<Option<Arc<BlockPlan>>>,
    finishes: BlockFinishes,
    /// The machine code of the program's reductions and expressions of outputs.
    code_of_reductions: Vec<ReductionCode>,
    code_of_finishes: Vec<CpuCode>,
}

impl BlockRuns {
    pub(in crate::fuse) fn new(
        finishes: BlockFinishes,
        code_of_reductions: Vec<ReductionCode>,
        code_of_finishes: Vec<CpuCode>,
    ) -> BlockRuns {
        BlockRuns { last_plan: Mutex::default(), finishes, code_of_reductions, code_of_finishes }
    }
}

/// The access to the elements of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockAccess {
    /// Neighbouring rows are adjacent, so a block is contiguous.
    Contiguous,
    /// The elements of a row are adjacent.
    Row,
    /// One element for the whole row.
    Broadcast,
}

/// An operand of the program: inputs before outputs.
struct BlockOperand {
    /// The bytes of an element.
    size: usize,
    access: BlockAccess,
    /// The distances of rows by kept dimension, innermost first, in elements.
    strides: Vec<isize>,
    /// The offset of a block's elements in scratch memory, in bytes.
    scratch: usize,
}

impl BlockOperand {
    /// Returns whether all rows have the same elements.
    fn is_same_for_all(&self) -> bool {
        self.strides.iter().all(|stride| *stride == 0)
    }
}

/// The values of a reduction, or others of groups, for the rows of a block, in scratch memory.
struct BlockValues {
    size: usize,
    /// The offset of one value a row.
    values: usize,
    /// The offset of the values spread over their rows' elements, or over a part of the only row, if a phase reads them.
    spread: Option<usize>,
    /// The offset of the elements that the fold reads, if it is a reduction.
    folded: usize,
}

/// The source of a phase's input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockSource {
    Operand(usize),
    Values(usize),
    Spread(usize),
    /// The elements that a reduction has folded.
    Folded(usize),
}

/// A phase of a block.
struct BlockStage {
    expression: Arc<CompiledExpression>,
    code: CpuCode,
    /// The constants of the machine code; none if the fold reads the first source as it is.
    constants: Option<Constants>,
    sources: Vec<BlockSource>,
    /// The bytes of an element of each source and output.
    sizes: Vec<usize>,
    /// The reduction whose elements the stage computes; none for outputs.
    reduction: Option<usize>,
    /// The scalars of the expression.
    scalars: Vec<Number>,
    is_per_group: bool,
    /// The values of groups that the stage computes for later ones: not those of a reduction.
    values: Range<usize>,
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
    /// The elements of a row over which values of groups are spread.
    spread: usize,
    /// The sizes of kept dimensions, innermost first.
    kept: Vec<usize>,
    inputs: usize,
    reductions: usize,
    operands: Vec<BlockOperand>,
    /// Of reductions, followed by others.
    values: Vec<BlockValues>,
    stages: Vec<BlockStage>,
    /// The bytes of scratch memory.
    bytes: usize,
    /// The bytes of all outputs.
    output_bytes: usize,
    /// The estimated time of the run in picoseconds.
    estimate: usize,
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

impl BlockRuns {
    /// Runs the program by the plan of its last run. Returns false if the operands differ from that run's.
    pub(in crate::fuse) fn run_last_plan(
        &self,
        program: &CompiledRows,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> bool {
        let last = self.last_plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(plan) = last.filter(|plan| plan.fits(inputs, scalars, axes, outputs)) else { return false };
        self.run_plan(program, &plan, last_level_cache(), inputs, outputs).is_some()
    }

    /// Runs the program by blocks of rows, if a plan exists, with streaming stores if the outputs have more than `least` bytes
    /// in all. Returns the number of calls that had them. The operands have been checked.
    #[allow(clippy::too_many_arguments)]
    pub(in crate::fuse) fn run(
        &self,
        program: &CompiledRows,
        least: usize,
        shape: &RowShape,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> Option<usize> {
        let of_inputs = inputs.iter().map(HostInput::described);
        let all: Vec<(DType, Layout)> = of_inputs.chain(outputs.iter().map(HostOutput::described)).collect();
        let plan = Arc::new(self.plan_blocks(program, shape, &all, scalars, axes)?);
        *self.last_plan.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan.clone());
        self.run_plan(program, &plan, least, inputs, outputs)
    }

    fn run_plan(
        &self,
        program: &CompiledRows,
        plan: &BlockPlan,
        least: usize,
        inputs: &[HostInput<'_>],
        outputs: &mut [HostOutput<'_>],
    ) -> Option<usize> {
        let mut memory: Vec<*mut u8> = Vec::with_capacity(plan.operands.len());
        for (input, operand) in inputs.iter().zip(&plan.operands) {
            let pointer = input.memory()?;
            memory.push(pointer.cast_mut().wrapping_add(input.layout().offset() * operand.size));
        }
        for (output, operand) in outputs.iter().zip(&plan.operands[plan.inputs..]) {
            memory.push(output.memory().wrapping_add(output.layout().offset() * operand.size));
        }
        Some(BlockRun::new((program, &self.code_of_reductions), plan, memory, least).all())
    }

    /// Plans a run by blocks, or returns none if phases should run one by one.
    fn plan_blocks(
        &self,
        program: &CompiledRows,
        shape: &RowShape,
        operands: &[(DType, Layout)],
        scalars: &[Number],
        axes: &[isize],
    ) -> Option<BlockPlan> {
        let (row, rows) = (shape.size, shape.groups.count());
        let suits = !program.has_sums && program.element_indices.is_none() && program.stored.is_empty();
        let suits = suits && program.indices.is_empty() && !program.writes_in_turns();
        let suits = suits && !program.reductions.is_empty() && row > 0 && row <= MAX_ROW && rows > 0;
        if !suits || row < SHORT_ROW && rows > row || row > SHARED_ROW && rows < FEW_ROWS {
            return None;
        }
        let inputs = program.inputs.len();
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
            spread: row,
            kept: dimensions.kept.iter().map(|dimension| dimension.size).collect(),
            inputs,
            reductions: program.reductions.len(),
            operands: Vec::with_capacity(operands.len()),
            values: Vec::with_capacity(program.reductions.len()),
            stages: Vec::with_capacity(program.reductions.len() + program.finishes.len()),
            bytes: 0,
            output_bytes: 0,
            estimate: 0,
        };
        for (operand, (dtype, _)) in operands.iter().enumerate() {
            let is_per_group = operand.checked_sub(inputs).is_some_and(|at| program.outputs[at].is_per_group);
            let access = access(&dimensions, operand, is_per_group)?;
            let elements = if is_per_group { block } else { block * row };
            if operand >= inputs {
                plan.output_bytes += dtype.size() * if is_per_group { rows } else { rows * row };
            }
            let strides = dimensions.kept.iter().map(|dimension| dimension.strides[operand]).collect();
            let scratch = plan.reserve(elements * dtype.size());
            plan.operands.push(BlockOperand { size: dtype.size(), access, strides, scratch });
        }
        let shared = plan.reserve(block * row * size_of::<u64>());
        for (index, reduction) in program.reductions.iter().enumerate() {
            let of = &reduction.reduction;
            let size = of.row_value()?.size();
            let stage = plan.stage(
                (&of.prologue, &self.code_of_reductions[index].prologue),
                &reduction.operands,
                scalars,
                shape,
                Some((index, of.is_plain())),
            )?;
            plan.stages.push(stage);
            let values = plan.reserve(block * size);
            plan.values.push(BlockValues { size, values, spread: None, folded: shared });
        }
        if let Some((of_groups, code)) = &self.finishes.of_groups {
            let mut stage = plan.finish((of_groups, code), scalars, shape)?;
            let first = plan.values.len();
            for dtype in &of_groups.expression.outputs {
                let size = dtype.size();
                let values = plan.reserve(block * size);
                plan.values.push(BlockValues { size, values, spread: None, folded: shared });
            }
            stage.values = first..plan.values.len();
            plan.stages.push(stage);
        }
        for (index, finish) in program.finishes.iter().enumerate() {
            let replaced = self.finishes.replaced.get(index).and_then(Option::as_ref);
            let (finish, code) = match replaced {
                Some((finish, code)) => (finish, code),
                None => (finish, &self.code_of_finishes[index]),
            };
            let mut stage = plan.finish((finish, code), scalars, shape)?;
            stage.outputs = finish.outputs.iter().map(|output| inputs + output).collect();
            plan.stages.push(stage);
        }
        plan.spread = plan.spread_elements();
        for value in 0..plan.values.len() {
            let is_read = |wanted: BlockSource| {
                plan.stages.iter().flat_map(|stage| &stage.sources).any(|source| *source == wanted)
            };
            let [is_spread, is_kept] = [BlockSource::Spread(value), BlockSource::Folded(value)].map(is_read);
            let size = plan.values[value].size;
            if is_spread {
                plan.values[value].spread = Some(plan.reserve(plan.spread * block * size));
            }
            if is_kept {
                plan.values[value].folded = plan.reserve(row * block * size);
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
        0 => Some(BlockAccess::Broadcast),
        _ => None,
    }
}

impl BlockPlan {
    /// Returns the offset of so many bytes of scratch memory.
    fn reserve(&mut self, bytes: usize) -> usize {
        let offset = self.bytes;
        self.bytes += bytes.next_multiple_of(ALIGNMENT);
        offset
    }

    /// Returns the elements of a row over which values of groups are spread: a part of the only row, if no fold reads them
    /// as they are.
    fn spread_elements(&self) -> usize {
        let is_spread = |source: &BlockSource| matches!(source, BlockSource::Spread(_));
        let is_folded = |stage: &BlockStage| stage.constants.is_none() && stage.sources.iter().any(is_spread);
        if self.block == 1 && !self.stages.iter().any(is_folded) { PART.min(self.row) } else { self.row }
    }

    /// Plans a phase. `reduction` is the number of the reduction after it, with true if it folds an input as it is.
    fn stage(
        &mut self,
        (expression, code): (&Arc<CompiledExpression>, &CpuCode),
        operands: &PhaseOperands,
        scalars: &[Number],
        shape: &RowShape,
        reduction: Option<(usize, bool)>,
    ) -> Option<BlockStage> {
        let elements = self.row.saturating_mul(self.rows);
        let is_plain = reduction.is_some_and(|(_, is_plain)| is_plain);
        let of_stage = operands.scalars(scalars, shape);
        let constants = match is_plain {
            true => None,
            false => {
                let native = code.for_run(expression, elements)?;
                if native.reads_coordinates() {
                    return None;
                }
                let bits = expression.scalar_bits(&of_stage).ok()?;
                Some(native.constants(&expression.program, &expression.allocation, &bits))
            }
        };
        let each = if is_plain { 100 } else { 200 + 15 * expression.allocation.each.len() };
        self.estimate = self.estimate.saturating_add(elements.saturating_mul(each));
        let reductions = self.reductions;
        let source = |input: &PhaseInput| match *input {
            PhaseInput::Input(input) => Some(BlockSource::Operand(input)),
            PhaseInput::Group(value) => Some(BlockSource::Spread(value)),
            // The program has no stored values, and outputs of blocks read these.
            PhaseInput::Stored(index) if index < reductions => Some(BlockSource::Folded(index)),
            PhaseInput::Stored(value) => Some(BlockSource::Spread(value)),
            PhaseInput::Index => None,
        };
        let dtypes = expression.inputs.iter().chain(&expression.outputs);
        Some(BlockStage {
            sizes: dtypes.map(|dtype| dtype.size()).collect(),
            expression: expression.clone(),
            code: code.clone(),
            constants,
            sources: operands.inputs.iter().map(source).collect::<Option<Vec<_>>>()?,
            reduction: reduction.map(|(index, _)| index),
            scalars: of_stage,
            is_per_group: false,
            values: 0..0,
            outputs: Vec::new(),
        })
    }

    /// Plans a phase of outputs, or of values of groups.
    fn finish(
        &mut self,
        (finish, code): (&Finish, &CpuCode),
        scalars: &[Number],
        shape: &RowShape,
    ) -> Option<BlockStage> {
        let before = self.estimate;
        let mut stage = self.stage((&finish.expression, code), &finish.operands, scalars, shape, None)?;
        if finish.is_per_group {
            self.estimate = before + (self.estimate - before) / self.row.max(1);
        }
        stage.is_per_group = finish.is_per_group;
        for source in stage.sources.iter_mut().filter(|_| finish.is_per_group) {
            match *source {
                BlockSource::Spread(value) => *source = BlockSource::Values(value),
                _ => return None,
            }
        }
        Some(stage)
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
