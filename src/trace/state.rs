//! The recorder's state, and the wake-up of its thread.

use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Condvar, Mutex, PoisonError};

/// The environment was not read yet.
pub(super) const UNREAD: u8 = 0;
pub(super) const OFF: u8 = 1;
pub(super) const ON: u8 = 2;
/// No trace, but a profiler that shows ranges.
pub(super) const RANGES: u8 = 3;

pub(super) static STATE: AtomicU8 = AtomicU8::new(UNREAD);
/// The number of traces that were started. An event belongs to the trace in which it began.
pub(super) static TRACES: AtomicU64 = AtomicU64::new(0);
/// Asks the thread to write before the interval is over.
pub(super) static WAKE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Makes the thread write now.
#[cold]
pub(super) fn wake() {
    *WAKE.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    WAKE.1.notify_one();
}
