//! Buffers without the heap. Each is a driver allocation of its own (`SELVEDGE_POOL=none` or `poison`), or a block of a
//! driver pool (`driver`), which orders allocations and frees on streams itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::driver_backing::{access, location, users};
use super::mode::PoolMode;
use super::snapshot::{BlockSnapshot, BlockState, SegmentSnapshot};
use super::statistics::PoolStatistics;
use super::{Block, mode};
use crate::driver::attribute::Attribute;
use crate::driver::context::{Handle, OUT_OF_MEMORY, call, gone, stream_call};
use crate::driver::device::{Device, DeviceState};
use crate::driver::memory::retired::Resource;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result, report_deferred};
use crate::sys::driver::{
    CUmemAllocationType, CUmemPool_attribute, CUmemPoolHandle_st, CUmemPoolProps_v1, CUmemoryPool,
};

/// The driver's pool, and every live block.
#[derive(Default)]
pub(super) struct Direct(Mutex<DirectState>);

#[derive(Default)]
struct DirectState {
    pool: Option<Handle<CUmemPoolHandle_st>>,
    pool_ready: bool,
    /// Bytes and stream by address.
    blocks: HashMap<u64, (u64, u64)>,
    made: u64,
    freed: u64,
}

impl Direct {
    fn lock(&self) -> MutexGuard<'_, DirectState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a block that is no longer alive.
    pub(super) fn forget(&self, block: Block) {
        let mut state = self.lock();
        if state.blocks.remove(&block.address).is_some() {
            state.freed += 1;
        }
    }

    /// Bytes and stream of every block.
    pub(super) fn blocks(&self) -> Vec<(u64, u64)> {
        self.lock().blocks.values().copied().collect()
    }

    pub(super) fn segments(&self) -> Vec<SegmentSnapshot> {
        let segment = |(&address, &(bytes, stream)): (&u64, &(u64, u64))| {
            let stream = Some(stream).filter(|&stream| stream != 0);
            let block = BlockSnapshot { offset: 0, bytes, state: BlockState::Live, stream };
            SegmentSnapshot { address, bytes, blocks: vec![block] }
        };
        self.lock().blocks.iter().map(segment).collect()
    }

    /// Treats all reserved memory as live, since the driver does not report its cache.
    pub(super) fn statistics(&self, accounting: PoolStatistics) -> PoolStatistics {
        let state = self.lock();
        PoolStatistics {
            reserved_bytes: accounting.live_bytes,
            peak_reserved_bytes: accounting.peak_live_bytes,
            driver_allocations: state.made,
            driver_frees: state.freed,
            ..accounting
        }
    }
}

impl DeviceState {
    /// Allocates a block of exactly these bytes from the driver.
    pub(super) fn allocate_directly(
        &'static self,
        stream: Option<&Arc<StreamState>>,
        bytes: usize,
        mode: PoolMode,
    ) -> Result<Block> {
        let of_pool = stream.filter(|_| mode == PoolMode::Driver);
        if of_pool.is_none() {
            self.free_retired();
        }
        let limit = self.pool.limit()?;
        let attempt = || {
            let _bound = self.bind()?;
            let live = self.pool.accounting.totals().live.blocks.max(0) as u64;
            if limit.is_some_and(|limit| live.saturating_add(bytes as u64) > limit) {
                return Ok(None);
            }
            match of_pool {
                Some(stream) => self.allocate_of_pool(stream, bytes),
                None => self.allocate_of_driver(bytes as u64),
            }
        };
        let Some(address) = self.with_retry(attempt)? else {
            let call = if of_pool.is_some() { "cuMemAllocFromPoolAsync" } else { "cuMemAlloc" };
            return Err(self.out_of_memory(call, bytes as u64));
        };
        let block = Block { address, bytes, requested: bytes, index: u32::MAX };
        let (id, cache) =
            stream.map_or((0, &self.pool.accounting.common), |stream| (stream.id, stream.caches.own()));
        {
            let mut state = self.pool.direct.lock();
            state.made += 1;
            state.blocks.insert(address, (bytes as u64, id));
        }
        self.pool.accounting.add(cache, bytes, bytes, false);
        if let (Some(stream), PoolMode::Poison) = (stream, mode) {
            let filled = stream.submit(|| {
                // SAFETY: the block is ours, and this is its first use.
                unsafe {
                    stream_call!(stream, cuMemsetD8Async(block.address, 0xFF, block.bytes, stream.raw.0))
                }
            });
            if let Err(error) = filled {
                self.abandon(block);
                return Err(error);
            }
        }
        if self.pool.recorder.is_on() {
            self.pool.recorder.allocated(id, block.recorded());
        }
        Ok(block)
    }

    /// The context must be current.
    fn allocate_of_pool(&'static self, stream: &Arc<StreamState>, bytes: usize) -> Result<Option<u64>> {
        let pool = self.driver_pool()?;
        let mut address = 0u64;
        let mut no_room = false;
        stream.submit(|| {
            // SAFETY: the pointer is to a local; pool and stream are live and of this device.
            let status =
                unsafe { (self.api.cuMemAllocFromPoolAsync()?)(&mut address, bytes, pool.0, stream.raw.0) };
            no_room = status.0 == OUT_OF_MEMORY;
            if no_room { Ok(()) } else { stream.check("cuMemAllocFromPoolAsync", status) }
        })?;
        Ok((!no_room).then_some(address))
    }

    /// The driver's pool of this device, created on first use. It keeps all memory until a trim. The context must be
    /// current.
    fn driver_pool(&'static self) -> Result<Handle<CUmemPoolHandle_st>> {
        let mut state = self.pool.direct.lock();
        if let (Some(pool), true) = (state.pool, state.pool_ready) {
            return Ok(pool);
        }
        if Device(self).attribute(Attribute::MEMORY_POOLS_SUPPORTED)? == 0 {
            return Err(Error::invalid(
                "SELVEDGE_POOL",
                format!("driver, but {} has no pools", Device(self)),
                "another mode, or a device with stream-ordered allocation",
            ));
        }
        // Stored even if the setup below fails; the next request repeats the setup.
        let pool = match state.pool {
            Some(pool) => pool,
            None => {
                let properties = CUmemPoolProps_v1 {
                    allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
                    location: location(self),
                    ..CUmemPoolProps_v1::default()
                };
                let mut pool: CUmemoryPool = std::ptr::null_mut();
                // SAFETY: the pointers are to locals.
                unsafe { call!(self, cuMemPoolCreate(&mut pool, &properties))? };
                *state.pool.insert(Handle(pool))
            }
        };
        let mut most = u64::MAX;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the attribute is a number of 64 bits, and the pointer is to one.
        unsafe { call!(self, cuMemPoolSetAttribute(pool.0, threshold, (&raw mut most).cast()))? };
        for right in users(self).into_iter().skip(1) {
            // SAFETY: the pool is live, and the list has one entry.
            unsafe { call!(self, cuMemPoolSetAccess(pool.0, &right, 1))? };
        }
        state.pool_ready = true;
        Ok(pool)
    }

    /// Grants or revokes another device's access to present and future allocations. The context must be current.
    pub(super) fn set_pool_access(&'static self, peer: &DeviceState, may: bool) -> Result<()> {
        let pool = self.pool.direct.lock().pool;
        let Some(pool) = pool else { return Ok(()) };
        // SAFETY: the pool is live, and the list has one entry.
        unsafe { call!(self, cuMemPoolSetAccess(pool.0, &access(peer, may), 1)) }
    }

    /// As `give_back`, for a block outside the heap.
    pub(super) fn give_back_directly(
        &'static self,
        block: Block,
        home: &Arc<StreamState>,
        mode: PoolMode,
    ) -> Result<()> {
        // Work issued to a capturing stream runs at each launch or not at all, so the block waits for an event instead.
        if mode == PoolMode::Driver && home.takes_work() {
            let mut called = false;
            let freed = home.submit(|| {
                called = true;
                // SAFETY: the block belongs to the pool, every use of it precedes this in the stream, and it is freed
                // once.
                unsafe { stream_call!(home, cuMemFreeAsync(block.address, home.raw.0)) }
            });
            if let Err(error) = freed {
                if !called {
                    return Err(error);
                }
                // The driver has usually freed the memory even so: see `DeviceState::release`.
                if !gone(&error) {
                    report_deferred(&error);
                }
            }
        } else {
            let event = home.mark()?;
            self.retire(Resource::Memory(block.address), vec![event]);
        }
        home.caches.own().lock().subtract(block.requested, block.bytes);
        self.pool.direct.forget(block);
        Ok(())
    }

    /// Releases the memory cached by the driver's pool.
    pub(super) fn trim_direct(&'static self) -> Result<()> {
        if mode().is_ok_and(|mode| mode != PoolMode::Driver) {
            return Ok(());
        }
        let pool = self.pool.direct.lock().pool;
        let Some(pool) = pool else { return Ok(()) };
        let _bound = self.bind()?;
        // SAFETY: the pool is live.
        unsafe { call!(self, cuMemPoolTrimTo(pool.0, 0)) }
    }
}
