//! Arrays by the buffer protocol, in and out: NumPy's, `array.array`, `memoryview`, `bytes`.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use selvedge::{DType, Device, Error, Tensor};

use crate::arguments::DTypeArgument;
use crate::dtype::numpy_dtype;
use crate::error::{Result, invalid};

/// Returns the dtype of a format of the module `struct`, `None` for another one.
fn dtype_of(format: &str, size: usize) -> Option<DType> {
    let foreign_order = if cfg!(target_endian = "little") { ['>', '!'] } else { ['<', '<'] };
    if size > 1 && format.starts_with(foreign_order) {
        return None;
    }
    let code = format.trim_start_matches(['@', '=', '<', '>', '!']);
    let dtype = match (code, size) {
        ("?", 1) => DType::Bool,
        ("b" | "h" | "i" | "l" | "q" | "n", 1) => DType::I8,
        ("b" | "h" | "i" | "l" | "q" | "n", 2) => DType::I16,
        ("b" | "h" | "i" | "l" | "q" | "n", 4) => DType::I32,
        ("b" | "h" | "i" | "l" | "q" | "n", 8) => DType::I64,
        ("B" | "H" | "I" | "L" | "Q" | "N", 1) => DType::U8,
        ("B" | "H" | "I" | "L" | "Q" | "N", 2) => DType::U16,
        ("B" | "H" | "I" | "L" | "Q" | "N", 4) => DType::U32,
        ("B" | "H" | "I" | "L" | "Q" | "N", 8) => DType::U64,
        ("e", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("d", 8) => DType::F64,
        ("Zf" | "F", 8) => DType::C64,
        ("Zd" | "D", 16) => DType::C128,
        _ => return None,
    };
    Some(dtype)
}

/// Copies an array of NumPy whose dtype the buffer protocol lacks; `None` for another object.
fn of_numpy(object: &Bound<'_, PyAny>, device: &Device) -> Result<Option<Tensor>> {
    let (Ok(dtype), Ok(_)) = (object.getattr("dtype"), object.getattr("__array_interface__")) else {
        return Ok(None);
    };
    let Ok(known) = dtype.extract::<DTypeArgument>() else {
        return Err(invalid("data", format!("an array of {dtype}"), "an array of a dtype of selvedge").into());
    };
    if dtype.getattr("isnative").and_then(|is_native| is_native.extract::<bool>()).is_ok_and(|native| !native)
    {
        let wanted = "numbers in the byte order of this machine";
        return Err(invalid("data", format!("an array of {dtype}"), wanted).into());
    }
    let shape = object.getattr("shape")?.extract::<Vec<usize>>()?;
    let bytes = object.call_method0("tobytes")?.cast_into::<PyBytes>().map_err(PyErr::from)?;
    let bytes = bytes.as_bytes();
    Ok(Some(object.py().detach(|| Tensor::from_bytes(bytes, known.0, &shape, device))?))
}

/// Copies an object with a buffer, or an array of NumPy, to a tensor; `None` for another object.
pub fn tensor(object: &Bound<'_, PyAny>, device: &Device) -> Result<Option<Tensor>> {
    let Ok(buffer) = PyUntypedBuffer::get(object) else { return of_numpy(object, device) };
    let (format, size) = (buffer.format().to_string_lossy().into_owned(), buffer.item_size());
    let Some(dtype) = dtype_of(&format, size) else {
        let wanted = "numbers in the byte order of this machine";
        return Err(
            invalid("data", format!("a buffer of the format {format:?} with {size} bytes"), wanted).into()
        );
    };
    let (shape, py) = (buffer.shape().to_vec(), object.py());
    if !buffer.is_c_contiguous() {
        // A memoryview gives any layout in row-major order.
        let view = pyo3::types::PyMemoryView::from(object)?;
        let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>().map_err(PyErr::from)?;
        let bytes = bytes.as_bytes();
        return Ok(Some(py.detach(|| Tensor::from_bytes(bytes, dtype, &shape, device))?));
    }
    let length = buffer.len_bytes();
    let bytes: &[u8] = match length {
        0 => &[],
        // SAFETY: the buffer is held until the end of this function, is contiguous, and has so many bytes.
        _ => unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), length) },
    };
    Ok(Some(py.detach(|| Tensor::from_bytes(bytes, dtype, &shape, device))?))
}

/// Returns the error of an array of NumPy that the host's memory does not hold.
fn out_of_memory(requested: u64) -> Error {
    let (free, total, cached, live) = (0, 0, 0, 0);
    let holders = "numpy".to_owned();
    Error::OutOfMemory { device: None, requested, free, total, cached, live, limit: None, holders }
}

/// Copies a tensor to a new array of NumPy.
pub fn to_numpy<'py>(py: Python<'py>, tensor: &Tensor) -> Result<Bound<'py, PyAny>> {
    let dtype = numpy_dtype(py, tensor.dtype())?;
    let requested = (tensor.count() as u64).saturating_mul(tensor.dtype().size() as u64);
    let empty = || py.import("numpy")?.call_method1("empty", (tensor.shape().to_vec(), dtype));
    // NumPy has an error of its own for more bytes than addresses have.
    let array = match empty() {
        Err(error) if error.is_instance_of::<PyMemoryError>(py) || requested > isize::MAX as u64 => {
            return Err(out_of_memory(requested).into());
        }
        array => array?,
    };
    // An array of a dtype that NumPy lacks has no buffer of its own, and one without dimensions has no other view.
    let bytes = array.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
    let buffer = PyUntypedBuffer::get(&bytes)?;
    let wanted = tensor.count() * tensor.dtype().size();
    if buffer.len_bytes() != wanted || !buffer.is_c_contiguous() || buffer.readonly() {
        let found = format!("an array of {} bytes", buffer.len_bytes());
        return Err(invalid("numpy", found, format!("one of {wanted} bytes")).into());
    }
    if wanted > 0 {
        let address = buffer.buf_ptr().expose_provenance();
        py.detach(|| {
            let bytes: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the array was just made, nobody else has it, and it has so many bytes.
            tensor.copy_to_bytes(unsafe { std::slice::from_raw_parts_mut(bytes, wanted) })
        })?;
    }
    Ok(array)
}
