//! `selvedge.nn.TrainingStep`, whose loss is a function of Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use selvedge::Tensor;
use selvedge::nn::{LossScale, TrainingStep, Variable};

use super::module::{dict_of, entries_of};
use super::optimizers::{OptimizerHandle, PyOptimizer, PyParameters};
use super::variable::{IndexArgument, PyVariable};
use crate::arguments::InRange;
use crate::error::{Result, invalid, is_of_library, raised, type_name, wrong_type};
use crate::tensor::PyTensor;

type Loss = Box<dyn FnMut(&[Variable]) -> selvedge::Result<Variable> + Send>;
type Step = TrainingStep<OptimizerHandle, Loss>;

/// A step of training: the gradients of a loss, clipped to `max_norm` if it is given, and a step of the optimizer.
///
/// `loss` is a function of the inputs of `step(*inputs)`, as variables, that returns a variable of one element. On a CUDA device the second
/// step of a shape is captured as one graph, and later steps launch it without calling the function: it must do the same work each time,
/// and may not wait for the device. An exception of the function leaves the parameters and the optimizer as they were.
///
/// `loss_scale` is a number or "dynamic", for gradients in f16.
///
/// >>> model = sv.nn.Linear(1, 1)
/// >>> parameters = sv.nn.Parameters(model)
/// >>> step = sv.nn.TrainingStep(parameters, sv.nn.SGD(parameters, lr=0.1), lambda x, y: sv.nn.mse_loss(model(x), y))
/// >>> losses = [step(sv.ones(4, 1), sv.ones(4, 1)).item() for _ in range(10)]
/// >>> losses[-1] < losses[0]
/// True
#[pyclass(name = "TrainingStep", module = "selvedge.nn", frozen)]
pub struct PyTrainingStep {
    step: Mutex<Step>,
    optimizer: Py<PyOptimizer>,
    /// The thread that takes a step, whose loss may not use the step itself.
    running: Mutex<Option<ThreadId>>,
    raised: Raised,
}

/// The exception of the loss in a step. A step that fails in its capture runs again without one, which the exception must not hide.
type Raised = Arc<Mutex<Option<PyErr>>>;

fn last(raised: &Raised) -> MutexGuard<'_, Option<PyErr>> {
    raised.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the loss as a function of Rust.
fn loss_of(function: Py<PyAny>, exception: Raised) -> Loss {
    Box::new(move |inputs: &[Variable]| {
        Python::attach(|py| {
            if let Some(known) = &*last(&exception) {
                return Err(raised(known.clone_ref(py)));
            }
            let inputs = inputs.iter().cloned().map(PyVariable);
            let arguments = PyTuple::new(py, inputs.collect::<Vec<_>>()).map_err(raised)?;
            let result = function.bind(py).call1(arguments).map_err(|error| {
                // An error of the library may be that of a capture alone.
                if !is_of_library(py, &error) {
                    *last(&exception) = Some(error.clone_ref(py));
                }
                raised(error)
            })?;
            match result.cast::<PyVariable>() {
                Ok(loss) => Ok(loss.get().0.clone()),
                Err(_) => {
                    Err(wrong_type("TrainingStep", type_name(&result), "a loss, a selvedge.nn.Variable"))
                }
            }
        })
    })
}

/// Returns the scale of a number, or the dynamic one of its name.
pub fn scale_of(scale: &Bound<'_, PyAny>) -> Result<LossScale> {
    match scale.cast::<PyString>() {
        Ok(name) if *name == "dynamic" => Ok(LossScale::dynamic()),
        Ok(name) => {
            Err(invalid("TrainingStep", format!("the loss scale \"{name}\""), "a number or \"dynamic\"")
                .into())
        }
        Err(_) => Ok(LossScale::fixed(scale.extract::<InRange<f64>>()?.0)),
    }
}

impl PyTrainingStep {
    /// Locks the step.
    ///
    /// # Errors
    ///
    /// An invalid argument within the step's own loss.
    fn step(&self) -> selvedge::Result<MutexGuard<'_, Step>> {
        if *self.running() == Some(thread::current().id()) {
            let wanted = "a loss that does not use the step that calls it";
            return Err(invalid("TrainingStep", "a use of the step within its loss", wanted));
        }
        Ok(self.step.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn running(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyTrainingStep {
    #[new]
    #[pyo3(
        signature = (parameters, optimizer, loss, *, max_norm=None, loss_scale=None, capture=true),
        text_signature = "(parameters, optimizer, loss, *, max_norm=None, loss_scale=None, capture=True)"
    )]
    fn new(
        py: Python<'_>,
        parameters: &Bound<'_, PyParameters>,
        optimizer: &Bound<'_, PyOptimizer>,
        loss: Py<PyAny>,
        max_norm: Option<InRange<f64>>,
        loss_scale: Option<&Bound<'_, PyAny>>,
        capture: bool,
    ) -> Result<PyTrainingStep> {
        let loss_scale = loss_scale.map(scale_of).transpose()?;
        let (object, parameters, optimizer) =
            (optimizer.clone().unbind(), parameters.get(), optimizer.get().handle());
        let raised = Raised::default();
        let loss = loss_of(loss, raised.clone());
        let step = py.detach(|| {
            let mut step = TrainingStep::new(&parameters.parameters, optimizer, loss)?;
            if let Some(max_norm) = max_norm {
                step = step.with_max_norm(max_norm.0)?;
            }
            if let Some(scale) = loss_scale {
                step = step.with_loss_scale(scale)?;
            }
            Ok::<_, selvedge::Error>(if capture { step } else { step.without_capture() })
        })?;
        Ok(PyTrainingStep { step: Mutex::new(step), optimizer: object, running: Mutex::new(None), raised })
    }

    /// Takes a step, and returns the loss, which later steps do not change.
    ///
    /// As the step of an optimizer of a module, it is refused if the module has another parameter by then.
    #[pyo3(signature = (*inputs))]
    fn __call__(&self, py: Python<'_>, inputs: Vec<IndexArgument>) -> Result<PyTensor> {
        self.optimizer.get().check_module(py)?;
        let inputs: Vec<Tensor> = inputs.into_iter().map(|input| input.0).collect();
        let loss = py.detach(|| {
            let mut step = self.step()?;
            *last(&self.raised) = None;
            *self.running() = Some(thread::current().id());
            let loss = step.run(&inputs.iter().collect::<Vec<_>>());
            *self.running() = None;
            loss
        })?;
        Ok(loss.into())
    }

    /// The norm of the gradients before the last step clipped them, None without `max_norm`.
    #[getter]
    fn grad_norm(&self, py: Python<'_>) -> Result<Option<PyTensor>> {
        let norm = py.detach(|| Ok::<_, selvedge::Error>(self.step()?.grad_norm().cloned()))?;
        Ok(norm.map(PyTensor::from))
    }

    /// True if the last step changed nothing because a gradient was not finite.
    #[getter]
    fn is_skipped(&self, py: Python<'_>) -> Result<bool> {
        Ok(py.detach(|| Ok::<_, selvedge::Error>(self.step()?.is_skipped()))?)
    }

    /// The factor of the loss, None without `loss_scale`.
    #[getter]
    fn loss_scale(&self, py: Python<'_>) -> Result<Option<f64>> {
        Ok(py.detach(|| self.step()?.loss_scale())?)
    }

    /// True if a graph is captured.
    #[getter]
    fn is_captured(&self, py: Python<'_>) -> Result<bool> {
        Ok(py.detach(|| Ok::<_, selvedge::Error>(self.step()?.is_captured()))?)
    }

    /// The reason for steps that always run uncaptured, None for others.
    #[getter]
    fn uncaptured_reason(&self, py: Python<'_>) -> Result<Option<String>> {
        let reason = || Ok::<_, selvedge::Error>(self.step()?.uncaptured_reason().map(str::to_owned));
        Ok(py.detach(reason)?)
    }

    /// The states of the optimizer and of the loss scale.
    fn state_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let tensors = py.detach(|| self.step()?.state_dict())?;
        Ok(dict_of(py, tensors)?)
    }

    /// Sets the states of the optimizer and of the loss scale, bit for bit.
    fn load_state_dict(&self, py: Python<'_>, state_dict: &Bound<'_, PyAny>) -> Result<()> {
        let entries = entries_of(state_dict)?;
        Ok(py.detach(|| self.step()?.load_state_dict(&entries))?)
    }
}
