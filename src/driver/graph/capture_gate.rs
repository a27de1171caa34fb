//! The count of a device's captures, which calls that would end every capture wait for.

use std::sync::{PoisonError, RwLock};

/// The number of captures on a device. A wait for the whole context would end them, so it requires that there is none.
#[derive(Default)]
pub(crate) struct CaptureGate(RwLock<usize>);

impl CaptureGate {
    /// Adds `change` to the number of captures. Waits until no caller of [`while_none`](Self::while_none) is at work.
    pub(super) fn open(&self, change: isize) {
        let mut captures = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *captures = captures.saturating_add_signed(change);
    }

    /// Calls `work` if no capture is in progress. None begins meanwhile.
    pub(crate) fn while_none<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        let captures = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if *captures == 0 { Some(work()) } else { None }
    }
}
