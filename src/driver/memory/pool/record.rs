//! The pool's requests, for a [`MemoryTrace`] and for the recorder of time ([`trace`](crate::trace)). They cost two loads while
//! neither is on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::trace::{MemoryTrace, TraceEvent};
use crate::trace::{self, Event, Phase, Track};

/// A block that is allocated or freed.
#[derive(Clone, Copy)]
pub(crate) struct RecordedBlock {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// The number of bytes requested.
    pub(crate) requested: usize,
}

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
    /// Bytes in use, counted since the recorder of time began.
    live: AtomicI64,
    device: AtomicI32,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether requests are recorded by anyone.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed) || trace::is_on()
    }

    /// Counts from so many bytes in use.
    pub(super) fn begin_trace(&self, device: i32, live: u64) {
        self.device.store(device, Ordering::Relaxed);
        self.live.store(i64::try_from(live).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Records a request and the bytes in use for the recorder of time.
    fn add_to_trace(&self, name: &'static str, stream: u64, block: RecordedBlock, change: i64) {
        let live = self.live.fetch_add(change, Ordering::Relaxed) + change;
        let (start, device) = (trace::now(), self.device.load(Ordering::Relaxed));
        let mut arguments = vec![
            ("bytes", block.requested.into()),
            ("block_bytes", block.bytes.into()),
            ("device", device.into()),
        ];
        if stream != 0 {
            arguments.push(("stream", stream.into()));
        }
        let event = |phase, name: &'static str, track, arguments| Event {
            phase,
            category: "memory",
            name: name.into(),
            start,
            track,
            arguments,
        };
        trace::record(event(Phase::Instant, name, None, arguments));
        let track = Some(Track::stream(device, 0));
        trace::record(event(Phase::Counter, "memory", track, vec![("live", live.max(0).into())]));
    }

    /// Starts a trace; returns false if one is being recorded.
    pub(crate) fn start(&self, device: String) -> bool {
        let mut recording = self.lock();
        if self.on.load(Ordering::Relaxed) {
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
    pub(crate) fn allocated(&self, stream: u64, block: RecordedBlock) {
        if trace::is_on() {
            self.add_to_trace("allocate", stream, block, block.bytes as i64);
        }
        let mut recording = self.lock();
        // A trace numbers allocations by 32 bits.
        if !self.on.load(Ordering::Relaxed) || recording.allocations == u32::MAX {
            return;
        }
        let next = recording.streams.len() as u32 + 1;
        let stream = *recording.streams.entry(stream).or_insert(next);
        recording.trace.events.push(TraceEvent::Allocate { stream, bytes: block.requested as u64 });
        let number = recording.allocations;
        recording.allocations += 1;
        recording.live.insert(block.address, number);
    }

    /// Records a freed block, before it can be allocated again.
    #[cold]
    pub(crate) fn freed(&self, block: RecordedBlock) {
        if trace::is_on() && block.bytes > 0 {
            self.add_to_trace("free", 0, block, -(block.bytes as i64));
        }
        let mut recording = self.lock();
        if let Some(allocation) = recording.live.remove(&block.address) {
            recording.trace.events.push(TraceEvent::Free { allocation });
        }
    }
}
