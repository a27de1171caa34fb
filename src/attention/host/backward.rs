//! [`backward_host`]: the gradients, a head of keys at a time.

use std::ops::Range;

use super::super::problem::{Dropout, Problem, Sizes};
use super::element::HostElement;
use super::job::{
    Array, BLOCK, HostOperands, Job, Shared, TILE, check, check_written, copy_rows, rows, store_rows, zeros,
};
use super::real::{Matrix, Real, product};
use super::scores::{HeadDropout, Reach, cap};
use crate::error::{Error, Result};
use crate::types::Layout;

const OPERATION: &str = "attention::backward_host";

/// The fewest tasks; with fewer heads of keys, the keys of a head are divided.
const MIN_TASKS: usize = 16;

/// The memory of the gradients of queries, keys and values, and their layouts in it, which have the shapes of the operands and share
/// no element.
pub struct HostGradients<'a, T> {
    /// The memory.
    pub memory: &'a mut [T],
    /// The layouts of the gradients of queries, keys and values.
    pub layouts: [Layout; 3],
}

/// Memory of a thread.
struct Scratch<R> {
    queries: Vec<R>,
    of_result: Vec<R>,
    result: Vec<R>,
    keys: Vec<R>,
    values: Vec<R>,
    probabilities: Vec<R>,
    /// The gradients of probabilities, then of scores.
    gradients: Vec<R>,
    /// The derivatives of capped scores.
    slopes: Vec<R>,
    /// The probabilities that the dropout keeps.
    masked: Vec<R>,
    of_queries: Vec<R>,
    of_keys: Vec<R>,
    of_values: Vec<R>,
}

/// The operands and results that all tasks read and write.
struct Backward<'a, T: HostElement> {
    job: Job<'a, T>,
    result: Array<'a, T>,
    gradient: Array<'a, T>,
    lse: &'a [T::Real],
    written: Shared<T>,
    layouts: [Layout; 3],
    /// Parts of the keys of a head, and the keys of each.
    parts: usize,
    part_keys: usize,
    /// The sums of each part's gradients of queries, of (part, batch, head, query, column); empty where there is one part.
    sums: Shared<T::Real>,
}

/// Writes the gradients of a problem on the CPU, by the result and the LSE of [`forward_host`](super::forward_host) and the gradient of
/// the result; done when the call returns.
///
/// `result` and `gradient` are in layouts of (batch, heads, queries, head dimension of the values).
///
/// # Errors
///
/// As [`forward_host`](super::forward_host).
pub fn backward_host<T: HostElement>(
    problem: &Problem,
    operands: HostOperands<'_, T>,
    (result, of_result): (&[T], &Layout),
    lse: &[T::Real],
    (gradient, of_gradient): (&[T], &Layout),
    gradients: HostGradients<'_, T>,
) -> Result<()> {
    let job = Job::new(OPERATION, problem, operands)?;
    let sizes = job.sizes;
    let Sizes { batch, heads, key_heads, queries, keys, dimension, value_dimension } = sizes;
    let shape = [batch, heads, queries, value_dimension];
    for (memory, layout) in [(result, of_result), (gradient, of_gradient)] {
        check(OPERATION, memory.len(), layout)?;
        if layout.shape()[..] != shape {
            return Err(Error::invalid(OPERATION, format!("{layout:?}"), format!("shape {shape:?}")));
        }
    }
    let HostGradients { memory, layouts } = gradients;
    for (layout, operand) in layouts.iter().zip([&problem.queries, &problem.keys, &problem.values]) {
        check_written(OPERATION, memory.len(), layout, operand.shape())?;
    }
    let wanted = batch * heads * queries;
    if lse.len() != wanted {
        return Err(Error::LengthMismatch { operation: OPERATION, wanted, found: lse.len() });
    }
    let all_heads = job.sequences.len() * key_heads;
    let blocks = keys.div_ceil(BLOCK).max(1);
    let parts = MIN_TASKS.div_ceil(all_heads.max(1)).min(blocks);
    let part_keys = blocks.div_ceil(parts) * BLOCK;
    let parts = keys.div_ceil(part_keys).max(1);
    let rows = batch * heads * queries * dimension;
    let mut sums = zeros::<T::Real>(OPERATION, if parts > 1 { parts * rows } else { 0 })?;
    let backward = Backward {
        result: Array { elements: result, layout: of_result },
        gradient: Array { elements: gradient, layout: of_gradient },
        lse,
        written: Shared::new(memory),
        layouts,
        parts,
        part_keys,
        sums: Shared::new(&mut sums),
        job,
    };
    let tasks = all_heads * parts;
    let task = |scratch: &mut Scratch<T::Real>, index: usize| {
        let (head, part) = (index / parts, index % parts);
        backward.task(scratch, head / key_heads, head % key_heads, part);
        Ok(())
    };
    backward.job.run(tasks, 3, || backward.scratch(), task)?;
    if parts > 1 {
        backward.add_parts()?;
    }
    Ok(())
}

impl<T: HostElement> Backward<'_, T> {
    fn scratch(&self) -> Result<Scratch<T::Real>> {
        let Sizes { queries, keys, dimension, value_dimension, .. } = self.job.sizes;
        let (tile, block) = (TILE.min(queries), BLOCK.min(keys));
        let problem = self.job.problem;
        let memory = |is_used: bool, rows: usize, width: usize| {
            zeros::<T::Real>(OPERATION, if is_used { rows.saturating_mul(width) } else { 0 })
        };
        let part = self.part_keys.min(keys);
        Ok(Scratch {
            queries: memory(true, tile, dimension)?,
            of_result: memory(true, tile, value_dimension)?,
            result: memory(true, tile, value_dimension)?,
            keys: memory(true, block, dimension)?,
            values: memory(true, block, value_dimension)?,
            probabilities: memory(true, tile, block)?,
            gradients: memory(true, tile, block)?,
            slopes: memory(problem.soft_cap.is_some(), tile, block)?,
            masked: memory(problem.dropout.is_some(), tile, block)?,
            of_queries: memory(true, tile, dimension)?,
            of_keys: memory(true, part, dimension)?,
            of_values: memory(true, part, value_dimension)?,
        })
    }

    /// Adds the gradients of a part of a head's keys.
    fn task(&self, scratch: &mut Scratch<T::Real>, sequence: usize, key_head: usize, part: usize) {
        let Sizes { dimension, value_dimension, .. } = self.job.sizes;
        let span = &self.job.sequences[sequence];
        let is_padded = self.job.problem.sequences.is_some_and(|sequences| !sequences.is_packed);
        let count = span.keys.len();
        let first = part * self.part_keys;
        let part_keys = first.min(count)..count.min(first + self.part_keys);
        scratch.of_keys.fill(T::Real::ZERO);
        scratch.of_values.fill(T::Real::ZERO);
        let heads = self.job.queries_per_key();
        for head in key_head * heads..(key_head + 1) * heads {
            for first in (0..span.queries.len()).step_by(TILE) {
                let tile = first..span.queries.len().min(first + TILE);
                self.tile(scratch, [sequence, head], tile.clone(), part_keys.clone());
                let rows = &scratch.of_queries[..tile.len() * dimension];
                // SAFETY: the rows are those of this task alone.
                unsafe { self.store_queries([span.batch, head, part], span.queries.start + first, rows) };
            }
            if is_padded && part == 0 {
                // SAFETY: as above.
                unsafe { self.zero_rows(0, [span.batch, head], span.queries.end..self.job.sizes.queries) };
            }
        }
        let at = [span.batch, key_head];
        let rows = [(1, &scratch.of_keys, dimension), (2, &scratch.of_values, value_dimension)];
        for (which, rows, width) in rows {
            let to = (&self.written, &self.layouts[which]);
            // SAFETY: as above.
            unsafe {
                store_rows(to, at, span.keys.start + part_keys.start, &rows[..part_keys.len() * width])
            };
            if is_padded && part == 0 {
                // SAFETY: as above.
                unsafe { self.zero_rows(which, at, span.keys.end..self.job.sizes.keys) };
            }
        }
    }

    /// Stores rows of a part's gradient of the queries: as they are, or in the part's sums.
    ///
    /// # Safety
    ///
    /// No other thread uses these rows of this part.
    unsafe fn store_queries(&self, [batch, head, part]: [usize; 3], first: usize, rows: &[T::Real]) {
        if self.parts == 1 {
            // SAFETY: the caller guarantees it, and the layout was checked.
            unsafe { store_rows((&self.written, &self.layouts[0]), [batch, head], first, rows) };
            return;
        }
        let Sizes { batch: batches, heads, queries, dimension, .. } = self.job.sizes;
        let row = ((part * batches + batch) * heads + head) * queries + first;
        // SAFETY: the caller guarantees it.
        unsafe { self.sums.part(row * dimension..row * dimension + rows.len()) }.copy_from_slice(rows);
    }

    /// Writes zeros to rows of a gradient.
    ///
    /// # Safety
    ///
    /// No other thread uses these rows.
    unsafe fn zero_rows(&self, which: usize, at: [usize; 2], positions: Range<usize>) {
        let layout = &self.layouts[which];
        let row = vec![T::Real::ZERO; layout.shape()[3]];
        for position in positions {
            // SAFETY: the caller guarantees it, and the layout was checked.
            unsafe { store_rows((&self.written, layout), at, position, &row) };
        }
    }

    /// Computes the gradients of a tile of queries by a part of the keys, and adds those of keys and values.
    fn tile(
        &self,
        scratch: &mut Scratch<T::Real>,
        [sequence, head]: [usize; 2],
        tile: Range<usize>,
        part: Range<usize>,
    ) {
        let (job, problem, sizes) = (&self.job, self.job.problem, &self.job.sizes);
        let (width, wide) = (sizes.dimension, sizes.value_dimension);
        let span = &job.sequences[sequence];
        let key_head = head / job.queries_per_key();
        scratch.of_queries.fill(T::Real::ZERO);
        let reach = Reach::new(problem.band, span);
        let all = reach.keys_of_all(tile.clone());
        let all = all.start.max(part.start)..all.end.min(part.end);
        if all.start >= all.end {
            return;
        }
        let dropout = HeadDropout::of(problem, sizes, sequence, head);
        let dropout_scale = T::Real::from_f64(problem.dropout.map_or(1.0, Dropout::scale));
        let scale = T::Real::from_f64(problem.scale);
        let positions = span.queries.start + tile.start..span.queries.start + tile.end;
        let (at, at_keys) = ([span.batch, head], [span.batch, key_head]);
        copy_rows(job.queries(), at, positions.clone(), &mut scratch.queries);
        copy_rows(self.gradient, at, positions.clone(), &mut scratch.of_result);
        copy_rows(self.result, at, positions.clone(), &mut scratch.result);
        let lse = &self.lse[(span.batch * sizes.heads + head) * sizes.queries..][positions];
        let count = tile.len();
        let Scratch { queries, of_result, result, probabilities, gradients, slopes, masked, .. } = scratch;
        let (queries, of_result) = (&queries[..], &of_result[..]);
        for first in (all.start / BLOCK * BLOCK..all.end).step_by(BLOCK) {
            let block = first..all.end.min(first + BLOCK);
            let n = block.len();
            let positions = span.keys.start + block.start..span.keys.start + block.end;
            let k = rows(job.keys(), at_keys, positions.clone(), &mut scratch.keys);
            let v = rows(job.values(), at_keys, positions, &mut scratch.values);
            let (q, d_o) = (Matrix::of_rows(queries, width), Matrix::of_rows(of_result, wide));
            // SAFETY: the operands have these rows.
            unsafe {
                product([count, n, width], scale, q, k.transposed(), false, probabilities);
                product([count, n, wide], dropout_scale, d_o, v.transposed(), false, gradients);
            }
            if let Some(dropout) = dropout {
                dropout.for_each(tile.clone(), block.clone(), |row, column| {
                    gradients[row * n + column] = T::Real::ZERO;
                });
            }
            for row in 0..count {
                let read = reach.keys_in(tile.start + row, &block);
                // A row of -∞ alone has probabilities of 0.
                let read = if lse[row] == T::Real::NEG_INFINITY { 0..0 } else { read };
                let (p, g) = (&mut probabilities[row * n..][..n], &mut gradients[row * n..][..n]);
                for outside in [0..read.start, read.end..n] {
                    p[outside.clone()].fill(T::Real::ZERO);
                    g[outside].fill(T::Real::ZERO);
                }
                let (p, g) = (&mut p[read.clone()], &mut g[read.clone()]);
                if let Some(limit) = problem.soft_cap {
                    cap(p, limit);
                    let inverse = T::Real::from_f64(1.0 / limit);
                    for (slope, capped) in slopes[row * n..][..n][read.clone()].iter_mut().zip(&*p) {
                        let t = capped.times(inverse);
                        *slope = T::Real::ONE.plus(t.times(t).times(T::Real::from_f64(-1.0)));
                    }
                }
                let shift = lse[row].times(T::Real::from_f64(std::f64::consts::LOG2_E));
                T::Real::exponentials(p, shift);
                let delta = T::Real::dot(&result[row * wide..][..wide], &of_result[row * wide..][..wide]);
                T::Real::gradients_of_scores(g, p, delta);
                if problem.soft_cap.is_some() {
                    for (gradient, slope) in g.iter_mut().zip(&slopes[row * n..][..n][read]) {
                        *gradient = gradient.times(*slope);
                    }
                }
            }
            let weights = match dropout {
                None => &probabilities[..],
                Some(dropout) => {
                    masked[..count * n].copy_from_slice(&probabilities[..count * n]);
                    dropout.for_each(tile.clone(), block.clone(), |row, column| {
                        masked[row * n + column] = T::Real::ZERO
                    });
                    &masked[..]
                }
            };
            let (weights, scores) = (Matrix::of_rows(weights, n), Matrix::of_rows(gradients, n));
            let of_keys = &mut scratch.of_keys[(block.start - part.start) * width..];
            let of_values = &mut scratch.of_values[(block.start - part.start) * wide..];
            // SAFETY: the operands have these rows.
            unsafe {
                product([n, wide, count], dropout_scale, weights.transposed(), d_o, true, of_values);
                product([n, width, count], scale, scores.transposed(), q, true, of_keys);
                product([count, width, n], scale, scores, k, true, &mut scratch.of_queries);
            }
        }
    }

    /// Adds the parts' gradients of the queries in their order.
    fn add_parts(&self) -> Result<()> {
        let Sizes { batch, heads, queries, dimension, .. } = self.job.sizes;
        let rows_of_part = batch * heads * queries * dimension;
        let of_head = queries * dimension;
        let scratch = || zeros::<T::Real>(OPERATION, of_head);
        self.job.run(batch * heads, 1, scratch, |sum, head| {
            sum.fill(T::Real::ZERO);
            for part in 0..self.parts {
                let start = part * rows_of_part + head * of_head;
                // SAFETY: each head is read by one thread, and no task writes any more.
                let rows = unsafe { self.sums.part(start..start + of_head) };
                for (sum, x) in sum.iter_mut().zip(rows) {
                    *sum = sum.plus(*x);
                }
            }
            for sequence in &self.job.sequences {
                if sequence.batch != head / heads {
                    continue;
                }
                let rows = &sum[sequence.queries.start * dimension..sequence.queries.end * dimension];
                let to = (&self.written, &self.layouts[0]);
                // SAFETY: the rows are those of this head alone.
                unsafe { store_rows(to, [sequence.batch, head % heads], sequence.queries.start, rows) };
            }
            Ok(())
        })
    }
}
