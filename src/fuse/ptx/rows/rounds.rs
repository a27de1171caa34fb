//! Long stages of a row in registers: a loop over the rounds of a segment, because a driver assembles a text for as long
//! as it has instructions.
//!
//! Registers have no dynamic index. So the body computes the elements of the first round, and then the registers of each
//! round take the values of the next one. After all rounds every value is in its register again. A value that the stage
//! saves takes the register of an element that no later stage reads, so the loop needs no more registers than
//! straight-line code. The moves are one instruction for each element in each round.

use super::RowWriter;
use super::element::Access;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::{Step, parts};
use crate::fuse::plan::reduction::LANES;
use crate::fuse::plan::rows_access::RowAccess;
use crate::fuse::plan::rows_storage::RowStorage;
use crate::fuse::ptx::reduction::Folded;
use crate::fuse::ptx::{Name, REGISTERS};
use crate::types::DType;

/// The most instructions on the elements of a thread in a stage without a loop. The exponentials of 16 elements exceed it:
/// `ptxas` takes 50 ms for a softmax of 32 elements a thread in straight-line code, and 28 ms with a loop.
const UNROLLED: usize = 400;

/// An input whose elements the values of a step replace.
#[derive(Clone, Copy)]
struct Replaced {
    input: usize,
    step: usize,
}

/// A loop over rounds.
pub(super) struct Rounds {
    /// The index in the row of the thread's first element in a round.
    pub(super) at: Name,
    pub(super) round: Name,
    label: String,
}

impl RowWriter<'_> {
    /// Returns whether the rounds of a stage are a loop.
    pub(super) fn loops(&self, stage: usize) -> bool {
        let key = self.key;
        // Sums over groups have a register for each element of a thread.
        let has_sums = self.sums.first != usize::MAX;
        if key.storage != RowStorage::Registers || key.has_columns || key.rounds == 1 || has_sums {
            return false;
        }
        let of_thread = self.instructions(stage) * key.vector * key.accesses_per_round * key.rounds;
        of_thread > UNROLLED && self.replaced(stage).is_some()
    }

    /// Returns the instructions of a stage on each element.
    pub(super) fn instructions(&self, stage: usize) -> usize {
        let computed = self.stages.computed(&self.saved).swap_remove(stage);
        let steps = self.stages.expression.program.steps.iter().zip(computed).zip(&self.uniform);
        let of_element = steps.filter(|(((step, _), computed), uniform)| {
            *computed && !**uniform && matches!(step, Step::Apply(..))
        });
        of_element.count()
    }

    /// Returns the steps that a stage saves and the inputs that they replace; `None` if a step replaces no input.
    fn replaced(&self, stage: usize) -> Option<Vec<Replaced>> {
        let stages = self.stages;
        let computed = stages.computed(&self.saved);
        let (until, after) = computed.split_at(stage + 1);
        let mut inputs: Vec<(usize, RegisterKind)> = (0..self.operand_of.len())
            .filter_map(|input| {
                let access = self.key.accesses[self.operand_of[input]?];
                let is_single = matches!(access, RowAccess::Broadcast | RowAccess::OfSpan);
                let dtype = stages.expression.inputs[input];
                let kind = match dtype {
                    DType::F64 => RegisterKind::Float64,
                    DType::F32 | DType::F16 | DType::BF16 => RegisterKind::Float32,
                    _ => return None,
                };
                let dies = stages.is_loaded(input, &until[stage])
                    && !after.iter().any(|steps| stages.is_loaded(input, steps));
                (!is_single && parts(dtype) == 1 && dies).then_some((input, kind))
            })
            .collect();
        let steps = (0..self.has.len()).filter(|&step| self.saved[stage][step] && !self.has[step]);
        let replaced = steps.map(|step| {
            let kind = stages.expression.program.steps[step].1;
            let at = inputs.iter().position(|(_, of_input)| *of_input == kind)?;
            Some(Replaced { input: inputs.swap_remove(at).0, step })
        });
        replaced.collect()
    }

    /// Emits a stage as a loop over rounds. Returns the lanes of its reductions.
    pub(super) fn rounds(
        &mut self,
        stage: usize,
        accesses: &mut [Access],
        wanted: &[bool],
    ) -> Vec<Vec<Folded>> {
        let (key, stages) = (self.key, self.stages);
        let reductions = &stages.stages[stage].reductions;
        let replaced = self.replaced(stage).unwrap_or_default();
        for access in accesses.iter_mut() {
            self.load(access, wanted);
            for &Replaced { input, .. } in &replaced {
                let dtype = stages.expression.inputs[input];
                let elements = self.kernel.writer.elements(dtype, &access.raw[input], key.vector);
                access.raw[input] = elements.into_iter().map(|[element, _]| element).collect();
                access.is_widened[input] = true;
            }
        }
        let lanes: Vec<Vec<Folded>> = reductions
            .iter()
            .map(|&reduction| self.identities(reduction, key.accesses_per_round * key.vector))
            .collect();
        let rounds = self.begin_rounds(&self.thread.first.clone());
        let mut body: Vec<Access> =
            (0..key.accesses_per_round).map(|group| self.access(&rounds.at, 0, group)).collect();
        for (group, access) in body.iter_mut().enumerate() {
            access.raw.clone_from(&accesses[group].raw);
            access.is_widened.clone_from(&accesses[group].is_widened);
            access.saved.clone_from(&accesses[group].saved);
            self.compute(stage, access, group, wanted, &lanes);
        }
        for (group, access) in body.iter().enumerate() {
            let rounds: Vec<&Access> = accesses.iter().skip(group).step_by(key.accesses_per_round).collect();
            self.rotate(&rounds, access, &replaced, wanted);
        }
        self.end_rounds(&rounds);
        for access in accesses {
            for &Replaced { input, step } in &replaced {
                let values = std::mem::take(&mut access.raw[input]);
                access.saved.iter_mut().zip(values).for_each(|(saved, value)| saved.push((step, value)));
                access.is_widened[input] = false;
            }
        }
        lanes
    }

    /// Begins a loop over rounds, for a thread whose first element is `from`.
    pub(super) fn begin_rounds(&mut self, from: &str) -> Rounds {
        let kernel = &mut self.kernel;
        let at = kernel.index("mov.u32", "mov.u64", &[from]);
        let round = kernel.bits32("mov.u32", &["0"]);
        let label = format!("$round_{}", kernel.writer.unique());
        kernel.line(format!("{label}:"));
        Rounds { at, round, label }
    }

    pub(super) fn end_rounds(&mut self, Rounds { at, round, label }: &Rounds) {
        let (kernel, width) = (&mut self.kernel, if self.key.wide { "u64" } else { "u32" });
        kernel.line(format!("add.{width} {at}, {at}, {LANES};"));
        kernel.line(format!("add.u32 {round}, {round}, 1;"));
        let again = kernel.predicate("setp.lt.u32", &[round, &self.key.rounds.to_string()]);
        kernel.line(format!("@{again} bra {label};"));
    }

    /// Computes the elements of an access of a stage, and stores its outputs or merges them into the lanes of its reductions, of
    /// which those of the access begin at its group.
    pub(super) fn compute(
        &mut self,
        stage: usize,
        access: &mut Access,
        group: usize,
        wanted: &[bool],
        lanes: &[Vec<Folded>],
    ) {
        let reductions = &self.stages.stages[stage].reductions;
        let all = self.evaluate(stage, access, wanted);
        self.store_saved(stage, access, &all);
        if reductions.is_empty() {
            self.store(access, &all);
        }
        for (lanes, &reduction) in lanes.iter().zip(reductions) {
            let elements = self.arguments(reduction, access, &all);
            for (lane, element) in lanes[group * self.key.vector..].iter().zip(&elements) {
                self.merge_into(lane, element);
            }
        }
    }

    /// Moves the values of a stage from each round to the one before it. The last round takes the values of the first, or
    /// the values that replace them.
    fn rotate(&mut self, rounds: &[&Access], body: &Access, replaced: &[Replaced], wanted: &[bool]) {
        let stages = self.stages;
        let mut moved: Vec<(Vec<&Name>, &Name)> = Vec::new();
        for input in (0..body.raw.len()).filter(|&input| stages.is_loaded(input, wanted)) {
            let by = replaced.iter().find(|replaced| replaced.input == input);
            for (word, first) in body.raw[input].iter().enumerate() {
                let next = by.and_then(|by| body.saved[word].iter().find(|(step, _)| *step == by.step));
                let names = rounds.iter().map(|access| &access.raw[input][word]).collect();
                moved.push((names, next.map_or(first, |(_, name)| name)));
            }
        }
        for element in 0..body.saved.len() {
            for (at, (step, first)) in rounds[0].saved[element].iter().enumerate() {
                if wanted[*step] {
                    moved.push((rounds.iter().map(|access| &access.saved[element][at].1).collect(), first));
                }
            }
        }
        for (names, next) in moved {
            let prefix = names[0].trim_end_matches(|digit: char| digit.is_ascii_digit());
            let Some(&(register, kind, _)) = REGISTERS.iter().find(|(_, _, of)| *of == prefix) else {
                continue;
            };
            let mut last = next.clone();
            if *next == *names[0] {
                last = self.kernel.result(register, &format!("mov.{kind}"), &[next]);
            }
            for pair in names.windows(2) {
                self.kernel.line(format!("mov.{kind} {}, {};", pair[0], pair[1]));
            }
            if let Some(name) = names.last() {
                self.kernel.line(format!("mov.{kind} {name}, {last};"));
            }
        }
    }
}
