//! Thread caches: each stream's free lists and its share of the accounting, ahead of the heap.
//!
//! A stream has several caches, and each thread uses one of them, so that threads that share a stream do not contend. A
//! request that a list serves takes one lock, which is hardly ever contended. The accounting is exact all the same:
//! each cache counts its live bytes, and may raise them up to its *quota* without synchronization. The quotas together
//! never exceed the highest total so far, so a cache within its quota cannot set a new peak. Beyond it, all caches are
//! locked, the total is computed, and new quotas are distributed. A memory scope is one more peak, which starts at the
//! live total; the lowest peak bounds the quotas.
//!
//! Invariants: the sum of `live` over all caches is the live total; the sum of the quotas is at most the lowest tracked
//! peak; locks are taken in the order peaks, list of caches, caches.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::arena::BlockIndex;
use super::class::Class;
use super::lists::{ListedBlock, Lists};
use super::spinlock::{SpinLock, SpinLockGuard};
use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;

/// From this many caches on, each doubling of their number triggers a search for unused ones.
const MANY_CACHES: usize = 64;

/// Bytes as requested, and bytes of whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) requested: i64,
    pub(crate) blocks: i64,
}

impl Amount {
    fn plus(self, other: Amount) -> Amount {
        Amount { requested: self.requested + other.requested, blocks: self.blocks + other.blocks }
    }

    fn minus(self, other: Amount) -> Amount {
        Amount { requested: self.requested - other.requested, blocks: self.blocks - other.blocks }
    }

    fn highest(self, other: Amount) -> Amount {
        Amount { requested: self.requested.max(other.requested), blocks: self.blocks.max(other.blocks) }
    }

    fn lowest(self, other: Amount) -> Amount {
        Amount { requested: self.requested.min(other.requested), blocks: self.blocks.min(other.blocks) }
    }

    fn divided(self, by: i64) -> Amount {
        Amount { requested: self.requested / by, blocks: self.blocks / by }
    }

    fn within(self, other: Amount) -> bool {
        self.requested <= other.requested && self.blocks <= other.blocks
    }

    fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
        amounts.fold(Amount::default(), Amount::plus)
    }
}

/// A stream's lists and accounting. Aligned to cache lines of its own.
#[repr(align(128))]
pub(crate) struct ThreadCache {
    /// The stream's id; 0 for memory of no stream.
    pub(crate) id: u64,
    state: SpinLock<CacheState>,
}

#[derive(Default)]
pub(crate) struct CacheState {
    pub(crate) lists: Lists,
    /// Bytes allocated less bytes freed; negative if other caches allocated them.
    live: Amount,
    quota: Amount,
    /// A slowly decaying maximum of `live`.
    high: Amount,
    requests: u64,
    hits: u64,
    /// True if the stream's last handle is gone.
    pub(crate) closed: bool,
    /// True if a block ever returned to this cache.
    pub(crate) used: bool,
    /// For a closed stream: an event and the number of operations that it is behind.
    pub(crate) last: Option<(Arc<EventCell>, u64)>,
}

impl ThreadCache {
    pub(crate) fn new(id: u64) -> Arc<ThreadCache> {
        Arc::new(ThreadCache { id, state: SpinLock::default() })
    }

    #[inline]
    pub(crate) fn lock(&self) -> SpinLockGuard<'_, CacheState> {
        self.state.lock()
    }

    /// Stores an event behind this many of the stream's operations, unless there is a newer one.
    pub(crate) fn leave(&self, last: (Arc<EventCell>, u64)) {
        let mut state = self.lock();
        let newer = state.last.as_ref().is_none_or(|(_, behind)| *behind < last.1);
        let old = if newer { state.last.replace(last) } else { None };
        drop(state);
        drop(old);
    }
}

/// The number of caches of a stream.
const CACHES: usize = 8;

/// A stream's caches, selected by thread.
pub(crate) struct ThreadCaches([Arc<ThreadCache>; CACHES]);

/// This thread's number in order of first use, modulo the number of caches.
#[inline]
fn thread_index() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    #[cold]
    fn count() -> usize {
        let index = THREADS.fetch_add(1, Ordering::Relaxed) % CACHES;
        let _ = NUMBER.try_with(|cell| cell.set(index));
        index
    }
    // A thread that ends may drop buffers after its thread-locals are gone: any cache is correct.
    match NUMBER.try_with(Cell::get) {
        Ok(usize::MAX) => count(),
        Ok(index) => index,
        Err(_) => 0,
    }
}

impl ThreadCaches {
    pub(crate) fn new(id: u64) -> ThreadCaches {
        ThreadCaches(std::array::from_fn(|_| ThreadCache::new(id)))
    }

    /// The cache of this thread.
    #[inline]
    pub(crate) fn own(&self) -> &Arc<ThreadCache> {
        &self.0[thread_index() % CACHES]
    }

    /// All caches, this thread's first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ThreadCache>> {
        self.0.iter().cycle().skip(thread_index()).take(CACHES)
    }
}

impl CacheState {
    /// Returns whether the cache has nothing for the heap: neither a block nor the last event of a closed stream, which
    /// blocks that returned earlier may be waiting for.
    fn is_empty(&self) -> bool {
        self.lists.bytes == 0 && self.last.is_none()
    }

    /// Counts a request if it cannot set a new peak.
    #[inline]
    fn count(&mut self, amount: Amount) -> bool {
        let live = self.live.plus(amount);
        let fits = live.within(self.quota);
        if fits {
            self.live = live;
        }
        fits
    }

    /// Returns address and index of a block of the lists, and whether it is counted. Otherwise counting needs the other
    /// caches.
    #[inline]
    pub(crate) fn pop(&mut self, class: Class, requested: usize) -> Option<(u64, BlockIndex, bool)> {
        let (address, index) = self.lists.pop(class)?;
        self.requests += 1;
        self.hits += 1;
        let counted = self.count(Amount { requested: requested as i64, blocks: class.bytes as i64 });
        Some((address, index, counted))
    }

    #[inline]
    pub(crate) fn push(&mut self, class: Class, requested: usize, kept: ListedBlock) {
        self.lists.push(class, kept);
        self.used = true;
        self.subtract(requested, class.bytes as usize);
    }

    #[inline]
    pub(crate) fn subtract(&mut self, requested: usize, bytes: usize) {
        self.live = self.live.minus(Amount { requested: requested as i64, blocks: bytes as i64 });
    }
}

/// The totals over all caches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) live: Amount,
    pub(crate) peak: Amount,
    pub(crate) requests: u64,
    pub(crate) hits: u64,
}

/// A cache and its stream.
#[derive(Clone)]
pub(crate) struct RegisteredCache {
    pub(crate) cache: Arc<ThreadCache>,
    pub(crate) stream: Weak<StreamState>,
}

/// The accounting of a device.
pub(crate) struct Accounting {
    /// The peaks by the number of their tracker: 0 is the device itself, others are scopes.
    peaks: Mutex<Vec<(u64, Amount)>>,
    caches: Mutex<Vec<RegisteredCache>>,
    /// The cache of memory that belongs to no stream.
    pub(crate) common: Arc<ThreadCache>,
}

impl Default for Accounting {
    fn default() -> Accounting {
        let common = ThreadCache::new(0);
        let caches = vec![RegisteredCache { cache: common.clone(), stream: Weak::new() }];
        Accounting { peaks: Mutex::new(vec![(0, Amount::default())]), caches: Mutex::new(caches), common }
    }
}

impl Accounting {
    fn lock_peaks(&self) -> MutexGuard<'_, Vec<(u64, Amount)>> {
        self.peaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_caches(&self) -> MutexGuard<'_, Vec<RegisteredCache>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, cache: Arc<ThreadCache>, stream: Weak<StreamState>) {
        let count = {
            let mut caches = self.lock_caches();
            caches.push(RegisteredCache { cache, stream });
            caches.len()
        };
        // A program may create streams for ever without running short of memory, which would trigger the search too.
        if count >= MANY_CACHES && count.is_power_of_two() {
            self.forget_gone();
        }
    }

    /// Every cache.
    pub(crate) fn caches(&self) -> Vec<RegisteredCache> {
        self.lock_caches().clone()
    }

    /// Counts a served request.
    pub(crate) fn add(&self, cache: &ThreadCache, requested: usize, bytes: usize, hit: bool) {
        let amount = Amount { requested: requested as i64, blocks: bytes as i64 };
        {
            let mut state = cache.lock();
            state.requests += 1;
            state.hits += u64::from(hit);
            if state.count(amount) {
                return;
            }
        }
        self.raise(cache, amount);
    }

    /// Counts a block from its cache's list, which may set a new peak.
    #[cold]
    pub(crate) fn raise_by(&self, cache: &ThreadCache, requested: usize, bytes: u64) {
        self.raise(cache, Amount { requested: requested as i64, blocks: bytes as i64 });
    }

    /// Adds to a cache while all are locked, so that the total is consistent, then distributes the quotas.
    #[cold]
    fn raise(&self, cache: &ThreadCache, amount: Amount) {
        self.with_all(|peaks, states| {
            let own = states.iter_mut().find(|(of, _)| std::ptr::eq(*of, cache));
            if let Some((_, state)) = own {
                state.live = state.live.plus(amount);
            }
            share_out(peaks, states);
        });
    }

    fn with_all<R>(
        &self,
        work: impl FnOnce(
            &mut Vec<(u64, Amount)>,
            &mut Vec<(*const ThreadCache, SpinLockGuard<'_, CacheState>)>,
        ) -> R,
    ) -> R {
        let mut peaks = self.lock_peaks();
        let caches = self.lock_caches();
        let mut states = caches.iter().map(|entry| (Arc::as_ptr(&entry.cache), entry.cache.lock())).collect();
        work(&mut peaks, &mut states)
    }

    /// Starts to track a peak from the live total.
    pub(crate) fn open_scope(&self, number: u64) -> Amount {
        self.with_all(|peaks, states| {
            let live = Amount::sum(states.iter().map(|(_, state)| state.live));
            peaks.push((number, live));
            share_out(peaks, states);
            live
        })
    }

    /// Returns the live total and its peak since the scope was opened.
    pub(crate) fn scope(&self, number: u64) -> (Amount, Amount) {
        self.with_all(|peaks, states| {
            let live = Amount::sum(states.iter().map(|(_, state)| state.live));
            let peak = peaks.iter().find(|(tracks, _)| *tracks == number).map_or(live, |(_, peak)| *peak);
            (live, peak)
        })
    }

    pub(crate) fn close_scope(&self, number: u64) {
        self.lock_peaks().retain(|(tracks, _)| *tracks != number);
    }

    pub(crate) fn totals(&self) -> Totals {
        self.with_all(|peaks, states| {
            let live = Amount::sum(states.iter().map(|(_, state)| state.live));
            let peak = peaks.first().map_or(live, |(_, peak)| *peak);
            let count = |count: fn(&CacheState) -> u64| states.iter().map(|(_, state)| count(state)).sum();
            Totals { live, peak, requests: count(|state| state.requests), hits: count(|state| state.hits) }
        })
    }

    /// The peak of live blocks, or the value with `more` bytes added if that is higher.
    pub(crate) fn peak_with(&self, more: u64) -> u64 {
        let totals = self.totals();
        totals.peak.blocks.max(totals.live.blocks + more as i64).max(0) as u64
    }

    /// Removes caches whose streams are gone and that have nothing for the heap. The common cache takes over their
    /// counts.
    pub(crate) fn forget_gone(&self) {
        let _peaks = self.lock_peaks();
        let mut caches = self.lock_caches();
        let is_gone = |entry: &RegisteredCache| entry.cache.id != 0 && entry.stream.strong_count() == 0;
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut *caches)
            .into_iter()
            .partition(|entry| is_gone(entry) && entry.cache.lock().is_empty());
        *caches = kept;
        let mut common = self.common.lock();
        for entry in &gone {
            // No block of a stream that is gone can return any more, so only the total matters.
            let state = entry.cache.lock();
            common.live = common.live.plus(state.live);
            common.quota = common.quota.plus(state.quota);
            common.requests += state.requests;
            common.hits += state.hits;
        }
    }
}

/// Records the total, and gives every cache the quota that it will probably need.
fn share_out(
    peaks: &mut [(u64, Amount)],
    states: &mut [(*const ThreadCache, SpinLockGuard<'_, CacheState>)],
) {
    let total = Amount::sum(states.iter().map(|(_, state)| state.live));
    for (_, peak) in peaks.iter_mut() {
        *peak = peak.highest(total);
    }
    let ceiling = peaks.iter().map(|(_, peak)| *peak).reduce(Amount::lowest).unwrap_or(total);
    for (_, state) in states.iter_mut() {
        let forgotten = state.high.minus(state.high.minus(state.live).divided(8));
        state.high = forgotten.highest(state.live);
    }
    let highs = Amount::sum(states.iter().map(|(_, state)| state.high));
    let count = states.len().max(1) as i64;
    let enough = highs.within(ceiling);
    let rest = ceiling.minus(if enough { highs } else { total }).divided(count);
    for (_, state) in states.iter_mut() {
        state.quota = if enough { state.high } else { state.live }.plus(rest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use super::{Accounting, Amount, ThreadCache};

    fn amount(bytes: i64) -> Amount {
        Amount { requested: bytes, blocks: bytes }
    }

    fn drop_of(cache: &ThreadCache, bytes: usize) {
        cache.lock().subtract(bytes, bytes);
    }

    #[test]
    fn peaks_are_exact_over_streams_and_scopes() {
        let accounting = Accounting::default();
        let caches: Vec<Arc<ThreadCache>> = (1..=4).map(ThreadCache::new).collect();
        for cache in &caches {
            accounting.register(cache.clone(), Weak::new());
        }
        let mut state = 88_172_645_463_325_252u64;
        let mut random = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % bound
        };
        let mut held: Vec<(usize, usize)> = Vec::new();
        let (mut live, mut peak) = (0i64, 0i64);
        let mut scopes: Vec<(u64, i64)> = Vec::new();
        for step in 0..200_000u64 {
            match random(100) {
                0..50 => {
                    let (cache, bytes) = (random(4) as usize, 1 + random(1000) as usize);
                    accounting.add(&caches[cache], bytes, bytes, false);
                    held.push((cache, bytes));
                    live += bytes as i64;
                    peak = peak.max(live);
                    scopes.iter_mut().for_each(|(_, peak)| *peak = live.max(*peak));
                }
                50..98 if !held.is_empty() => {
                    let (cache, bytes) = held.swap_remove(random(held.len() as u64) as usize);
                    drop_of(&caches[cache], bytes);
                    live -= bytes as i64;
                }
                98 if scopes.len() < 3 => {
                    assert_eq!(accounting.open_scope(step + 1), amount(live));
                    scopes.push((step + 1, live));
                }
                99 if !scopes.is_empty() => {
                    let (number, peak) = scopes.swap_remove(random(scopes.len() as u64) as usize);
                    assert_eq!(accounting.scope(number), (amount(live), amount(peak)), "step {step}");
                    accounting.close_scope(number);
                }
                _ => {}
            }
        }
        let totals = accounting.totals();
        assert_eq!((totals.live, totals.peak), (amount(live), amount(peak)));
    }

    #[test]
    fn caches_of_streams_that_are_gone_do_not_pile_up() {
        let accounting = Accounting::default();
        for id in 1..10_000 {
            let cache = ThreadCache::new(id);
            // The count of a removed cache is kept.
            drop_of(&cache, 100);
            accounting.register(cache, Weak::new());
        }
        assert!(accounting.caches().len() <= 64);
        assert_eq!(accounting.totals().live, amount(-999_900));
    }

    #[test]
    fn a_stream_that_repeats_itself_needs_no_other_lock() {
        let accounting = Accounting::default();
        let cache = ThreadCache::new(1);
        accounting.register(cache.clone(), Weak::new());
        for _ in 0..10 {
            accounting.add(&cache, 100, 100, false);
            drop_of(&cache, 100);
        }
        let _others = accounting.lock_peaks();
        // This would deadlock if it needed the lock.
        accounting.add(&cache, 100, 100, false);
    }
}
