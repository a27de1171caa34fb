//! Callbacks of custom operations on a CUDA device, and the streams of DLPack's consumers.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{null, null_mut};

use selvedge::capi::custom::*;
use selvedge::capi::dlpack::*;
use selvedge::capi::library::*;
use selvedge::capi::pinned::*;
use selvedge::capi::status::*;
use selvedge::capi::stream::*;
use selvedge::capi::tensor::copies::*;
use selvedge::capi::tensor::creation::*;
use selvedge::capi::tensor::{SV_DTYPE_F32, SV_DTYPE_I64, properties};
use selvedge::tensor::dlpack::{DLManagedTensor, DLManagedTensorVersioned};

use super::{Outcome, message, stream};
use crate::support::Fake;

/// The argument of the callback.
struct User<'a> {
    fake: &'a Fake,
    /// The callback's result.
    answer: i32,
    /// The callback releases the stream's handle, which belongs to the library.
    releases: bool,
    stream: u64,
    calls: u32,
    seen: String,
}

/// Copies the first input to the first output on the operation's stream.
unsafe extern "C" fn copy(
    user: *mut c_void,
    stream: u64,
    inputs: *const sv_array,
    inputs_count: usize,
    outputs: *const sv_array,
    outputs_count: usize,
) -> i32 {
    // SAFETY: `user` is the test's, and the arrays are valid during the call.
    let (user, input, output, shape) = unsafe {
        let (input, output) = (&*inputs, &*outputs);
        let shape = std::slice::from_raw_parts(output.shape, output.rank as usize);
        (&mut *user.cast::<User<'_>>(), input, output, shape)
    };
    (user.stream, user.calls) = (stream, user.calls + 1);
    user.seen = format!("{inputs_count} {outputs_count} {} {} {shape:?}", input.bytes, output.bytes);
    let mut raw = null_mut();
    // SAFETY: the pointer is to a local, and the driver's function has this type.
    unsafe {
        if sv_stream_raw(stream, &mut raw) != SV_OK || (user.releases && sv_release(stream) != SV_OK) {
            return -1;
        }
        type Copy = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> i32;
        let Ok(copy) = user.fake.driver::<Copy>("cuMemcpyDtoDAsync_v2") else { return -2 };
        let (target, source) = (output.data.addr() as u64, input.data.addr() as u64);
        match copy(target, source, output.bytes as usize, raw) {
            0 => user.answer,
            _ => -3,
        }
    }
}

/// A matrix on device 0, uploaded on the stream that is pushed.
fn matrix(data: &[f32], rows: i64, device: i32) -> Result<u64, Box<dyn std::error::Error>> {
    let (shape, mut tensor) = ([rows, data.len() as i64 / rows], 0);
    let (pointer, bytes) = (data.as_ptr().cast(), size_of_val(data));
    ok!(sv_tensor_from_host(pointer, bytes, SV_DTYPE_F32, shape.as_ptr(), 2, device, &mut tensor));
    Ok(tensor)
}

fn elements(tensor: u64) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let mut count = 0;
    ok!(properties::sv_tensor_count(tensor, &mut count));
    let mut data = vec![0f32; count as usize];
    ok!(sv_tensor_to_host(tensor, data.as_mut_ptr().cast(), 4 * data.len()));
    Ok(data)
}

pub fn callbacks(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let mut user = User { fake, answer: SV_OK, releases: false, stream: 0, calls: 0, seen: String::new() };
    let pointer = &raw mut user;
    let size = size_of::<sv_custom_operation>();
    let operation = sv_custom_operation { size, host: None, cuda: Some(copy), user: pointer.cast() };
    let (first, second) = (stream(0)?, stream(0)?);
    let data: Vec<f32> = (0..12).map(|number| number as f32).collect();
    ok!(sv_stream_push(first));
    let x = matrix(&data, 3, 0)?;
    let shape = [4i64, 3];
    let output = sv_array_type { dtype: SV_DTYPE_F32, rank: 2, shape: shape.as_ptr() };
    let (mut y, mut z) = (0, 0);
    ok!(sv_custom_run(&operation, 0, &x, 1, &output, 1, &mut y));
    ok!(sv_stream_pop());
    // The second stream waits for the first, and the host for neither.
    ok!(sv_stream_push(second));
    let count = |name: &str| fake.call_count(name);
    let waits = || count("cuStreamSynchronize") + count("cuEventSynchronize") + count("cuCtxSynchronize");
    let before = (waits(), count("cuStreamWaitEvent"));
    ok!(sv_custom_run(&operation, 0, &y, 1, &output, 1, &mut z));
    let after = (waits(), count("cuStreamWaitEvent"));
    if after != (before.0, before.1 + 1) {
        return Err(format!("waits of the host and of the stream: {before:?}, then {after:?}").into());
    }
    ok!(sv_stream_pop());
    // SAFETY: the callback is not running.
    let (handle, calls, seen) = unsafe { ((*pointer).stream, (*pointer).calls, (*pointer).seen.clone()) };
    if (calls, seen.as_str()) != (2, "1 1 48 48 [4, 3]") {
        return Err(format!("{calls} calls, the last with {seen}").into());
    }
    // The handle of the stream was the call's.
    answers!(SV_ERROR_INVALID_HANDLE, sv_stream_synchronize(handle));
    // The inputs go while the copies still run.
    ok!(sv_release(x));
    ok!(sv_release(y));
    if elements(z)? != data {
        return Err("the callback's work was overtaken".into());
    }
    // A callback that ends its stream's handle itself, and one that fails.
    // SAFETY: as above.
    unsafe { (*pointer).releases = true };
    let mut result = 0;
    ok!(sv_custom_run(&operation, 0, &z, 1, &output, 1, &mut result));
    ok!(sv_release(result));
    // SAFETY: as above.
    unsafe { ((*pointer).releases, (*pointer).answer) = (false, 42) };
    result = 7;
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_custom_run(&operation, 0, &z, 1, &output, 1, &mut result));
    says!("a callback that returned 42");
    let none = sv_custom_operation { cuda: None, ..operation };
    answers!(SV_ERROR_UNSUPPORTED, sv_custom_run(&none, 0, &z, 1, &output, 1, &mut result));
    says!("no callback for CUDA devices");
    // Tensors elsewhere.
    answers!(SV_ERROR_DEVICE_MISMATCH, sv_custom_run(&operation, 1, &z, 1, &output, 1, &mut result));
    let host = matrix(&data, 3, -1)?;
    answers!(SV_ERROR_DEVICE_MISMATCH, sv_custom_run(&operation, 0, &host, 1, &output, 1, &mut result));
    let wrong = sv_array_type { rank: -1, ..output };
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_custom_run(&operation, 0, &z, 1, &wrong, 1, &mut result));
    // Two outputs, of which the callback writes the first.
    let integers = sv_array_type { dtype: SV_DTYPE_I64, rank: 0, shape: null() };
    let mut results = [0; 2];
    // SAFETY: as above.
    unsafe { (*pointer).answer = SV_OK };
    ok!(sv_custom_run(&operation, 0, &z, 1, [output, integers].as_ptr(), 2, results.as_mut_ptr()));
    // SAFETY: as above.
    let seen = unsafe { (*pointer).seen.clone() };
    if result != 7 || seen != "1 2 48 48 [4, 3]" || elements(results[0])? != data {
        return Err(format!("result {result}, the callback saw {seen}").into());
    }
    for handle in [results[0], results[1], host, z, first, second] {
        ok!(sv_release(handle));
    }
    Ok(())
}

pub fn streams(fake: &Fake) -> Outcome {
    fake.set_strict(true);
    let own = stream(0)?;
    let mut raw = null_mut();
    ok!(sv_stream_raw(own, &mut raw));
    let x = matrix(&[1.0, 2.0, 3.0, 4.0], 2, 0)?;
    let mut managed = null_mut();
    for refused in [0, -2, i64::MIN] {
        answers!(SV_ERROR_INVALID_ARGUMENT, sv_tensor_to_dlpack(x, 0, refused, &mut managed));
        says!("stream");
    }
    fake.set_default_streams(true);
    let named = raw.addr() as i64;
    for stream in [SV_DLPACK_NO_STREAM, SV_DLPACK_LEGACY_STREAM, SV_DLPACK_PER_THREAD_STREAM, named] {
        for flags in [0, SV_DLPACK_COPY, SV_DLPACK_WRITABLE] {
            let waits = fake.call_count("cuStreamWaitEvent");
            ok!(sv_tensor_to_dlpack(x, flags, stream, &mut managed));
            let waited = fake.call_count("cuStreamWaitEvent") > waits;
            // A wait for the same write is not repeated; a copy is a write of its own.
            if (flags == SV_DLPACK_COPY && waited != (stream != SV_DLPACK_NO_STREAM))
                || (stream == SV_DLPACK_NO_STREAM && waited)
            {
                return Err(format!("stream {stream}, flags {flags}: waited is {waited}").into());
            }
            let mut back = 0;
            // SAFETY: the export is live.
            let device = unsafe { (*managed.cast::<DLManagedTensorVersioned>()).dl_tensor.device };
            ok!(sv_tensor_from_dlpack(managed, &mut back));
            // A copy is made by a kernel, for which the fake driver writes other numbers.
            let found = elements(back)?;
            let same = flags == SV_DLPACK_COPY || found == [1.0, 2.0, 3.0, 4.0];
            if (device.device_type, device.device_id) != (2, 0) || !same {
                return Err(format!("stream {stream}, flags {flags}: {device:?}, {found:?}").into());
            }
            ok!(sv_release(back));
        }
    }
    ok!(sv_release(x));
    ok!(sv_release(own));
    Ok(())
}

pub fn pinned(_: &Fake) -> Outcome {
    let (mut memory, mut data, mut bytes, mut tensor): (_, *mut c_void, _, _) = (0, null_mut(), 0, 0);
    ok!(sv_pinned_create(0, 24, &mut memory));
    ok!(sv_pinned_data(memory, &mut data, &mut bytes));
    // SAFETY: the memory has 24 bytes, and no copy has it.
    unsafe { data.cast::<f32>().copy_from_nonoverlapping([1.0, 2.0, 3.0, 4.0, 5.0, 6.0].as_ptr(), 6) };
    // A refusal leaves the memory to the handle.
    let shape = [2, 3].as_ptr();
    answers!(SV_ERROR_LENGTH_MISMATCH, sv_tensor_from_pinned(memory, SV_DTYPE_I64, shape, 2, &mut tensor));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_tensor_from_pinned(memory, SV_DTYPE_F32, shape, 2, null_mut()));
    ok!(sv_pinned_data(memory, &mut data, &mut bytes));
    ok!(sv_tensor_from_pinned(memory, SV_DTYPE_F32, shape, 2, &mut tensor));
    let mut again = 0;
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_tensor_from_pinned(memory, SV_DTYPE_F32, shape, 2, &mut again));
    answers!(SV_ERROR_INVALID_ARGUMENT, sv_pinned_data(memory, &mut data, &mut bytes));
    if again != 0 || !message().contains("memory of a tensor") {
        return Err(format!("handle {again}: {}", message()).into());
    }
    ok!(sv_release(memory));
    let (mut versioned, mut legacy, mut back) = (null_mut(), null_mut(), 0);
    ok!(sv_tensor_to_dlpack(tensor, 0, SV_DLPACK_NO_STREAM, &mut versioned));
    ok!(sv_tensor_to_dlpack_legacy(tensor, 0, SV_DLPACK_NO_STREAM, &mut legacy));
    ok!(sv_release(tensor));
    // SAFETY: the exports are live.
    let exports = unsafe {
        let exports = [
            (*versioned.cast::<DLManagedTensorVersioned>()).dl_tensor,
            (*legacy.cast::<DLManagedTensor>()).dl_tensor,
        ];
        exports.map(|tensor| (tensor.device.device_type, tensor.device.device_id))
    };
    ok!(sv_tensor_from_dlpack(versioned, &mut back));
    let found = elements(back)?;
    ok!(sv_release(back));
    ok!(sv_tensor_from_dlpack_legacy(legacy, &mut back));
    if exports != [(3, 0); 2] || found != [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] || elements(back)? != found {
        return Err(format!("{exports:?}, {found:?}").into());
    }
    ok!(sv_release(back));
    Ok(())
}
