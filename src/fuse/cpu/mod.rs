//! Runs on the CPU: an interpreter of the same instructions, block by block.
//!
//! The interpreter loads a block of lanes, applies all instructions while the block is in the L1 cache, and
//! stores the outputs. An expression of any length therefore reads and writes memory once. Threads share the
//! blocks.
//!
//! `native` generates machine code. This layer may use `ir`, `language` and `plan`, never `ptx`.
//!
//! Invariants: no two blocks write the same output element, and a block is loaded before it is stored.

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86-64 has machine code"))]
pub(super) mod backend;
pub(super) mod block;
mod coordinates;
mod instruction;
pub(super) mod memory;
#[cfg(target_arch = "x86_64")]
pub(super) mod native;
pub(super) mod reduction;
#[cfg(target_arch = "x86_64")]
pub(super) mod rows;
pub(super) mod scan;
pub(super) mod scratch;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use backend::{CpuBackend, CpuCode};
use block::{Block, LANES, Lanes};
use coordinates::Groups;
use memory::HostOperand;

use crate::error::{Error, Result};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::number::Number;
use crate::fuse::ir::program::{Program, Step};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::elementwise::{check_memory, in_place_error};
use crate::fuse::plan::register_allocation::RegisterAllocation;
use crate::fuse::plan::space::Space;
use crate::threads::{run_on_threads, thread_count};
use crate::types::{DType, Element, Layout, Shape};

/// The number of elements above which another thread pays for its start.
const ELEMENTS_OF_A_THREAD: usize = 1 << 16;
/// The elements that a thread claims at a time.
const CHUNK: usize = 64 * LANES;

/// An array in a slice that a run reads.
pub struct HostInput<'a> {
    source: Source,
    dtype: DType,
    layout: Layout,
    borrow: PhantomData<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum Source {
    Memory(*const u8),
    Output(usize),
}

/// An array in a slice that a run writes.
pub struct HostOutput<'a> {
    memory: *mut u8,
    dtype: DType,
    layout: Layout,
    borrow: PhantomData<&'a mut [u8]>,
}

// SAFETY: the value is a shared borrow of plain bytes, which any thread may read.
unsafe impl Send for HostInput<'_> {}
// SAFETY: as above.
unsafe impl Sync for HostInput<'_> {}
// SAFETY: the value is an exclusive borrow of plain bytes.
unsafe impl Send for HostOutput<'_> {}
// SAFETY: nothing is written through a shared reference to the value.
unsafe impl Sync for HostOutput<'_> {}

const SLICE: &str = "a slice of an operand";

/// Checks that the elements of a layout form a slice of type `T`.
pub(super) fn check_slice<T: Element>(dtype: DType, layout: &Layout) -> Result<()> {
    if T::DTYPE != dtype {
        let wanted = format!("{dtype}, the dtype of the operand");
        return Err(Error::DTypeMismatch { operation: SLICE, wanted, found: T::DTYPE.to_string() });
    }
    if !layout.is_contiguous() {
        let found = format!("elements of {layout:?}");
        return Err(Error::invalid(SLICE, found, "contiguous elements; call contiguous() first"));
    }
    Ok(())
}

/// Creates a slice; an empty one needs no valid address.
///
/// # Safety
///
/// As [`std::slice::from_raw_parts`] unless `count` is 0.
unsafe fn slice_of<'a, T>(start: *const u8, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: the caller guarantees it.
        count => unsafe { std::slice::from_raw_parts(start.cast(), count) },
    }
}

impl<'a> HostInput<'a> {
    /// Creates an input of the elements of `memory` in this layout.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) if the layout exceeds the memory.
    pub fn new<T: Element>(memory: &'a [T], layout: Layout) -> Result<HostInput<'a>> {
        HostInput::of_bytes(T::DTYPE, bytemuck::cast_slice(memory), layout)
    }

    /// Creates an input of bytes that hold elements of a dtype; see [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the address is not
    /// a multiple of the element's size (for a complex number, of its part's size).
    pub fn of_bytes(dtype: DType, memory: &'a [u8], layout: Layout) -> Result<HostInput<'a>> {
        HostInput::of_layout(dtype, memory, &layout)
    }

    /// As [`of_bytes`](Self::of_bytes), with one copy of the layout.
    pub(crate) fn of_layout(dtype: DType, memory: &'a [u8], layout: &Layout) -> Result<HostInput<'a>> {
        check_memory(dtype, layout, memory.as_ptr().addr() as u64, memory.len())?;
        let source = Source::Memory(memory.as_ptr());
        Ok(HostInput { source, dtype, layout: *layout, borrow: PhantomData })
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the layout of the elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the elements as a slice, if they are contiguous.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) if `T` has another dtype,
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the elements are not contiguous or this
    /// is an in-place input.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        check_slice::<T>(self.dtype, &self.layout)?;
        let Source::Memory(memory) = self.source else {
            return Err(Error::invalid(SLICE, "an in-place input", "an input with its own memory"));
        };
        let start = memory.wrapping_add(self.layout.offset() * size_of::<T>());
        // SAFETY: the layout has been checked against the borrowed memory, its elements are contiguous, and
        // every bit pattern is an element.
        Ok(unsafe { slice_of(start, self.layout.count()) })
    }

    pub(super) fn described(&self) -> (DType, Layout) {
        (self.dtype, self.layout)
    }

    /// Returns the same elements broadcast to a shape.
    ///
    /// # Errors
    ///
    /// As [`Layout::expand`].
    pub(super) fn expand(&self, shape: &Shape) -> Result<HostInput<'a>> {
        Ok(HostInput {
            source: self.source,
            dtype: self.dtype,
            layout: self.layout.expand(shape)?,
            borrow: PhantomData,
        })
    }

    /// Returns the elements of a range of an axis.
    ///
    /// # Errors
    ///
    /// As [`Layout::narrow`].
    pub(super) fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<HostInput<'a>> {
        let layout = self.layout.narrow(axis, start, length)?;
        Ok(HostInput { source: self.source, dtype: self.dtype, layout, borrow: PhantomData })
    }

    /// Returns the address, or `None` for an in-place input.
    pub(super) fn memory(&self) -> Option<*const u8> {
        match self.source {
            Source::Memory(pointer) => Some(pointer),
            Source::Output(_) => None,
        }
    }

    /// Returns the number of the output whose elements an in-place input reads.
    pub(super) fn in_place_of(&self) -> Option<usize> {
        match self.source {
            Source::Memory(_) => None,
            Source::Output(index) => Some(index),
        }
    }

    /// Returns an in-place input with the address of the output whose elements it reads.
    pub(super) fn before(output: &HostOutput<'a>) -> HostInput<'a> {
        let HostOutput { memory, dtype, layout, .. } = *output;
        HostInput { source: Source::Memory(memory), dtype, layout, borrow: PhantomData }
    }

    /// Creates an in-place input: the elements that output `index` has before the run, in its layout.
    pub fn output(index: usize, output: &HostOutput<'_>) -> HostInput<'a> {
        HostInput {
            source: Source::Output(index),
            dtype: output.dtype,
            layout: output.layout,
            borrow: PhantomData,
        }
    }
}

impl<'a> HostOutput<'a> {
    /// Creates an output of the elements of `memory` in this layout.
    ///
    /// # Errors
    ///
    /// As [`HostInput::new`].
    pub fn new<T: Element>(memory: &'a mut [T], layout: Layout) -> Result<HostOutput<'a>> {
        HostOutput::of_bytes(T::DTYPE, bytemuck::cast_slice_mut(memory), layout)
    }

    /// Creates an output of bytes that hold elements of a dtype; see [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As [`HostInput::of_bytes`].
    pub fn of_bytes(dtype: DType, memory: &'a mut [u8], layout: Layout) -> Result<HostOutput<'a>> {
        check_memory(dtype, &layout, memory.as_ptr().addr() as u64, memory.len())?;
        Ok(HostOutput { memory: memory.as_mut_ptr(), dtype, layout, borrow: PhantomData })
    }
}

impl HostOutput<'_> {
    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the layout of the elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the elements as a slice for writing, if they are contiguous.
    ///
    /// # Errors
    ///
    /// As [`HostInput::as_slice`].
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        check_slice::<T>(self.dtype, &self.layout)?;
        let start = self.memory.wrapping_add(self.layout.offset() * size_of::<T>());
        Ok(match self.layout.count() {
            0 => &mut [],
            // SAFETY: as for `HostInput::as_slice`, and the borrow is exclusive.
            count => unsafe { std::slice::from_raw_parts_mut(start.cast(), count) },
        })
    }

    /// Writes all elements in row-major order.
    ///
    /// # Errors
    ///
    /// As [`as_slice_mut`](Self::as_slice_mut); [`Error::LengthMismatch`](crate::Error::LengthMismatch) if
    /// `elements` has another length.
    pub fn write<T: Element>(&mut self, elements: impl IntoIterator<Item = T>) -> Result<()> {
        let slice = self.as_slice_mut()?;
        let (wanted, mut elements) = (slice.len(), elements.into_iter());
        let mut found = 0;
        for (slot, element) in slice.iter_mut().zip(&mut elements) {
            *slot = element;
            found += 1;
        }
        found += if found == wanted { elements.count() } else { 0 };
        match found == wanted {
            true => Ok(()),
            false => Err(Error::LengthMismatch { operation: SLICE, wanted, found }),
        }
    }

    pub(super) fn described(&self) -> (DType, Layout) {
        (self.dtype, self.layout)
    }

    pub(super) fn memory(&self) -> *mut u8 {
        self.memory
    }

    /// Returns the same output for a shorter time.
    pub(super) fn reborrow(&mut self) -> HostOutput<'_> {
        HostOutput { memory: self.memory, dtype: self.dtype, layout: self.layout, borrow: PhantomData }
    }
}

impl fmt::Debug for HostInput<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostInput({} of {:?})", self.dtype, self.layout)
    }
}

impl fmt::Debug for HostOutput<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostOutput({} of {:?})", self.dtype, self.layout)
    }
}

/// Computes the outputs of an expression. `code` is its machine code.
///
/// # Errors
///
/// As [`Expression::run_host`](crate::fuse::Expression::run_host).
pub(super) fn run_host(
    compiled: &CompiledExpression,
    code: &CpuCode,
    inputs: &[HostInput<'_>],
    scalars: &[Number],
    outputs: &mut [HostOutput<'_>],
) -> Result<()> {
    let run = Run::new(compiled, inputs, scalars, outputs)?;
    #[cfg(target_arch = "x86_64")]
    if let Some(native) = code.for_run(compiled, run.space.count()) {
        native::run(&run, native);
        return Ok(());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = code;
    run.all();
    Ok(())
}

/// As [`Expression::run_host_with`](crate::fuse::Expression::run_host_with).
pub(super) fn run_host_with(
    compiled: &CompiledExpression,
    backend: CpuBackend,
    inputs: &[HostInput<'_>],
    scalars: &[Number],
    outputs: &mut [HostOutput<'_>],
) -> Result<std::result::Result<usize, String>> {
    let run = Run::new(compiled, inputs, scalars, outputs)?;
    if backend == CpuBackend::Interpreter {
        run.all();
        return Ok(Ok(0));
    }
    #[cfg(target_arch = "x86_64")]
    return Ok(backend::generate_for(compiled, backend).map(|native| native::run(&run, &native)));
    #[cfg(not(target_arch = "x86_64"))]
    Ok(Err("the processor is no x86-64".to_owned()))
}

/// A run in progress, shared by its threads.
struct Run<'a> {
    program: &'a Program,
    allocation: &'a RegisterAllocation,
    space: Space,
    operands: Vec<HostOperand>,
    scalars: Vec<[u64; 2]>,
    /// Every run of the expression has these scalars.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    scalars_are_fixed: bool,
}

// SAFETY: threads read the inputs, and each writes output elements that no other thread accesses.
unsafe impl Sync for Run<'_> {}

impl<'a> Run<'a> {
    /// Checks the operands of a run.
    fn new(
        compiled: &'a CompiledExpression,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        outputs: &[HostOutput<'_>],
    ) -> Result<Run<'a>> {
        compiled.check_counts(inputs.len(), outputs.len())?;
        let mut memory: Vec<*mut u8> = Vec::with_capacity(inputs.len() + outputs.len());
        for input in inputs {
            memory.push(match input.source {
                Source::Memory(pointer) => pointer.cast_mut(),
                Source::Output(index) => match outputs.get(index) {
                    Some(output) if output.layout == input.layout && output.dtype == input.dtype => {
                        output.memory
                    }
                    _ => return Err(in_place_error(index)),
                },
            });
        }
        memory.extend(outputs.iter().map(|output| output.memory));
        let dtypes = inputs.iter().map(|input| input.dtype).chain(outputs.iter().map(|output| output.dtype));
        compiled.check_dtypes(dtypes.clone())?;
        let scalars = compiled.scalar_bits(scalars)?;
        let layouts: Vec<&Layout> = inputs.iter().map(|input| &input.layout).collect();
        let of_outputs: Vec<&Layout> = outputs.iter().map(|output| &output.layout).collect();
        let space = compiled.space(&layouts, &of_outputs)?;
        let operands =
            memory.iter().zip(dtypes).map(|(&memory, dtype)| HostOperand { memory, dtype }).collect();
        Ok(Run {
            program: &compiled.program,
            allocation: &compiled.allocation,
            space,
            operands,
            scalars,
            scalars_are_fixed: compiled.run_scalars.is_empty(),
        })
    }
}

impl Run<'_> {
    fn all(&self) {
        let count = self.space.count();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut registers = self.registers();
            loop {
                let start = next.fetch_add(CHUNK, Ordering::Relaxed);
                if start >= count {
                    break;
                }
                for start in (start..count.min(start + CHUNK)).step_by(LANES) {
                    self.block(&mut registers, start, LANES.min(count - start));
                }
            }
        };
        let threads = thread_count().min(count.div_ceil(ELEMENTS_OF_A_THREAD));
        run_on_threads(threads, &work);
    }

    /// Returns the registers of a thread, with the values that all blocks share already computed.
    fn registers(&self) -> Vec<Block> {
        let mut registers: Vec<Block> = vec![[0; LANES]; self.allocation.registers];
        self.steps(&mut registers, &self.allocation.once, 0, LANES);
        registers
    }

    fn block(&self, registers: &mut [Block], start: usize, count: usize) {
        #[cfg(target_arch = "x86_64")]
        if has_vectors() {
            // SAFETY: the processor supports these instructions.
            unsafe { self.block_in_vectors(registers, start, count) };
            return;
        }
        self.block_in_any(registers, start, count);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn block_in_vectors(&self, registers: &mut [Block], start: usize, count: usize) {
        self.block_in_any(registers, start, count);
    }

    #[inline(always)]
    fn block_in_any(&self, registers: &mut [Block], start: usize, count: usize) {
        self.steps(registers, &self.allocation.each, start, count);
        for (output, values) in self.program.outputs.iter().enumerate() {
            let operand = self.space.inputs + output;
            let parts = values.map(|value| &registers[self.allocation.register(value)]);
            // SAFETY: the space's elements are those of the layouts, which have been checked against the
            // memory, and no other block has these elements.
            unsafe { self.operands[operand].store(&self.space, operand, start, count, parts) };
        }
    }

    /// Executes steps on `count` lanes starting at element `start`.
    #[inline(always)]
    fn steps(&self, registers: &mut [Block], steps: &[u32], start: usize, count: usize) {
        let groups = |group| Groups::new(&self.space, group, start, count);
        let lanes = |index: usize| self.allocation.groups[index].map_or(count, |group| groups(group).lanes());
        let read = |step: Step, target: usize, registers: &mut [Block]| match step {
            Step::Load { input, part } => {
                let (operand, part) = (input as usize, part as usize);
                let block = &mut registers[target];
                // SAFETY: as for the stores; another thread that writes an in-place input writes other
                // elements.
                unsafe { self.operands[operand].load(&self.space, operand, part, start, count, block) };
            }
            Step::Coordinate { operand } => {
                let lanes = <u64 as Lanes>::of_mut(&mut registers[target], count);
                coordinates::number(&self.space, operand as usize, start, lanes);
            }
            Step::Group { operand, count: size } => {
                let groups = groups((operand as usize, size as usize));
                groups.number(<u64 as Lanes>::of_mut(&mut registers[target], groups.lanes()));
            }
            Step::Pick { operand, count: size, words } => {
                if let Some((words, result)) = self.allocation.at(registers, words, target) {
                    let groups = groups((operand as usize, size as usize));
                    let words = words.map(|word| <u32 as Lanes>::of(word, groups.lanes()));
                    groups.pick(words, <u32 as Lanes>::of_mut(result, count));
                }
            }
            _ => {}
        };
        run_steps(self.program, self.allocation, &self.scalars, registers, steps, lanes, read);
    }
}

/// Executes steps of a program. `lanes` gives the lane count of a step; `read` executes the steps that read
/// operands, given their result register.
#[inline(always)]
fn run_steps(
    program: &Program,
    allocation: &RegisterAllocation,
    scalars: &[[u64; 2]],
    registers: &mut [Block],
    steps: &[u32],
    lanes: impl Fn(usize) -> usize,
    mut read: impl FnMut(Step, usize, &mut [Block]),
) {
    let mut at = 0;
    while let Some(&index) = steps.get(at) {
        at += 1;
        let index = index as usize;
        let (step, kind) = program.steps[index];
        let target = allocation.of_step[index] as usize;
        match step {
            Step::Parameter { index, part } => {
                fill(&mut registers[target], kind, scalars[index as usize][part as usize]);
            }
            Step::Constant(bits) => fill(&mut registers[target], kind, bits),
            Step::Apply(instruction, operands) => {
                let Some((operands, result)) = allocation.at(registers, operands, target) else { continue };
                instruction.run(operands, result, lanes(index));
            }
            Step::Rare(rare) => {
                let condition = program.rares[rare as usize].condition;
                let conditions = <u32 as Lanes>::of(&registers[allocation.register(condition)], lanes(index));
                if conditions.iter().all(|&condition| condition == 0) {
                    at = allocation.after[rare as usize];
                }
            }
            Step::Result { rare, result } => {
                let rare = &program.rares[rare as usize];
                let [usual, other] = rare.results[result as usize];
                // No lane selects the value of a skipped body.
                let select = Instruction::select(kind);
                let operands = [other, usual, rare.condition];
                let Some((operands, result)) = allocation.at(registers, operands, target) else { continue };
                select.run(operands, result, lanes(index));
            }
            Step::Load { .. } | Step::Coordinate { .. } | Step::Group { .. } | Step::Pick { .. } => {
                read(step, target, registers);
            }
        }
    }
}

/// Executes steps of a program without coordinates on `count` lanes. `load` fills a block with a part of an
/// input's elements.
pub(super) fn run_on_inputs(
    program: &Program,
    allocation: &RegisterAllocation,
    scalars: &[[u64; 2]],
    registers: &mut [Block],
    steps: &[u32],
    count: usize,
    load: &mut dyn FnMut(u32, u32, &mut Block),
) {
    let read = |step: Step, target: usize, registers: &mut [Block]| {
        if let Step::Load { input, part } = step {
            load(input, part, &mut registers[target]);
        }
    };
    run_steps(program, allocation, scalars, registers, steps, |_| count, read);
}

/// Fills all lanes with the same value.
fn fill(block: &mut Block, kind: RegisterKind, bits: u64) {
    let bits = match kind {
        RegisterKind::Bits64 | RegisterKind::Float64 => bits,
        // Two lanes of 32 bits.
        _ => bits << 32 | bits & 0xffff_ffff,
    };
    block.fill(bits);
}

/// Returns whether the processor supports AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(in crate::fuse) fn has_vectors() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}
