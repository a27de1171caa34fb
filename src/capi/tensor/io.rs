//! Tensors in `.npy`, `.npz` and safetensors files.

use std::ffi::c_char;

use super::super::arguments::{slice, text, write_text};
use super::super::error::{Failure, Result};
use super::super::guard;
use super::super::handle::sv_tensor;
use super::{device, flag, give, tensors};
use crate::io::safetensors::SafetensorsFile;
use crate::tensor::Tensor;

/// Tensors with their names.
struct Named<'a> {
    names: Vec<&'a str>,
    tensors: Vec<Tensor>,
}

impl Named<'_> {
    /// # Safety
    ///
    /// As [`slice`] of both pointers, and [`text`] of each name.
    unsafe fn new<'a>(names: *const *const c_char, handles: *const u64, count: usize) -> Result<Named<'a>> {
        let names = slice(names, count, "names")?.iter().map(|name| text(*name, "names"));
        let names = names.collect::<Result<_>>()?;
        let tensors = tensors(handles, count, "tensors")?;
        Ok(Named { names, tensors })
    }

    fn pairs(&self) -> Vec<(&str, &Tensor)> {
        self.names.iter().copied().zip(&self.tensors).collect()
    }
}

/// Reads an `.npy` file. `path` is UTF-8 and ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_read_npy(path: *const c_char, device: i32, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_read_npy", result, || Ok(Tensor::read_npy(text(path, "path")?, &self::device(device)?)?))
}

/// Reads the array of a name from an `.npz` file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_read_npz(
    path: *const c_char,
    name: *const c_char,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_read_npz", result, || {
        let (path, name) = (text(path, "path")?, text(name, "name")?);
        let arrays = Tensor::read_npz(path, &self::device(device)?)?;
        let names: Vec<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
        let found = arrays.into_iter().find(|(known, _)| known == name);
        let wanted = || format!("one of the file's arrays: {}", names.join(", "));
        found.map(|(_, tensor)| tensor).ok_or_else(|| Failure::argument("name", name, &wanted()))
    })
}

/// Writes a tensor to an `.npy` file, replacing the file at that path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_write_npy(tensor: sv_tensor, path: *const c_char) -> i32 {
    guard::call("sv_tensor_write_npy", || {
        let tensor = super::tensor(tensor, "tensor")?;
        tensor.write_npy(text(path, "path")?)?;
        Ok(())
    })
}

/// Writes tensors with their names to an `.npz` file, replacing the file at that path. `compress` is 1 to compress it, or 0.
///
/// # Safety
///
/// `names` points to `count` texts, and `tensors` to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_write_npz(
    path: *const c_char,
    names: *const *const c_char,
    tensors: *const sv_tensor,
    count: usize,
    compress: i32,
) -> i32 {
    guard::call("sv_tensor_write_npz", || {
        let (path, named) = (text(path, "path")?, Named::new(names, tensors, count)?);
        let arrays = named.pairs();
        match flag(compress, "compress")? {
            true => Tensor::write_npz_compressed(path, &arrays)?,
            false => Tensor::write_npz(path, &arrays)?,
        }
        Ok(())
    })
}

/// Reads the tensor of a name from a safetensors file, or from the files of a `model.safetensors.index.json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_read_safetensors(
    path: *const c_char,
    name: *const c_char,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_read_safetensors", result, || {
        let (path, name, device) = (text(path, "path")?, text(name, "name")?, self::device(device)?);
        Ok(Tensor::read_safetensors_tensor(&mut SafetensorsFile::open(path)?, name, &device)?)
    })
}

/// Writes the names of the tensors in a safetensors file, one a line, in the file's order. The text is cut to fit `capacity`;
/// `*length` gets the bytes of the whole text.
///
/// # Safety
///
/// `path` points to a zero-terminated text, `names` is NULL or points to `capacity` bytes, and `length` is NULL or points to a
/// `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_safetensors_names(
    path: *const c_char,
    names: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    guard::call("sv_safetensors_names", || {
        let file = SafetensorsFile::open(text(path, "path")?)?;
        write_text(&file.names().join("\n"), names, capacity, length)
    })
}

/// Writes tensors with their names to a safetensors file, replacing the file at that path.
///
/// # Safety
///
/// `names` points to `count` texts, and `tensors` to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_write_safetensors(
    path: *const c_char,
    names: *const *const c_char,
    tensors: *const sv_tensor,
    count: usize,
) -> i32 {
    guard::call("sv_tensor_write_safetensors", || {
        let (path, named) = (text(path, "path")?, Named::new(names, tensors, count)?);
        Ok(Tensor::write_safetensors(path, &named.pairs(), &[])?)
    })
}
