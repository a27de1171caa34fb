//! Runs of kernels: blocks of contiguous elements, other layouts through scratch memory, flagged groups again with the
//! rare bodies, and tails padded to a turn.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::memory::{contiguous_from, for_each_run, spread};
use super::super::scratch::Scratch;
use super::super::{CHUNK, ELEMENTS_OF_A_THREAD, Run};
use super::calls::{CallBuffers, Calls};
use super::prepare::Preparation;
use super::streaming::{LINE, fence, last_level_cache};
use super::{Constants, Native};
use crate::threads::{run_on_threads, thread_count};

/// The elements of a block with flags: their inputs are still in the L1 cache when a group is computed again.
const FLAGGED_BLOCK: usize = 2048;
/// The elements of a block of which some operand goes through scratch memory.
const SCRATCH_BLOCK: usize = 512;
/// Rows of fewer elements are not worth a call each.
const MIN_ROW: usize = 256;

/// The numbers of blocks of a run.
#[derive(Default)]
pub(super) struct Blocks {
    /// With a flagged element.
    pub(super) flagged: usize,
    /// With streaming stores.
    pub(super) streamed: usize,
}

/// Executes a run. Returns the number of blocks with a flagged element.
pub(in crate::fuse::cpu) fn run(run: &Run<'_>, native: &Native) -> usize {
    run_streaming(run, native, last_level_cache()).flagged
}

/// Executes a run, with streaming stores if the outputs have more than `least` bytes in all.
pub(super) fn run_streaming(run: &Run<'_>, native: &Native, least: usize) -> Blocks {
    let count = run.space.count();
    if count == 0 {
        return Blocks::default();
    }
    let of_run;
    let constants = match run.scalars_are_fixed {
        true => native.constants.get_or_init(|| native.constants(run.program, run.allocation, &run.scalars)),
        false => {
            of_run = native.constants(run.program, run.allocation, &run.scalars);
            &of_run
        }
    };
    let [next, flagged, streamed] = std::array::from_fn(|_| AtomicUsize::new(0));
    let work = || {
        let mut worker = Worker::new(run, native, constants, least);
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= count {
                break;
            }
            worker.chunk(start, count.min(start + CHUNK));
        }
        if worker.blocks.streamed > 0 {
            fence();
        }
        flagged.fetch_add(worker.blocks.flagged, Ordering::Relaxed);
        streamed.fetch_add(worker.blocks.streamed, Ordering::Relaxed);
    };
    let threads = thread_count().min(count.div_ceil(ELEMENTS_OF_A_THREAD));
    run_on_threads(threads, &work);
    Blocks { flagged: flagged.into_inner(), streamed: streamed.into_inner() }
}

/// The state of a thread.
pub(super) struct Worker<'a> {
    run: &'a Run<'a>,
    calls: Calls<'a>,
    /// The calls of blocks whose outputs' addresses are multiples of [`LINE`], if the outputs are to be streamed.
    streaming: Option<Calls<'a>>,
    buffers: CallBuffers,
    /// The operands that each block computes, between the inputs and the outputs.
    preparation: Preparation<'a>,
    /// The bytes of the elements of the kernel's operands.
    kernel_sizes: Vec<usize>,
    /// The bytes of each operand's elements.
    sizes: Vec<usize>,
    /// Inputs that are outputs, too, and are read again if their block is flagged.
    in_place: Vec<bool>,
    block: usize,
    by_rows: bool,
    pointers: Vec<*mut u8>,
    /// Scratch memory of the operands that need it.
    scratch: Vec<Scratch<u8>>,
    blocks: Blocks,
}

impl<'a> Worker<'a> {
    /// Creates the state; `least` is as in [`run_streaming`].
    pub(super) fn new(
        run: &'a Run<'a>,
        native: &'a Native,
        constants: &'a Constants,
        least: usize,
    ) -> Worker<'a> {
        let calls = native.calls(constants);
        let space = &run.space;
        let operands = run.operands.len();
        let outputs = &run.operands[space.inputs..];
        let in_place = |operand: &super::super::HostOperand| {
            outputs.iter().any(|output| output.memory == operand.memory)
        };
        let in_place: Vec<bool> = run.operands[..space.inputs].iter().map(in_place).collect();
        let bytes: usize = outputs.iter().map(|output| output.dtype.size()).sum();
        // Lines of an operand that is read, too, are in the cache.
        let may_stream = bytes.saturating_mul(space.count()) > least
            && (space.inputs..operands).all(|output| space.is_linear(output))
            && !in_place.contains(&true);
        let by_rows = space.sizes[0] >= MIN_ROW;
        let is_contiguous =
            |operand: usize| space.is_linear(operand) || by_rows && space.strides(operand)[0] == 1;
        let block = match () {
            () if !(0..operands).all(is_contiguous) => SCRATCH_BLOCK,
            () if calls.has_second() || native.reads_coordinates() => FLAGGED_BLOCK,
            () => CHUNK,
        };
        let sizes: Vec<usize> = run.operands.iter().map(|operand| operand.dtype.size()).collect();
        let preparation = Preparation::new(run, native, constants, block.min(space.count()));
        let mut kernel_sizes = sizes.clone();
        kernel_sizes.splice(space.inputs..space.inputs, preparation.sizes());
        Worker {
            run,
            calls,
            streaming: if may_stream { calls.streaming() } else { None },
            buffers: CallBuffers::default(),
            preparation,
            kernel_sizes,
            sizes,
            in_place,
            block,
            by_rows: by_rows && space.rank() > 1,
            pointers: Vec::with_capacity(operands + 1),
            scratch: (0..operands).map(|_| Scratch::default()).collect(),
            blocks: Blocks::default(),
        }
    }

    /// Computes the elements from `start` to before `end`.
    fn chunk(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let count = self.block_at(at, end);
            self.elements(at, count, None);
            at += count;
        }
    }

    /// Computes the only output of `count` elements from `start` on, and writes it to `to` instead of the operand.
    ///
    /// # Safety
    ///
    /// `to` has `count` elements, which nobody else accesses.
    pub(super) unsafe fn values(&mut self, start: usize, count: usize, to: *mut u8) {
        let size = self.sizes[self.run.space.inputs];
        let mut at = start;
        while at < start + count {
            let count = self.block_at(at, start + count);
            self.elements(at, count, Some(to.wrapping_add((at - start) * size)));
            at += count;
        }
    }

    /// Returns the number of elements of the block that begins with element `at`.
    fn block_at(&self, at: usize, end: usize) -> usize {
        let row = self.run.space.sizes[0];
        let left = if self.by_rows { row - at % row } else { usize::MAX };
        self.block.min(end - at).min(left)
    }

    /// Returns the address of `count` elements starting at element `start`, if they are contiguous.
    fn address(&self, operand: usize, start: usize, count: usize) -> Option<*mut u8> {
        let offset = contiguous_from(&self.run.space, operand, start, count)?;
        Some(self.run.operands[operand].memory.wrapping_offset(offset * self.sizes[operand] as isize))
    }

    /// Computes a block; `target` is the memory of the only output, if not the operand's.
    fn elements(&mut self, start: usize, count: usize, target: Option<*mut u8>) {
        let space = &self.run.space;
        let inputs = space.inputs;
        let mut pointers = std::mem::take(&mut self.pointers);
        pointers.clear();
        for operand in 0..self.run.operands.len() {
            if operand == inputs {
                self.preparation.add(&mut self.buffers, start, count, &mut pointers);
            }
            let address = match target.filter(|_| operand >= inputs) {
                Some(target) => Some(target),
                None => self.address(operand, start, count),
            };
            let rereads = self.calls.has_second() && self.in_place.get(operand) == Some(&true);
            if let (Some(address), false) = (address, rereads) {
                pointers.push(address);
                continue;
            }
            let is_filled = !self.scratch[operand].is_empty();
            // No block has more elements than the space.
            let block = self.block.min(space.count()).max(count);
            if !is_filled {
                self.scratch[operand].grow(block * self.sizes[operand]);
            }
            let scratch = self.scratch[operand].as_mut_ptr();
            // One element for all stays in the scratch memory.
            let is_constant = space.is_constant(operand) && self.block == SCRATCH_BLOCK;
            if operand < inputs && !(is_constant && is_filled) {
                let read = if is_constant { 1 } else { count };
                // SAFETY: the elements are those of the layout, which has been checked, and the scratch memory holds a block.
                unsafe { self.copy(operand, start, read, scratch, Direction::In) };
                if is_constant {
                    let size = self.sizes[operand];
                    // SAFETY: the first element was read, and the scratch memory holds a block.
                    unsafe { spread(scratch, scratch.add(size), size, block - 1) };
                }
            }
            pointers.push(scratch);
        }
        // The kernel's inputs.
        let read = inputs + self.kernel_sizes.len() - self.sizes.len();
        let is_aligned = || pointers[read..].iter().all(|pointer| pointer.addr().is_multiple_of(LINE));
        let streaming = self.streaming.filter(|_| is_aligned());
        let calls = streaming.unwrap_or(self.calls);
        // SAFETY: each pointer has `count` elements; other threads write other elements. Addresses have been checked.
        let is_flagged =
            unsafe { calls.run(&mut self.buffers, &self.kernel_sizes, read, &mut pointers, count) };
        self.blocks.flagged += usize::from(is_flagged);
        self.blocks.streamed += usize::from(streaming.is_some());
        for (output, &pointer) in (inputs..).zip(&pointers[read..]) {
            // An earlier block may have needed the scratch memory that this one did not.
            let scratch = &self.scratch[output];
            if !scratch.is_empty() && scratch.as_ptr().cast() == pointer.cast_const() {
                // SAFETY: as above, and no other block has these elements.
                unsafe { self.copy(output, start, count, pointer, Direction::Out) };
            }
        }
        self.pointers = pointers;
    }

    /// Copies elements of an operand to or from contiguous memory.
    ///
    /// # Safety
    ///
    /// The operand's elements are valid, and `scratch` has `count` elements.
    unsafe fn copy(
        &self,
        operand: usize,
        start: usize,
        count: usize,
        scratch: *mut u8,
        direction: Direction,
    ) {
        macro_rules! copy {
            ($type:ty) => {{
                let (memory, scratch) =
                    (self.run.operands[operand].memory.cast::<$type>(), scratch.cast::<$type>());
                for_each_run(&self.run.space, operand, start, count, |lane, length, offset, stride| {
                    let (memory, scratch) = (memory.wrapping_offset(offset), scratch.wrapping_add(lane));
                    // SAFETY: the caller guarantees it.
                    unsafe {
                        match (direction, stride) {
                            (Direction::In, 1) => scratch.copy_from_nonoverlapping(memory, length),
                            (Direction::Out, 1) => memory.copy_from_nonoverlapping(scratch, length),
                            (Direction::In, 0) => {
                                let element = memory.read();
                                (0..length).for_each(|index| scratch.add(index).write(element));
                            }
                            (Direction::In, _) => (0..length).for_each(|index| {
                                scratch.add(index).write(memory.offset(index as isize * stride).read());
                            }),
                            (Direction::Out, _) => (0..length).for_each(|index| {
                                memory.offset(index as isize * stride).write(scratch.add(index).read());
                            }),
                        }
                    }
                });
            }};
        }
        match self.sizes[operand] {
            1 => copy!(u8),
            2 => copy!(u16),
            4 => match self.run.operands[operand].dtype.is_complex() {
                true => copy!([u16; 2]),
                false => copy!(u32),
            },
            // A complex number is aligned as its parts.
            8 => match self.run.operands[operand].dtype.is_complex() {
                true => copy!([u32; 2]),
                false => copy!(u64),
            },
            _ => copy!([u64; 2]),
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}
