//! DLPack's table of C functions, `__dlpack_c_exchange_api__` of a class: exchanges without calls of Python.
//!
//! The functions synchronise nothing: whoever takes an array makes its stream wait for the producer's current one. The structs
//! are those of `dlpack.h` 1.3.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::slice;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use selvedge::driver::Stream;
use selvedge::tensor::dlpack::{
    DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, DLPackVersion, DLTensor,
};
use selvedge::types::MAX_RANK;
use selvedge::{DType, Device, Tensor};

use crate::dlpack::{CPU, CUDA};
use crate::error::{Result, invalid};
use crate::tensor::PyTensor;

const NAME: &CStr = c"dlpack_exchange_api";

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// `DLPackExchangeAPI`, whose first two fields are its header.
#[repr(C)]
struct ExchangeTable {
    version: DLPackVersion,
    older: *const ExchangeTable,
    allocate: unsafe extern "C" fn(
        *mut DLTensor,
        *mut *mut DLManagedTensorVersioned,
        *mut c_void,
        Option<SetError>,
    ) -> c_int,
    from_object: unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int,
    to_object: unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int,
    /// May be null.
    borrow_object: Option<unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> c_int>,
    current_stream: unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int,
}

// SAFETY: nothing writes to a table, and its functions may be called from any thread that holds the interpreter.
unsafe impl Sync for ExchangeTable {}

static TABLE: ExchangeTable = ExchangeTable {
    version: DLPackVersion { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION },
    older: std::ptr::null(),
    allocate,
    from_object,
    to_object,
    borrow_object: None,
    current_stream,
};

/// Runs a function of the table. An error becomes the interpreter's, and -1.
fn guarded(function: impl FnOnce(Python<'_>) -> Result<()>) -> c_int {
    // The standard asks callers to hold the interpreter; attaching again costs little.
    Python::attach(|py| {
        let result = catch_unwind(AssertUnwindSafe(|| function(py))).unwrap_or_else(|_| {
            Err(PyRuntimeError::new_err("a panic in selvedge, which is a bug; please report it").into())
        });
        match result {
            Ok(()) => 0,
            Err(failure) => {
                PyErr::from(failure).restore(py);
                -1
            }
        }
    })
}

fn device(kind: i32, ordinal: i32) -> Result<Device> {
    match (kind, usize::try_from(ordinal)) {
        (CPU, _) => Ok(Device::cpu()),
        (CUDA, Ok(ordinal)) => Ok(Device::cuda(ordinal)?),
        _ => Err(invalid(
            "a DLPack exchange",
            format!("device ({kind}, {ordinal})"),
            "the CPU or a CUDA device",
        )
        .into()),
    }
}

/// Returns the shape of a prototype.
///
/// # Safety
///
/// A shape that is not null and aligned has `ndim` numbers.
unsafe fn shape_of(prototype: &DLTensor) -> Result<Vec<usize>> {
    let refused = |found: String, wanted: &str| invalid("a DLPack exchange", found, wanted);
    let rank = usize::try_from(prototype.ndim).ok().filter(|rank| *rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| {
        refused(format!("a prototype of {} dimensions", prototype.ndim), "0 to 16 dimensions")
    })?;
    if rank == 0 {
        return Ok(Vec::new());
    }
    if prototype.shape.is_null() || !prototype.shape.is_aligned() {
        let found = format!("a prototype with the shape at {:p}", prototype.shape);
        return Err(refused(found, "the address of the sizes, aligned to 8 bytes").into());
    }
    // SAFETY: the address was checked, and the caller vouches for the numbers.
    let sizes = unsafe { slice::from_raw_parts(prototype.shape, rank) };
    let shape = sizes.iter().map(|&size| usize::try_from(size)).collect::<std::result::Result<_, _>>();
    Ok(shape.map_err(|_| refused(format!("shape {sizes:?}"), "sizes from 0 on"))?)
}

/// Makes an array of a prototype's dtype and shape on its device.
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    let make = || -> Result<()> {
        // SAFETY: the caller gives a prototype with a shape of its length, and a place for the result; neither may be null.
        unsafe {
            let (Some(prototype), false) = (prototype.as_ref(), out.is_null()) else {
                let found = if out.is_null() { "a null place for the result" } else { "a null prototype" };
                return Err(invalid("a DLPack exchange", found, "an address").into());
            };
            let shape = shape_of(prototype)?;
            let dtype = DType::try_from(prototype.dtype)?;
            let device = device(prototype.device.device_type, prototype.device.device_id)?;
            let made = Tensor::empty(&shape, dtype, &device)?.into_dlpack(None)?;
            *out = made.as_ptr();
            Ok(())
        }
    };
    let result: Result<()> = catch_unwind(AssertUnwindSafe(make))
        .unwrap_or_else(|_| Err(invalid("a DLPack exchange", "a panic", "no bug in selvedge").into()));
    let Err(failure) = result else { return 0 };
    let text = Python::attach(|py| PyErr::from(failure).value(py).to_string());
    if let (Some(set_error), Ok(text)) = (set_error, std::ffi::CString::new(text)) {
        // SAFETY: the context is the one that the function was given with, and both texts end with a zero.
        unsafe { set_error(context, c"RuntimeError".as_ptr(), text.as_ptr()) };
    }
    -1
}

/// Shares the elements of a tensor.
unsafe extern "C" fn from_object(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    guarded(|py| {
        // SAFETY: the caller gives an object, and a place for the result.
        unsafe {
            let object = Bound::from_borrowed_ptr(py, object.cast::<ffi::PyObject>());
            let tensor = object.cast::<PyTensor>().map_err(PyErr::from)?.get().tensor(py);
            *out = tensor.to_dlpack(None)?.as_ptr();
        }
        Ok(())
    })
}

/// Makes a tensor that owns the struct.
unsafe extern "C" fn to_object(managed: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    guarded(|py| {
        let managed =
            NonNull::new(managed).ok_or_else(|| invalid("a DLPack exchange", "null", "an array"))?;
        // SAFETY: the caller gives a struct, which it owns no more if this succeeds, and a place for the result.
        unsafe {
            let tensor = Tensor::from_dlpack(managed)?;
            *out = Py::new(py, PyTensor::from(tensor))?.into_ptr().cast();
        }
        Ok(())
    })
}

/// The stream of operations on a device; null on the CPU.
unsafe extern "C" fn current_stream(kind: c_int, ordinal: i32, out: *mut *mut c_void) -> c_int {
    guarded(|_| {
        let device = device(kind, ordinal)?;
        let stream = if device.as_cuda().is_some() { device.stream()?.as_raw() } else { null_mut() };
        // SAFETY: the caller gives a place for the result.
        unsafe { *out = stream };
        Ok(())
    })
}

#[pymethods]
impl PyTensor {
    /// The C functions by which other libraries exchange arrays with this class.
    #[classattr]
    #[pyo3(name = "__dlpack_c_exchange_api__")]
    fn exchange_table(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let table = (&raw const TABLE).cast_mut().cast::<c_void>();
        // SAFETY: table and name live for ever, and a new reference or null is returned.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(table, NAME.as_ptr(), None)) }
    }
}

/// Returns the table of an object's class, if it has one of our major version.
fn table_of<'py>(class: &Bound<'py, PyType>) -> Option<&'py ExchangeTable> {
    let capsule = class.getattr(intern!(class.py(), "__dlpack_c_exchange_api__")).ok()?;
    let capsule = capsule.cast::<PyCapsule>().ok()?.as_ptr();
    // SAFETY: a capsule of this name has such a table, which lives as long as the class.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 1 {
            return None;
        }
        let table = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast::<ExchangeTable>();
        table.as_ref().filter(|table| table.version.major == DLPACK_MAJOR_VERSION)
    }
}

/// Takes over the array of an object whose class has a table; `None` for other objects.
pub fn import(array: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
    let Some(table) = table_of(&array.get_type()) else { return Ok(None) };
    let py = array.py();
    let failed = || PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("a DLPack exchange failed"));
    let mut managed = null_mut();
    // SAFETY: the object is of the table's class, and the place is ours.
    if unsafe { (table.from_object)(array.as_ptr().cast(), &raw mut managed) } != 0 {
        return Err(failed().into());
    }
    let managed = NonNull::new(managed).ok_or_else(failed)?;
    // SAFETY: the producer gave the struct to us. An error leaves it to us, and its deleter frees it.
    unsafe {
        let device = managed.as_ref().dl_tensor.device;
        let imported = wait_for_producer(table, device.device_type, device.device_id, failed)
            .and_then(|()| Ok(Tensor::from_dlpack(managed)?));
        if imported.is_err()
            && let Some(deleter) = managed.as_ref().deleter
        {
            deleter(managed.as_ptr());
        }
        imported.map(Some)
    }
}

/// Makes later work of this thread's stream wait for the work that the producer has issued so far.
fn wait_for_producer(
    table: &ExchangeTable,
    kind: i32,
    ordinal: i32,
    failed: impl FnOnce() -> PyErr,
) -> Result<()> {
    if kind != CUDA {
        return Ok(());
    }
    let mut theirs = null_mut();
    // SAFETY: the place is ours.
    if unsafe { (table.current_stream)(kind, ordinal, &raw mut theirs) } != 0 {
        return Err(failed().into());
    }
    let ours = device(kind, ordinal)?.stream()?;
    if theirs != ours.as_raw() {
        // SAFETY: the stream is one that the producer works on; null is the legacy default stream.
        let theirs = unsafe { Stream::from_raw(&ours.device(), theirs)? };
        ours.wait_for(&theirs)?;
    }
    Ok(())
}
