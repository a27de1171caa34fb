//! Events: markers in a stream's order, and a pool of them for each device.
//!
//! Creating an event takes microseconds; reusing one takes none. Every dropped event therefore returns to its device's
//! pool. An event may be reused while a stream still waits for it: a wait refers to the record that was current when it
//! was issued.

use std::sync::{Arc, Mutex, PoisonError};

use super::context::{Handle, NOT_READY, call};
use super::device::{Device, DeviceState};
use super::graph::capture;
use super::memory::Resource;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::sys::driver::{CUevent, CUevent_st};
use crate::trace;

const DEFAULT: u32 = 0;
const DISABLE_TIMING: u32 = 2;

/// Unused events, with and without timing.
#[derive(Default)]
pub(crate) struct EventPool {
    timing: Mutex<Vec<Handle<CUevent_st>>>,
    ordering: Mutex<Vec<Handle<CUevent_st>>>,
}

impl EventPool {
    fn list(&self, timing: bool) -> &Mutex<Vec<Handle<CUevent_st>>> {
        if timing { &self.timing } else { &self.ordering }
    }

    /// Removes every event, for the caller to destroy.
    pub(crate) fn take_all(&self) -> Vec<Handle<CUevent_st>> {
        let mut all = std::mem::take(&mut *self.timing.lock().unwrap_or_else(PoisonError::into_inner));
        all.append(&mut self.ordering.lock().unwrap_or_else(PoisonError::into_inner));
        all
    }
}

/// A driver event that returns to its device's pool when dropped.
pub(crate) struct EventCell {
    device: &'static DeviceState,
    pub(crate) raw: Handle<CUevent_st>,
    timing: bool,
}

impl EventCell {
    /// Takes an event from the pool or creates one. The context must be current.
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

    /// Returns whether all work before the last record is done. Never blocks.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        let _bound = self.device.bind()?;
        self.query()
    }

    /// As [`is_complete`](Self::is_complete). The context is current.
    pub(super) fn query(&self) -> Result<bool> {
        // SAFETY: the event is live.
        let status = unsafe { (self.device.api.cuEventQuery()?)(self.raw.0) };
        if status.0 == NOT_READY {
            return Ok(false);
        }
        self.device.check("cuEventQuery", status).map(|()| true)
    }

    /// Returns the time from this event to another one of its device in milliseconds, negative if the other was earlier. Both
    /// record time and are complete; the context is current.
    pub(super) fn milliseconds_to(&self, end: &EventCell) -> Result<f32> {
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are live; the pointer is to a local.
        unsafe { call!(self.device, cuEventElapsedTime(&mut milliseconds, self.raw.0, end.raw.0))? };
        Ok(milliseconds)
    }

    /// As [`is_complete`](Self::is_complete), for a caller that only needs to know that the memory is unused. True for
    /// a device that was reset, because a reset ends all work.
    pub(crate) fn is_released(&self) -> Result<bool> {
        if self.device.was_reset() { Ok(true) } else { self.is_complete() }
    }

    /// As [`synchronize`](Self::synchronize), with the meaning of [`is_released`](Self::is_released).
    pub(crate) fn wait_until_released(&self) -> Result<()> {
        if self.device.was_reset() { Ok(()) } else { self.synchronize() }
    }

    /// Returns whether the work before the event ended with its device, so that another device's stream need not wait
    /// for it.
    ///
    /// # Errors
    ///
    /// [`Error::ContextLost`] if that work will never complete. The driver must not see the event any more.
    pub(crate) fn is_over(&self) -> Result<bool> {
        if !self.device.is_lost() {
            return Ok(false);
        }
        if self.device.was_finished() { Ok(true) } else { Err(self.device.lost_error()) }
    }

    /// Blocks until all work before the last record is done.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _wait = span_of_wait();
        let _bound = self.device.bind()?;
        // SAFETY: the event is live.
        unsafe { call!(self.device, cuEventSynchronize(self.raw.0)) }
    }
}

/// The range of the host's wait for an event in a trace.
pub(super) fn span_of_wait() -> trace::Range {
    trace::span("wait", || ("wait for an event".into(), Vec::new()))
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
    /// Destroys the unused events.
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

/// A marker in a stream's order that other streams and the host can wait for.
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

/// The last record of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// No record by this owner. A pooled event still has the record of an earlier owner.
    None,
    /// A point in a stream.
    Real,
    /// A point in the capture with this id.
    Captured(u64),
}

impl Device {
    /// Creates an event for ordering. It records no time, which makes waiting for it cheaper.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn event(&self) -> Result<Event> {
        self.make_event(false)
    }

    /// Creates an event that records time, for [`Event::elapsed_ms`].
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
    /// Records the event behind all work issued to the stream so far. A later record replaces an earlier one. On a
    /// stream that is being captured it marks a point in the capture, which other streams of the capture can wait for.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, the driver's errors, or [`Error::ContextLost`].
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

    /// Fails if the event was recorded in a capture.
    pub(super) fn outside_of_captures(&self, operation: &'static str) -> Result<()> {
        match self.record {
            Record::Captured(_) => Err(capture::not_capturable(
                operation,
                "the event was recorded in a capture, which does nothing: record it again outside",
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether the work before the event is done; true if nothing was recorded. Never blocks.
    ///
    /// # Errors
    ///
    /// A fault of that work, or [`Error::ContextLost`].
    pub fn is_complete(&self) -> Result<bool> {
        self.outside_of_captures("Event::is_complete")?;
        if self.record == Record::Real { self.cell.is_complete() } else { Ok(true) }
    }

    /// Blocks until the work before the event is done. Returns at once if nothing was recorded.
    ///
    /// # Errors
    ///
    /// A fault of that work, a [device-side error](super::KernelError), or [`Error::ContextLost`].
    pub fn synchronize(&self) -> Result<()> {
        self.outside_of_captures("Event::synchronize")?;
        if self.record == Record::Real {
            self.cell.synchronize()?;
        }
        self.device().0.take_report()
    }

    /// Returns the time from this event to `end` in milliseconds, with a resolution of about half a microsecond.
    ///
    /// # Errors
    ///
    /// One of the two records no time, was not recorded, or is not complete; or the driver's errors.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32> {
        for event in [self, end] {
            event.outside_of_captures("Event::elapsed_ms")?;
            if !event.cell.timing || event.record == Record::None {
                let found = if event.cell.timing {
                    "an event that was never recorded"
                } else {
                    "an event without timing"
                };
                return Err(Error::invalid("elapsed_ms", found, "recorded events of Device::timing_event"));
            }
        }
        let _bound = self.cell.device.bind()?;
        self.cell.milliseconds_to(&end.cell)
    }

    /// The event's device.
    pub fn device(&self) -> Device {
        Device(self.cell.device)
    }

    /// The id of the stream that the event was recorded on last, or 0.
    pub(super) fn recorded_on(&self) -> u64 {
        self.on
    }

    /// The event's last record.
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
