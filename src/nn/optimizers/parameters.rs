//! [`ParameterList`], the parameters of an optimizer.

use crate::error::{Error, Result};
use crate::nn::Variable;

/// Parameters, each once, with a state of type `S` from the first step on.
#[derive(Debug)]
pub(super) struct ParameterList<S> {
    pub variables: Vec<Variable>,
    pub states: Vec<Option<S>>,
}

impl<S> ParameterList<S> {
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a parameter that is no leaf with a gradient.
    pub fn new(operation: &'static str, parameters: Vec<Variable>) -> Result<ParameterList<S>> {
        let mut variables: Vec<Variable> = Vec::with_capacity(parameters.len());
        for (position, parameter) in parameters.into_iter().enumerate() {
            if !parameter.requires_grad() || !parameter.is_leaf() {
                let found = format!("{parameter:?} as parameter {position}");
                return Err(Error::invalid(operation, found, "a leaf that requires a gradient"));
            }
            if !variables.iter().any(|known| known.is_same(&parameter)) {
                variables.push(parameter);
            }
        }
        let states = variables.iter().map(|_| None).collect();
        Ok(ParameterList { variables, states })
    }
}

/// Checks a number of an optimizer.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a number that is negative, infinite or NaN.
pub(super) fn check_number(operation: &'static str, name: &str, number: f64) -> Result<()> {
    if number.is_finite() && number >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("a {name} of {number}"), "a finite number that is at least 0"))
}

/// Checks a decay of moments.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a number outside 0 to 1, without 1.
pub(super) fn check_fraction(operation: &'static str, name: &str, number: f64) -> Result<()> {
    if (0.0..1.0).contains(&number) {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("a {name} of {number}"), "a number of at least 0 and below 1"))
}
