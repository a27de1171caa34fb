//! Page-locked host memory, and copies that the host does not wait for.
//!
//! The buffer of a copy in progress belongs to the copy until `sv_pinned_wait` gives it back.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arguments::out;
use super::buffer::buffer;
use super::device::cuda;
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_buffer, sv_pinned, sv_stream, sv_tensor};
use super::stream::stream;
use super::tensor::{dtype, give, sizes};
use crate::driver::{CapturedBuffer, PinnedBuffer, Transfer, TransferError};
use crate::tensor::Tensor;

/// Pinned memory, and who has it.
pub(super) enum PinnedState {
    Idle(PinnedBuffer<u8>),
    Copying(Transfer<u8>),
    /// A graph has the memory: a copy was captured.
    Captured(CapturedBuffer<u8>),
    /// The memory is a tensor's.
    Tensor,
    /// The memory was given up after an error.
    Lost,
}

/// Pinned memory behind a handle.
#[derive(Clone)]
pub(super) struct PinnedObject(Arc<Mutex<PinnedState>>);
object!(PinnedObject, PinnedBuffer);

impl PinnedObject {
    pub(super) fn lock(&self) -> MutexGuard<'_, PinnedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinnedState {
    fn take_idle(&mut self) -> Result<PinnedBuffer<u8>> {
        match std::mem::replace(self, PinnedState::Lost) {
            PinnedState::Idle(buffer) => Ok(buffer),
            other => {
                *self = other;
                Err(self.busy())
            }
        }
    }

    /// The error for memory that the caller does not have.
    fn busy(&self) -> Failure {
        let found = match self {
            PinnedState::Idle(_) => "memory without a copy",
            PinnedState::Copying(_) => "memory of a copy in progress",
            PinnedState::Captured(_) => "memory of a graph",
            PinnedState::Tensor => "memory of a tensor",
            PinnedState::Lost => "memory that was given up after an error",
        };
        Failure::argument("pinned", found, "memory that no copy has (see sv_pinned_wait)")
    }

    fn started(&mut self, started: std::result::Result<Transfer<u8>, TransferError<u8>>) -> Result<()> {
        match started {
            Ok(transfer) => {
                *self = match transfer.captured() {
                    Some(captured) => PinnedState::Captured(captured),
                    None => PinnedState::Copying(transfer),
                };
                Ok(())
            }
            Err(TransferError { error, buffer }) => {
                *self = buffer.map_or(PinnedState::Lost, PinnedState::Idle);
                Err((*error).into())
            }
        }
    }
}

/// Returns the pinned memory of a handle.
pub(super) fn pinned(handle: u64, name: &str) -> Result<PinnedObject> {
    PinnedObject::table().get(handle, name)
}

/// Allocates page-locked host memory for a device, with unspecified contents. Every device can use it.
///
/// Threads may use the memory one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_pinned_create(device: i32, bytes: usize, pinned: *mut sv_pinned) -> i32 {
    guard::call("sv_pinned_create", || {
        let result = out(pinned, "pinned")?;
        let buffer = cuda(device, "pinned memory")?.pinned(bytes)?;
        let object = PinnedObject(Arc::new(Mutex::new(PinnedState::Idle(buffer))));
        result.write(PinnedObject::table().insert(object)?);
        Ok(())
    })
}

/// Writes the address and the number of bytes of pinned memory. The address stays the same while the handle lives.
///
/// The caller may read and write the memory until it starts a copy, and again after `sv_pinned_wait`. During a copy this function
/// fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_pinned_data(pinned: sv_pinned, data: *mut *mut c_void, bytes: *mut usize) -> i32 {
    guard::call("sv_pinned_data", || {
        let (data, bytes) = (out(data, "data")?, out(bytes, "bytes")?);
        let object = self::pinned(pinned, "pinned")?;
        match &mut *object.lock() {
            PinnedState::Idle(buffer) => {
                bytes.write(buffer.len());
                data.write(buffer.as_mut_ptr().cast());
                Ok(())
            }
            other => Err(other.busy()),
        }
    })
}

/// Starts a copy of all pinned memory to a buffer, from the byte at `offset` on. The host does not wait.
///
/// The copy has the memory until `sv_pinned_wait`: the caller must not touch it. During a capture the graph takes the memory, and
/// `sv_executable_graph_host` gives access to it. Releasing the handle is allowed at any time.
#[unsafe(no_mangle)]
pub extern "C" fn sv_pinned_upload(
    stream: sv_stream,
    pinned: sv_pinned,
    buffer: sv_buffer,
    offset: u64,
) -> i32 {
    guard::call("sv_pinned_upload", || {
        let stream = self::stream(stream, "stream")?;
        let (object, buffer) = (self::pinned(pinned, "pinned")?, self::buffer(buffer, "buffer")?);
        let mut state = object.lock();
        let memory = state.take_idle()?;
        match buffer.slices(offset, memory.len(), "buffer") {
            Ok((_, mut to)) => state.started(stream.upload_async(memory, &mut to)),
            Err(failure) => {
                *state = PinnedState::Idle(memory);
                Err(failure)
            }
        }
    })
}

/// Starts a copy of bytes of a buffer, from `offset` on, to all pinned memory, behind the work that writes them. The host
/// does not wait.
///
/// As `sv_pinned_upload` otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn sv_pinned_download(
    stream: sv_stream,
    buffer: sv_buffer,
    offset: u64,
    pinned: sv_pinned,
) -> i32 {
    guard::call("sv_pinned_download", || {
        let stream = self::stream(stream, "stream")?;
        let (buffer, object) = (self::buffer(buffer, "buffer")?, self::pinned(pinned, "pinned")?);
        let mut state = object.lock();
        let memory = state.take_idle()?;
        match buffer.slices(offset, memory.len(), "buffer") {
            Ok((from, _)) => state.started(stream.download_async(&from, memory)),
            Err(failure) => {
                *state = PinnedState::Idle(memory);
                Err(failure)
            }
        }
    })
}

/// Waits for the copy that has pinned memory, and gives the memory back. Does nothing where no copy has it.
///
/// Returns the error of a kernel that faulted or reported one; the memory is then given up, and the handle can only be released.
#[unsafe(no_mangle)]
pub extern "C" fn sv_pinned_wait(pinned: sv_pinned) -> i32 {
    guard::call("sv_pinned_wait", || {
        let object = self::pinned(pinned, "pinned")?;
        let mut state = object.lock();
        match std::mem::replace(&mut *state, PinnedState::Lost) {
            PinnedState::Copying(transfer) => {
                *state = PinnedState::Idle(transfer.wait()?);
                Ok(())
            }
            PinnedState::Idle(buffer) => {
                *state = PinnedState::Idle(buffer);
                Ok(())
            }
            other => {
                *state = other;
                Err(state.busy())
            }
        }
    })
}

/// Gives a tensor of the CPU whose elements are the bytes of pinned memory, without a copy. DLPack exports it as pinned memory.
///
/// The memory has exactly the elements' bytes, and belongs to the tensor afterwards: the handle can only be released, and an
/// address of `sv_pinned_data` must no longer be used. A call that refuses an argument leaves the memory to the handle.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_from_pinned(
    pinned: sv_pinned,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_from_pinned", result, || {
        let object = self::pinned(pinned, "pinned")?;
        let (dtype, shape) = (self::dtype(dtype)?, sizes(shape, rank)?);
        let mut state = object.lock();
        match Tensor::from_pinned_bytes(state.take_idle()?, dtype, &shape) {
            Ok(tensor) => {
                *state = PinnedState::Tensor;
                Ok(tensor)
            }
            Err((error, memory)) => {
                *state = PinnedState::Idle(memory);
                Err((*error).into())
            }
        }
    })
}

/// Writes 1 if no copy has pinned memory or its copy is done, else 0. `sv_pinned_wait` still gives the memory back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_pinned_is_complete(pinned: sv_pinned, complete: *mut i32) -> i32 {
    guard::call("sv_pinned_is_complete", || {
        let complete = out(complete, "complete")?;
        let object = self::pinned(pinned, "pinned")?;
        let state = object.lock();
        let done = match &*state {
            PinnedState::Idle(_) => true,
            PinnedState::Copying(transfer) => transfer.is_complete()?,
            other => return Err(other.busy()),
        };
        complete.write(i32::from(done));
        Ok(())
    })
}
