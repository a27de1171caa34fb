//! Checks of operands, and the real parts of complex tensors.

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::types::DType;

/// The dtypes of the residual, weight and noise operations.
pub(super) const REALS: &[DType] = &[DType::F32, DType::F64];

/// The dtypes of products, phases and syntony.
pub(super) const NUMBERS: &[DType] = &[DType::F32, DType::F64, DType::C64, DType::C128];

/// The dtypes of phase rotations.
pub(super) const COMPLEX: &[DType] = &[DType::C64, DType::C128];

/// Checks that all tensors have the first one's dtype, and that it is one of `allowed`.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] with the dtypes.
pub(super) fn check_dtypes(operation: &'static str, allowed: &[DType], tensors: &[&Tensor]) -> Result<()> {
    let Some((first, others)) = tensors.split_first() else { return Ok(()) };
    let dtype = first.dtype();
    if !allowed.contains(&dtype) {
        let names: Vec<String> = allowed.iter().map(DType::to_string).collect();
        let wanted = format!("elements of {}", names.join(", "));
        return Err(Error::DTypeMismatch { operation, wanted, found: dtype.to_string() });
    }
    others.iter().try_for_each(|other| check_dtype(operation, dtype, other))
}

/// Checks a tensor's dtype.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] with both dtypes.
pub(super) fn check_dtype(operation: &'static str, wanted: DType, tensor: &Tensor) -> Result<()> {
    if tensor.dtype() == wanted {
        return Ok(());
    }
    let (wanted, found) = (format!("operands of one precision, here {wanted}"), tensor.dtype().to_string());
    Err(Error::DTypeMismatch { operation, wanted, found })
}

/// Checks that two tensors are on one device.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] with both devices.
pub(super) fn check_devices(operation: &'static str, first: &Tensor, second: &Tensor) -> Result<()> {
    if first.device() == second.device() {
        return Ok(());
    }
    let (left, right) = (first.device().to_string(), second.device().to_string());
    Err(Error::DeviceMismatch { operation, left, right })
}

/// Checks that two tensors are on one device and have one shape: no broadcasting.
///
/// # Errors
///
/// [`Error::DeviceMismatch`], and [`Error::InvalidArgument`] with both shapes.
pub(super) fn check_shapes(operation: &'static str, first: &Tensor, second: &Tensor) -> Result<()> {
    check_devices(operation, first, second)?;
    if first.shape() == second.shape() {
        return Ok(());
    }
    let found = format!("shapes {} and {}", first.shape(), second.shape());
    Err(Error::invalid(operation, found, "tensors of one shape"))
}

/// Checks that `vector` is on the device of `rows` and has one dimension, with an element for each of the last dimension of
/// `rows`.
///
/// # Errors
///
/// [`Error::DeviceMismatch`], and [`Error::InvalidArgument`] with both shapes.
pub(super) fn check_row(operation: &'static str, name: &str, vector: &Tensor, rows: &Tensor) -> Result<()> {
    check_devices(operation, rows, vector)?;
    let length = last_size(operation, rows)?;
    if vector.shape()[..] == [length] {
        return Ok(());
    }
    let found = format!("{name} of shape {} for a tensor of shape {}", vector.shape(), rows.shape());
    Err(Error::invalid(operation, found, format!("{name} of shape [{length}]")))
}

/// Returns the size of the last dimension.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a tensor without dimensions.
pub(super) fn last_size(operation: &'static str, tensor: &Tensor) -> Result<usize> {
    let size = tensor.shape().last().copied();
    size.ok_or_else(|| Error::invalid(operation, "a tensor without dimensions", "a vector, or rows of them"))
}

/// Returns the real parts of each element in a new last dimension: 1 of a real number, 2 of a complex one. A real factor
/// scales a complex number in both.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a tensor of the largest rank.
pub(super) fn parts(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dtype().is_complex() { tensor.view_as_real() } else { tensor.unsqueeze(-1) }
}

/// Returns the numbers of the last dimension's parts; the inverse of [`parts`].
///
/// # Errors
///
/// The errors of views.
pub(super) fn joined(parts: &Tensor, dtype: DType) -> Result<Tensor> {
    if dtype.is_complex() { parts.view_as_complex() } else { parts.squeeze(-1) }
}
