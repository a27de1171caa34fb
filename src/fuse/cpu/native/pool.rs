//! The constants of a kernel: values that are equal for all elements, and those of instruction sequences.
//!
//! A constant fills a slot of 64 bytes, so every instruction reads it as a plain memory operand of any length.

use super::super::block::Block;
use super::super::scratch::Line;
use super::analysis::is_wide;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::{Program, Step};
use crate::fuse::plan::register_allocation::RegisterAllocation;

/// A slot's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constant {
    /// The value of a step.
    Step(usize),
    Words([u32; 16]),
}

/// The distance of two slots.
pub(super) const SLOT: usize = size_of::<Line>();

/// Returns the contents of the slots. `registers` are the interpreter's, with the values before the loop.
pub(super) fn lines(
    constants: &[Constant],
    program: &Program,
    allocation: &RegisterAllocation,
    registers: &[Block],
) -> Vec<Line> {
    let line = |constant: &Constant| match *constant {
        Constant::Step(step) => {
            let kind = program.steps[step].1;
            let bits = value(program, allocation, registers, step);
            Line([spread(kind, bits); 8])
        }
        Constant::Words(words) => {
            Line(std::array::from_fn(|at| u64::from(words[2 * at + 1]) << 32 | u64::from(words[2 * at])))
        }
    };
    constants.iter().map(line).collect()
}

/// Returns the bits of a step's value, which is equal for all elements.
pub(super) fn value(
    program: &Program,
    allocation: &RegisterAllocation,
    registers: &[Block],
    step: usize,
) -> u64 {
    match program.steps[step].0 {
        Step::Constant(bits) => bits,
        _ => registers[allocation.of_step[step] as usize][0],
    }
}

/// Returns the lanes of a value in 64 bits. A truth value is a mask of its lane.
fn spread(kind: RegisterKind, bits: u64) -> u64 {
    match kind {
        _ if is_wide(kind) => bits,
        RegisterKind::Predicate => 0u64.wrapping_sub(u64::from(bits as u32 != 0)),
        _ => bits << 32 | bits & 0xffff_ffff,
    }
}
