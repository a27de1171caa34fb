//! The trace recorder. It costs one load while no trace is being recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::trace::{MemoryTrace, TraceEvent};

#[derive(Default)]
struct Recording {
    trace: MemoryTrace,
    /// The trace's number of each stream, by id.
    streams: HashMap<u64, u32>,
    /// The trace's number of each live allocation, by address.
    live: HashMap<u64, u32>,
    allocations: u32,
}

/// The recorder of a device's pool requests.
#[derive(Default)]
pub(crate) struct Recorder {
    on: AtomicBool,
    recording: Mutex<Recording>,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a trace is being recorded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Starts a trace; returns false if one is being recorded.
    pub(crate) fn start(&self, device: String) -> bool {
        let mut recording = self.lock();
        if self.is_on() {
            return false;
        }
        *recording = Recording { trace: MemoryTrace { device, events: Vec::new() }, ..Recording::default() };
        self.on.store(true, Ordering::Relaxed);
        true
    }

    /// Ends the trace; `None` if none was being recorded.
    pub(crate) fn finish(&self) -> Option<MemoryTrace> {
        let mut recording = self.lock();
        let was_on = self.on.swap(false, Ordering::Relaxed);
        was_on.then(|| std::mem::take(&mut *recording).trace)
    }

    /// Records an allocated block.
    #[cold]
    pub(crate) fn allocated(&self, stream: u64, address: u64, requested: usize) {
        let mut recording = self.lock();
        // A trace numbers allocations by 32 bits.
        if !self.is_on() || recording.allocations == u32::MAX {
            return;
        }
        let next = recording.streams.len() as u32 + 1;
        let stream = *recording.streams.entry(stream).or_insert(next);
        recording.trace.events.push(TraceEvent::Allocate { stream, bytes: requested as u64 });
        let number = recording.allocations;
        recording.allocations += 1;
        recording.live.insert(address, number);
    }

    /// Records a freed block, before it can be allocated again.
    #[cold]
    pub(crate) fn freed(&self, address: u64) {
        let mut recording = self.lock();
        if let Some(allocation) = recording.live.remove(&address) {
            recording.trace.events.push(TraceEvent::Free { allocation });
        }
    }
}
