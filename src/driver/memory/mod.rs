//! Device and pinned memory: the users of a block, its release, and copies between blocks.
//!
//! - [`usage`] records the streams that use a block, and makes a stream wait before it becomes a user.
//! - [`allocation`] is a block with its home stream. Dropping it frees the block without blocking.
//! - [`pool`] caches blocks by stream; [`retired`] holds resources that cannot be freed yet.
//! - [`buffer`], [`slice`], [`pinned`] and [`transfer`] are the user's types; [`copy`], [`copy_2d`], [`copy_3d`],
//!   [`copy_batch`] and [`fill`] move bytes, through [`staging`] for large copies of plain memory.

mod allocation;
mod buffer;
mod copy;
mod copy_2d;
mod copy_3d;
mod copy_batch;
mod copy_shape;
mod external;
mod fill;
mod pinned;
mod pool;
mod retired;
mod shared;
mod slice;
mod staging;
mod transfer;
mod usage;

pub(crate) use allocation::Allocation;
pub use buffer::DeviceBuffer;
pub use copy_2d::Copy2d;
pub use copy_3d::Copy3d;
pub use pinned::{PinnedBuffer, RegisterError};
pub(crate) use pinned::{PinnedPool, forget_locked_by};
pub(crate) use pool::{Block, Pool, ThreadCaches};
pub use pool::{
    BlockSnapshot, BlockState, MemoryScope, MemorySnapshot, MemoryTrace, MemoryUse, PoolStatistics,
    ReplayOptions, ReplayPool, ReplayReport, ReplaySample, SegmentSnapshot, TraceEvent,
};
pub(crate) use retired::{Resource, Retired};
pub(crate) use shared::SharedBuffer;
pub use slice::{DeviceRead, DeviceSlice, DeviceSliceMut, DeviceWrite};
pub(crate) use slice::{HasView, View, range_of};
pub(crate) use staging::prefer_large_pages;
pub use transfer::{Transfer, TransferError};
pub(crate) use usage::{Access, Usage, changes};
