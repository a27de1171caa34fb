//! The interface between the heap and the driver: memory, and the progress of the streams.
//!
//! The heap's decisions depend on this interface only, so the same heap runs on a driver and in a simulation (see
//! `replay.rs`).

use super::arena::{BlockIndex, FreeAfter};
use crate::error::Result;

/// A block that returns to the heap.
pub(crate) struct ReturnedBlock {
    pub(crate) index: BlockIndex,
    pub(crate) bytes: u64,
    pub(crate) after: FreeAfter,
}

/// The source of memory and of the streams' progress.
pub(crate) trait Backing {
    /// The smallest page in bytes, if addresses and memory are separate; `None` if memory comes in segments.
    fn granularity(&self) -> Option<u64>;

    /// Reserves a range of addresses without memory; `None` if there are no more.
    fn reserve(&mut self, bytes: u64) -> Result<Option<u64>>;

    /// Frees a whole range of addresses without mapped memory.
    fn unreserve(&mut self, address: u64, bytes: u64) -> Result<()>;

    /// Creates a page without an address; `None` if there is no more memory.
    fn create(&mut self, bytes: u64) -> Result<Option<u64>>;

    /// Frees a page without an address.
    fn release(&mut self, page: u64) -> Result<()>;

    /// Maps a page at an address. It may be used only after [`set_access`](Self::set_access).
    fn map(&mut self, address: u64, bytes: u64, page: u64) -> Result<()>;

    /// Grants the device and its peers access to mapped pages.
    fn set_access(&mut self, address: u64, bytes: u64) -> Result<()>;

    /// Unmaps pages whose every use is done. The pages are unmapped even after an error.
    fn unmap(&mut self, address: u64, bytes: u64) -> Result<()>;

    /// Allocates a segment; `None` if there is no more memory.
    fn allocate(&mut self, bytes: u64) -> Result<Option<u64>>;

    /// Frees a segment whose every use is done.
    fn free(&mut self, address: u64) -> Result<()>;

    /// Returns the position up to which an owner's order is known to be done. Never blocks.
    fn done(&mut self, owner: u64) -> Result<u64>;

    /// Returns whether a stream can wait for everything of this owner.
    fn can_wait(&self, owner: u64) -> bool;

    /// Takes back the blocks cached by the streams.
    fn drain(&mut self, returned: &mut Vec<ReturnedBlock>);

    /// The peak of live bytes, or the value with `more` bytes added if that is higher.
    fn peak_live(&mut self, more: u64) -> u64;
}
