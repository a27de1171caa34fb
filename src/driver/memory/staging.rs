//! Large copies from and to plain host memory, through a ring of page-locked chunks.
//!
//! The device accesses page-locked memory only. For plain memory the driver moves the bytes through a small page-locked
//! buffer of its own, on the calling thread, at about 10 GB/s, a fraction of the bus bandwidth. In this module several
//! threads move the bytes between the caller's slice and the chunks while the device copies other chunks. On a download
//! they also take the page faults of a fresh vector, which cost as much as the bytes do.
//!
//! Only the calling thread calls the driver, chunk by chunk in order, so a copy makes the same calls every time. The
//! helper threads only move bytes. The caller moves a chunk that no helper has begun when it is needed. A thread that
//! cannot be started costs only speed.
//!
//! Invariants, on every return path: the threads have ended before the function returns, because they use the caller's
//! slice; a chunk is reused only after the event of its previous copy; the ring returns to the pool only after a wait
//! for the stream, and is retired if that wait fails.

use std::collections::VecDeque;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, Scope, available_parallelism};

use super::pinned::{PinnedBuffer, is_page_locked};
use super::slice::View;
use crate::driver::context::{OUT_OF_MEMORY, stream_call};
use crate::driver::device::Device;
use crate::driver::event::{EventCell, span_of_wait};
use crate::driver::stream::{Stream, StreamState};
use crate::error::{Error, Result};

/// The smallest staged copy in bytes. Starting and ending the threads and filling the first chunk take about 0.2 ms
/// without any copy, which the driver's own path loses to the bus within 10 MiB. Measured on an H200 at 16 MiB: uploads
/// are 1.4 times and downloads 1.6 times as fast as the driver's own.
const THRESHOLD: usize = 16 << 20;

/// The largest chunk: 75 us of bus time, against a few for starting a copy, while a ring still fits in the host's
/// last-level cache.
const MAX_CHUNK: usize = 4 << 20;

/// The least number of chunks of a copy, if they stay above a sixteenth of the threshold: the bus is idle while the
/// first (or last) chunk is moved.
const MIN_CHUNKS: usize = 16;

/// The largest number of helpers. The bus is five to six times as fast as one thread, and page faults double the work.
const MAX_HELPERS: usize = 12;

/// The size of the host's huge pages.
const LARGE_PAGE: usize = 2 << 20;

/// Copies queued ahead on the device, to keep it busy during the host's turnaround.
const QUEUED: usize = 3;

/// The threshold set by `SELVEDGE_STAGING_BYTES`; `None` if staging is disabled.
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

/// The number of cores that this process may use, cached because the system call takes longer than a small copy.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}

/// The division of a copy into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StagingPlan {
    bytes: usize,
    /// Bytes of every chunk except the first and the last.
    chunk: usize,
    /// The number of bytes by which the first chunk is shorter.
    skew: usize,
    chunks: usize,
    /// Page-locked chunks in the ring; chunk `n` of the copy uses slot `n % slots`.
    slots: usize,
    /// Copies queued behind the one in progress.
    queued: usize,
    helpers: usize,
}

impl StagingPlan {
    /// A plan for `bytes` bytes at the address `host`.
    fn new(host: usize, bytes: usize, threshold: usize, cores: usize) -> StagingPlan {
        let smallest = (threshold / MIN_CHUNKS).clamp(1, MAX_CHUNK);
        let chunk = (bytes / MIN_CHUNKS).clamp(smallest, MAX_CHUNK);
        // The pool of page-locked memory has sizes that are powers of two.
        let chunk = chunk.checked_next_power_of_two().unwrap_or(chunk).min(MAX_CHUNK);
        // Two threads that touch one huge page first at the same time zero it twice, so chunks begin at huge pages. The
        // skew is a multiple of small pages, because it shifts the device's side too, where copies prefer aligned
        // addresses.
        let skew = if chunk >= LARGE_PAGE { (host % LARGE_PAGE) & !0xFFF } else { 0 };
        let chunks = (bytes + skew).div_ceil(chunk);
        // The caller's core is busy with the driver.
        let helpers = cores.saturating_sub(1).min(MAX_HELPERS).min(chunks / 2);
        StagingPlan { bytes, chunk, skew, chunks, slots: 0, queued: 0, helpers }.with_slots(helpers + QUEUED)
    }

    /// The same plan with `slots` chunks in the ring, at least one each for the helpers and the device.
    fn with_slots(self, slots: usize) -> StagingPlan {
        let slots = slots.min(self.chunks);
        StagingPlan { slots, queued: QUEUED.min(slots / 2), helpers: self.helpers.min(slots), ..self }
    }

    fn range(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.chunk;
        start.saturating_sub(self.skew)..self.bytes.min(start + self.chunk - self.skew)
    }
}

/// A queue of chunks that the caller releases in order, shared with helper threads.
struct ChunkQueue<'a> {
    progress: Mutex<Progress>,
    /// Signals that a chunk was released, or the queue is closed.
    released: Condvar,
    /// Signals that a chunk was finished.
    finished: Condvar,
    work: &'a (dyn Fn(usize) + Sync),
}

struct Progress {
    /// Chunks before this one may be processed.
    released: usize,
    /// The next chunk to take.
    next: usize,
    finished: Vec<bool>,
    closed: bool,
}

/// Closes the queue, on errors and panics too.
struct CloseOnDrop<'a>(&'a ChunkQueue<'a>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.progress().closed = true;
        self.0.released.notify_all();
    }
}

impl<'a> ChunkQueue<'a> {
    fn new(chunks: usize, work: &'a (dyn Fn(usize) + Sync)) -> ChunkQueue<'a> {
        let progress = Progress { released: 0, next: 0, finished: vec![false; chunks], closed: false };
        ChunkQueue {
            progress: Mutex::new(progress),
            released: Condvar::new(),
            finished: Condvar::new(),
            work,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the caller's part with up to `helpers` helpers, which have all ended when it returns.
    fn with_helpers<R>(&self, helpers: usize, part: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            let _closing = CloseOnDrop(self);
            self.spawn_helper(scope, helpers);
            part()
        })
    }

    /// Starts one helper, which starts the next, so that the caller goes on at once.
    fn spawn_helper<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, helpers: usize) {
        if helpers == 0 || self.progress().closed {
            return;
        }
        let helper = Builder::new().name("selvedge-staging".to_owned());
        let started = helper.spawn_scoped(scope, move || {
            self.spawn_helper(scope, helpers - 1);
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

    /// Processes the next chunk, which must be released.
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

    /// Releases all chunks before `end`.
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

    /// Returns when a released chunk is finished. Processes it here if no helper has taken it.
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

/// The memory on both sides of a copy.
struct CopySides {
    host: *mut u8,
    slots: Vec<*mut u8>,
    plan: StagingPlan,
    up: bool,
}

// SAFETY: the chunks of both sides are disjoint, and one thread at a time uses each: the queue assigns a chunk to one
// thread, and the caller touches none.
unsafe impl Sync for CopySides {}

impl CopySides {
    fn slot(&self, chunk: usize) -> *mut u8 {
        self.slots[chunk % self.slots.len()]
    }

    /// Copies a chunk between the host's memory and the ring.
    fn copy(&self, chunk: usize) {
        let range = self.plan.range(chunk);
        let slot = self.slot(chunk);
        // SAFETY: the range is inside the host's memory, which the caller of the staged copy vouches for; the slot fits
        // a chunk, and no copy of the device uses it while the chunk is released.
        unsafe {
            let host = self.host.add(range.start);
            let (from, to) = if self.up { (host.cast_const(), slot) } else { (slot.cast_const(), host) };
            std::ptr::copy_nonoverlapping(from, to, range.len());
        }
    }
}

/// The page-locked chunks of one copy.
struct StagingRing {
    slots: Vec<PinnedBuffer<u8>>,
    plan: StagingPlan,
}

impl StagingRing {
    /// The ring for a copy. `None` if the driver's own path is better: the copy is small, its host memory is
    /// page-locked already, or no memory can be locked.
    fn new(stream: &StreamState, host: *const u8, bytes: usize) -> Result<Option<StagingRing>> {
        match threshold()? {
            Some(threshold) if bytes >= threshold && !is_page_locked(host, bytes) => {
                StagingRing::of(stream, StagingPlan::new(host.addr(), bytes, threshold, cores()))
            }
            _ => Ok(None),
        }
    }

    fn of(stream: &StreamState, plan: StagingPlan) -> Result<Option<StagingRing>> {
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
        // With a single chunk, filling and copying would alternate.
        let enough = slots.len() >= plan.slots.min(2);
        let plan = plan.with_slots(slots.len());
        Ok(enough.then_some(StagingRing { slots, plan }))
    }

    /// Runs the caller's part of a copy with its helpers, then waits for them and for the stream.
    ///
    /// # Safety
    ///
    /// `host` is valid for the plan's bytes until this returns: for reads if `up`, else for writes.
    unsafe fn run(
        mut self,
        stream: &StreamState,
        host: *mut u8,
        up: bool,
        part: impl FnOnce(&ChunkQueue<'_>, &CopySides) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan;
        let slots = self.slots.iter_mut().map(|slot| slot.as_mut_ptr()).collect();
        let sides = CopySides { host, slots, plan, up };
        let work = |chunk| sides.copy(chunk);
        let queue = ChunkQueue::new(plan.chunks, &work);
        if up {
            // Released before the helpers start, so that none must be woken.
            queue.release(plan.slots);
        }
        let result = queue.with_helpers(plan.helpers, || part(&queue, &sides));
        // No thread uses either side any more. A device copy may still be in progress after a failure.
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
    let _wait = span_of_wait();
    let _bound = stream.device.bind()?;
    // SAFETY: the event is live.
    unsafe { stream_call!(stream, cuEventSynchronize(event.raw.0)) }
}

/// The part of the view that a chunk covers.
fn part_of<'a>(view: View<'a>, range: &Range<usize>) -> View<'a> {
    View { address: view.address + range.start as u64, ..view }
}

impl Stream {
    /// Copies host memory to device memory; both hold `bytes` bytes. Synchronous.
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
        let Some(ring) = StagingRing::new(stream, source, bytes)? else {
            // SAFETY: the caller vouches for `source` until the drain has returned.
            let issued = unsafe { self.issue_upload(source, destination, bytes) };
            return issued.and(stream.drain());
        };
        // Registered once for all chunks: the borrow excludes overlapping uses until this returns, when all chunks are
        // done.
        destination.enter_write(stream)?;
        let plan = ring.plan;
        let part = |queue: &ChunkQueue<'_>, sides: &CopySides| {
            let mut copies = VecDeque::new();
            for chunk in 0..plan.chunks {
                queue.finish(chunk);
                let range = plan.range(chunk);
                // SAFETY: the slot is released again only behind the copy's event, and freed behind the drain.
                unsafe { self.submit_upload(sides.slot(chunk), part_of(destination, &range), range.len())? };
                if chunk + plan.slots < plan.chunks {
                    copies.push_back(stream.record()?);
                }
                // The slot of the copy queued `queued` chunks earlier is needed next.
                if let Some(earlier) = chunk.checked_sub(plan.queued)
                    && let Some(copied) = copies.pop_front()
                {
                    wait_for(stream, &copied)?;
                    queue.release(earlier + plan.slots + 1);
                }
            }
            Ok(())
        };
        // SAFETY: the caller vouches for `source`, which is only read.
        unsafe { ring.run(stream, source.cast_mut(), true, part) }
    }

    /// Copies device memory to host memory; both hold `bytes` bytes. Synchronous.
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
        let Some(ring) = StagingRing::new(stream, destination, bytes)? else {
            // SAFETY: the caller vouches for `destination` until the drain has returned.
            let issued = unsafe { self.issue_download(source, destination, bytes) };
            return issued.and(stream.drain());
        };
        source.enter_read(stream)?;
        let plan = ring.plan;
        let part = |queue: &ChunkQueue<'_>, sides: &CopySides| {
            let mut arrivals = VecDeque::new();
            let mut issued = 0;
            for chunk in 0..plan.chunks {
                while issued < plan.chunks && issued <= chunk + plan.queued {
                    if let Some(earlier) = issued.checked_sub(plan.slots) {
                        queue.finish(earlier);
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
                queue.release(chunk + 1);
            }
            (plan.chunks - plan.slots..plan.chunks).for_each(|chunk| queue.finish(chunk));
            Ok(())
        };
        // SAFETY: the caller vouches for `destination`.
        unsafe { ring.run(stream, destination, false, part) }
    }
}

/// Returns an empty vector with capacity for `length` elements that a download is about to write.
pub(super) fn vec_with_capacity<T>(length: usize) -> Result<Vec<T>> {
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

/// Requests huge pages (2 MiB) for memory that was never written, on systems that give them on request: page faults of
/// 4 KiB take longer than the bytes. The request is advice, so its result is ignored.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_large_pages(start: *mut u8, bytes: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    // The C library, which std links as well.
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
        let alignments = [(0, 0), (16, 1), (4112, 2), (LARGE_PAGE - 1, 5), (16, 16), (4096, 500)];
        for threshold in [1, 7, 64, 4096, THRESHOLD, usize::MAX] {
            for (bytes, (host, cores)) in LENGTHS.iter().flat_map(|&bytes| alignments.map(|at| (bytes, at))) {
                let plan = StagingPlan::new(host, bytes, threshold, cores);
                assert!(plan.chunk > 0 && plan.chunk <= MAX_CHUNK, "{plan:?}");
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
        let large = StagingPlan::new(16, 1 << 30, THRESHOLD, 16);
        assert_eq!((large.chunk, large.chunks, large.helpers, large.slots), (4 << 20, 256, 12, 15));
        let small = StagingPlan::new(LARGE_PAGE + 8208, THRESHOLD, THRESHOLD, 16);
        assert_eq!((small.chunk, small.chunks, small.range(0)), (1 << 20, 16, 0..1 << 20));
        let skewed = StagingPlan::new(LARGE_PAGE + 8208, 2 * THRESHOLD, THRESHOLD, 16);
        assert_eq!((skewed.chunk, skewed.chunks, skewed.range(0)), (2 << 20, 17, 0..LARGE_PAGE - 8192));
    }

    /// Every chunk is processed once, in any order, by any thread; also without helpers.
    #[test]
    fn a_crew_of_any_size_does_every_released_chunk_once() {
        for helpers in [0, 1, 2, 7] {
            for chunks in [1, 2, 50] {
                let done: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                let work = |chunk: usize| {
                    done[chunk].fetch_add(1, Ordering::Relaxed);
                };
                let queue = ChunkQueue::new(chunks, &work);
                queue.with_helpers(helpers, || {
                    for chunk in 0..chunks {
                        queue.release(chunk + 3);
                        queue.finish(chunk);
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
        let queue = ChunkQueue::new(100, &work);
        queue.release(10);
        queue.with_helpers(3, || queue.finish(0));
        assert!((1..=10).contains(&done.load(Ordering::Relaxed)));
    }

    #[test]
    fn moved_chunks_are_the_bytes_in_both_directions() {
        let wanted: Vec<u8> = (0..1001u32).map(|index| (index * 7) as u8).collect();
        let plan = StagingPlan::new(1, wanted.len(), 64, 3).with_slots(2);
        let mut ring = vec![vec![0u8; plan.chunk]; plan.slots];
        let mut source = wanted.clone();
        let mut result = vec![0u8; wanted.len()];
        let slots: Vec<*mut u8> = ring.iter_mut().map(|slot| slot.as_mut_ptr()).collect();
        let up = CopySides { host: source.as_mut_ptr(), slots: slots.clone(), plan, up: true };
        let down = CopySides { host: result.as_mut_ptr(), slots, plan, up: false };
        for chunk in 0..plan.chunks {
            up.copy(chunk);
            down.copy(chunk);
        }
        assert_eq!(result, wanted);
    }

    #[test]
    fn room_that_cannot_be_had_is_an_error() {
        assert!(vec_with_capacity::<u64>(usize::MAX / 4).is_err());
        assert!(vec_with_capacity::<()>(usize::MAX).is_ok());
        assert!(vec_with_capacity::<u8>(THRESHOLD + 5).unwrap().capacity() >= THRESHOLD + 5);
    }
}
