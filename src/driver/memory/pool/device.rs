//! The memory methods of [`Device`].

use std::sync::atomic::Ordering;

use super::driver_backing::access;
use super::record::RecordedBlock;
use super::snapshot::MemorySnapshot;
use super::statistics::PoolStatistics;
use super::trace::MemoryTrace;
use super::{Block, Pool};
use crate::driver::context::call;
use crate::driver::device::{Device, DeviceState};
use crate::driver::foreign::call_deleters;
use crate::driver::fork;
use crate::error::{Error, Result};

impl Block {
    /// The block for the recorder.
    pub(super) fn recorded(&self) -> RecordedBlock {
        RecordedBlock { address: self.address, bytes: self.bytes, requested: self.requested }
    }
}

impl Pool {
    /// Prepares for a trace of time, or registers a device that was opened.
    pub(crate) fn begin_trace(&self, device: i32) {
        self.recorder.begin_trace(device, self.statistics().live_bytes);
    }
}

impl Device {
    /// Returns the statistics of the device's memory pool; zeros in a process that was forked from one that had used
    /// CUDA. They do not include memory cached by a pool of the driver (`SELVEDGE_POOL=driver`).
    pub fn pool_statistics(&self) -> PoolStatistics {
        self.0.pool.statistics()
    }

    /// Waits for the device and returns all cached memory to the driver: memory blocks, pinned memory, events, and
    /// resources that were dropped while in use.
    ///
    /// # Errors
    ///
    /// The driver's errors. Resources that could not be freed are kept for the next call.
    pub fn trim(&self) -> Result<()> {
        let trimmed = self.0.trim();
        call_deleters();
        trimmed
    }

    /// Sets the limit on device memory that buffers may take from the driver, in use and cached together, in bytes.
    /// `None` removes the limit. The default is `SELVEDGE_MEMORY_LIMIT`. Memory already above the limit is kept. With
    /// `SELVEDGE_POOL=driver` the limit covers memory in use only, because the driver's pool does not report its cache.
    ///
    /// # Errors
    ///
    /// The limit is 0 bytes.
    pub fn set_memory_limit(&self, bytes: Option<u64>) -> Result<()> {
        let value = match bytes {
            None => 0,
            Some(0) => {
                return Err(Error::invalid("set_memory_limit", "0 bytes", "at least one byte, or no limit"));
            }
            // Practically no limit, but distinct from the value for an unset limit.
            Some(bytes) => bytes.min(u64::MAX - 1),
        };
        self.0.pool.limit.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the layout of the device's memory pool.
    ///
    /// # Errors
    ///
    /// `SELVEDGE_POOL` or `SELVEDGE_MEMORY_LIMIT` is invalid, or [`Error::ForkedProcess`].
    pub fn memory_snapshot(&self) -> Result<MemorySnapshot> {
        self.0.snapshot()
    }

    /// Starts recording the requests to the device's memory pool, for
    /// [`finish_memory_trace`](Self::finish_memory_trace). The trace omits buffers that are already alive.
    ///
    /// # Errors
    ///
    /// A trace is already being recorded, or [`Error::ForkedProcess`].
    pub fn start_memory_trace(&self) -> Result<()> {
        fork::check()?;
        if self.0.pool.recorder.start(self.0.name.clone()) {
            return Ok(());
        }
        Err(Error::invalid(
            "start_memory_trace",
            "a trace that is being recorded",
            "one at a time: finish it first",
        ))
    }

    /// Ends the recording and returns the trace.
    ///
    /// # Errors
    ///
    /// No trace is being recorded, or [`Error::ForkedProcess`].
    pub fn finish_memory_trace(&self) -> Result<MemoryTrace> {
        fork::check()?;
        let trace = self.0.pool.recorder.finish();
        trace.ok_or_else(|| {
            Error::invalid(
                "finish_memory_trace",
                "no trace that is being recorded",
                "start_memory_trace before it",
            )
        })
    }
}

impl DeviceState {
    /// Lets another device use this one's present and future memory. Calls `then` while nothing new can be mapped.
    pub(crate) fn allow_peer(&'static self, peer: &'static DeviceState, then: impl FnOnce()) -> Result<()> {
        self.change_access(peer, true, then)
    }

    /// Revokes the access of [`allow_peer`](Self::allow_peer).
    pub(crate) fn revoke_peer(&'static self, peer: &'static DeviceState) -> Result<()> {
        self.change_access(peer, false, || ())
    }

    /// Frees the pages of a device at its reset: they belong to the process and would outlive its context. A context of
    /// the device must be current, and no work may use the memory. Errors are only logged, because the memory is lost
    /// either way.
    pub(crate) fn release_pages(&self) {
        let pages = self.pool.lock().heap.take_pages();
        for (range, page) in pages {
            // SAFETY: the range is one whole mapping, and no kernel uses it any more.
            let unmapped = range.map_or(Ok(()), |(address, bytes)| unsafe {
                call!(self, cuMemUnmap(address, bytes as usize))
            });
            // SAFETY: the page belongs to the heap, which has forgotten it.
            if let Err(error) = unmapped.and(unsafe { call!(self, cuMemRelease(page)) }) {
                log::warn!("memory of a device that was reset stays with the driver: {error}");
            }
        }
    }

    fn change_access(
        &'static self,
        peer: &'static DeviceState,
        may: bool,
        then: impl FnOnce(),
    ) -> Result<()> {
        let _bound = self.bind()?;
        let store = self.pool.lock();
        for (address, bytes) in store.heap.mapped() {
            self.set_access(address, bytes, &[access(peer, may)])?;
        }
        self.set_pool_access(peer, may)?;
        then();
        Ok(())
    }
}
