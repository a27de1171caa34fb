//! Tensors in `.npy` and `.npz` files.

use std::ffi::c_char;

use super::super::arguments::{slice, text};
use super::super::error::Failure;
use super::super::guard;
use super::{device, flag, give, tensors};
use crate::tensor::Tensor;

/// Reads an `.npy` file. `path` is UTF-8 and ends with a zero byte.
///
/// Any thread may call it.
///
/// # Safety
///
/// `path` points to a zero-terminated text, and `result` to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_read_npy(path: *const c_char, device: i32, result: *mut u64) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_tensor_read_npy", result, || {
            Ok(Tensor::read_npy(text(path, "path")?, &self::device(device)?)?)
        })
    }
}

/// Reads the array of a name from an `.npz` file.
///
/// Any thread may call it.
///
/// # Safety
///
/// `path` and `name` point to zero-terminated texts, and `result` to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_read_npz(
    path: *const c_char,
    name: *const c_char,
    device: i32,
    result: *mut u64,
) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe {
        give("sv_tensor_read_npz", result, || {
            let (path, name) = (text(path, "path")?, text(name, "name")?);
            let arrays = Tensor::read_npz(path, &self::device(device)?)?;
            let names: Vec<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
            let found = arrays.into_iter().find(|(known, _)| known == name);
            let wanted = || format!("one of the file's arrays: {}", names.join(", "));
            found.map(|(_, tensor)| tensor).ok_or_else(|| Failure::argument("name", name, &wanted()))
        })
    }
}

/// Writes a tensor to an `.npy` file, replacing the file at that path.
///
/// Any thread may call it.
///
/// # Safety
///
/// `path` points to a zero-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_write_npy(tensor: u64, path: *const c_char) -> i32 {
    guard::call("sv_tensor_write_npy", || {
        let tensor = super::tensor(tensor, "tensor")?;
        // SAFETY: as the caller vouches.
        tensor.write_npy(unsafe { text(path, "path")? })?;
        Ok(())
    })
}

/// Writes tensors with their names to an `.npz` file, replacing the file at that path. `compress` is 1 to compress it, or 0.
///
/// Any thread may call it.
///
/// # Safety
///
/// `path` points to a zero-terminated text, `names` to `count` pointers to such texts, and `tensors` to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_write_npz(
    path: *const c_char,
    names: *const *const c_char,
    tensors: *const u64,
    count: usize,
    compress: i32,
) -> i32 {
    guard::call("sv_tensor_write_npz", || {
        // SAFETY: as the caller vouches.
        let (path, names) = unsafe { (text(path, "path")?, slice(names, count, "names")?) };
        // SAFETY: as the caller vouches.
        let tensors = unsafe { self::tensors(tensors, count)? };
        let mut arrays = Vec::new();
        for (name, tensor) in names.iter().zip(&tensors) {
            // SAFETY: as the caller vouches.
            arrays.push((unsafe { text(*name, "names")? }, tensor));
        }
        match flag(compress, "compress")? {
            true => Tensor::write_npz_compressed(path, &arrays)?,
            false => Tensor::write_npz(path, &arrays)?,
        }
        Ok(())
    })
}
