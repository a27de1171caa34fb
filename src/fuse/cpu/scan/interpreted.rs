//! The interpreted scan: 256 quads at a time, for float products and as the reference of the vector loops.
//!
//! A task is a tile of a row, or several whole rows if they are no longer than a run of 128 elements. Rows of
//! several tiles are read twice: once for the tiles' totals, and again for the results when the prefixes are
//! known. Threads share the tasks, so no result depends on the number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::RUN;
use super::prefixes::TilePrefixes;
use crate::fuse::cpu::block::{Block, LANES as WIDTH};
use crate::fuse::cpu::memory::HostOperand;
use crate::fuse::cpu::reduction::{BlockParts, combine, get, registers, registers_to_restore, restore, set};
use crate::fuse::cpu::run_on_inputs;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::reduction_dimensions::Dimensions;
use crate::fuse::plan::scan::{QUAD, WARPS, accesses, tile};
use crate::fuse::plan::space::Space;
use crate::threads::{run_on_threads, thread_count};

/// The number of elements above which another thread pays for its start.
const ELEMENTS_OF_A_THREAD: usize = 1 << 16;

/// The bits of a value's parts.
type Bits = [u64; 2];

/// Scans the rows of `dimensions`.
pub(super) fn run(
    compiled: &CompiledReduction,
    dimensions: &Dimensions,
    operands: Vec<HostOperand>,
    scalars: &[Bits],
) {
    let scalars = scalars.split_at(compiled.prologue.scalars.len());
    let (row, rows) = (dimensions.row, dimensions.rows);
    Run { compiled, row, rows, space: dimensions.space(true), operands, scalars }.all();
}

/// A run in progress, shared by its threads.
struct Run<'a> {
    compiled: &'a CompiledReduction,
    row: usize,
    rows: usize,
    /// Row after row.
    space: Space,
    operands: Vec<HostOperand>,
    scalars: (&'a [Bits], &'a [Bits]),
}

// SAFETY: threads read the inputs, and each writes output elements that no other thread accesses.
unsafe impl Sync for Run<'_> {}

/// The registers and buffers of a thread.
struct Workspace {
    prologue: Vec<Block>,
    epilogue: Vec<Block>,
    merge: Vec<Block>,
    restore: Vec<Block>,
    /// The values of a task's elements, each row padded with the identity; afterwards the results.
    flat: Vec<Bits>,
    /// For each 256 quads, the inclusive scan within each quad and the inclusive scan of the quads.
    quads: Vec<[Box<BlockParts>; QUAD]>,
    through: Vec<Box<BlockParts>>,
    scratch: Box<BlockParts>,
    right: Box<BlockParts>,
}

impl Run<'_> {
    fn all(&self) {
        let threads = thread_count().min((self.row * self.rows).div_ceil(ELEMENTS_OF_A_THREAD));
        if self.row <= RUN * QUAD {
            let lanes = self.row.div_ceil(QUAD).next_power_of_two();
            let together = WIDTH / lanes;
            self.share(threads, self.rows.div_ceil(together), |workspace, task| {
                let rows = task * together..self.rows.min((task + 1) * together);
                self.load(workspace, rows.clone(), 0..self.row, lanes);
                self.scan_lanes(workspace, rows.len() * lanes, lanes);
                self.finish(workspace, rows.len() * lanes, lanes, &[], None);
                self.store(workspace, rows, 0..self.row, lanes);
            });
            return;
        }
        let of_one = tile(&self.compiled.rules);
        let tiles = self.row.div_ceil(of_one);
        let of_tile = |task: usize| {
            let (row, tile) = (task / tiles, task % tiles);
            (row, tile * of_one..self.row.min((tile + 1) * of_one))
        };
        let whole: Vec<Mutex<Bits>> = (0..if tiles > 1 { self.rows * tiles } else { 0 })
            .map(|_| Mutex::new(self.compiled.rules.identity))
            .collect();
        if tiles > 1 {
            self.share(threads, self.rows * tiles, |workspace, task| {
                let (row, span) = of_tile(task);
                let (_, value) = self.tile(workspace, row, span);
                *whole[task].lock().unwrap_or_else(PoisonError::into_inner) = value;
            });
        }
        let whole: Vec<Bits> = whole
            .into_iter()
            .map(|value| value.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let before = self.before_tiles(&whole, tiles);
        self.share(threads, self.rows * tiles, |workspace, task| {
            let (row, span) = of_tile(task);
            let (before_runs, _) = self.tile(workspace, row, span.clone());
            let quads = span.len().div_ceil(QUAD);
            self.finish(workspace, quads, RUN, &before_runs, before.get(task).copied());
            self.store(workspace, row..row + 1, span, quads);
        });
    }

    /// Runs tasks on threads.
    fn share(&self, threads: usize, tasks: usize, task: impl Fn(&mut Workspace, usize) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut workspace = Workspace::new(self);
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= tasks {
                    break;
                }
                task(&mut workspace, at);
            }
        };
        run_on_threads(threads.min(tasks), &work);
    }

    /// Computes the values of a span of rows, each padded to `quads` quads.
    fn load(&self, workspace: &mut Workspace, rows: Range<usize>, span: Range<usize>, quads: usize) {
        let CompiledReduction { prologue, rules, .. } = self.compiled;
        let (program, allocation) = (&prologue.program, &prologue.allocation);
        workspace.flat.clear();
        workspace.flat.resize(rows.len() * quads * QUAD, rules.identity);
        // Whole rows are one span.
        let (start, end) = match rows.len() {
            1 => (rows.start * self.row + span.start, rows.start * self.row + span.end),
            _ => (rows.start * self.row, rows.end * self.row),
        };
        for from in (start..end).step_by(WIDTH) {
            let count = WIDTH.min(end - from);
            let mut load = |input: u32, part: u32, block: &mut Block| {
                let (operand, part) = (input as usize, part as usize);
                // SAFETY: the space's elements are those of the layouts, which have been checked against the
                // memory, and nobody writes an input.
                unsafe { self.operands[operand].load(&self.space, operand, part, from, count, block) };
            };
            let registers = &mut workspace.prologue;
            run_on_inputs(program, allocation, self.scalars.0, registers, &allocation.each, count, &mut load);
            for (part, kind) in rules.kinds.iter().enumerate() {
                let values = &registers[allocation.register(program.outputs[0][part])];
                for lane in 0..count {
                    let (row, at) = ((from - start + lane) / span.len(), (from - start + lane) % span.len());
                    workspace.flat[row * quads * QUAD + at][part] = get(values, *kind, lane);
                }
            }
        }
    }

    /// Stores `flat`, which is arranged as by [`load`](Self::load).
    fn store(&self, workspace: &mut Workspace, rows: Range<usize>, span: Range<usize>, quads: usize) {
        let CompiledReduction { epilogue, rules, .. } = self.compiled;
        let (program, allocation) = (&epilogue.program, &epilogue.allocation);
        let output = self.operands.len() - 1;
        let (start, end) = match rows.len() {
            1 => (rows.start * self.row + span.start, rows.start * self.row + span.end),
            _ => (rows.start * self.row, rows.end * self.row),
        };
        for from in (start..end).step_by(WIDTH) {
            let count = WIDTH.min(end - from);
            let flat = &workspace.flat;
            let mut load = |_: u32, part: u32, block: &mut Block| {
                let kind = rules.kinds[part as usize];
                for lane in 0..count {
                    let (row, at) = ((from - start + lane) / span.len(), (from - start + lane) % span.len());
                    set(block, kind, lane, flat[row * quads * QUAD + at][part as usize]);
                }
            };
            let registers = &mut workspace.epilogue;
            run_on_inputs(program, allocation, self.scalars.1, registers, &allocation.each, count, &mut load);
            let values = program.outputs[0].map(|value| &registers[allocation.register(value)]);
            // SAFETY: the elements are those of the output's layout, which has been checked against the
            // memory, and no other task has these.
            unsafe { self.operands[output].store(&self.space, output, from, count, values) };
        }
    }

    /// Scans quads, and the lanes of each `run` of quads.
    fn scan_lanes(&self, workspace: &mut Workspace, quads: usize, run: usize) {
        for (chunk, from) in (0..quads).step_by(WIDTH).enumerate() {
            let count = WIDTH.min(quads - from);
            if workspace.quads.len() == chunk {
                workspace.quads.push([(); QUAD].map(|()| empty()));
                workspace.through.push(empty());
            }
            let Workspace { quads, through, flat, merge, scratch, .. } = workspace;
            let (quads, through) = (&mut quads[chunk], &mut through[chunk]);
            for at in 0..QUAD {
                for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
                    for lane in 0..count {
                        set(&mut quads[at][part], *kind, lane, flat[(from + lane) * QUAD + at][part]);
                    }
                }
                if at > 0 {
                    **scratch = *quads[at - 1];
                    combine(self.compiled, true, merge, scratch, &quads[at], count);
                    *quads[at] = **scratch;
                }
            }
            **through = *quads[QUAD - 1];
            let mut distance = 1;
            while distance < run {
                for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
                    for lane in 0..count {
                        let lower = (lane & !(2 * distance - 1)) + distance - 1;
                        set(
                            &mut scratch[part],
                            *kind,
                            lane,
                            get(&through[part], *kind, lower.min(count - 1)),
                        );
                    }
                }
                combine(self.compiled, true, merge, scratch, through, count);
                for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
                    for lane in (0..count).filter(|lane| lane & distance != 0) {
                        set(&mut through[part], *kind, lane, get(&scratch[part], *kind, lane));
                    }
                }
                distance *= 2;
            }
        }
    }

    /// Scans within a tile. Returns the prefix of each run of 128 elements, and the tile's total.
    fn tile(&self, workspace: &mut Workspace, row: usize, span: Range<usize>) -> (Vec<Bits>, Bits) {
        let quads = span.len().div_ceil(QUAD);
        self.load(workspace, row..row + 1, span, quads);
        self.scan_lanes(workspace, quads, RUN);
        let identity = self.compiled.rules.identity;
        let mut totals = vec![identity; WARPS * accesses(&self.compiled.rules)];
        for (run, total) in totals.iter_mut().enumerate().take(quads.div_ceil(RUN)) {
            let last = (run * RUN + RUN - 1).min(quads - 1);
            *total = self.bits(&workspace.through[last / WIDTH], last % WIDTH);
        }
        let mut both = |left: Bits, right: Bits| self.merge_bits(workspace, left, right);
        let mut before_runs = Vec::with_capacity(totals.len());
        let mut before_warp = identity;
        for runs in totals.chunks(accesses(&self.compiled.rules)) {
            let mut before_access = identity;
            for &total in runs {
                before_runs.push(both(before_warp, before_access));
                before_access = both(before_access, total);
            }
            before_warp = both(before_warp, before_access);
        }
        (before_runs, before_warp)
    }

    /// Writes the results of all quads to `flat`: the prefix of the tile, the prefix of the run, the quads
    /// before within the run, and the elements of the quad.
    fn finish(
        &self,
        workspace: &mut Workspace,
        quads: usize,
        run: usize,
        before_runs: &[Bits],
        before_tile: Option<Bits>,
    ) {
        let CompiledReduction { rules, .. } = self.compiled;
        for (chunk, from) in (0..quads).step_by(WIDTH).enumerate() {
            let count = WIDTH.min(quads - from);
            let Workspace { quads, through, flat, merge, restore: of_restore, scratch, .. } = workspace;
            let (quads, through) = (&mut quads[chunk], &through[chunk]);
            let mut before = empty();
            for (part, kind) in rules.kinds.iter().enumerate() {
                for lane in 0..count {
                    let bits = match lane % run {
                        0 => rules.identity[part],
                        _ => get(&through[part], *kind, lane - 1),
                    };
                    set(&mut before[part], *kind, lane, bits);
                }
            }
            let outer = |value: &dyn Fn(usize) -> Bits| {
                let mut outer = empty();
                for (part, kind) in rules.kinds.iter().enumerate() {
                    for lane in 0..count {
                        set(&mut outer[part], *kind, lane, value(lane)[part]);
                    }
                }
                outer
            };
            // From the inside: the prefix of a quad's run, then the prefix of the tile.
            let mut outside = Vec::new();
            if !before_runs.is_empty() {
                outside.push(outer(&|lane| before_runs[(from + lane) / run]));
            }
            outside.extend(before_tile.map(|before| outer(&|_| before)));
            for at in 0..QUAD {
                **scratch = *before;
                combine(self.compiled, true, merge, scratch, &quads[at], count);
                for outside in &outside {
                    let inner = **scratch;
                    **scratch = **outside;
                    combine(self.compiled, true, merge, scratch, &inner, count);
                }
                restore(self.compiled, of_restore, scratch, count);
                for (part, kind) in rules.kinds.iter().enumerate() {
                    for lane in 0..count {
                        flat[(from + lane) * QUAD + at][part] = get(&scratch[part], *kind, lane);
                    }
                }
            }
        }
    }

    /// Returns the prefix of each tile of each row.
    fn before_tiles(&self, whole: &[Bits], tiles: usize) -> Vec<Bits> {
        let mut workspace = Workspace::new(self);
        let mut both = |left: Bits, right: Bits| self.merge_bits(&mut workspace, left, right);
        let mut before = Vec::with_capacity(whole.len());
        for row in whole.chunks(tiles.max(1)) {
            let mut prefixes = TilePrefixes::new(self.compiled.rules.identity);
            for &value in row {
                before.push(prefixes.next(&mut both));
                prefixes.push(value, &mut both);
            }
        }
        before
    }

    fn bits(&self, values: &BlockParts, lane: usize) -> Bits {
        let mut bits = [0; 2];
        for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
            bits[part] = get(&values[part], *kind, lane);
        }
        bits
    }

    fn merge_bits(&self, workspace: &mut Workspace, left: Bits, right: Bits) -> Bits {
        let Workspace { merge, scratch, right: rights, .. } = workspace;
        for (part, kind) in self.compiled.rules.kinds.iter().enumerate() {
            set(&mut scratch[part], *kind, 0, left[part]);
            set(&mut rights[part], *kind, 0, right[part]);
        }
        combine(self.compiled, true, merge, scratch, rights, 1);
        self.bits(scratch, 0)
    }
}

fn empty() -> Box<BlockParts> {
    Box::new([[0; WIDTH]; 2])
}

impl Workspace {
    fn new(run: &Run<'_>) -> Workspace {
        let CompiledReduction { prologue, epilogue, rules, merge, .. } = run.compiled;
        Workspace {
            prologue: registers(&prologue.program, &prologue.allocation, run.scalars.0),
            epilogue: registers(&epilogue.program, &epilogue.allocation, run.scalars.1),
            merge: registers(&rules.merge, merge, &[]),
            restore: registers_to_restore(run.compiled),
            flat: Vec::new(),
            quads: Vec::new(),
            through: Vec::new(),
            scratch: empty(),
            right: empty(),
        }
    }
}
