//! The second pass of a stage that sums squares, for rows whose sum has left the range.
//!
//! A stage multiplies its elements by a factor before it squares them: 1 in the first pass. After the fold every thread has the
//! sum of its rows, and so knows their factors. If a row of the threads that meet in the stage needs another factor than 1, they
//! run the stage once more: a warp with several rows votes, and so do the threads of a tile of columns; the threads of a row agree
//! without.
//!
//! Invariants: the first pass leaves everything that the second one reads, because such a stage saves no values for later ones.
//! Slots of shared memory are written again after a barrier. A barrier of a cluster completes no phase, or two, in a second pass,
//! so that a loop over rows expects the same phase after it.

use super::RowWriter;
use super::cluster::Barrier;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::language::fold::RescalingBits;
use crate::fuse::plan::reduction::WARP;
use crate::fuse::ptx::reduction::{Folded, type_of};
use crate::fuse::ptx::{Name, immediate};

/// The passes of a stage.
pub(super) struct Passes {
    label: String,
    stage: usize,
    /// 0 in the first pass, 1 in the second one.
    pub(super) second: Name,
    /// The barrier of a cluster that the stage has waited for.
    pub(super) barrier: Option<Barrier>,
    /// By reduction, the factor and the sum of each row of the thread.
    rows: Vec<(usize, Vec<Factor>)>,
}

#[derive(Clone, Default)]
struct Factor {
    factor: Name,
    sum: Name,
}

impl RowWriter<'_> {
    /// Begins the passes of a stage, if it sums squares.
    pub(super) fn begin_passes(&mut self, stage_index: usize) {
        let stage = &self.stages.stages[stage_index];
        if !stage.rescales {
            return;
        }
        let mut rows = Vec::new();
        for &reduction in &stage.reductions {
            self.with(reduction);
            if self.kernel.compiled.rescaled.is_none() {
                continue;
            }
            let kind = self.kernel.kinds()[0];
            let (one, mnemonic) =
                (immediate(RescalingBits::new(kind).one, kind), format!("mov.{}", type_of(kind)));
            let factors = (0..self.key.rows_of_thread()).map(|_| Factor {
                factor: self.kernel.result(kind.into(), &mnemonic, &[&one]),
                sum: Name::new(),
            });
            rows.push((reduction, factors.collect()));
        }
        let second = self.kernel.bits32("mov.u32", &["0"]);
        let label = format!("$pass_{}", self.kernel.writer.unique());
        self.kernel.line(format!("{label}:"));
        self.passes = Some(Passes { label, stage: stage_index, second, barrier: None, rows });
    }

    fn factor_of(&mut self, reduction: usize, row: usize) -> Option<&mut Factor> {
        let rows = self.passes.as_mut()?.rows.iter_mut().find(|(known, _)| *known == reduction);
        rows.and_then(|(_, rows)| rows.get_mut(row))
    }

    /// Returns the square of an element of a row times its factor, if the reduction sums squares.
    pub(super) fn squared(&mut self, reduction: usize, row: usize, value: Folded) -> Folded {
        let Some(Factor { factor, .. }) = self.factor_of(reduction, row).cloned() else { return value };
        let kind = self.kernel.kinds()[0];
        let mnemonic = format!("mul.rn.{}", type_of(kind));
        let scaled = self.kernel.result(kind.into(), &mnemonic, &[&value[0], &factor]);
        let square = self.kernel.result(kind.into(), &mnemonic, &[&scaled, &scaled]);
        [square.clone(), square]
    }

    /// Returns a folded value with its factor, if it is a sum of squares.
    pub(super) fn with_factor(&mut self, reduction: usize, row: usize, value: Folded) -> Folded {
        let Some(found) = self.factor_of(reduction, row) else { return value };
        found.sum.clone_from(&value[0]);
        let factor = found.factor.clone();
        let [sum, _] = value;
        [sum, factor]
    }

    /// Ends the passes of a stage.
    pub(super) fn end_passes(&mut self) {
        let Some(passes) = self.passes.take() else { return };
        let key = self.key;
        let mut changes: Vec<(Name, String)> = Vec::new();
        let mut rare = Name::new();
        for (reduction, rows) in &passes.rows {
            self.with(*reduction);
            let kind = self.kernel.kinds()[0];
            let (bits, of_kind) = (RescalingBits::new(kind), type_of(kind));
            for Factor { factor, sum } in rows {
                let tests = [("setp.eq", bits.infinity), ("setp.lt", bits.least)];
                for ((test, limit), changed) in tests.into_iter().zip(bits.factors) {
                    let limit = immediate(limit, kind);
                    let holds = self.kernel.predicate(&format!("{test}.{of_kind}"), &[sum, &limit]);
                    changes.push((
                        holds.clone(),
                        format!("mov.{of_kind} {factor}, {};", immediate(changed, kind)),
                    ));
                    rare = match rare.is_empty() {
                        true => holds,
                        false => self.kernel.predicate("or.pred", &[&rare, &holds]),
                    };
                }
            }
        }
        if key.has_columns {
            // It also separates the reads of slots from the next writes.
            rare = self.kernel.predicate("bar.red.or.pred", &["0", &rare]);
        } else if key.warps == 1 && key.threads < WARP {
            rare = self.kernel.predicate("vote.sync.any.pred", &[&rare, "-1"]);
        }
        let kernel = &mut self.kernel;
        let is_first = kernel.predicate("setp.eq.u32", &[&passes.second, "0"]);
        let again = kernel.predicate("and.pred", &[&rare, &is_first]);
        let end = format!("$passed_{}", kernel.writer.unique());
        kernel.line(format!("@!{again} bra {end};"));
        for (holds, change) in changes {
            kernel.line(format!("@{holds} {change}"));
        }
        kernel.line(format!("mov.u32 {}, 1;", passes.second));
        self.hide_values(passes.stage);
        if key.cluster > 1 {
            if let Some(barrier) = passes.barrier.filter(|_| self.phase.is_empty()) {
                self.expect(&barrier);
            }
            // All blocks have read their slots.
            self.kernel.line("barrier.cluster.arrive.release.aligned;");
            self.kernel.line("barrier.cluster.wait.acquire.aligned;");
        } else if key.warps > 1 && !key.has_columns {
            self.kernel.line("bar.sync 0;");
        }
        self.kernel.line(format!("bra {};", passes.label));
        self.kernel.line(format!("{end}:"));
    }

    /// Hides from an assembler that values of rows are the same in the second pass. It would otherwise move what elements make of
    /// them out of the loop, to a register for each: 96 registers instead of 72 for a layer norm of 4096 elements of f32. Of
    /// narrow elements it would move the widened ones, so it may as well move these.
    fn hide_values(&mut self, stage: usize) {
        let stages = self.stages;
        if stages.expression.inputs.iter().any(|dtype| dtype.size() < 4) {
            return;
        }
        let (program, wanted) = (&stages.expression.program, &stages.stages[stage].wanted);
        let mut read = vec![false; wanted.len()];
        for (index, (step, _)) in program.steps.iter().enumerate() {
            if wanted[index] && !self.uniform[index] {
                program.values(*step).for_each(|value| read[value.index()] = true);
            }
        }
        for row in 0..self.key.rows_of_thread() {
            for index in (0..read.len()).filter(|&index| read[index] && self.uniform[index]) {
                let name = self.known[row][index].clone();
                if program.steps[index].1 == RegisterKind::Float32 && name.starts_with('%') {
                    self.kernel.line(format!("shfl.sync.bfly.b32 {name}, {name}, 0, 31, -1;"));
                }
            }
        }
    }

    /// Completes a further phase of a stage's barrier in the second pass of a row of a loop.
    pub(super) fn pass_phase(&mut self, second: &str, barrier: &Barrier) {
        let kernel = &mut self.kernel;
        let is_first = kernel.predicate("setp.eq.u32", &[second, "0"]);
        let label = format!("$phase_{}", kernel.writer.unique());
        kernel.line(format!("@{is_first} bra {label};"));
        // All threads have waited for the phase before.
        kernel.line("bar.sync 0;");
        let mut empty = barrier.clone();
        empty.bytes = "0".to_owned();
        self.expect(&empty);
        self.kernel.line(format!("{label}:"));
    }
}
