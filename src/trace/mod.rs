//! The recorder of time: host calls, launches, copies, allocations and the device's work in one file.
//!
//! `SELVEDGE_TRACE=trace.json.gz` records a whole process, [`start`] and [`stop`] a part of it. The file has Chrome trace
//! events, which Perfetto and `chrome://tracing` open, and `selvedge trace FILE` prints as tables. `docs/tracing.md` describes
//! the events.
//!
//! - `event` is one event and its JSON.
//! - `buffer` collects the events of a thread.
//! - `nvtx` shows ranges to profilers that inject themselves.
//! - `recording` is the file, the thread that writes it, and its end.
//! - `device_clock` is the seam to whatever measures the device.
//! - `state` is the state that all of them read.
//!
//! Invariants: without a trace a hooked path pays one relaxed load ([`is_on`]); recording never fails or blocks the program,
//! a full buffer drops events and the file says how many; the file is flushed regularly, so that a process which is killed
//! leaves a readable file.

mod buffer;
mod device_clock;
mod event;
mod nvtx;
mod recording;
mod state;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) use buffer::{current_track, record};
pub(crate) use device_clock::{Collected, DeviceClock};
pub(crate) use event::{Arguments, Event, Phase, Track, Value};

use crate::error::Result;
use state::{OFF, ON, STATE, TRACES};

/// Returns whether a trace is being recorded. The first call starts the trace that `SELVEDGE_TRACE` names.
#[inline(always)]
pub fn is_on() -> bool {
    let state = STATE.load(Ordering::Relaxed);
    state != OFF && (state == ON || recording::start_from_environment())
}

/// Returns whether ranges are shown: by a trace, or by a profiler.
#[inline(always)]
fn has_ranges() -> bool {
    let state = STATE.load(Ordering::Relaxed);
    state != OFF && (state == ON || recording::has_ranges())
}

/// Starts a trace into a file, which is replaced. [`stop`] or the end of the process ends it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("trace.json.gz");
/// selvedge::trace::start(&path)?;
/// {
///     let _range = selvedge::trace::range("load batch");
/// }
/// selvedge::trace::stop()?;
/// assert!(path.exists());
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidArgument`](crate::Error::InvalidArgument) while another trace is on or in a process that was forked while
/// one was on, and [`Error::FileNotWritten`](crate::Error::FileNotWritten) if the file cannot be created.
pub fn start(path: impl AsRef<Path>) -> Result<()> {
    // The variable is the process's first trace.
    is_on();
    recording::start(path.as_ref())
}

/// Ends the trace and completes its file. Waits at most a second for the device's work that is still running; the file says
/// how many operations were left. Does nothing without a trace.
///
/// # Errors
///
/// [`Error::FileNotWritten`](crate::Error::FileNotWritten) if the file could not be written, now or before.
pub fn stop() -> Result<()> {
    recording::stop()
}

/// Records the time from here to the drop of the returned guard under a name of the program's choice. A profiler that injects
/// itself by NVTX (`NVTX_INJECTION64_PATH`) shows the range, too, if the guard is dropped on the thread that made it.
///
/// A name that is not a constant costs its allocation even without a trace; see [`is_on`].
pub fn range(name: impl Into<Cow<'static, str>>) -> Range {
    if has_ranges() { Range::open("range", name.into(), Arguments::new()) } else { Range(None) }
}

/// A range that ends when it is dropped. See [`range`].
#[must_use = "the range ends when this is dropped"]
pub struct Range(Option<OpenRange>);

struct OpenRange {
    category: &'static str,
    name: Cow<'static, str>,
    arguments: Arguments,
    start: u64,
    trace: u64,
    /// The thread on which a profiler has the range.
    pushed: Option<std::thread::ThreadId>,
}

impl Range {
    #[cold]
    fn open(category: &'static str, name: Cow<'static, str>, arguments: Arguments) -> Range {
        let pushed = nvtx::push(&name).then(|| std::thread::current().id());
        Range(Some(OpenRange { category, name, arguments, start: now(), trace: trace_id(), pushed }))
    }
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.end();
        }
    }
}

impl OpenRange {
    #[cold]
    fn end(self) {
        if self.pushed.is_some_and(|thread| thread == std::thread::current().id()) {
            nvtx::pop();
        }
        if self.trace != trace_id() {
            return;
        }
        record(Event {
            phase: Phase::Complete { duration: now() - self.start },
            category: self.category,
            name: self.name,
            start: self.start,
            track: None,
            arguments: self.arguments,
        });
    }
}

impl std::fmt::Debug for Range {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.0.as_ref().map_or("off", |open| &open.name);
        write!(formatter, "Range({name})")
    }
}

/// As [`range`], for the library: `describe` gives the name and the arguments, and runs only during a trace.
#[inline(always)]
pub(crate) fn span(
    category: &'static str,
    describe: impl FnOnce() -> (Cow<'static, str>, Arguments),
) -> Range {
    if !has_ranges() {
        return Range(None);
    }
    let (name, arguments) = describe();
    Range::open(category, name, arguments)
}

/// Records a point in time, described as in [`span`].
#[inline(always)]
pub(crate) fn instant(category: &'static str, describe: impl FnOnce() -> (Cow<'static, str>, Arguments)) {
    if is_on() {
        let (name, arguments) = describe();
        record(Event { phase: Phase::Instant, category, name, start: now(), track: None, arguments });
    }
}

/// Registers the source of device times. Only the first one counts.
pub(crate) fn set_device_clock(clock: &'static dyn DeviceClock) {
    // A trace that starts later begins the clock itself.
    let is_on = is_on();
    if device_clock::set(clock) {
        if is_on {
            clock.begin();
        }
        // The driver ends in handlers of the process's end; those that are registered later run earlier.
        recording::end_with_process();
    }
}

/// The number of the current trace, which no other has.
pub(crate) fn trace_id() -> u64 {
    TRACES.load(Ordering::Relaxed)
}

/// Nanoseconds of the monotonic clock since the first call.
pub(crate) fn now() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    u64::try_from(FIRST.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}
