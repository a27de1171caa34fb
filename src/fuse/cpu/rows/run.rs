//! The run of a plan: threads take blocks of rows, and compute all phases of a block in scratch memory.

use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ALIGNMENT, BlockAccess, BlockPlan, BlockSource, BlockStage, PART};
use crate::error::Result;
use crate::fuse::cpu::memory::spread;
use crate::fuse::cpu::native::{CallBuffers, fence};
use crate::fuse::cpu::reduction::{ReductionCode, run_host};
use crate::fuse::cpu::scratch::Scratch;
use crate::fuse::cpu::{HostInput, HostOutput};
use crate::fuse::plan::compiled_rows::CompiledRows;
use crate::threads::{run_on_threads, threads_for};
use crate::types::{DType, Layout, Shape};

/// The elements of blocks that a thread takes at once, and the least number of times that each thread takes some.
const CLAIM_ELEMENTS: usize = 1 << 16;
const MIN_CLAIMS: usize = 8;
/// The most elements of a block whose successor's are asked for early: both blocks and scratch memory fit the L2 cache.
const MAX_AHEAD: usize = 1 << 16;

/// The memory of a thread, which all its runs reuse.
#[derive(Default)]
struct Workspace {
    scratch: Scratch<u8>,
    buffers: CallBuffers,
    pointers: Vec<*mut u8>,
    /// The addresses of the inputs of the block at hand.
    inputs: Vec<*mut u8>,
    /// By input, true if the scratch memory holds its elements for all blocks.
    is_filled: Vec<bool>,
    /// The number of calls with streaming stores.
    streamed: usize,
}

thread_local! {
    static WORKSPACE: Cell<Option<Box<Workspace>>> = const { Cell::new(None) };
}

/// A run in progress, shared by its threads.
pub(super) struct BlockRun<'a> {
    program: &'a CompiledRows,
    code: &'a [ReductionCode],
    plan: &'a BlockPlan,
    /// By operand, the address of the first row.
    memory: Vec<*mut u8>,
    /// True if outputs are written past the caches.
    streams: bool,
}

// SAFETY: threads read the inputs, and each writes rows of outputs that no other thread accesses.
unsafe impl Sync for BlockRun<'_> {}

impl<'a> BlockRun<'a> {
    /// Creates the run on memory of the plan's layouts, with streaming stores if the outputs have more than `least` bytes in all.
    pub(super) fn new(
        (program, code): (&'a CompiledRows, &'a [ReductionCode]),
        plan: &'a BlockPlan,
        memory: Vec<*mut u8>,
        least: usize,
    ) -> BlockRun<'a> {
        // Lines of an operand that is read, too, are in the cache.
        let (inputs, outputs) = memory.split_at(plan.inputs);
        let streams = plan.output_bytes > least && !outputs.iter().any(|output| inputs.contains(output));
        BlockRun { program, code, plan, memory, streams }
    }

    /// Computes all rows. Returns the number of calls with streaming stores.
    pub(super) fn all(&self) -> usize {
        let plan = self.plan;
        let blocks = plan.rows.div_ceil(plan.block);
        let threads = threads_for(plan.estimate).min(blocks);
        // Neighbouring blocks, so that a thread can ask for the next one's elements.
        let claim = CLAIM_ELEMENTS / (plan.block * plan.row);
        let claim = claim.min(blocks / (threads * MIN_CLAIMS).max(1)).max(1);
        let [next, streamed] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let work = || {
            // A thread that ends has no workspace any more.
            let mut workspace = WORKSPACE.try_with(Cell::take).ok().flatten().unwrap_or_default();
            workspace.scratch.grow(plan.bytes);
            workspace.is_filled.clear();
            workspace.is_filled.resize(plan.inputs, false);
            workspace.streamed = 0;
            loop {
                let start = next.fetch_add(claim, Ordering::Relaxed);
                if start >= blocks {
                    break;
                }
                let end = blocks.min(start + claim);
                for block in start..end {
                    let first = block * plan.block;
                    let ahead = (block + 1 < end).then_some(first + plan.block);
                    // SAFETY: each block is claimed once.
                    unsafe { self.block(&mut workspace, first, plan.block.min(plan.rows - first), ahead) };
                }
            }
            if workspace.streamed > 0 {
                fence();
                streamed.fetch_add(workspace.streamed, Ordering::Relaxed);
            }
            let _ = WORKSPACE.try_with(|kept| kept.set(Some(workspace)));
        };
        run_on_threads(threads, &work);
        streamed.into_inner()
    }

    /// Computes `count` rows from row `first` on, and asks for the elements of the block from row `ahead` on meanwhile.
    ///
    /// # Safety
    ///
    /// Nobody else computes these rows, and the workspace has the plan's scratch memory.
    unsafe fn block(&self, workspace: &mut Workspace, first: usize, count: usize, ahead: Option<usize>) {
        let (plan, elements) = (self.plan, count * self.plan.row);
        // The first stage of machine code computes while the elements come.
        let mut ahead = ahead.filter(|_| elements <= MAX_AHEAD);
        let Workspace { scratch, buffers, pointers, inputs, is_filled, streamed } = workspace;
        let scratch = scratch.as_mut_ptr();
        let at = |offset: usize| scratch.wrapping_add(offset);
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
                BlockSource::Folded(value) => at(plan.values[value].folded),
            }));
            let sources = pointers.len();
            if let Some(index) = stage.reduction {
                pointers.push(at(plan.values[index].folded));
            }
            pointers.extend(plan.values[stage.values.clone()].iter().map(|values| at(values.values)));
            for &output in &stage.outputs {
                pointers.push(self.target(output, first, count).unwrap_or(at(plan.operands[output].scratch)));
            }
            if let (Some(native), Some(constants)) = (stage.code.ready(), &stage.constants) {
                let calls = native.calls(constants);
                let computed = if stage.is_per_group { count } else { elements };
                let is_spread = |source: &BlockSource| matches!(source, BlockSource::Spread(_));
                let is_in_parts = plan.spread < plan.row && stage.sources.iter().any(is_spread);
                let ahead = if stage.is_per_group { None } else { ahead.take() };
                let part = match ahead {
                    _ if is_in_parts => plan.spread,
                    Some(_) => PART,
                    None => computed,
                };
                let is_in_lines = |(pointer, size): (&*mut u8, &usize)| {
                    pointer.addr().is_multiple_of(ALIGNMENT) && (part * size).is_multiple_of(ALIGNMENT)
                };
                let may_stream = self.streams
                    && stage.reduction.is_none()
                    && stage.values.is_empty()
                    && stage.outputs.iter().all(|&output| self.target(output, first, count).is_some())
                    && pointers[sources..].iter().zip(&stage.sizes[sources..]).all(is_in_lines);
                let streaming = if may_stream { calls.streaming() } else { None };
                *streamed += usize::from(streaming.is_some());
                let calls = streaming.unwrap_or(calls);
                for start in (0..computed).step_by(part.max(1)) {
                    if let Some(ahead) = ahead {
                        self.prefetch(ahead, start..computed.min(start + part));
                    }
                    // SAFETY: each pointer has so many elements, in scratch memory or by its layout, which has been checked;
                    // spread values have a part.
                    unsafe {
                        calls.run(buffers, &stage.sizes, sources, pointers, part.min(computed - start))
                    };
                    for (operand, (pointer, size)) in pointers.iter_mut().zip(&stage.sizes).enumerate() {
                        if !(is_in_parts && stage.sources.get(operand).is_some_and(is_spread)) {
                            *pointer = pointer.wrapping_add(part * size);
                        }
                    }
                }
            }
            if let Some(index) = stage.reduction {
                let values = &plan.values[index];
                let from = if stage.constants.is_some() { at(values.folded) } else { pointers[0] };
                let reduction = &self.program.reductions[index].reduction;
                // SAFETY: as above, and the scratch memory has a value for each row.
                unsafe { reduction.fold_rows(from, plan.row, count, at(values.values)) };
                if reduction.has_factor() {
                    let rescale = |row: usize, value: &mut [u8]| {
                        // SAFETY: the elements of the sources are still there.
                        unsafe { self.rescale(stage, (inputs, scratch), row, value) };
                    };
                    // SAFETY: as above.
                    unsafe { reduction.with_factors(at(values.values), count, rescale) };
                }
            }
            let computed = stage.reduction.map_or(stage.values.clone(), |index| index..index + 1);
            for values in &plan.values[computed] {
                let Some(offset) = values.spread else { continue };
                for row in 0..count {
                    let to = at(offset + row * plan.spread * values.size);
                    // SAFETY: the scratch memory has as many elements for each row.
                    unsafe { spread(at(values.values + row * values.size), to, values.size, plan.spread) };
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

    /// Computes the value of one of a block's rows whose sum of squares has left the range.
    ///
    /// # Safety
    ///
    /// As [`block`](Self::block), after the stage.
    unsafe fn rescale(
        &self,
        stage: &BlockStage,
        (inputs, scratch): (&[*mut u8], *mut u8),
        row: usize,
        value: &mut [u8],
    ) {
        let plan = self.plan;
        let Some(index) = stage.reduction else { return };
        let (reduction, code) = (&*self.program.reductions[index].reduction, &self.code[index]);
        let of_source = |(source, &dtype): (&BlockSource, &DType)| {
            let size = dtype.size();
            let (first, elements) = match *source {
                BlockSource::Operand(input) => (inputs[input].wrapping_add(row * plan.row * size), plan.row),
                BlockSource::Folded(value) => {
                    (scratch.wrapping_add(plan.values[value].folded + row * plan.row * size), plan.row)
                }
                BlockSource::Values(value) | BlockSource::Spread(value) => {
                    (scratch.wrapping_add(plan.values[value].values + row * size), 1)
                }
            };
            // SAFETY: a source has as many elements for each row, and one value.
            let memory = unsafe { std::slice::from_raw_parts(first, elements * size) };
            HostInput::of_bytes(
                dtype,
                memory,
                Layout::contiguous(&[elements])?.expand(&Shape::new(&[plan.row])?)?,
            )
        };
        let sources = stage.sources.iter().zip(&stage.expression.inputs).map(of_source);
        let run = || -> Result<()> {
            let inputs = sources.collect::<Result<Vec<_>>>()?;
            let mut output = HostOutput::of_bytes(reduction.output(), value, Layout::contiguous(&[1])?)?;
            run_host((reduction, code), &inputs, &stage.scalars, &mut output, false)
        };
        let found = run();
        debug_assert!(found.is_ok(), "operands of the plan: {found:?}");
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
            BlockAccess::Row | BlockAccess::Broadcast => {}
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
                    BlockAccess::Broadcast => spread(from, to, operand.size, plan.row),
                    _ => to.copy_from_nonoverlapping(from, bytes),
                }
            }
        }
        // The last block may be shorter than the others, but no block is longer than the first one.
        *is_filled = operand.is_same_for_all() && count == plan.block;
        scratch
    }

    /// Asks for elements of the block from row `first` on, of inputs whose elements are read in their memory.
    fn prefetch(&self, first: usize, elements: Range<usize>) {
        let plan = self.plan;
        for (memory, operand) in self.memory.iter().zip(&plan.operands[..plan.inputs]) {
            let block = match operand.access {
                BlockAccess::Contiguous => memory.wrapping_add(first * plan.row * operand.size),
                BlockAccess::Row if plan.block == 1 => memory.wrapping_offset(plan.distance(operand, first)),
                BlockAccess::Row | BlockAccess::Broadcast => continue,
            };
            for byte in (elements.start * operand.size..elements.end * operand.size).step_by(ALIGNMENT) {
                // SAFETY: a hint reads nothing, so the address need not be valid.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(block.wrapping_add(byte).cast()) };
            }
        }
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
        self.program.outputs[operand - self.plan.inputs].is_per_group
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
