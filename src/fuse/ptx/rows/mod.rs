//! The PTX writer of row programs: one kernel for all reductions and outputs.
//!
//! As for reductions, the module is PTX 8.0 for sm_60 or later (8.1 for sm_90 for clusters) with one entry, whose parameters are
//! addresses followed by one block, and its text depends only on the program and the key. [`element`] loads, computes and
//! stores elements, [`fold`] folds segments and rows, [`shared`] holds a row in shared memory, [`cluster`] sends values between
//! blocks, [`columns`] walks tiles of strided rows. This file has the stages: straight-line code if the row is held in registers
//! (a loop if it is long, see [`rounds`]), loops over its segments otherwise ([`segments`]).
//!
//! Invariants: no thread exits before the last shuffle or barrier of its block. Threads past the last row repeat
//! it, and do not store. Elements past the end of a row count as missing: they are not accessed, or, where addresses
//! follow from coordinates, their loads repeat the last elements and their stores are left out. Slots of shared memory
//! are written once, so a reduction costs one barrier. No block stores to another before all of its cluster exist, and
//! none ends before the last such store.

mod chunks;
mod cluster;
mod columns;
mod double_buffered;
mod element;
mod fold;
mod once;
mod report;
mod rescale;
mod rounds;
mod segments;
mod shared;

use std::collections::{HashMap, VecDeque};

use super::reduction::{ElementPosition, Folded, KernelWriter};
use super::{ENTRY, Name, StateSpace, Writer};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::Value;
use crate::fuse::plan;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::compiled_rows::{CompiledRows, RowOutput, RowReduction};
use crate::fuse::plan::elementwise::Iteration;
use crate::fuse::plan::reduction::{LANES, SEGMENT, WARP};
use crate::fuse::plan::rows_access::RowAccess;
use crate::fuse::plan::rows_key::{RowKey, RowPlan};
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_stages::RowStages;
use crate::fuse::plan::rows_storage::RowStorage;
use chunks::Sums;
use cluster::Barrier;
use element::Access;
use once::evaluate_once;
pub(in crate::fuse) use report::text_of_check;
use rescale::Passes;
use shared::Slot;

/// The name of dynamic shared memory.
const ROW: &str = "fused_row";

/// The accesses that a thread of a full block loads at once in the last stage.
const TOGETHER: usize = 2;

/// A kernel under construction.
struct RowWriter<'a> {
    kernel: KernelWriter<'a>,
    reductions: &'a [RowReduction],
    outputs: &'a [RowOutput],
    stages: &'a RowStages,
    key: &'a RowKey,
    /// By input of the expression, its operand; `None` for the value of a reduction.
    operand_of: Vec<Option<usize>>,
    /// By operand, the address of the row.
    bases: Vec<Name>,
    /// By an element's index in the row, and by operand, the address of this element in the row at hand; empty until an
    /// access relative to it needs it.
    firsts: HashMap<Name, Vec<Name>>,
    /// By an element's index in the row, the elements from it to the end of the row.
    lefts: HashMap<Name, Name>,
    /// By operand, the bytes before the row in its first line, if lines are copied.
    misalignments: Vec<Name>,
    /// The offset in shared memory of the current access.
    slot: Slot,
    /// The barriers of a cluster, of the stages to come.
    barriers: VecDeque<Barrier>,
    /// In a loop over rows of one stage, the register with the parity of the row, which selects its slots and its barrier.
    parity: Name,
    /// In a loop over rows of a cluster, the register with the parity of the barrier's phase.
    phase: Name,
    /// By row of the thread and input of the expression, its value if that is one for the whole row.
    still: Vec<Vec<Option<[Name; 2]>>>,
    /// The steps with one value for the whole row, and by row of the thread the registers of those computed so far.
    uniform: Vec<bool>,
    known: Vec<Vec<Name>>,
    /// By stage, the steps to save for later stages.
    saved: Vec<Vec<bool>>,
    /// The steps that every element has saved so far.
    has: Vec<bool>,
    thread: Thread,
    /// The position of the row's first element among all elements, in 64 bits, if the program reads positions.
    position: Name,
    sums: Sums,
    /// The passes of the stage at hand, if it sums squares.
    passes: Option<Passes>,
}

/// The position of a thread.
#[derive(Default)]
struct Thread {
    /// Its index among the threads that share a segment.
    lane: Name,
    /// Its offset in a row of a tile of columns, if neighbouring threads take neighbouring rows.
    column: Name,
    /// Its warp among those of the row; empty if a row has one warp.
    warp: Name,
    /// The address in shared memory of the first segment of its warp.
    slot: Name,
    /// The index in the row of its first element.
    first: Name,
    /// The elements from its first to the end of the row, in 32 signed bits, if addresses are relative to that of its first.
    left: Name,
    /// The predicate that its row exists; empty if all do.
    inside: Name,
    /// The predicate that it is the first thread of its segment.
    leads: Name,
}

/// Returns the text of a kernel of the program.
pub(in crate::fuse) fn write(compiled: &CompiledRows, stages: &RowStages, plan: &RowPlan) -> String {
    let key = &plan.key;
    let Some(first) = compiled.reductions.first() else { return String::new() };
    let reductions = Reductions { all: &compiled.reductions, first: &first.reduction };
    written(reductions, &compiled.outputs, stages, key, plan, |writer| {
        if key.has_columns {
            return writer.columns();
        }
        writer.begin();
        match key.storage {
            RowStorage::Registers | RowStorage::SharedDoubleBuffered(_) => writer.held(),
            RowStorage::Shared(_) | RowStorage::Reread => writer.segments(),
        }
    })
}

/// Returns the text of a kernel of a program whose outputs from `first` on are summed over groups.
fn write_with_sums(
    compiled: &CompiledRows,
    stages: &RowStages,
    key: &RowKey,
    plan: &RowPlan,
    first: usize,
) -> String {
    let Some(reduction) = compiled.reductions.first() else { return String::new() };
    let reductions = Reductions { all: &compiled.reductions, first: &reduction.reduction };
    written(reductions, &compiled.outputs, stages, key, plan, |writer| {
        writer.sums.first = first;
        writer.chunks(false);
    })
}

/// Returns the text of a kernel that sums the outputs of stages without reductions over groups. `fold` is a sum.
fn write_sums(
    stages: &RowStages,
    outputs: &[RowOutput],
    fold: &CompiledReduction,
    key: &RowKey,
    plan: &RowPlan,
) -> String {
    let reductions = Reductions { all: &[], first: fold };
    written(reductions, outputs, stages, key, plan, |writer| {
        writer.sums.first = 0;
        writer.chunks(true);
    })
}

/// The reductions of a kernel, and one whose rules its writer begins with.
struct Reductions<'a> {
    all: &'a [RowReduction],
    first: &'a CompiledReduction,
}

/// Returns the text of a kernel whose body `emit` writes.
fn written(
    reductions: Reductions<'_>,
    outputs: &[RowOutput],
    stages: &RowStages,
    key: &RowKey,
    plan: &RowPlan,
    emit: impl FnOnce(&mut RowWriter<'_>),
) -> String {
    // The elementwise writer needs a key, but only its instructions, loads and stores are used.
    let plain = plan::elementwise::KernelKey {
        iteration: Iteration::Flat,
        lanes: 1,
        rank: 0,
        access_patterns: Vec::new(),
        tail: false,
        is_ampere: key.is_ampere,
    };
    let expression = &*stages.expression;
    let scalars = plan::elementwise::ParameterLayout::new(&plain, expression.scalars.len(), 0);
    let operand_of = stages.operand_of();
    let inputs = operand_of.iter().flatten().count();
    let name = |access: &'static str| move |index: usize| format!("{ENTRY}_{access}_{index}");
    let addresses = (0..inputs).map(name("read")).chain((0..outputs.len()).map(name("write"))).collect();
    let writer = Writer::new(&expression.program, &[], 0, &plain, scalars);
    let uniform = stages.uniform(&stages.broadcast(&key.accesses));
    let count = expression.program.steps.len();
    let mut writer = RowWriter {
        kernel: KernelWriter {
            writer,
            compiled: reductions.first,
            parameters: plan.parameters,
            wide: key.wide,
            shared: 0,
            start: None,
            addresses,
            codes: None,
            factors: Vec::new(),
            position: ElementPosition::default(),
        },
        reductions: reductions.all,
        outputs,
        stages,
        key,
        bases: Vec::new(),
        firsts: HashMap::new(),
        lefts: HashMap::new(),
        misalignments: Vec::new(),
        slot: Slot::default(),
        barriers: VecDeque::new(),
        parity: Name::new(),
        phase: Name::new(),
        still: vec![vec![None; operand_of.len()]; key.rows_of_thread()],
        operand_of,
        known: vec![vec![Name::new(); count]; key.rows_of_thread()],
        saved: match key.storage.saves_values() {
            true => stages.saved(&uniform, key.min_recompute_cost),
            false => stages.saved_nowhere(),
        },
        has: vec![false; count],
        uniform,
        thread: Thread::default(),
        position: Name::new(),
        sums: Sums::new(usize::MAX),
        passes: None,
    };
    emit(&mut writer);
    writer.kernel.line("ret;");
    let target = match key.cluster {
        1 if key.is_ampere => 80,
        1 => 60,
        _ => 90,
    };
    let mut text = writer.kernel.text(plan.threads, "", target);
    if key.has_columns && key.is_ampere {
        // The blocks beside this one read the rest of a line.
        text = text.replace("ld.global.", "ld.global.L2::128B.");
    }
    match key.storage {
        RowStorage::Shared(_) | RowStorage::SharedDoubleBuffered(_) => {
            text.replacen(".visible", &format!(".extern .shared .align 16 .b8 {ROW}[];\n.visible"), 1)
        }
        RowStorage::Registers | RowStorage::Reread => text,
    }
}

impl<'a> RowWriter<'a> {
    /// Emits the position of the thread, the addresses of its row and the inputs with one value for it.
    fn begin(&mut self) {
        let (key, kernel) = (self.key, &mut self.kernel);
        let shift = |count: usize| count.trailing_zeros().to_string();
        let index = kernel.bits32("mov.u32", &["%tid.x"]);
        let block = kernel.bits32("mov.u32", &["%ctaid.x"]);
        let lane = kernel.bits32("and.b32", &[&index, &(key.threads - 1).to_string()]);
        let above = kernel.bits32("shr.u32", &[&index, &shift(key.threads)]);
        let leads = kernel.predicate("setp.eq.u32", &[&lane, "0"]);
        // The blocks of a cluster share a row.
        let mut rank = Name::new();
        let mut row = block;
        if key.cluster > 1 {
            rank = kernel.bits32("and.b32", &[&row, &(key.cluster - 1).to_string()]);
            row = kernel.bits32("shr.u32", &[&row, &shift(key.cluster)]);
        }
        let mut item = kernel.widened(&row);
        let mut inside = Name::new();
        if key.rows_per_block > 1 {
            let across = kernel.widened(&above);
            item = kernel.times_plus(&item, &key.rows_per_block.to_string(), &across);
            let items = kernel.word(kernel.parameters.items());
            inside = kernel.is_below(&item, &items);
            let last = kernel.index("sub.u32", "sub.u64", &[&items, "1"]);
            item = kernel.lesser(&item, &last);
        }
        let wide_lane = kernel.widened(&lane);
        let mut first = kernel.index("mul.lo.u32", "mul.lo.u64", &[&wide_lane, &key.vector.to_string()]);
        let mut warp = Name::new();
        if key.warps > 1 {
            warp = match rank.is_empty() {
                true => above.clone(),
                false => kernel.bits32("mad.lo.u32", &[&rank, &key.warps.to_string(), &above]),
            };
            let segment = kernel.widened(&warp);
            first = kernel.times_plus(&segment, &SEGMENT.to_string(), &first);
        }
        self.thread = Thread { lane, warp, first, inside, leads, ..Thread::default() };
        self.row(&item);
        self.begin_shared(&above);
    }

    /// Emits the addresses of a row of some operands.
    fn begin_row(&mut self, item: &str, is_wanted: impl Fn(usize) -> bool) {
        let (key, kernel) = (self.key, &mut self.kernel);
        let coordinates = kernel.decode(item, 0..key.outer_dims);
        let bases = (0..key.accesses.len()).map(|operand| {
            if !is_wanted(operand) {
                return Name::new();
            }
            let size = self.stages.operand_dtype(operand, self.reductions.len()).size();
            let base = kernel.base(operand);
            let offset = kernel.offset(operand, &coordinates, 0);
            kernel.address(&base, offset.as_deref(), size)
        });
        self.bases = bases.collect();
        self.firsts.clear();
    }

    /// Returns the address of one of the thread's rows of an operand.
    fn base_of(&mut self, operand: usize, row: usize, size: usize) -> Name {
        let base = self.bases[operand].clone();
        if row == 0 {
            return base;
        }
        // Neighbouring rows may have the same value, so that only the run knows the distance.
        let stride = self.kernel.word(self.kernel.parameters.stride(operand, 0));
        self.kernel.address(&base, Some(&stride), row * size)
    }

    /// Emits the addresses of a row and the inputs with one value for it.
    fn row(&mut self, item: &str) {
        self.begin_row(item, |_| true);
        let key = self.key;
        for input in 0..self.operand_of.len() {
            let Some(operand) =
                self.operand_of[input].filter(|&operand| key.accesses[operand] == RowAccess::Broadcast)
            else {
                continue;
            };
            let dtype = self.stages.expression.inputs[input];
            for row in 0..key.rows_of_thread() {
                let address = self.base_of(operand, row, dtype.size());
                self.still[row][input] = Some(self.kernel.writer.load(StateSpace::Global, dtype, &address));
            }
        }
        let kernel = &mut self.kernel;
        if self.stages.has_positions() {
            let row = kernel.word(kernel.parameters.row());
            let (item, row) = (kernel.in_64_bits(item), kernel.in_64_bits(&row));
            self.position = kernel.result(RegisterKind::Bits64.into(), "mul.lo.u64", &[&item, &row]);
        }
    }

    /// Emits the stages of a row in registers.
    fn held(&mut self) {
        let (key, stages) = (self.key, self.stages);
        let first = self.thread.first.clone();
        let schedule =
            (0..key.rounds).flat_map(|round| (0..key.accesses_per_round).map(move |group| (round, group)));
        let mut accesses: Vec<Access> =
            schedule.map(|(round, group)| self.access(&first, round, group)).collect();
        for (stage_index, stage) in stages.stages.iter().enumerate() {
            let wanted = self.prepare(stage_index);
            self.begin_passes(stage_index);
            // Loads before a store stay before it. Full blocks lack the registers for all loads of the last stage, and so
            // do the many elements of a thread of a column.
            let is_tight = stage.reductions.is_empty() && (key.has_columns || key.warps > WARP / 2);
            let together = if is_tight { TOGETHER } else { accesses.len() };
            if key.has_columns && !stage.reductions.is_empty() {
                for access in &mut accesses {
                    self.load(access, &wanted);
                }
                let folded = self.fold_lanes(stage_index, &mut accesses, &wanted);
                self.mark_saved(stage_index);
                self.fold_columns(&stage.reductions, folded);
                self.end_passes();
                continue;
            }
            if !is_tight && self.loops(stage_index) {
                let lanes = self.rounds(stage_index, &mut accesses, &wanted);
                self.finish_held(stage_index, lanes);
                continue;
            }
            let mut lanes: Vec<Vec<Folded>> = vec![Vec::new(); stage.reductions.len()];
            for at in 0..accesses.len() {
                if at % together == 0 {
                    for access in accesses.iter_mut().skip(at).take(together) {
                        self.load(access, &wanted);
                    }
                }
                let access = &mut accesses[at];
                let all = self.evaluate(stage_index, access, &wanted);
                if stage.reductions.is_empty() {
                    self.store(access, &all);
                }
                for (lanes, &reduction) in lanes.iter_mut().zip(&stage.reductions) {
                    let elements = self.arguments(reduction, access, &all);
                    if at < key.accesses_per_round {
                        lanes.extend(elements);
                        continue;
                    }
                    let append = &self.kernel.compiled.rules.append;
                    let start = at % key.accesses_per_round * key.vector;
                    for (lane, element) in lanes[start..].iter_mut().zip(&elements) {
                        *lane = self.kernel.combine(append, lane, element);
                    }
                }
            }
            self.forget_shared(&mut accesses);
            self.finish_held(stage_index, lanes);
        }
    }

    /// Folds the lanes of a stage to the values of rows.
    fn finish_held(&mut self, stage_index: usize, lanes: Vec<Vec<Folded>>) {
        self.mark_saved(stage_index);
        let folded = lanes.into_iter().zip(&self.stages.stages[stage_index].reductions);
        let folded: Vec<(usize, Folded)> =
            folded.map(|(lanes, &reduction)| (reduction, self.segment(reduction, lanes))).collect();
        self.rows(folded);
        self.end_passes();
    }

    /// Folds the values of segments, which the warps hold, to the values of rows.
    fn rows(&mut self, folded: Vec<(usize, Folded)>) {
        if self.key.warps == 1 {
            for (reduction, value) in folded {
                let is_everywhere = self.exchanges(reduction);
                let value =
                    if is_everywhere { value } else { self.spread(reduction, &value, self.key.threads) };
                self.finish(reduction, &value, 0);
            }
            return;
        }
        let mut all = Vec::with_capacity(folded.len());
        let warp = self.thread.warp.clone();
        for (reduction, value) in folded {
            let planes = self.planes(reduction);
            self.publish(reduction, &planes, &warp, &value);
            all.push((reduction, planes));
        }
        // Independent reductions share the barrier.
        if !all.is_empty() {
            self.barrier();
        }
        for (reduction, planes) in all {
            let value = self.collect(reduction, &planes);
            self.finish(reduction, &value, 0);
        }
    }

    /// Emits the steps of a stage that are the same for the whole row, and stores the outputs per group. Returns
    /// the steps to compute for each element.
    fn prepare(&mut self, stage_index: usize) -> Vec<bool> {
        let stages = self.stages;
        let (program, stage) = (&stages.expression.program, &stages.stages[stage_index]);
        let outputs = stage.outputs.iter().flat_map(|&output| self.output(output));
        let roots: Vec<usize> = outputs.map(|(value, _)| value.index()).collect();
        let needed = stages.needed(roots.into_iter(), |step| self.has[step]);
        let once: Vec<bool> =
            needed.iter().zip(&self.uniform).map(|(needed, uniform)| *needed && *uniform).collect();
        for (known, still) in self.known.iter_mut().zip(&self.still) {
            let load = |input: u32, part: u32| {
                let found = still[input as usize].as_ref();
                found.map_or(Name::new(), |parts| parts[part as usize].clone())
            };
            *known = evaluate_once(&mut self.kernel, program, known, &once, &load);
        }
        if stage.reductions.is_empty() {
            self.finish_groups();
        }
        needed
    }

    /// Returns the values that an output of the expression is stored from, and whether the store rounds them.
    fn output(&self, output: usize) -> [(Value, bool); 2] {
        let stages = self.stages;
        let values = stages.expression.program.outputs[output];
        match output < self.reductions.len() {
            true => values.map(|value| (value, false)),
            false => {
                let dtype = stages.expression.outputs[output];
                values.map(|value| self.kernel.writer.stored(dtype, value))
            }
        }
    }

    /// Makes the value of a reduction in a row of the thread known to later stages.
    fn finish(&mut self, reduction: usize, value: &Folded, row: usize) {
        let compiled = &*self.reductions[reduction].reduction;
        self.kernel.compiled = compiled;
        let value = self.kernel.restored(value);
        let value = self.with_factor(reduction, row, value);
        let program = &compiled.epilogue.program;
        let wanted = program.live(program.outputs[0].into_iter());
        let part_of = |part: u32| if compiled.fold.has_index() { 1 } else { part as usize };
        let load = |_: u32, part: u32| value[part_of(part)].clone();
        let names = evaluate_once(&mut self.kernel, program, &[], &wanted, &load);
        let result = program.outputs[0].map(|value| names[value.index()].clone());
        for (input, of) in self.stages.operands.inputs.iter().enumerate() {
            if *of == PhaseInput::Group(reduction) {
                self.still[row][input] = Some(result.clone());
            }
        }
    }

    /// Records that every element has the values that a stage saves.
    fn mark_saved(&mut self, stage: usize) {
        for (step, saved) in self.has.iter_mut().zip(&self.saved[stage]) {
            *step |= *saved;
        }
    }

    /// Returns the offset of a thread's access from its first element.
    fn offset(&self, round: usize, group: usize) -> usize {
        let apart = if self.key.has_columns { self.key.parts } else { self.key.vector };
        round * LANES + group * self.key.threads * apart
    }

    /// Returns whether output `at` of the program has one value per group.
    fn is_per_group(&self, at: usize) -> bool {
        self.outputs[at].is_per_group
    }

    /// Returns the number of lanes of a warp that hold values of segments.
    fn holders(&self) -> usize {
        self.key.partial_slots.min(WARP)
    }
}
