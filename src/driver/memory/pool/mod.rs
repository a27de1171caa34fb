//! The device's memory pool: blocks cached by stream, in size classes.
//!
//! A block in a stream's list may be taken by that stream at once, because whatever used it is before the stream's next
//! operation. A block in the common list (its stream is gone) carries the event that must be waited for. Lists are keyed
//! by stream ids, which are never re-used. `SELVEDGE_POOL=none` makes every buffer a driver allocation of its own, which
//! is how memory checkers see overruns; `SELVEDGE_POOL=poison` also fills each with `0xFF` first.

mod arena;
mod backing;
mod class;
mod heap;
mod json;
mod lists;
mod replay;
mod snapshot;
mod statistics;
mod trace;
mod training;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use replay::{ReplayOptions, ReplayPool, ReplayReport, ReplaySample};
pub use snapshot::{BlockSnapshot, BlockState, MemorySnapshot, SegmentSnapshot};
pub use statistics::PoolStatistics;
pub use trace::{MemoryTrace, TraceEvent};

use super::retired::Resource;
use crate::driver::context::{OUT_OF_MEMORY, driver_error, stream_call};
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result};

/// A block of device memory; one of 0 bytes has no memory.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

/// How `SELVEDGE_POOL` says that buffers are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Cached,
    None,
    Poison,
}

fn mode() -> Result<Mode> {
    static MODE: OnceLock<Result<Mode>> = OnceLock::new();
    MODE.get_or_init(|| match std::env::var("SELVEDGE_POOL").as_deref() {
        Err(_) | Ok("") => Ok(Mode::Cached),
        Ok("none") => Ok(Mode::None),
        Ok("poison") => Ok(Mode::Poison),
        Ok(other) => Err(Error::invalid("SELVEDGE_POOL", other, "none, poison, or unset")),
    })
    .clone()
}

#[derive(Default)]
struct State {
    /// Addresses by size class, for each open stream.
    streams: HashMap<u64, BTreeMap<usize, Vec<u64>>>,
    /// Blocks of closed streams, with the event that is behind their last use.
    common: BTreeMap<usize, Vec<(u64, Arc<EventCell>)>>,
    statistics: PoolStatistics,
}

/// The memory pool of a device.
#[derive(Default)]
pub(crate) struct Pool(Mutex<State>);

/// The size that a request is rounded up to: eight classes to a doubling, so at most an eighth is lost.
fn size_class(bytes: usize) -> Option<usize> {
    const SMALLEST: usize = 512;
    if bytes <= SMALLEST {
        return Some(SMALLEST);
    }
    let step = (1usize << (usize::BITS - 1 - (bytes - 1).leading_zeros())) / 8;
    bytes.checked_next_multiple_of(step.max(SMALLEST))
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        self.lock().statistics
    }

    /// Starts a list for a stream.
    pub(crate) fn open_stream(&self, id: u64) {
        self.lock().streams.insert(id, BTreeMap::new());
    }

    /// Takes every cached block out. The caller waits for the device before it frees them.
    pub(crate) fn take_cached(&self) -> Vec<u64> {
        let mut state = self.lock();
        let mut addresses = Vec::new();
        for classes in state.streams.values_mut() {
            addresses.extend(std::mem::take(classes).into_values().flatten());
        }
        let common = std::mem::take(&mut state.common);
        state.statistics.cached_bytes = 0;
        drop(state);
        addresses.extend(common.into_values().flatten().map(|(address, _)| address));
        addresses
    }
}

impl State {
    fn live(&mut self, bytes: usize, hit: bool) {
        let statistics = &mut self.statistics;
        statistics.requests += 1;
        statistics.live_bytes += bytes as u64;
        statistics.peak_live_bytes = statistics.peak_live_bytes.max(statistics.live_bytes);
        if hit {
            statistics.hits += 1;
            statistics.cached_bytes -= bytes as u64;
        } else {
            statistics.driver_allocations += 1;
        }
    }

    fn cached(&mut self, bytes: usize) {
        self.statistics.live_bytes -= bytes as u64;
        self.statistics.cached_bytes += bytes as u64;
    }
}

impl DeviceState {
    /// A block of at least `bytes` bytes, ready for the stream.
    pub(crate) fn allocate(&'static self, stream: &Arc<StreamState>, bytes: usize) -> Result<Block> {
        let mode = mode()?;
        if bytes == 0 {
            return Ok(Block { address: 0, bytes: 0 });
        }
        let block = match mode {
            Mode::Cached => {
                let class = size_class(bytes).ok_or_else(|| too_large(bytes))?;
                match self.reuse(stream, class)? {
                    Some(address) => return Ok(Block { address, bytes: class }),
                    None => self.allocate_block(class)?,
                }
            }
            Mode::None | Mode::Poison => {
                self.free_retired();
                self.allocate_block(bytes)?
            }
        };
        self.pool.lock().live(block.bytes, false);
        if mode == Mode::Poison {
            if let Err(error) = self.poison(stream, block) {
                self.forget_live(block);
                self.retire_until_idle(Resource::Memory(block.address));
                return Err(error);
            }
        }
        Ok(block)
    }

    fn poison(&self, stream: &StreamState, block: Block) -> Result<()> {
        stream.submit(|| {
            // SAFETY: the block is ours, and this is its first use.
            unsafe { stream_call!(stream, cuMemsetD8Async(block.address, 0xFF, block.bytes, stream.raw.0)) }
        })
    }

    /// A block of the stream's own list, or of the common one after waiting for its event.
    fn reuse(&'static self, stream: &Arc<StreamState>, class: usize) -> Result<Option<u64>> {
        let mut state = self.pool.lock();
        let own =
            state.streams.get_mut(&stream.id).and_then(|classes| classes.get_mut(&class)).and_then(Vec::pop);
        if let Some(address) = own {
            state.live(class, true);
            return Ok(Some(address));
        }
        let Some((address, event)) = state.common.get_mut(&class).and_then(Vec::pop) else {
            return Ok(None);
        };
        drop(state);
        let waited = stream.wait_event(&event);
        let mut state = self.pool.lock();
        if let Err(error) = waited {
            state.common.entry(class).or_default().push((address, event));
            return Err(error);
        }
        state.live(class, true);
        Ok(Some(address))
    }

    /// A block from the driver; where it has no room, everything cached is given back first.
    fn allocate_block(&'static self, bytes: usize) -> Result<Block> {
        let _bound = self.bind()?;
        let allocate = || -> Result<Option<Block>> {
            let mut address = 0u64;
            // SAFETY: the pointer is to a local; the device's context is current.
            let status = unsafe { (self.api.cuMemAlloc()?)(&mut address, bytes) };
            if status.0 == OUT_OF_MEMORY {
                return Ok(None);
            }
            self.check("cuMemAlloc", status)?;
            Ok(Some(Block { address, bytes }))
        };
        if let Some(block) = self.with_room(allocate)? {
            return Ok(block);
        }
        // The driver's own word is kept where even the question for free memory fails.
        let memory =
            self.memory_info().map_err(|_| driver_error("cuMemAlloc", OUT_OF_MEMORY, String::new()))?;
        Err(Error::OutOfMemory {
            device: self.ordinal,
            requested: bytes as u64,
            free: memory.free,
            total: memory.total,
            cached: self.pool.statistics().cached_bytes,
        })
    }

    /// Takes back a block whose every use is ordered before the home stream's next operation.
    pub(crate) fn give_back(&'static self, block: Block, home: &Arc<StreamState>) -> Result<()> {
        if mode()? != Mode::Cached {
            let event = home.mark()?;
            self.forget_live(block);
            self.retire(Resource::Memory(block.address), vec![event]);
            return Ok(());
        }
        let mut state = self.pool.lock();
        if let Some(classes) = state.streams.get_mut(&home.id) {
            classes.entry(block.bytes).or_default().push(block.address);
            state.cached(block.bytes);
            return Ok(());
        }
        drop(state);
        let event = home.mark()?;
        let mut state = self.pool.lock();
        state.common.entry(block.bytes).or_default().push((block.address, event));
        state.cached(block.bytes);
        Ok(())
    }

    /// Stops counting a block as live that goes another way than into a list.
    pub(crate) fn forget_live(&self, block: Block) {
        self.pool.lock().statistics.live_bytes -= block.bytes as u64;
    }

    /// Moves a stream's cached blocks to the common list, with an event behind their last use.
    pub(crate) fn close_stream(&'static self, stream: &Arc<StreamState>) -> Result<()> {
        let Some(classes) = self.pool.lock().streams.remove(&stream.id) else {
            return Ok(());
        };
        if classes.values().all(Vec::is_empty) || self.is_lost() {
            return Ok(());
        }
        let event = stream.mark();
        let mut state = self.pool.lock();
        for (class, addresses) in classes {
            for address in addresses {
                match &event {
                    Ok(event) => state.common.entry(class).or_default().push((address, event.clone())),
                    Err(_) => {
                        state.statistics.cached_bytes -= class as u64;
                        self.retire_until_idle(Resource::Memory(address));
                    }
                }
            }
        }
        event.map(drop)
    }
}

fn too_large(bytes: usize) -> Error {
    Error::invalid("allocating", format!("{bytes} bytes"), "a size that fits the address space")
}

#[cfg(test)]
mod tests {
    use super::size_class;

    #[test]
    fn classes_hold_their_request_and_lose_at_most_an_eighth() {
        for bytes in (1..100_000).chain((1..60).map(|shift| (1usize << shift) + 1)) {
            let class = size_class(bytes).unwrap();
            assert!(class >= bytes);
            assert!(class == 512 || class - bytes < (bytes / 8).max(512), "{bytes} -> {class}");
            assert_eq!(size_class(class), Some(class), "a class is its own class");
        }
    }

    #[test]
    fn a_size_past_the_address_space_has_no_class() {
        assert_eq!(size_class(usize::MAX), None);
    }
}
