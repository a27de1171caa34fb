//! Folds of adjacent rows together: the columns of a matrix, or many short rows.
//!
//! A segment has 256 lanes for each column, one column beside the other, so that folding lanes is a loop over
//! neighbours in memory. A matrix with few columns is read as one long row.

use std::ops::Range;

use super::kernel::{COLUMNS_BLOCK, FoldKernel};
use super::source::{Prologue, SCRATCH};
use super::vectors::vectorized;
use super::{Keys, Run, Workspace};
use crate::fuse::cpu::scratch::Scratch;
use crate::fuse::plan::reduction::{LANES, SEGMENT};

/// The most columns whose elements are read as one row of vectors.
const FEW: usize = 8;

/// Elements of several columns: element e of column c is at e · pitch + c.
#[derive(Clone, Copy)]
pub(super) struct Matrix<T> {
    memory: *const T,
    elements: usize,
    pitch: isize,
}

impl<T> Matrix<T> {
    /// Returns `count` numbers that follow the first one of element `element`.
    ///
    /// # Safety
    ///
    /// They must be within the memory.
    #[inline(always)]
    unsafe fn slice_at<'a>(self, element: usize, count: usize) -> &'a [T] {
        // SAFETY: the caller guarantees it.
        unsafe { std::slice::from_raw_parts(self.memory.offset(element as isize * self.pitch), count) }
    }
}

impl Run<'_> {
    /// Calls `each` with the first element and the matrix of each run of elements that are read together.
    fn matrices<K: FoldKernel>(
        &self,
        prologue: &mut Prologue<'_>,
        scratch: &mut Scratch<K::Lane>,
        part: usize,
        columns: Range<usize>,
        elements: Range<usize>,
        mut each: impl FnMut(usize, Matrix<K::Lane>),
    ) {
        let width = columns.len();
        let position = |element: usize| element * self.rows + columns.start;
        if let Some(pitch) = self.pitches.as_ref().and_then(|pitches| self.source.pitch(pitches))
            && let Some(memory) = self.source.address(position(elements.start), width)
        {
            let matrix = Matrix { memory, elements: elements.len(), pitch };
            return each(elements.start, matrix);
        }
        // All columns of adjacent elements are adjacent in the order of the space.
        let together = if width == self.rows { (SCRATCH / width).max(1) } else { 1 };
        for first in elements.clone().step_by(together) {
            let count = together.min(elements.end - first);
            let values = prologue.values(scratch, part, position(first), count * width);
            each(first, Matrix { memory: values.as_ptr(), elements: count, pitch: width as isize });
        }
    }

    /// Folds a segment of columns into the first lanes of the workspace.
    fn segment<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        part: usize,
        columns: Range<usize>,
        elements: Range<usize>,
    ) {
        let Workspace { prologue, scratch, lanes, .. } = workspace;
        let (start, width) = (elements.start, columns.len());
        let mut present = LANES.min(elements.len());
        lanes.grow(present * width);
        self.matrices::<K>(prologue, scratch, part, columns, elements, |first, matrix| {
            append(kernel, lanes, matrix, first - start, width);
        });
        while present > 1 {
            let half = present.next_power_of_two() / 2;
            let (lower, upper) = lanes.split_at_mut(half * width);
            merge_lanes(kernel, lower, &upper[..(present - half) * width]);
            present = half;
        }
    }

    /// Folds elements of columns, which are nodes of the columns' trees.
    pub(super) fn columns<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        part: usize,
        columns: Range<usize>,
        elements: Range<usize>,
    ) -> Keys<K::Lane> {
        for start in elements.clone().step_by(SEGMENT) {
            let segment = start..elements.end.min(start + SEGMENT);
            self.segment(kernel, workspace, part, columns.clone(), segment);
            let Workspace { lanes, tree, .. } = workspace;
            tree.push(kernel, &lanes[..columns.len()]);
        }
        Keys { keys: workspace.tree.finish(kernel), indices: Vec::new() }
    }

    /// Returns the extremes of elements of columns, and their indices in the columns, by one pass over adjacent elements;
    /// none if the kernel has no such pass.
    fn indices_of_few_columns<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        columns: Range<usize>,
        elements: Range<usize>,
    ) -> Option<Keys<K::Lane>> {
        let width = columns.len();
        // Elements in between are of other columns.
        if width > FEW || width != self.rows || !kernel.has_first_extremes(width) {
            return None;
        }
        let (mut keys, mut indices): (Vec<K::Lane>, Vec<u64>) = (Vec::new(), Vec::new());
        let (mut of_block, mut positions) = ([bytemuck::Zeroable::zeroed(); FEW], [0; FEW]);
        let (of_block, positions) = (&mut of_block[..width], &mut positions[..width]);
        let mut is_found = true;
        let Workspace { prologue, scratch, .. } = workspace;
        self.matrices::<K>(prologue, scratch, 0, columns, elements, |first, matrix| {
            is_found &= matrix.pitch == width as isize;
            for start in (0..matrix.elements).step_by(COLUMNS_BLOCK / FEW) {
                let count = (COLUMNS_BLOCK / FEW).min(matrix.elements - start);
                // SAFETY: adjacent elements of all columns, which the matrix has.
                is_found = is_found
                    && kernel.first_extremes(
                        unsafe { matrix.slice_at(start, count * width) },
                        of_block,
                        positions,
                    );
                if !is_found {
                    return;
                }
                let index = |position: usize| (first + start + position / width) as u64;
                if keys.is_empty() {
                    keys.extend_from_slice(of_block);
                    indices.extend(positions.iter().map(|&position| index(position)));
                    continue;
                }
                for (column, (&key, &position)) in of_block.iter().zip(positions.iter()).enumerate() {
                    if kernel.exceeds(key, keys[column]) {
                        (keys[column], indices[column]) = (key, index(position));
                    }
                }
            }
        });
        is_found.then_some(Keys { keys, indices })
    }

    /// Returns the extremes of elements of columns, and their indices in the columns.
    pub(super) fn indices_of_columns<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        columns: Range<usize>,
        elements: Range<usize>,
    ) -> Keys<K::Lane> {
        if let Some(found) = self.indices_of_few_columns(kernel, workspace, columns.clone(), elements.clone())
        {
            return found;
        }
        let width = columns.len();
        let mut keys: Vec<K::Lane> = Vec::new();
        // The start of the segment that has each column's extreme.
        let mut starts = vec![elements.start; width];
        for start in elements.clone().step_by(SEGMENT) {
            let segment = start..elements.end.min(start + SEGMENT);
            self.segment(kernel, workspace, 0, columns.clone(), segment);
            let found = &workspace.lanes[..width];
            if keys.is_empty() {
                keys = found.to_vec();
                continue;
            }
            for (column, &key) in found.iter().enumerate() {
                if kernel.exceeds(key, keys[column]) {
                    (keys[column], starts[column]) = (key, start);
                }
            }
        }
        let mut indices = vec![0; width];
        let mut segments = starts.clone();
        segments.sort_unstable();
        segments.dedup();
        for start in segments {
            let Workspace { prologue, scratch, found, .. } = workspace;
            found.clear();
            found.resize(width, u32::MAX);
            let segment = start..elements.end.min(start + SEGMENT);
            self.matrices::<K>(prologue, scratch, 0, columns.clone(), segment, |first, matrix| {
                find(kernel, found, &keys, matrix, first - start);
            });
            for column in (0..width).filter(|&column| starts[column] == start) {
                indices[column] = start as u64 + u64::from(found[column]);
            }
        }
        Keys { keys, indices }
    }
}

vectorized! {
    /// Appends elements to the lanes of a segment of columns; `first` is the first element's position in it.
    pub(super) fn append<K: FoldKernel>(
        kernel: K,
        lanes: &mut [K::Lane],
        matrix: Matrix<K::Lane>,
        first: usize,
        width: usize,
    ) {
        let mut element = 0;
        while element < matrix.elements {
            let position = first + element;
            // Adjacent elements are one run, up to the last lane.
            let together = match matrix.pitch == width as isize {
                true => (LANES - position % LANES).min(matrix.elements - element),
                false => 1,
            };
            let count = together * width;
            let lanes = &mut lanes[position % LANES * width..][..count];
            // SAFETY: the matrix has these elements.
            let elements = unsafe { matrix.slice_at(element, count) };
            if position < LANES {
                lanes.iter_mut().zip(elements).for_each(|(lane, &x)| *lane = kernel.key(x));
            } else {
                kernel.merge_elements(lanes, elements);
            }
            element += together;
        }
    }

    /// Folds the upper lanes into the lower ones.
    pub(super) fn merge_lanes<K: FoldKernel>(kernel: K, lower: &mut [K::Lane], upper: &[K::Lane]) {
        kernel.merge_keys(lower, upper);
    }

    /// Finds the first element of each column that has the column's key.
    pub(super) fn find<K: FoldKernel>(
        kernel: K,
        found: &mut [u32],
        keys: &[K::Lane],
        matrix: Matrix<K::Lane>,
        first: usize,
    ) {
        let width = keys.len();
        for element in 0..matrix.elements {
            let position = (first + element) as u32;
            // SAFETY: the matrix has this element of every column.
            let elements = unsafe { matrix.slice_at(element, width) };
            for ((found, &key), &x) in found.iter_mut().zip(keys).zip(elements) {
                let position = if kernel.has_key(x, key) { position } else { u32::MAX };
                *found = position.min(*found);
            }
        }
    }
}
