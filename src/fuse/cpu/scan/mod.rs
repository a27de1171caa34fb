//! Scans on the CPU.
//!
//! Sums, extremes and products of integers are vector loops over memory, or over a scratch buffer if an expression
//! precedes the fold ([`kernel`]). Products of floats have a wider exponent and are interpreted ([`interpreted`]).
//!
//! A tile's total is known before the next tile, so a thread reads a row once. Threads share rows, or the tiles of
//! few long rows; they then read the tiles twice: once for the totals, and again for the results when the prefixes
//! are known. Both follow the documented order, so no result depends on the number of threads.

mod interpreted;
mod kernel;
mod prefixes;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use super::backend::CpuCode;
use super::block::{Block, LANES as WIDTH};
use super::memory::HostOperand;
use super::reduction::{Extreme, MergeKernel, Product, Prologue, Source, Sum, registers};
use super::scratch::Scratch;
use super::{HostInput, HostOutput, run_on_inputs};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::language::fold::FoldLoop;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::reduction_dimensions::Dimensions;
use crate::fuse::plan::scan::{self, QUAD, accesses, tile};
use crate::fuse::plan::space::Space;
use crate::threads::{run_on_threads, threads_for};
use crate::types::{DType, Layout};
use kernel::{LANES, RUN_ELEMENTS, Runs, finish_runs, scan_runs};
use prefixes::TilePrefixes;

/// Quads of a run of lanes.
const RUN: usize = 32;
/// Elements from which a task is worth its count.
const ELEMENTS_OF_A_TASK: usize = 1 << 14;
/// Estimated picoseconds of an element's scan.
const SCAN_TIME: usize = 250;

/// The implementation of a run.
#[derive(Clone, Copy)]
pub(in crate::fuse) enum Implementation {
    #[cfg(test)]
    Interpreter,
    /// Vector loops where there are some, on so many threads or as many as the work pays for.
    Vectors(Option<usize>),
}

/// Computes a scan along an axis. `code` is that of its prologue.
///
/// # Errors
///
/// As [`Scan::run_host`](crate::fuse::Scan::run_host).
pub(in crate::fuse) fn run_host(
    (compiled, code): (&CompiledReduction, &CpuCode),
    inputs: &[HostInput<'_>],
    scalars: &[Number],
    output: &mut HostOutput<'_>,
    axis: usize,
    implementation: Implementation,
) -> Result<()> {
    let bits = compiled.scalar_bits(scalars)?;
    let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(HostInput::described).collect();
    let dimensions = compiled.scan_dimensions(&of_inputs, output.described(), axis)?;
    if dimensions.rows == 0 || dimensions.row == 0 {
        return Ok(());
    }
    let mut operands = Vec::with_capacity(inputs.len() + 1);
    for (input, (dtype, _)) in inputs.iter().zip(&of_inputs) {
        let memory = input.memory();
        let memory = memory
            .ok_or_else(|| Error::invalid("a scan", "an in-place input", "an input with its own memory"))?;
        operands.push(HostOperand { memory: memory.cast_mut(), dtype: *dtype });
    }
    operands.push(HostOperand { memory: output.memory(), dtype: compiled.output() });
    let is_interpreted = compiled.fold.is_product_of_floats(compiled.prologue.outputs[0]);
    match implementation {
        Implementation::Vectors(threads) if !is_interpreted => {
            run((compiled, code), &dimensions, operands, &bits, threads);
        }
        _ => interpreted::run(compiled, &dimensions, operands, &bits),
    }
    Ok(())
}

/// Runs any scan but a product of floats.
fn run(
    (compiled, code): (&CompiledReduction, &CpuCode),
    dimensions: &Dimensions,
    operands: Vec<HostOperand>,
    scalars: &[[u64; 2]],
    threads: Option<usize>,
) {
    use crate::fuse::ir::instruction::RegisterKind::{Bits32, Bits64, Float32, Float64, Predicate};
    let run = Run::new((compiled, code), dimensions, operands, scalars, threads);
    let signed = compiled.prologue.outputs[0].is_signed_integer();
    let cpu_loop = compiled.fold.cpu_loop();
    let (sum, least) = (cpu_loop == FoldLoop::Sum, cpu_loop == FoldLoop::Minimum);
    match compiled.rules.kinds[0] {
        Float32 if sum => run.all(Sum::<f32>::new()),
        Float64 if sum => run.all(Sum::<f64>::new()),
        Bits64 if sum => run.all(Sum::<u64>::new()),
        Bits64 if cpu_loop == FoldLoop::Product => run.all(Product),
        Float32 => run.all(Extreme::<f32>::new(least, true)),
        Float64 => run.all(Extreme::<f64>::new(least, true)),
        Bits64 => run.all(Extreme::<i64>::new(least, signed)),
        // Narrow integers are extended to 32 bits by their sign.
        Bits32 | Predicate => run.all(Extreme::<i32>::new(least, signed)),
    }
}

/// A run in progress, shared by its threads.
struct Run<'a> {
    compiled: &'a CompiledReduction,
    row: usize,
    rows: usize,
    source: Source<'a>,
    /// Row after row.
    space: Space,
    scalars_behind: &'a [[u64; 2]],
    threads: usize,
}

/// The registers and buffers of a thread.
struct Workspace<'s, T> {
    prologue: Prologue<'s>,
    epilogue: Vec<Block>,
    scratch: Scratch<T>,
    /// Elements of eight runs, of which some may be missing.
    padded: Scratch<T>,
    runs: Box<Runs<T>>,
    /// Results that are stored through the epilogue, by part.
    results: [Vec<T>; 2],
}

impl<'a> Run<'a> {
    fn new(
        (compiled, code): (&'a CompiledReduction, &'a CpuCode),
        dimensions: &Dimensions,
        operands: Vec<HostOperand>,
        scalars: &'a [[u64; 2]],
        threads: Option<usize>,
    ) -> Run<'a> {
        let (before, scalars_behind) = scalars.split_at(compiled.prologue.scalars.len());
        let source = Source::new(
            (&compiled.prologue, code),
            &compiled.epilogue,
            dimensions.space(true),
            operands,
            before,
        );
        let (row, rows) = (dimensions.row, dimensions.rows);
        let time = source.estimate(row * rows).saturating_add((row * rows).saturating_mul(SCAN_TIME));
        let threads = threads.unwrap_or_else(|| threads_for(time));
        Run { compiled, row, rows, source, space: dimensions.space(true), scalars_behind, threads }
    }

    fn all<K: MergeKernel>(&self, kernel: K) {
        let size = tile(&self.compiled.rules);
        let tiles = self.row.div_ceil(size);
        if tiles > 1 && self.threads > 1 && self.rows < 4 * self.threads {
            return self.all_by_tiles(kernel, tiles);
        }
        let rows_of_a_task = (ELEMENTS_OF_A_TASK / self.row).max(1).next_multiple_of(LANES);
        let rows_of_a_task = if self.row > RUN_ELEMENTS { rows_of_a_task / LANES } else { rows_of_a_task };
        self.share(self.rows.div_ceil(rows_of_a_task), |workspace, task| {
            let rows = task * rows_of_a_task..self.rows.min((task + 1) * rows_of_a_task);
            if self.row <= RUN_ELEMENTS {
                for first in rows.clone().step_by(LANES) {
                    self.short_rows(kernel, workspace, first..rows.end.min(first + LANES));
                }
                return;
            }
            for row in rows {
                let mut prefixes = match tiles {
                    1 => None,
                    _ => Some([(); 2].map(|()| TilePrefixes::new(self.identity(kernel)))),
                };
                let mut both = |left, right| kernel.merge(left, right);
                for tile in 0..tiles {
                    let before = prefixes
                        .as_mut()
                        .map(|prefixes| prefixes.each_mut().map(|prefixes| prefixes.next(&mut both)));
                    let total = self.tile(kernel, workspace, row, self.span(tile), before, true);
                    if let Some(prefixes) = &mut prefixes {
                        prefixes.iter_mut().zip(total).for_each(|(prefixes, total)| {
                            prefixes.push(total, &mut both);
                        });
                    }
                }
            }
        });
    }

    /// Scans few long rows, whose tiles the threads share.
    fn all_by_tiles<K: MergeKernel>(&self, kernel: K, tiles: usize) {
        let identity = [self.identity(kernel); 2];
        let totals: Vec<Mutex<[K::Lane; 2]>> = (0..self.rows * tiles).map(|_| Mutex::new(identity)).collect();
        self.share(totals.len(), |workspace, task| {
            let (row, tile) = (task / tiles, task % tiles);
            // Nothing follows the last tile.
            if tile + 1 < tiles {
                let total = self.tile(kernel, workspace, row, self.span(tile), None, false);
                *totals[task].lock().unwrap_or_else(PoisonError::into_inner) = total;
            }
        });
        let mut both = |left, right| kernel.merge(left, right);
        let mut before = Vec::with_capacity(totals.len());
        for row in totals.chunks(tiles) {
            let mut prefixes = identity.map(TilePrefixes::new);
            for total in row {
                let total = *total.lock().unwrap_or_else(PoisonError::into_inner);
                before.push(prefixes.each_mut().map(|prefixes| prefixes.next(&mut both)));
                prefixes.iter_mut().zip(total).for_each(|(prefixes, total)| prefixes.push(total, &mut both));
            }
        }
        self.share(totals.len(), |workspace, task| {
            let (row, tile) = (task / tiles, task % tiles);
            self.tile(kernel, workspace, row, self.span(tile), before.get(task).copied(), true);
        });
    }

    /// Runs tasks on threads.
    fn share<T: Pod>(&self, tasks: usize, task: impl Fn(&mut Workspace<'_, T>, usize) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            let epilogue = &self.compiled.epilogue;
            let mut workspace = Workspace {
                prologue: self.source.prologue(),
                epilogue: registers(&epilogue.program, &epilogue.allocation, self.scalars_behind),
                scratch: Scratch::default(),
                padded: Scratch::new(LANES * RUN_ELEMENTS),
                runs: Runs::new(),
                results: [Vec::new(), Vec::new()],
            };
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= tasks {
                    break;
                }
                task(&mut workspace, at);
            }
        };
        run_on_threads(self.threads.min(tasks), &work);
    }

    /// Returns the elements of a tile within its row.
    fn span(&self, tile: usize) -> Range<usize> {
        let size = scan::tile(&self.compiled.rules);
        tile * size..self.row.min((tile + 1) * size)
    }

    fn parts(&self) -> usize {
        self.compiled.rules.kinds.len()
    }

    /// Returns the key of a missing element.
    fn identity<K: MergeKernel>(&self, kernel: K) -> K::Lane {
        let bits = self.compiled.rules.identity[0];
        kernel.key(match size_of::<K::Lane>() {
            4 => bytemuck::pod_read_unaligned(&(bits as u32).to_ne_bytes()),
            _ => bytemuck::pod_read_unaligned(&bits.to_ne_bytes()),
        })
    }

    /// Scans a tile, and writes its results if `writes` is set. Returns the total of each part if the tile is whole.
    fn tile<K: MergeKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        row: usize,
        span: Range<usize>,
        before: Option<[K::Lane; 2]>,
        writes: bool,
    ) -> [K::Lane; 2] {
        let (start, count) = (row * self.row + span.start, span.len());
        let mut totals = [self.identity(kernel); 2];
        let direct = self.target(start, count);
        for part in 0..self.parts() {
            let Workspace { prologue, scratch, padded, runs, results, .. } = workspace;
            let elements = match self.source.direct(start, count) {
                Some(elements) => elements,
                None => prologue.values(scratch, part, start, count),
            };
            let to = match direct {
                _ if !writes => None,
                Some(target) => Some(target),
                None => {
                    let of_part = &mut results[part];
                    of_part.resize(of_part.len().max(count), K::Lane::zeroed());
                    Some(of_part.as_mut_ptr())
                }
            };
            let before = before.map(|before| before[part]);
            // SAFETY: there are `count` elements from the target's address or in the vector of the part. No other task has
            // them.
            totals[part] = unsafe { self.scan(kernel, runs, padded, elements, before, to) };
        }
        if writes && direct.is_none() {
            self.store(workspace, start, count);
        }
        totals
    }

    /// Scans the elements of a tile. Returns its total if it is whole.
    ///
    /// # Safety
    ///
    /// Memory from `to` has a place for each element, which nobody else accesses.
    unsafe fn scan<K: MergeKernel>(
        &self,
        kernel: K,
        runs: &mut Runs<K::Lane>,
        padded: &mut [K::Lane],
        elements: &[K::Lane],
        before: Option<K::Lane>,
        to: Option<*mut K::Lane>,
    ) -> K::Lane {
        let (identity, accesses) = (self.identity(kernel), accesses(&self.compiled.rules));
        let (mut before_part, mut before_run, mut finished) = (identity, identity, 0);
        for (index, group) in elements.chunks(LANES * RUN_ELEMENTS).enumerate() {
            let is_whole = group.len() == LANES * RUN_ELEMENTS;
            if is_whole {
                runs.read(group, RUN_ELEMENTS, RUN);
            } else {
                // Elements behind the last one have no effect on those before.
                padded[..group.len()].copy_from_slice(group);
                runs.read(padded, RUN_ELEMENTS, RUN);
            }
            scan_runs(kernel, runs, RUN);
            let mut before_runs = [identity; LANES];
            for (before, total) in before_runs.iter_mut().zip(runs.totals()) {
                *before = kernel.merge(before_part, before_run);
                before_run = kernel.merge(before_run, total);
                finished += 1;
                if finished % accesses == 0 {
                    before_part = kernel.merge(before_part, before_run);
                    before_run = identity;
                }
            }
            let Some(to) = to else { continue };
            finish_runs(kernel, runs, RUN, Some(before_runs), before);
            let to = to.wrapping_add(index * LANES * RUN_ELEMENTS);
            // SAFETY: the caller guarantees a place for each element, and `padded` has one for each of eight runs.
            unsafe {
                if is_whole {
                    runs.write(to, RUN_ELEMENTS, RUN);
                } else {
                    runs.write(padded.as_mut_ptr(), RUN_ELEMENTS, RUN);
                    to.copy_from_nonoverlapping(padded.as_ptr(), group.len());
                }
            }
        }
        before_part
    }

    /// Scans at most eight rows of at most a run.
    fn short_rows<K: MergeKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        rows: Range<usize>,
    ) {
        let quads = self.row.div_ceil(QUAD);
        let pitch = quads * QUAD;
        let (start, count) = (rows.start * self.row, rows.len() * self.row);
        let is_direct =
            (0..rows.len()).all(|row| self.target::<K::Lane>(start + row * self.row, self.row).is_some());
        for part in 0..self.parts() {
            let Workspace { prologue, scratch, padded, runs, results, .. } = workspace;
            let is_read = rows.clone().zip(padded.chunks_exact_mut(pitch)).all(|(row, to)| {
                let elements = self.source.direct(row * self.row, self.row);
                elements.is_some_and(|elements| {
                    to[..self.row].copy_from_slice(elements);
                    true
                })
            });
            if !is_read {
                let values = prologue.values(scratch, part, start, count);
                for (row, to) in values.chunks_exact(self.row).zip(padded.chunks_exact_mut(pitch)) {
                    to[..self.row].copy_from_slice(row);
                }
            }
            runs.read(padded, pitch, quads);
            scan_runs(kernel, runs, quads);
            finish_runs(kernel, runs, quads, None, None);
            // SAFETY: `padded` has a place for each of eight runs.
            unsafe { runs.write(padded.as_mut_ptr(), pitch, quads) };
            results[part].clear();
            for (row, from) in rows.clone().zip(padded.chunks_exact(pitch)) {
                match self.target::<K::Lane>(row * self.row, self.row) {
                    // SAFETY: the target has so many elements, and no other task has them.
                    Some(target) if is_direct => unsafe {
                        target.copy_from_nonoverlapping(from.as_ptr(), self.row);
                    },
                    _ => results[part].extend_from_slice(&from[..self.row]),
                }
            }
        }
        if !is_direct {
            self.store(workspace, start, count);
        }
    }

    /// Returns the address of adjacent elements of the output, if they are the folded values as they are.
    fn target<T: Pod>(&self, start: usize, count: usize) -> Option<*mut T> {
        (self.parts() == 1).then(|| self.source.target(start, count)).flatten()
    }

    /// Stores the results in the workspace through the epilogue.
    fn store<T: Pod>(&self, workspace: &mut Workspace<'_, T>, start: usize, count: usize) {
        let (program, allocation) = (&self.compiled.epilogue.program, &self.compiled.epilogue.allocation);
        let Workspace { epilogue, results, .. } = workspace;
        for from in (0..count).step_by(WIDTH) {
            let count = WIDTH.min(count - from);
            let mut load = |_: u32, part: u32, block: &mut Block| {
                // A real value has one part, which the second stands for too.
                let values = &results[(part as usize).min(self.parts() - 1)][from..from + count];
                bytemuck::cast_slice_mut::<u64, T>(block)[..count].copy_from_slice(values);
            };
            run_on_inputs(
                program,
                allocation,
                self.scalars_behind,
                epilogue,
                &allocation.each,
                count,
                &mut load,
            );
            let values = program.outputs[0].map(|value| &epilogue[allocation.register(value)]);
            // SAFETY: the elements are those of the output's layout, which has been checked against the memory,
            // and no other task has these.
            unsafe { self.source.store(&self.space, start + from, count, values) };
        }
    }
}

#[cfg(test)]
mod tests;
