//! Copies of tensors to the host, to devices and to other dtypes.

use std::ffi::c_void;

use super::super::arguments::slice_mut;
use super::super::error::Failure;
use super::super::guard;
use super::super::handle::sv_tensor;
use super::give;

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
