//! Streams: queues of device work, and the points in their order that others wait for.
//!
//! A [`Stream`] is a handle. The driver's stream lives as long as a handle, or a buffer that was last used on it. Ids
//! are never reused. A waiter waits for an event that is recorded *when the first waiter needs it*: programs that use
//! one stream record none. `issued` counts operations whose driver call has returned, so an event recorded at count `p`
//! is behind all of the first `p` operations, whichever threads issued them. `begun` counts operations before the call.
//! If the two counts are equal, no thread is issuing an operation, and a capture may begin (see
//! [`graph`](super::graph)).

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{Handle, NOT_READY, call, gone, stream_call};
use super::device::{Device, DeviceState, NEXT_STREAM_ID};
use super::event::{Event, EventCell, Record};
use super::foreign::{BorrowedStream, call_deleters};
use super::graph::capture::{self, CaptureRoute, CaptureSlot};
use super::kernel_name::KernelName;
use super::memory::{Access, Allocation, Resource, ThreadCaches};
pub(crate) use super::transfer_marks::TransferEnd;
use super::transfer_marks::TransferMarks;
#[cfg(doc)]
use crate::error::Error;
use crate::error::{Result, report_deferred};
use crate::sys::driver::{CUstream, CUstream_st};
use crate::trace;

const NON_BLOCKING: u32 = 1;

/// An in-order queue of device work that does not synchronize with the legacy default stream.
///
/// Cheap to clone; clones refer to the same queue. Dropping the last handle returns the stream's cached memory to the
/// device. Issued work still runs.
#[derive(Clone)]
pub struct Stream(Arc<StreamHandle>);

/// Closes the stream when the last [`Stream`] is dropped.
struct StreamHandle {
    state: Arc<StreamState>,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Release);
        if self.state.device.is_lost() {
            return;
        }
        let result = self.state.device.close_stream(&self.state).and_then(|()| self.state.detach());
        if let Err(error) = result
            && !gone(&error)
        {
            report_deferred(&error);
        }
    }
}

/// The driver's stream and the state of its order. The fields that every operation reads share one cache line, because
/// the driver's calls evict most of ours.
#[repr(C, align(64))]
pub(crate) struct StreamState {
    pub(crate) device: &'static DeviceState,
    pub(crate) raw: Handle<CUstream_st>,
    pub(crate) id: u64,
    /// Operations whose driver call has begun.
    begun: AtomicU64,
    /// Operations whose driver call has returned.
    issued: AtomicU64,
    /// The position of a transfer with no operation issued behind it yet, or 0.
    last_transfer: AtomicU64,
    /// A pointer to an interned name, or null.
    last_kernel: AtomicPtr<KernelName>,
    /// The stream's capture state.
    pub(crate) slot: CaptureSlot,
    /// The newest event and its position.
    marker: Mutex<Marker>,
    transfers: Mutex<TransferMarks>,
    /// Serializes waits and graph launches; see [`submit_alone`](Self::submit_alone).
    alone: Mutex<()>,
    /// Serializes operations that a trace times.
    pub(super) timed: Mutex<()>,
    /// The stream's free blocks and its share of the device's accounting, one cache for each group of threads.
    pub(crate) caches: ThreadCaches,
    priority: i32,
    /// True after the last handle was dropped: the user issues no more work.
    closed: AtomicBool,
    /// Set for a stream of other code.
    pub(super) borrowed: Option<BorrowedStream>,
}

/// A stream's newest event and its position: the number of operations that it is behind.
pub(crate) type Marker = Option<(Arc<EventCell>, u64)>;

/// An operation whose driver call is in progress.
struct InFlight<'a>(&'a StreamState);

impl InFlight<'_> {
    /// Ends the operation and returns its position in the order in which calls return. The order in which calls begin
    /// would give no valid position: an event behind the first `p` to begin need not be behind one of them whose call
    /// is still in progress.
    #[inline]
    fn end(self) -> u64 {
        let position = self.0.issued.fetch_add(1, Ordering::Release) + 1;
        std::mem::forget(self);
        position
    }
}

impl Drop for InFlight<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.issued.fetch_add(1, Ordering::Release);
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        if self.borrowed.is_none() && !self.device.is_lost() {
            self.device.release_or_report(Resource::Stream(self.raw));
        }
    }
}

impl fmt::Display for StreamState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stream {} of device {}", self.id, self.device.ordinal)
    }
}

impl StreamState {
    /// Issues an operation: makes the context current, calls the driver, and counts the operation after the call
    /// returned, even if it failed. Returns the operation's position in the stream.
    #[inline]
    pub(crate) fn submit_at(&self, call: impl FnOnce() -> Result<()>) -> Result<u64> {
        if self.last_transfer.load(Ordering::Relaxed) != 0 {
            self.settle_transfer()?;
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let in_flight = InFlight(self);
        // The guard is large and seldom needed, so the fast path does not create one.
        let _bound = match self.slot.is_open() || !self.device.is_bound()? {
            true => Some(self.bind()?),
            false => None,
        };
        call()?;
        Ok(in_flight.end())
    }

    /// As [`submit`](Self::submit), for waits and graph launches, one at a time. If one thread launches a graph into a
    /// stream while another makes that stream wait for an event, drivers (580.159.04) lose the wait about once in 100
    /// 000 launches. `csrc/reports/waits_beside_graph_launches.cu` reproduces the defect without this library and shows
    /// that this lock is sufficient.
    #[inline]
    pub(crate) fn submit_alone(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.submit(|| self.alone(call))
    }

    /// Calls the driver for a wait or a graph launch. Called inside an operation.
    #[inline]
    pub(super) fn alone(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        call()
    }

    /// Returns whether a thread is between the beginning and the end of an operation.
    pub(crate) fn has_calls_in_flight(&self) -> bool {
        self.begun.load(Ordering::SeqCst) != self.issued.load(Ordering::SeqCst)
    }

    /// The number of operations whose driver call has returned.
    pub(crate) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Acquire)
    }

    /// Orders this stream behind the block's other users and registers it as one. Registers with the capture if this
    /// thread captures.
    #[inline]
    pub(crate) fn enter(self: &Arc<Self>, allocation: &Arc<Allocation>, access: Access) -> Result<()> {
        if !std::ptr::eq(self.device, allocation.device) {
            // The driver must not see memory that went with its context, nor a lost stream.
            self.device.check_alive()?;
            allocation.device.check_alive()?;
        }
        if capture::any()
            && let CaptureRoute::Captured = capture::enter(self, allocation, access)?
        {
            return Ok(());
        }
        allocation.enter(self, access)
    }

    /// As [`submit_at`](Self::submit_at), without the position.
    #[inline]
    pub(crate) fn submit(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.submit_at(call).map(drop)
    }

    /// Marks the operation at this position as a transfer that somebody will wait for. While no operation follows it,
    /// the end of the stream is its end. An event is recorded only before the next operation.
    pub(crate) fn expect_wait(&self, position: u64) {
        self.last_transfer.fetch_max(position, Ordering::Release);
    }

    /// Records the event of a transfer before the next operation. Does nothing during a capture.
    #[cold]
    pub(crate) fn settle_transfer(&self) -> Result<()> {
        // The lock keeps a capture from beginning, which would take the event for its own.
        let marker = self.lock_marker();
        if self.slot.is_open() {
            return Ok(());
        }
        let mut marks = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.last_transfer.load(Ordering::Acquire) != 0 {
            let position = self.issued.load(Ordering::Acquire);
            let event = Arc::new(self.record_with(&marker)?);
            marks.add(position, event)?;
            self.last_transfer.store(0, Ordering::Release);
        }
        Ok(())
    }

    /// Returns how to detect the end of the transfer at this position. A transfer at position 0 copied nothing.
    pub(crate) fn end_of(&self, position: u64) -> TransferEnd {
        if position == 0 {
            return TransferEnd::Done;
        }
        if self.last_transfer.load(Ordering::Acquire) == position {
            return TransferEnd::Stream;
        }
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner).end_of(position)
    }

    /// As [`end_of`](Self::end_of), for the waiter itself: no event is recorded for the transfer any more.
    pub(crate) fn take_end_of(&self, position: u64) -> TransferEnd {
        match self.last_transfer.compare_exchange(position, 0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(0) | Err(_) => self.end_of(position),
            Ok(_) => TransferEnd::Stream,
        }
    }

    /// Returns whether the last user handle is gone, so that no more work follows.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) && !self.slot.is_open()
    }

    /// Returns whether all work is done. Captured work does not count. Never blocks.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.device.check_alive()?;
        // The lock keeps a capture from beginning, which the query would invalidate.
        let marker = self.lock_marker();
        self.is_idle_with(&marker)
    }

    /// As [`is_idle`](Self::is_idle), for a caller that holds the lock.
    pub(crate) fn is_idle_with(&self, _marker: &Marker) -> Result<bool> {
        if let Some(before) = self.stand_in() {
            return before.is_complete();
        }
        let _bound = self.device.bind()?;
        // SAFETY: the stream is live.
        let status = unsafe { (self.device.api.cuStreamQuery()?)(self.raw.0) };
        if status.0 == NOT_READY {
            return Ok(false);
        }
        self.check("cuStreamQuery", status).map(|()| true)
    }

    #[inline]
    pub(crate) fn set_last_kernel(&self, name: &'static KernelName) {
        self.last_kernel.store(std::ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
    }

    pub(crate) fn last_kernel(&self) -> Option<&'static str> {
        // SAFETY: the pointer is null or to an interned name, which is never freed nor written.
        unsafe { self.last_kernel.load(Ordering::Relaxed).as_ref() }.map(KernelName::as_str)
    }

    /// Locks the newest event. No capture begins while the lock is held.
    pub(crate) fn lock_marker(&self) -> MutexGuard<'_, Marker> {
        self.marker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an event behind all work issued so far. Captured work is not issued.
    pub(crate) fn mark(&self) -> Result<Arc<EventCell>> {
        self.mark_at().map(|(event, _)| event)
    }

    /// As [`mark`](Self::mark), with the event's position. During a capture, the operations issued since its beginning
    /// are recorded in the graph only.
    pub(crate) fn mark_at(&self) -> Result<(Arc<EventCell>, u64)> {
        let mut marker = self.lock_marker();
        // Read before the slot: an operation let in by a capture that ends in between is not behind its event.
        let position = self.issued();
        match self.stand_in() {
            Some(before) => Ok((before, position)),
            None => self.mark_with(&mut marker),
        }
    }

    /// As [`mark_at`](Self::mark_at), on a stream that does not capture yet.
    pub(crate) fn mark_with(&self, marker: &mut Marker) -> Result<(Arc<EventCell>, u64)> {
        let position = self.issued();
        if let Some((event, behind)) = &*marker {
            // Other code may have issued work to a stream of its own meanwhile.
            if *behind == position && self.borrowed.is_none() {
                return Ok((event.clone(), position));
            }
        }
        let event = Arc::new(self.record_with(marker)?);
        *marker = Some((event.clone(), position));
        Ok((event, position))
    }

    /// Returns an event for `waiter` to wait for. If both streams are in one capture, it is an event of the capture.
    pub(crate) fn mark_for(&self, waiter: &StreamState) -> Result<Arc<EventCell>> {
        if capture::any() {
            if let Some(capture) = capture::common(self, waiter) {
                return capture.mark(self);
            }
            if waiter.slot.is_open() {
                let found = format!("{waiter} is captured and would wait for {self}, which is not");
                return Err(capture::not_capturable("a wait", found));
            }
        }
        self.mark()
    }

    /// Records a new event behind all work issued so far, for one owner. Fails if the stream captures.
    pub(crate) fn record(&self) -> Result<EventCell> {
        // No capture begins while the lock is held.
        let marker = self.lock_marker();
        if self.slot.is_open() {
            return Err(capture::not_capturable("an event of a copy", format!("{self} is being captured")));
        }
        self.record_with(&marker)
    }

    /// As [`record`](Self::record), for a caller that holds the lock.
    fn record_with(&self, _marker: &Marker) -> Result<EventCell> {
        let _bound = self.device.bind()?;
        let event = EventCell::take(self.device, false)?;
        // SAFETY: event and stream are live and of one context.
        unsafe { stream_call!(self, cuEventRecord(event.raw.0, self.raw.0))? };
        Ok(event)
    }

    /// Makes later work of this stream wait for the event, which may belong to another device.
    pub(crate) fn wait_event(&self, event: &EventCell) -> Result<()> {
        if !std::ptr::eq(self.device, event.device()) && event.is_over()? {
            return Ok(());
        }
        // A wait counts as an operation: an earlier event is not behind the event waited for.
        // SAFETY: event and stream are live.
        self.submit_alone(|| unsafe { stream_call!(self, cuStreamWaitEvent(self.raw.0, event.raw.0, 0)) })
    }

    /// Makes later work of this stream wait for all work issued to `other`.
    pub(crate) fn wait_for(&self, other: &StreamState) -> Result<()> {
        if self.id == other.id {
            return Ok(());
        }
        if !std::ptr::eq(self.device, other.device) && other.device.was_finished() {
            return Ok(());
        }
        let event = other.mark_for(self)?;
        self.wait_event(&event)
    }

    /// As [`wait_for`](Self::wait_for). Does nothing if the other stream is lost with its device's context.
    pub(crate) fn wait_for_living(&self, other: &StreamState) -> Result<()> {
        if !std::ptr::eq(self.device, other.device) && other.device.is_lost() {
            return Ok(());
        }
        self.wait_for(other)
    }

    /// Blocks until all work is done. Captured work does not count.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _wait = trace::span("wait", || ("wait for a stream".into(), vec![("stream", self.id.into())]));
        if let Some(before) = self.stand_in() {
            return before.synchronize();
        }
        let _bound = self.device.bind()?;
        // SAFETY: the stream is live.
        unsafe { stream_call!(self, cuStreamSynchronize(self.raw.0)) }
    }
}

impl Device {
    /// Creates a stream of default priority.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// Creates a stream with a priority. Lower numbers are more urgent. The priority is clamped to
    /// [`priority_range`](Self::priority_range).
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        let device = self.0;
        let priority = if priority == 0 {
            0
        } else {
            let (least, greatest) = self.priority_range()?;
            priority.clamp(greatest, least)
        };
        let _bound = device.bind()?;
        let mut raw: CUstream = std::ptr::null_mut();
        // SAFETY: the pointer is to a local; the device's context is current.
        unsafe { call!(device, cuStreamCreateWithPriority(&mut raw, NON_BLOCKING, priority))? };
        Ok(Stream::open(device, Handle(raw), priority, None))
    }

    /// Returns the least and the most urgent priority, such as `(0, -5)`.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn priority_range(&self) -> Result<(i32, i32)> {
        let _bound = self.0.bind()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the pointers are to locals.
        unsafe { call!(self.0, cuCtxGetStreamPriorityRange(&mut least, &mut greatest))? };
        Ok((least, greatest))
    }
}

impl Stream {
    /// Registers a live stream of the driver.
    pub(super) fn open(
        device: &'static DeviceState,
        raw: Handle<CUstream_st>,
        priority: i32,
        borrowed: Option<BorrowedStream>,
    ) -> Stream {
        let id = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
        let state = Arc::new(StreamState {
            device,
            raw,
            borrowed,
            id,
            priority,
            caches: ThreadCaches::new(id),
            begun: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            slot: CaptureSlot::default(),
            marker: Mutex::new(None),
            last_transfer: AtomicU64::new(0),
            transfers: Mutex::new(TransferMarks::default()),
            alone: Mutex::new(()),
            timed: Mutex::new(()),
            closed: AtomicBool::new(false),
            last_kernel: AtomicPtr::new(std::ptr::null_mut()),
        });
        let mut streams = device.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&state));
        drop(streams);
        device.pool.open_stream(&state);
        Stream(Arc::new(StreamHandle { state }))
    }

    /// The stream's device.
    pub fn device(&self) -> Device {
        Device(self.0.state.device)
    }

    /// An id that no other stream of this process has or will have.
    pub fn id(&self) -> u64 {
        self.0.state.id
    }

    /// The priority that the stream was created with.
    pub fn priority(&self) -> i32 {
        self.0.state.priority
    }

    /// The driver's `CUstream`.
    ///
    /// This library does not see work issued to it directly. Record an [`Event`] behind that work before other streams
    /// use its memory.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.state.raw.into_void()
    }

    /// Makes later work of this stream wait for the event. Does nothing if the event was never recorded. Waiting for an
    /// event of this thread's capture adds this stream to the capture.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`] if one of the two belongs to a capture and the other cannot join it, the driver's
    /// errors, or [`Error::ContextLost`].
    pub fn wait(&self, event: &Event) -> Result<()> {
        let state = &self.0.state;
        event.device().0.check_alive()?;
        match event.record_of() {
            Record::None => Ok(()),
            Record::Real if state.slot.is_open() => Err(capture::not_capturable(
                "Stream::wait",
                "the event was recorded outside of the capture, so a graph launch could not wait for it",
            )),
            Record::Real => state.wait_event(event.cell()),
            Record::Captured(id) => match capture::current() {
                Some(capture) if capture.id == id => {
                    capture.join(state)?;
                    state.wait_event(event.cell())
                }
                _ => Err(capture::not_capturable(
                    "Stream::wait",
                    "the event was recorded in a capture, so it marks no point outside of it",
                )),
            },
        }
    }

    /// Makes later work of this stream wait for all work issued to `other`. If `other` is being captured, this stream
    /// joins the capture.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`] if this stream is being captured and the other is not, the driver's errors, or
    /// [`Error::ContextLost`].
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        let (state, other) = (&self.0.state, &other.0.state);
        other.device.check_alive()?;
        if let Some(capture) = capture::current() {
            match (capture.has(state), capture.has(other)) {
                (false, true) => capture.join(state)?,
                (true, false) => {
                    return Err(capture::not_capturable(
                        "Stream::wait_for",
                        format!("{other} is not in the capture, so a graph launch could not wait for it"),
                    ));
                }
                _ => {}
            }
        }
        state.wait_for(other)
    }

    /// Blocks until all work of this stream is done.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel faulted, and [`Error::ContextLost`] after that; a [device-side
    /// error](super::KernelError); [`Error::NotCapturable`] while the stream is captured.
    pub fn synchronize(&self) -> Result<()> {
        capture::refuse("Stream::synchronize", &self.0.state, None)?;
        self.0.state.synchronize()?;
        call_deleters();
        self.0.state.device.take_report()
    }

    /// Returns whether all work of this stream is done. Never blocks.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn is_idle(&self) -> Result<bool> {
        capture::refuse("Stream::is_idle", &self.0.state, None)?;
        self.0.state.is_idle()
    }

    #[inline]
    pub(crate) fn state(&self) -> &Arc<StreamState> {
        &self.0.state
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stream({}, device {})", self.id(), self.0.state.device.ordinal)
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Stream {}
