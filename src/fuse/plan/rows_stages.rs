//! [`RowStages`]: a whole row program as one lowered expression, for a single kernel.
//!
//! The expression's inputs are the program's inputs and the values of reductions. Its outputs are the arguments
//! of all reductions, followed by the program's outputs, so steps that several phases share exist once. A stage
//! computes the arguments of the reductions of one phase; the last stage computes the outputs. Stage n is phase n of the program in
//! one kernel.

use std::ops::Range;
use std::sync::Arc;

use super::compiled_expression::CompiledExpression;
use super::compiled_rows::{PhaseOperands, RowReduction};
use super::rows_access::RowAccess;
use super::rows_split::{Phase, PhaseInput};
use crate::fuse::ir::coordinate::Coordinate;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::Step;
use crate::fuse::language::fold::FoldMap;
use crate::types::DType;

/// Returns the offsets of the report's address and of the error's code in a block with this many scalars before.
pub(in crate::fuse) fn report_parameters(scalars: usize) -> [usize; 2] {
    [16 * scalars, 16 * scalars + 16]
}

/// The work between two barriers.
pub(in crate::fuse) struct Stage {
    /// The reductions, which do not depend on each other; none in the last stage.
    pub(in crate::fuse) reductions: Vec<usize>,
    /// The outputs of the expression that the stage computes.
    pub(in crate::fuse) outputs: Vec<usize>,
    /// The steps that the stage needs, if every value is computed anew.
    pub(in crate::fuse) wanted: Vec<bool>,
    /// True if it sums squares, and so may run twice. It saves no values for later stages.
    pub(in crate::fuse) rescales: bool,
}

/// The lowered expression of a program, by stages.
pub(in crate::fuse) struct RowStages {
    pub(in crate::fuse) expression: Arc<CompiledExpression>,
    pub(in crate::fuse) operands: PhaseOperands,
    pub(in crate::fuse) stages: Vec<Stage>,
    /// By step, the neighbours that share its value in the whole array; 1 but for parts of random words.
    neighbours: Vec<usize>,
    /// The number of indices of `at_group`, which are the last outputs of the expression.
    indices: usize,
}

impl RowStages {
    /// Lowers a phase whose outputs are the arguments of the reductions, then the program's outputs, then
    /// `indices` indices of `at_group`.
    ///
    /// # Errors
    ///
    /// The reason why one kernel cannot hold them.
    pub(in crate::fuse) fn new(
        phase: Phase,
        reductions: &[RowReduction],
        indices: usize,
    ) -> Result<RowStages, &'static str> {
        let mut outputs = phase.outputs();
        for (output, reduction) in outputs.iter_mut().zip(reductions) {
            let compiled = &reduction.reduction;
            // The kernel squares elements itself, because it may multiply them by a factor first.
            let of = match compiled.fold.map() {
                FoldMap::ToBool => output.cast(DType::Bool),
                FoldMap::Identity | FoldMap::Square => *output,
            };
            *output = of.cast(compiled.prologue.outputs[0]);
        }
        let too_large = "the program has more than 64 operands or 20000 instructions";
        let expression = Arc::new(CompiledExpression::of(&phase.graph, &outputs).map_err(|_| too_large)?);
        if expression.coordinates.iter().any(|coordinate| matches!(coordinate, Coordinate::Axis(_))) {
            return Err("the program has indices along an axis");
        }
        let program = &expression.program;
        let wanted =
            |outputs: &[usize]| program.live(outputs.iter().flat_map(|&output| program.outputs[output]));
        let last = reductions.iter().map(|reduction| reduction.phase + 1).max().unwrap_or(0);
        let mut stages: Vec<Stage> = (0..last)
            .map(|phase| {
                let members = (0..reductions.len()).filter(|&reduction| reductions[reduction].phase == phase);
                let members: Vec<usize> = members.collect();
                let rescales =
                    members.iter().any(|&reduction| reductions[reduction].reduction.rescaled.is_some());
                Stage { wanted: wanted(&members), outputs: members.clone(), reductions: members, rescales }
            })
            .collect();
        let outputs: Vec<usize> = (reductions.len()..program.outputs.len()).collect();
        stages.push(Stage { reductions: Vec::new(), wanted: wanted(&outputs), outputs, rescales: false });
        let operands = PhaseOperands { inputs: phase.inputs, scalars: phase.scalars };
        let groups = expression.program.sharing_groups().into_iter();
        let neighbours = groups.map(|group| group.map_or(1, |(_, count)| count)).collect();
        Ok(RowStages { expression, operands, stages, neighbours, indices })
    }

    /// Returns the number of stages that read an input of the program, if every stage saves these steps for later
    /// ones.
    pub(in crate::fuse) fn readers(&self, index: usize, saved: &[Vec<bool>]) -> usize {
        let input = self.operands.inputs.iter().position(|input| *input == PhaseInput::Input(index));
        let Some(input) = input else { return 0 };
        self.computed(saved).iter().filter(|steps| self.is_loaded(input, steps)).count()
    }

    /// Returns whether some of these steps read an input.
    pub(in crate::fuse) fn is_loaded(&self, input: usize, wanted: &[bool]) -> bool {
        let steps = self.expression.program.steps.iter().zip(wanted);
        let mut wanted = steps.filter(|(_, wanted)| **wanted);
        wanted
            .any(|((step, _), _)| matches!(step, Step::Load { input: found, .. } if *found as usize == input))
    }

    /// Returns the dtype of an operand, which is an input or an output of the program.
    pub(in crate::fuse) fn operand_dtype(&self, operand: usize, reductions: usize) -> DType {
        let inputs = self.operands.inputs.iter().zip(&self.expression.inputs);
        let inputs = inputs.filter(|(input, _)| matches!(input, PhaseInput::Input(_)));
        let inputs: Vec<DType> = inputs.map(|(_, dtype)| *dtype).collect();
        match operand.checked_sub(inputs.len()) {
            Some(output) => self.expression.outputs[reductions + output],
            None => inputs[operand],
        }
    }

    /// Returns the outputs of the expression that are indices of `at_group`.
    pub(in crate::fuse) fn indices(&self) -> Range<usize> {
        let all = self.expression.program.outputs.len();
        all - self.indices..all
    }

    /// Returns the scalars of the kernel: those of the expression, and with indices also the address and the code of
    /// the device's report.
    pub(in crate::fuse) fn scalars(&self) -> usize {
        self.expression.scalars.len() + if self.indices > 0 { 2 } else { 0 }
    }

    /// Returns the offset of the report's address in the kernel's parameters, if it checks an index.
    pub(in crate::fuse) fn report(&self) -> Option<usize> {
        (self.indices > 0).then(|| report_parameters(self.expression.scalars.len())[0])
    }

    /// Returns for each input of the expression whether it is one value for the whole row.
    pub(in crate::fuse) fn broadcast(&self, accesses: &[RowAccess]) -> Vec<bool> {
        let inputs = self.operands.inputs.iter().zip(self.operand_of());
        let is_broadcast = |(input, operand): (&PhaseInput, Option<usize>)| match operand {
            Some(operand) => accesses[operand] == RowAccess::Broadcast,
            None => !matches!(input, PhaseInput::Index | PhaseInput::Stored(_)),
        };
        inputs.map(is_broadcast).collect()
    }

    /// Returns the operand of each input of the expression; `None` for values of reductions and indices of elements.
    pub(in crate::fuse) fn operand_of(&self) -> Vec<Option<usize>> {
        let mut next = 0;
        let of = |input: &PhaseInput| match input {
            PhaseInput::Input(_) => {
                next += 1;
                Some(next - 1)
            }
            PhaseInput::Group(_) | PhaseInput::Index | PhaseInput::Stored(_) => None,
        };
        self.operands.inputs.iter().map(of).collect()
    }

    /// Returns the steps whose value is one for all elements of a group, given the inputs with that property.
    pub(in crate::fuse) fn uniform(&self, is_broadcast: &[bool]) -> Vec<bool> {
        // Coordinates come after the inputs and differ.
        self.expression
            .program
            .uniform(|operand| is_broadcast.get(operand).is_some_and(|is_broadcast| *is_broadcast))
    }

    /// Returns whether the program reads positions of elements, such as for random words.
    pub(in crate::fuse) fn has_positions(&self) -> bool {
        !self.expression.coordinates.is_empty()
    }

    /// Returns the number of neighbours among `vector` adjacent elements that share the value of a step. More than 1 for a
    /// part of random words if vectors are whole groups of neighbours.
    pub(in crate::fuse) fn sharing(&self, step: usize, vector: usize) -> usize {
        let count = self.neighbours[step];
        if vector.is_multiple_of(count) { count } else { 1 }
    }

    /// Returns for each stage the steps whose values the kernel saves for later stages: floats that later stages use and
    /// whose longest chain of instructions, from a load to the value, has at least `min_chain`. The length of a chain
    /// stands for the cost. It is less than the instruction count if both operands of an instruction are computed.
    pub(in crate::fuse) fn saved(&self, uniform: &[bool], min_chain: usize) -> Vec<Vec<bool>> {
        let program = &self.expression.program;
        let count = program.steps.len();
        let mut chain_length = vec![0usize; count];
        for (index, (step, _)) in program.steps.iter().enumerate() {
            let below = program.values(*step).map(|value| chain_length[value.index()]).max().unwrap_or(0);
            let own = matches!(step, Step::Apply(..)) && !uniform[index];
            chain_length[index] = below + usize::from(own);
        }
        // Steps of rare bodies exist for some elements only. Predicates and integers are computed again.
        let mut is_rare = vec![false; count];
        for rare in &program.rares {
            is_rare[rare.body.clone()].fill(true);
        }
        let is_saved = |index: usize| {
            let (_, kind) = program.steps[index];
            chain_length[index] >= min_chain
                && !uniform[index]
                && !is_rare[index]
                && matches!(kind, RegisterKind::Float32 | RegisterKind::Float64)
        };
        let mut all = Vec::with_capacity(self.stages.len());
        let mut computed: Vec<bool> = vec![false; count];
        for (stage_index, stage) in self.stages.iter().enumerate() {
            let is_candidate =
                |index: usize| !stage.rescales && stage.wanted[index] && !computed[index] && is_saved(index);
            let candidates: Vec<bool> = (0..count).map(is_candidate).collect();
            let mut saved = vec![false; count];
            for later in &self.stages[stage_index + 1..] {
                let roots = later.outputs.iter().flat_map(|&output| program.outputs[output]);
                let exists = |index: usize| candidates[index] || computed[index];
                let needed = self.needed(roots.map(|value| value.index()), exists);
                for index in (0..count).filter(|&index| needed[index] && candidates[index]) {
                    saved[index] = true;
                }
            }
            for (computed, saved) in computed.iter_mut().zip(&saved) {
                *computed |= *saved;
            }
            all.push(saved);
        }
        all
    }

    /// Returns for each stage that it saves nothing.
    pub(in crate::fuse) fn saved_nowhere(&self) -> Vec<Vec<bool>> {
        vec![vec![false; self.expression.program.steps.len()]; self.stages.len()]
    }

    /// Returns for each stage the steps that it computes, if every stage saves these for later ones.
    pub(in crate::fuse) fn computed(&self, saved: &[Vec<bool>]) -> Vec<Vec<bool>> {
        self.needed_by_stage(saved, false)
    }

    /// Returns for each stage the steps that earlier ones saved and that it reads, if every stage saves these for later ones.
    pub(in crate::fuse) fn read(&self, saved: &[Vec<bool>]) -> Vec<Vec<bool>> {
        self.needed_by_stage(saved, true)
    }

    /// Returns for each stage the steps that it needs, and that earlier ones saved or did not save.
    fn needed_by_stage(&self, saved: &[Vec<bool>], is_saved: bool) -> Vec<Vec<bool>> {
        let outputs = &self.expression.program.outputs;
        let mut exists = vec![false; self.expression.program.steps.len()];
        let each = self.stages.iter().zip(saved).map(|(stage, saved)| {
            let roots = stage.outputs.iter().flat_map(|&output| outputs[output]);
            let needed = self.needed(roots.map(|value| value.index()), |step| exists[step]);
            let needed = needed.iter().zip(&exists);
            let found = needed.map(|(needed, exists)| *needed && *exists == is_saved).collect();
            exists.iter_mut().zip(saved).for_each(|(exists, saved)| *exists |= *saved);
            found
        });
        each.collect()
    }

    /// Returns the steps that values depend on, down to those that exist already.
    pub(in crate::fuse) fn needed(
        &self,
        roots: impl Iterator<Item = usize>,
        exists: impl Fn(usize) -> bool,
    ) -> Vec<bool> {
        let program = &self.expression.program;
        let mut needed = vec![false; program.steps.len()];
        roots.for_each(|root| needed[root] = true);
        for index in (0..needed.len()).rev() {
            if !needed[index] || exists(index) {
                continue;
            }
            let (step, _) = program.steps[index];
            if let Step::Result { rare, .. } = step {
                // The marker before the body.
                needed[program.rares[rare as usize].body.start - 1] = true;
            }
            program.values(step).for_each(|value| needed[value.index()] = true);
        }
        needed
    }
}
