//! A block of device memory with its home stream and its users.
//!
//! Dropping one never blocks and never loses the order: the home stream is made to wait for every other user, and the
//! block goes to the home stream's list, whose next user is behind that wait. Where the home stream's last handle is
//! gone, or it is being captured and can wait for nothing, the block goes to the device's common list with the users'
//! events instead. A block of a graph goes back to the graph.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::pool::Block;
use super::usage::{Access, Usage};
use crate::driver::context::gone;
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::graph::{GraphArena, capture};
use crate::driver::stream::StreamState;
use crate::error::{Error, Result, report_deferred};

/// A block of device memory. What every operation looks at comes first, on one cache line.
#[repr(C)]
pub(crate) struct Allocation {
    pub(crate) device: &'static DeviceState,
    /// The graph whose memory this is.
    arena: Option<Arc<GraphArena>>,
    /// Only by way of [`settled`](Self::settled), unless the home stream alone uses the block.
    usage: Usage,
    pub(crate) home: Arc<StreamState>,
    block: Block,
    /// Who holds the one buffer that names the block, where it is shared ([`SharedBuffer`](super::SharedBuffer)).
    pub(super) holders: AtomicUsize,
}

impl Allocation {
    /// A block of at least `bytes` bytes for the stream, its contents unspecified; the graph's, where it is being
    /// captured.
    pub(crate) fn new(stream: &Arc<StreamState>, bytes: usize) -> Result<Arc<Allocation>> {
        let device = stream.device;
        // Cached blocks are had without the driver, who would say so.
        device.check_alive()?;
        if capture::any() {
            if let Some(allocation) = capture::allocate(stream, bytes)? {
                return Ok(allocation);
            }
        }
        // What is handed on in registers, and not as a result in memory, is there some nanoseconds sooner.
        let block = match device.allocate_cached(stream, bytes) {
            Some(block) => block,
            None => device.allocate(stream, bytes)?,
        };
        let (usage, home) = (Usage::owned_by_home(stream), stream.clone());
        Ok(Arc::new(Allocation { device, arena: None, usage, home, block, holders: AtomicUsize::new(1) }))
    }

    /// A block of the graph's, whose first user outside of the graph must wait for the events.
    pub(crate) fn of_graph(
        stream: &Arc<StreamState>,
        block: Block,
        arena: &Arc<GraphArena>,
        after: Vec<Arc<EventCell>>,
    ) -> Arc<Allocation> {
        let (device, home, usage) = (stream.device, stream.clone(), Usage::after(after));
        let (arena, holders) = (Some(arena.clone()), AtomicUsize::new(1));
        Arc::new(Allocation { device, arena, usage, home, block, holders })
    }

    /// Who uses the block.
    fn settled(&self) -> &Usage {
        self.usage.settle(&self.home);
        &self.usage
    }

    /// Makes the stream wait for the uses that this one must come after, and enters it.
    #[inline]
    pub(crate) fn enter(&self, stream: &Arc<StreamState>, access: Access) -> Result<()> {
        if self.usage.has_entered(stream, access) {
            return Ok(());
        }
        self.settled().enter(stream, access)
    }

    /// How a shared view reads: nobody writes meanwhile, unless something else (a tensor map, an argument of a launch, a
    /// graph) holds the block too.
    #[inline]
    pub(crate) fn read_access(self: &Arc<Self>, whole: bool) -> Access {
        Access::read(whole && self.is_held_once())
    }

    /// How an exclusive view writes: as the whole block's only user, unless something else holds the block too.
    #[inline]
    pub(crate) fn write_access(self: &Arc<Self>, whole: bool) -> Access {
        Access::write(whole && self.is_held_once())
    }

    /// Whether only one buffer can name the block. A graph's launches name its own blocks without holding them.
    #[inline]
    fn is_held_once(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.arena.is_none()
    }

    pub(crate) fn address(&self) -> u64 {
        self.block.address
    }

    /// Whether this is memory of the graph.
    pub(crate) fn is_in(&self, arena: &Arc<GraphArena>) -> bool {
        self.arena.as_ref().is_some_and(|own| Arc::ptr_eq(own, arena))
    }

    /// Events behind every user and the home stream.
    fn users(&self) -> Result<Vec<Arc<EventCell>>> {
        let users = self.settled().streams();
        // What went with another device's context is no reason to wait.
        let away = users.iter().filter(|user| user.id != self.home.id && !user.device.is_lost());
        away.map(|user| user.mark()).chain([self.home.mark()]).collect()
    }

    /// Gives the block back, ordered behind every user.
    fn give_back(&mut self) -> Result<()> {
        if self.usage.is_sole(&self.home) {
            return self.device.give_back(self.block, &self.home);
        }
        let ordered = match self.home.slot.is_open() {
            true => false,
            false => {
                self.settled()
                    .streams()
                    .iter()
                    .try_for_each(|user| self.home.wait_for_living(user))
                    .map_or_else(
                        // A capture began just now.
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

    /// Gives a graph's block back to it.
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
