//! Device times of a trace: from CUPTI's records if it is there, else measured by pairs of events.
//!
//! With CUPTI an operation of a stream is issued under a number ([`StreamState::submit_work`]), and `cupti_times.rs` does the rest.
//! Without, it is issued between two timing events. The recorder's thread asks for finished pairs, and places them on the host's
//! clock by a reference event: it records one on an idle stream of its own, waits for it, and takes the middle of the host's times
//! before and after. The narrowest of several tries counts, and half its width is the error, which the file has. The reference is
//! renewed against drift and because the driver gives times in 32-bit floats. The time of an empty pair is subtracted from each
//! duration.
//!
//! Invariants: no operation waits for this, and none fails because of it; the events of a track are in order and do not
//! overlap; an arrow is written with both of its ends, or not at all. A captured operation is not timed, because its events
//! would become nodes. Events between two kernels keep them from overlapping by programmatic dependent launch.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::context::{SUCCESS, call};
use super::cupti;
use super::cupti_times::CuptiTimes;
use super::device::{Device, DeviceState};
use super::event::EventCell;
use super::memory::PoolStatistics;
use super::stream::{Stream, StreamState};
use super::stream_work::StreamWork;
use crate::error::Result;
use crate::trace::{self, Arguments, Collected, DeviceClock, Event, Phase, Track};

/// The most operations with times unknown.
const MAX_PENDING: usize = 1 << 16;
/// A reference, and an offset of CUPTI's clock, older than this is renewed.
pub(super) const RENEW: u64 = 500_000_000;
/// A new reference with a larger error replaces only a very old one.
const GOOD_ERROR: u64 = 20_000;
/// The longest age of a reference if only worse ones can be had.
const MAX_AGE: u64 = 10 * RENEW;
const TRIES: usize = 8;
/// The longest wait for one reference event, whose stream is idle.
const PATIENCE: Duration = Duration::from_millis(5);

/// An operation of a stream, and its call.
pub(super) struct Issued {
    device: &'static DeviceState,
    pub(super) stream: u64,
    pub(super) work: StreamWork,
    pub(super) host: Track,
    pub(super) launched: u64,
    trace: u64,
}

impl Issued {
    /// Returns whether the context of the operation is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.device.is_lost()
    }
}

/// The means by which an operation is timed.
enum Mark {
    Events { start: EventCell, end: EventCell },
    Number(u64),
}

/// An operation between its events.
struct TimedWork {
    issued: Issued,
    start: EventCell,
    end: EventCell,
}

/// Operations that the recorder's thread has not seen, in the order of each stream.
static ISSUED: Mutex<Vec<(Mark, Issued)>> = Mutex::new(Vec::new());
/// True while CUPTI times.
static HAS_CUPTI: AtomicBool = AtomicBool::new(false);
/// The next number for CUPTI. No two operations of the process have the same.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
/// Operations in [`ISSUED`] and in the clock.
static PENDING: AtomicUsize = AtomicUsize::new(0);
/// Operations issued without events, by a failure or beyond [`MAX_PENDING`].
static UNTIMED: AtomicU64 = AtomicU64::new(0);
static NEXT_ARROW: AtomicU64 = AtomicU64::new(1);

fn issued() -> MutexGuard<'static, Vec<(Mark, Issued)>> {
    ISSUED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamState {
    /// As [`submit_at`](Self::submit_at), for an operation that a trace shows on the host and on the device.
    #[inline]
    pub(crate) fn submit_work(
        &self,
        describe: impl FnOnce() -> StreamWork,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<u64> {
        if trace::is_on() { self.submit_traced(describe(), call) } else { self.submit_at(call) }
    }

    #[cold]
    #[inline(never)]
    fn submit_traced(&self, work: StreamWork, call: impl FnOnce() -> Result<()>) -> Result<u64> {
        let (trace, launched) = (trace::trace_id(), trace::now());
        // Keeps the events of two threads' operations apart.
        let one_at_a_time = self.timed.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut mark, mut captured) = (None, false);
        let result = self.submit_at(|| {
            captured = self.slot.is_open();
            if captured {
                return call();
            }
            if HAS_CUPTI.load(Ordering::Acquire) {
                let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
                let numbered = cupti::numbered(number);
                mark = numbered.is_some().then_some(Mark::Number(number));
                return call();
            }
            let start = self.timing_event();
            call()?;
            mark = start.and_then(|start| Some(Mark::Events { start, end: self.timing_event()? }));
            Ok(())
        });
        let mut arguments = work.arguments.clone();
        arguments.extend([("stream", self.id.into()), ("device", self.device.ordinal.into())]);
        if captured {
            arguments.push(("captured", 1u32.into()));
        }
        if result.is_err() {
            arguments.push(("failed", 1u32.into()));
        }
        let (kind, name) = (work.kind, work.name.clone());
        match (mark, trace::current_track()) {
            (Some(mark), Some(host)) if result.is_ok() => {
                PENDING.fetch_add(1, Ordering::Relaxed);
                let (device, stream) = (self.device, self.id);
                issued().push((mark, Issued { device, stream, work, host, launched, trace }));
            }
            _ if captured || result.is_err() => {}
            _ => drop(UNTIMED.fetch_add(1, Ordering::Relaxed)),
        }
        drop(one_at_a_time);
        trace::record(Event {
            phase: Phase::Complete { duration: trace::now() - launched },
            category: kind.host(),
            name,
            start: launched,
            track: None,
            arguments,
        });
        result
    }

    /// Records a timing event; `None` if there are too many or the driver refuses. The context is current.
    fn timing_event(&self) -> Option<EventCell> {
        if PENDING.load(Ordering::Relaxed) >= MAX_PENDING {
            return None;
        }
        let event = EventCell::take(self.device, true).ok()?;
        // An error that ends the context comes again from the operation's own calls.
        // SAFETY: event and stream are live and of one context.
        let status = unsafe { (self.device.api.cuEventRecord().ok()?)(event.raw.0, self.raw.0) };
        (status.0 == SUCCESS).then_some(event)
    }
}

impl DeviceState {
    /// Registers the clock with the recorder. Called without locks, after a device was opened.
    pub(super) fn register_clock() {
        trace::set_device_clock(&CLOCK);
    }

    /// Keeps the recorder's thread from the driver until the guard is dropped, for a reset.
    pub(super) fn pause_clock() -> impl Sized {
        CLOCK.lock()
    }
}

/// The sources of device times.
struct WorkClock(Mutex<Sources>);

struct Sources {
    devices: Vec<DeviceTimes>,
    cupti: Option<CuptiTimes>,
    /// The reason why CUPTI does not time.
    no_cupti: Option<String>,
}

static CLOCK: WorkClock = WorkClock(Mutex::new(Sources { devices: Vec::new(), cupti: None, no_cupti: None }));

impl WorkClock {
    fn lock(&self) -> MutexGuard<'_, Sources> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources {
    /// Ends CUPTI's session, forgets everything, and returns the number of operations.
    fn clear(&mut self) -> u64 {
        HAS_CUPTI.store(false, Ordering::Release);
        let numbered = self.cupti.take().map_or(0, |cupti| cupti.pending());
        let streams = self.devices.iter().flat_map(|times| times.streams.values());
        let forgotten = numbered
            + std::mem::take(&mut *issued()).len()
            + streams.map(|times| times.waiting.len()).sum::<usize>();
        self.devices.clear();
        PENDING.store(0, Ordering::Relaxed);
        forgotten as u64 + UNTIMED.swap(0, Ordering::Relaxed)
    }

    /// Gives the issued operations to their source.
    fn take_issued(&mut self, collected: &mut Collected) {
        for (mark, issued) in std::mem::take(&mut *issued()) {
            let device = self.devices.iter_mut().find(|times| std::ptr::eq(times.device, issued.device));
            match (mark, &mut self.cupti, device) {
                (Mark::Number(number), Some(cupti), _) => collected.lost += cupti.add(number, issued),
                (Mark::Events { start, end }, _, Some(times)) => {
                    let stream = times.streams.entry(issued.stream).or_default();
                    stream.waiting.push_back(TimedWork { issued, start, end });
                }
                _ => collected.lost += 1,
            }
        }
    }
}

impl DeviceClock for WorkClock {
    fn name(&self) -> Cow<'static, str> {
        match &self.lock().cupti {
            Some(cupti) => cupti.name().into(),
            None => "event pairs".into(),
        }
    }

    fn reason(&self) -> Option<String> {
        self.lock().no_cupti.clone()
    }

    fn begin(&self) {
        let mut sources = self.lock();
        sources.clear();
        for device in DeviceState::opened() {
            device.pool.begin_trace(device.ordinal);
        }
        match CuptiTimes::start() {
            Ok(cupti) => {
                sources.cupti = Some(cupti);
                sources.no_cupti = None;
                HAS_CUPTI.store(true, Ordering::Release);
            }
            Err(error) => {
                log::debug!("events time the devices of this trace: {error}");
                // The paths that were tried belong to `selvedge info`.
                sources.no_cupti = error.to_string().lines().next().map(str::to_owned);
            }
        }
    }

    fn collect(&self, last: bool) -> Collected {
        let opened = DeviceState::opened();
        let mut sources = self.lock();
        for device in opened {
            if !sources.devices.iter().any(|times| std::ptr::eq(times.device, device)) {
                sources.devices.push(DeviceTimes::new(device));
            }
        }
        let (mut collected, trace) = (Collected::default(), trace::trace_id());
        sources.take_issued(&mut collected);
        let mut is_lost = false;
        for times in &mut sources.devices {
            is_lost |= times.device.is_lost();
            if times.device.is_lost() || times.collect(&mut collected, trace).is_err() {
                // Nothing of a lost context can be asked any more.
                for stream in times.streams.values_mut() {
                    collected.lost += stream.waiting.drain(..).len() as u64;
                }
                times.reference = None;
            }
            collected.pending += times.streams.values().map(|stream| stream.waiting.len()).sum::<usize>();
        }
        let devices: Vec<i32> = sources.devices.iter().map(|times| times.device.ordinal).collect();
        if let Some(cupti) = &mut sources.cupti {
            if let Err(error) = cupti.collect(&devices, &mut collected, last || is_lost) {
                log::debug!("CUPTI gives no records: {error}");
            }
            if is_lost {
                collected.lost += cupti.forget_lost();
            }
            collected.pending += cupti.pending();
        }
        collected.lost += UNTIMED.swap(0, Ordering::Relaxed);
        PENDING.store(collected.pending, Ordering::Relaxed);
        collected
    }

    fn end(&self) -> u64 {
        self.lock().clear()
    }
}

/// A point in time that is known by both clocks.
struct Reference {
    event: EventCell,
    /// The host's time, in nanoseconds.
    host: u64,
    /// The largest difference from the true time, in nanoseconds.
    error: u64,
}

#[derive(Default)]
struct StreamTimes {
    waiting: VecDeque<TimedWork>,
    /// The end of the last event on the track.
    end: u64,
    named: bool,
}

/// The clock of one device.
struct DeviceTimes {
    device: &'static DeviceState,
    named: bool,
    /// The stream of references, which has no other work.
    stream: Option<Stream>,
    reference: Option<Reference>,
    /// The time between the events of an empty pair, in nanoseconds.
    empty_pair: u64,
    streams: BTreeMap<u64, StreamTimes>,
    pool: PoolStatistics,
}

impl DeviceTimes {
    fn new(device: &'static DeviceState) -> DeviceTimes {
        DeviceTimes {
            device,
            named: false,
            stream: None,
            reference: None,
            empty_pair: 0,
            streams: BTreeMap::new(),
            pool: PoolStatistics::default(),
        }
    }

    /// Appends the events of finished work and the pool's counters.
    fn collect(&mut self, out: &mut Collected, trace: u64) -> Result<()> {
        let track = Track::stream(self.device.ordinal, 0);
        if !self.named {
            self.named = true;
            let name = format!("device {}: {}", self.device.ordinal, self.device.name);
            out.events.push(Event::metadata("process_name", track, vec![("name", name.into())]));
        }
        let pool = self.device.pool.statistics();
        if pool != self.pool {
            self.pool = pool;
            out.events.push(Event {
                phase: Phase::Counter,
                category: "memory",
                name: "pool".into(),
                start: trace::now(),
                track: Some(track),
                arguments: vec![
                    ("live", pool.live_bytes.into()),
                    ("cached", pool.cached_bytes.into()),
                    ("reserved", pool.reserved_bytes.into()),
                ],
            });
        }
        if self.streams.values().all(|stream| stream.waiting.is_empty()) {
            return Ok(());
        }
        let _bound = self.device.bind_relaxed()?;
        self.renew_reference(&mut out.events)?;
        let Some(reference) = &self.reference else { return Ok(()) };
        for (&id, stream) in &mut self.streams {
            while let Some(work) = stream.waiting.front() {
                match work.end.query() {
                    Ok(false) => break,
                    Ok(true) => {}
                    Err(error) if self.device.is_lost() => return Err(error),
                    Err(_) => {
                        out.lost += 1;
                        stream.waiting.pop_front();
                        continue;
                    }
                }
                let Some(work) = stream.waiting.pop_front() else { break };
                if work.issued.trace != trace && trace::is_on() {
                    continue;
                }
                match reference.place(&work, self.empty_pair) {
                    Ok(times) => stream.push(self.device.ordinal, id, work, times, &mut out.events),
                    Err(error) if self.device.is_lost() => return Err(error),
                    Err(_) => out.lost += 1,
                }
            }
        }
        Ok(())
    }

    /// Makes a reference if there is none or it is old. The context is current.
    fn renew_reference(&mut self, events: &mut Vec<Event>) -> Result<()> {
        let age = self.reference.as_ref().map(|reference| trace::now().saturating_sub(reference.host));
        if age.is_some_and(|age| age < RENEW) {
            return Ok(());
        }
        let stream = match &self.stream {
            Some(stream) => stream,
            None => self.stream.insert(Device(self.device).stream()?),
        };
        if age.is_none() {
            self.empty_pair = empty_pair(self.device, stream)?.unwrap_or(0);
        }
        let mut best: Option<Reference> = None;
        for _ in 0..TRIES {
            let Some(next) = reference(self.device, stream)? else { continue };
            if best.as_ref().is_none_or(|best| next.error < best.error) {
                best = Some(next);
            }
        }
        let Some(best) = best else { return Ok(()) };
        if best.error > GOOD_ERROR && age.is_some_and(|age| age < MAX_AGE) {
            return Ok(());
        }
        events.push(Event::metadata(
            "selvedge_calibration",
            Track::stream(self.device.ordinal, 0),
            vec![
                ("device", self.device.ordinal.into()),
                ("source", "event pairs".into()),
                ("at_us", (best.host as f64 / 1e3).into()),
                ("error_us", (best.error as f64 / 1e3).into()),
                ("empty_pair_us", (self.empty_pair as f64 / 1e3).into()),
            ],
        ));
        self.reference = Some(best);
        Ok(())
    }
}

impl StreamTimes {
    /// Appends the events of one operation.
    fn push(&mut self, device: i32, stream: u64, work: TimedWork, times: (u64, u64), out: &mut Vec<Event>) {
        let track = Track::stream(device, stream);
        if !self.named {
            self.named = true;
            let name = vec![("name", format!("stream {stream}").into())];
            out.push(Event::metadata("thread_name", track, name));
        }
        // The clock's error puts no work before its launch or before the end of what precedes it.
        let issued = work.issued;
        let start = times.0.max(issued.launched).max(self.end);
        let end = times.1.max(start);
        self.end = end;
        out.push(Event {
            phase: Phase::Complete { duration: end - start },
            category: issued.work.kind.device(),
            name: issued.work.name,
            start,
            track: Some(track),
            arguments: issued.work.arguments,
        });
        arrow((issued.launched, issued.host), (start, track), out);
    }
}

/// Appends an arrow from an operation's call to its work.
pub(super) fn arrow(call: (u64, Track), work: (u64, Track), out: &mut Vec<Event>) {
    let id = NEXT_ARROW.fetch_add(1, Ordering::Relaxed);
    for (phase, (start, track)) in [(Phase::FlowStart { id }, call), (Phase::FlowEnd { id }, work)] {
        out.push(Event {
            phase,
            category: "flow",
            name: "launch".into(),
            start,
            track: Some(track),
            arguments: Arguments::new(),
        });
    }
}

impl Reference {
    /// Returns the start and the end of finished work by the host's clock.
    fn place(&self, work: &TimedWork, empty_pair: u64) -> Result<(u64, u64)> {
        let before = elapsed(&self.event, &work.start)?;
        let duration = elapsed(&work.start, &work.end)?;
        let host = |offset: f64| (self.host as f64 + offset).max(0.0) as u64;
        let busy = (duration - empty_pair as f64).max(0.0);
        // The launch of the pair's second event and the start of the work share the time of an empty pair.
        let start = before + (duration - busy) / 2.0;
        Ok((host(start), host(start + busy)))
    }
}

/// The time between two completed events in nanoseconds; negative if the second was earlier.
fn elapsed(from: &EventCell, to: &EventCell) -> Result<f64> {
    Ok(f64::from(from.milliseconds_to(to)?) * 1e6)
}

/// Records an event on the idle stream.
fn record_on(device: &'static DeviceState, stream: &Stream) -> Result<EventCell> {
    let event = EventCell::take(device, true)?;
    // SAFETY: event and stream are live and of one context.
    unsafe { call!(device, cuEventRecord(event.raw.0, stream.state().raw.0))? };
    Ok(event)
}

/// Asks until the event is complete; false after [`PATIENCE`].
fn completes(event: &EventCell) -> Result<bool> {
    let first = trace::now();
    loop {
        if event.query()? {
            return Ok(true);
        }
        if trace::now() - first > PATIENCE.as_nanos() as u64 {
            return Ok(false);
        }
    }
}

/// Records a reference; `None` if other work keeps the stream waiting.
fn reference(device: &'static DeviceState, stream: &Stream) -> Result<Option<Reference>> {
    let before = trace::now();
    let event = record_on(device, stream)?;
    if !completes(&event)? {
        return Ok(None);
    }
    let error = (trace::now() - before).div_ceil(2);
    Ok(Some(Reference { event, host: before + error, error }))
}

/// Returns the shortest time of several empty pairs in nanoseconds; `None` if other work keeps the stream waiting.
fn empty_pair(device: &'static DeviceState, stream: &Stream) -> Result<Option<u64>> {
    let mut best: Option<f64> = None;
    for _ in 0..TRIES {
        let (start, end) = (record_on(device, stream)?, record_on(device, stream)?);
        if completes(&end)? {
            let found = elapsed(&start, &end)?.max(0.0);
            best = Some(best.map_or(found, |best| best.min(found)));
        }
    }
    Ok(best.map(|nanoseconds| nanoseconds as u64))
}
