//! Stages that read the segments of a row one after another, from shared or from global memory.

use super::RowWriter;
use super::element::Access;
use super::once::segments_of_row;
use super::shared::Slot;
use crate::fuse::plan::reduction::{SEGMENT, WARP};
use crate::fuse::ptx::Name;
use crate::fuse::ptx::reduction::Folded;

/// The most instructions on the elements of a round, of a row with one warp. If a stage has more, it takes one part of the groups
/// after another, with at least as many: the loop has a half or a quarter of the text, and `ptxas` takes 3 ms less for the
/// exponentials of f32.
const LONG_ROUND: usize = 48;

impl RowWriter<'_> {
    /// Emits the stages of a row whose segments each of them reads.
    pub(super) fn segments(&mut self) {
        let (key, stages) = (self.key, self.stages);
        // The copies take longer than a cluster takes to meet.
        self.begin_copies();
        self.arrive();
        self.end_copies();
        self.wait();
        let stride = self.shared_row().map_or(0, |row| row.stride);
        for (stage_index, stage) in stages.stages.iter().enumerate() {
            let wanted = self.prepare(stage_index);
            let planes: Vec<_> = stage.reductions.iter().map(|&reduction| self.planes(reduction)).collect();
            self.begin_passes(stage_index);
            let kernel = &mut self.kernel;
            let from = kernel.index("mov.u32", "mov.u64", &[&self.thread.first]);
            let segment = match key.warps {
                1 => Name::new(),
                _ => kernel.bits32("mov.u32", &[&self.thread.warp]),
            };
            self.slot = Slot::default();
            if stride > 0 {
                self.slot.segment = kernel.bits32("mov.u32", &[&self.thread.slot]);
            }
            let unique = kernel.writer.unique();
            kernel.line(format!("$segment_{unique}:"));
            let lanes = match self.groups_at_once(stage_index) {
                each if each < key.accesses_per_round => {
                    self.groups_in_turn(stage_index, &from, each, &wanted)
                }
                all => self.all_rounds(stage_index, (&from, &self.thread.lane.clone()), all, &wanted),
            };
            if stage.reductions.is_empty() {
                // The one warp of a row has its one segment.
                self.copy_outputs(if segment.is_empty() { "0" } else { &segment });
            }
            let folded = lanes.into_iter().zip(&stage.reductions);
            let folded: Vec<(usize, Folded)> =
                folded.map(|(lanes, &reduction)| (reduction, self.segment(reduction, lanes))).collect();
            self.mark_saved(stage_index);
            if segment.is_empty() {
                self.rows(folded);
                self.end_passes();
                continue;
            }
            for ((reduction, value), planes) in folded.iter().zip(&planes) {
                self.publish(*reduction, planes, &segment, value);
            }
            let (kernel, width) = (&mut self.kernel, if key.wide { "u64" } else { "u32" });
            let segments = segments_of_row(kernel);
            let step = key.warps * key.cluster;
            kernel.line(format!("add.{width} {from}, {from}, {};", step * SEGMENT));
            kernel.line(format!("add.u32 {segment}, {segment}, {step};"));
            if stride > 0 {
                kernel.line(format!("add.u32 {0}, {0}, {1};", self.slot.segment, key.warps * stride));
            }
            let again = kernel.predicate("setp.lt.u32", &[&segment, &segments]);
            kernel.line(format!("@{again} bra $segment_{unique};"));
            if stage.reductions.is_empty() {
                continue;
            }
            self.barrier();
            for (&reduction, planes) in stage.reductions.iter().zip(&planes) {
                let value = self.collect(reduction, planes);
                self.finish(reduction, &value, 0);
            }
            self.end_passes();
        }
    }

    /// Returns the groups of a round that a stage takes at once.
    fn groups_at_once(&self, stage: usize) -> usize {
        let key = self.key;
        if key.warps > 1 || self.shared_row().is_none() {
            return key.accesses_per_round;
        }
        let of_group = self.instructions(stage) * key.vector;
        let mut groups = key.accesses_per_round;
        while groups > 1 && of_group * (groups / 2) >= LONG_ROUND {
            groups /= 2;
        }
        groups
    }

    /// Emits the loop over the rounds of a segment, each of some groups of lanes. The thread's first element and its index among
    /// the threads are those of the first group. Returns the lanes of the stage's reductions.
    fn all_rounds(
        &mut self,
        stage: usize,
        (from, thread): (&str, &str),
        groups: usize,
        wanted: &[bool],
    ) -> Vec<Vec<Folded>> {
        let (key, reductions) = (self.key, &self.stages.stages[stage].reductions);
        let count = groups * key.vector;
        let lanes: Vec<Vec<Folded>> =
            reductions.iter().map(|&reduction| self.identities(reduction, count)).collect();
        let rounds = self.begin_rounds(from);
        if key.warps == 1 {
            // Assemblers would unroll the rounds of short stages, and take 1.4 times as long for the text.
            self.kernel.line(".pragma \"nounroll\";");
        }
        if self.shared_row().is_some() {
            self.slot.index = self.index_in_segment(&rounds.round, thread);
        }
        let mut accesses: Vec<Access> = (0..groups).map(|group| self.access(&rounds.at, 0, group)).collect();
        for access in &mut accesses {
            self.load(access, wanted);
            self.load_saved(access, wanted);
        }
        for (group, access) in accesses.iter_mut().enumerate() {
            self.compute(stage, access, group, wanted, &lanes);
        }
        self.end_rounds(&rounds);
        lanes
    }

    /// Emits a loop over the groups of lanes, some at once, around that over rounds. Returns the lanes of the stage's reductions.
    fn groups_in_turn(&mut self, stage: usize, from: &str, each: usize, wanted: &[bool]) -> Vec<Vec<Folded>> {
        let (key, reductions) = (self.key, &self.stages.stages[stage].reductions);
        let count = key.accesses_per_round * key.vector;
        let all: Vec<Vec<Folded>> =
            reductions.iter().map(|&reduction| self.identities(reduction, count)).collect();
        let at = self.kernel.index("mov.u32", "mov.u64", &[from]);
        let thread = self.kernel.bits32("mov.u32", &[&self.thread.lane]);
        let group = self.kernel.bits32("mov.u32", &["0"]);
        let unique = self.kernel.writer.unique();
        self.kernel.line(format!("$group_{unique}:"));
        self.kernel.line(".pragma \"nounroll\";");
        let lanes = self.all_rounds(stage, (&at, &thread), each, wanted);
        // Registers have no index: after all groups, the values of each are in its own.
        for ((all, lanes), &reduction) in all.iter().zip(&lanes).zip(reductions) {
            self.with(reduction);
            let next = all[each * key.vector..].iter().chain(lanes);
            for (lane, next) in all.iter().zip(next) {
                self.assign(lane, next);
            }
        }
        let (kernel, width) = (&mut self.kernel, if key.wide { "u64" } else { "u32" });
        kernel.line(format!("add.{width} {at}, {at}, {};", each * WARP * key.vector));
        kernel.line(format!("add.u32 {thread}, {thread}, {};", each * WARP));
        kernel.line(format!("add.u32 {group}, {group}, {each};"));
        let again = kernel.predicate("setp.lt.u32", &[&group, &key.accesses_per_round.to_string()]);
        kernel.line(format!("@{again} bra $group_{unique};"));
        all
    }
}
