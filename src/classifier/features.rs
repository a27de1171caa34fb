//! Checks of features and labels. Errors name the row.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::tensor::{Device, Fused, Tensor};
use crate::types::DType;

/// Returns whether a row has a value that is not finite.
fn has_bad_value() -> &'static Fused<1> {
    static FUNCTION: OnceLock<Fused<1>> = OnceLock::new();
    FUNCTION.get_or_init(|| Fused::new(|[x]| x.is_finite().logical_not().any_group()))
}

/// Checks a matrix of f32 features, a row for each input, and that every feature is finite. Waits for the device.
pub(super) fn check_features(
    operation: &'static str,
    features: &Tensor,
    width: usize,
    device: &Device,
) -> Result<()> {
    check_matrix(operation, features, width, device)?;
    check_finite(operation, features)
}

/// Checks the dtype, the device and the shape of features.
pub(super) fn check_matrix(
    operation: &'static str,
    features: &Tensor,
    width: usize,
    device: &Device,
) -> Result<()> {
    if features.dtype() != DType::F32 {
        let (wanted, found) = ("features of f32".to_owned(), features.dtype().to_string());
        return Err(Error::DTypeMismatch { operation, wanted, found });
    }
    if features.device() != *device {
        let (left, right) = (device.to_string(), features.device().to_string());
        return Err(Error::DeviceMismatch { operation, left, right });
    }
    if !matches!(features.shape()[..], [_, found] if found == width) {
        let found = format!("features of shape {}", features.shape());
        return Err(Error::invalid(operation, found, format!("rows of {width} features")));
    }
    Ok(())
}

/// Checks that every feature of a matrix is finite. Waits for the device.
pub(super) fn check_finite(operation: &'static str, features: &Tensor) -> Result<()> {
    if features.count() == 0 {
        return Ok(());
    }
    let is_bad = has_bad_value().run([features])?.squeeze(-1)?;
    if !is_bad.any_all()?.item::<bool>()? {
        return Ok(());
    }
    let row = is_bad.to_vec::<bool>()?.iter().position(|&is_bad| is_bad).unwrap_or(0);
    let values = features.select(0, row as isize)?.to_vec::<f32>()?;
    let (column, value) = values.iter().enumerate().find(|(_, x)| !x.is_finite()).unwrap_or((0, &f32::NAN));
    Err(Error::invalid(operation, format!("{value} in row {row}, feature {column}"), "finite features"))
}

/// Checks a class for each row, and returns the classes.
pub(super) fn checked_labels(
    operation: &'static str,
    labels: &Tensor,
    rows: usize,
    classes: usize,
) -> Result<Vec<i64>> {
    if !labels.dtype().is_integer() {
        let (wanted, found) = ("labels of integers".to_owned(), labels.dtype().to_string());
        return Err(Error::DTypeMismatch { operation, wanted, found });
    }
    if labels.shape()[..] != [rows] {
        let found = format!("labels of shape {} for {rows} rows", labels.shape());
        return Err(Error::invalid(operation, found, "one label a row"));
    }
    // A u64 beyond i64 becomes negative, and is refused below.
    let labels = labels.cast(DType::I64)?.to_vec::<i64>()?;
    match labels.iter().enumerate().find(|(_, label)| !(0..classes as i64).contains(*label)) {
        None => Ok(labels),
        Some((row, label)) => {
            let found = format!("label {label} in row {row}");
            Err(Error::invalid(operation, found, format!("a class from 0 to {}", classes.saturating_sub(1))))
        }
    }
}
