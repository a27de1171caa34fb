//! Rows of a loop in shared memory, and the copies of the next row while the stages of the current one run.
//!
//! A thread reads only what it has copied itself, so a row needs no barrier. Two buffers alternate: the copies of the
//! next row go to the buffer whose elements the previous row has read. Missing elements are copied as 0.

use super::element::Access;
use super::shared::{Slot, arrays_of};
use super::{ROW, RowWriter};
use crate::fuse::plan::rows_storage::{BUFFERS, RowStorage, SharedArray};
use crate::fuse::ptx::Name;

/// The buffers of a loop over rows.
pub(super) struct Buffers {
    /// The address of the warp's segment in the first buffer, plus that in the last.
    both: Name,
    /// The address of the segment in the buffer of the current row.
    current: Name,
}

impl RowWriter<'_> {
    /// Returns the operands of rows that are copied ahead.
    fn copied_operands(&self) -> Vec<(usize, SharedArray)> {
        let RowStorage::SharedDoubleBuffered(row) = &self.key.storage else { return Vec::new() };
        arrays_of(row)
    }

    /// Returns whether shared memory has a 0 for each missing element, so that its loads need no predicate. A load with
    /// a predicate leaves the old values in its registers, which would hold them from row to row.
    pub(super) fn fills_missing(&self) -> bool {
        matches!(self.key.storage, RowStorage::SharedDoubleBuffered(_))
    }

    /// Emits the copy of the first row of a chunk; `None` if rows are not copied ahead. `warp` is that in the block.
    pub(super) fn begin_ahead(&mut self, warp: &str, row: &str) -> Option<Buffers> {
        let RowStorage::SharedDoubleBuffered(shared) = &self.key.storage else { return None };
        let kernel = &mut self.kernel;
        let start = kernel.bits32("mov.u32", &[ROW]);
        let stride = shared.stride.to_string();
        let current = kernel.bits32("mad.lo.u32", &[warp, &stride, &start]);
        let buffer = ((BUFFERS - 1) * self.key.warps * shared.stride).to_string();
        let last = kernel.bits32("add.u32", &[&current, &buffer]);
        let both = kernel.bits32("add.u32", &[&current, &last]);
        // The loop changes it.
        let current = kernel.bits32("mov.u32", &[&current]);
        self.copy_ahead(row, &current);
        self.kernel.line("cp.async.commit_group;");
        Some(Buffers { both, current })
    }

    /// Emits the copies of a row to the segment at this address.
    fn copy_ahead(&mut self, row: &str, segment: &str) {
        let slot = Slot { segment: segment.to_owned(), index: self.thread.lane.clone() };
        let (arrays, first) = (self.copied_operands(), self.thread.first.clone());
        self.begin_row(row, |operand| arrays.iter().any(|(copied, _)| *copied == operand));
        for &(operand, array) in &arrays {
            self.copy_elements(operand, array, &slot, &first);
        }
    }

    /// Emits the copy of the next row, unless only one is `left`, and the wait for the current one.
    pub(super) fn next_ahead(&mut self, buffers: &Buffers, row: &str, left: &str) {
        let other = self.kernel.bits32("sub.u32", &[&buffers.both, &buffers.current]);
        let mnemonic = if self.key.wide { "setp.eq.u64" } else { "setp.eq.u32" };
        let is_last = self.kernel.predicate(mnemonic, &[left, "1"]);
        let unique = self.kernel.writer.unique();
        self.kernel.line(format!("@{is_last} bra $last_{unique};"));
        let next = self.kernel.plus(row, 1);
        self.copy_ahead(&next, &other);
        self.kernel.line(format!("$last_{unique}:"));
        // After the last row, an empty group.
        self.kernel.line("cp.async.commit_group;");
        self.kernel.line("cp.async.wait_group 1;");
        self.slot = Slot { segment: buffers.current.clone(), index: self.thread.lane.clone() };
    }

    /// Emits the exchange of the buffers at the end of a row.
    pub(super) fn end_ahead(&mut self, buffers: &Buffers) {
        let Buffers { both, current } = buffers;
        self.kernel.line(format!("sub.u32 {current}, {both}, {current};"));
    }

    /// Forgets elements that the next stage loads from shared memory again, which takes fewer registers.
    pub(super) fn forget_shared(&self, accesses: &mut [Access]) {
        let copied = self.copied_operands();
        for (input, operand) in self.operand_of.iter().enumerate() {
            if copied.iter().any(|(copied, _)| Some(*copied) == *operand) {
                accesses.iter_mut().for_each(|access| access.raw[input].clear());
            }
        }
    }
}
