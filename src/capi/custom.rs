//! Custom kernels as operations of tensors: callbacks for the CPU and for CUDA devices.

use std::ffi::c_void;
use std::sync::Arc;

use super::arguments::{slice, slice_mut, structure};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, sv_stream, sv_tensor};
use super::status;
use super::stream::StreamObject;
use super::tensor::{device, dtype, dtype_code, enter_all, sizes, tensors};
use crate::tensor::Tensor;
use crate::tensor::kernel::{Output, run_addresses};
use crate::types::{DType, Shape};

/// An array that a callback reads or writes: adjacent elements in row-major order. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_array {
    /// The first element: an address of the host, or of the CUDA device.
    pub data: *mut c_void,
    /// The bytes of all elements.
    pub bytes: u64,
    /// One of `SV_DTYPE_...`.
    pub dtype: i32,
    /// The number of dimensions.
    pub rank: i32,
    /// The sizes of the dimensions, valid during the call.
    pub shape: *const i64,
}

/// The dtype and shape of an output. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_array_type {
    /// One of `SV_DTYPE_...`.
    pub dtype: i32,
    /// The number of dimensions.
    pub rank: i32,
    /// The sizes of the dimensions.
    pub shape: *const i64,
}

/// A callback for the CPU. It reads the inputs, writes every element of the outputs, and returns `SV_OK`, or another number
/// for an error.
#[allow(non_camel_case_types)]
pub type sv_host_kernel = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        inputs: *const sv_array,
        inputs_count: usize,
        outputs: *const sv_array,
        outputs_count: usize,
    ) -> i32,
>;

/// A callback for CUDA devices. It issues work to `stream`, a stream handle that is valid during the call (`sv_stream_raw`
/// gives its `CUstream`), that reads the inputs and writes every element of the outputs. It returns `SV_OK`, or another number
/// for an error. The work may still be running when it returns.
#[allow(non_camel_case_types)]
pub type sv_cuda_kernel = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        stream: sv_stream,
        inputs: *const sv_array,
        inputs_count: usize,
        outputs: *const sv_array,
        outputs_count: usize,
    ) -> i32,
>;

/// A custom operation. A callback that is NULL makes the operation unsupported on its kind of device.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_custom_operation {
    /// The size of the struct in bytes.
    pub size: usize,
    /// The callback for tensors on the CPU.
    pub host: sv_host_kernel,
    /// The callback for tensors on CUDA devices.
    pub cuda: sv_cuda_kernel,
    /// The first argument of the callbacks.
    pub user: *mut c_void,
}

const OPERATION: &str = "a custom operation";

/// The dtype and the shape of an operand, for as long as its struct points to the shape.
struct Described {
    dtype: DType,
    shape: Vec<i64>,
}

impl Described {
    fn new(dtype: DType, shape: &Shape) -> Described {
        Described { dtype, shape: shape.iter().map(|size| *size as i64).collect() }
    }

    fn array(&self, data: *mut u8) -> sv_array {
        let count: i64 = self.shape.iter().product();
        sv_array {
            data: data.cast(),
            bytes: count as u64 * self.dtype.size() as u64,
            dtype: dtype_code(self.dtype),
            rank: self.shape.len() as i32,
            shape: self.shape.as_ptr(),
        }
    }
}

fn arrays(of: &[Described], data: impl Iterator<Item = *mut u8>) -> Vec<sv_array> {
    of.iter().zip(data).map(|(described, data)| described.array(data)).collect()
}

/// The error of a callback that returned another number than `SV_OK`.
fn failed(code: i32) -> crate::Error {
    crate::Error::invalid(OPERATION, format!("a callback that returned {code}"), "SV_OK")
}

fn missing(device: &str) -> Failure {
    let message = format!("operation: found no callback for {device}; wanted one, or tensors elsewhere");
    Failure { status: status::SV_ERROR_UNSUPPORTED, message }
}

/// Runs a custom operation on tensors of one device, and writes its results. Inputs that are not contiguous are copied first.
/// `device` is the device of the tensors, and of the results.
///
/// On a CUDA device the callback's work is ordered with all other uses of the tensors. The caller owns one reference to each of
/// `results`. The callback runs on the same thread, and may call this library.
///
/// # Safety
///
/// `operation` points to a struct with its size set, whose callbacks keep to the inputs and outputs. `inputs` points to
/// `inputs_count` handles, `outputs` to `outputs_count` structs with their shapes, and `results` to `outputs_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_custom_run(
    operation: *const sv_custom_operation,
    device: i32,
    inputs: *const sv_tensor,
    inputs_count: usize,
    outputs: *const sv_array_type,
    outputs_count: usize,
    results: *mut sv_tensor,
) -> i32 {
    guard::call("sv_custom_run", || {
        let (operation, results, types) = (
            structure(operation, "operation")?,
            slice_mut(results, outputs_count, "results")?,
            slice(outputs, outputs_count, "outputs")?,
        );
        let device = self::device(device)?;
        if types.is_empty() {
            return Err(Failure::argument("outputs_count", 0, "at least 1"));
        }
        match device.is_cpu() {
            true if operation.host.is_none() => return Err(missing("the CPU")),
            false if operation.cuda.is_none() => return Err(missing("CUDA devices")),
            _ => {}
        }
        let inputs = tensors(inputs, inputs_count, "inputs")?;
        let inputs = inputs.iter().map(Tensor::contiguous).collect::<crate::Result<Vec<_>>>()?;
        let mut outputs = Vec::new();
        for output in types {
            let rank = usize::try_from(output.rank)
                .map_err(|_| Failure::argument("outputs.rank", output.rank, "a rank from 0 on"))?;
            let shape = sizes(output.shape, rank)?;
            outputs.push(Output::new(&device, dtype(output.dtype)?, &shape)?);
        }
        let of_inputs: Vec<Described> =
            inputs.iter().map(|input| Described::new(input.dtype(), input.shape())).collect();
        let of_outputs: Vec<Described> =
            outputs.iter().map(|output| Described::new(output.dtype(), output.shape())).collect();
        run_addresses(
            OPERATION,
            &inputs,
            &mut outputs,
            |sources, targets| {
                let Some(host) = operation.host else { return Err(failed(status::SV_ERROR_UNSUPPORTED)) };
                let inputs = arrays(&of_inputs, sources.iter().map(|source| source.cast_mut()));
                let outputs = arrays(&of_outputs, targets.iter().copied());
                // SAFETY: the arrays describe memory that is there, and the caller vouches for the callback.
                let code = unsafe {
                    host(operation.user, inputs.as_ptr(), inputs.len(), outputs.as_ptr(), outputs.len())
                };
                if code == status::SV_OK { Ok(()) } else { Err(failed(code)) }
            },
            |stream, sources, targets| {
                let Some(cuda) = operation.cuda else { return Err(failed(status::SV_ERROR_UNSUPPORTED)) };
                let inputs = arrays(&of_inputs, sources.iter().map(|source| source.cast_mut()));
                let outputs = arrays(&of_outputs, targets.iter().copied());
                let table = StreamObject::table();
                let handle = table
                    .insert(StreamObject(Arc::new(stream.clone())))
                    .map_err(|error| crate::Error::invalid(OPERATION, error.message, "a free handle"))?;
                // SAFETY: as above.
                let code = unsafe {
                    cuda(
                        operation.user,
                        handle,
                        inputs.as_ptr(),
                        inputs.len(),
                        outputs.as_ptr(),
                        outputs.len(),
                    )
                };
                // The callback may have released the handle itself, which is then no longer valid.
                let _ = table.release(handle, "stream");
                if code == status::SV_OK { Ok(()) } else { Err(failed(code)) }
            },
        )?;
        let handles: Result<Vec<u64>> = enter_all(outputs.into_iter().map(Output::into_tensor));
        results.copy_from_slice(&handles?);
        Ok(())
    })
}
