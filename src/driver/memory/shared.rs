//! [`SharedBuffer`], a buffer with several holders.
//!
//! What must stay true: holders are bitwise copies of one buffer, which has one count of the block. Only who holds it alone
//! writes to it or takes it apart, and the last one drops it.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::process::abort;
use std::sync::atomic::Ordering;

use super::buffer::DeviceBuffer;

/// More holders than these could make the count wrap around, by leaking.
const MOST: usize = isize::MAX as usize;

/// A buffer that is shared as by an `Arc`, but without memory of its own for the count, which lies with the block's: a small
/// operation's result is there, and gone, without a call of the heap's and two atomic writes.
pub(crate) struct SharedBuffer(ManuallyDrop<DeviceBuffer<u8>>);

impl From<DeviceBuffer<u8>> for SharedBuffer {
    /// Its first holder: the count of a block is 1 as long as nobody shares it.
    #[inline]
    fn from(buffer: DeviceBuffer<u8>) -> SharedBuffer {
        SharedBuffer(ManuallyDrop::new(buffer))
    }
}

impl SharedBuffer {
    /// Whether nobody else holds it.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        // Behind what the others did before they let it go. Nobody can begin to share it meanwhile but by this holder.
        self.0.allocation.holders.load(Ordering::Acquire) == 1
    }

    /// The buffer itself, where nobody else holds it.
    pub(crate) fn into_unique(self) -> Option<DeviceBuffer<u8>> {
        if !self.is_unique() {
            return None;
        }
        let mut holder = ManuallyDrop::new(self);
        // SAFETY: nobody else holds it, and this holder is not dropped.
        Some(unsafe { ManuallyDrop::take(&mut holder.0) })
    }

    /// To write, where nobody else holds it.
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
        if held > MOST {
            abort();
        }
        // SAFETY: the copy is a holder, which is counted; the buffer is dropped by the last one alone.
        SharedBuffer(unsafe { std::ptr::read(&self.0) })
    }
}

impl Drop for SharedBuffer {
    #[inline]
    fn drop(&mut self) {
        // Alone it need not be counted down.
        if self.is_unique() || self.0.allocation.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: nobody else holds it, and this one is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
