//! The memory of a tensor as Python shows it: the buffer protocol, strides and addresses.
//!
//! A buffer is read-only and holds the elements, as an export by DLPack does: a write to the tensor copies them first.

use std::ffi::{CString, c_int, c_void};
use std::ptr::{NonNull, null_mut};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::tensor::dlpack::DLManagedTensorVersioned;
use selvedge::{DType, Tensor};

use super::PyTensor;
use crate::error::Result;

/// Elements that are exported until this is dropped.
struct Exported(NonNull<DLManagedTensorVersioned>);

impl Exported {
    fn new(tensor: &Tensor) -> selvedge::Result<Exported> {
        tensor.to_dlpack(None).map(Exported)
    }

    /// Returns the address of the first element, 0 without elements.
    fn address(&self) -> usize {
        // SAFETY: the struct is live until this is dropped.
        unsafe { self.0.as_ref().dl_tensor.data.expose_provenance() }
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: the struct is live, and its deleter is called once.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// The arrays that a buffer points to, and its elements.
struct BufferExport {
    _exported: Exported,
    format: CString,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// Returns the format of the module `struct`, `None` for a dtype that it lacks.
fn format(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "?",
        DType::U8 => "B",
        DType::I8 => "b",
        DType::U16 => "H",
        DType::I16 => "h",
        DType::U32 => "I",
        DType::I32 => "i",
        DType::U64 => "Q",
        DType::I64 => "q",
        DType::F16 => "e",
        DType::F32 => "f",
        DType::F64 => "d",
        DType::C64 => "Zf",
        DType::C128 => "Zd",
        _ => return None,
    })
}

fn refuse<T>(text: String) -> Result<T> {
    Err(PyBufferError::new_err(text).into())
}

/// Returns the distances in bytes between neighbours along each dimension.
fn strides(tensor: &Tensor) -> Vec<isize> {
    tensor.layout().strides().iter().map(|stride| stride * tensor.dtype().size() as isize).collect()
}

/// Returns whether two tensors have the same elements in memory, in the same order and dtype.
pub fn shares_elements(left: &Tensor, right: &Tensor) -> bool {
    let address = |tensor: &Tensor| Exported::new(tensor).map(|exported| exported.address());
    left.dtype() == right.dtype()
        && left.device() == right.device()
        && left.layout() == right.layout()
        && matches!((address(left), address(right)), (Ok(left), Ok(right)) if left == right)
}

#[pymethods]
impl PyTensor {
    /// The distances in bytes between neighbours along each dimension, as of NumPy.
    #[getter(strides)]
    fn byte_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, strides(&self.tensor(py)))
    }

    /// Returns the address of the first element on its device, 0 without elements. A write to the tensor may move them.
    fn data_ptr(&self, py: Python<'_>) -> Result<usize> {
        self.run(py, |tensor| Ok(Exported::new(tensor)?.address()))
    }

    /// Shows the elements of a tensor on the CPU.
    ///
    /// # Safety
    ///
    /// Python calls it with a `Py_buffer`.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> Result<()> {
        let py = slf.py();
        let tensor = slf.get().tensor(py);
        let has = |flag: c_int| flags & flag == flag;
        let device = tensor.device();
        if !device.is_cpu() {
            return refuse(format!(
                "a buffer: found a tensor on {device}; wanted one on the CPU: call cpu() first"
            ));
        }
        let Some(format) = format(tensor.dtype()) else {
            let dtype = tensor.dtype();
            return refuse(format!(
                "a buffer: found {dtype}; wanted a dtype of the module struct: call to(\"f32\") first"
            ));
        };
        if has(ffi::PyBUF_WRITABLE) {
            return refuse(
                "a buffer: found a consumer that writes; wanted one that only reads, or numpy()".to_owned(),
            );
        }
        let is_contiguous = tensor.is_contiguous();
        let transposed = tensor.permute(&(0..tensor.rank() as isize).rev().collect::<Vec<_>>())?;
        let fits = match () {
            () if has(ffi::PyBUF_ANY_CONTIGUOUS) => is_contiguous || transposed.is_contiguous(),
            () if has(ffi::PyBUF_F_CONTIGUOUS) => transposed.is_contiguous(),
            () if has(ffi::PyBUF_C_CONTIGUOUS) => is_contiguous,
            () => has(ffi::PyBUF_STRIDES) || is_contiguous,
        };
        if !fits {
            let text = "a buffer: found elements with gaps or in another order; wanted a consumer of strides: call contiguous() first";
            return refuse(text.to_owned());
        }
        let item = tensor.dtype().size();
        let Some(bytes) = tensor.count().checked_mul(item).filter(|bytes| *bytes <= isize::MAX as usize)
        else {
            return refuse(format!(
                "a buffer: found {} elements; wanted fewer than 2^63 bytes",
                tensor.count()
            ));
        };
        let exported = py.detach(|| Exported::new(&tensor).map(SendExported))?.0;
        let address = match exported.address() {
            0 => NonNull::<u128>::dangling().as_ptr().cast::<c_void>(),
            address => std::ptr::with_exposed_provenance_mut(address),
        };
        let export = Box::new(BufferExport {
            _exported: exported,
            format: CString::new(format).unwrap_or_default(),
            shape: tensor.shape().iter().map(|size| *size as isize).collect(),
            strides: strides(&tensor),
        });
        let export = Box::into_raw(export);
        // SAFETY: Python gives the view, and the box lives until the buffer is released.
        unsafe {
            (*view).buf = address;
            (*view).obj = slf.into_any().into_ptr();
            (*view).len = bytes as isize;
            (*view).itemsize = item as isize;
            (*view).readonly = 1;
            (*view).ndim = tensor.rank() as c_int;
            (*view).format =
                if has(ffi::PyBUF_FORMAT) { (*export).format.as_ptr().cast_mut() } else { null_mut() };
            (*view).shape = if has(ffi::PyBUF_ND) { (*export).shape.as_mut_ptr() } else { null_mut() };
            (*view).strides =
                if has(ffi::PyBUF_STRIDES) { (*export).strides.as_mut_ptr() } else { null_mut() };
            (*view).suboffsets = null_mut();
            (*view).internal = export.cast();
        }
        Ok(())
    }

    /// Releases a buffer.
    ///
    /// # Safety
    ///
    /// Python calls it once for each buffer of `__getbuffer__`.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the box is that of `__getbuffer__`.
        drop(unsafe { Box::from_raw((*view).internal.cast::<BufferExport>()) });
    }
}

/// An export that crosses the end of a detached part.
struct SendExported(Exported);

// SAFETY: DLPack lets any thread use the struct, and one owns it at a time.
unsafe impl Send for SendExported {}
