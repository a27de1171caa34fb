//! Calls of kernels on contiguous elements: whole turns, flagged groups again with the rare bodies, and a tail padded to
//! a turn.

use std::ffi::c_void;

use super::super::block::{Block, LANES};
use super::super::run_on_inputs;
use super::super::scratch::{Line, Scratch};
use super::generate::Kernel;
use super::memory::Executable;
use super::{Constants, Native, pool};
use crate::fuse::ir::program::Program;
use crate::fuse::plan::register_allocation::RegisterAllocation;

/// The most bytes of a turn of an operand.
const TURN_BYTES: usize = 512;

type Function = unsafe extern "sysv64" fn(*const *mut u8, usize, *const Line, *mut Line) -> u32;

/// Calls a kernel's code on `count` elements, a multiple of its turn. Returns whether it set a flag.
///
/// # Safety
///
/// `pointers` are the kernel's operands of at least `count` elements, the outputs writable; `spill` has the kernel's slots.
unsafe fn call(
    code: &Executable,
    pointers: &[*mut u8],
    count: usize,
    constants: &[Line],
    spill: &mut [Line],
) -> bool {
    // SAFETY: the memory is a function of this type, alive while it is borrowed.
    let function = unsafe { std::mem::transmute::<*const c_void, Function>(code.start()) };
    // SAFETY: the caller guarantees it.
    unsafe { function(pointers.as_ptr(), count, constants.as_ptr(), spill.as_mut_ptr()) != 0 }
}

impl Native {
    /// Computes the constants of a run with these scalars.
    pub(in crate::fuse) fn constants(
        &self,
        program: &Program,
        allocation: &RegisterAllocation,
        scalars: &[[u64; 2]],
    ) -> Constants {
        let mut registers: Vec<Block> = vec![[0; LANES]; allocation.registers];
        // These steps load nothing.
        run_on_inputs(program, allocation, scalars, &mut registers, &allocation.once, 1, &mut |_, _, _| {});
        let lines = |kernel: &Kernel| pool::lines(&kernel.constants, program, allocation, &registers);
        let holds = |&condition: &usize| pool::value(program, allocation, &registers, condition) as u32 != 0;
        Constants {
            first: lines(&self.first),
            second: self.second.as_ref().map(lines).unwrap_or_default(),
            // The steps of these kernels are the program's.
            groups: self.groups.iter().map(|group| [&group.counters, &group.cipher].map(lines)).collect(),
            needs_second: self.first.uniform_conditions.iter().any(holds),
        }
    }

    /// Returns the kernels of a run with these constants.
    pub(in crate::fuse) fn calls<'a>(&'a self, constants: &'a Constants) -> Calls<'a> {
        let (mut kernel, mut of_kernel) = (&self.first, constants.first.as_slice());
        let mut second = None;
        if let Some(full) = &self.second {
            match constants.needs_second {
                true => (kernel, of_kernel) = (full, constants.second.as_slice()),
                false => second = kernel.has_flags.then_some((full, constants.second.as_slice())),
            }
        }
        Calls { code: &kernel.code, kernel, constants: of_kernel, second }
    }
}

impl<'a> Calls<'a> {
    /// Returns the calls of a kernel without rare bodies.
    pub(super) fn new(kernel: &'a Kernel, constants: &'a [Line]) -> Calls<'a> {
        Calls { code: &kernel.code, kernel, constants, second: None }
    }

    /// Returns the calls with streaming stores, if the kernel has any.
    pub(in crate::fuse) fn streaming(self) -> Option<Calls<'a>> {
        self.kernel.streaming().map(|code| Calls { code, ..self })
    }
}

/// The kernels of a run, with their constants.
#[derive(Clone, Copy)]
pub(in crate::fuse) struct Calls<'a> {
    kernel: &'a Kernel,
    /// The kernel's code on whole turns.
    code: &'a Executable,
    constants: &'a [Line],
    /// The kernel with rare bodies and its constants, if the first one sets flags.
    second: Option<(&'a Kernel, &'a [Line])>,
}

/// The memory that calls of a thread reuse.
#[derive(Default)]
pub(in crate::fuse) struct CallBuffers {
    tails: Scratch<u8>,
    padded: Vec<*mut u8>,
    flags: Vec<u8>,
    spill: Vec<Line>,
}

impl Calls<'_> {
    /// Returns whether flagged elements are computed again, from inputs that outputs must not have overwritten.
    pub(super) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// Runs the kernel on `count` elements: whole turns in their memory, and the tail in scratch memory. Returns whether
    /// an element was computed again. `sizes` are the bytes of each operand's elements, and the first `inputs` operands
    /// are inputs.
    ///
    /// # Safety
    ///
    /// Each pointer has `count` elements, the outputs writable, and nobody else accesses them. For
    /// [`streaming`](Self::streaming) calls the outputs' addresses are multiples of 64.
    pub(in crate::fuse) unsafe fn run(
        &self,
        buffers: &mut CallBuffers,
        sizes: &[usize],
        inputs: usize,
        pointers: &mut Vec<*mut u8>,
        count: usize,
    ) -> bool {
        let slots = self.kernel.slots.max(self.second.map_or(0, |(kernel, _)| kernel.slots));
        if buffers.spill.len() < slots {
            buffers.spill.resize(slots, Line([0; 8]));
        }
        let turn = self.kernel.turn;
        if self.has_second() && buffers.flags.len() < count.next_multiple_of(turn) {
            buffers.flags.resize(count.next_multiple_of(turn), 0);
        }
        let main = count - count % turn;
        let mut is_flagged = false;
        if main > 0 {
            // SAFETY: the caller guarantees it.
            is_flagged |= unsafe { self.turns(self.code, buffers, sizes, pointers, (main, main)) };
        }
        let rest = count - main;
        if rest > 0 {
            buffers.tails.grow(pointers.len() * TURN_BYTES);
            let tails = buffers.tails.as_mut_ptr();
            let tail = |operand: usize| tails.wrapping_add(operand * TURN_BYTES);
            let mut padded = std::mem::take(&mut buffers.padded);
            padded.clear();
            padded.extend((0..pointers.len()).map(tail));
            for (operand, from) in pointers.iter().enumerate().take(inputs) {
                let from = from.wrapping_add(main * sizes[operand]);
                // SAFETY: `rest` elements are left, fewer than a turn.
                unsafe { from.copy_to_nonoverlapping(tail(operand), rest * sizes[operand]) };
            }
            // SAFETY: a turn of scratch memory.
            is_flagged |= unsafe { self.turns(&self.kernel.code, buffers, sizes, &mut padded, (turn, rest)) };
            for (operand, to) in pointers.iter().enumerate().skip(inputs) {
                let to = to.wrapping_add(main * sizes[operand]);
                // SAFETY: as above.
                unsafe { to.copy_from_nonoverlapping(tail(operand), rest * sizes[operand]) };
            }
            buffers.padded = padded;
        }
        is_flagged
    }

    /// Runs the kernel's code on whole turns, and computes flagged groups among the first `valid` elements again. Returns whether
    /// there was one.
    ///
    /// # Safety
    ///
    /// Each pointer has `count` elements.
    unsafe fn turns(
        &self,
        code: &Executable,
        buffers: &mut CallBuffers,
        sizes: &[usize],
        pointers: &mut Vec<*mut u8>,
        (count, valid): (usize, usize),
    ) -> bool {
        let operands = pointers.len();
        let CallBuffers { flags, spill, .. } = buffers;
        let Some((second, constants)) = self.second else {
            // SAFETY: the caller guarantees it.
            unsafe { call(code, pointers, count, self.constants, spill) };
            return false;
        };
        pointers.push(flags.as_mut_ptr());
        // SAFETY: as above; there are as many flags.
        let is_flagged = unsafe { call(code, pointers, count, self.constants, spill) };
        pointers.truncate(operands);
        if !is_flagged {
            return false;
        }
        let turn = self.kernel.turn;
        let needs = |group: usize| flags[..valid].iter().skip(group * turn).take(turn).any(|&flag| flag != 0);
        let (groups, mut group, mut found) = (count / turn, 0, false);
        while group < groups {
            let first = group;
            while group < groups && needs(group) {
                group += 1;
            }
            if group > first {
                found = true;
                let of_group: Vec<*mut u8> = pointers
                    .iter()
                    .zip(sizes)
                    .map(|(pointer, size)| pointer.wrapping_add(first * turn * size))
                    .collect();
                // SAFETY: the groups are within the block, and a turn of the second kernel divides one of the first.
                unsafe { call(&second.code, &of_group, (group - first) * turn, constants, spill) };
            } else {
                group += 1;
            }
        }
        found
    }
}
