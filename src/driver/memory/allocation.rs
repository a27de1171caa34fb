//! A block of device memory with its home stream and its users.
//!
//! Dropping one never blocks and never loses the order: the home stream is made to wait for every other user, and the
//! block goes to the home stream's list, whose next user is behind that wait. Where the home stream's last handle is
//! gone, the block goes to the device's common list with an event on the home stream instead.

use std::sync::Arc;

use super::pool::Block;
use super::usage::{Access, Usage};
use crate::driver::context::gone;
use crate::driver::device::DeviceState;
use crate::driver::stream::StreamState;
use crate::error::{Result, report_deferred};

/// A block of device memory.
pub(crate) struct Allocation {
    pub(crate) device: &'static DeviceState,
    pub(crate) home: Arc<StreamState>,
    pub(crate) usage: Usage,
    block: Block,
}

impl Allocation {
    /// A block of at least `bytes` bytes for the stream, its contents unspecified.
    pub(crate) fn new(stream: &Arc<StreamState>, bytes: usize) -> Result<Arc<Allocation>> {
        let device = stream.device;
        let block = device.allocate(stream, bytes)?;
        Ok(Arc::new(Allocation { device, home: stream.clone(), usage: Usage::owned_by(stream), block }))
    }

    /// How an exclusive view writes: as the whole block's only user, unless something else (a tensor map, an argument of a
    /// launch) holds the block too.
    #[inline]
    pub(crate) fn write_access(self: &Arc<Self>, whole: bool) -> Access {
        Access::write(whole && Arc::strong_count(self) == 1)
    }

    pub(crate) fn address(&self) -> u64 {
        self.block.address
    }

    /// Gives the block back, ordered behind every user.
    fn give_back(&mut self) -> Result<()> {
        if !self.usage.is_sole(&self.home) {
            for stream in self.usage.streams() {
                self.home.wait_for_living(&stream)?;
            }
        }
        self.device.give_back(self.block, &self.home)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.block.bytes == 0 || self.device.is_lost() {
            return;
        }
        if let Err(error) = self.give_back() {
            // The order could not be had from the driver, so the block waits for the whole device.
            self.device.retire_block(self.block, &self.home);
            if !gone(&error) {
                report_deferred(&error);
            }
        }
    }
}
