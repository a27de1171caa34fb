//! Streams: queues of device work, and the places in their order that others wait for.
//!
//! A [`Stream`] is a handle; the driver's stream lives as long as a handle or a buffer that it last touched. Ids are never
//! reused. What waits for a stream waits for an event recorded *when it first has to*: programs that use one stream
//! record none. `issued` counts operations after their driver call returned, so an event recorded at count `p` is
//! behind all of the first `p`, whichever threads issued them. `begun` counts them before the call: where the two are equal
//! nobody is in the middle of one, which is when a capture may begin (see [`graph`](super::graph)).

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{Handle, NOT_READY, call, gone, stream_call};
use super::device::{Device, DeviceState, NEXT_STREAM_ID};
use super::event::{Event, EventCell, Record};
use super::graph::capture::{self, Entry, Slot};
use super::kernel_name::KernelName;
use super::memory::{Access, Allocation, Fronts, Resource};
pub(crate) use super::transfer_marks::TransferEnd;
use super::transfer_marks::TransferMarks;
use crate::error::{Error, Result, report_deferred};
use crate::sys::driver::{CUstream, CUstream_st};

const NON_BLOCKING: u32 = 1;

/// A queue of device work, ordered in itself and free of the legacy default stream.
///
/// Cheap to clone; clones are the same queue. When the last handle is dropped its cached memory goes to the device, and
/// work that was issued goes on.
#[derive(Clone)]
pub struct Stream(Arc<StreamHandle>);

/// What ends when the last [`Stream`] is dropped.
struct StreamHandle {
    state: Arc<StreamState>,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Release);
        if self.state.device.is_lost() {
            return;
        }
        let result = self.state.device.close_stream(&self.state);
        if let Err(error) = result {
            if !gone(&error) {
                report_deferred(&error);
            }
        }
    }
}

/// The driver's stream and what is known of its order. What every operation looks at is on one cache line: the driver's
/// calls leave little of ours in the cache.
#[repr(C, align(64))]
pub(crate) struct StreamState {
    pub(crate) device: &'static DeviceState,
    pub(crate) raw: Handle<CUstream_st>,
    pub(crate) id: u64,
    /// Operations whose driver call has begun.
    begun: AtomicU64,
    /// Operations whose driver call has returned.
    issued: AtomicU64,
    /// The place of a transfer behind which nothing was issued yet, or 0.
    last_transfer: AtomicU64,
    /// Points to an interned name, or is null.
    last_kernel: AtomicPtr<KernelName>,
    /// The stream's part in a capture.
    pub(crate) slot: Slot,
    /// The newest event, and the count that it is behind.
    marker: Mutex<Marker>,
    transfers: Mutex<TransferMarks>,
    /// Held by a wait and by the launch of a graph; see [`submit_alone`](Self::submit_alone).
    alone: Mutex<()>,
    /// The stream's blocks that are free, and its share of the device's books.
    pub(crate) fronts: Fronts,
    priority: i32,
    /// Whether the last handle is gone, so that nothing more will be issued for a user.
    closed: AtomicBool,
}

/// A stream's newest event, and the count of operations that it is behind.
pub(crate) type Marker = Option<(Arc<EventCell>, u64)>;

/// An operation between its beginning and its end.
struct InFlight<'a>(&'a StreamState);

impl InFlight<'_> {
    /// Ends the operation; its place in the order in which calls returned. In the order in which they began it would be
    /// no place: an event behind so many operations need not be behind one that began early and is still being called.
    #[inline]
    fn end(self) -> u64 {
        let place = self.0.issued.fetch_add(1, Ordering::Release) + 1;
        std::mem::forget(self);
        place
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
        if self.device.is_lost() {
            return;
        }
        self.device.release_or_report(Resource::Stream(self.raw));
    }
}

impl fmt::Display for StreamState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stream {} of device {}", self.id, self.device.ordinal)
    }
}

impl StreamState {
    /// Issues an operation: makes the context current, calls the driver, and counts the operation after the call
    /// returned, also one that failed. Returns the operation's place in the stream.
    #[inline]
    pub(crate) fn submit_placed(&self, call: impl FnOnce() -> Result<()>) -> Result<u64> {
        if self.last_transfer.load(Ordering::Relaxed) != 0 {
            self.settle_transfer()?;
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let in_flight = InFlight(self);
        // A guard is handed on through memory, which takes longer than the rest of this; it is seldom needed.
        let _bound = match self.slot.is_open() || !self.device.is_bound()? {
            true => Some(self.bind()?),
            false => None,
        };
        call()?;
        Ok(in_flight.end())
    }

    /// As [`submit`](Self::submit), for a wait and for the launch of a graph: one of them at a time. Where a thread launches
    /// a graph into a stream while another makes that stream wait for an event, drivers (580.159.04) lose the wait about
    /// once in 100 000 launches. `csrc/reports/waits_beside_graph_launches.cu` shows it without this library, and that this lock is
    /// enough.
    #[inline]
    pub(crate) fn submit_alone(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.submit(|| {
            let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
            call()
        })
    }

    /// Whether a thread is between the beginning and the end of an operation.
    pub(crate) fn has_calls_in_flight(&self) -> bool {
        self.begun.load(Ordering::SeqCst) != self.issued.load(Ordering::SeqCst)
    }

    /// Operations whose driver call has returned.
    pub(crate) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Acquire)
    }

    /// Orders this stream behind the block's other users and enters it; into the capture, where this thread captures.
    #[inline]
    pub(crate) fn enter(self: &Arc<Self>, allocation: &Arc<Allocation>, access: Access) -> Result<()> {
        if !std::ptr::eq(self.device, allocation.device) {
            // The driver is not shown memory that went with its context, nor other memory for a stream that did.
            self.device.check_alive()?;
            allocation.device.check_alive()?;
        }
        if capture::any() {
            if let Entry::Captured = capture::enter(self, allocation, access)? {
                return Ok(());
            }
        }
        allocation.enter(self, access)
    }

    /// As [`submit_placed`](Self::submit_placed), where nobody asks for the place.
    #[inline]
    pub(crate) fn submit(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.submit_placed(call).map(drop)
    }

    /// Says that the operation at this place is a transfer that somebody will wait for. As long as nothing is issued
    /// behind it, its end is the stream's; an event is recorded only when something is about to follow.
    pub(crate) fn expect_wait(&self, place: u64) {
        self.last_transfer.fetch_max(place, Ordering::Release);
    }

    /// Records the event of a transfer that something is about to follow. What is captured follows nothing.
    #[cold]
    pub(crate) fn settle_transfer(&self) -> Result<()> {
        // A capture that began meanwhile would take the event for one of its own.
        let marker = self.lock_marker();
        if self.slot.is_open() {
            return Ok(());
        }
        let mut marks = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.last_transfer.load(Ordering::Acquire) != 0 {
            let place = self.issued.load(Ordering::Acquire);
            let event = Arc::new(self.record_with(&marker)?);
            marks.add(place, event)?;
            self.last_transfer.store(0, Ordering::Release);
        }
        Ok(())
    }

    /// How to know that the transfer at this place is done; one at place 0 copied nothing.
    pub(crate) fn end_of(&self, place: u64) -> TransferEnd {
        if place == 0 {
            return TransferEnd::Done;
        }
        if self.last_transfer.load(Ordering::Acquire) == place {
            return TransferEnd::Stream;
        }
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner).end_of(place)
    }

    /// As [`end_of`](Self::end_of), for the one that waits: no event will be recorded for the transfer any more.
    pub(crate) fn take_end_of(&self, place: u64) -> TransferEnd {
        match self.last_transfer.compare_exchange(place, 0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(0) | Err(_) => self.end_of(place),
            Ok(_) => TransferEnd::Stream,
        }
    }

    /// Whether the user's last handle is gone and nothing more can come.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) && !self.slot.is_open()
    }

    /// Whether all work is done; what is captured is none. Never blocks.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.device.check_alive()?;
        // A capture that began meanwhile would be spoiled by the question.
        let marker = self.lock_marker();
        self.is_idle_with(&marker)
    }

    /// As [`is_idle`](Self::is_idle), for who keeps captures from beginning.
    pub(crate) fn is_idle_with(&self, _marker: &Marker) -> Result<bool> {
        if let Some(before) = self.slot.before() {
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

    /// Held while the newest event is looked up or recorded; no capture begins meanwhile.
    pub(crate) fn lock_marker(&self) -> MutexGuard<'_, Marker> {
        self.marker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event behind everything issued so far; what is captured is not issued.
    pub(crate) fn mark(&self) -> Result<Arc<EventCell>> {
        self.mark_placed().map(|(event, _)| event)
    }

    /// As [`mark`](Self::mark), and the count of operations that it is behind. Where the stream captures, all that was
    /// issued since its capture began is only written down.
    pub(crate) fn mark_placed(&self) -> Result<(Arc<EventCell>, u64)> {
        let mut marker = self.lock_marker();
        // Before the slot is looked at: what a capture that ends meanwhile lets in is not behind its event.
        let position = self.issued();
        match self.slot.before() {
            Some(before) => Ok((before, position)),
            None => self.mark_with(&mut marker),
        }
    }

    /// As [`mark_placed`](Self::mark_placed), on a stream that does not capture yet.
    pub(crate) fn mark_with(&self, marker: &mut Marker) -> Result<(Arc<EventCell>, u64)> {
        let position = self.issued();
        if let Some((event, behind)) = &*marker {
            if *behind == position {
                return Ok((event.clone(), position));
            }
        }
        let event = Arc::new(self.record_with(marker)?);
        *marker = Some((event.clone(), position));
        Ok((event, position))
    }

    /// An event that a wait of `waiter` is for: where both are in one capture, it is one of the capture.
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

    /// A new event behind everything issued so far, for one owner; none where the stream captures.
    pub(crate) fn record(&self) -> Result<EventCell> {
        // No capture begins meanwhile.
        let marker = self.lock_marker();
        if self.slot.is_open() {
            return Err(capture::not_capturable("an event of a copy", format!("{self} is being captured")));
        }
        self.record_with(&marker)
    }

    /// As [`record`](Self::record), for who keeps captures from beginning.
    fn record_with(&self, _marker: &Marker) -> Result<EventCell> {
        let _bound = self.device.bind()?;
        let event = EventCell::take(self.device, false)?;
        // SAFETY: event and stream are live and of one context.
        unsafe { stream_call!(self, cuEventRecord(event.raw.0, self.raw.0))? };
        Ok(event)
    }

    /// Makes later work of this stream wait for the event, which may be another device's.
    pub(crate) fn wait_event(&self, event: &EventCell) -> Result<()> {
        if !std::ptr::eq(self.device, event.device()) && event.is_over()? {
            return Ok(());
        }
        // A wait is an operation: a mark from before it is not behind what it waits for.
        // SAFETY: event and stream are live.
        self.submit_alone(|| unsafe { stream_call!(self, cuStreamWaitEvent(self.raw.0, event.raw.0, 0)) })
    }

    /// Makes later work of this stream wait for all that `other` has been given.
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

    /// As [`wait_for`](Self::wait_for); nothing happens where the other went with its device's context.
    pub(crate) fn wait_for_living(&self, other: &StreamState) -> Result<()> {
        if !std::ptr::eq(self.device, other.device) && other.device.is_lost() {
            return Ok(());
        }
        self.wait_for(other)
    }

    /// Blocks until all work is done; what is captured is none.
    pub(crate) fn synchronize(&self) -> Result<()> {
        if let Some(before) = self.slot.before() {
            return before.synchronize();
        }
        let _bound = self.device.bind()?;
        // SAFETY: the stream is live.
        unsafe { stream_call!(self, cuStreamSynchronize(self.raw.0)) }
    }
}

impl Device {
    /// A new stream of ordinary priority.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// A new stream; lower numbers are more urgent, and numbers outside [`priority_range`](Self::priority_range) are
    /// brought into it.
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
        let id = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
        let state = Arc::new(StreamState {
            device,
            raw: Handle(raw),
            id,
            priority,
            fronts: Fronts::new(id),
            begun: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            slot: Slot::default(),
            marker: Mutex::new(None),
            last_transfer: AtomicU64::new(0),
            transfers: Mutex::new(TransferMarks::default()),
            alone: Mutex::new(()),
            closed: AtomicBool::new(false),
            last_kernel: AtomicPtr::new(std::ptr::null_mut()),
        });
        let mut streams = device.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&state));
        drop(streams);
        device.pool.open_stream(&state);
        Ok(Stream(Arc::new(StreamHandle { state })))
    }

    /// The least and the most urgent priority, such as `(0, -5)`.
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
    /// The stream's device.
    pub fn device(&self) -> Device {
        Device(self.0.state.device)
    }

    /// An id that no other stream of this process has or will have.
    pub fn id(&self) -> u64 {
        self.0.state.id
    }

    /// The priority it was made with.
    pub fn priority(&self) -> i32 {
        self.0.state.priority
    }

    /// The driver's `CUstream`.
    ///
    /// Work given to it directly is not seen by this library: order it with an [`Event`] before other streams use what
    /// it touches.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.state.raw.into_void()
    }

    /// Makes later work of this stream wait for the event's mark; nothing happens where none was recorded. An event of
    /// the capture that is under way on this thread takes this stream into it.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`] where one of the two is part of a capture and the other cannot be, the driver's, or
    /// [`Error::ContextLost`].
    pub fn wait(&self, event: &Event) -> Result<()> {
        let state = &self.0.state;
        event.device().0.check_alive()?;
        match event.record_of() {
            Record::None => Ok(()),
            Record::Real if state.slot.is_open() => Err(capture::not_capturable(
                "Stream::wait",
                "the event was recorded outside of the capture, so a launch could not wait for it again",
            )),
            Record::Real => state.wait_event(event.cell()),
            Record::Captured(id) => match capture::current() {
                Some(capture) if capture.id == id => {
                    capture.join(state)?;
                    state.wait_event(event.cell())
                }
                _ => Err(capture::not_capturable(
                    "Stream::wait",
                    "the event was recorded in a capture, so it marks nothing outside of that",
                )),
            },
        }
    }

    /// Makes later work of this stream wait for all that `other` has been given. A stream that captures takes this one
    /// into its capture.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`] where this stream is captured and the other is not, the driver's, or
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
                        format!("{other} is not in the capture, so a launch could not wait for it again"),
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
    /// [`Error::KernelFault`] where a kernel faulted, [`Error::ContextLost`] after that; the error that a kernel of the
    /// device has [reported](super::KernelError); [`Error::NotCapturable`] while the stream is captured.
    pub fn synchronize(&self) -> Result<()> {
        capture::refuse("Stream::synchronize", &self.0.state, None)?;
        self.0.state.synchronize()?;
        self.0.state.device.take_report()
    }

    /// Whether all work of this stream is done. Never blocks.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn is_idle(&self) -> Result<bool> {
        capture::refuse("Stream::is_idle", &self.0.state, None)?;
        self.0.state.is_idle()
    }

    /// Calls a function on a thread of the driver when all earlier work of this stream is done; later work waits for
    /// it.
    ///
    /// The function **must not call CUDA, nor drop a buffer, stream, event or module**: the driver forbids calls from
    /// there and may deadlock. Send a message to another thread instead. A panic in it is caught and reported to the
    /// deferred-error hook. It is not called where the context is lost before its turn.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`], the driver's, or [`Error::ContextLost`]; the function is dropped then.
    pub fn on_complete(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        type Callback = Box<dyn FnOnce() + Send>;

        unsafe extern "C" fn trampoline(data: *mut c_void) {
            // SAFETY: `data` is the box made below, and the driver calls this once.
            let function = unsafe { Box::from_raw(data.cast::<Callback>()) };
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(function)).is_err() {
                report_deferred(&Error::invalid(
                    "Stream::on_complete",
                    "a callback that panicked",
                    "one that returns",
                ));
            }
        }

        let state = &*self.0.state;
        // A graph would call it again and again.
        capture::refuse("Stream::on_complete", state, None)?;
        let data = Box::into_raw(Box::new(Box::new(function) as Callback));
        let result = state.submit(|| {
            // SAFETY: the stream is live, and the trampoline frees the box.
            unsafe { stream_call!(state, cuLaunchHostFunc(state.raw.0, Some(trampoline), data.cast())) }
        });
        if result.is_err() {
            // SAFETY: the driver refused the callback, so the box is still ours alone.
            drop(unsafe { Box::from_raw(data) });
        }
        result
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
