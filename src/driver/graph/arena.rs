//! The memory of a graph: blocks that its captured operations allocated.
//!
//! The blocks come from the device's pool. They return to it when neither the graph, whose launches write to them
//! repeatedly, nor a buffer from the capture can name them. A block dropped during the capture serves its later
//! allocations, behind its users so far. A block dropped afterwards leaves only its users' events, which the next
//! launch waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::capture;
use crate::driver::context::gone;
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::memory::{Allocation, Block};
use crate::driver::stream::StreamState;
use crate::error::{Result, report_deferred};

/// The largest ratio of a block to the request that it serves, as a fraction.
const FIT: (usize, usize) = (5, 4);

pub(crate) struct GraphArena {
    device: &'static DeviceState,
    blocks: Mutex<Blocks>,
    /// True if there is an event to wait for.
    pending: AtomicBool,
    abandoned: AtomicBool,
}

#[derive(Default)]
struct Blocks {
    all: Vec<Block>,
    /// Blocks that were dropped during the capture, with the streams that used them in it.
    idle: Vec<(Block, Vec<Arc<StreamState>>)>,
    /// Events that the next launch, or the pool, must wait for.
    after: Vec<Arc<EventCell>>,
}

impl GraphArena {
    pub(super) fn new(device: &'static DeviceState) -> Arc<GraphArena> {
        Arc::new(GraphArena {
            device,
            blocks: Mutex::default(),
            pending: AtomicBool::default(),
            abandoned: AtomicBool::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_blocks(&self) -> bool {
        !self.lock().all.is_empty()
    }

    /// Allocates a block for a stream of the capture. Also returns the events to wait for outside of the graph, since
    /// the block can be used before the first launch.
    pub(super) fn allocate(
        &self,
        capture: &capture::Capture,
        stream: &StreamState,
        bytes: usize,
    ) -> Result<(Block, Vec<Arc<EventCell>>)> {
        if bytes == 0 {
            return self.device.take_block(0);
        }
        let most = bytes.saturating_mul(FIT.0) / FIT.1 + 512;
        let fitting = {
            let mut blocks = self.lock();
            let fits = |(block, users): &(Block, Vec<Arc<StreamState>>)| {
                (bytes..=most).contains(&block.bytes) && users.iter().all(|user| capture.has(user))
            };
            let candidates = blocks.idle.iter().enumerate().filter(|(_, idle)| fits(idle));
            let best = candidates.min_by_key(|(_, (block, _))| block.bytes).map(|(index, _)| index);
            best.map(|index| blocks.idle.swap_remove(index))
        };
        if let Some((block, users)) = fitting {
            let waited = users.iter().try_for_each(|user| stream.wait_for(user));
            return match waited {
                Ok(()) => Ok((block, self.lock().after.clone())),
                Err(error) => {
                    self.lock().idle.push((block, users));
                    Err(error)
                }
            };
        }
        let (block, after) = self.device.take_block(bytes)?;
        self.lock().all.push(block);
        self.wait_for(after.clone());
        Ok((block, after))
    }

    /// Takes back a block whose last buffer is gone. `outside` holds the events behind its uses outside of the graph.
    pub(crate) fn give_back(
        &self,
        allocation: *const Allocation,
        block: Block,
        outside: Vec<Arc<EventCell>>,
    ) {
        self.wait_for(outside);
        let Some(capture) = capture::current() else {
            return;
        };
        if std::ptr::eq(&*capture.arena, self) {
            let users = capture.forget(allocation);
            self.lock().idle.push((block, users));
        }
    }

    /// Records that the users of the blocks are unknown, so that the next user waits for every device.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Makes the next launch, and the later owners of the blocks, wait for the events.
    pub(super) fn wait_for(&self, events: Vec<Arc<EventCell>>) {
        if !events.is_empty() {
            self.lock().after.extend(events);
            self.pending.store(true, Ordering::Release);
        }
    }

    /// Makes a stream that is about to launch the graph wait for all uses of its blocks outside of the graph.
    #[inline]
    pub(super) fn enter(&self, stream: &StreamState) -> Result<()> {
        if self.pending.load(Ordering::Acquire) { self.enter_slow(stream) } else { Ok(()) }
    }

    #[cold]
    fn enter_slow(&self, stream: &StreamState) -> Result<()> {
        let events = {
            let mut blocks = self.lock();
            self.pending.store(false, Ordering::Release);
            std::mem::take(&mut blocks.after)
        };
        for (index, event) in events.iter().enumerate() {
            if let Err(error) = stream.wait_event(event) {
                self.wait_for(events[index..].to_vec());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for GraphArena {
    fn drop(&mut self) {
        let blocks = std::mem::take(self.blocks.get_mut().unwrap_or_else(PoisonError::into_inner));
        if self.device.is_lost() {
            return;
        }
        for block in blocks.all {
            if *self.abandoned.get_mut() {
                self.device.abandon(block);
                continue;
            }
            if let Err(error) = self.device.give_back_after(block, blocks.after.clone())
                && !gone(&error)
            {
                report_deferred(&error);
            }
        }
    }
}
