//! Checks of operands, and the dtype in which their values are computed.

use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::Tensor;
use crate::types::DType;

/// Returns the dtype in which values of a float dtype are computed.
pub(super) fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

/// Returns the values in the dtype in which they are computed.
pub(super) fn wide(x: Expr<'_>) -> Expr<'_> {
    x.cast(computed(x.dtype()))
}

/// Checks that all tensors have the first one's dtype, a float.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] with the dtypes.
pub(super) fn check_floats(operation: &'static str, tensors: &[&Tensor]) -> Result<()> {
    let Some((first, others)) = tensors.split_first() else { return Ok(()) };
    let dtype = first.dtype();
    if !dtype.is_float() || dtype.is_storage_only() {
        let wanted = "elements of f16, bf16, f32 or f64".to_owned();
        return Err(Error::DTypeMismatch { operation, wanted, found: dtype.to_string() });
    }
    match others.iter().find(|other| other.dtype() != dtype) {
        None => Ok(()),
        Some(other) => {
            let (wanted, found) = (format!("operands of one dtype, here {dtype}"), other.dtype().to_string());
            Err(Error::DTypeMismatch { operation, wanted, found })
        }
    }
}

/// Returns the size of the last dimension, which is at least 1.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the shape.
pub(super) fn last_size(operation: &'static str, name: &str, tensor: &Tensor) -> Result<usize> {
    match tensor.shape().last() {
        Some(&size) if size > 0 => Ok(size),
        _ => {
            let found = format!("{name} of shape {}", tensor.shape());
            Err(Error::invalid(operation, found, "at least one element along the last dimension"))
        }
    }
}

/// Checks a tensor's shape.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with both shapes.
pub(super) fn check_shape(
    operation: &'static str,
    name: &str,
    tensor: &Tensor,
    wanted: &[usize],
) -> Result<()> {
    if tensor.shape()[..] == *wanted {
        return Ok(());
    }
    let found = format!("{name} of shape {}", tensor.shape());
    Err(Error::invalid(operation, found, format!("{name} of shape {wanted:?}")))
}

/// Checks that a tensor has the shape of `rows`, or is one row that all of them share.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with both shapes.
pub(super) fn check_rows(operation: &'static str, name: &str, tensor: &Tensor, rows: &Tensor) -> Result<()> {
    let row = rows.shape().last().map_or(&[][..], std::slice::from_ref);
    if tensor.shape() == rows.shape() || tensor.shape()[..] == *row {
        return Ok(());
    }
    let found = format!("{name} of shape {}", tensor.shape());
    Err(Error::invalid(operation, found, format!("{name} of shape {} or {row:?}", rows.shape())))
}

/// Checks that a number is finite.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the number.
pub(super) fn check_finite(operation: &'static str, name: &str, number: f64) -> Result<()> {
    if number.is_finite() {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{name} = {number}"), "a finite number"))
}

/// Checks that a number is finite and above 0.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the number.
pub(super) fn check_positive(operation: &'static str, name: &str, number: f64) -> Result<()> {
    if number.is_finite() && number > 0.0 {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{name} = {number}"), "a finite number above 0"))
}
