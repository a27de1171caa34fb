//! A block of device memory with its home stream and its users.
//!
//! Dropping a block never blocks and preserves the order of its uses. The home stream waits for every other user, and
//! the block goes to the home stream's list, whose next user follows that wait. If the home stream's last handle is
//! gone, or the stream is being captured and can wait for nothing, the block goes to the device's common list together
//! with the users' events. A block of a graph returns to the graph. Memory of other code goes to its deleter after every use.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::pool::Block;
use super::usage::{Access, Usage};
use crate::driver::context::gone;
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::foreign::Deleter;
use crate::driver::graph::{GraphArena, capture};
use crate::driver::stream::StreamState;
use crate::error::{Error, Result, report_deferred};

/// A block of device memory. The fields that every operation reads come first, on one cache line.
#[repr(C)]
pub(crate) struct Allocation {
    pub(crate) device: &'static DeviceState,
    /// The graph that owns the memory, if any.
    arena: Option<Arc<GraphArena>>,
    /// Read through [`settled`](Self::settled), unless the home stream alone uses the block.
    usage: Usage,
    pub(crate) home: Arc<StreamState>,
    block: Block,
    /// The number of holders of the one buffer that names the block, if it is shared
    /// ([`SharedBuffer`](super::SharedBuffer)).
    pub(super) holders: AtomicUsize,
    /// Frees memory of other code.
    deleter: Option<Deleter>,
    /// True for memory of other code that this library may not write to.
    pub(super) read_only: bool,
}

impl Allocation {
    /// Allocates a block of at least `bytes` bytes for the stream, with unspecified contents. During a capture of the
    /// stream, the graph owns the block.
    pub(crate) fn new(stream: &Arc<StreamState>, bytes: usize) -> Result<Arc<Allocation>> {
        let device = stream.device;
        // Checked here, because a cached block needs no driver call.
        device.check_alive()?;
        if capture::any()
            && let Some(allocation) = capture::allocate(stream, bytes)?
        {
            return Ok(allocation);
        }
        // Results returned in registers, not through memory, save some nanoseconds.
        let block = match device.allocate_cached(stream, bytes) {
            Some(block) => block,
            None => device.allocate(stream, bytes)?,
        };
        let (usage, home) = (Usage::owned_by_home(stream), stream.clone());
        let holders = AtomicUsize::new(1);
        Ok(Arc::new(Allocation {
            device,
            arena: None,
            usage,
            home,
            block,
            holders,
            deleter: None,
            read_only: false,
        }))
    }

    /// A block of the graph. Its first user outside of the graph must wait for the events.
    pub(crate) fn of_graph(
        stream: &Arc<StreamState>,
        block: Block,
        arena: &Arc<GraphArena>,
        after: Vec<Arc<EventCell>>,
    ) -> Arc<Allocation> {
        let (device, home, usage) = (stream.device, stream.clone(), Usage::after(after));
        let (arena, holders) = (Some(arena.clone()), AtomicUsize::new(1));
        Arc::new(Allocation { device, arena, usage, home, block, holders, deleter: None, read_only: false })
    }

    /// Memory of other code, whose contents are ordered on the stream.
    pub(crate) fn foreign(stream: &Arc<StreamState>, block: Block, deleter: Deleter) -> Arc<Allocation> {
        let (device, usage, home) = (stream.device, Usage::owned_by_home(stream), stream.clone());
        let (holders, deleter) = (AtomicUsize::new(1), Some(deleter));
        Arc::new(Allocation { device, arena: None, usage, home, block, holders, deleter, read_only: false })
    }

    /// The users of the block.
    fn settled(&self) -> &Usage {
        self.usage.settle(&self.home);
        &self.usage
    }

    /// Makes the stream wait for earlier conflicting uses, and registers it as a user.
    #[inline]
    pub(crate) fn enter(&self, stream: &Arc<StreamState>, access: Access) -> Result<()> {
        if self.usage.has_entered(stream, access) {
            return Ok(());
        }
        self.settled().enter(stream, access)
    }

    /// The access of a shared view that reads. Nobody writes meanwhile, unless something else (a tensor map, a launch's
    /// argument, a graph) holds the block too.
    #[inline]
    pub(crate) fn read_access(self: &Arc<Self>, whole: bool) -> Access {
        Access::read(whole && self.is_held_once())
    }

    /// The access of an exclusive view that writes: as the only user of the whole block, unless something else holds it
    /// too.
    #[inline]
    pub(crate) fn write_access(self: &Arc<Self>, whole: bool) -> Access {
        Access::write(whole && self.is_held_once())
    }

    /// Returns whether only one buffer can name the block. A graph's launches name its own blocks without holding them.
    #[inline]
    fn is_held_once(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.arena.is_none()
    }

    pub(crate) fn address(&self) -> u64 {
        self.block.address
    }

    /// Returns whether the graph owns the memory.
    pub(crate) fn is_in(&self, arena: &Arc<GraphArena>) -> bool {
        self.arena.as_ref().is_some_and(|own| Arc::ptr_eq(own, arena))
    }

    /// Returns events behind every user and the home stream.
    fn users(&self) -> Result<Vec<Arc<EventCell>>> {
        let users = self.settled().streams();
        // Users that were lost with another device's context need no wait.
        let away = users.iter().filter(|user| user.id != self.home.id && !user.device.is_lost());
        away.map(|user| user.mark()).chain([self.home.mark()]).collect()
    }

    /// Frees the block, ordered behind every user.
    fn give_back(&mut self) -> Result<()> {
        if self.usage.is_sole(&self.home) {
            return self.device.give_back(self.block, &self.home);
        }
        let ordered = match self.home.takes_work() {
            false => false,
            true => {
                self.settled()
                    .streams()
                    .iter()
                    .try_for_each(|user| self.home.wait_for_living(user))
                    .map_or_else(
                        // A capture has just begun.
                        |error| {
                            if matches!(error, Error::NotCapturable { .. }) { Ok(false) } else { Err(error) }
                        },
                        |()| Ok(true),
                    )?
            }
        };
        if ordered {
            return self.device.give_back(self.block, &self.home);
        }
        let users = self.users()?;
        self.device.give_back_after(self.block, users)
    }

    /// Returns a block to its graph.
    fn return_to(&self, arena: &GraphArena) -> Result<()> {
        let users = self.settled().streams();
        let living = users.iter().filter(|user| !user.device.is_lost());
        let outside: Result<Vec<_>> = living.map(|user| user.mark()).collect();
        if outside.is_err() {
            arena.abandon();
        }
        outside.map(|outside| arena.give_back(self, self.block, outside))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter.take() {
            return deleter.call_after(self.device, || self.users());
        }
        if self.block.bytes == 0 || self.device.is_lost() {
            return;
        }
        let returned = match &self.arena {
            Some(arena) => self.return_to(arena),
            None => self.give_back(),
        };
        let Err(error) = returned else { return };
        if self.arena.is_none() {
            self.device.abandon(self.block);
        }
        if !gone(&error) {
            report_deferred(&error);
        }
    }
}
