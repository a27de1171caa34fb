//! Checks of hyperparameters, which every layer and optimizer makes when they are set.

use crate::error::{Error, Result};

/// Checks a number such as an eps or a learning rate. `name` has an article, as in "an eps".
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a number that is negative, infinite or NaN.
pub(super) fn check_non_negative(operation: &'static str, name: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{name} of {value}"), "a finite number that is at least 0"))
}

/// Checks a decay of moments.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a number outside 0 to 1, without 1.
pub(super) fn check_fraction(operation: &'static str, name: &str, value: f64) -> Result<()> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{name} of {value}"), "a number of at least 0 and below 1"))
}

/// Checks a probability, or a weight of a mean of two.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a number outside 0 to 1.
pub(super) fn check_probability(operation: &'static str, name: &str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{name} of {value}"), "one from 0 to 1"))
}
