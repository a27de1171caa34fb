//! Large copies from and to plain host memory, through a ring of page-locked chunks.
//!
//! The device reads and writes page-locked memory only. For plain memory the driver moves the bytes through a small
//! page-locked buffer of its own, on the calling thread, at the 10 GB/s or so of one core: a fraction of what the bus
//! takes. Here several threads move the bytes between the caller's slice and the chunks while the device copies other
//! chunks. On a download they also take the page faults of a fresh vector, which cost as much as the bytes do.
//!
//! The calling thread alone talks to the driver, chunk by chunk in order, so a copy makes the same calls every time,
//! whatever the threads do. They only move bytes; what none of them has begun when it is needed, the caller moves. A
//! thread that cannot be started costs speed and nothing else.
//!
//! What must stay true, on every way out: the threads have ended before the function returns, because they use the
//! caller's slice; a chunk is used again only when the copy before is done, by an event; the ring goes back to the pool
//! only when the stream has been waited for, and where that fails it is retired instead.

use std::collections::VecDeque;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Scope, available_parallelism};

use super::pinned::{PinnedBuffer, is_page_locked};
use super::slice::View;
use crate::driver::context::{OUT_OF_MEMORY, stream_call};
use crate::driver::device::Device;
use crate::driver::event::EventCell;
use crate::driver::stream::{Stream, StreamState};
use crate::error::{Error, Result};

/// Copies of at least so many bytes are staged. Starting and ending the threads and filling the first chunk take some
/// 0.2 ms in which nothing is copied, which the driver's own path loses to the bus within 10 MiB. Measured on an H200 at
/// 16 MiB: uploads 1.4 times as fast as the driver's own, downloads 1.6 times.
const THRESHOLD: usize = 16 << 20;

/// The largest chunk: 75 us of the bus, against the few that a copy takes to start, while a ring stays inside the host's
/// last cache.
const LARGEST_CHUNK: usize = 4 << 20;

/// A copy is cut into at least so many chunks, as far as they stay above a sixteenth of the threshold: the first (or the
/// last) is moved while the bus is idle.
const FEWEST_CHUNKS: usize = 16;

/// The bus is five to six times as fast as one thread; page faults take as long again.
const MOST_HELPERS: usize = 12;

/// Large pages of the host, where it has them.
const LARGE_PAGE: usize = 2 << 20;

/// Copies that are given to the device ahead, so that it goes on while the host turns round.
const QUEUED: usize = 3;

/// The threshold that `SELVEDGE_STAGING_BYTES` says; `None` where nothing is staged.
fn threshold() -> Result<Option<usize>> {
    static SETTING: OnceLock<Result<Option<usize>>> = OnceLock::new();
    SETTING.get_or_init(|| read_threshold(std::env::var("SELVEDGE_STAGING_BYTES").as_deref().ok())).clone()
}

fn read_threshold(text: Option<&str>) -> Result<Option<usize>> {
    match text {
        None | Some("") => Ok(Some(THRESHOLD)),
        Some("none") => Ok(None),
        Some(text) => match text.parse() {
            Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
            _ => Err(Error::invalid("SELVEDGE_STAGING_BYTES", text, "a number of bytes, none, or unset")),
        },
    }
}

/// Cores that this process may use. Asking the system takes longer than a small copy.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}

/// How a copy is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    bytes: usize,
    /// Bytes of every chunk but the first and the last.
    chunk: usize,
    /// What the first chunk is shorter by.
    skew: usize,
    chunks: usize,
    /// Page-locked chunks in the ring; chunk `n` of the copy uses number `n % slots`.
    slots: usize,
    /// Copies queued behind the one that the device is at.
    queued: usize,
    helpers: usize,
}

impl Plan {
    /// For `bytes` bytes, as many as a slice can have, at the address `host`.
    fn new(host: usize, bytes: usize, threshold: usize, cores: usize) -> Plan {
        let smallest = (threshold / FEWEST_CHUNKS).clamp(1, LARGEST_CHUNK);
        let chunk = (bytes / FEWEST_CHUNKS).clamp(smallest, LARGEST_CHUNK);
        // The pool of page-locked memory has powers of two.
        let chunk = chunk.checked_next_power_of_two().unwrap_or(chunk).min(LARGEST_CHUNK);
        // A large page that two threads touch first at the same time is zeroed twice, so chunks begin where pages do. Only
        // in whole small pages: the device's side moves by as much, and its copies want aligned addresses.
        let skew = if chunk >= LARGE_PAGE { (host % LARGE_PAGE) & !0xFFF } else { 0 };
        let chunks = (bytes + skew).div_ceil(chunk);
        // The caller is busy with the driver.
        let helpers = cores.saturating_sub(1).min(MOST_HELPERS).min(chunks / 2);
        Plan { bytes, chunk, skew, chunks, slots: 0, queued: 0, helpers }.with_slots(helpers + QUEUED)
    }

    /// The same with as many chunks in the ring, of which the helpers and the device have at least one each.
    fn with_slots(self, slots: usize) -> Plan {
        let slots = slots.min(self.chunks);
        Plan { slots, queued: QUEUED.min(slots / 2), helpers: self.helpers.min(slots), ..self }
    }

    fn range(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.chunk;
        start.saturating_sub(self.skew)..self.bytes.min(start + self.chunk - self.skew)
    }
}

/// Work on chunks that the caller releases in order, shared with helping threads.
struct Crew<'a> {
    progress: Mutex<Progress>,
    /// A chunk was released, or the crew is closed.
    released: Condvar,
    /// A chunk was finished.
    finished: Condvar,
    work: &'a (dyn Fn(usize) + Sync),
}

struct Progress {
    /// Chunks before this one may be worked on.
    released: usize,
    /// The next to be taken.
    next: usize,
    finished: Vec<bool>,
    closed: bool,
}

/// Sends the helpers home however the caller's part ends.
struct Closing<'a>(&'a Crew<'a>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.progress().closed = true;
        self.0.released.notify_all();
    }
}

impl<'a> Crew<'a> {
    fn new(chunks: usize, work: &'a (dyn Fn(usize) + Sync)) -> Crew<'a> {
        let progress = Progress { released: 0, next: 0, finished: vec![false; chunks], closed: false };
        Crew { progress: Mutex::new(progress), released: Condvar::new(), finished: Condvar::new(), work }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the caller's part with up to this many helpers, who have all ended when it returns.
    fn with_helpers<R>(&self, helpers: usize, part: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            let _closing = Closing(self);
            self.hire(scope, helpers);
            part()
        })
    }

    /// Starts one helper, who starts the next: the caller has better things to do.
    fn hire<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, helpers: usize) {
        if helpers == 0 || self.progress().closed {
            return;
        }
        let helper = Builder::new().name("selvedge-staging".to_owned());
        let started = helper.spawn_scoped(scope, move || {
            self.hire(scope, helpers - 1);
            self.help();
        });
        if let Err(error) = started {
            log::debug!("a large copy goes on with {helpers} threads less: {error}");
        }
    }

    fn help(&self) {
        let mut progress = self.progress();
        while !progress.closed {
            if progress.next < progress.released {
                progress = self.take_next(progress);
            } else {
                progress = self.released.wait(progress).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Works on the next chunk, which is released.
    fn take_next<'b>(&'b self, mut progress: MutexGuard<'b, Progress>) -> MutexGuard<'b, Progress> {
        let chunk = progress.next;
        progress.next += 1;
        drop(progress);
        (self.work)(chunk);
        let mut progress = self.progress();
        if let Some(finished) = progress.finished.get_mut(chunk) {
            *finished = true;
        }
        self.finished.notify_one();
        progress
    }

    /// Lets chunks before `end` be worked on.
    fn release(&self, end: usize) {
        let mut progress = self.progress();
        let end = end.min(progress.finished.len());
        let more = end.saturating_sub(progress.released);
        progress.released += more;
        drop(progress);
        match more {
            0 => {}
            1 => self.released.notify_one(),
            _ => self.released.notify_all(),
        }
    }

    /// Returns when a chunk, which is released, is finished; one that nobody has taken is done here.
    fn finish(&self, chunk: usize) {
        let mut progress = self.progress();
        while progress.finished.get(chunk) == Some(&false) {
            if progress.next <= chunk && progress.next < progress.released {
                progress = self.take_next(progress);
            } else {
                progress = self.finished.wait(progress).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The memory that the threads move bytes between.
struct Sides {
    host: *mut u8,
    slots: Vec<*mut u8>,
    plan: Plan,
    up: bool,
}

// SAFETY: the chunks of both sides are disjoint, and each is used by one thread at a time: the crew gives a chunk to one
// thread, and the caller touches none.
unsafe impl Sync for Sides {}

impl Sides {
    fn slot(&self, chunk: usize) -> *mut u8 {
        self.slots[chunk % self.slots.len()]
    }

    /// Moves a chunk between the host's memory and the ring.
    fn copy(&self, chunk: usize) {
        let range = self.plan.range(chunk);
        let slot = self.slot(chunk);
        // SAFETY: the range is inside the host's memory, which the caller of the staged copy vouches for; the slot has
        // room for a chunk, and no copy of the device uses it while the chunk is released.
        unsafe {
            let host = self.host.add(range.start);
            let (from, to) = if self.up { (host.cast_const(), slot) } else { (slot.cast_const(), host) };
            std::ptr::copy_nonoverlapping(from, to, range.len());
        }
    }
}

/// Page-locked chunks for one copy.
struct Ring {
    slots: Vec<PinnedBuffer<u8>>,
    plan: Plan,
}

impl Ring {
    /// The ring for a copy, or `None` where the driver's own way is better: the copy is small, its host memory is
    /// page-locked already, or none can be locked.
    fn new(stream: &StreamState, host: *const u8, bytes: usize) -> Result<Option<Ring>> {
        match threshold()? {
            Some(threshold) if bytes >= threshold && !is_page_locked(host, bytes) => {
                Ring::of(stream, Plan::new(host.addr(), bytes, threshold, cores()))
            }
            _ => Ok(None),
        }
    }

    fn of(stream: &StreamState, plan: Plan) -> Result<Option<Ring>> {
        let mut slots = Vec::with_capacity(plan.slots);
        while slots.len() < plan.slots {
            match Device(stream.device).pinned(plan.chunk) {
                Ok(slot) => slots.push(slot),
                Err(Error::Driver { call: "cuMemHostAlloc", code, .. }) if code == OUT_OF_MEMORY as i32 => {
                    log::debug!("a large copy has {} page-locked chunks of {}", slots.len(), plan.slots);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        // One chunk alone would be filled and copied in turns.
        let enough = slots.len() >= plan.slots.min(2);
        let plan = plan.with_slots(slots.len());
        Ok(enough.then_some(Ring { slots, plan }))
    }

    /// Runs the caller's part of a copy with its helpers, then waits for them and for the stream.
    ///
    /// # Safety
    ///
    /// `host` is valid for the plan's bytes, for reads where `up` and for writes where not, until this returns.
    unsafe fn run(
        mut self,
        stream: &StreamState,
        host: *mut u8,
        up: bool,
        part: impl FnOnce(&Crew<'_>, &Sides) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan;
        let slots = self.slots.iter_mut().map(|slot| slot.as_mut_ptr()).collect();
        let sides = Sides { host, slots, plan, up };
        let work = |chunk| sides.copy(chunk);
        let crew = Crew::new(plan.chunks, &work);
        if up {
            // Before the helpers start, so that none of them has to be woken.
            crew.release(plan.slots);
        }
        let result = crew.with_helpers(plan.helpers, || part(&crew, &sides));
        // No thread uses either side any more. A copy of the device may still be under way where something failed.
        let drained = stream.drain();
        if drained.is_err() {
            for slot in self.slots {
                slot.retire(None);
            }
        }
        result.and(drained)
    }
}

fn wait_for(stream: &StreamState, event: &EventCell) -> Result<()> {
    let _bound = stream.device.bind()?;
    // SAFETY: the event is live.
    unsafe { stream_call!(stream, cuEventSynchronize(event.raw.0)) }
}

/// The place of a chunk on the device.
fn part_of<'a>(view: View<'a>, range: &Range<usize>) -> View<'a> {
    View { address: view.address + range.start as u64, ..view }
}

impl Stream {
    /// Copies host memory to device memory; both hold `bytes` bytes. Done when this returns.
    ///
    /// # Safety
    ///
    /// `source` is valid for reads of `bytes` bytes, which nothing writes, until this returns.
    pub(super) unsafe fn upload_now(
        &self,
        source: *const u8,
        destination: View<'_>,
        bytes: usize,
    ) -> Result<()> {
        let stream = self.state();
        destination.refuse_capture("a blocking upload", stream, true)?;
        stream.reaches("an upload", &destination)?;
        let Some(ring) = Ring::new(stream, source, bytes)? else {
            // SAFETY: the caller vouches for `source` until the drain has returned.
            let issued = unsafe { self.issue_upload(source, destination, bytes) };
            return issued.and(stream.drain());
        };
        // Once for all chunks: the borrow keeps overlapping uses away until this returns, when all of them are done.
        destination.enter_write(stream)?;
        let plan = ring.plan;
        let part = |crew: &Crew<'_>, sides: &Sides| {
            let mut copies = VecDeque::new();
            for chunk in 0..plan.chunks {
                crew.finish(chunk);
                let range = plan.range(chunk);
                // SAFETY: the slot is released again only behind the copy's event, and given back behind the drain.
                unsafe { self.submit_upload(sides.slot(chunk), part_of(destination, &range), range.len())? };
                if chunk + plan.slots < plan.chunks {
                    copies.push_back(stream.record()?);
                }
                // The slot of the copy that is `queued` behind this one is needed next.
                if let Some(earlier) = chunk.checked_sub(plan.queued) {
                    if let Some(copied) = copies.pop_front() {
                        wait_for(stream, &copied)?;
                        crew.release(earlier + plan.slots + 1);
                    }
                }
            }
            Ok(())
        };
        // SAFETY: the caller vouches for `source`, which is only read.
        unsafe { ring.run(stream, source.cast_mut(), true, part) }
    }

    /// Copies device memory to host memory; both hold `bytes` bytes. Done when this returns.
    ///
    /// # Safety
    ///
    /// `destination` is valid for writes of `bytes` bytes, and nothing else uses them, until this returns.
    pub(super) unsafe fn download_now(
        &self,
        source: View<'_>,
        destination: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let stream = self.state();
        source.refuse_capture("a blocking download", stream, false)?;
        stream.reaches("a download", &source)?;
        let Some(ring) = Ring::new(stream, destination, bytes)? else {
            // SAFETY: the caller vouches for `destination` until the drain has returned.
            let issued = unsafe { self.issue_download(source, destination, bytes) };
            return issued.and(stream.drain());
        };
        source.enter_read(stream)?;
        let plan = ring.plan;
        let part = |crew: &Crew<'_>, sides: &Sides| {
            let mut arrivals = VecDeque::new();
            let mut issued = 0;
            for chunk in 0..plan.chunks {
                while issued < plan.chunks && issued <= chunk + plan.queued {
                    if let Some(earlier) = issued.checked_sub(plan.slots) {
                        crew.finish(earlier);
                    }
                    let range = plan.range(issued);
                    // SAFETY: the slot was emptied, and is released only behind the copy's event.
                    unsafe {
                        self.submit_download(part_of(source, &range), sides.slot(issued), range.len())?
                    };
                    arrivals.push_back(stream.record()?);
                    issued += 1;
                }
                if let Some(arrived) = arrivals.pop_front() {
                    wait_for(stream, &arrived)?;
                }
                crew.release(chunk + 1);
            }
            (plan.chunks - plan.slots..plan.chunks).for_each(|chunk| crew.finish(chunk));
            Ok(())
        };
        // SAFETY: the caller vouches for `destination`.
        unsafe { ring.run(stream, destination, false, part) }
    }
}

/// An empty vector with room for `length` elements that a download is about to write.
pub(super) fn room_for<T>(length: usize) -> Result<Vec<T>> {
    let mut elements: Vec<T> = Vec::new();
    elements.try_reserve_exact(length).map_err(|_| {
        let asked = format!("a download of {length} elements of {}", std::any::type_name::<T>());
        Error::host_memory(length.saturating_mul(size_of::<T>()), asked)
    })?;
    if length.saturating_mul(size_of::<T>()) >= THRESHOLD {
        prefer_large_pages(elements.as_mut_ptr().cast(), length * size_of::<T>());
    }
    Ok(elements)
}

/// Asks for pages of 2 MiB under memory that nothing was written to yet, where systems give them on request: a page fault
/// for every 4 KiB takes longer than the bytes that go there. It is advice, and an answer is not needed.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_large_pages(start: *mut u8, bytes: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    // The C library is what std itself stands on here.
    unsafe extern "C" {
        fn madvise(start: *mut std::ffi::c_void, bytes: usize, advice: i32) -> i32;
    }
    let skipped = start.align_offset(LARGE_PAGE);
    let inside = bytes.saturating_sub(skipped) / LARGE_PAGE * LARGE_PAGE;
    if inside > 0 {
        // SAFETY: whole pages inside one allocation of ours, whose contents the advice does not change.
        unsafe { madvise(start.wrapping_add(skipped).cast(), inside, MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_large_pages(_start: *mut u8, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_setting_is_a_number_of_bytes_or_none() {
        assert_eq!(read_threshold(None).unwrap(), Some(THRESHOLD));
        assert_eq!(read_threshold(Some("")).unwrap(), Some(THRESHOLD));
        assert_eq!(read_threshold(Some("1000")).unwrap(), Some(1000));
        assert_eq!(read_threshold(Some("none")).unwrap(), None);
        for wrong in ["0", "-1", "1 MiB", "all", "99999999999999999999999"] {
            assert!(matches!(read_threshold(Some(wrong)), Err(Error::InvalidArgument { .. })), "{wrong}");
        }
    }

    #[test]
    fn chunks_cover_the_bytes_once_and_the_ring_is_smaller_than_the_copy() {
        const LENGTHS: [usize; 12] =
            [1, 2, 15, 64, 65, 700, 4097, 1 << 20, THRESHOLD, THRESHOLD + 1, 1 << 30, isize::MAX as usize];
        let places = [(0, 0), (16, 1), (4112, 2), (LARGE_PAGE - 1, 5), (16, 16), (4096, 500)];
        for threshold in [1, 7, 64, 4096, THRESHOLD, usize::MAX] {
            for (bytes, (host, cores)) in LENGTHS.iter().flat_map(|&bytes| places.map(|at| (bytes, at))) {
                let plan = Plan::new(host, bytes, threshold, cores);
                assert!(plan.chunk > 0 && plan.chunk <= LARGEST_CHUNK, "{plan:?}");
                assert!(plan.slots > plan.queued && plan.slots <= plan.chunks, "{plan:?}");
                assert_eq!(plan.range(0).start, 0);
                assert_eq!(plan.range(plan.chunks - 1).end, bytes, "{plan:?}");
                for chunk in (0..plan.chunks).take(20).chain([plan.chunks - 1]) {
                    let range = plan.range(chunk);
                    assert!(!range.is_empty() && range.len() <= plan.chunk, "{plan:?}");
                    assert!(chunk == 0 || plan.range(chunk - 1).end == range.start, "{plan:?}");
                }
                let fewer = plan.with_slots(1);
                assert_eq!((fewer.slots, fewer.queued), (1, 0));
            }
        }
        let large = Plan::new(16, 1 << 30, THRESHOLD, 16);
        assert_eq!((large.chunk, large.chunks, large.helpers, large.slots), (4 << 20, 256, 12, 15));
        let small = Plan::new(LARGE_PAGE + 8208, THRESHOLD, THRESHOLD, 16);
        assert_eq!((small.chunk, small.chunks, small.range(0)), (1 << 20, 16, 0..1 << 20));
        let skewed = Plan::new(LARGE_PAGE + 8208, 2 * THRESHOLD, THRESHOLD, 16);
        assert_eq!((skewed.chunk, skewed.chunks, skewed.range(0)), (2 << 20, 17, 0..LARGE_PAGE - 8192));
    }

    /// Every chunk once, in any order, by whoever is there; also with nobody but the caller.
    #[test]
    fn a_crew_of_any_size_does_every_released_chunk_once() {
        for helpers in [0, 1, 2, 7] {
            for chunks in [1, 2, 50] {
                let done: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                let work = |chunk: usize| {
                    done[chunk].fetch_add(1, Ordering::Relaxed);
                };
                let crew = Crew::new(chunks, &work);
                crew.with_helpers(helpers, || {
                    for chunk in 0..chunks {
                        crew.release(chunk + 3);
                        crew.finish(chunk);
                        assert_eq!(done[chunk].load(Ordering::Relaxed), 1, "finished means done");
                        let ahead = done.iter().skip(chunk + 3).map(|done| done.load(Ordering::Relaxed));
                        assert_eq!(ahead.sum::<usize>(), 0, "nothing is done before it is released");
                    }
                });
                assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_crew_goes_home_when_the_caller_stops_early() {
        let done = AtomicUsize::new(0);
        let work = |_: usize| {
            done.fetch_add(1, Ordering::Relaxed);
        };
        let crew = Crew::new(100, &work);
        crew.release(10);
        crew.with_helpers(3, || crew.finish(0));
        assert!((1..=10).contains(&done.load(Ordering::Relaxed)));
    }

    #[test]
    fn moved_chunks_are_the_bytes_in_both_directions() {
        let wanted: Vec<u8> = (0..1001u32).map(|index| (index * 7) as u8).collect();
        let plan = Plan::new(1, wanted.len(), 64, 3).with_slots(2);
        let mut ring = vec![vec![0u8; plan.chunk]; plan.slots];
        let mut source = wanted.clone();
        let mut result = vec![0u8; wanted.len()];
        let slots: Vec<*mut u8> = ring.iter_mut().map(|slot| slot.as_mut_ptr()).collect();
        let up = Sides { host: source.as_mut_ptr(), slots: slots.clone(), plan, up: true };
        let down = Sides { host: result.as_mut_ptr(), slots, plan, up: false };
        for chunk in 0..plan.chunks {
            up.copy(chunk);
            down.copy(chunk);
        }
        assert_eq!(result, wanted);
    }

    #[test]
    fn room_that_cannot_be_had_is_an_error() {
        assert!(room_for::<u64>(usize::MAX / 4).is_err());
        assert!(room_for::<()>(usize::MAX).is_ok());
        assert!(room_for::<u8>(THRESHOLD + 5).unwrap().capacity() >= THRESHOLD + 5);
    }
}
