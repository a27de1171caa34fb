//! Tensors: their handles, dtypes, numbers and operands.
//!
//! A function that gives a tensor writes a new handle, of which the caller owns one reference. Views and clones share elements
//! and never see them change: a function that writes to a tensor copies shared elements first, as in Rust.

pub mod accumulate;
pub mod attention;
pub mod copies;
pub mod creation;
pub mod elementwise;
pub mod index;
pub mod indexing;
pub mod io;
pub mod normalization;
pub mod operations;
pub mod properties;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod sorting;
pub mod statistics;
pub mod views;

use super::arguments::{check_reserved, collected, out, slice};
use super::device::{SV_CPU, cuda};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, object, sv_tensor};
use crate::fuse::Number;
use crate::tensor::{Device, Tensor, TensorMut, TensorOperand};
use crate::types::{DType, MAX_RANK, Shape, Slice};

/// A tensor behind a handle. A small operation uses it where it is: a tensor's layout has room for every rank, and copying it
/// would cost more than the rest of the call.
#[derive(Clone)]
pub(super) struct TensorObject(Tensor);
object!(TensorObject, Tensor);

impl TensorObject {
    /// Returns the tensor, to be changed by the holder of its slot.
    pub(super) fn tensor_mut(&mut self) -> &mut Tensor {
        &mut self.0
    }
}

/// No dtype: the default, where a function has one.
pub const SV_DTYPE_NONE: i32 = 0;
/// Truth values, in a byte each.
pub const SV_DTYPE_BOOL: i32 = 1;
/// Unsigned integers of 8 bits.
pub const SV_DTYPE_U8: i32 = 2;
/// Signed integers of 8 bits.
pub const SV_DTYPE_I8: i32 = 3;
/// Unsigned integers of 16 bits.
pub const SV_DTYPE_U16: i32 = 4;
/// Signed integers of 16 bits.
pub const SV_DTYPE_I16: i32 = 5;
/// Unsigned integers of 32 bits.
pub const SV_DTYPE_U32: i32 = 6;
/// Signed integers of 32 bits.
pub const SV_DTYPE_I32: i32 = 7;
/// Unsigned integers of 64 bits.
pub const SV_DTYPE_U64: i32 = 8;
/// Signed integers of 64 bits.
pub const SV_DTYPE_I64: i32 = 9;
/// IEEE half precision.
pub const SV_DTYPE_F16: i32 = 10;
/// Brain floats: 8 exponent bits, 7 fraction bits.
pub const SV_DTYPE_BF16: i32 = 11;
/// IEEE single precision.
pub const SV_DTYPE_F32: i32 = 12;
/// IEEE double precision.
pub const SV_DTYPE_F64: i32 = 13;
/// Complex numbers of two floats.
pub const SV_DTYPE_C64: i32 = 14;
/// Complex numbers of two doubles.
pub const SV_DTYPE_C128: i32 = 15;
/// Floats of 8 bits with 4 exponent bits, without infinities.
pub const SV_DTYPE_F8E4M3: i32 = 16;
/// Floats of 8 bits with 5 exponent bits.
pub const SV_DTYPE_F8E5M2: i32 = 17;

/// Every dtype by its code. A code keeps its number for ever.
const DTYPES: [(i32, DType); 17] = [
    (SV_DTYPE_BOOL, DType::Bool),
    (SV_DTYPE_U8, DType::U8),
    (SV_DTYPE_I8, DType::I8),
    (SV_DTYPE_U16, DType::U16),
    (SV_DTYPE_I16, DType::I16),
    (SV_DTYPE_U32, DType::U32),
    (SV_DTYPE_I32, DType::I32),
    (SV_DTYPE_U64, DType::U64),
    (SV_DTYPE_I64, DType::I64),
    (SV_DTYPE_F16, DType::F16),
    (SV_DTYPE_BF16, DType::BF16),
    (SV_DTYPE_F32, DType::F32),
    (SV_DTYPE_F64, DType::F64),
    (SV_DTYPE_C64, DType::C64),
    (SV_DTYPE_C128, DType::C128),
    (SV_DTYPE_F8E4M3, DType::F8E4M3),
    (SV_DTYPE_F8E5M2, DType::F8E5M2),
];

/// Returns the dtype of a code.
pub(super) fn dtype(code: i32) -> Result<DType> {
    let known = DTYPES.iter().find(|(known, _)| *known == code);
    known.map(|(_, dtype)| *dtype).ok_or_else(|| Failure::argument("dtype", code, "one of SV_DTYPE_..."))
}

/// Returns the dtype of a model's parameters of its code.
pub(super) fn parameter_dtype(code: i32) -> Result<DType> {
    let dtype = dtype(code)?;
    let wanted = "f16, bf16, f32 or f64, which train";
    let trains = matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    if trains { Ok(dtype) } else { Err(Failure::argument("dtype", dtype, wanted)) }
}

/// Returns the code of a dtype.
pub(super) fn dtype_code(dtype: DType) -> i32 {
    DTYPES.iter().find(|(_, known)| *known == dtype).map_or(SV_DTYPE_NONE, |(code, _)| *code)
}

/// A truth value; `integer` is 0 or 1.
pub const SV_NUMBER_BOOL: i32 = 0;
/// A signed integer, in `integer`.
pub const SV_NUMBER_INTEGER: i32 = 1;
/// A real number, in `real`.
pub const SV_NUMBER_REAL: i32 = 2;
/// A complex number, in `real` and `imaginary`.
pub const SV_NUMBER_COMPLEX: i32 = 3;
/// An unsigned integer: the 64 bits of `integer`.
pub const SV_NUMBER_UNSIGNED: i32 = 4;

/// A number, which takes part in an operation by its kind and never by its width. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_number {
    /// One of `SV_NUMBER_...`.
    pub kind: i32,
    /// 0.
    pub reserved: i32,
    /// The value of a truth value or an integer.
    pub integer: i64,
    /// The value of a real number, and the real part of a complex one.
    pub real: f64,
    /// The imaginary part of a complex number.
    pub imaginary: f64,
}

/// A tensor, or a number where `tensor` is 0. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_operand {
    /// The handle of a tensor, or 0.
    pub tensor: sv_tensor,
    /// The number where `tensor` is 0.
    pub number: sv_number,
}

/// No bound of a slice.
pub const SV_OPEN: i64 = i64::MIN;

/// Positions along an axis, as `start:stop:step` in Python. The layout is permanent.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_slice {
    /// The axis; a negative one counts from the last.
    pub axis: i64,
    /// The first position; a negative one counts from the end; `SV_OPEN` for the beginning.
    pub start: i64,
    /// The position behind the last one; `SV_OPEN` for the end.
    pub stop: i64,
    /// The step, not 0; a negative one goes backwards.
    pub step: i64,
}

impl sv_slice {
    pub(in crate::capi) fn parts(self) -> (isize, Slice) {
        let (start, stop) = (self.start as isize, self.stop as isize);
        let range = match (self.start == SV_OPEN, self.stop == SV_OPEN) {
            (true, true) => Slice::from(..),
            (true, false) => Slice::from(..stop),
            (false, true) => Slice::from(start..),
            (false, false) => Slice::from(start..stop),
        };
        (self.axis as isize, range.step(self.step as isize))
    }
}

impl sv_number {
    /// Returns the only element of a tensor.
    pub(super) fn of_item(tensor: &Tensor) -> Result<sv_number> {
        if tensor.count() != 1 {
            let wanted = "a tensor of one element";
            return Err(Failure::argument("tensor", format!("{} elements", tensor.count()), wanted));
        }
        let (kind, integer, real, imaginary) = match tensor.dtype() {
            DType::Bool => {
                let value = i64::from(tensor.item::<bool>()?);
                (SV_NUMBER_BOOL, value, value as f64, 0.0)
            }
            DType::U64 => {
                let value = tensor.item::<u64>()?;
                (SV_NUMBER_UNSIGNED, value as i64, value as f64, 0.0)
            }
            dtype if dtype.is_integer() => {
                let value = tensor.cast(DType::I64)?.item::<i64>()?;
                (SV_NUMBER_INTEGER, value, value as f64, 0.0)
            }
            dtype if dtype.is_complex() => {
                let value = tensor.cast(DType::C128)?.item::<num_complex::Complex<f64>>()?;
                (SV_NUMBER_COMPLEX, 0, value.re, value.im)
            }
            _ => (SV_NUMBER_REAL, 0, tensor.cast(DType::F64)?.item()?, 0.0),
        };
        Ok(sv_number { kind, reserved: 0, integer, real, imaginary })
    }

    /// Returns the number.
    pub(super) fn number(self) -> Result<Number> {
        check_reserved("number.reserved", self.reserved)?;
        match self.kind {
            SV_NUMBER_BOOL => Ok(Number::Bool(self.integer != 0)),
            SV_NUMBER_INTEGER => Ok(Number::Integer(self.integer.into())),
            SV_NUMBER_REAL => Ok(Number::Real(self.real)),
            SV_NUMBER_COMPLEX => Ok(num_complex::Complex::new(self.real, self.imaginary).into()),
            SV_NUMBER_UNSIGNED => Ok(Number::Integer((self.integer as u64).into())),
            other => Err(Failure::argument("number.kind", other, "one of SV_NUMBER_...")),
        }
    }
}

/// Returns the number at a pointer.
///
/// # Safety
///
/// As [`slice`], of one struct.
pub(super) unsafe fn number(number: *const sv_number, name: &str) -> Result<Number> {
    match slice(number, 1, name)? {
        [number] => number.number(),
        _ => Err(Failure::argument(name, "NULL", "a pointer")),
    }
}

/// An operand with a reference to its tensor.
pub(super) enum Operand {
    /// A tensor.
    Tensor(Box<Tensor>),
    /// A number.
    Number(Number),
}

impl Operand {
    /// Returns the operand of a struct.
    pub(super) fn new(operand: &sv_operand, name: &str) -> Result<Operand> {
        match operand.tensor {
            0 => operand.number.number().map(Operand::Number),
            handle => tensor(handle, name).map(|tensor| Operand::Tensor(Box::new(tensor))),
        }
    }

    /// Returns the operand at a pointer.
    ///
    /// # Safety
    ///
    /// As [`slice`], of one struct.
    pub(super) unsafe fn pointer(operand: *const sv_operand, name: &str) -> Result<Operand> {
        match slice(operand, 1, name)? {
            [operand] => Operand::new(operand, name),
            _ => Err(Failure::argument(name, "NULL", "a pointer")),
        }
    }

    /// Returns the operand as operations take it.
    pub(super) fn operand(&self) -> TensorOperand<'_> {
        match self {
            Operand::Tensor(tensor) => TensorOperand::Tensor(tensor),
            Operand::Number(number) => TensorOperand::Number(*number),
        }
    }
}

/// Returns operands with references to their tensors.
///
/// # Safety
///
/// As [`slice`].
pub(super) unsafe fn operands(operands: *const sv_operand, count: usize) -> Result<Vec<Operand>> {
    let operands = slice(operands, count, "operands")?;
    operands.iter().map(|operand| Operand::new(operand, "operands")).collect()
}

/// Returns the tensor of a handle.
pub(super) fn tensor(handle: u64, name: &str) -> Result<Tensor> {
    read(handle, name, Tensor::clone)
}

/// Runs `work` on the tensor of a handle where it is. The work is short and calls nothing that waits: threads that change the
/// tensor wait meanwhile.
#[inline]
pub(super) fn read<R>(handle: u64, name: &str, work: impl FnOnce(&Tensor) -> R) -> Result<R> {
    TensorObject::table().with(handle, name, |object| work(&object.0))
}

/// Returns the tensors of handles.
///
/// # Safety
///
/// As [`slice`].
pub(super) unsafe fn tensors(handles: *const u64, count: usize, name: &str) -> Result<Vec<Tensor>> {
    let handles = slice(handles, count, name)?;
    handles.iter().map(|handle| tensor(*handle, name)).collect()
}

/// Enters a tensor and returns its handle.
pub(super) fn enter(tensor: Tensor) -> Result<u64> {
    TensorObject::table().insert(TensorObject(tensor))
}

/// Enters all tensors, or none.
pub(super) fn enter_all(tensors: impl IntoIterator<Item = Tensor>) -> Result<Vec<u64>> {
    let mut handles = Vec::new();
    for tensor in tensors {
        match enter(tensor) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                for handle in handles {
                    TensorObject::table().release(handle, "result")?;
                }
                return Err(error);
            }
        }
    }
    Ok(handles)
}

/// Runs the body of a function whose result is a tensor, and writes its handle.
///
/// # Safety
///
/// `result` is NULL or points to a `u64` that this call alone uses.
pub(super) unsafe fn give(
    function: &'static str,
    result: *mut u64,
    work: impl FnOnce() -> Result<Tensor>,
) -> i32 {
    let mut work = Some(work);
    give_one(function, result, &mut || work.take().map(|work| work()).transpose())
}

/// [`give`] of work that is called once, of which the library has one copy.
///
/// # Safety
///
/// As [`give`].
unsafe fn give_one(
    function: &'static str,
    result: *mut u64,
    work: &mut dyn FnMut() -> Result<Option<Tensor>>,
) -> i32 {
    guard::call(function, || {
        let result = out(result, "result")?;
        if let Some(tensor) = work()? {
            result.write(enter(tensor)?);
        }
        Ok(())
    })
}

/// Runs the body of a function with several tensors as its results, and writes all handles or none.
///
/// # Safety
///
/// Each pointer is NULL or points to a `u64` that this call alone uses.
pub(super) unsafe fn give_all<const COUNT: usize>(
    function: &'static str,
    results: [(*mut u64, &str); COUNT],
    work: impl FnOnce() -> Result<[Tensor; COUNT]>,
) -> i32 {
    let mut work = Some(work);
    give_each(function, &results, &mut || {
        Ok(work.take().map(|work| work()).transpose()?.into_iter().flatten().collect())
    })
}

/// [`give_all`] for any number of results, of which the library has one copy.
///
/// # Safety
///
/// As [`give_all`].
unsafe fn give_each(
    function: &'static str,
    results: &[(*mut u64, &str)],
    work: &mut dyn FnMut() -> Result<Vec<Tensor>>,
) -> i32 {
    guard::call(function, || {
        let results = results.iter().map(|(result, name)| out(*result, name));
        let results = results.collect::<Result<Vec<_>>>()?;
        let handles = enter_all(work()?)?;
        results.into_iter().zip(handles).for_each(|(result, handle)| result.write(handle));
        Ok(())
    })
}

/// Runs the body of a function that writes to a tensor, on operands that are found before: one of them may be the tensor
/// itself, and other threads that use the handle wait while `work` runs.
pub(super) fn change<A>(
    function: &'static str,
    (handle, name): (u64, &str),
    operands: impl FnOnce() -> Result<A>,
    work: impl FnOnce(TensorMut<'_>, A) -> Result<()>,
) -> i32 {
    guard::call(function, || {
        let operands = operands()?;
        TensorObject::table().with_mut(handle, name, |tensor| work(tensor.tensor_mut().in_place(), operands))
    })
}

/// Returns the device of a code: `SV_CPU` or the ordinal of a CUDA device.
pub(super) fn device(code: i32) -> Result<Device> {
    match code {
        SV_CPU => Ok(Device::cpu()),
        code if code < 0 => {
            Err(Failure::argument("device", code, "SV_CPU or the ordinal of a CUDA device, from 0"))
        }
        code => Ok(cuda(code, "a tensor")?.into()),
    }
}

/// Returns the code of a device.
pub(super) fn device_code(device: &Device) -> i32 {
    device.as_cuda().map_or(SV_CPU, |device| i32::try_from(device.ordinal()).unwrap_or(i32::MAX))
}

/// Returns sizes of dimensions.
///
/// # Safety
///
/// As [`slice`].
pub(super) unsafe fn sizes(shape: *const i64, rank: usize) -> Result<Vec<usize>> {
    if rank > MAX_RANK {
        return Err(Failure::argument("rank", rank, &format!("at most {MAX_RANK} dimensions")));
    }
    let shape = slice(shape, rank, "shape")?;
    let size =
        |size: &i64| usize::try_from(*size).map_err(|_| Failure::argument("shape", *size, "sizes from 0 on"));
    let sizes = shape.iter().map(size).collect::<Result<Vec<usize>>>()?;
    Shape::new(&sizes)?;
    Ok(sizes)
}

/// Returns axes, or other signed positions.
///
/// # Safety
///
/// As [`slice`].
pub(super) unsafe fn axes(axes: *const i64, count: usize, name: &str) -> Result<Vec<isize>> {
    let axes = slice(axes, count, name)?;
    collected(count, name, axes.iter().map(|axis| *axis as isize))
}

/// Returns axes, or none for NULL, which stands for all axes.
///
/// # Safety
///
/// As [`slice`], unless `axes` is NULL.
pub(super) unsafe fn axes_or_all(axes: *const i64, count: usize) -> Result<Option<Vec<isize>>> {
    match axes.is_null() {
        true if count == 0 => Ok(None),
        true => Err(Failure::argument("axes", "NULL", "a pointer to `count` axes, or a count of 0")),
        false => self::axes(axes, count, "axes").map(Some),
    }
}

/// Returns a tensor that may be absent, as handle 0.
pub(super) fn optional(handle: u64, name: &str) -> Result<Option<Tensor>> {
    if handle == 0 { Ok(None) } else { tensor(handle, name).map(Some) }
}

/// Returns a truth value.
pub(super) fn flag(value: i32, name: &str) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Failure::argument(name, other, "0 or 1")),
    }
}
