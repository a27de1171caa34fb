//! Folds of rows whose elements are read one after another.

use std::ops::Range;

use super::kernel::FoldKernel;
use super::source::SCRATCH;
use super::vectors::vectorized;
use super::{Run, Workspace};

/// Elements of a block, whose extreme is found before the position of the row's extreme is.
pub(super) const BLOCK: usize = 2048;

impl Run<'_> {
    /// Returns whether the values of several rows are computed at once: a call for a short row each would cost more than
    /// its elements.
    pub(super) fn is_computed_together(&self) -> bool {
        !self.source.is_direct() && self.row <= SCRATCH / 2
    }

    /// Folds whole rows whose values are computed together.
    pub(super) fn whole_rows<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        part: usize,
        rows: Range<usize>,
    ) -> Vec<K::Lane> {
        let Workspace { prologue, scratch, .. } = workspace;
        let together = SCRATCH / self.row;
        let mut keys = Vec::with_capacity(rows.len());
        for first in rows.clone().step_by(together) {
            let count = together.min(rows.end - first);
            let values = prologue.values(scratch, part, first * self.row, count * self.row);
            keys.extend(values.chunks_exact(self.row).map(|row| kernel.fold_row(row)));
        }
        keys
    }

    /// Folds elements of a row, which are a node of its tree.
    pub(super) fn row<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        part: usize,
        row: usize,
        elements: Range<usize>,
    ) -> K::Lane {
        let first = row * self.row + elements.start;
        let Workspace { prologue, scratch, tree, .. } = workspace;
        if let Some(elements) = self.source.direct(first, elements.len()) {
            return kernel.fold_row(elements);
        }
        for from in (0..elements.len()).step_by(SCRATCH) {
            let count = SCRATCH.min(elements.len() - from);
            let values = prologue.values(scratch, part, first + from, count);
            let key = kernel.fold_row(values);
            if count == elements.len() {
                return key;
            }
            tree.push(kernel, &[key]);
        }
        // The row has elements, so the tree has a node.
        tree.finish(kernel).first().copied().unwrap_or(bytemuck::Zeroable::zeroed())
    }

    /// Returns the extreme of elements of a row, and its index in the row.
    pub(super) fn index_of_row<K: FoldKernel>(
        &self,
        kernel: K,
        workspace: &mut Workspace<'_, K::Lane>,
        row: usize,
        elements: Range<usize>,
    ) -> (K::Lane, u64) {
        if elements.len() <= BLOCK {
            let Workspace { prologue, scratch, .. } = workspace;
            let first = row * self.row + elements.start;
            let row = match self.source.direct(first, elements.len()) {
                Some(row) => row,
                None => prologue.values(scratch, 0, first, elements.len()),
            };
            let (key, position) = kernel.first_extreme(row);
            return (key, (elements.start + position) as u64);
        }
        let mut start = elements.start;
        let mut of_block = |from: usize, key: Option<K::Lane>| {
            let count = BLOCK.min(elements.end - from);
            let first = row * self.row + from;
            let Workspace { prologue, scratch, .. } = &mut *workspace;
            let block = match self.source.direct(first, count) {
                Some(elements) => elements,
                None => prologue.values(scratch, 0, first, count),
            };
            match key {
                None => (kernel.fold_row(block), 0),
                Some(key) => (key, position(kernel, block, key)),
            }
        };
        let (mut best, _) = of_block(start, None);
        for from in elements.clone().step_by(BLOCK).skip(1) {
            let (key, _) = of_block(from, None);
            if kernel.exceeds(key, best) {
                (best, start) = (key, from);
            }
        }
        let (_, position) = of_block(start, Some(best));
        (best, (start + position) as u64)
    }
}

vectorized! {
    /// Returns the position of the first element with this key.
    pub(super) fn position<K: FoldKernel>(kernel: K, elements: &[K::Lane], key: K::Lane) -> usize {
        const STEP: usize = 32;
        let mut start = 0;
        for chunk in elements.chunks_exact(STEP) {
            // Without an exit within the step, it is a comparison of vectors.
            if chunk.iter().fold(false, |any, &element| any | kernel.has_key(element, key)) {
                break;
            }
            start += STEP;
        }
        let rest = elements[start..].iter();
        start + rest.take_while(|&&element| !kernel.has_key(element, key)).count()
    }
}
