//! [`forward_host`]: the result and the LSE, a tile of queries at a time.

use super::super::problem::Problem;
use super::element::HostElement;
use super::job::{
    Array, BLOCK, HostOperands, Job, Shared, TILE, check_written, copy_rows, rows, store_rows, zeros,
};
use super::real::{Matrix, Real, product};
use super::scores::{HeadDropout, Reach, cap};
use crate::error::{Error, Result};
use crate::types::Layout;

const OPERATION: &str = "attention::forward_host";

/// Memory of a thread.
struct Scratch<R> {
    queries: Vec<R>,
    keys: Vec<R>,
    values: Vec<R>,
    scores: Vec<R>,
    result: Vec<R>,
    largest: Vec<R>,
    sums: Vec<R>,
}

/// Writes the result and the LSE of a problem on the CPU, done when the call returns.
///
/// As [`forward`](super::super::forward), of slices, for f16, bf16, f32 and f64, any layouts and head dimensions, and values of another
/// head dimension than the keys. Scores and sums are f32, or f64 for f64. With packed sequences, positions of none are not
/// written.
///
/// ```
/// use selvedge::attention::{HostOperands, Problem, forward_host};
/// use selvedge::types::{DType, Layout};
/// let layout = Layout::contiguous(&[1, 1, 2, 1])?;
/// let problem = Problem { scale: 1.0, ..Problem::new(DType::F64, layout, layout, layout) };
/// let operands = HostOperands { queries: &[0.0, 1.0], keys: &[0.0, 2f64.ln()], values: &[3.0, 6.0], sequences: None };
/// let (mut result, mut lse) = ([0.0; 2], [0.0; 2]);
/// forward_host(&problem, operands, (&mut result, &layout), &mut lse)?;
/// assert!((result[0] - 4.5).abs() < 1e-12 && (result[1] - 5.0).abs() < 1e-12);
/// assert!((lse[1] - 3f64.ln()).abs() < 1e-12);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`] for shapes that do not meet, layouts that leave their memory, a result whose elements share memory, and
/// sequences that leave the arrays or share positions; [`Error::DTypeMismatch`] for another dtype than the problem's;
/// [`Error::LengthMismatch`] for an LSE of another length; [`Error::OutOfMemory`].
pub fn forward_host<T: HostElement>(
    problem: &Problem,
    operands: HostOperands<'_, T>,
    (result, layout): (&mut [T], &Layout),
    lse: &mut [T::Real],
) -> Result<()> {
    let job = Job::new(OPERATION, problem, operands)?;
    let sizes = job.sizes;
    let shape = [sizes.batch, sizes.heads, sizes.queries, sizes.value_dimension];
    check_written(OPERATION, result.len(), layout, &shape)?;
    let wanted = sizes.batch * sizes.heads * sizes.queries;
    if lse.len() != wanted {
        return Err(Error::LengthMismatch { operation: OPERATION, wanted, found: lse.len() });
    }
    // The last tiles of a head first: of a causal band they take longest.
    let mut tiles = Vec::new();
    for (index, sequence) in job.sequences.iter().enumerate() {
        // Positions behind a padded sequence get zeros.
        let is_padded = problem.sequences.is_some_and(|sequences| !sequences.is_packed);
        let rows = if is_padded { sizes.queries } else { sequence.queries.len() };
        for head in 0..sizes.heads {
            tiles.extend(
                (0..rows).step_by(TILE).rev().map(|first| (index, head, first, rows.min(first + TILE))),
            );
        }
    }
    let (result, lse) = (Shared::new(result), Shared::new(lse));
    let scratch = || {
        let (tile, block) = (TILE.min(sizes.queries), BLOCK.min(sizes.keys));
        let memory = |count| zeros::<T::Real>(OPERATION, count);
        Ok(Scratch {
            queries: memory(tile * sizes.dimension)?,
            keys: memory(block * sizes.dimension)?,
            values: memory(block * sizes.value_dimension)?,
            scores: memory(tile * block)?,
            result: memory(tile * sizes.value_dimension)?,
            largest: memory(tile)?,
            sums: memory(tile)?,
        })
    };
    job.run(tiles.len(), 1, scratch, |scratch, index| {
        let (sequence, head, first, end) = tiles[index];
        tile(&job, scratch, [sequence, head], first..end);
        let Scratch { result: rows, largest, sums, .. } = scratch;
        let span = &job.sequences[sequence];
        let wide = sizes.value_dimension;
        for row in 0..end - first {
            let values = &mut rows[row * wide..][..wide];
            // The sum of a row without keys is 0. NaN stays NaN.
            let is_empty = sums[row] == T::Real::ZERO;
            let dropout_scale = problem.dropout.map_or(1.0, |dropout| dropout.scale());
            let factor = if is_empty { 0.0 } else { dropout_scale / sums[row].to_f64() };
            T::Real::scale(values, T::Real::from_f64(factor));
            let at = (span.batch * sizes.heads + head) * sizes.queries + span.queries.start + first + row;
            let of_row = match is_empty {
                true => T::Real::NEG_INFINITY,
                false => T::Real::from_f64(largest[row].to_f64() + sums[row].to_f64().ln()),
            };
            // SAFETY: the row is that of this task alone.
            unsafe { lse.set(at, of_row) };
        }
        let rows = &rows[..(end - first) * wide];
        // SAFETY: the rows are those of this task alone, and the layout was checked.
        unsafe { store_rows((&result, layout), [span.batch, head], span.queries.start + first, rows) };
        Ok(())
    })
}

/// Computes sums of values, largest scores and sums of powers of some queries of a sequence.
fn tile<T: HostElement>(
    job: &Job<'_, T>,
    scratch: &mut Scratch<T::Real>,
    [sequence, head]: [usize; 2],
    tile: std::ops::Range<usize>,
) {
    let (problem, sizes) = (job.problem, job.sizes);
    let span = &job.sequences[sequence];
    let (width, wide) = (sizes.dimension, sizes.value_dimension);
    let Scratch { queries, keys, values, scores, result, largest, sums } = scratch;
    result.fill(T::Real::ZERO);
    largest.fill(T::Real::NEG_INFINITY);
    sums.fill(T::Real::ZERO);
    let tile = tile.start..tile.end.min(span.queries.len());
    if tile.is_empty() {
        return;
    }
    let reach = Reach::new(problem.band, span);
    let dropout = HeadDropout::of(problem, &sizes, sequence, head);
    let key_head = head / job.queries_per_key();
    let positions = span.queries.start + tile.start..span.queries.start + tile.end;
    copy_rows(job.queries(), [span.batch, head], positions, queries);
    let all = reach.keys_of_all(tile.clone());
    let count = tile.len();
    for first in (all.start / BLOCK * BLOCK..all.end).step_by(BLOCK) {
        let block = first..all.end.min(first + BLOCK);
        let positions = span.keys.start + block.start..span.keys.start + block.end;
        let at = [span.batch, key_head];
        let of = |array: Array<'_, T>, scratch| rows(array, at, positions.clone(), scratch);
        let (k, v) = (of(job.keys(), keys), of(job.values(), values));
        let (n, scale) = (block.len(), T::Real::from_f64(problem.scale));
        // SAFETY: the operands have these rows.
        unsafe {
            product([count, n, width], scale, Matrix::of_rows(queries, width), k.transposed(), false, scores);
        }
        for row in 0..count {
            let read = reach.keys_in(tile.start + row, &block);
            let row_scores = &mut scores[row * n..][..n];
            row_scores[..read.start].fill(T::Real::ZERO);
            row_scores[read.end..].fill(T::Real::ZERO);
            let row_scores = &mut row_scores[read];
            if row_scores.is_empty() {
                continue;
            }
            if let Some(limit) = problem.soft_cap {
                cap(row_scores, limit);
            }
            update::<T::Real>(
                row_scores,
                &mut largest[row],
                &mut sums[row],
                &mut result[row * wide..][..wide],
            );
        }
        if let Some(dropout) = dropout {
            dropout.for_each(tile.clone(), block.clone(), |row, column| {
                scores[row * n + column] = T::Real::ZERO
            });
        }
        // SAFETY: the operands have these rows.
        unsafe { product([count, wide, n], T::Real::ONE, Matrix::of_rows(scores, n), v, true, result) };
    }
}

/// Makes a row's scores powers, with the sums before them rescaled to the new largest score.
fn update<R: Real>(scores: &mut [R], largest: &mut R, sum: &mut R, result: &mut [R]) {
    const LOG2_E: f64 = std::f64::consts::LOG2_E;
    let of_row = R::largest(scores);
    let is_larger = of_row > *largest;
    let top = if is_larger { of_row } else { *largest };
    let in_twos = |x: R| x.times(R::from_f64(LOG2_E));
    // A row of -∞ alone has powers of 0.
    let shift = if top == R::NEG_INFINITY { R::ZERO } else { in_twos(top) };
    if is_larger && *sum != R::ZERO {
        let factor = R::power_of_two(in_twos(*largest).plus(shift.times(R::from_f64(-1.0))));
        *sum = sum.times(factor);
        R::scale(result, factor);
    }
    *largest = top;
    *sum = sum.plus(R::exponentials(scores, shift));
}
