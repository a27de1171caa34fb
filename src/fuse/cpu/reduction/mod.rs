//! Reductions on the CPU.
//!
//! Sums, extremes, tests and products of integers are plain vector loops over the elements of memory, or over a scratch buffer of
//! [`SCRATCH`](source::SCRATCH) elements, which machine code or the interpreter fills, if an expression precedes the fold
//! ([`rows`] and [`columns`], with the kernels of [`kernel`]). Products of floats have a wider exponent and are interpreted
//! block by block ([`interpreted`]).
//!
//! Float sums follow the documented tree in every path. Extremes, sums and products of integers have the same value in any
//! order. Threads share tasks that are nodes of the tree, so no result depends on the number of threads.
//!
//! A sum of squares that has left the range is added again with a factor ([`Fold::SumOfSquares`](crate::fuse::Fold)); only
//! tasks with such rows run again.

mod columns;
mod interpreted;
mod kernel;
mod ordered;
mod rows;
mod source;
mod vectors;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::backend::CpuCode;
use super::block::{Block, LANES as WIDTH};
use super::memory::HostOperand;
use super::scratch::Scratch;
use super::{HostInput, HostOutput, run_on_inputs};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::language::fold::{FoldLoop, Rescale, RescalingBits};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::compiled_reduction::CompiledReduction;
use crate::fuse::plan::reduction::SEGMENT;
use crate::fuse::plan::reduction_dimensions::{Dimension, Dimensions};
use crate::fuse::plan::space::Space;
use crate::threads::{run_on_threads, threads_for};
use crate::types::{DType, Layout};
pub(super) use interpreted::{BlockParts, combine, get, registers, registers_to_restore, restore, set};
pub(super) use kernel::{Extreme, MergeKernel, Product, Sum};
use kernel::{FoldKernel, Neighbours};
#[cfg(target_arch = "x86_64")]
use source::input_of;
pub(super) use source::{Prologue, Source};
pub(super) use vectors::vectorized;

/// The segments of a task if rows are few; a power of two.
const SEGMENTS_OF_A_TASK: usize = 64;
/// The rows of a task whose rows are contiguous.
const ROWS_OF_A_TASK: usize = 16;
/// Rows shorter than this are folded across rows, if there are enough rows.
const SHORT: usize = 32;
/// The largest number of columns that are folded together.
const COLUMNS: usize = 64;

/// The machine code of a reduction's expressions. Clones share it.
#[derive(Clone, Default)]
pub(in crate::fuse) struct ReductionCode {
    pub(in crate::fuse) prologue: CpuCode,
    pub(in crate::fuse) rescaled: CpuCode,
    pub(in crate::fuse) epilogue: CpuCode,
}

/// Computes a reduction, with the interpreter for every fold if `interpreted` is set.
///
/// # Errors
///
/// As [`Reduction::run_host`](crate::fuse::Reduction::run_host).
pub(in crate::fuse) fn run_host(
    (compiled, code): (&CompiledReduction, &ReductionCode),
    inputs: &[HostInput<'_>],
    scalars: &[Number],
    output: &mut HostOutput<'_>,
    interpreted: bool,
) -> Result<()> {
    let bits = compiled.scalar_bits(scalars)?;
    let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(HostInput::described).collect();
    let dimensions = compiled.dimensions(&of_inputs, output.described())?;
    if dimensions.rows == 0 {
        return Ok(());
    }
    if dimensions.row == 0 {
        let (bytes, layout) = compiled.empty_value(output.described().1)?;
        // Words, so that the address is aligned for any element.
        let mut words = [0u64; 2];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        let memory = &bytemuck::cast_slice(&words)[..bytes.len()];
        let input = HostInput::of_bytes(compiled.accumulator(), memory, layout)?;
        return super::run_host(
            &compiled.epilogue,
            &code.epilogue,
            &[input],
            compiled.scalars_of_last(scalars),
            std::slice::from_mut(output),
        );
    }
    let mut operands = Vec::with_capacity(inputs.len() + 1);
    for (input, (dtype, _)) in inputs.iter().zip(&of_inputs) {
        let memory = input.memory().ok_or_else(|| {
            Error::invalid(compiled.fold.name(), "an in-place input", "an input with its own memory")
        })?;
        operands.push(HostOperand { memory: memory.cast_mut(), dtype: *dtype });
    }
    operands.push(HostOperand { memory: output.memory(), dtype: compiled.output() });
    let is_product_of_floats =
        compiled.prologue.outputs.first().is_some_and(|dtype| compiled.fold.is_product_of_floats(*dtype));
    // The interpreter rescales nothing.
    let interpreted = interpreted && compiled.rescaled.is_none();
    match interpreted || is_product_of_floats {
        true => interpreted::run(compiled, dimensions, operands, &bits),
        false => run((compiled, code), dimensions, operands, &bits),
    }
}

/// Evaluates an expression with the kernel of a fold other than a product of floats.
macro_rules! with_kernel {
    ($compiled:expr, $kernel:ident => $body:expr) => {{
        use crate::fuse::ir::instruction::RegisterKind::{Bits32, Bits64, Float32, Float64, Predicate};
        let compiled: &CompiledReduction = $compiled;
        let dtype = compiled.prologue.outputs[0];
        let (cpu_loop, signed) = (compiled.fold.cpu_loop(), dtype.is_signed_integer());
        let (sum, least) = (cpu_loop == FoldLoop::Sum, cpu_loop == FoldLoop::Minimum);
        macro_rules! with {
            ($value:expr) => {{
                let $kernel = $value;
                $body
            }};
        }
        match compiled.rules.kinds[0] {
            Float32 if sum => with!(Sum::<f32>::new()),
            Float64 if sum => with!(Sum::<f64>::new()),
            Bits64 if sum => with!(Sum::<u64>::new()),
            Bits64 if cpu_loop == FoldLoop::Product => with!(Product),
            Float32 => with!(Extreme::<f32>::new(least, true)),
            Float64 => with!(Extreme::<f64>::new(least, true)),
            Bits64 => with!(Extreme::<i64>::new(least, signed)),
            // Narrow integers are extended to 32 bits by their sign.
            Bits32 | Predicate => with!(Extreme::<i32>::new(least, signed)),
        }
    }};
}

/// Runs any fold but a product of floats.
fn run(
    (compiled, code): (&CompiledReduction, &ReductionCode),
    dimensions: Dimensions,
    operands: Vec<HostOperand>,
    scalars: &[[u64; 2]],
) -> Result<()> {
    let Some(rescaled) = &compiled.rescaled else {
        let run = Run::new(compiled, (&compiled.prologue, &code.prologue), dimensions, operands, scalars);
        return with_kernel!(compiled, kernel => run.all(kernel, None));
    };
    let first = Run::new(
        compiled,
        (&compiled.prologue, &code.prologue),
        dimensions.clone(),
        operands.clone(),
        scalars,
    );
    with_kernel!(compiled, kernel => first.all(kernel, None))?;
    let width = first.rows_of_a_task();
    let mut rare = first.rare.into_inner().unwrap_or_else(PoisonError::into_inner);
    if rare.is_empty() {
        return Ok(());
    }
    rare.sort_unstable_by_key(|(row, _)| *row);
    let Dimensions { rows, .. } = dimensions;
    let mut groups: Vec<usize> = rare.iter().map(|(row, _)| row / width).collect();
    groups.dedup();
    // One type for both dtypes: f32 has the lower half.
    let dtype = compiled.prologue.outputs[0];
    let bytes = dtype.size();
    let one = RescalingBits::new(compiled.rules.kinds[0]).one;
    let mut factors: Vec<u64> = slots(compiled.fold.name(), (rows * bytes).div_ceil(8))?;
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut factors);
    memory.chunks_exact_mut(bytes).take(rows).for_each(|to| to.copy_from_slice(&one.to_le_bytes()[..bytes]));
    for (row, factor) in &rare {
        memory[row * bytes..][..bytes].copy_from_slice(&factor.to_le_bytes()[..bytes]);
    }
    let mut operands = operands;
    operands.insert(operands.len() - 1, HostOperand { memory: memory.as_mut_ptr(), dtype });
    let mut again =
        Run::new(compiled, (rescaled, &code.rescaled), dimensions.with_row_values(), operands, scalars);
    again.factors = memory;
    // Rows have the same tasks as before.
    again.width = Some(width);
    with_kernel!(compiled, kernel => again.all(kernel, Some(&groups)))
}

/// Returns a slot for the partial value of each task. A broadcast row may have more tasks than the host has memory for.
fn slots<T: Default>(operation: &'static str, tasks: usize) -> Result<Vec<T>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(tasks).map_err(|_| {
        let asked = format!("{operation}: the partial values of {tasks} tasks");
        Error::host_memory(tasks.saturating_mul(size_of::<T>()), asked)
    })?;
    slots.resize_with(tasks, T::default);
    Ok(slots)
}

/// A run in progress, shared by its threads.
struct Run<'a> {
    compiled: &'a CompiledReduction,
    /// True if adjacent rows are folded together, as columns of a matrix.
    across: bool,
    row: usize,
    rows: usize,
    /// The distance of a column's elements for each operand, if the folded dimensions are a single one.
    pitches: Option<Vec<isize>>,
    source: Source<'a>,
    /// The space with the rows innermost, for the output.
    of_rows: Space,
    scalars_behind: &'a [[u64; 2]],
    /// The rows of a task, if another run has chosen them.
    width: Option<usize>,
    /// By row, the factor of its elements; 1 if there are none.
    factors: &'a [u8],
    /// The rows whose sum of squares has left the range, with the factors that bring it back.
    rare: Mutex<Vec<(usize, u64)>>,
}

/// Keys of rows, and the rows' indices if the fold has some.
#[derive(Clone)]
struct Keys<T> {
    keys: Vec<T>,
    indices: Vec<u64>,
}

/// The registers and buffers of a thread.
struct Workspace<'s, T> {
    prologue: Prologue<'s>,
    epilogue: Vec<Block>,
    scratch: Scratch<T>,
    /// The lanes of a segment of columns.
    lanes: Scratch<T>,
    tree: Neighbours<T>,
    /// The position within its segment of each column's extreme.
    found: Vec<u32>,
}

impl<'a> Run<'a> {
    fn new(
        compiled: &'a CompiledReduction,
        expression: (&'a CompiledExpression, &'a CpuCode),
        dimensions: Dimensions,
        operands: Vec<HostOperand>,
        scalars: &'a [[u64; 2]],
    ) -> Run<'a> {
        let (before, behind) = scalars.split_at(compiled.prologue.scalars.len());
        let across = is_across(&dimensions);
        let pitches = match &dimensions.folded[..] {
            [one] => Some(one.strides.clone()),
            _ => None,
        };
        Run {
            compiled,
            across,
            row: dimensions.row,
            rows: dimensions.rows,
            pitches,
            source: Source::new(expression, &compiled.epilogue, dimensions.space(!across), operands, before),
            of_rows: dimensions.space(false),
            scalars_behind: behind,
            width: None,
            factors: &[],
            rare: Mutex::default(),
        }
    }

    /// Returns the rows of a task.
    fn rows_of_a_task(&self) -> usize {
        if let Some(width) = self.width {
            return width;
        }
        match self.across {
            // Columns of memory that are read as they are; others come in whole blocks.
            true if self.source.is_direct() => COLUMNS,
            true => WIDTH,
            false if self.row < WIDTH => WIDTH,
            false => ROWS_OF_A_TASK,
        }
    }

    /// Runs the tasks of all rows, or of those `groups` of the rows of a task.
    fn all<K: FoldKernel>(&self, kernel: K, groups: Option<&[usize]>) -> Result<()> {
        let segments = self.row.div_ceil(SEGMENT);
        let width = self.rows_of_a_task();
        let of_rows = groups.map_or(self.rows.div_ceil(width), <[usize]>::len);
        let rows_of = |group: usize| {
            let first = width * groups.map_or(group, |groups| groups[group]);
            first..self.rows.min(first + width)
        };
        let threads = threads_for(self.source.estimate(self.row * self.rows.min(of_rows * width)));
        let few = of_rows < 4 * threads && segments > SEGMENTS_OF_A_TASK;
        let together = if few { SEGMENTS_OF_A_TASK } else { segments };
        let of_segments = segments.div_ceil(together);
        let parts = if self.compiled.fold.has_index() { 1 } else { self.compiled.rules.kinds.len() };
        // The keys of parts by task; used only if a row takes several tasks.
        let partial: Vec<Mutex<Vec<Keys<K::Lane>>>> =
            slots(self.compiled.fold.name(), if few { of_rows * of_segments } else { 0 })?;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut workspace = self.workspace(kernel);
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= of_rows * of_segments {
                    break;
                }
                let (group, part) = (task / of_segments, task % of_segments);
                let rows = rows_of(group);
                let first = part * together * SEGMENT;
                let elements = first..self.row.min(first + together * SEGMENT);
                let keys: Vec<_> = (0..parts)
                    .map(|part| self.keys(kernel, &mut workspace, part, rows.clone(), elements.clone()))
                    .collect();
                if few {
                    *partial[task].lock().unwrap_or_else(PoisonError::into_inner) = keys;
                } else {
                    self.store(kernel, &mut workspace, rows, &keys);
                }
            }
        };
        run_on_threads(threads, &work);
        if !few {
            return Ok(());
        }
        let mut workspace = self.workspace(kernel);
        for (group, tasks) in partial.chunks(of_segments).enumerate() {
            let rows = rows_of(group);
            let taken =
                |task: &Mutex<_>| std::mem::take(&mut *task.lock().unwrap_or_else(PoisonError::into_inner));
            let of_tasks: Vec<Vec<Keys<K::Lane>>> = tasks.iter().map(taken).collect();
            let merged = (0..parts).map(|part| {
                merge(kernel, &mut workspace.tree, of_tasks.iter().filter_map(|keys| keys.get(part)))
            });
            let merged: Vec<_> = merged.collect();
            self.store(kernel, &mut workspace, rows, &merged);
        }
        Ok(())
    }

    fn workspace<K: FoldKernel>(&self, _: K) -> Workspace<'_, K::Lane> {
        let epilogue = &self.compiled.epilogue;
        Workspace {
            prologue: self.source.prologue(),
            epilogue: registers(&epilogue.program, &epilogue.allocation, self.scalars_behind),
            scratch: Scratch::default(),
            lanes: Scratch::default(),
            tree: Neighbours::default(),
            found: Vec::new(),
        }
    }

    /// Folds elements of rows.
    fn keys<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        part: usize,
        rows: Range<usize>,
        elements: Range<usize>,
    ) -> Keys<K::Lane> {
        match (self.across, self.compiled.fold.has_index()) {
            (true, false) => self.columns(kernel, workspace, part, rows, elements),
            (true, true) => self.indices_of_columns(kernel, workspace, rows, elements),
            (false, false) if elements.len() == self.row && self.is_computed_together() => {
                Keys { keys: self.whole_rows(kernel, workspace, part, rows), indices: Vec::new() }
            }
            (false, false) => {
                let keys = rows.map(|row| self.row(kernel, workspace, part, row, elements.clone()));
                Keys { keys: keys.collect(), indices: Vec::new() }
            }
            (false, true) => {
                let both = rows.map(|row| self.index_of_row(kernel, workspace, row, elements.clone()));
                let (keys, indices) = both.unzip();
                Keys { keys, indices }
            }
        }
    }

    /// Stores the results of rows, from the keys of each part.
    fn store<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        rows: Range<usize>,
        keys: &[Keys<K::Lane>],
    ) {
        let (program, allocation) = (&self.compiled.epilogue.program, &self.compiled.epilogue.allocation);
        let (has_index, is_squared) = (self.compiled.fold.has_index(), self.compiled.rescaled.is_some());
        if is_squared && self.factors.is_empty() {
            self.find_rare(&rows, keys.first().map_or(&[][..], |keys| bytemuck::cast_slice(&keys.keys)));
        }
        for from in (0..rows.len()).step_by(WIDTH) {
            let count = WIDTH.min(rows.len() - from);
            let mut load = |_: u32, part: u32, block: &mut Block| {
                if has_index {
                    block[..count].copy_from_slice(&keys[0].indices[from..from + count]);
                    return;
                }
                if is_squared && part == 1 {
                    let lanes = bytemuck::cast_slice_mut::<u64, u8>(block);
                    let first = (rows.start + from) * size_of::<K::Lane>();
                    match self.factors.get(first..first + count * size_of::<K::Lane>()) {
                        Some(factors) => lanes[..factors.len()].copy_from_slice(factors),
                        None if size_of::<K::Lane>() == 4 => {
                            bytemuck::cast_slice_mut(&mut lanes[..4 * count]).fill(1f32);
                        }
                        None => bytemuck::cast_slice_mut(&mut lanes[..8 * count]).fill(1f64),
                    }
                    return;
                }
                // A real value has one part, which the second stands for too.
                let keys = &keys[(part as usize).min(keys.len() - 1)].keys[from..from + count];
                let lanes = &mut bytemuck::cast_slice_mut::<u64, K::Lane>(block)[..count];
                lanes.iter_mut().zip(keys).for_each(|(lane, &key)| *lane = kernel.value(key));
            };
            let registers = &mut workspace.epilogue;
            run_on_inputs(
                program,
                allocation,
                self.scalars_behind,
                registers,
                &allocation.each,
                count,
                &mut load,
            );
            let values = program.outputs[0].map(|value| &workspace.epilogue[allocation.register(value)]);
            // SAFETY: the elements are those of the output's layout, which has been checked against the memory,
            // and no other task has these rows.
            unsafe { self.source.store(&self.of_rows, rows.start + from, count, values) };
        }
    }
}

impl Run<'_> {
    /// Records the rows whose sums of squares, as bytes, have left the range.
    fn find_rare(&self, rows: &Range<usize>, sums: &[u8]) {
        let bytes = sums.len() / rows.len().max(1);
        let factors = sums.chunks_exact(bytes.max(1)).map(rescaling_of);
        let rare = rows.clone().zip(factors).filter_map(|(row, factor)| Some((row, factor?)));
        let rare: Vec<(usize, u64)> = rare.collect();
        if !rare.is_empty() {
            self.rare.lock().unwrap_or_else(PoisonError::into_inner).extend(rare);
        }
    }
}

/// Returns the bits of the factor of a sum of squares, which are those of f32 or f64; none if it is 1.
fn rescaling_of(sum: &[u8]) -> Option<u64> {
    let mut bits = [0; 8];
    bits[..sum.len()].copy_from_slice(sum);
    let bits = u64::from_le_bytes(bits);
    match sum.len() {
        4 => {
            Some(f32::from_bits(bits as u32).rescale()).filter(|one| *one != 1.0).map(|x| x.to_bits().into())
        }
        _ => Some(f64::from_bits(bits).rescale()).filter(|one| *one != 1.0).map(f64::to_bits),
    }
}

#[cfg(target_arch = "x86_64")]
impl CompiledReduction {
    /// Returns the dtype of a row's value, if [`fold_rows`](Self::fold_rows) computes it.
    pub(in crate::fuse) fn row_value(&self) -> Option<DType> {
        let dtype = self.prologue.outputs[0];
        let is_fold =
            source::is_lane(dtype) && self.fold.cpu_loop() != FoldLoop::Product && !self.fold.has_index();
        let is_as_it_is = self.epilogue.outputs == self.epilogue.inputs;
        let is_stored = is_as_it_is && input_of(&self.epilogue.program).is_some();
        (is_fold && is_stored).then_some(self.epilogue.outputs[0])
    }

    /// Returns whether the elements that it folds are those of its input.
    pub(in crate::fuse) fn is_plain(&self) -> bool {
        let prologue = &self.prologue;
        prologue.inputs[..] == prologue.outputs[..] && input_of(&prologue.program).is_some()
    }

    /// Folds `count` rows of `row` elements, at least one, into a value each.
    ///
    /// # Safety
    ///
    /// The reduction has a [`row_value`](Self::row_value), of which a sum of squares stores the first part. Both addresses are aligned to its dtype; there are as many
    /// elements and, writable, as many values.
    pub(in crate::fuse) unsafe fn fold_rows(
        &self,
        elements: *const u8,
        row: usize,
        count: usize,
        values: *mut u8,
    ) {
        // SAFETY: the caller guarantees it.
        with_kernel!(self, kernel => unsafe { fold_rows(kernel, elements, row, count, values) });
    }

    /// Turns the sums of squares that [`fold_rows`](Self::fold_rows) has stored for `count` rows into values with a factor of
    /// 1, and calls `rescale` with each row whose sum has left the range and the memory of its value.
    ///
    /// # Safety
    ///
    /// The reduction is a [`Fold::SumOfSquares`] with a [`row_value`](Self::row_value), of which the memory has `count`.
    pub(in crate::fuse) unsafe fn with_factors(
        &self,
        values: *mut u8,
        count: usize,
        mut rescale: impl FnMut(usize, &mut [u8]),
    ) {
        let size = self.prologue.outputs[0].size();
        let one = RescalingBits::new(self.rules.kinds[0]).one.to_le_bytes();
        // SAFETY: the caller guarantees it.
        let all = unsafe { std::slice::from_raw_parts_mut(values, 2 * size * count) };
        // A value takes the place of two sums, from the last one on.
        for row in (0..count).rev() {
            all.copy_within(row * size..(row + 1) * size, 2 * row * size);
            let (sum, factor) = all[2 * row * size..][..2 * size].split_at_mut(size);
            factor.copy_from_slice(&one[..size]);
            if rescaling_of(sum).is_some() {
                rescale(row, &mut all[2 * row * size..][..2 * size]);
            }
        }
    }

    /// Returns whether the value has a factor, which [`with_factors`](Self::with_factors) adds.
    pub(in crate::fuse) fn has_factor(&self) -> bool {
        self.rescaled.is_some()
    }
}

/// As [`CompiledReduction::fold_rows`].
///
/// # Safety
///
/// Elements and values are lanes of the kernel.
#[cfg(target_arch = "x86_64")]
unsafe fn fold_rows<K: FoldKernel>(
    kernel: K,
    elements: *const u8,
    row: usize,
    count: usize,
    values: *mut u8,
) {
    // SAFETY: the caller guarantees it.
    let (elements, values) = unsafe {
        (
            std::slice::from_raw_parts(elements.cast::<K::Lane>(), row * count),
            std::slice::from_raw_parts_mut(values.cast::<K::Lane>(), count),
        )
    };
    for (value, row) in values.iter_mut().zip(elements.chunks_exact(row)) {
        *value = kernel.value(kernel.fold_row(row));
    }
}

/// Merges the keys of neighbouring parts of rows.
fn merge<'k, K: FoldKernel>(
    kernel: K,
    tree: &mut Neighbours<K::Lane>,
    parts: impl Iterator<Item = &'k Keys<K::Lane>>,
) -> Keys<K::Lane>
where
    K::Lane: 'k,
{
    let mut best = Keys { keys: Vec::new(), indices: Vec::new() };
    for keys in parts {
        if keys.indices.is_empty() {
            tree.push(kernel, &keys.keys);
        } else if best.keys.is_empty() {
            best = keys.clone();
        } else {
            for (row, (&key, &index)) in keys.keys.iter().zip(&keys.indices).enumerate() {
                if kernel.exceeds(key, best.keys[row]) {
                    (best.keys[row], best.indices[row]) = (key, index);
                }
            }
        }
    }
    if best.indices.is_empty() {
        best.keys = tree.finish(kernel);
    }
    best
}

/// Returns whether adjacent rows are folded together.
fn is_across(dimensions: &Dimensions) -> bool {
    let stride =
        |dimension: Option<&Dimension>| dimension.map_or(0, |dimension| dimension.strides[dimensions.leader]);
    let (inner, kept) = (stride(dimensions.folded.first()), stride(dimensions.kept.first()));
    let Dimensions { row, rows, .. } = *dimensions;
    kept == 1 && inner != 1 || row < SHORT && rows > row
}

#[cfg(test)]
pub(super) mod tests;
