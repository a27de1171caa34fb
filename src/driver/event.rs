//! Events: marks in a stream's order, and a pool of them for each device.
//!
//! Making an event takes microseconds and re-using one takes none, so every dropped event goes back to its device's
//! pool. Re-using one that a stream still waits for is right: a wait is for the record that was current when the wait
//! was issued.

use std::sync::{Arc, Mutex, PoisonError};

use super::context::{Handle, NOT_READY, call};
use super::device::{Device, DeviceState};
use super::graph::capture;
use super::memory::Resource;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::sys::driver::{CUevent, CUevent_st};

const DEFAULT: u32 = 0;
const DISABLE_TIMING: u32 = 2;

/// Events that are not in use, by whether they take times.
#[derive(Default)]
pub(crate) struct EventPool {
    timing: Mutex<Vec<Handle<CUevent_st>>>,
    ordering: Mutex<Vec<Handle<CUevent_st>>>,
}

impl EventPool {
    fn list(&self, timing: bool) -> &Mutex<Vec<Handle<CUevent_st>>> {
        if timing { &self.timing } else { &self.ordering }
    }

    /// Takes every event out, to be destroyed.
    pub(crate) fn take_all(&self) -> Vec<Handle<CUevent_st>> {
        let mut all = std::mem::take(&mut *self.timing.lock().unwrap_or_else(PoisonError::into_inner));
        all.append(&mut self.ordering.lock().unwrap_or_else(PoisonError::into_inner));
        all
    }
}

/// A driver event that goes back to its device's pool.
pub(crate) struct EventCell {
    device: &'static DeviceState,
    pub(crate) raw: Handle<CUevent_st>,
    timing: bool,
}

impl EventCell {
    /// An event of the device, new or re-used. The context must be current.
    pub(crate) fn take(device: &'static DeviceState, timing: bool) -> Result<EventCell> {
        let pooled = device.events.list(timing).lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(raw) = pooled {
            return Ok(EventCell { device, raw, timing });
        }
        let mut raw: CUevent = std::ptr::null_mut();
        let flags = if timing { DEFAULT } else { DISABLE_TIMING };
        // SAFETY: the pointer is to a local; the device's context is current.
        unsafe { call!(device, cuEventCreate(&mut raw, flags))? };
        Ok(EventCell { device, raw: Handle(raw), timing })
    }

    pub(crate) fn device(&self) -> &'static DeviceState {
        self.device
    }

    /// Whether everything before the last record is done. Never blocks.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        let _bound = self.device.bind()?;
        // SAFETY: the event is live.
        let status = unsafe { (self.device.api.cuEventQuery()?)(self.raw.0) };
        if status.0 == NOT_READY {
            return Ok(false);
        }
        self.device.check("cuEventQuery", status).map(|()| true)
    }

    /// As [`is_complete`](Self::is_complete), for whoever only has to know that nothing uses the memory any more: what a
    /// reset took down does not.
    pub(crate) fn has_let_go(&self) -> Result<bool> {
        if self.device.was_reset() { Ok(true) } else { self.is_complete() }
    }

    /// As [`synchronize`](Self::synchronize), with the meaning of [`has_let_go`](Self::has_let_go).
    pub(crate) fn wait_until_let_go(&self) -> Result<()> {
        if self.device.was_reset() { Ok(()) } else { self.synchronize() }
    }

    /// Whether what another device's stream was to wait for is over without a wait.
    ///
    /// # Errors
    ///
    /// [`Error::ContextLost`] where it will never be done. The driver must not see the event any more.
    pub(crate) fn is_over(&self) -> Result<bool> {
        if !self.device.is_lost() {
            return Ok(false);
        }
        if self.device.was_finished() { Ok(true) } else { Err(self.device.lost_error()) }
    }

    /// Blocks until everything before the last record is done.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _bound = self.device.bind()?;
        // SAFETY: the event is live.
        unsafe { call!(self.device, cuEventSynchronize(self.raw.0)) }
    }
}

impl Drop for EventCell {
    fn drop(&mut self) {
        if !self.device.is_lost() {
            self.device
                .events
                .list(self.timing)
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.raw);
        }
    }
}

impl DeviceState {
    /// Destroys the events that are not in use.
    pub(crate) fn destroy_pooled_events(&'static self) -> Result<()> {
        let mut result = Ok(());
        for event in self.events.take_all() {
            if let Err(error) = self.release(Resource::Event(event)) {
                result = Err(error);
            }
        }
        result
    }
}

/// A mark in a stream's order, which other streams and the host can wait for.
///
/// ```no_run
/// # fn main() -> selvedge::Result<()> {
/// # let device = selvedge::driver::Device::new(0)?;
/// # let stream = device.stream()?;
/// let (mut start, mut end) = (device.timing_event()?, device.timing_event()?);
/// start.record(&stream)?;
/// // … work …
/// end.record(&stream)?;
/// end.synchronize()?;
/// println!("{} ms", start.elapsed_ms(&end)?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    cell: Arc<EventCell>,
    record: Record,
    /// The id of the stream of the last record, or 0.
    on: u64,
}

/// What an event marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Nothing; a pooled event still has the record of its earlier life.
    None,
    /// A place in a stream.
    Real,
    /// A place in the capture with this id.
    Captured(u64),
}

impl Device {
    /// An event for ordering. It takes no times, which makes waiting for it cheaper.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn event(&self) -> Result<Event> {
        self.make_event(false)
    }

    /// An event that takes times, for [`Event::elapsed_ms`].
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn timing_event(&self) -> Result<Event> {
        self.make_event(true)
    }

    fn make_event(&self, timing: bool) -> Result<Event> {
        let _bound = self.0.bind()?;
        Ok(Event { cell: Arc::new(EventCell::take(self.0, timing)?), record: Record::None, on: 0 })
    }
}

impl Event {
    /// Marks the place behind everything issued to the stream so far; an earlier mark is forgotten. On a stream that is
    /// captured it marks a place in the capture, for other streams of it to wait for.
    ///
    /// # Errors
    ///
    /// The stream is another device's, the driver's own errors, or [`Error::ContextLost`].
    pub fn record(&mut self, stream: &Stream) -> Result<()> {
        let (mine, theirs) = (self.device(), stream.device());
        mine.0.check_alive()?;
        if mine != theirs {
            return Err(Error::DeviceMismatch {
                operation: "recording an event",
                left: mine.to_string(),
                right: theirs.to_string(),
            });
        }
        let record = match capture::current() {
            Some(capture) if capture.has(stream.state()) => Record::Captured(capture.id),
            _ => Record::Real,
        };
        // SAFETY: event and stream are live and of one context.
        stream.state().submit(|| unsafe {
            call!(self.cell.device, cuEventRecord(self.cell.raw.0, stream.state().raw.0))
        })?;
        (self.record, self.on) = (record, stream.id());
        Ok(())
    }

    /// Fails for a mark that is no place in time.
    pub(super) fn outside_of_captures(&self, operation: &'static str) -> Result<()> {
        match self.record {
            Record::Captured(_) => Err(capture::not_capturable(
                operation,
                "the event was recorded in a capture, which does nothing: record it again outside",
            )),
            _ => Ok(()),
        }
    }

    /// Whether the work before the mark is done; true where nothing was recorded. Never blocks.
    ///
    /// # Errors
    ///
    /// A fault of that work, or [`Error::ContextLost`].
    pub fn is_complete(&self) -> Result<bool> {
        self.outside_of_captures("Event::is_complete")?;
        if self.record == Record::Real { self.cell.is_complete() } else { Ok(true) }
    }

    /// Blocks until the work before the mark is done; at once where nothing was recorded.
    ///
    /// # Errors
    ///
    /// A fault of that work or an error that the device's kernels [reported](super::KernelError), or
    /// [`Error::ContextLost`].
    pub fn synchronize(&self) -> Result<()> {
        self.outside_of_captures("Event::synchronize")?;
        if self.record == Record::Real {
            self.cell.synchronize()?;
        }
        self.device().0.take_report()
    }

    /// The time from this mark to `end`, in milliseconds, to about half a microsecond.
    ///
    /// # Errors
    ///
    /// One of the two takes no times, was not recorded, or is not complete; or the driver's errors.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32> {
        for event in [self, end] {
            event.outside_of_captures("Event::elapsed_ms")?;
            if !event.cell.timing || event.record == Record::None {
                let found = if event.cell.timing {
                    "an event that was never recorded"
                } else {
                    "an event without times"
                };
                return Err(Error::invalid("elapsed_ms", found, "recorded events of Device::timing_event"));
            }
        }
        let _bound = self.cell.device.bind()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are live; the pointer is to a local.
        unsafe {
            call!(self.cell.device, cuEventElapsedTime(&mut milliseconds, self.cell.raw.0, end.cell.raw.0))?
        };
        Ok(milliseconds)
    }

    /// The event's device.
    pub fn device(&self) -> Device {
        Device(self.cell.device)
    }

    /// The id of the stream that it was recorded on last, or 0.
    pub(super) fn recorded_on(&self) -> u64 {
        self.on
    }

    /// What the event marks.
    pub(crate) fn record_of(&self) -> Record {
        self.record
    }

    pub(crate) fn cell(&self) -> &EventCell {
        &self.cell
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Event(device {}, timing: {})", self.cell.device.ordinal, self.cell.timing)
    }
}
