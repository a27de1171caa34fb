//! What the heap needs of the world: memory, and how far the streams are.
//!
//! The heap decides, and everything that it decides on comes from here; so the same heap runs on a driver and on
//! numbers alone (see `replay.rs`).

use super::arena::{After, Index};
use crate::error::Result;

/// A block that comes back to the heap.
pub(crate) struct Returned {
    pub(crate) index: Index,
    pub(crate) bytes: u64,
    pub(crate) after: After,
}

/// Memory and order, as the heap sees them.
pub(crate) trait Backing {
    /// The smallest page, in bytes, where addresses and memory are apart; none where memory comes as segments.
    fn granularity(&self) -> Option<u64>;

    /// A range of addresses without memory; none where there are no more.
    fn reserve(&mut self, bytes: u64) -> Result<Option<u64>>;

    /// Gives back a whole range of addresses, in which nothing is mapped.
    fn unreserve(&mut self, address: u64, bytes: u64) -> Result<()>;

    /// A page without an address; none where there is no more memory.
    fn create(&mut self, bytes: u64) -> Result<Option<u64>>;

    /// Gives back a page that has no address.
    fn release(&mut self, page: u64) -> Result<()>;

    /// Gives a page an address. It may be used after [`grant`](Self::grant) only.
    fn map(&mut self, address: u64, bytes: u64, page: u64) -> Result<()>;

    /// Lets the device and its peers use mapped pages.
    fn grant(&mut self, address: u64, bytes: u64) -> Result<()>;

    /// Takes the addresses of pages away, whose every use is done. The pages are without an address also after an error.
    fn unmap(&mut self, address: u64, bytes: u64) -> Result<()>;

    /// A segment; none where there is no more memory.
    fn allocate(&mut self, bytes: u64) -> Result<Option<u64>>;

    /// Gives back a segment, whose every use is done.
    fn free(&mut self, address: u64) -> Result<()>;

    /// Up to which place an owner's order is known to be done. Never blocks.
    fn done(&mut self, owner: u64) -> Result<u64>;

    /// Whether somebody can be made to wait for everything of this owner.
    fn can_wait(&self, owner: u64) -> bool;

    /// Takes back what is cached in front of the heap.
    fn drain(&mut self, returned: &mut Vec<Returned>);

    /// The most that was ever live, or would be with so many bytes more.
    fn peak_live(&mut self, more: u64) -> u64;
}
