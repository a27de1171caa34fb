//! The parts of forward and backward that both have: sequences, heads and tiles, and memory that threads share.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::super::problem::{Problem, Sizes};
use super::element::HostElement;
use super::real::{Matrix, Real};
use crate::error::{Error, Result};
use crate::threads::{run_on_threads, threads_for};
use crate::types::Layout;

/// Queries of a tile and keys of a block: scores and operands of 64 columns in f32 stay in half a megabyte.
pub(super) const TILE: usize = 128;
pub(super) const BLOCK: usize = 512;

/// The memory that an attention on the CPU reads.
#[derive(Clone, Copy)]
pub struct HostOperands<'a, T> {
    /// The memory of the queries.
    pub queries: &'a [T],
    /// The memory of the keys.
    pub keys: &'a [T],
    /// The memory of the values.
    pub values: &'a [T],
    /// For each of the [`Sequences`](super::super::Sequences) its first query, its number of queries, its first key and its number of
    /// keys.
    pub sequences: Option<&'a [i32]>,
}

/// One sequence: a batch of the arrays, and positions in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub batch: usize,
    pub queries: Range<usize>,
    pub keys: Range<usize>,
}

/// A checked problem with its sequences.
pub(super) struct Job<'a, T> {
    pub problem: &'a Problem,
    pub sizes: Sizes,
    pub operands: HostOperands<'a, T>,
    pub sequences: Vec<Sequence>,
}

/// Elements and their layout, of (batch, heads, length, head dimension).
#[derive(Clone, Copy)]
pub(super) struct Array<'a, T> {
    pub elements: &'a [T],
    pub layout: &'a Layout,
}

/// Memory that threads write at different addresses.
pub(super) struct Shared<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: threads write different elements, which the callers of `row_mut` and `set` guarantee.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub fn new(slice: &mut [T]) -> Shared<T> {
        Shared { start: slice.as_mut_ptr(), length: slice.len() }
    }

    /// Sets an element.
    ///
    /// # Safety
    ///
    /// No other thread uses this element meanwhile.
    pub unsafe fn set(&self, index: usize, element: T) {
        assert!(index < self.length, "an element of the memory");
        // SAFETY: the index is inside, and the caller guarantees the rest.
        unsafe { self.start.add(index).write(element) };
    }

    /// Returns elements to write.
    ///
    /// # Safety
    ///
    /// No other thread uses these elements meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the caller guarantees that nobody else uses the elements")]
    pub unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.length, "elements of the memory");
        // SAFETY: the elements are inside, and the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

/// Returns the offset of an element.
pub(super) fn offset(layout: &Layout, at: [usize; 4]) -> usize {
    let distance: isize =
        at.iter().zip(layout.strides()).map(|(index, stride)| *index as isize * stride).sum();
    (layout.offset() as isize + distance) as usize
}

/// Returns rows of a head as numbers of `Real`: where they are, or converted into `scratch`.
pub(super) fn rows<'a, T: HostElement>(
    array: Array<'a, T>,
    [batch, head]: [usize; 2],
    positions: Range<usize>,
    scratch: &'a mut [T::Real],
) -> Matrix<T::Real> {
    let dimension = array.layout.shape()[3];
    let [row, column] = [2, 3].map(|axis| array.layout.strides()[axis]);
    if let Some(reals) = T::as_reals(array.elements) {
        let start = offset(array.layout, [batch, head, positions.start, 0]);
        // Rows without elements may begin outside of the memory.
        return Matrix { start: reals.as_ptr().wrapping_add(start), row, column };
    }
    copy_rows(array, [batch, head], positions, scratch);
    Matrix::of_rows(scratch, dimension)
}

/// Copies rows of a head into contiguous numbers.
pub(super) fn copy_rows<T: HostElement>(
    array: Array<'_, T>,
    [batch, head]: [usize; 2],
    positions: Range<usize>,
    to: &mut [T::Real],
) {
    let dimension = array.layout.shape()[3];
    if dimension == 0 || positions.is_empty() {
        return;
    }
    let [row, column] = [2, 3].map(|axis| array.layout.strides()[axis]);
    let start = offset(array.layout, [batch, head, positions.start, 0]) as isize;
    for (index, to) in to.chunks_exact_mut(dimension).take(positions.len()).enumerate() {
        let mut at = start + index as isize * row;
        for element in to {
            *element = array.elements[at as usize].widened();
            at += column;
        }
    }
}

/// Writes rounded rows of a head.
///
/// # Safety
///
/// No other thread uses these rows meanwhile, and the layout lies in the memory.
pub(super) unsafe fn store_rows<T: HostElement>(
    (memory, layout): (&Shared<T>, &Layout),
    [batch, head]: [usize; 2],
    first: usize,
    rows: &[T::Real],
) {
    let dimension = layout.shape()[3];
    if dimension == 0 {
        return;
    }
    let [row, column] = [2, 3].map(|axis| layout.strides()[axis]);
    let start = offset(layout, [batch, head, first, 0]) as isize;
    for (index, from) in rows.chunks_exact(dimension).enumerate() {
        let mut at = start + index as isize * row;
        for element in from {
            // SAFETY: the caller guarantees that nobody else uses the row.
            unsafe { memory.set(at as usize, T::rounded(*element)) };
            at += column;
        }
    }
}

/// Returns zeros, or the host's error where there is no memory.
pub(super) fn zeros<R: Real>(operation: &'static str, count: usize) -> Result<Vec<R>> {
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(count)
        .map_err(|_| Error::host_memory(count.saturating_mul(size_of::<R>()), operation))?;
    memory.resize(count, R::ZERO);
    Ok(memory)
}

impl<'a, T: HostElement> Job<'a, T> {
    /// Checks a problem and its memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with both sides.
    pub fn new(
        operation: &'static str,
        problem: &'a Problem,
        operands: HostOperands<'a, T>,
    ) -> Result<Job<'a, T>> {
        let sizes = problem.sizes()?;
        if problem.dtype != T::DTYPE {
            return Err(Error::DTypeMismatch {
                operation,
                wanted: problem.dtype.to_string(),
                found: T::DTYPE.to_string(),
            });
        }
        let HostOperands { queries, keys, values, sequences } = operands;
        check(operation, queries.len(), &problem.queries)?;
        check(operation, keys.len(), &problem.keys)?;
        check(operation, values.len(), &problem.values)?;
        let sequences = sequences_of(operation, problem, &sizes, sequences)?;
        Ok(Job { problem, sizes, operands, sequences })
    }

    pub fn queries(&self) -> Array<'a, T> {
        Array { elements: self.operands.queries, layout: &self.problem.queries }
    }

    pub fn keys(&self) -> Array<'a, T> {
        Array { elements: self.operands.keys, layout: &self.problem.keys }
    }

    pub fn values(&self) -> Array<'a, T> {
        Array { elements: self.operands.values, layout: &self.problem.values }
    }

    pub fn queries_per_key(&self) -> usize {
        self.sizes.heads / self.sizes.key_heads
    }

    /// Runs a function for each index below `count`, on as many threads as the products of a forward are worth times `passes`. The first
    /// error is returned.
    pub fn run<S>(
        &self,
        count: usize,
        passes: usize,
        scratch: impl Fn() -> Result<S> + Sync,
        task: impl Fn(&mut S, usize) -> Result<()> + Sync,
    ) -> Result<()> {
        let Sizes { batch, heads, queries, keys, dimension, .. } = self.sizes;
        // Some 20 operations of a core take a nanosecond.
        let work =
            [batch, heads, queries, keys, dimension].into_iter().fold(100 * passes, usize::saturating_mul);
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        run_on_threads(threads_for(work / 2).min(count), &|| {
            let attempt = || -> Result<()> {
                let mut index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return Ok(());
                }
                let mut scratch = scratch()?;
                while index < count {
                    task(&mut scratch, index)?;
                    index = next.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            };
            if let Err(error) = attempt() {
                next.store(count, Ordering::Relaxed);
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Checks that a layout lies in memory of this length.
pub(super) fn check(operation: &'static str, length: usize, layout: &Layout) -> Result<()> {
    if layout.end() <= length {
        return Ok(());
    }
    Err(Error::invalid(
        operation,
        format!("{layout:?} in {length} elements"),
        "a layout inside of the memory",
    ))
}

/// Checks a layout that is written: the shape of an operand, and no element twice.
pub(super) fn check_written(
    operation: &'static str,
    length: usize,
    layout: &Layout,
    shape: &[usize],
) -> Result<()> {
    check(operation, length, layout)?;
    if layout.shape()[..] == *shape && !layout.may_overlap() {
        return Ok(());
    }
    Err(Error::invalid(
        operation,
        format!("{layout:?}"),
        format!("shape {shape:?}, whose elements share no memory"),
    ))
}

/// Returns the sequences of a problem; without a table each batch is one.
fn sequences_of(
    operation: &'static str,
    problem: &Problem,
    sizes: &Sizes,
    table: Option<&[i32]>,
) -> Result<Vec<Sequence>> {
    let Some(sequences) = problem.sequences else {
        let whole = |batch| Sequence { batch, queries: 0..sizes.queries, keys: 0..sizes.keys };
        return Ok((0..sizes.batch).map(whole).collect());
    };
    let table = table.unwrap_or_default();
    let batches = if sequences.is_packed { 1 } else { sequences.count };
    if table.len() != 4 * sequences.count || sizes.batch != batches {
        let found =
            format!("{} numbers for {} sequences, batch {}", table.len(), sequences.count, sizes.batch);
        return Err(Error::invalid(
            operation,
            found,
            format!("four for each sequence and a batch of {batches}"),
        ));
    }
    let mut found: Vec<Sequence> = Vec::with_capacity(sequences.count);
    for (index, row) in table.chunks_exact(4).enumerate() {
        let (after_queries, after_keys) = match found.last() {
            Some(last) if sequences.is_packed => (last.queries.end, last.keys.end),
            _ => (0, 0),
        };
        let range = |first: i32, count: i32, after: usize, most: usize| {
            let (start, length) = (usize::try_from(first).ok()?, usize::try_from(count).ok()?);
            let end = start.checked_add(length)?;
            let is_placed = if sequences.is_packed { start >= after } else { start == 0 };
            (end <= most && is_placed).then_some(start..end)
        };
        let queries = range(row[0], row[1], after_queries, sizes.queries);
        let keys = range(row[2], row[3], after_keys, sizes.keys);
        let (Some(queries), Some(keys)) = (queries, keys) else {
            let wanted = format!(
                "positions behind the sequence before it, of {} queries and {} keys",
                sizes.queries, sizes.keys
            );
            return Err(Error::invalid(operation, format!("sequence {index} of {row:?}"), wanted));
        };
        found.push(Sequence { batch: if sequences.is_packed { 0 } else { index }, queries, keys });
    }
    Ok(found)
}
