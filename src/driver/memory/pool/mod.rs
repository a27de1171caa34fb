//! The device's memory pool.
//!
//! - A stream takes a block of the wanted size from its own lists ([`thread_cache`], [`lists`]): one lock that no other
//!   stream takes, no search, no driver call.
//! - If its lists have none, all their blocks go to the [`heap`], which splits and merges them ([`arena`]), moves
//!   pages, and asks the driver for more ([`driver_backing`]).
//! - A freed block is free behind a position in its home stream's order ([`order`]), which costs nothing. An event is
//!   recorded only when another stream, or no stream, is to use the block.
//! - [`direct`] implements the modes of `SELVEDGE_POOL` without a heap.
//! - [`snapshot`], [`trace`] and [`replay`] show the layout, and run the same heap on the CPU.
//!
//! Invariants: freeing a block never waits and never asks the driver for memory; the heap is locked before thread
//! caches, and never when a block is freed; streams are dropped, and users' hooks called, outside of all locks.

mod arena;
mod backing;
mod class;
mod device;
mod direct;
mod driver_backing;
mod heap;
mod json;
mod lists;
mod mode;
mod order;
mod record;
mod replay;
mod scope;
mod snapshot;
mod spinlock;
mod statistics;
mod thread_cache;
mod trace;
mod training;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arena::{COMPLETE, FreeAfter, Node, NodeState};
use backing::ReturnedBlock;
use class::{Class, class_of};
use direct::Direct;
use driver_backing::DriverBacking;
use heap::{Heap, ObtainedBlock};
use lists::ListedBlock;
use mode::{limit_of_environment, mode};
use order::{Orders, drain_cache};
use record::Recorder;
pub use replay::{ReplayOptions, ReplayPool, ReplayReport, ReplaySample};
pub use scope::{MemoryScope, MemoryUse};
pub use snapshot::{BlockSnapshot, BlockState, MemorySnapshot, SegmentSnapshot};
pub use statistics::PoolStatistics;
use thread_cache::Accounting;
use thread_cache::ThreadCache;
pub(crate) use thread_cache::ThreadCaches;
pub use trace::{MemoryTrace, TraceEvent};

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
    /// The number of bytes requested.
    requested: usize,
    /// The block's index in the heap, if the heap allocated it.
    index: u32,
}

impl Block {
    const EMPTY: Block = Block { address: 0, bytes: 0, requested: 0, index: u32::MAX };

    /// Memory of other code, which no pool takes back.
    pub(crate) fn foreign(address: u64, bytes: usize) -> Block {
        Block { address, bytes, requested: bytes, index: u32::MAX }
    }
}

/// The heap and the state of its backing, created at the first allocation.
#[derive(Default)]
struct Store {
    heap: Heap,
    orders: Orders,
    /// Beyond this many orders, ended ones are removed even without a trim.
    many_orders: usize,
    ready: bool,
    granularity: Option<u64>,
}

/// The limit set by the program: 0 means no limit, and [`UNSET`] the value of the environment.
const UNSET: u64 = u64::MAX;

/// Blocks that return without a stream.
type Inbox = Vec<(Block, u64, Vec<Arc<EventCell>>)>;

/// The memory pool of a device.
pub(crate) struct Pool {
    accounting: Accounting,
    store: Mutex<Store>,
    inbox: Mutex<Inbox>,
    direct: Direct,
    recorder: Recorder,
    limit: AtomicU64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            accounting: Accounting::default(),
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

    /// The limit on reserved memory.
    fn limit(&self) -> Result<Option<u64>> {
        match self.limit.load(Ordering::Relaxed) {
            UNSET => limit_of_environment(),
            0 => Ok(None),
            limit => Ok(Some(limit)),
        }
    }

    /// Registers the thread caches of a stream.
    pub(crate) fn open_stream(&self, stream: &Arc<StreamState>) {
        for cache in stream.caches.all() {
            self.accounting.register(cache.clone(), Arc::downgrade(stream));
        }
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        // A lock can stay locked for ever in a forked child.
        if fork::forked() {
            return PoolStatistics::default();
        }
        let store = self.lock();
        let totals = self.accounting.totals();
        let non_negative = |value: i64| value.max(0) as u64;
        let accounting = PoolStatistics {
            live_bytes: non_negative(totals.live.blocks),
            peak_live_bytes: non_negative(totals.peak.blocks),
            requested_bytes: non_negative(totals.live.requested),
            peak_requested_bytes: non_negative(totals.peak.requested),
            requests: totals.requests,
            hits: totals.hits,
            ..PoolStatistics::default()
        };
        if mode().is_ok_and(|mode| !mode.has_heap()) {
            return self.direct.statistics(accounting);
        }
        let statistics = store.heap.statistics(accounting);
        PoolStatistics {
            cached_bytes: statistics.reserved_bytes.saturating_sub(statistics.live_bytes),
            ..statistics
        }
    }
}

impl DeviceState {
    /// Calls `work` on the heap with the context current. It must not wait for the device.
    fn with_heap<R>(
        &'static self,
        work: impl FnOnce(&mut Heap, &mut DriverBacking<'_>) -> Result<R>,
    ) -> Result<R> {
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
        work(heap, &mut DriverBacking { device: self, orders, granularity: *granularity, held: &mut held })
    }

    /// Allocates a block from this thread's cache of the stream, if there is one.
    #[inline]
    pub(crate) fn allocate_cached(&'static self, stream: &Arc<StreamState>, bytes: usize) -> Option<Block> {
        // The lists are empty if blocks do not come from the heap.
        let class = if bytes == 0 { None } else { class_of(bytes as u64) }?;
        let block = self.pop(stream.caches.own(), bytes, class)?;
        if self.pool.recorder.is_on() {
            self.pool.recorder.allocated(stream.id, block.recorded());
        }
        Some(block)
    }

    /// Allocates a block of at least `bytes` bytes, ready for the stream.
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
            self.pool.recorder.allocated(stream.id, block.recorded());
        }
        Ok(block)
    }

    /// Takes a block from the cache's lists.
    #[inline]
    fn pop(&self, cache: &ThreadCache, bytes: usize, class: Class) -> Option<Block> {
        let (address, index, counted) = cache.lock().pop(class, bytes)?;
        if !counted {
            self.pool.accounting.raise_by(cache, bytes, class.bytes);
        }
        Some(Block { address, bytes: class.bytes as usize, requested: bytes, index })
    }

    /// Allocates a block that this thread's cache does not have.
    fn allocate_slowly(
        &'static self,
        stream: &Arc<StreamState>,
        bytes: usize,
        class: Class,
    ) -> Result<Block> {
        // Blocks that other threads freed on the stream.
        let others = stream.caches.all().skip(1);
        if let Some(block) = others.into_iter().find_map(|cache| self.pop(cache, bytes, class)) {
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
        self.pool.accounting.add(stream.caches.own(), bytes, block.bytes, !found.grown);
        Ok(block)
    }

    /// Allocates a block of the heap, and returns the position to wait for before its use.
    fn obtain(
        &'static self,
        stream: Option<&Arc<StreamState>>,
        class: Class,
    ) -> Result<(ObtainedBlock, Vec<Arc<EventCell>>)> {
        let attempt = || {
            self.with_heap(|heap, backing| {
                let mut owner = COMPLETE;
                if let Some(stream) = stream {
                    owner = stream.id;
                    // Lists that drain slowly serve again; emptying them for every new size would prevent that.
                    if let Some(found) = heap.cached(owner, class.bytes) {
                        return Ok(Some((found, Vec::new())));
                    }
                    let mut returned = Vec::new();
                    for cache in stream.caches.all() {
                        let (cache, stream) = (cache.clone(), Arc::downgrade(stream));
                        drain_cache(
                            &thread_cache::RegisteredCache { cache, stream },
                            backing.orders,
                            &mut returned,
                        );
                    }
                    for ReturnedBlock { index, bytes, after } in returned {
                        heap.give_back(index, bytes, after);
                    }
                }
                let Some(found) = heap.obtain(backing, owner, class.bytes)? else { return Ok(None) };
                if found.after == FreeAfter::NOTHING {
                    return Ok(Some((found, Vec::new())));
                }
                match backing.orders.events(found.after.owner, found.after.position, backing.held) {
                    Ok(events) => Ok(Some((found, events))),
                    Err(error) => {
                        heap.give_back(found.index, class.bytes, found.after);
                        Err(error)
                    }
                }
            })
        };
        match self.with_retry(attempt)? {
            Some(found) => Ok(found),
            None => Err(self.out_of_memory("cuMemAlloc", class.bytes)),
        }
    }

    /// Returns a block that nobody has used.
    fn undo(&'static self, block: Block, after: FreeAfter) {
        self.pool.lock().heap.give_back(block.index, block.bytes as u64, after);
    }

    /// Allocates a block for no stream, and returns the events that its first user must wait for. Never waits for the
    /// device unless memory is short.
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
        self.pool.accounting.add(&self.pool.accounting.common, bytes, block.bytes, !found.grown);
        if self.pool.recorder.is_on() {
            self.pool.recorder.allocated(0, block.recorded());
        }
        Ok((block, events))
    }

    /// Frees a block whose next user must wait for these events. Never waits.
    pub(crate) fn give_back_after(&'static self, block: Block, events: Vec<Arc<EventCell>>) -> Result<()> {
        if block.bytes == 0 {
            return Ok(());
        }
        if self.pool.recorder.is_on() {
            self.pool.recorder.freed(block.recorded());
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

    /// Frees a block whose every use is ordered before the home stream's next operation.
    #[inline]
    pub(crate) fn give_back(&'static self, block: Block, home: &Arc<StreamState>) -> Result<()> {
        if self.pool.recorder.is_on() {
            self.pool.recorder.freed(block.recorded());
        }
        let class = match class_of(block.bytes as u64) {
            Some(class) if block.index != u32::MAX => class,
            _ => return self.give_back_directly(block, home, mode()?),
        };
        let kept = ListedBlock { address: block.address, index: block.index, position: home.issued() };
        let mut state = home.caches.own().lock();
        if !state.closed {
            state.push(class, block.requested, kept);
            return Ok(());
        }
        drop(state);
        self.give_back_late(block, home, class)
    }

    /// Frees a block of a closed stream, which records one more event.
    #[cold]
    fn give_back_late(&'static self, block: Block, home: &Arc<StreamState>, class: Class) -> Result<()> {
        let (event, position) = home.mark_at()?;
        let mut state = home.caches.own().lock();
        state.push(
            class,
            block.requested,
            ListedBlock { address: block.address, index: block.index, position },
        );
        drop(state);
        home.caches.own().leave((event, position));
        Ok(())
    }

    /// Stops counting a block as live that does not return to a list.
    fn forget_live(&self, block: Block) {
        self.pool.accounting.common.lock().subtract(block.requested, block.bytes);
    }

    /// Keeps a block of no stream, whose users are unknown, until every device was found idle.
    pub(crate) fn abandon(&self, block: Block) {
        if self.pool.recorder.is_on() {
            self.pool.recorder.freed(block.recorded());
        }
        self.forget_live(block);
        if block.index == u32::MAX {
            self.pool.direct.forget(block);
            self.retire_until_idle(Resource::Memory(block.address));
        } else {
            self.retire_until_idle(Resource::Block(block));
        }
    }

    /// Takes back an abandoned block, after every device was idle.
    pub(crate) fn take_back_idle(&'static self, block: Block) {
        self.undo(block, FreeAfter::NOTHING);
    }

    /// Records an event behind the last use of the stream's free blocks.
    pub(crate) fn close_stream(&'static self, stream: &Arc<StreamState>) -> Result<()> {
        let mut used = false;
        for cache in stream.caches.all() {
            let mut state = cache.lock();
            state.closed = true;
            used |= state.used;
        }
        if !used || self.is_lost() {
            return Ok(());
        }
        let (event, position) = stream.mark_at()?;
        for cache in stream.caches.all() {
            cache.leave((event.clone(), position));
        }
        Ok(())
    }

    /// Returns the positions and events to wait for before a trim: of streams, and of graphs.
    pub(crate) fn before_trim(&'static self) -> Result<(Vec<FreeAfter>, Vec<Arc<EventCell>>)> {
        if !self.pool.lock().ready {
            return Ok((Vec::new(), Vec::new()));
        }
        self.with_heap(|heap, backing| {
            heap.drain(backing);
            Ok((heap.positions(), backing.orders.group_events()))
        })
    }

    /// Releases unused memory. Positions found before the trim are done, since the device was idle since.
    pub(crate) fn trim_pool(&'static self, done: Vec<FreeAfter>) -> Result<()> {
        self.trim_direct()?;
        if !self.pool.lock().ready {
            return Ok(());
        }
        self.with_heap(|heap, backing| {
            for FreeAfter { owner, position } in done {
                backing.orders.settle(owner, position);
            }
            let result = heap.trim(backing);
            backing.orders.forget_ended(heap);
            result
        })
    }

    /// Releases memory that would outlive the context, which is about to be destroyed.
    pub(crate) fn discard_pool(&'static self) -> Result<()> {
        let mut held = Vec::new();
        let mut store = self.pool.lock();
        let Store { heap, orders, granularity, .. } = &mut *store;
        let result = heap.discard(&mut DriverBacking {
            device: self,
            orders,
            granularity: *granularity,
            held: &mut held,
        });
        let orders = std::mem::take(&mut store.orders);
        drop(store);
        drop(orders);
        result
    }

    /// Returns the error of a request without memory, naming the largest holders.
    fn out_of_memory(&'static self, call: &'static str, requested: u64) -> Error {
        // The driver's own status is returned if even the query for free memory fails.
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

    /// Lists the blocks that hold the most memory.
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
            if let (NodeState::Out(stream), false) = (node.state, listed.contains(&node.address)) {
                live.push((node.bytes, stream));
            }
        }
        live
    }

    /// The addresses of the blocks in all lists and in the inbox. The caller holds the heap's lock.
    fn listed(&'static self) -> HashSet<u64> {
        let mut listed = HashSet::new();
        for entry in self.pool.accounting.caches() {
            listed.extend(entry.cache.lock().lists.addresses());
        }
        let inbox = self.pool.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        listed.extend(inbox.iter().map(|(block, ..)| block.address));
        listed
    }

    /// Returns the layout of the pool.
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

/// Converts an address range, up to its last memory, to a segment.
fn segment_of(range: &[Node], listed: &HashSet<u64>) -> Option<SegmentSnapshot> {
    let address = range.first()?.address;
    let end = range.iter().rposition(|node| node.state != NodeState::Unmapped)?;
    let block = |node: &Node| {
        let (state, stream) = match node.state {
            NodeState::Unmapped => (BlockState::Unmapped, 0),
            NodeState::Free(after) => (BlockState::Cached, after.owner),
            NodeState::Out(stream) if listed.contains(&node.address) => (BlockState::Cached, stream),
            NodeState::Out(stream) => (BlockState::Live, stream),
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
