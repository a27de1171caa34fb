//! Register allocation of a program on the CPU, and the steps that run once.

use crate::fuse::ir::program::{Program, Step, Value};

/// The steps that the outputs depend on, in order, with registers that are reused after the last use of their
/// value.
///
/// Invariants: the register of an instruction's result differs from those of its operands. A rare body can be
/// skipped: a value that is used after the body is in a register that the body does not write, except the
/// body's results.
#[derive(Debug, Default)]
pub(crate) struct RegisterAllocation {
    /// The register of each step's value.
    pub(in crate::fuse) of_step: Vec<u32>,
    /// Steps that give the same value for all elements.
    pub(in crate::fuse) once: Vec<u32>,
    /// Steps of every block.
    pub(in crate::fuse) each: Vec<u32>,
    /// For each rare body, the index in `each` after it.
    pub(in crate::fuse) after: Vec<usize>,
    /// For each step, the group that shares its value; see [`Program::sharing_groups`].
    pub(in crate::fuse) groups: Vec<Option<(usize, usize)>>,
    pub(in crate::fuse) registers: usize,
}

impl RegisterAllocation {
    pub(crate) fn new(program: &Program) -> RegisterAllocation {
        let live = program.live(program.outputs.iter().flatten().copied());
        let once = program.uniform(|_| false);
        let mut last_use = vec![0; live.len()];
        for (index, (step, _)) in program.steps.iter().enumerate().filter(|(index, _)| live[*index]) {
            for operand in program.values(*step) {
                last_use[operand.index()] = index;
            }
        }
        for value in program.outputs.iter().flatten() {
            last_use[value.index()] = usize::MAX;
        }
        let mut allocation = RegisterAllocation {
            of_step: vec![0; live.len()],
            groups: program.sharing_groups(),
            ..RegisterAllocation::default()
        };
        let mut free: Vec<u32> = Vec::new();
        for (index, (step, _)) in program.steps.iter().enumerate().filter(|(index, _)| live[*index]) {
            if let Step::Rare(_) = step {
                allocation.each.push(index as u32);
                continue;
            }
            if once[index] {
                // The value stays for all blocks.
                allocation.of_step[index] = allocation.registers as u32;
                allocation.registers += 1;
                allocation.once.push(index as u32);
                continue;
            }
            allocation.of_step[index] = free.pop().unwrap_or_else(|| {
                allocation.registers += 1;
                allocation.registers as u32 - 1
            });
            allocation.each.push(index as u32);
            for operand in program.values(*step) {
                if last_use[operand.index()] == index && !once[operand.index()] {
                    free.push(allocation.of_step[operand.index()]);
                    // The register is freed once, even if this step reads it twice.
                    last_use[operand.index()] = usize::MAX;
                }
            }
        }
        let each = &allocation.each;
        let after = |index: usize| each.partition_point(|&step| (step as usize) < index);
        allocation.after = program.rares.iter().map(|rare| after(rare.body.end)).collect();
        allocation
    }

    pub(in crate::fuse) fn register(&self, value: Value) -> usize {
        self.of_step[value.index()] as usize
    }
}
