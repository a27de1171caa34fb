//! Creation of tensors.

use std::ffi::c_void;

use super::super::arguments::{slice, slice_mut};
use super::super::guard;
use super::super::handle::sv_tensor;
use super::{device, dtype, enter_all, give, sizes, sv_number, tensors};
use crate::tensor::Tensor;

/// Gives a tensor of elements in host memory, which are copied: in row-major order, `bytes` in all. A `rank` of 0 is one
/// element without dimensions. `device` is the ordinal of a CUDA device, or `SV_CPU`.
///
/// # Safety
///
/// `data` points to `bytes` bytes, and `shape` to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_from_host(
    data: *const c_void,
    bytes: usize,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_from_host", result, || {
        Ok(Tensor::from_bytes(
            slice(data.cast::<u8>(), bytes, "data")?,
            self::dtype(dtype)?,
            &sizes(shape, rank)?,
            &self::device(device)?,
        )?)
    })
}

/// Gives a tensor of zeros.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_zeros(
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_zeros", result, || {
        Ok(Tensor::zeros(&sizes(shape, rank)?, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Gives a tensor of ones.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_ones(
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_ones", result, || {
        Ok(Tensor::ones(&sizes(shape, rank)?, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Gives a tensor whose elements are all one number, which the dtype must hold.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_full(
    number: *const sv_number,
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_full", result, || {
        Ok(Tensor::full(
            &sizes(shape, rank)?,
            super::number(number, "number")?,
            self::dtype(dtype)?,
            &self::device(device)?,
        )?)
    })
}

/// Gives the numbers `start`, `start + step` and so on before `end`.
///
/// # Safety
///
/// `start`, `end` and `step` point to structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_arange(
    start: *const sv_number,
    end: *const sv_number,
    step: *const sv_number,
    dtype: i32,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_arange", result, || {
        Ok(Tensor::arange(
            super::number(start, "start")?,
            super::number(end, "end")?,
            super::number(step, "step")?,
            self::dtype(dtype)?,
            &self::device(device)?,
        )?)
    })
}

/// Gives `count` evenly spaced numbers from `start` to `end`, both included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_linspace(
    start: f64,
    end: f64,
    count: usize,
    dtype: i32,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_linspace", result, || {
        Ok(Tensor::linspace(start, end, count, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Gives a matrix with ones on its main diagonal, and zeros elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_eye(
    rows: usize,
    columns: usize,
    dtype: i32,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_eye", result, || {
        Ok(Tensor::eye(rows, columns, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Gives a tensor whose elements have any values until they are written.
///
/// # Safety
///
/// `shape` points to `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_empty(
    dtype: i32,
    shape: *const i64,
    rank: usize,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_empty", result, || {
        Ok(Tensor::empty(&sizes(shape, rank)?, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Gives a tensor of the shape, the dtype and the device of another one, whose elements are all one number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_full_like(
    tensor: sv_tensor,
    number: *const sv_number,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_full_like", result, || {
        Ok(super::tensor(tensor, "tensor")?.full_like(super::number(number, "number")?)?)
    })
}

/// Gives `count` numbers from `base` to the power of `start` to `base` to the power of `end`, both included, whose exponents are
/// evenly spaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_logspace(
    start: f64,
    end: f64,
    count: usize,
    base: f64,
    dtype: i32,
    device: i32,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_tensor_logspace", result, || {
        Ok(Tensor::logspace(start, end, count, base, self::dtype(dtype)?, &self::device(device)?)?)
    })
}

/// Writes the coordinates of a grid: `count` views of the shape of all vectors' sizes, of which one varies along each axis.
///
/// The caller owns one reference to each of `results`.
///
/// # Safety
///
/// `vectors` points to `count` handles, and `results` to space for `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_meshgrid(
    vectors: *const sv_tensor,
    count: usize,
    results: *mut sv_tensor,
) -> i32 {
    guard::call("sv_tensor_meshgrid", || {
        let (results, vectors) = (slice_mut(results, count, "results")?, tensors(vectors, count, "vectors")?);
        let grid = Tensor::meshgrid(&vectors.iter().collect::<Vec<_>>())?;
        results.copy_from_slice(&enter_all(grid)?);
        Ok(())
    })
}
