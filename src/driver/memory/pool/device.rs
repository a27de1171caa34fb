//! What a [`Device`] says of its memory, and what can be said to it.

use std::sync::atomic::Ordering;

use super::snapshot::MemorySnapshot;
use super::statistics::PoolStatistics;
use super::trace::MemoryTrace;
use super::world::access;
use crate::driver::context::call;
use crate::driver::device::{Device, DeviceState};
use crate::driver::fork;
use crate::error::{Error, Result};

impl Device {
    /// What the device's memory pool holds; nothing in a process that was forked from one that had used CUDA. What a pool of
    /// the driver's caches (`SELVEDGE_POOL=driver`) is not seen here.
    pub fn pool_statistics(&self) -> PoolStatistics {
        self.0.pool.statistics()
    }

    /// Waits for the device and gives everything that is cached back to the driver: memory blocks, pinned memory, events
    /// and whatever was dropped while it was in use.
    ///
    /// # Errors
    ///
    /// The driver's; what could not be freed is kept for the next call.
    pub fn trim(&self) -> Result<()> {
        self.0.trim()
    }

    /// Sets how many bytes of the device's memory buffers may take from the driver, in use and cached together; `None`
    /// takes the limit away. Until it is set, `SELVEDGE_MEMORY_LIMIT` says it. What is over the limit already stays.
    /// With `SELVEDGE_POOL=driver` what is in use is limited alone: the driver's pool keeps what it caches to itself.
    ///
    /// # Errors
    ///
    /// A limit of 0 bytes.
    pub fn set_memory_limit(&self, bytes: Option<u64>) -> Result<()> {
        let value = match bytes {
            None => 0,
            Some(0) => {
                return Err(Error::invalid("set_memory_limit", "0 bytes", "at least one byte, or no limit"));
            }
            // As good as none, and different from what says that none was set.
            Some(bytes) => bytes.min(u64::MAX - 1),
        };
        self.0.pool.limit.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// What is where in the device's memory pool.
    ///
    /// # Errors
    ///
    /// `SELVEDGE_POOL` or `SELVEDGE_MEMORY_LIMIT` cannot be used, or [`Error::ForkedProcess`].
    pub fn memory_snapshot(&self) -> Result<MemorySnapshot> {
        self.0.snapshot()
    }

    /// Begins to record what is asked of the device's memory pool, for
    /// [`finish_memory_trace`](Self::finish_memory_trace). Buffers that are alive already are left out.
    ///
    /// # Errors
    ///
    /// A trace is being recorded already, or [`Error::ForkedProcess`].
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
    /// None is being recorded, or [`Error::ForkedProcess`].
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
    /// Lets another device use this one's memory, what there is and what there will be; `then` is called while nothing
    /// new can be mapped.
    pub(crate) fn grant_to(&'static self, peer: &'static DeviceState, then: impl FnOnce()) -> Result<()> {
        self.change_access(peer, true, then)
    }

    /// Takes back what [`grant_to`](Self::grant_to) gave.
    pub(crate) fn revoke_from(&'static self, peer: &'static DeviceState) -> Result<()> {
        self.change_access(peer, false, || ())
    }

    /// Gives back the pages of a device that ends: they are the process's and would outlive its context. A context of
    /// the device is current, and nothing uses the memory any more. What fails is only logged: it is lost either way.
    pub(crate) fn release_pages(&self) {
        let pages = self.pool.lock().heap.take_pages();
        for (place, page) in pages {
            // SAFETY: the range is one whole mapping, and no kernel uses it any more.
            let unmapped = place.map_or(Ok(()), |(address, bytes)| unsafe {
                call!(self, cuMemUnmap(address, bytes as usize))
            });
            // SAFETY: the page is the heap's, which has forgotten it.
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
