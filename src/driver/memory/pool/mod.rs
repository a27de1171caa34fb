//! The device's memory pool.
//!
//! - A stream finds a block of the size it wants in its own lists ([`front`], [`lists`]): one lock that no other stream
//!   takes, no search, no driver call.
//! - Where it finds none, all its blocks go to the [`heap`], which splits and joins them ([`arena`]), moves pages and asks
//!   the driver ([`world`]) for more.
//! - A block that comes back is free behind a place in its home stream's order ([`order`]), which costs nothing then;
//!   an event is recorded when another stream, or nobody's stream, is to have it.
//! - [`direct`] is for the modes of `SELVEDGE_POOL` that do without.
//! - [`snapshot`], [`trace`] and [`replay`] show what is where, and run the same heap on the CPU.
//!
//! What must stay true: giving back never waits and never asks the driver for memory; the heap is locked before fronts and
//! never by what gives back; streams are dropped, and users' hooks called, outside of all locks.

mod arena;
mod backing;
mod class;
mod device;
mod direct;
mod front;
mod heap;
mod json;
mod latch;
mod lists;
mod mode;
mod order;
mod record;
mod replay;
mod scope;
mod snapshot;
mod statistics;
mod trace;
mod training;
mod world;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arena::{After, COMPLETE, Node, State};
use backing::Returned;
use class::{Class, class_of};
use direct::Direct;
use front::Books;
use front::Front;
pub(crate) use front::Fronts;
use heap::{Found, Heap};
use lists::Kept;
use mode::{limit_of_environment, mode};
use order::{Orders, empty_front};
use record::Recorder;
pub use replay::{ReplayOptions, ReplayPool, ReplayReport, ReplaySample};
pub use scope::{MemoryScope, MemoryUse};
pub use snapshot::{BlockSnapshot, BlockState, MemorySnapshot, SegmentSnapshot};
pub use statistics::PoolStatistics;
pub use trace::{MemoryTrace, TraceEvent};
use world::World;

use super::retired::Resource;
use crate::driver::context::{OUT_OF_MEMORY, driver_error};
use crate::driver::device::{DeviceState, NEXT_STREAM_ID};
use crate::driver::event::EventCell;
use crate::driver::fork;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result};

/// A block of device memory; one of 0 bytes has no memory.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// What was asked for.
    requested: usize,
    /// Its number in the heap, where it is of the heap.
    index: u32,
}

impl Block {
    const EMPTY: Block = Block { address: 0, bytes: 0, requested: 0, index: u32::MAX };
}

/// The heap and how it gets memory; made when the first block is asked for.
#[derive(Default)]
struct Store {
    heap: Heap,
    orders: Orders,
    /// With more than so many, those that have ended are looked for: programs may never trim.
    many_orders: usize,
    ready: bool,
    granularity: Option<u64>,
}

/// A limit that somebody has set: 0 is none, [`UNSET`] what the environment says.
const UNSET: u64 = u64::MAX;

/// What comes back without a stream.
type Inbox = Vec<(Block, u64, Vec<Arc<EventCell>>)>;

/// The memory pool of a device.
pub(crate) struct Pool {
    books: Books,
    store: Mutex<Store>,
    inbox: Mutex<Inbox>,
    direct: Direct,
    recorder: Recorder,
    limit: AtomicU64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            books: Books::default(),
            store: Mutex::default(),
            inbox: Mutex::default(),
            direct: Direct::default(),
            recorder: Recorder::default(),
            limit: AtomicU64::new(UNSET),
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_inbox(&self) -> Inbox {
        std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The most that may be reserved.
    fn limit(&self) -> Result<Option<u64>> {
        match self.limit.load(Ordering::Relaxed) {
            UNSET => limit_of_environment(),
            0 => Ok(None),
            limit => Ok(Some(limit)),
        }
    }

    /// Begins to keep books for a stream.
    pub(crate) fn open_stream(&self, stream: &Arc<StreamState>) {
        for front in stream.fronts.all() {
            self.books.register(front.clone(), Arc::downgrade(stream));
        }
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        // A lock can stay locked for ever in a child.
        if fork::forked() {
            return PoolStatistics::default();
        }
        let store = self.lock();
        let totals = self.books.totals();
        let number = |value: i64| value.max(0) as u64;
        let books = PoolStatistics {
            live_bytes: number(totals.live.blocks),
            peak_live_bytes: number(totals.peak.blocks),
            requested_bytes: number(totals.live.requested),
            peak_requested_bytes: number(totals.peak.requested),
            requests: totals.requests,
            hits: totals.hits,
            ..PoolStatistics::default()
        };
        if mode().is_ok_and(|mode| !mode.has_heap()) {
            return self.direct.statistics(books);
        }
        let statistics = store.heap.statistics(books);
        PoolStatistics {
            cached_bytes: statistics.reserved_bytes.saturating_sub(statistics.live_bytes),
            ..statistics
        }
    }
}

impl DeviceState {
    /// Visits the heap with the context current. The work must not wait for the device.
    fn with_heap<R>(&'static self, work: impl FnOnce(&mut Heap, &mut World<'_>) -> Result<R>) -> Result<R> {
        let mut held = Vec::new();
        let _bound = self.bind()?;
        let mut store = self.pool.lock();
        if !store.ready {
            store.granularity = self.page_granularity(mode()?)?;
            // Addresses cost nothing, and a range that is never full needs no second one.
            store.heap = Heap::new(self.total_memory.saturating_mul(4).max(1 << 30), None);
            store.ready = true;
        }
        let Store { heap, orders, many_orders, granularity, .. } = &mut *store;
        if orders.len() > *many_orders {
            orders.forget_ended(heap);
            *many_orders = 2 * orders.len() + 256;
        }
        heap.limit = self.pool.limit()?;
        work(heap, &mut World { device: self, orders, granularity: *granularity, held: &mut held })
    }

    /// A block of this thread's list of the stream, where it has one.
    #[inline]
    pub(crate) fn allocate_cached(&'static self, stream: &Arc<StreamState>, bytes: usize) -> Option<Block> {
        // Where blocks do not come from the heap, the lists are empty.
        let class = if bytes == 0 { None } else { class_of(bytes as u64) }?;
        let block = self.pop(stream.fronts.own(), bytes, class)?;
        if self.pool.recorder.is_on() {
            self.pool.recorder.allocated(stream.id, block.address, bytes);
        }
        Some(block)
    }

    /// A block of at least `bytes` bytes, ready for the stream.
    #[cold]
    pub(crate) fn allocate(&'static self, stream: &Arc<StreamState>, bytes: usize) -> Result<Block> {
        let mode = mode()?;
        if bytes == 0 {
            return Ok(Block::EMPTY);
        }
        if !mode.has_heap() {
            return self.allocate_directly(Some(stream), bytes, mode);
        }
        let class = class_of(bytes as u64).ok_or_else(|| too_large(bytes))?;
        let block = self.allocate_slowly(stream, bytes, class)?;
        if self.pool.recorder.is_on() {
            self.pool.recorder.allocated(stream.id, block.address, bytes);
        }
        Ok(block)
    }

    /// A block of the front's lists.
    #[inline]
    fn pop(&self, front: &Front, bytes: usize, class: Class) -> Option<Block> {
        let (address, index, counted) = front.lock().pop(class, bytes)?;
        if !counted {
            self.pool.books.raise_by(front, bytes, class.bytes);
        }
        Some(Block { address, bytes: class.bytes as usize, requested: bytes, index })
    }

    /// A block that this thread's list has not.
    fn allocate_slowly(
        &'static self,
        stream: &Arc<StreamState>,
        bytes: usize,
        class: Class,
    ) -> Result<Block> {
        // What other threads gave back to the stream.
        let others = stream.fronts.all().skip(1);
        if let Some(block) = others.into_iter().find_map(|front| self.pop(front, bytes, class)) {
            return Ok(block);
        }
        let (found, events) = self.obtain(Some(stream), class)?;
        let block = Block {
            address: found.address,
            bytes: class.bytes as usize,
            requested: bytes,
            index: found.index,
        };
        for event in &events {
            if let Err(error) = stream.wait_event(event) {
                self.undo(block, found.after);
                return Err(error);
            }
        }
        self.pool.books.add(stream.fronts.own(), bytes, block.bytes, !found.grown);
        Ok(block)
    }

    /// A block of the heap, and what must be waited for before it is used.
    fn obtain(
        &'static self,
        stream: Option<&Arc<StreamState>>,
        class: Class,
    ) -> Result<(Found, Vec<Arc<EventCell>>)> {
        let attempt = || {
            self.with_heap(|heap, world| {
                let mut owner = COMPLETE;
                if let Some(stream) = stream {
                    owner = stream.id;
                    // Lists that are used up slowly serve again; emptied for every new size they would not.
                    if let Some(found) = heap.cached(owner, class.bytes) {
                        return Ok(Some((found, Vec::new())));
                    }
                    let mut returned = Vec::new();
                    for front in stream.fronts.all() {
                        let (front, stream) = (front.clone(), Arc::downgrade(stream));
                        empty_front(&front::Registered { front, stream }, world.orders, &mut returned);
                    }
                    for Returned { index, bytes, after } in returned {
                        heap.give_back(index, bytes, after);
                    }
                }
                let Some(found) = heap.obtain(world, owner, class.bytes)? else { return Ok(None) };
                if found.after == After::NOTHING {
                    return Ok(Some((found, Vec::new())));
                }
                match world.orders.events(found.after.owner, found.after.place, world.held) {
                    Ok(events) => Ok(Some((found, events))),
                    Err(error) => {
                        heap.give_back(found.index, class.bytes, found.after);
                        Err(error)
                    }
                }
            })
        };
        match self.with_room(attempt)? {
            Some(found) => Ok(found),
            None => Err(self.out_of_memory("cuMemAlloc", class.bytes)),
        }
    }

    /// Puts a block back that nobody has used.
    fn undo(&'static self, block: Block, after: After) {
        self.pool.lock().heap.give_back(block.index, block.bytes as u64, after);
    }

    /// A block for no stream, and the events that its next user must wait for. Never waits for the device unless memory
    /// is short.
    pub(crate) fn take_block(&'static self, bytes: usize) -> Result<(Block, Vec<Arc<EventCell>>)> {
        let mode = mode()?;
        if bytes == 0 {
            return Ok((Block::EMPTY, Vec::new()));
        }
        if !mode.has_heap() {
            return Ok((self.allocate_directly(None, bytes, mode)?, Vec::new()));
        }
        let class = class_of(bytes as u64).ok_or_else(|| too_large(bytes))?;
        let (found, events) = self.obtain(None, class)?;
        let block = Block {
            address: found.address,
            bytes: class.bytes as usize,
            requested: bytes,
            index: found.index,
        };
        self.pool.books.add(&self.pool.books.common, bytes, block.bytes, !found.grown);
        if self.pool.recorder.is_on() {
            self.pool.recorder.allocated(0, block.address, bytes);
        }
        Ok((block, events))
    }

    /// Takes back a block whose next user must wait for these events. Never waits.
    pub(crate) fn give_back_after(&'static self, block: Block, events: Vec<Arc<EventCell>>) -> Result<()> {
        if block.bytes == 0 {
            return Ok(());
        }
        if self.pool.recorder.is_on() {
            self.pool.recorder.freed(block.address);
        }
        self.forget_live(block);
        if block.index == u32::MAX {
            self.pool.direct.forget(block);
            self.retire(Resource::Memory(block.address), events);
            return Ok(());
        }
        let owner = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
        self.pool.inbox.lock().unwrap_or_else(PoisonError::into_inner).push((block, owner, events));
        Ok(())
    }

    /// Takes back a block whose every use is ordered before the home stream's next operation.
    #[inline]
    pub(crate) fn give_back(&'static self, block: Block, home: &Arc<StreamState>) -> Result<()> {
        if self.pool.recorder.is_on() {
            self.pool.recorder.freed(block.address);
        }
        let class = match class_of(block.bytes as u64) {
            Some(class) if block.index != u32::MAX => class,
            _ => return self.give_back_directly(block, home, mode()?),
        };
        let kept = Kept { address: block.address, index: block.index, place: home.issued() };
        let mut state = home.fronts.own().lock();
        if !state.closed {
            state.push(class, block.requested, kept);
            return Ok(());
        }
        drop(state);
        self.give_back_late(block, home, class)
    }

    /// Gives back to a closed stream, which leaves one more event.
    #[cold]
    fn give_back_late(&'static self, block: Block, home: &Arc<StreamState>, class: Class) -> Result<()> {
        let (event, place) = home.mark_placed()?;
        let mut state = home.fronts.own().lock();
        state.push(class, block.requested, Kept { address: block.address, index: block.index, place });
        drop(state);
        home.fronts.own().leave((event, place));
        Ok(())
    }

    /// Stops counting a block as live that goes another way than into a list.
    fn forget_live(&self, block: Block) {
        self.pool.books.common.lock().subtract(block.requested, block.bytes);
    }

    /// Keeps a block of no stream, whose users cannot be told, until every device was found idle.
    pub(crate) fn abandon(&self, block: Block) {
        if self.pool.recorder.is_on() {
            self.pool.recorder.freed(block.address);
        }
        self.forget_live(block);
        if block.index == u32::MAX {
            self.pool.direct.forget(block);
            self.retire_until_idle(Resource::Memory(block.address));
        } else {
            self.retire_until_idle(Resource::Block(block));
        }
    }

    /// Takes back a retired block, after every device was idle.
    pub(crate) fn take_back_idle(&'static self, block: Block) {
        self.undo(block, After::NOTHING);
    }

    /// Leaves an event behind the last use of the stream's free blocks.
    pub(crate) fn close_stream(&'static self, stream: &Arc<StreamState>) -> Result<()> {
        let mut used = false;
        for front in stream.fronts.all() {
            let mut state = front.lock();
            state.closed = true;
            used |= state.used;
        }
        if !used || self.is_lost() {
            return Ok(());
        }
        let (event, place) = stream.mark_placed()?;
        for front in stream.fronts.all() {
            front.leave((event.clone(), place));
        }
        Ok(())
    }

    /// What must be seen done before a trim: places in the orders of streams, and events of graphs.
    pub(crate) fn before_trim(&'static self) -> Result<(Vec<After>, Vec<Arc<EventCell>>)> {
        if !self.pool.lock().ready {
            return Ok((Vec::new(), Vec::new()));
        }
        self.with_heap(|heap, world| {
            heap.drain(world);
            Ok((heap.places(), world.orders.group_events()))
        })
    }

    /// Gives back what no block uses. What was found before is done: the device was idle since.
    pub(crate) fn trim_pool(&'static self, done: Vec<After>) -> Result<()> {
        self.trim_direct()?;
        if !self.pool.lock().ready {
            return Ok(());
        }
        self.with_heap(|heap, world| {
            for After { owner, place } in done {
                world.orders.settle(owner, place);
            }
            let result = heap.trim(world);
            world.orders.forget_ended(heap);
            result
        })
    }

    /// Gives back the memory that does not go with the context, which is about to be taken down.
    pub(crate) fn discard_pool(&'static self) -> Result<()> {
        let mut held = Vec::new();
        let mut store = self.pool.lock();
        let Store { heap, orders, granularity, .. } = &mut *store;
        let result =
            heap.discard(&mut World { device: self, orders, granularity: *granularity, held: &mut held });
        let orders = std::mem::take(&mut store.orders);
        drop(store);
        drop(orders);
        result
    }

    /// The error of a request that found no memory, with what holds it.
    fn out_of_memory(&'static self, call: &'static str, requested: u64) -> Error {
        // The driver's own word is kept where even the question for free memory fails.
        let memory = self.bind().and_then(|_bound| self.memory_info());
        let Ok(memory) = memory else { return driver_error(call, OUT_OF_MEMORY, String::new()) };
        let statistics = self.pool.statistics();
        Error::OutOfMemory {
            device: Some(self.ordinal),
            requested,
            free: memory.free,
            total: memory.total,
            cached: statistics.cached_bytes,
            live: statistics.live_bytes,
            limit: self.pool.limit().ok().flatten(),
            holders: self.holders(),
        }
    }

    /// The blocks that hold the most memory, in words.
    fn holders(&'static self) -> String {
        let mut groups = std::collections::BTreeMap::new();
        for (bytes, stream) in self.live_blocks() {
            *groups.entry((bytes, stream)).or_insert(0u64) += 1;
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|((bytes, stream), count)| (std::cmp::Reverse(bytes * count), *stream));
        let more = groups.len().saturating_sub(5);
        let mut words: Vec<String> = groups
            .iter()
            .take(5)
            .map(|((bytes, stream), count)| match stream {
                0 => format!("{count} x {bytes} bytes of no stream"),
                stream => format!("{count} x {bytes} bytes of stream {stream}"),
            })
            .collect();
        if more > 0 {
            words.push(format!("{more} other sizes"));
        }
        words.join(", ")
    }

    /// Bytes and stream of every live block.
    fn live_blocks(&'static self) -> Vec<(u64, u64)> {
        let mut live = self.pool.direct.blocks();
        let store = self.pool.lock();
        let listed = self.listed();
        for node in store.heap.ranges().flatten() {
            if let (State::Out(stream), false) = (node.state, listed.contains(&node.address)) {
                live.push((node.bytes, stream));
            }
        }
        live
    }

    /// The addresses of the blocks in all lists, and in the inbox. The heap is locked.
    fn listed(&'static self) -> HashSet<u64> {
        let mut listed = HashSet::new();
        for entry in self.pool.books.fronts() {
            listed.extend(entry.front.lock().lists.addresses());
        }
        let inbox = self.pool.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        listed.extend(inbox.iter().map(|(block, ..)| block.address));
        listed
    }

    /// What is where.
    pub(crate) fn snapshot(&'static self) -> Result<MemorySnapshot> {
        fork::check()?;
        let mode = mode()?;
        let statistics = self.pool.statistics();
        let store = self.pool.lock();
        let listed = self.listed();
        let mut segments: Vec<SegmentSnapshot> =
            store.heap.ranges().filter_map(|range| segment_of(&range, &listed)).collect();
        segments.extend(self.pool.direct.segments());
        segments.sort_by_key(|segment| segment.address);
        Ok(MemorySnapshot {
            device: self.name.clone(),
            ordinal: self.ordinal as u64,
            pool: mode.name(store.ready && store.granularity.is_none()).to_owned(),
            total_bytes: self.total_memory,
            limit_bytes: self.pool.limit()?,
            page_bytes: store.granularity.unwrap_or(0),
            statistics,
            segments,
        })
    }
}

/// A range of addresses up to its last memory.
fn segment_of(range: &[Node], listed: &HashSet<u64>) -> Option<SegmentSnapshot> {
    let address = range.first()?.address;
    let end = range.iter().rposition(|node| node.state != State::Unmapped)?;
    let block = |node: &Node| {
        let (state, stream) = match node.state {
            State::Unmapped => (BlockState::Unmapped, 0),
            State::Free(after) => (BlockState::Cached, after.owner),
            State::Out(stream) if listed.contains(&node.address) => (BlockState::Cached, stream),
            State::Out(stream) => (BlockState::Live, stream),
        };
        let stream = Some(stream).filter(|&stream| stream != 0);
        BlockSnapshot { offset: node.address - address, bytes: node.bytes, state, stream }
    };
    let blocks: Vec<BlockSnapshot> = range[..=end].iter().map(block).collect();
    Some(SegmentSnapshot { address, bytes: range[end].end() - address, blocks })
}

fn too_large(bytes: usize) -> Error {
    Error::invalid("allocating", format!("{bytes} bytes"), "a size that fits the address space")
}
