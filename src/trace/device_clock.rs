//! The seam between the recorder and a source of device times.
//!
//! The driver layer registers a source when it opens the first device. Event pairs placed by a calibrated clock are one such
//! source, the records of a profiling library another.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::event::Event;

/// The result of a look at the device's finished work.
#[derive(Default)]
pub(crate) struct Collected {
    /// The events, on each track in the order of their starts and without partial overlaps.
    pub(crate) events: Vec<Event>,
    /// Operations whose times are still unknown.
    pub(crate) pending: usize,
    /// Operations whose times will never be known, since the last look.
    pub(crate) lost: u64,
}

/// A source of device times.
pub(crate) trait DeviceClock: Sync {
    /// The source's name in the file.
    fn name(&self) -> Cow<'static, str>;

    /// The reason why a better source does not serve.
    fn reason(&self) -> Option<String>;

    /// Prepares for a new trace.
    fn begin(&self);

    /// Returns the finished work; at the `last` call of a trace all of which anything is known. Called by the recorder's thread
    /// and at the trace's end; never waits for the program's work.
    fn collect(&self, last: bool) -> Collected;

    /// Ends the trace. Returns how many operations were still pending.
    fn end(&self) -> u64;
}

static CLOCK: OnceLock<&'static dyn DeviceClock> = OnceLock::new();

/// Registers the source. Returns false if there is one.
pub(super) fn set(clock: &'static dyn DeviceClock) -> bool {
    CLOCK.set(clock).is_ok()
}

pub(super) fn device_clock() -> Option<&'static dyn DeviceClock> {
    CLOCK.get().copied()
}
