//! Copies of tensors to the host, to devices and to other dtypes, and the stream of a thread's operations.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::arguments::{out, slice_mut};
use super::super::error::Failure;
use super::super::guard;
use super::super::handle::{Object, sv_stream, sv_tensor};
use super::super::stream::{self, StreamObject};
use super::give;
use crate::driver::Stream;
use crate::tensor;

/// Copies a tensor's elements to the host, in row-major order. `bytes` is their number times the size of one. Waits for the
/// work that the tensor needs, and returns the error of a kernel that faulted.
///
/// # Safety
///
/// `data` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_to_host(tensor: sv_tensor, data: *mut c_void, bytes: usize) -> i32 {
    guard::call("sv_tensor_to_host", || {
        let tensor = super::tensor(tensor, "tensor")?;
        let wanted = tensor.count() * tensor.dtype().size();
        if bytes != wanted {
            let wanted = format!("{wanted} bytes for {} elements of {}", tensor.count(), tensor.dtype());
            return Err(Failure::argument("bytes", bytes, &wanted));
        }
        tensor.read(slice_mut(data.cast::<u8>(), bytes, "data")?)?;
        Ok(())
    })
}

/// Gives a tensor's elements on another device. They are shared if they are there already.
///
/// To and from the CPU the copy is done when the call returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_to_device(tensor: sv_tensor, device: i32, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_to_device", result, || Ok(super::tensor(tensor, "tensor")?.to(&super::device(device)?)?))
}

/// Gives a tensor's elements in another dtype. They are shared if they have it already. Floats become integers by dropping
/// the fraction and saturating, NaN becomes 0, and a complex number gives its real part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_cast(tensor: sv_tensor, dtype: i32, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_cast", result, || Ok(super::tensor(tensor, "tensor")?.cast(super::dtype(dtype)?)?))
}

/// Gives a tensor's elements adjacent in memory. They are shared if they are so already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_contiguous(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_contiguous", result, || Ok(super::tensor(tensor, "tensor")?.contiguous()?))
}

/// Gives a copy of a tensor's elements, adjacent in memory of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_copy(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_copy", result, || Ok(super::tensor(tensor, "tensor")?.copy()?))
}

/// Sends this thread's tensor operations on the stream's device to that stream, until `sv_stream_pop`. Calls may be nested,
/// and the last one counts. The stream stays alive meanwhile.
///
/// It concerns the calling thread alone.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_push(stream: sv_stream) -> i32 {
    guard::call("sv_stream_push", || {
        tensor::push_stream(Stream::clone(&*stream::stream(stream, "stream")?));
        Ok(())
    })
}

/// Takes back the last `sv_stream_push` of the calling thread. Without one it is `SV_ERROR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn sv_stream_pop() -> i32 {
    guard::call("sv_stream_pop", || match tensor::pop_stream() {
        true => Ok(()),
        false => Err(Failure::argument("sv_stream_pop", "no stream", "a call of sv_stream_push before it")),
    })
}

/// Gives the stream that this thread's tensor operations on a CUDA device go to.
///
/// Any thread may use the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_stream_current(device: i32, stream: *mut sv_stream) -> i32 {
    guard::call("sv_stream_current", || {
        let result = out(stream, "stream")?;
        let stream = super::device(device)?.stream()?;
        result.write(StreamObject::table().insert(StreamObject(Arc::new(stream)))?);
        Ok(())
    })
}
