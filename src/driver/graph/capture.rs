//! The state of a capture in progress: its streams, and the memory that its operations name.
//!
//! The capturing thread works as always, but its operations on streams of the capture are recorded instead of run. Two
//! orders are therefore kept apart. *Inside* the capture, a [`Usage`] of the capture orders uses of a block, with
//! events recorded in the capture. *Outside*, nothing has been used yet: a launch of the graph uses every named block
//! as one operation that reads or writes it. A capture never waits for earlier work, and real work never waits for
//! captured work.
//!
//! A stream joins when it must follow an operation of the capture, by waiting for the event at its root. The stream's
//! earlier work stays outside, behind the event recorded before the join. All joined streams are joined back at the
//! end.
//!
//! Invariants: only this thread's operations reach a capturing stream ([`CaptureSlot`] waits for calls in flight before it
//! opens); the driver gets no query that would invalidate the capture; no driver call that ends all captures of a
//! context ([`CaptureGate`](super::capture_gate::CaptureGate)) is made during one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::arena::GraphArena;
use super::work::{HeldPinned, Work};
use crate::driver::context::{Handle, gone, stream_call};
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::function::FunctionState;
use crate::driver::memory::{Access, Allocation, Usage};
use crate::driver::stream::StreamState;
use crate::error::{Error, Result, report_deferred};
use crate::sys::driver::{CUgraph, CUgraph_st, CUstreamCaptureMode};

/// The number of captures in the process, so that other operations pay one load.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

static NEXT_CAPTURE_ID: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static CURRENT: RefCell<Option<Arc<Capture>>> = const { RefCell::new(None) };
}

/// Returns whether any thread captures.
#[inline]
pub(crate) fn any() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) != 0
}

/// The capture of this thread, if any.
pub(crate) fn current() -> Option<Arc<Capture>> {
    // The thread-local can be gone when the end of a thread drops a buffer.
    if any() { CURRENT.try_with(|current| current.borrow().clone()).ok().flatten() } else { None }
}

/// Returns whether this thread captures.
pub(crate) fn on_this_thread() -> bool {
    any() && CURRENT.try_with(|current| current.borrow().is_some()).unwrap_or(false)
}

/// Returns whether work of this thread may overwrite elements of the block that it reads: without a capture, or if each launch
/// of the captured graph computes them again. The body of a conditional node can run more than once a launch.
pub(crate) fn may_overwrite(allocation: &Allocation) -> bool {
    current().is_none_or(|capture| capture.parent.is_none() && allocation.is_in(&capture.arena))
}

fn set_current(capture: Option<Arc<Capture>>) -> Option<Arc<Capture>> {
    CURRENT.try_with(|current| current.replace(capture)).ok().flatten()
}

/// A stream's capture state. The fields that every operation reads come first.
#[derive(Default)]
#[repr(C)]
pub(crate) struct CaptureSlot {
    open: AtomicBool,
    within: Mutex<Option<Within>>,
}

#[derive(Clone)]
struct Within {
    capture: Arc<Capture>,
    /// The event behind all work that the stream got before it captured.
    before: Arc<EventCell>,
}

impl CaptureSlot {
    /// Returns whether the stream captures. Exact while the caller is counted in flight.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn within(&self) -> Option<Within> {
        if !self.is_open() {
            return None;
        }
        self.within.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The event behind the stream's work from before its capture.
    pub(crate) fn before(&self) -> Option<Arc<EventCell>> {
        self.within().map(|within| within.before)
    }

    fn capture(&self) -> Option<Arc<Capture>> {
        self.within().map(|within| within.capture)
    }

    /// Returns whether the stream captures the body of a conditional node.
    pub(crate) fn is_of_part(&self) -> bool {
        self.capture().is_some_and(|capture| capture.parent.is_some())
    }

    fn close(&self) {
        let old = self.within.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.open.store(false, Ordering::SeqCst);
        drop(old);
    }
}

/// The destination of an operation.
pub(crate) enum CaptureRoute {
    /// The device, now.
    Real,
    /// The capture, which has registered the operation.
    Captured,
}

/// Routes an operation that uses a block. Registers it if it belongs to this thread's capture.
#[cold]
pub(crate) fn enter(
    stream: &Arc<StreamState>,
    allocation: &Arc<Allocation>,
    access: Access,
) -> Result<CaptureRoute> {
    let Some(capture) = current() else {
        return Ok(CaptureRoute::Real);
    };
    if !capture.has(stream) {
        if !capture.concerns(allocation, access) {
            return Ok(CaptureRoute::Real);
        }
        capture.join(stream)?;
    }
    capture.enter(stream, allocation, access)?;
    Ok(CaptureRoute::Captured)
}

/// Allocates memory of the graph for the stream, if the stream is in this thread's capture.
#[cold]
pub(crate) fn allocate(stream: &Arc<StreamState>, bytes: usize) -> Result<Option<Arc<Allocation>>> {
    match current() {
        Some(capture) if capture.has(stream) => {
            let (block, after) = capture.arena.allocate(&capture, stream, bytes)?;
            let allocation = Allocation::of_graph(stream, block, &capture.arena, after);
            // Other streams may have used the block in this capture, and a launch uses it even if it does not name this
            // buffer.
            capture.enter(stream, &allocation, Access::Write)?;
            Ok(Some(allocation))
        }
        _ if stream.slot.is_open() => check(stream).map(|()| None),
        _ => Ok(None),
    }
}

/// Adds the stream to this thread's capture if one of an operation's uses belongs to it. The caller does so before it
/// registers any of them: the graph would not hold a use registered outside.
#[cold]
pub(crate) fn join_for<'a>(
    stream: &Arc<StreamState>,
    uses: impl IntoIterator<Item = (&'a Arc<Allocation>, Access)>,
) -> Result<()> {
    match current() {
        Some(capture) if !capture.has(stream) => {
            let concerned = uses.into_iter().any(|(allocation, access)| capture.concerns(allocation, access));
            if concerned { capture.join(stream) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// As [`enter`], for the code that a launch uses.
#[cold]
pub(crate) fn enter_function(stream: &Arc<StreamState>, function: &Arc<FunctionState>) -> CaptureRoute {
    match current() {
        Some(capture) if capture.has(stream) => {
            capture.functions().insert(Arc::as_ptr(function) as usize, function.clone());
            CaptureRoute::Captured
        }
        _ => CaptureRoute::Real,
    }
}

/// Fails if the operation, which cannot be captured, concerns a capturing stream or memory that the capture uses.
pub(crate) fn refuse(
    operation: &'static str,
    stream: &StreamState,
    memory: Option<(&Allocation, Access)>,
) -> Result<()> {
    if !any() {
        return Ok(());
    }
    let uses =
        |capture: &Capture| memory.is_some_and(|(allocation, access)| capture.concerns(allocation, access));
    let found = if stream.slot.is_open() {
        format!("{stream} is being captured")
    } else if current().is_some_and(|capture| uses(&capture)) {
        "it is used by the graph that this thread captures".to_owned()
    } else {
        return Ok(());
    };
    let buffer = memory.map(|(allocation, _)| format!("the buffer at {:#x}: {found}", allocation.address()));
    Err(not_capturable(operation, buffer.unwrap_or(found)))
}

pub(crate) fn not_capturable(operation: &'static str, buffer: impl Into<String>) -> Error {
    Error::NotCapturable { operation, buffer: buffer.into() }
}

/// Reports a failure to discard a capture. The caller already returns another error.
pub(super) fn report_end(ended: Result<()>) {
    if let Err(error) = ended
        && !gone(&error)
        && !matches!(error, Error::NotCapturable { .. })
    {
        report_deferred(&error);
    }
}

/// A capture in progress on one thread.
pub(crate) struct Capture {
    pub(crate) device: &'static DeviceState,
    pub(crate) id: u64,
    pub(crate) arena: Arc<GraphArena>,
    streams: Mutex<Streams>,
    memory: Mutex<HashMap<usize, CapturedMemory>>,
    functions: Mutex<HashMap<usize, Arc<FunctionState>>>,
    pinned: Mutex<Vec<HeldPinned>>,
    /// True if an error ended one of its conditional bodies early.
    is_spoiled: AtomicBool,
    /// The capture that contains this one, for a conditional body.
    parent: Option<Arc<Capture>>,
}

#[derive(Default)]
struct Streams {
    /// The first stream is the one that the capture began on.
    joined: Vec<Arc<StreamState>>,
    /// The first event, which other streams join by.
    root: Option<Arc<EventCell>>,
    /// Each stream's newest event in the capture and its position.
    marks: HashMap<u64, (Arc<EventCell>, u64)>,
}

/// A block that the capture uses.
pub(crate) struct CapturedMemory {
    pub(crate) held: HeldBlock,
    /// The order of uses inside the capture.
    usage: Usage,
    pub(crate) writes: bool,
}

/// A graph's reference to a block.
pub(crate) enum HeldBlock {
    /// A shared owner, like any user.
    Shared(Arc<Allocation>),
    /// A block of the graph's own arena, which lives as long as the graph; other users hold it.
    Own(Weak<Allocation>),
}

impl Capture {
    /// Begins a capture of a new graph on the stream.
    pub(crate) fn begin(stream: &Arc<StreamState>) -> Result<Arc<Capture>> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        if on_this_thread() {
            return Err(Error::invalid(
                "Stream::capture",
                "a capture in progress on this thread",
                "one capture per thread: end it first, or use this stream inside it",
            ));
        }
        Capture::begin_with(stream, GraphArena::new(stream.device), || {
            // SAFETY: the stream is live and its device's context is current.
            unsafe { stream_call!(stream, cuStreamBeginCapture(stream.raw.0, mode)) }
        })
    }

    /// As [`begin`](Self::begin), with a driver call that selects the target graph.
    pub(super) fn begin_with(
        stream: &Arc<StreamState>,
        arena: Arc<GraphArena>,
        begin: impl FnOnce() -> Result<()>,
    ) -> Result<Arc<Capture>> {
        let device = stream.device;
        let capture = Arc::new(Capture {
            device,
            id: NEXT_CAPTURE_ID.fetch_add(1, Ordering::Relaxed),
            arena,
            streams: Mutex::default(),
            memory: Mutex::default(),
            functions: Mutex::default(),
            pinned: Mutex::default(),
            is_spoiled: AtomicBool::new(false),
            parent: current(),
        });
        capture.open(stream)?;
        device.gate.open(1);
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        let began = device.bind_strictly().and_then(|_bound| begin());
        if let Err(error) = began {
            capture.close();
            return Err(error);
        }
        set_current(Some(capture.clone()));
        // The driver captures from here on, so a failure must end the capture.
        match capture.record(stream) {
            Ok(root) => capture.streams().root = Some(root),
            Err(error) => {
                if let Ok(graph) = capture.end(stream) {
                    capture.discard(graph);
                }
                return Err(error);
            }
        }
        Ok(capture)
    }

    /// Ends the capture and makes its streams ordinary again. Returns the driver's graph, which the caller owns.
    ///
    /// # Errors
    ///
    /// The driver's errors if something invalidated the capture. There is then no graph.
    pub(crate) fn end(self: &Arc<Self>, origin: &Arc<StreamState>) -> Result<Handle<CUgraph_st>> {
        let together = self.gather(origin);
        let ended = self.end_call(origin);
        if ended.is_err() {
            // A driver that reports the cause has ended the capture. If the call was not made, the capture still runs.
            if let Ok(graph) = self.end_call(origin) {
                self.discard(graph);
            }
        }
        set_current(self.parent.clone());
        self.close();
        if let Err(error) = together {
            if let Ok(graph) = ended {
                self.discard(graph);
            }
            return Err(error);
        }
        let graph = ended?;
        if self.is_spoiled.load(Ordering::Relaxed) {
            self.discard(graph);
            return Err(not_capturable(
                "ending a capture",
                "a conditional part that an error ended early, so the graph is incomplete; capture it again",
            ));
        }
        if graph.0.is_null() {
            return Err(not_capturable(
                "ending a capture",
                "a call of other code on this thread, which invalidated the capture; capture it again without that call",
            ));
        }
        Ok(graph)
    }

    /// Destroys an ended graph, unless it is the body of another.
    fn discard(&self, graph: Handle<CUgraph_st>) {
        if self.parent.is_none() {
            self.device.destroy_graph(graph);
        }
    }

    /// Makes the end of this capture fail.
    pub(super) fn spoil(&self) {
        self.is_spoiled.store(true, Ordering::Relaxed);
    }

    /// The outermost capture that contains this one.
    fn whole(&self) -> &Capture {
        self.parent.as_ref().map_or(self, |parent| parent.whole())
    }

    /// Makes the stream wait for all others of the capture.
    pub(super) fn gather(&self, stream: &StreamState) -> Result<()> {
        let joined = self.streams().joined.clone();
        joined.iter().filter(|other| other.id != stream.id).try_for_each(|other| stream.wait_for(other))
    }

    /// Takes over the resources of a conditional body. Its uses count as the stream's.
    pub(super) fn absorb(&self, part: Arc<Capture>, stream: &Arc<StreamState>) -> Result<()> {
        let functions = std::mem::take(&mut *part.functions());
        self.functions().extend(functions);
        let memory = std::mem::take(&mut *part.lock_memory());
        let mut result = Ok(());
        for (key, captured) in memory {
            let mut memory = self.lock_memory();
            let entry = memory.entry(key).or_insert_with(|| CapturedMemory {
                held: captured.held,
                usage: Usage::idle(),
                writes: false,
            });
            entry.writes |= captured.writes;
            // Everything in the capture precedes the body, so these waits add no order.
            result = result.and(entry.usage.enter(stream, Access::of(captured.writes)));
        }
        result
    }

    fn end_call(&self, origin: &StreamState) -> Result<Handle<CUgraph_st>> {
        let _bound = self.device.bind_strictly()?;
        let mut graph: CUgraph = std::ptr::null_mut();
        // SAFETY: the stream is live, and this thread began the capture on it.
        unsafe { stream_call!(origin, cuStreamEndCapture(origin.raw.0, &mut graph))? };
        Ok(Handle(graph))
    }

    /// Makes the streams ordinary again.
    fn close(&self) {
        let streams = std::mem::take(&mut *self.streams());
        for stream in &streams.joined {
            stream.slot.close();
        }
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
        self.device.gate.open(-1);
    }

    /// Returns the resources that the graph holds and orders. The capture is over.
    pub(super) fn into_work(self: Arc<Self>) -> Work {
        let memory = std::mem::take(&mut *self.lock_memory());
        let functions = std::mem::take(&mut *self.functions());
        let pinned = std::mem::take(&mut *self.pinned());
        Work::new(self.device, self.id, self.arena.clone(), memory, functions, pinned)
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_memory(&self) -> MutexGuard<'_, HashMap<usize, CapturedMemory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn functions(&self) -> MutexGuard<'_, HashMap<usize, Arc<FunctionState>>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pinned(&self) -> MutexGuard<'_, Vec<HeldPinned>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds page-locked memory that a captured copy uses. Returns the graph's id and the memory's index there.
    pub(crate) fn hold_pinned(&self, memory: HeldPinned) -> (u64, usize) {
        let whole = self.whole();
        let mut pinned = whole.pinned();
        pinned.push(memory);
        (whole.id, pinned.len() - 1)
    }

    /// Returns whether the stream is in this capture.
    pub(crate) fn has(&self, stream: &StreamState) -> bool {
        stream.slot.capture().is_some_and(|capture| capture.id == self.id)
    }

    /// Waits until no thread is in a call on the stream, then adds it to the capture.
    fn open(self: &Arc<Self>, stream: &Arc<StreamState>) -> Result<()> {
        /// Longer than any call that only queues work.
        const PATIENCE: Duration = Duration::from_secs(30);
        stream.settle_transfer()?;
        let mut marker = stream.lock_marker();
        let slot = &stream.slot;
        if slot.open.swap(true, Ordering::SeqCst) {
            return Err(not_capturable("Stream::capture", format!("another thread captures {stream}")));
        }
        let begun = Instant::now();
        while stream.has_calls_in_flight() {
            if begun.elapsed() > PATIENCE {
                slot.open.store(false, Ordering::SeqCst);
                let found = format!("another call has been at work on {stream} for {PATIENCE:?}");
                return Err(not_capturable("Stream::capture", found));
            }
            std::thread::yield_now();
        }
        let before = stream.mark_with(&mut marker);
        let (before, _) = before.inspect_err(|_| slot.open.store(false, Ordering::SeqCst))?;
        let mut within = slot.within.lock().unwrap_or_else(PoisonError::into_inner);
        *within = Some(Within { capture: self.clone(), before });
        drop(within);
        self.streams().joined.push(stream.clone());
        Ok(())
    }

    /// Adds another stream to the capture, behind its root.
    pub(crate) fn join(self: &Arc<Self>, stream: &Arc<StreamState>) -> Result<()> {
        if self.has(stream) {
            return Ok(());
        }
        if !std::ptr::eq(stream.device, self.device) {
            let found = format!("{stream} is another device's than the capture, {}", self.device.ordinal);
            return Err(not_capturable("an operation behind captured work", found));
        }
        let root = self.streams().root.clone();
        let Some(root) = root else {
            return Err(not_capturable(
                "joining a capture",
                format!("a capture without a root for {stream} to wait for"),
            ));
        };
        self.open(stream)?;
        stream.wait_event(&root).inspect_err(|_| {
            self.streams().joined.retain(|joined| joined.id != stream.id);
            stream.slot.close();
        })
    }

    /// Returns whether an operation of this thread on the block must be captured, whichever stream it uses.
    fn concerns(&self, allocation: &Allocation, access: Access) -> bool {
        if allocation.is_in(&self.arena) {
            return true;
        }
        let memory = self.lock_memory();
        let entry = memory.get(&(std::ptr::from_ref(allocation) as usize));
        entry.is_some_and(|entry| entry.writes || access.writes())
    }

    /// Orders the stream behind the block's other uses in the capture, and registers it.
    fn enter(&self, stream: &Arc<StreamState>, allocation: &Arc<Allocation>, access: Access) -> Result<()> {
        let key = Arc::as_ptr(allocation) as usize;
        let mut memory = self.lock_memory();
        let entry = memory.entry(key).or_insert_with(|| {
            let own = allocation.is_in(&self.arena);
            let held = if own {
                HeldBlock::Own(Arc::downgrade(allocation))
            } else {
                HeldBlock::Shared(allocation.clone())
            };
            // A block of the arena may have had earlier uses. Its home stream is behind them, and registered them at
            // allocation.
            CapturedMemory { held, usage: Usage::idle(), writes: false }
        });
        // Only this thread registers uses, so no other registration is in progress.
        entry.usage.enter(stream, Access::of(access.writes()))?;
        entry.writes |= access.writes();
        Ok(())
    }

    /// Forgets a dropped block of the arena. Returns its users so far, in this capture and the captures around it.
    pub(super) fn forget(&self, allocation: *const Allocation) -> Vec<Arc<StreamState>> {
        let entry = self.lock_memory().remove(&(allocation as usize));
        let mut users = entry.map(|entry| entry.usage.streams()).unwrap_or_default();
        users.extend(self.parent.iter().flat_map(|parent| parent.forget(allocation)));
        users
    }

    /// Returns an event in the capture, behind all operations captured on the stream so far.
    pub(crate) fn mark(&self, stream: &StreamState) -> Result<Arc<EventCell>> {
        let position = stream.issued();
        if let Some((event, behind)) = self.streams().marks.get(&stream.id)
            && *behind == position
        {
            return Ok(event.clone());
        }
        let event = self.record(stream)?;
        self.streams().marks.insert(stream.id, (event.clone(), position));
        Ok(event)
    }

    fn record(&self, stream: &StreamState) -> Result<Arc<EventCell>> {
        let _bound = self.device.bind_strictly()?;
        let event = EventCell::take(self.device, false)?;
        // SAFETY: event and stream are live and of one context.
        unsafe { stream_call!(stream, cuEventRecord(event.raw.0, stream.raw.0))? };
        Ok(Arc::new(event))
    }
}

/// Returns the capture that both streams are in.
pub(crate) fn common(one: &StreamState, other: &StreamState) -> Option<Arc<Capture>> {
    let capture = one.slot.capture()?;
    (capture.has(other)).then_some(capture)
}

/// Fails if this thread may not use the stream, which captures.
#[cold]
pub(crate) fn check(stream: &StreamState) -> Result<()> {
    match current() {
        Some(capture) if capture.has(stream) => Ok(()),
        _ => {
            let found = format!("{stream} is being captured by another thread, or into another graph");
            Err(not_capturable("an operation", found))
        }
    }
}
