//! [`Module`], a layer or a model.

use std::collections::{BTreeMap, BTreeSet};

use super::autograd::{Variable, no_grad};
use super::{Activation, Linear};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// A function of a variable with parameters.
///
/// ```
/// use selvedge::nn::{Initializer, Linear, Module, Variable};
/// use selvedge::{Device, Result, Tensor};
///
/// /// x + f(x).
/// struct Residual(Linear);
///
/// impl Module for Residual {
///     fn forward(&self, input: &Variable) -> Result<Variable> {
///         self.0.forward(input)? + input
///     }
///
///     fn named_parameters(&self) -> Vec<(String, Variable)> {
///         self.0.named_parameters()
///     }
/// }
///
/// let model = Residual(Linear::new(2, 2, &Initializer::new(&Device::cpu()))?);
/// let names: Vec<String> = model.state_dict().into_keys().collect();
/// assert_eq!(names, ["bias", "weight"]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub trait Module: Send + Sync {
    /// Computes the result.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the layer's name and both shapes where they do not meet, and errors of the operations.
    fn forward(&self, input: &Variable) -> Result<Variable>;

    /// Returns the linear layer that the module is, if it is one. A container may join it with the activation and the linear
    /// layers behind it ([`linear_layers`](super::linear_layers)) in place of calling [`forward`](Self::forward).
    fn as_linear(&self) -> Option<&Linear> {
        None
    }

    /// Returns the activation that the module is, if it is one. A container may join it with the linear layer before it in
    /// place of calling [`forward`](Self::forward).
    fn as_activation(&self) -> Option<Activation> {
        None
    }

    /// Returns the parameters with their names, in a fixed order. A container puts a layer's name and a dot in front.
    fn named_parameters(&self) -> Vec<(String, Variable)> {
        Vec::new()
    }

    /// Returns the buffers with their names, as [`named_parameters`](Self::named_parameters) returns the parameters: variables
    /// that no optimizer changes but that belong to the state, such as the running statistics of
    /// [`BatchNorm1d`](super::BatchNorm1d). A container returns those of its layers.
    fn named_buffers(&self) -> Vec<(String, Variable)> {
        Vec::new()
    }

    /// Sets the mode of layers that differ between training and evaluation, such as [`Dropout`](super::Dropout). Modules
    /// begin in the training mode.
    fn set_training(&mut self, _is_training: bool) {}

    /// Sets the training mode.
    fn train(&mut self) {
        self.set_training(true);
    }

    /// Sets the evaluation mode.
    fn eval(&mut self) {
        self.set_training(false);
    }

    /// Returns the parameters.
    fn parameters(&self) -> Vec<Variable> {
        self.named_parameters().into_iter().map(|(_, parameter)| parameter).collect()
    }

    /// Returns the tensors of the parameters and buffers by name. Later steps do not change them.
    fn state_dict(&self) -> BTreeMap<String, Tensor> {
        snapshots(self.named_parameters().into_iter().chain(self.named_buffers()).collect())
    }

    /// Sets the parameters and buffers to tensors by name. They are copied to the parameters' devices and cast to their dtypes.
    /// A backward through the old values is an error from then on.
    ///
    /// # Errors
    ///
    /// One [`Error::InvalidArgument`] that names every missing and every extra entry, and every entry of a wrong shape or
    /// of another kind of dtype than the parameter's. Nothing changes then.
    fn load_state_dict(&mut self, entries: &BTreeMap<String, Tensor>) -> Result<()> {
        load(self.named_parameters().into_iter().chain(self.named_buffers()).collect(), entries)
    }
}

/// Returns the variables of a layer with its name and a dot in front of theirs.
pub(super) fn prefixed(
    layer: impl std::fmt::Display,
    variables: Vec<(String, Variable)>,
) -> impl Iterator<Item = (String, Variable)> {
    variables.into_iter().map(move |(name, variable)| (format!("{layer}.{name}"), variable))
}

fn snapshots(variables: Vec<(String, Variable)>) -> BTreeMap<String, Tensor> {
    variables.into_iter().map(|(name, variable)| (name, variable.snapshot())).collect()
}

/// Checks that tensors by name have the names and the shapes of parameters.
///
/// # Errors
///
/// One [`Error::InvalidArgument`] that names every missing and extra entry, and every entry of a wrong shape or with elements
/// that are no floats.
pub(super) fn check_entries(
    wanted: impl IntoIterator<Item = (String, Vec<usize>)>,
    entries: &BTreeMap<String, Tensor>,
) -> Result<()> {
    let mut faults: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    for (name, shape) in wanted {
        match entries.get(&name) {
            None => faults.push(format!("'{name}' is missing")),
            Some(entry) if entry.shape()[..] != shape[..] => {
                faults.push(format!("'{name}' has shape {} in place of {shape:?}", entry.shape()));
            }
            Some(entry) if !entry.dtype().is_float() => {
                faults.push(format!("'{name}' has dtype {} in place of a float", entry.dtype()));
            }
            Some(_) => {}
        }
        known.insert(name);
    }
    let extra = entries.keys().filter(|name| !known.contains(*name));
    faults.extend(extra.map(|name| format!("'{name}' is extra")));
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::invalid("load_state_dict", faults.join(", "), "the parameters of the model")),
    }
}

pub(super) fn load(parameters: Vec<(String, Variable)>, entries: &BTreeMap<String, Tensor>) -> Result<()> {
    let mut faults: Vec<String> = Vec::new();
    let mut pairs = Vec::with_capacity(parameters.len());
    for (name, parameter) in &parameters {
        let Some(entry) = entries.get(name) else {
            faults.push(format!("'{name}' is missing"));
            continue;
        };
        let (shape, dtype) = (parameter.shape(), parameter.dtype());
        if *entry.shape() != shape {
            faults.push(format!("'{name}' has shape {} in place of {shape}", entry.shape()));
        } else if entry.dtype() != dtype && !(entry.dtype().is_float() && dtype.is_float()) {
            faults.push(format!("'{name}' has dtype {} in place of {dtype}", entry.dtype()));
        } else {
            pairs.push((parameter, entry));
        }
    }
    let extra = entries.keys().filter(|&name| !parameters.iter().any(|(known, _)| known == name));
    faults.extend(extra.map(|name| format!("'{name}' is extra")));
    if !faults.is_empty() {
        let wanted = "the names and shapes of the module's own state_dict";
        return Err(Error::invalid("load_state_dict", faults.join(", "), wanted));
    }
    // Copies and casts may run out of memory, so they precede the first change.
    let pairs = pairs
        .into_iter()
        .map(|(parameter, entry)| Ok((parameter, entry.to(&parameter.device())?.cast(parameter.dtype())?)))
        .collect::<Result<Vec<_>>>()?;
    no_grad(|| {
        pairs.iter().try_for_each(|(parameter, entry)| {
            parameter.update(|elements| elements.assign(entry).map(|_| ()))
        })
    })
}
