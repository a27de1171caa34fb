//! `selvedge.nn.Function`, an operation whose forward and backward are functions of Python.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use selvedge::nn::{Function, FunctionContext, Variable, is_grad_enabled};
use selvedge::{Error, Tensor};

use super::variable::PyVariable;
use crate::error::{Result, invalid, raised, type_name, wrong_type};
use crate::tensor::{PyTensor, shares_elements};

/// An operation with a backward of its own, such as one with a custom kernel. `apply` of a subclass takes variables, tensors and other
/// objects, and returns a variable.
///
/// A subclass has two static methods. `forward(context, *arguments)` gets a tensor for each variable and returns a tensor.
/// `backward(context, gradient)` gets the gradient of the result and returns one tensor for each argument of `apply`, or None. Other objects
/// than variables and tensors come as they are, and have None. There is no second derivative. A tensor for the backward goes through
/// `context.save_for_backward`; an attribute of the context holds anything else.
///
/// >>> class Cube(sv.nn.Function):
/// ...     @staticmethod
/// ...     def forward(context, x):
/// ...         context.save_for_backward(x)
/// ...         return x ** 3
/// ...     @staticmethod
/// ...     def backward(context, gradient):
/// ...         x, = context.saved_tensors
/// ...         return 3 * x ** 2 * gradient
/// >>> x = sv.nn.Variable([1.0, 2.0], requires_grad=True)
/// >>> Cube.apply(x).sum().backward()
/// >>> x.grad.tolist()
/// [3.0, 12.0]
#[pyclass(name = "Function", module = "selvedge.nn", frozen, subclass)]
pub struct PyFunction;

/// The first argument of the methods of a `Function`: the tensors that the forward saves, and any attributes.
#[pyclass(name = "FunctionContext", module = "selvedge.nn", frozen, dict)]
pub struct PyFunctionContext {
    saved: Mutex<Vec<Py<PyTensor>>>,
    needs_gradient: Vec<bool>,
}

impl PyFunctionContext {
    fn saved(&self) -> MutexGuard<'_, Vec<Py<PyTensor>>> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyFunctionContext {
    /// Saves tensors for the backward, in place of those that an earlier call saved. A later change in place of an input or of the result
    /// that is saved is an error of the backward.
    #[pyo3(signature = (*tensors))]
    fn save_for_backward(&self, tensors: &Bound<'_, PyTuple>) -> Result<()> {
        let mut saved = Vec::with_capacity(tensors.len());
        for tensor in tensors.iter() {
            match tensor.cast_into::<PyTensor>() {
                Ok(tensor) => saved.push(tensor.unbind()),
                Err(error) => {
                    let found = type_name(&error.into_inner());
                    return Err(wrong_type("save_for_backward", found, "tensors").into());
                }
            }
        }
        // The old ones are dropped without the lock.
        let _earlier = std::mem::replace(&mut *self.saved(), saved);
        Ok(())
    }

    /// The saved tensors.
    #[getter]
    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let saved: Vec<Py<PyTensor>> = self.saved().iter().map(|tensor| tensor.clone_ref(py)).collect();
        PyTuple::new(py, saved)
    }

    /// True for each argument of `apply` whose gradient is needed.
    #[getter]
    fn needs_input_grad<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.needs_gradient.iter().copied())
    }
}

/// An argument of `apply`.
enum Argument {
    /// The position among the inputs of the library's function.
    Input(usize),
    Other(Py<PyAny>),
}

/// A call of `apply` as the library's function.
struct PythonFunction {
    name: &'static str,
    class: Py<PyType>,
    context: Py<PyFunctionContext>,
    arguments: Vec<Argument>,
}

/// Returns a name that lives as long as the process, which is stored once.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}

impl PythonFunction {
    fn call_forward(&self, py: Python<'_>, inputs: &[&Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        let context = self.context.bind(py);
        let mut arguments = vec![context.clone().into_any()];
        for argument in &self.arguments {
            arguments.push(match argument {
                Argument::Other(object) => object.bind(py).clone(),
                Argument::Input(at) => Bound::new(py, PyTensor::from(inputs[*at].clone()))?.into_any(),
            });
        }
        let result = self.class.bind(py).call_method1("forward", PyTuple::new(py, arguments)?)?;
        let Ok(result) = result.cast::<PyTensor>() else {
            return Err(wrong_type(
                self.name,
                type_name(&result),
                "a selvedge.Tensor, which forward returns",
            )
            .into());
        };
        let saved = std::mem::take(&mut *context.get().saved());
        let saved = saved.iter().map(|tensor| tensor.get().tensor(py)).collect();
        Ok((result.get().tensor(py), saved))
    }

    fn call_backward(
        &self,
        py: Python<'_>,
        saved: &[Tensor],
        gradient: &Tensor,
    ) -> Result<Vec<Option<Tensor>>> {
        let context = self.context.bind(py);
        let saved = saved.iter().map(|tensor| Py::new(py, PyTensor::from(tensor.clone())));
        let saved = saved.collect::<PyResult<Vec<_>>>()?;
        // The old ones are dropped without the lock.
        let earlier = std::mem::replace(&mut *context.get().saved(), saved);
        drop(earlier);
        let gradient = Bound::new(py, PyTensor::from(gradient.clone()))?;
        let result = self.class.bind(py).call_method1("backward", (context, gradient))?;
        let all: Vec<Bound<'_, PyAny>> =
            match result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>() {
                true => result.try_iter()?.collect::<PyResult<_>>()?,
                false => vec![result],
            };
        let refused = |found: String, wanted: String| Error::Backward { operation: self.name, found, wanted };
        if all.len() != self.arguments.len() {
            let wanted = format!("one for each of {} arguments of apply", self.arguments.len());
            return Err(refused(format!("{} gradients", all.len()), wanted).into());
        }
        let mut gradients = Vec::with_capacity(all.len());
        for (at, (argument, gradient)) in self.arguments.iter().zip(&all).enumerate() {
            let found = if gradient.is_none() {
                None
            } else if let Ok(tensor) = gradient.cast::<PyTensor>() {
                Some(tensor.get().tensor(py))
            } else if let Ok(variable) = gradient.cast::<PyVariable>() {
                Some(variable.get().0.tensor())
            } else {
                let found = format!("a gradient of type {} for argument {at}", type_name(gradient));
                return Err(wrong_type(self.name, found, "a selvedge.Tensor or None").into());
            };
            match (argument, found) {
                (Argument::Input(_), found) => gradients.push(found),
                (Argument::Other(_), None) => {}
                (Argument::Other(object), Some(_)) => {
                    let kind = type_name(object.bind(py));
                    let found = format!("a gradient for argument {at}, of type {kind}");
                    return Err(
                        refused(found, "None for an argument that is no variable or tensor".into()).into()
                    );
                }
            }
        }
        Ok(gradients)
    }
}

impl Function for PythonFunction {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> selvedge::Result<Tensor> {
        let (result, saved) = Python::attach(|py| self.call_forward(py, inputs).map_err(raised))?;
        for tensor in saved {
            // By their elements: the forward may have written to an object since it got it.
            match inputs.iter().position(|input| shares_elements(input, &tensor)) {
                Some(at) => context.save_input(at),
                None if shares_elements(&result, &tensor) => context.save_result(),
                None => context.save(tensor),
            }
        }
        Ok(result)
    }

    fn backward(&self, saved: &[Tensor], gradient: &Tensor) -> selvedge::Result<Vec<Option<Tensor>>> {
        Python::attach(|py| self.call_backward(py, saved, gradient).map_err(raised))
    }
}

#[pymethods]
impl PyFunction {
    /// Applies the function to arguments, and records it if a variable among them requires a gradient.
    #[classmethod]
    #[pyo3(signature = (*arguments))]
    fn apply(class: &Bound<'_, PyType>, arguments: &Bound<'_, PyTuple>) -> Result<PyVariable> {
        let py = class.py();
        let name = interned(class.name()?.to_string());
        let (mut inputs, mut all, mut needs_gradient) = (Vec::new(), Vec::new(), Vec::new());
        for argument in arguments.iter() {
            let input = if let Ok(variable) = argument.cast::<PyVariable>() {
                variable.get().0.clone()
            } else if let Ok(tensor) = argument.cast::<PyTensor>() {
                Variable::new(tensor.get().tensor(py))
            } else {
                all.push(Argument::Other(argument.unbind()));
                needs_gradient.push(false);
                continue;
            };
            needs_gradient.push(is_grad_enabled() && input.requires_grad());
            all.push(Argument::Input(inputs.len()));
            inputs.push(input);
        }
        let is_recorded = needs_gradient.contains(&true);
        for (method, signature) in
            [("forward", "forward(context, *arguments)"), ("backward", "backward(context, gradient)")]
        {
            if (method == "forward" || is_recorded) && !class.hasattr(method)? {
                let found = format!("no {method} in the class");
                return Err(invalid(name, found, format!("a static method {signature}")).into());
            }
        }
        let context = Py::new(py, PyFunctionContext { saved: Mutex::default(), needs_gradient })?;
        let function = PythonFunction { name, class: class.clone().unbind(), context, arguments: all };
        Ok(py.detach(|| Variable::apply(function, &inputs.iter().collect::<Vec<_>>()))?.into())
    }
}
