//! [`ParameterList`], the parameters of an optimizer.

use std::collections::{BTreeMap, BTreeSet};

use super::compute_dtype;
use crate::error::{Error, Result};
use crate::nn::Variable;
use crate::tensor::{Device, Tensor};
use crate::types::DType;

/// The entry of a `state_dict` with the learning rate.
const LEARNING_RATE: &str = "learning_rate";
/// The entry of a parameter's state with its number of steps.
pub(super) const STEP: &str = "step";

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

/// The state of one parameter as tensors: the number of steps is an i64, all others have the parameter's shape and the dtype
/// that steps are computed in.
pub(super) trait ParameterState: Sized {
    /// The names of the tensors, those of PyTorch.
    const FIELDS: &'static [&'static str];

    /// Returns the tensors in the order of the fields.
    fn to_tensors(&self) -> Result<Vec<Tensor>>;

    /// Returns the state of checked tensors in the order of the fields.
    fn from_tensors(tensors: Vec<Tensor>) -> Result<Self>;
}

impl<S: ParameterState> ParameterList<S> {
    /// Returns the states by the parameter's position and the field, and the learning rate.
    pub fn state_dict(&self, learning_rate: f64) -> Result<BTreeMap<String, Tensor>> {
        let rate = Tensor::new(learning_rate, &Device::cpu())?;
        let mut entries = BTreeMap::from([(LEARNING_RATE.to_owned(), rate)]);
        for (position, state) in self.states.iter().enumerate() {
            let tensors = state.as_ref().map(S::to_tensors).transpose()?.unwrap_or_default();
            let names = S::FIELDS.iter().map(|field| format!("{position}.{field}"));
            entries.extend(names.zip(tensors));
        }
        Ok(entries)
    }

    /// Sets the states, and returns the learning rate. A parameter without entries has no state.
    ///
    /// # Errors
    ///
    /// One [`Error::InvalidArgument`] that names every entry that is missing, extra, or of another shape or dtype. All states
    /// stay then.
    pub fn load_state_dict(
        &mut self,
        operation: &'static str,
        entries: &BTreeMap<String, Tensor>,
    ) -> Result<f64> {
        let mut faults: Vec<String> = Vec::new();
        let mut known = BTreeSet::from([LEARNING_RATE.to_owned()]);
        let mut rate = 0.0;
        match entries.get(LEARNING_RATE) {
            Some(entry) if entry.dtype() == DType::F64 && entry.count() == 1 => {
                rate = entry.item::<f64>()?;
                if !rate.is_finite() || rate < 0.0 {
                    faults.push(format!("'{LEARNING_RATE}' is {rate}"));
                }
            }
            Some(entry) => faults.push(format!("'{LEARNING_RATE}' is {}", described(entry))),
            None => faults.push(format!("'{LEARNING_RATE}' is missing")),
        }
        let mut states = Vec::with_capacity(self.variables.len());
        for (position, parameter) in self.variables.iter().enumerate() {
            let names: Vec<String> = S::FIELDS.iter().map(|field| format!("{position}.{field}")).collect();
            known.extend(names.iter().cloned());
            if !names.iter().any(|name| entries.contains_key(name)) {
                states.push(None);
                continue;
            }
            let mut tensors = Vec::with_capacity(names.len());
            for (field, name) in S::FIELDS.iter().zip(names) {
                let Some(entry) = entries.get(&name) else {
                    faults.push(format!("'{name}' is missing"));
                    continue;
                };
                let is_step = *field == STEP;
                let dtype = if is_step { DType::I64 } else { compute_dtype(parameter.dtype()) };
                let is_shape = if is_step { entry.rank() == 0 } else { *entry.shape() == parameter.shape() };
                if entry.dtype() != dtype || !is_shape {
                    let shape = if is_step { "[]".to_owned() } else { parameter.shape().to_string() };
                    let found = described(entry);
                    faults.push(format!("'{name}' is {found} in place of {dtype} of shape {shape}"));
                } else {
                    tensors.push(if is_step { entry.clone() } else { entry.to(&parameter.device())? });
                }
            }
            if tensors.len() == S::FIELDS.len() {
                states.push(Some(S::from_tensors(tensors)?));
            }
        }
        let extra = entries.keys().filter(|&name| !known.contains(name));
        faults.extend(extra.map(|name| format!("'{name}' is extra")));
        if !faults.is_empty() {
            let wanted = format!("the state_dict of this optimizer, of {} parameters", self.variables.len());
            return Err(Error::invalid(operation, faults.join(", "), wanted));
        }
        self.states = states;
        Ok(rate)
    }
}

/// Returns the tensors of a state's fields.
///
/// # Errors
///
/// [`Error::LengthMismatch`] for another number of tensors.
pub(super) fn fields<const COUNT: usize>(tensors: Vec<Tensor>) -> Result<[Tensor; COUNT]> {
    tensors.try_into().map_err(|tensors: Vec<Tensor>| Error::LengthMismatch {
        operation: "load_state_dict",
        wanted: COUNT,
        found: tensors.len(),
    })
}

fn described(entry: &Tensor) -> String {
    format!("{} of shape {}", entry.dtype(), entry.shape())
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
