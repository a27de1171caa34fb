//! DLPack capsules: `__dlpack__`, `__dlpack_device__` and `from_dlpack`.
//!
//! A tensor is exported without a copy and read-only, because a tensor never sees its elements change. A consumer that knows
//! no read-only flag (DLPack before 1.0) gets a copy.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use selvedge::driver::Stream;
use selvedge::tensor::dlpack::{
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION,
};
use selvedge::{Device, Tensor};

use crate::arguments::InRange;
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::exchange;
use crate::tensor::PyTensor;

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
/// DLPack's number of the CPU.
pub const CPU: i32 = 1;
/// DLPack's number of CUDA devices.
pub const CUDA: i32 = 2;
/// DLPack's number of page-locked memory of the CPU.
const CUDA_HOST: i32 = 3;

/// Frees the array of a capsule that no consumer took.
unsafe extern "C" fn free_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls it with a capsule of `export`. One that was taken has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast::<DLManagedTensor>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

/// Frees the array of a capsule that no consumer took.
unsafe extern "C" fn free_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            let managed =
                ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    name: &'static CStr,
    free: ffi::PyCapsule_Destructor,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is not null, the name lives for ever, and a new reference or null is returned.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(free))) }
}

/// Returns DLPack's kind and number of a tensor's device.
fn device_of(tensor: &Tensor) -> (i32, i32) {
    match tensor.device().as_cuda() {
        Some(device) => (CUDA, device.ordinal() as i32),
        None if tensor.is_pinned() => (CUDA_HOST, 0),
        None => (CPU, 0),
    }
}

/// Returns the stream that a consumer named, which waits for the elements.
fn consumer(device: &Device, stream: Option<isize>) -> Result<Option<Stream>> {
    let wanted = "None, -1, 1, 2 or the address of a stream";
    let refused = |stream: isize| invalid("__dlpack__", format!("stream={stream}"), wanted);
    if let Some(number) = stream.filter(|number| *number < -1) {
        return Err(refused(number).into());
    }
    let Some(cuda) = device.as_cuda() else { return Ok(None) };
    // Of no stream the standard says that it is the legacy default stream.
    match stream.unwrap_or(1) {
        -1 => Ok(None),
        number if number <= 0 => Err(refused(number).into()),
        number => {
            let raw = std::ptr::with_exposed_provenance_mut::<c_void>(number as usize);
            // SAFETY: the caller of `__dlpack__` vouches for its stream; 1 and 2 are the driver's names of default streams.
            Ok(Some(unsafe { Stream::from_raw(cuda, raw)? }))
        }
    }
}

#[pymethods]
impl PyTensor {
    fn __dlpack_device__(&self, py: Python<'_>) -> (i32, i32) {
        device_of(&self.tensor(py))
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<InRange<isize>>,
        max_version: Option<(InRange<u32>, InRange<u32>)>,
        dl_device: Option<(InRange<i32>, InRange<i32>)>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let is_legacy = max_version.is_none_or(|(major, _)| major.0 < DLPACK_MAJOR_VERSION);
        let mut tensor = self.tensor(py);
        let other = dl_device
            .map(|(kind, ordinal)| (kind.0, ordinal.0))
            .filter(|wanted| *wanted != device_of(&tensor));
        if let Some(wanted) = other.filter(|wanted| wanted.0 != CPU) {
            let text = format!(
                "__dlpack__: found dl_device={wanted:?}; wanted the device of the tensor, or the CPU"
            );
            return Err(PyBufferError::new_err(text).into());
        }
        if copy == Some(false) && (is_legacy || other.is_some()) {
            let text = "__dlpack__: found copy=False; wanted a consumer of DLPack 1.0 on the device of the tensor, as all \
                        others get a copy";
            return Err(PyBufferError::new_err(text).into());
        }
        if other.is_some() {
            // A copy of pinned memory is ordinary memory.
            let move_out = || if tensor.is_pinned() { tensor.copy() } else { tensor.to(&Device::cpu()) };
            tensor = py.detach(move_out)?;
        }
        let is_owned = is_legacy || copy == Some(true);
        let consumer = consumer(&tensor.device(), stream.map(|stream| stream.0))?;
        if is_legacy {
            let managed = py.detach(|| tensor.into_dlpack_legacy(consumer.as_ref()).map(SendPointer))?;
            return Ok(capsule(py, managed.0.as_ptr().cast(), LEGACY, free_legacy)?);
        }
        let managed = py.detach(|| {
            match is_owned {
                true => tensor.into_dlpack(consumer.as_ref()),
                false => tensor.to_dlpack(consumer.as_ref()),
            }
            .map(SendPointer)
        })?;
        Ok(capsule(py, managed.0.as_ptr().cast(), VERSIONED, free_versioned)?)
    }
}

/// A pointer that crosses the end of a detached part.
struct SendPointer<T>(NonNull<T>);

// SAFETY: DLPack lets any thread use the struct, and one owns it at a time.
unsafe impl<T> Send for SendPointer<T> {}

/// Asks an object for its array, at our version of DLPack if it knows versions.
fn request<'py>(array: &Bound<'py, PyAny>, stream: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let arguments = PyDict::new(py);
    if let Some(stream) = stream {
        arguments.set_item("stream", stream)?;
    }
    arguments.set_item("max_version", (DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION))?;
    match array.call_method("__dlpack__", (), Some(&arguments)) {
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
            arguments.del_item("max_version")?;
            array.call_method("__dlpack__", (), Some(&arguments))
        }
        result => result,
    }
}

/// Takes over the array of an object with `__dlpack__`, without a copy.
pub fn import(array: &Bound<'_, PyAny>) -> Result<Tensor> {
    if let Some(tensor) = exchange::import(array)? {
        return Ok(tensor);
    }
    let py = array.py();
    if !array.hasattr("__dlpack__")? || !array.hasattr("__dlpack_device__")? {
        let wanted = "an object with __dlpack__ and __dlpack_device__";
        return Err(wrong_type("from_dlpack", type_name(array), wanted).into());
    }
    let (kind, ordinal) = array.call_method0("__dlpack_device__")?.extract::<(i32, i32)>()?;
    let stream = match (kind, usize::try_from(ordinal)) {
        (CUDA, Ok(ordinal)) => {
            let stream = py.detach(|| Device::cuda(ordinal)?.stream())?;
            Some(stream.as_raw().expose_provenance())
        }
        _ => None,
    };
    let capsule = request(array, stream)?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.as_ptr();
    // SAFETY: the capsule is held. Its name says which struct it has, and that nobody took it over; renaming it takes it over.
    unsafe {
        if ffi::PyCapsule_IsValid(pointer, VERSIONED.as_ptr()) == 1 {
            let managed =
                ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            let managed = NonNull::new(managed).ok_or_else(|| PyErr::fetch(py))?;
            let tensor = Tensor::from_dlpack(managed)?;
            ffi::PyCapsule_SetName(pointer, c"used_dltensor_versioned".as_ptr());
            return Ok(tensor);
        }
        if ffi::PyCapsule_IsValid(pointer, LEGACY.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(pointer, LEGACY.as_ptr()).cast::<DLManagedTensor>();
            let managed = NonNull::new(managed).ok_or_else(|| PyErr::fetch(py))?;
            let tensor = Tensor::from_dlpack_legacy(managed)?;
            ffi::PyCapsule_SetName(pointer, c"used_dltensor".as_ptr());
            return Ok(tensor);
        }
    }
    Err(invalid("from_dlpack", "a capsule of another name", "dltensor or dltensor_versioned").into())
}
