//! What each stream has in front of the heap: its lists, and its share of the books.
//!
//! A stream has several fronts, and each thread its own of them, so that threads that share a stream are not in each
//! other's way. A request that a list serves takes one lock that hardly anybody else takes. The books are exact all the same: each stream
//! counts what is live of its own, and may go up to its *grant* without telling anybody. The grants of all streams
//! together never exceed the highest total there ever was, so within its grant no stream can set a new peak; beyond it
//! all streams are locked, the total is taken, and the grants are shared out anew. A memory scope is one more highest
//! total, which begins at what is live; the lowest of them bounds the grants.
//!
//! What must stay true: `live` of all fronts together is what is live; the sum of the grants is at most the lowest
//! tracked peak; locks are taken in the order peaks, list of fronts, fronts.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::arena::Index;
use super::class::Class;
use super::latch::{Guard, Latch};
use super::lists::{Kept, Lists};
use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;

/// From so many fronts on, each doubling of their number is a reason to look for those that can be forgotten.
const MANY: usize = 64;

/// Bytes in two ways of counting.
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

/// A stream's lists and books. On cache lines of its own.
#[repr(align(128))]
pub(crate) struct Front {
    /// The stream's id; 0 for what belongs to none.
    pub(crate) id: u64,
    state: Latch<FrontState>,
}

#[derive(Default)]
pub(crate) struct FrontState {
    pub(crate) lists: Lists,
    /// What was given out less what came back; negative where other fronts gave it out.
    live: Amount,
    grant: Amount,
    /// What `live` has reached, forgotten slowly.
    high: Amount,
    requests: u64,
    hits: u64,
    /// Whether the stream's last handle is gone.
    pub(crate) closed: bool,
    /// Whether a block ever came back to it.
    pub(crate) used: bool,
    /// Where it is closed: an event behind the first so many of its operations.
    pub(crate) last: Option<(Arc<EventCell>, u64)>,
}

impl Front {
    pub(crate) fn new(id: u64) -> Arc<Front> {
        Arc::new(Front { id, state: Latch::default() })
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, FrontState> {
        self.state.lock()
    }

    /// Leaves an event behind so many of the stream's operations, where there is no newer one.
    pub(crate) fn leave(&self, last: (Arc<EventCell>, u64)) {
        let mut state = self.lock();
        let newer = state.last.as_ref().is_none_or(|(_, behind)| *behind < last.1);
        let old = if newer { state.last.replace(last) } else { None };
        drop(state);
        drop(old);
    }
}

/// Fronts of a stream.
const FRONTS: usize = 8;

/// A stream's fronts, by thread.
pub(crate) struct Fronts([Arc<Front>; FRONTS]);

/// This thread's number among those that asked, modulo the fronts.
#[inline]
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    #[cold]
    fn count() -> usize {
        let number = THREADS.fetch_add(1, Ordering::Relaxed) % FRONTS;
        let _ = NUMBER.try_with(|cell| cell.set(number));
        number
    }
    // A thread that ends drops buffers when its own variables are gone: any front is right.
    match NUMBER.try_with(Cell::get) {
        Ok(usize::MAX) => count(),
        Ok(number) => number,
        Err(_) => 0,
    }
}

impl Fronts {
    pub(crate) fn new(id: u64) -> Fronts {
        Fronts(std::array::from_fn(|_| Front::new(id)))
    }

    /// This thread's.
    #[inline]
    pub(crate) fn own(&self) -> &Arc<Front> {
        &self.0[thread_number() % FRONTS]
    }

    /// All of them, this thread's first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Front>> {
        self.0.iter().cycle().skip(thread_number()).take(FRONTS)
    }
}

impl FrontState {
    /// Whether there is nothing here that the heap has yet to hear of: neither a block nor the last event of a closed stream,
    /// which blocks from before may be waiting for.
    fn is_empty(&self) -> bool {
        self.lists.bytes == 0 && self.last.is_none()
    }

    /// Counts a request where that can set no new peak.
    #[inline]
    fn count(&mut self, amount: Amount) -> bool {
        let live = self.live.plus(amount);
        let fits = live.within(self.grant);
        if fits {
            self.live = live;
        }
        fits
    }

    /// Address and number of a block of the lists, and whether it is counted: otherwise that needs the other streams.
    #[inline]
    pub(crate) fn pop(&mut self, class: Class, requested: usize) -> Option<(u64, Index, bool)> {
        let (address, index) = self.lists.pop(class)?;
        self.requests += 1;
        self.hits += 1;
        let counted = self.count(Amount { requested: requested as i64, blocks: class.bytes as i64 });
        Some((address, index, counted))
    }

    #[inline]
    pub(crate) fn push(&mut self, class: Class, requested: usize, kept: Kept) {
        self.lists.push(class, kept);
        self.used = true;
        self.subtract(requested, class.bytes as usize);
    }

    #[inline]
    pub(crate) fn subtract(&mut self, requested: usize, bytes: usize) {
        self.live = self.live.minus(Amount { requested: requested as i64, blocks: bytes as i64 });
    }
}

/// What is counted of all fronts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) live: Amount,
    pub(crate) peak: Amount,
    pub(crate) requests: u64,
    pub(crate) hits: u64,
}

/// A front and the stream it stands before.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) front: Arc<Front>,
    pub(crate) stream: Weak<StreamState>,
}

/// The books of a device.
pub(crate) struct Books {
    /// The highest totals by the number of what tracks them: 0 is the device itself, others are scopes.
    peaks: Mutex<Vec<(u64, Amount)>>,
    fronts: Mutex<Vec<Registered>>,
    /// The front of what belongs to no stream.
    pub(crate) common: Arc<Front>,
}

impl Default for Books {
    fn default() -> Books {
        let common = Front::new(0);
        let fronts = vec![Registered { front: common.clone(), stream: Weak::new() }];
        Books { peaks: Mutex::new(vec![(0, Amount::default())]), fronts: Mutex::new(fronts), common }
    }
}

impl Books {
    fn lock_peaks(&self) -> MutexGuard<'_, Vec<(u64, Amount)>> {
        self.peaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_fronts(&self) -> MutexGuard<'_, Vec<Registered>> {
        self.fronts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, front: Arc<Front>, stream: Weak<StreamState>) {
        let count = {
            let mut fronts = self.lock_fronts();
            fronts.push(Registered { front, stream });
            fronts.len()
        };
        // Programs may make streams for ever and never run short of memory, which is when fronts are looked at.
        if count >= MANY && count.is_power_of_two() {
            self.forget_gone();
        }
    }

    /// Every front.
    pub(crate) fn fronts(&self) -> Vec<Registered> {
        self.lock_fronts().clone()
    }

    /// Counts what a request was given.
    pub(crate) fn add(&self, front: &Front, requested: usize, bytes: usize, hit: bool) {
        let amount = Amount { requested: requested as i64, blocks: bytes as i64 };
        {
            let mut state = front.lock();
            state.requests += 1;
            state.hits += u64::from(hit);
            if state.count(amount) {
                return;
            }
        }
        self.raise(front, amount);
    }

    /// Counts a block that its front's list gave, which may set a new peak.
    #[cold]
    pub(crate) fn raise_by(&self, front: &Front, requested: usize, bytes: u64) {
        self.raise(front, Amount { requested: requested as i64, blocks: bytes as i64 });
    }

    /// Adds to a front with all of them locked, so that the total is one that really was; then shares out the grants.
    #[cold]
    fn raise(&self, front: &Front, amount: Amount) {
        self.with_all(|peaks, states| {
            let own = states.iter_mut().find(|(of, _)| std::ptr::eq(*of, front));
            if let Some((_, state)) = own {
                state.live = state.live.plus(amount);
            }
            share_out(peaks, states);
        });
    }

    fn with_all<R>(
        &self,
        work: impl FnOnce(&mut Vec<(u64, Amount)>, &mut Vec<(*const Front, Guard<'_, FrontState>)>) -> R,
    ) -> R {
        let mut peaks = self.lock_peaks();
        let fronts = self.lock_fronts();
        let mut states = fronts.iter().map(|entry| (Arc::as_ptr(&entry.front), entry.front.lock())).collect();
        work(&mut peaks, &mut states)
    }

    /// Begins to track a peak from what is live now.
    pub(crate) fn open_scope(&self, number: u64) -> Amount {
        self.with_all(|peaks, states| {
            let live = Amount::sum(states.iter().map(|(_, state)| state.live));
            peaks.push((number, live));
            share_out(peaks, states);
            live
        })
    }

    /// What is live, and the highest that it was since the scope was opened.
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
            let count = |count: fn(&FrontState) -> u64| states.iter().map(|(_, state)| count(state)).sum();
            Totals { live, peak, requests: count(|state| state.requests), hits: count(|state| state.hits) }
        })
    }

    /// The most blocks that were ever live, or would be with so many bytes more.
    pub(crate) fn peak_with(&self, more: u64) -> u64 {
        let totals = self.totals();
        totals.peak.blocks.max(totals.live.blocks + more as i64).max(0) as u64
    }

    /// Forgets fronts whose streams are gone and that have nothing for the heap; what they counted, the common front
    /// counts.
    pub(crate) fn forget_gone(&self) {
        let _peaks = self.lock_peaks();
        let mut fronts = self.lock_fronts();
        let is_gone = |entry: &Registered| entry.front.id != 0 && entry.stream.strong_count() == 0;
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut *fronts)
            .into_iter()
            .partition(|entry| is_gone(entry) && entry.front.lock().is_empty());
        *fronts = kept;
        let mut common = self.common.lock();
        for entry in &gone {
            // Nothing of a stream that is gone can come back any more, so only the total stays.
            let state = entry.front.lock();
            common.live = common.live.plus(state.live);
            common.grant = common.grant.plus(state.grant);
            common.requests += state.requests;
            common.hits += state.hits;
        }
    }
}

/// Records the total, and gives every front as much as it will probably need.
fn share_out(peaks: &mut [(u64, Amount)], states: &mut [(*const Front, Guard<'_, FrontState>)]) {
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
        state.grant = if enough { state.high } else { state.live }.plus(rest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use super::{Amount, Books, Front};

    fn amount(bytes: i64) -> Amount {
        Amount { requested: bytes, blocks: bytes }
    }

    fn drop_of(front: &Front, bytes: usize) {
        front.lock().subtract(bytes, bytes);
    }

    #[test]
    fn peaks_are_exact_over_streams_and_scopes() {
        let books = Books::default();
        let fronts: Vec<Arc<Front>> = (1..=4).map(Front::new).collect();
        for front in &fronts {
            books.register(front.clone(), Weak::new());
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
                    let (front, bytes) = (random(4) as usize, 1 + random(1000) as usize);
                    books.add(&fronts[front], bytes, bytes, false);
                    held.push((front, bytes));
                    live += bytes as i64;
                    peak = peak.max(live);
                    scopes.iter_mut().for_each(|(_, peak)| *peak = live.max(*peak));
                }
                50..98 if !held.is_empty() => {
                    let (front, bytes) = held.swap_remove(random(held.len() as u64) as usize);
                    drop_of(&fronts[front], bytes);
                    live -= bytes as i64;
                }
                98 if scopes.len() < 3 => {
                    assert_eq!(books.open_scope(step + 1), amount(live));
                    scopes.push((step + 1, live));
                }
                99 if !scopes.is_empty() => {
                    let (number, peak) = scopes.swap_remove(random(scopes.len() as u64) as usize);
                    assert_eq!(books.scope(number), (amount(live), amount(peak)), "step {step}");
                    books.close_scope(number);
                }
                _ => {}
            }
        }
        let totals = books.totals();
        assert_eq!((totals.live, totals.peak), (amount(live), amount(peak)));
    }

    #[test]
    fn fronts_of_streams_that_are_gone_do_not_pile_up() {
        let books = Books::default();
        for id in 1..10_000 {
            let front = Front::new(id);
            // What it counted is not forgotten.
            drop_of(&front, 100);
            books.register(front, Weak::new());
        }
        assert!(books.fronts().len() <= 64);
        assert_eq!(books.totals().live, amount(-999_900));
    }

    #[test]
    fn a_stream_that_repeats_itself_needs_no_other_lock() {
        let books = Books::default();
        let front = Front::new(1);
        books.register(front.clone(), Weak::new());
        for _ in 0..10 {
            books.add(&front, 100, 100, false);
            drop_of(&front, 100);
        }
        let _others = books.lock_peaks();
        // Would never return where it needed what is locked.
        books.add(&front, 100, 100, false);
    }
}
