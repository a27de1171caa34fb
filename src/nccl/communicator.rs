//! A communicator of NCCL.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::functions;
use crate::error::{Error, Result};
use crate::sys::nccl::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};
use crate::sys::{NcclApi, Status, call, call_raw};

/// An element that NCCL moves and reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl Kind {
    fn raw(self) -> ncclDataType_t {
        match self {
            Kind::I8 => ncclDataType_t::ncclInt8,
            Kind::U8 => ncclDataType_t::ncclUint8,
            Kind::I32 => ncclDataType_t::ncclInt32,
            Kind::U32 => ncclDataType_t::ncclUint32,
            Kind::I64 => ncclDataType_t::ncclInt64,
            Kind::U64 => ncclDataType_t::ncclUint64,
            Kind::F16 => ncclDataType_t::ncclFloat16,
            Kind::BF16 => ncclDataType_t::ncclBfloat16,
            Kind::F32 => ncclDataType_t::ncclFloat32,
            Kind::F64 => ncclDataType_t::ncclFloat64,
        }
    }
}

/// An operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Product,
    Min,
    Max,
    Mean,
}

impl Reduction {
    fn raw(self) -> ncclRedOp_t {
        match self {
            Reduction::Sum => ncclRedOp_t::ncclSum,
            Reduction::Product => ncclRedOp_t::ncclProd,
            Reduction::Min => ncclRedOp_t::ncclMin,
            Reduction::Max => ncclRedOp_t::ncclMax,
            Reduction::Mean => ncclRedOp_t::ncclAvg,
        }
    }
}

/// A function of NCCL with its arguments: addresses of device memory, and elements. Counts are those of NCCL's functions of these names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    AllReduce { from: u64, to: u64, count: usize, op: Reduction },
    Reduce { from: u64, to: u64, count: usize, op: Reduction, root: usize },
    Broadcast { from: u64, to: u64, count: usize, root: usize },
    AllGather { from: u64, to: u64, count: usize },
    ReduceScatter { from: u64, to: u64, count: usize, op: Reduction },
    Send { from: u64, count: usize, peer: usize },
    Receive { to: u64, count: usize, peer: usize },
}

/// The name of a world that is to be.
#[derive(Clone, Copy)]
pub(crate) struct UniqueId(ncclUniqueId);

impl UniqueId {
    /// Creates a name, and what listens for the ranks.
    ///
    /// # Errors
    ///
    /// No library, or one before 2.18, and NCCL's errors.
    pub(crate) fn new() -> Result<UniqueId> {
        let api = functions()?;
        let mut id = ncclUniqueId { internal: [0; 128] };
        // SAFETY: the pointer outlives the call.
        unsafe { call!(api, ncclGetUniqueId(&mut id)) }?;
        Ok(UniqueId(id))
    }

    pub(crate) fn to_bytes(self) -> [u8; 128] {
        self.0.internal.map(|byte| byte as u8)
    }

    pub(crate) fn from_bytes(bytes: [u8; 128]) -> UniqueId {
        UniqueId(ncclUniqueId { internal: bytes.map(|byte| byte as _) })
    }
}

/// The configuration of NCCL 2.18, which later versions take too: they read as many bytes as it says to have.
#[repr(C)]
struct Configuration {
    size: usize,
    magic: u32,
    version: u32,
    blocking: i32,
    cga_cluster_size: i32,
    min_ctas: i32,
    max_ctas: i32,
    net_name: *const std::ffi::c_char,
    split_share: i32,
}

/// A field that keeps NCCL's choice.
const UNDEFINED: i32 = i32::MIN;
const MAGIC: u32 = 0xcafe_beef;

/// A rank's communicator, of the context that was current at its creation.
pub(crate) struct Communicator {
    api: &'static NcclApi,
    /// Null after an abort.
    raw: Mutex<ncclComm_t>,
}

// SAFETY: the lock lets one thread at a time call NCCL, which allows any thread to.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Begins to create the communicator of a rank on the device whose context is current.
    ///
    /// # Errors
    ///
    /// No library, or one before 2.18, and NCCL's errors.
    pub(crate) fn new(id: UniqueId, rank: usize, world_size: usize) -> Result<Communicator> {
        let api = functions()?;
        let mut configuration = Configuration {
            size: size_of::<Configuration>(),
            magic: MAGIC,
            version: super::OLDEST as u32,
            blocking: 0,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: ptr::null(),
            split_share: UNDEFINED,
        };
        let mut raw: ncclComm_t = ptr::null_mut();
        let settings = ptr::from_mut(&mut configuration).cast();
        // SAFETY: the pointers outlive the call; NCCL reads as many bytes of the configuration as it says to have.
        let status = unsafe {
            call_raw!(api, ncclCommInitRankConfig(&mut raw, world_size as i32, id.0, rank as i32, settings))
        }?;
        let communicator = Communicator { api, raw: Mutex::new(raw) };
        communicator.check(raw, status, "ncclCommInitRankConfig")?;
        Ok(communicator)
    }

    /// Returns a number that no other communicator has while this one lives.
    pub(crate) fn id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Queues work on a stream, all of it as one launch. [`is_ready`](Self::is_ready) says when that is done.
    ///
    /// # Errors
    ///
    /// NCCL's errors, or the communicator was aborted.
    ///
    /// # Safety
    ///
    /// The context of the communicator is current, the stream belongs to it, the addresses are memory of as many elements that the
    /// stream may use in its order, and the ranks exist.
    pub(crate) unsafe fn enqueue(&self, stream: *mut c_void, kind: Kind, work: &[Work]) -> Result<()> {
        let raw = self.raw()?;
        let (raw, api) = (*raw, self.api);
        // SAFETY: the functions take no arguments, and the calls between them are those of this thread.
        unsafe {
            let status = call_raw!(api, ncclGroupStart())?;
            self.check(raw, status, "ncclGroupStart")?;
            // The group ends whatever happens within it.
            let all =
                work.iter().try_for_each(|work| self.enqueue_one(raw, stream.cast(), kind.raw(), *work));
            let status = call_raw!(api, ncclGroupEnd())?;
            all?;
            self.check(raw, status, "ncclGroupEnd")
        }
    }

    /// # Safety
    ///
    /// As [`enqueue`](Self::enqueue).
    unsafe fn enqueue_one(
        &self,
        raw: ncclComm_t,
        stream: crate::sys::nccl::cudaStream_t,
        kind: ncclDataType_t,
        work: Work,
    ) -> Result<()> {
        let api = self.api;
        let read = |address: u64| address as *const c_void;
        let write = |address: u64| address as *mut c_void;
        // SAFETY: the caller vouches for addresses, counts, ranks and the stream.
        let (status, call) = unsafe {
            match work {
                Work::AllReduce { from, to, count, op } => (
                    call_raw!(api, ncclAllReduce(read(from), write(to), count, kind, op.raw(), raw, stream))?,
                    "ncclAllReduce",
                ),
                Work::Reduce { from, to, count, op, root } => (
                    call_raw!(
                        api,
                        ncclReduce(read(from), write(to), count, kind, op.raw(), root as i32, raw, stream)
                    )?,
                    "ncclReduce",
                ),
                Work::Broadcast { from, to, count, root } => (
                    call_raw!(
                        api,
                        ncclBroadcast(read(from), write(to), count, kind, root as i32, raw, stream)
                    )?,
                    "ncclBroadcast",
                ),
                Work::AllGather { from, to, count } => (
                    call_raw!(api, ncclAllGather(read(from), write(to), count, kind, raw, stream))?,
                    "ncclAllGather",
                ),
                Work::ReduceScatter { from, to, count, op } => (
                    call_raw!(
                        api,
                        ncclReduceScatter(read(from), write(to), count, kind, op.raw(), raw, stream)
                    )?,
                    "ncclReduceScatter",
                ),
                Work::Send { from, count, peer } => {
                    (call_raw!(api, ncclSend(read(from), count, kind, peer as i32, raw, stream))?, "ncclSend")
                }
                Work::Receive { to, count, peer } => {
                    (call_raw!(api, ncclRecv(write(to), count, kind, peer as i32, raw, stream))?, "ncclRecv")
                }
            }
        };
        self.check(raw, status, call)
    }

    /// Returns whether NCCL has done its part on the host of what was begun.
    ///
    /// # Errors
    ///
    /// The error that NCCL has met meanwhile, or the communicator was aborted.
    pub(crate) fn is_ready(&self) -> Result<bool> {
        let raw = self.raw()?;
        let mut state = ncclResult_t::ncclSuccess;
        // SAFETY: the communicator is live under the lock, and the pointer outlives the call.
        unsafe { call!(self.api, ncclCommGetAsyncError(*raw, &mut state)) }?;
        self.check(*raw, state, "ncclCommGetAsyncError")?;
        Ok(state != ncclResult_t::ncclInProgress)
    }

    /// Returns whether the communicator was aborted, and NCCL has returned from that.
    pub(crate) fn is_aborted(&self) -> bool {
        self.raw.try_lock().is_ok_and(|raw| raw.is_null())
    }

    /// Ends all work of the communicator, also what its kernels wait for, and destroys it.
    pub(crate) fn abort(&self) {
        let mut raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        if !raw.is_null() {
            // SAFETY: the communicator is live under the lock, and nobody uses it afterwards.
            let result = unsafe { call!(self.api, ncclCommAbort(*raw)) };
            *raw = ptr::null_mut();
            if let Err(error) = result {
                log::warn!("NCCL: a communicator was not aborted: {error}");
            }
        }
    }

    /// Waits for all work of the communicator on this device and the others', and destroys it.
    ///
    /// # Errors
    ///
    /// NCCL's errors; the communicator is then aborted.
    pub(crate) fn finish(&self, mut keep_waiting: impl FnMut() -> Result<()>) -> Result<()> {
        let begun = {
            let raw = self.raw()?;
            // SAFETY: the communicator is live under the lock.
            let status = unsafe { call_raw!(self.api, ncclCommFinalize(*raw)) };
            status.and_then(|status| self.check(*raw, status, "ncclCommFinalize"))
        };
        let mut wait = || {
            while !self.is_ready()? {
                keep_waiting()?;
            }
            Ok(())
        };
        if let Err(error) = begun.and_then(|()| wait()) {
            self.abort();
            return Err(error);
        }
        let mut raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        if raw.is_null() {
            return Ok(());
        }
        let destroyed = std::mem::replace(&mut *raw, ptr::null_mut());
        // SAFETY: the communicator is live under the lock, and nobody uses it afterwards.
        unsafe { call!(self.api, ncclCommDestroy(destroyed)) }
    }

    fn raw(&self) -> Result<MutexGuard<'_, ncclComm_t>> {
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        if raw.is_null() {
            return Err(Error::invalid("NCCL", "a communicator that was aborted", "a new communicator"));
        }
        Ok(raw)
    }

    /// Returns the error of a status, with NCCL's own words. Work in progress is none.
    fn check(&self, raw: ncclComm_t, status: ncclResult_t, call: &'static str) -> Result<()> {
        if status == ncclResult_t::ncclSuccess || status == ncclResult_t::ncclInProgress {
            return Ok(());
        }
        let mut error = status.check(call);
        if let Err(Error::Library { detail, .. }) = &mut error {
            // SAFETY: NCCL returns a text with an end, or NULL.
            let words = unsafe { self.api.ncclGetLastError().map(|function| function(raw)) };
            if let Ok(words) = words
                && !words.is_null()
            {
                // SAFETY: as above.
                let words = unsafe { CStr::from_ptr(words) }.to_string_lossy();
                if !words.trim().is_empty() {
                    *detail += &format!(" ({})", words.trim());
                }
            }
        }
        error
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // One that has finished is gone already.
        self.abort();
    }
}
