//! [`SharedBuffer`], a buffer with several holders.
//!
//! Invariants: holders are bitwise copies of one buffer, and the block has one count of them. Only the single holder of
//! a buffer writes to it or takes it apart, and the last one drops it.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::process::abort;
use std::sync::atomic::Ordering;

use super::buffer::DeviceBuffer;
use crate::driver::graph::capture;

/// The largest number of holders. More of them, from leaks, could overflow the count.
const MAX_BYTES: usize = isize::MAX as usize;

/// A buffer shared as by an `Arc`, with the count stored in the block instead of on the heap. This saves small
/// operations a heap allocation and two atomic writes.
pub(crate) struct SharedBuffer(ManuallyDrop<DeviceBuffer<u8>>);

impl From<DeviceBuffer<u8>> for SharedBuffer {
    /// Creates the first holder: the count of an unshared block is 1.
    #[inline]
    fn from(buffer: DeviceBuffer<u8>) -> SharedBuffer {
        SharedBuffer(ManuallyDrop::new(buffer))
    }
}

impl SharedBuffer {
    /// Returns whether this is the only holder.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        // Ordered behind the releases of the other holders. Only this holder could add another one meanwhile.
        self.0.allocation.holders.load(Ordering::Acquire) == 1
    }

    /// Returns whether work of this thread may overwrite elements that it reads: see [`capture::may_overwrite`].
    pub(crate) fn may_overwrite(&self) -> bool {
        capture::may_overwrite(&self.0.allocation)
    }

    /// Returns the buffer itself, if this is the only holder.
    pub(crate) fn into_unique(self) -> Option<DeviceBuffer<u8>> {
        if !self.is_unique() {
            return None;
        }
        let mut holder = ManuallyDrop::new(self);
        // SAFETY: this is the only holder, and it is not dropped.
        Some(unsafe { ManuallyDrop::take(&mut holder.0) })
    }

    /// Returns the buffer for writing, if this is the only holder.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut DeviceBuffer<u8>> {
        self.is_unique().then(|| &mut *self.0)
    }
}

impl Deref for SharedBuffer {
    type Target = DeviceBuffer<u8>;

    #[inline]
    fn deref(&self) -> &DeviceBuffer<u8> {
        &self.0
    }
}

impl Clone for SharedBuffer {
    fn clone(&self) -> SharedBuffer {
        let held = self.0.allocation.holders.fetch_add(1, Ordering::Relaxed);
        if held > MAX_BYTES {
            abort();
        }
        // SAFETY: the copy is a counted holder; only the last holder drops the buffer.
        SharedBuffer(unsafe { std::ptr::read(&self.0) })
    }
}

impl Drop for SharedBuffer {
    #[inline]
    fn drop(&mut self) {
        // A single holder need not decrement the count.
        if self.is_unique() || self.0.allocation.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: this is the last holder, and it is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
