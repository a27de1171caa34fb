//! The elements of a reduction: memory as it is, or the values of an expression in a scratch buffer.

use bytemuck::Pod;

use super::registers;
use crate::fuse::cpu::backend::CpuCode;
use crate::fuse::cpu::block::{Block, LANES as WIDTH};
use crate::fuse::cpu::memory::HostOperand;
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu::native::{NativeValues, ValuesWorker};
use crate::fuse::cpu::run_on_inputs;
use crate::fuse::cpu::scratch::Scratch;
use crate::fuse::ir::program::{Program, Step};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::space::Space;
use crate::types::DType;

/// The elements of a scratch buffer, a multiple of a segment: few enough for the L1 cache.
pub(super) const SCRATCH: usize = 4096;

/// The inputs of a run, and the expression of them.
pub(in crate::fuse::cpu) struct Source<'a> {
    expression: &'a CompiledExpression,
    space: Space,
    operands: Vec<HostOperand>,
    scalars: &'a [[u64; 2]],
    /// The input, if the expression is that input.
    plain: Option<usize>,
    /// The elements of the plain input that are adjacent in memory and in the space, if memory is read as it is.
    run: Option<usize>,
    /// The same of the output, if folded values are written as they are.
    output_run: Option<usize>,
    /// The machine code of the expression.
    #[cfg(target_arch = "x86_64")]
    native: Option<NativeValues<'a>>,
}

/// The expression of a source's inputs on one thread.
pub(in crate::fuse::cpu) struct Prologue<'s> {
    source: &'s Source<'s>,
    registers: Vec<Block>,
    #[cfg(target_arch = "x86_64")]
    native: Option<ValuesWorker<'s>>,
}

impl<'a> Source<'a> {
    /// Creates the source of the values of an expression, which `epilogue` follows, in a space whose elements have been checked against the memory of the operands.
    pub(in crate::fuse::cpu) fn new(
        (expression, code): (&'a CompiledExpression, &'a CpuCode),
        epilogue: &CompiledExpression,
        space: Space,
        operands: Vec<HostOperand>,
        scalars: &'a [[u64; 2]],
    ) -> Source<'a> {
        let plain = input_of(&expression.program);
        let run = |operand: usize| {
            let is_adjacent = space.strides(operand)[0] == 1 || space.sizes[0] == 1;
            (is_lane(operands[operand].dtype) && is_adjacent).then_some(space.sizes[0])
        };
        let output = operands.len() - 1;
        let (run, output_run) = (plain.and_then(run), input_of(&epilogue.program).and_then(|_| run(output)));
        #[cfg(not(target_arch = "x86_64"))]
        let _ = code;
        #[cfg(target_arch = "x86_64")]
        let native = match plain {
            Some(_) => None,
            None => NativeValues::new((expression, code), &space, &operands, scalars),
        };
        Source {
            expression,
            space,
            operands,
            scalars,
            plain,
            run,
            output_run,
            #[cfg(target_arch = "x86_64")]
            native,
        }
    }

    /// Returns the expression for a thread.
    pub(in crate::fuse) fn prologue(&self) -> Prologue<'_> {
        #[cfg(target_arch = "x86_64")]
        let native = self.native.as_ref().map(NativeValues::worker);
        let registers = match self.plain {
            Some(_) => vec![[0; WIDTH]],
            None if self.is_native() => Vec::new(),
            None => registers(&self.expression.program, &self.expression.allocation, self.scalars),
        };
        Prologue {
            source: self,
            registers,
            #[cfg(target_arch = "x86_64")]
            native,
        }
    }

    /// Returns whether the expression runs as machine code.
    fn is_native(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.native.is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Returns whether runs of elements are read from memory as they are.
    pub(super) fn is_direct(&self) -> bool {
        self.run.is_some()
    }

    /// Returns an estimate of the time of folding so many elements, in picoseconds.
    pub(in crate::fuse::cpu) fn estimate(&self, elements: usize) -> usize {
        let each = match (self.run, self.plain) {
            (Some(_), _) => 100,
            (_, Some(_)) => 400,
            _ if self.is_native() => 200 + 15 * self.expression.allocation.each.len(),
            _ => 300 + 150 * self.expression.allocation.each.len(),
        };
        elements.saturating_mul(each)
    }

    /// Returns the distance of the plain input's elements in one dimension.
    pub(super) fn pitch(&self, strides: &[isize]) -> Option<isize> {
        self.run.and(self.plain).map(|input| strides[input])
    }

    /// Returns elements that follow each other in memory and in the space, if memory is read as it is.
    #[inline]
    pub(in crate::fuse::cpu) fn direct<T: Pod>(&self, start: usize, count: usize) -> Option<&[T]> {
        let memory = self.address(start, count)?;
        // SAFETY: the space's elements are those of the layouts, which have been checked against the memory and
        // its alignment, and nobody writes an input.
        Some(unsafe { std::slice::from_raw_parts(memory, count) })
    }

    /// Returns the address of such elements, which reaches all of the input's memory.
    #[inline]
    pub(in crate::fuse) fn address<T: Pod>(&self, start: usize, count: usize) -> Option<*const T> {
        self.adjacent(self.plain?, self.run?, start, count).map(<*mut T>::cast_const)
    }

    /// Returns the address of elements of the output that follow each other in memory and in the space, if folded
    /// values are written there as they are.
    #[inline]
    pub(in crate::fuse) fn target<T: Pod>(&self, start: usize, count: usize) -> Option<*mut T> {
        self.adjacent(self.operands.len() - 1, self.output_run?, start, count)
    }

    #[inline]
    fn adjacent<T: Pod>(&self, operand: usize, run: usize, start: usize, count: usize) -> Option<*mut T> {
        let (along, mut rest) = if start < run { (start, 0) } else { (start % run, start / run) };
        if along + count > run || size_of::<T>() != self.operands[operand].dtype.size() {
            return None;
        }
        let mut offset = (self.space.offsets[operand] + along) as isize;
        for (size, stride) in self.space.sizes[1..].iter().zip(&self.space.strides(operand)[1..]) {
            offset += (rest % size) as isize * stride;
            rest /= size;
        }
        Some(self.operands[operand].memory.cast::<T>().wrapping_offset(offset))
    }

    /// Stores values of the output.
    ///
    /// # Safety
    ///
    /// The space's elements of the output must be within its memory, and nobody else may access these.
    pub(in crate::fuse::cpu) unsafe fn store(
        &self,
        space: &Space,
        start: usize,
        count: usize,
        values: [&Block; 2],
    ) {
        let output = self.operands.len() - 1;
        // SAFETY: the caller guarantees it.
        unsafe { self.operands[output].store(space, output, start, count, values) };
    }
}

impl Prologue<'_> {
    /// Computes part `part` of elements.
    pub(in crate::fuse) fn values<'v, T: Pod>(
        &mut self,
        scratch: &'v mut Scratch<T>,
        part: usize,
        start: usize,
        count: usize,
    ) -> &'v [T] {
        scratch.grow(count);
        #[cfg(target_arch = "x86_64")]
        if let Some(native) = &mut self.native {
            // SAFETY: the space's elements are those of the layouts, which have been checked against the memory; an
            // element of the output is a lane, whose type is `T`.
            unsafe { native.write(start, count, scratch.as_mut_ptr().cast()) };
            return &scratch[..count];
        }
        let Source { expression, space, operands, scalars, plain, .. } = self.source;
        let (program, allocation) = (&expression.program, &expression.allocation);
        let registers = &mut self.registers;
        for (index, to) in scratch[..count].chunks_mut(WIDTH).enumerate() {
            let (from, lanes) = (start + index * WIDTH, to.len());
            let mut load = |input: u32, part: u32, block: &mut Block| {
                let (operand, part) = (input as usize, part as usize);
                // SAFETY: as above, and nobody writes an input.
                unsafe { operands[operand].load(space, operand, part, from, lanes, block) };
            };
            let values = match *plain {
                Some(input) => {
                    load(input as u32, part as u32, &mut registers[0]);
                    &registers[0]
                }
                None => {
                    run_on_inputs(
                        program,
                        allocation,
                        scalars,
                        registers,
                        &allocation.each,
                        lanes,
                        &mut load,
                    );
                    &registers[allocation.register(program.outputs[0][part])]
                }
            };
            to.copy_from_slice(&bytemuck::cast_slice::<u64, T>(values)[..lanes]);
        }
        &scratch[..count]
    }
}

/// Returns whether elements of a dtype are the lanes of a register.
pub(super) fn is_lane(dtype: DType) -> bool {
    use DType::{F32, F64, I32, I64, U32, U64};
    matches!(dtype, F32 | F64 | I32 | I64 | U32 | U64)
}

/// Returns the input that a program returns as it is.
pub(super) fn input_of(program: &Program) -> Option<usize> {
    let step = |part: usize| program.steps.get(program.outputs[0][part].index()).map(|step| step.0);
    match (step(0), step(1)) {
        (Some(Step::Load { input, part: 0 }), Some(Step::Load { input: other, .. })) if input == other => {
            Some(input as usize)
        }
        _ => None,
    }
}

// SAFETY: threads read the inputs, and each writes output elements that no other thread accesses.
unsafe impl Sync for Source<'_> {}
