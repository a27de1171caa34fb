//! DLPack: tensors that are shared with other libraries without a copy.
//!
//! `sv_tensor_to_dlpack` gives a `DLManagedTensorVersioned *` of `dlpack.h` 1.x, and `sv_tensor_from_dlpack` takes one over; the
//! functions named `legacy` do so with a `DLManagedTensor *`. Pointers are `void *` here, so that this header needs no other.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::arguments::out;
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, sv_tensor};
use super::tensor::{TensorObject, give};
use crate::driver::Stream;
use crate::tensor::Tensor;
use crate::tensor::dlpack::{
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_IS_COPIED, ManagedStruct,
};

/// Exports a copy of the elements, to which the consumer may write.
pub const SV_DLPACK_COPY: u32 = 1;
/// Exports elements to which the consumer may write. The tensor shows its writes.
pub const SV_DLPACK_WRITABLE: u32 = 2;

/// No stream: the consumer orders its work itself.
pub const SV_DLPACK_NO_STREAM: i64 = -1;
/// The legacy default stream.
pub const SV_DLPACK_LEGACY_STREAM: i64 = 1;
/// The default stream of the calling thread.
pub const SV_DLPACK_PER_THREAD_STREAM: i64 = 2;

/// Returns the consumer's stream for a tensor on a CUDA device.
///
/// # Safety
///
/// A number that is not named is a live `CUstream`.
unsafe fn consumer(tensor: &Tensor, stream: i64) -> Result<Option<Stream>> {
    let device = tensor.device();
    let Some(device) = device.as_cuda() else { return Ok(None) };
    let raw = match stream {
        SV_DLPACK_NO_STREAM => return Ok(None),
        SV_DLPACK_LEGACY_STREAM => std::ptr::null_mut(),
        stream if stream > 1 => std::ptr::with_exposed_provenance_mut(stream as usize),
        other => {
            let wanted =
                "SV_DLPACK_NO_STREAM, SV_DLPACK_LEGACY_STREAM, SV_DLPACK_PER_THREAD_STREAM or a CUstream";
            return Err(Failure::argument("stream", other, wanted));
        }
    };
    Ok(Some(Stream::from_raw(device, raw)?))
}

/// Exports a tensor and writes the address of its struct.
///
/// # Safety
///
/// As [`sv_tensor_to_dlpack`].
unsafe fn export<M: ManagedStruct>(
    function: &'static str,
    tensor: u64,
    flags: u32,
    stream: i64,
    managed: *mut *mut c_void,
) -> i32 {
    guard::call(function, || {
        let result = out(managed, "managed")?;
        let shared = super::tensor::tensor(tensor, "tensor")?;
        let consumer = consumer(&shared, stream)?;
        let consumer = consumer.as_ref();
        let managed: NonNull<M> = match flags {
            0 => M::export(shared, consumer, crate::tensor::dlpack::DLPACK_FLAG_READ_ONLY)?,
            SV_DLPACK_COPY => M::export(shared.copy()?, consumer, DLPACK_FLAG_IS_COPIED)?,
            SV_DLPACK_WRITABLE => {
                // A clone would share the elements, which are then copied.
                drop(shared);
                TensorObject::table().with_mut(tensor, "tensor", |tensor| {
                    // SAFETY: the caller vouches for the consumer's writes.
                    Ok(unsafe { tensor.tensor_mut().share_dlpack(consumer)? })
                })?
            }
            other => {
                return Err(Failure::argument("flags", other, "0, SV_DLPACK_COPY or SV_DLPACK_WRITABLE"));
            }
        };
        result.write(managed.as_ptr().cast());
        Ok(())
    })
}

/// Exports a tensor's elements without a copy, as a `DLManagedTensorVersioned *` of DLPack 1.x.
///
/// The consumer calls the struct's deleter once; until then the elements live, whatever happens to the handle. `flags` is 0
/// for a consumer that only reads (the struct says so), `SV_DLPACK_COPY` for a copy, or `SV_DLPACK_WRITABLE` for elements that
/// both sides may write. `SV_DLPACK_WRITABLE` copies elements that other tensors share.
///
/// `stream` is the consumer's stream, as `__dlpack__` of the Python array API has it: `SV_DLPACK_NO_STREAM`,
/// `SV_DLPACK_LEGACY_STREAM`, `SV_DLPACK_PER_THREAD_STREAM` or a `CUstream`. That stream waits for the work that writes the
/// elements, and their memory is reused behind its work up to the deleter's call; the host does not wait. For a tensor on the
/// CPU it has no meaning. The stream of the thread is ordered through the legacy default stream. A tensor of
/// `sv_tensor_from_pinned` is exported as pinned memory (device type 3).
///
/// Any thread may call the deleter.
///
/// # Safety
///
/// A `CUstream` is live until the deleter is called. The consumer writes to the elements only as `flags` allow, and ordered with
/// this library's uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_to_dlpack(
    tensor: sv_tensor,
    flags: u32,
    stream: i64,
    managed: *mut *mut c_void,
) -> i32 {
    export::<DLManagedTensorVersioned>("sv_tensor_to_dlpack", tensor, flags, stream, managed)
}

/// Exports as `sv_tensor_to_dlpack`, as a `DLManagedTensor *` of DLPack before 1.0. It has no flags, so it does not tell the
/// consumer that it may only read.
///
/// Any thread may call the deleter.
///
/// # Safety
///
/// As for `sv_tensor_to_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_to_dlpack_legacy(
    tensor: sv_tensor,
    flags: u32,
    stream: i64,
    managed: *mut *mut c_void,
) -> i32 {
    export::<DLManagedTensor>("sv_tensor_to_dlpack_legacy", tensor, flags, stream, managed)
}

/// Returns the struct at a pointer.
fn managed_at<M>(managed: *mut c_void) -> Result<NonNull<M>> {
    let managed = NonNull::new(managed.cast::<M>());
    let managed = managed.ok_or_else(|| Failure::argument("managed", "NULL", "a pointer"))?;
    if !managed.is_aligned() {
        let found = format!("{managed:p}");
        return Err(Failure::argument("managed", found, "an address aligned to 8 bytes"));
    }
    Ok(managed)
}

/// Takes over the array of a `DLManagedTensorVersioned *` without a copy.
///
/// The array is on the CPU, in pinned memory or on a CUDA device. On a CUDA device the producer orders its work before the
/// stream of this thread's operations first: `sv_stream_current` and `sv_stream_raw` give that stream for `__dlpack__(stream)`.
/// The first write to the tensor copies the elements, whatever the producer's flags say: the producer, other imports of its
/// array and views of the tensor never see a write of this library.
///
/// The deleter is called once, when no tensor shares the elements any more and all work on them is done, on the thread that finds
/// this out. If the call fails, the struct stays the caller's, who calls the deleter.
///
/// # Safety
///
/// `managed` points to a struct as DLPack describes it, which nobody else takes over. Until the deleter is called, other code
/// uses the elements ordered with this library's uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_from_dlpack(managed: *mut c_void, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_from_dlpack", result, || Ok(Tensor::from_dlpack(managed_at(managed)?)?))
}

/// Takes over an array as `sv_tensor_from_dlpack`, of a `DLManagedTensor *` from before DLPack 1.0.
///
/// # Safety
///
/// As for `sv_tensor_from_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_from_dlpack_legacy(managed: *mut c_void, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_from_dlpack_legacy", result, || {
        Ok(Tensor::from_dlpack_legacy(managed_at::<DLManagedTensor>(managed)?)?)
    })
}
