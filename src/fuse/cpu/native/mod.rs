//! Machine code for x86-64 from a program's instructions: one loop of vector instructions over contiguous elements.
//!
//! The kernel's bits are the interpreter's, because every instruction of the list becomes machine instructions with the
//! same exact or rounded result; only the sign and payload of a NaN differ. There is no second definition of any formula.
//!
//! A loop's turn handles two interleaved groups of lanes: 512 or 256 bits of 32-bit lanes, or half as many lanes if any
//! value has 64 bits. Values live in registers by a linear scan ([`registers`]); constants are memory operands ([`pool`]),
//! and those read most stay in registers that are left.
//!
//! A rare body is left out of the first kernel, which stores a flag for each element that needs one; a second kernel with
//! all bodies in line computes the flagged groups again. Neither has a branch within its straight line.
//!
//! Coordinates and random words are operands that a run computes for each block ([`prepare`]); kernels of their own compute
//! the words once for the neighbours that share a block of Philox ([`split`]).
//!
//! Programs with an instruction that has no short vector form stay with the interpreter. So does everything on a system that
//! gives no executable memory.
//!
//! Invariants: machine code is never writable and executable at once; it calls nothing and never unwinds; it reads and
//! writes the elements of its operands alone, and inputs of a turn before outputs of that turn.
//!
//! `tests/parity/native.rs` compares every operation and dtype with the interpreter, and injects faults into the code
//! ([`fault`]) that the comparison must find.

mod access;
mod analysis;
mod calls;
mod compare;
mod convert;
mod encoder;
mod fault;
mod few;
mod generate;
mod integer;
mod listing;
mod memory;
mod pool;
mod prepare;
mod registers;
mod run;
mod select;
mod split;
mod streaming;
mod values;

use std::fmt;
use std::sync::OnceLock;

use super::scratch::Line;
pub(in crate::fuse) use crate::fuse::ir::instruction::Instruction;
use crate::fuse::plan::compiled_expression::CompiledExpression;
use analysis::Analysis;
pub(in crate::fuse) use calls::CallBuffers;
pub(in crate::fuse) use fault::run_with_fault;
pub(in crate::fuse) use few::run_few;
use generate::{Draft, Kernel, generate};
pub(super) use run::run;
use split::{GroupProgram, Prepared, Split, WordGroup};
pub(in crate::fuse) use streaming::{fence, last_level_cache, run_with_streaming};
pub(in crate::fuse) use values::{NativeValues, ValuesWorker};

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum Target {
    /// AVX2 with FMA and F16C: 256 bits.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: 512 bits.
    Avx512,
}

impl Target {
    pub(in crate::fuse) fn is_available(self) -> bool {
        if cfg!(miri) {
            return false;
        }
        match self {
            Target::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Target::Avx512 => {
                Target::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }

    fn bytes(self) -> usize {
        match self {
            Target::Avx2 => 32,
            Target::Avx512 => 64,
        }
    }

    fn vector_registers(self) -> u8 {
        match self {
            Target::Avx2 => 16,
            Target::Avx512 => 32,
        }
    }
}

/// The treatment of rare bodies in a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bodies {
    /// Left out; elements that need one are flagged.
    Flagged,
    /// Executed for all elements.
    InLine,
}

/// The reason why a program has no machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::fuse) enum Unsupported {
    Instruction(Instruction),
    /// Values that neighbours share depend on more than their number and numbers equal for all elements.
    Coordinates,
    /// An instruction reads more registers than there are.
    Registers,
    /// More constants or spilled values than addresses reach.
    Length,
    /// The system gives no executable memory.
    Memory(String),
    /// The processor, or `SELVEDGE_CPU`, allows no machine code.
    Target,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Instruction(instruction) => write!(formatter, "{instruction:?} has no vector form"),
            Unsupported::Coordinates => {
                formatter.write_str("neighbours share values of elements, which has no vector form")
            }
            Unsupported::Registers => formatter.write_str("too few registers"),
            Unsupported::Length => formatter.write_str("the program is too long"),
            Unsupported::Target => formatter.write_str("no instruction set is available or allowed"),
            Unsupported::Memory(reason) => write!(formatter, "no executable memory: {reason}"),
        }
    }
}

/// The most steps of a program with machine code. The cost of generation grows with their square in the worst case.
const MAX_STEPS: usize = 4000;

/// Programs with fewer steps are bound by memory, for which 256 bits are as fast, and need fewer elements a turn.
const STEPS_FOR_512_BITS: usize = 10;

/// The kernels of a program.
#[derive(Debug)]
pub(in crate::fuse) struct Native {
    pub(in crate::fuse) target: Target,
    first: Kernel,
    /// The kernel with all rare bodies in line, if there are any.
    second: Option<Kernel>,
    /// The operands that a run computes, between the inputs and the outputs.
    prepared: Vec<Prepared>,
    /// The kernels of random words that neighbours share.
    groups: Vec<WordGroup<Kernel>>,
    /// The constants, if no run passes scalars.
    constants: OnceLock<Constants>,
}

/// The contents of the kernels' constants.
#[derive(Debug)]
pub(in crate::fuse) struct Constants {
    first: Vec<Line>,
    second: Vec<Line>,
    /// Of the counters and the cipher of each group of words.
    groups: Vec<[Vec<Line>; 2]>,
    /// The condition of a rare body holds for all elements.
    needs_second: bool,
}

impl Native {
    /// Generates the kernels of an expression for the better one of the available targets.
    ///
    /// # Errors
    ///
    /// The reason why the program stays with the interpreter.
    pub(in crate::fuse) fn new(
        compiled: &CompiledExpression,
        targets: &[Target],
    ) -> Result<Native, Unsupported> {
        Drafts::new(compiled, targets)?.finish()
    }

    /// Returns the listing of the machine code that [`new`](Self::new) generates.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(in crate::fuse) fn listing(
        compiled: &CompiledExpression,
        targets: &[Target],
    ) -> Result<String, Unsupported> {
        Drafts::new(compiled, targets)?.listing(compiled)
    }

    /// Returns whether runs compute coordinates or random words for the kernel, so that its operands are not the
    /// expression's.
    pub(in crate::fuse) fn reads_coordinates(&self) -> bool {
        !self.prepared.is_empty()
    }
}

/// The kernels of a program before their code is executable.
struct Drafts {
    target: Target,
    first: Draft,
    second: Option<Draft>,
    /// The programs, if there are coordinates.
    split: Option<Split>,
    groups: Vec<WordGroup<Draft>>,
}

impl Drafts {
    /// As [`Native::new`].
    fn new(compiled: &CompiledExpression, targets: &[Target]) -> Result<Drafts, Unsupported> {
        if compiled.program.steps.len() > MAX_STEPS {
            return Err(Unsupported::Length);
        }
        let split = Split::new(compiled)?;
        let (program, inputs) = match &split {
            Some(split) => (&split.program, &split.inputs),
            None => (&compiled.program, &compiled.inputs),
        };
        let groups = split.as_ref().map(|split| split.groups.as_slice()).unwrap_or_default();
        let first = Analysis::new(program, &compiled.outputs, Bodies::Flagged)?;
        let has_bodies = !first.conditions.is_empty() || !first.uniform_conditions.is_empty();
        let second = match has_bodies {
            true => Some(Analysis::new(program, &compiled.outputs, Bodies::InLine)?),
            false => None,
        };
        let mut targets = targets.to_vec();
        if first.order.len() < STEPS_FOR_512_BITS && !has_bodies && groups.is_empty() {
            targets.sort_by_key(|target| target.bytes());
        }
        let mut refusal = Unsupported::Length;
        for target in targets {
            let kernel = |analysis: &Analysis<'_>| generate(analysis, inputs, &compiled.outputs, target);
            let of_group = |group: &WordGroup<GroupProgram>| {
                group.as_ref().try_map(|GroupProgram { program, inputs, outputs }| {
                    generate(&Analysis::new(program, outputs, Bodies::Flagged)?, inputs, outputs, target)
                })
            };
            let kernels = || -> Result<_, Unsupported> {
                let (first, second) = (kernel(&first)?, second.as_ref().map(kernel).transpose()?);
                Ok((first, second, groups.iter().map(of_group).collect::<Result<_, _>>()?))
            };
            match kernels() {
                Ok((first, second, groups)) => return Ok(Drafts { target, first, second, split, groups }),
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }

    fn finish(self) -> Result<Native, Unsupported> {
        Ok(Native {
            target: self.target,
            first: self.first.finish()?,
            second: self.second.map(Draft::finish).transpose()?,
            prepared: self.split.map(|split| split.prepared).unwrap_or_default(),
            groups: self
                .groups
                .into_iter()
                .map(|group| group.try_map(Draft::finish))
                .collect::<Result<_, _>>()?,
            constants: OnceLock::new(),
        })
    }
}

impl fmt::Display for Native {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.target == Target::Avx2 { "avx2" } else { "avx512" };
        let Kernel { instructions, turn, bytes, .. } = self.first;
        write!(formatter, "{name} ({instructions} instructions for {turn} elements, {bytes} bytes")?;
        match &self.second {
            Some(second) => write!(formatter, "; {} bytes with rare bodies)", second.bytes),
            None => write!(formatter, ")"),
        }?;
        let groups = self.groups.iter();
        groups
            .map(|group| group.counters.bytes + group.cipher.bytes)
            .try_for_each(|bytes| write!(formatter, ", {bytes} bytes for random words"))
    }
}
