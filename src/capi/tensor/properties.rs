//! Properties of tensors.

use std::ffi::c_char;

use super::super::arguments::{out, slice_mut, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::sv_tensor;
use super::{device_code, dtype_code, read, sv_number};
use crate::tensor::Tensor;

/// Writes the dtype of a tensor, one of `SV_DTYPE_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_dtype(tensor: sv_tensor, dtype: *mut i32) -> i32 {
    guard::call("sv_tensor_dtype", || {
        let dtype = out(dtype, "dtype")?;
        dtype.write(read(tensor, "tensor", |tensor| dtype_code(tensor.dtype()))?);
        Ok(())
    })
}

/// Writes the device of a tensor: the ordinal of a CUDA device, or `SV_CPU`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_device(tensor: sv_tensor, device: *mut i32) -> i32 {
    guard::call("sv_tensor_device", || {
        let device = out(device, "device")?;
        device.write(read(tensor, "tensor", |tensor| device_code(&tensor.device()))?);
        Ok(())
    })
}

/// Writes the number of elements of a tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_count(tensor: sv_tensor, count: *mut u64) -> i32 {
    guard::call("sv_tensor_count", || {
        let count = out(count, "count")?;
        count.write(read(tensor, "tensor", Tensor::count)? as u64);
        Ok(())
    })
}

/// Writes the only element of a tensor. `kind` follows the dtype. `real` always has the value, of truth values and integers too,
/// rounded to a double, so a program that wants a double reads `real`.
///
/// It waits for the work that the element needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_item(tensor: sv_tensor, item: *mut sv_number) -> i32 {
    guard::call("sv_tensor_item", || {
        let item = out(item, "item")?;
        item.write(sv_number::of_item(&super::tensor(tensor, "tensor")?)?);
        Ok(())
    })
}

/// Writes the number of dimensions of a tensor, at most 16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_rank(tensor: sv_tensor, rank: *mut usize) -> i32 {
    guard::call("sv_tensor_rank", || {
        let rank = out(rank, "rank")?;
        rank.write(read(tensor, "tensor", Tensor::rank)?);
        Ok(())
    })
}

/// Writes numbers of dimensions to memory with space for exactly as many.
///
/// # Safety
///
/// As [`slice_mut`].
unsafe fn write_dimensions(
    name: &str,
    dimensions: impl ExactSizeIterator<Item = i64>,
    to: *mut i64,
    rank: usize,
) -> Result<()> {
    if rank != dimensions.len() {
        let wanted = format!("{}, the number of dimensions", dimensions.len());
        return Err(Failure::argument("rank", rank, &wanted));
    }
    let to = slice_mut(to, rank, name)?;
    to.iter_mut().zip(dimensions).for_each(|(to, from)| *to = from);
    Ok(())
}

/// Writes the sizes of a tensor's dimensions. `rank` is the number of dimensions.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_shape(tensor: sv_tensor, shape: *mut i64, rank: usize) -> i32 {
    guard::call("sv_tensor_shape", || {
        read(tensor, "tensor", |tensor| {
            let found = tensor.shape().iter().map(|size| *size as i64);
            write_dimensions("shape", found, shape, rank)
        })?
    })
}

/// Writes the strides of a tensor's dimensions in elements. `rank` is the number of dimensions.
///
/// # Safety
///
/// `strides` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_strides(tensor: sv_tensor, strides: *mut i64, rank: usize) -> i32 {
    guard::call("sv_tensor_strides", || {
        read(tensor, "tensor", |tensor| {
            let found = tensor.layout().strides().iter().map(|stride| *stride as i64);
            write_dimensions("strides", found, strides, rank)
        })?
    })
}

/// Writes 1 if the elements of a tensor are adjacent in memory in row-major order, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_is_contiguous(tensor: sv_tensor, contiguous: *mut i32) -> i32 {
    guard::call("sv_tensor_is_contiguous", || {
        let contiguous = out(contiguous, "contiguous")?;
        contiguous.write(i32::from(read(tensor, "tensor", Tensor::is_contiguous)?));
        Ok(())
    })
}

/// Writes a tensor's elements as text, as `sv_library_report` writes its text. Waits for the work that the tensor needs.
///
/// # Safety
///
/// `text` points to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_text(
    tensor: sv_tensor,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_tensor_text", || {
        let tensor = super::tensor(tensor, "tensor")?;
        write_text(&tensor.to_string(), text, capacity, length)
    })
}
