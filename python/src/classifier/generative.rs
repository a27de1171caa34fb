//! `GenerativeModel`, `SyntheticData`, and the functions of beliefs.

use pyo3::prelude::*;
use selvedge::classifier::{self as library, SyntheticData};

use super::model::numbers;
use crate::arguments::{DeviceArgument, InRange, TensorArgument};
use crate::device::device_or_default;
use crate::error::Result;
use crate::tensor::PyTensor;

/// A generative model of rows: class c is a Gaussian around row c of the centres, with one deviation in every feature.
///
/// `GenerativeModel(centres, deviation)` takes centres (classes, features) of f32 or f64. Inputs have their dtype and device.
///
/// >>> model = sv.classifier.GenerativeModel(sv.Tensor([[0.0, 0.0], [1.0, 0.0]]), 0.5)
/// >>> round(model.posterior(sv.Tensor([[0.5, 3.0]]), [0.25, 0.75])[0, 0].item(), 6)
/// 0.25
#[pyclass(name = "GenerativeModel", module = "selvedge.classifier", frozen)]
pub struct PyGenerativeModel(pub library::GenerativeModel);

#[pymethods]
impl PyGenerativeModel {
    #[new]
    fn new(py: Python<'_>, centres: TensorArgument, deviation: InRange<f64>) -> Result<PyGenerativeModel> {
        let work = || library::GenerativeModel::new(centres.0, deviation.0);
        Ok(PyGenerativeModel(py.detach(work)?))
    }

    /// The centres, of shape (classes, features).
    #[getter]
    fn centres(&self) -> PyTensor {
        self.0.centres().clone().into()
    }

    /// The deviation of every feature.
    #[getter]
    fn deviation(&self) -> f64 {
        self.0.deviation()
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.0.classes()
    }

    /// The number of features.
    #[getter]
    fn features(&self) -> usize {
        self.0.features()
    }

    /// The log-likelihood of rows (rows, features) in each class, of shape (rows, classes).
    fn log_likelihood(&self, py: Python<'_>, inputs: TensorArgument) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.log_likelihood(&inputs.0))?.into())
    }

    /// The exact posterior of rows (rows, features) with a prior, of shape (rows, classes).
    fn posterior(
        &self,
        py: Python<'_>,
        inputs: TensorArgument,
        prior: Vec<InRange<f64>>,
    ) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.posterior(&inputs.0, &numbers(prior)))?.into())
    }

    /// The negative logarithm of each row's evidence, of shape (rows,): the least free energy.
    fn surprise(&self, py: Python<'_>, inputs: TensorArgument, prior: Vec<InRange<f64>>) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.surprise(&inputs.0, &numbers(prior)))?.into())
    }

    /// The class of the largest exact posterior of each row, i64 of shape (rows,): the Bayes rule.
    fn bayes_classes(
        &self,
        py: Python<'_>,
        inputs: TensorArgument,
        prior: Vec<InRange<f64>>,
    ) -> Result<PyTensor> {
        Ok(py.detach(|| self.0.bayes_classes(&inputs.0, &numbers(prior)))?.into())
    }
}

/// Rows with their classes; `synthetic` returns them.
#[pyclass(name = "SyntheticData", module = "selvedge.classifier", frozen)]
struct PySyntheticData(SyntheticData);

#[pymethods]
impl PySyntheticData {
    /// The features, f32 of shape (rows, 100).
    #[getter]
    fn features(&self) -> PyTensor {
        self.0.features.clone().into()
    }

    /// The class of each row, i64 of shape (rows,).
    #[getter]
    fn labels(&self) -> PyTensor {
        self.0.labels.clone().into()
    }

    /// The model that the rows were drawn from.
    #[getter]
    fn model(&self) -> PyGenerativeModel {
        PyGenerativeModel(self.0.model.clone())
    }
}

/// Draws rows of five classes by `DEFAULT_PRIOR`, the same on every device.
///
/// >>> sv.classifier.synthetic(8, seed=1).features.shape
/// (8, 100)
#[pyfunction]
#[pyo3(signature = (count, seed=InRange(0), *, device=None), text_signature = "(count, seed=0, *, device=None)")]
fn synthetic(
    py: Python<'_>,
    count: InRange<usize>,
    seed: InRange<u64>,
    device: Option<DeviceArgument>,
) -> Result<PySyntheticData> {
    let device = device_or_default(device);
    Ok(PySyntheticData(py.detach(|| library::synthetic(count.0, seed.0, &device))?))
}

/// The free energy of each row of posteriors (rows, classes) with a prior (classes), of shape (rows,). Without log-likelihoods
/// (rows, classes) it is the divergence from the prior.
///
/// >>> posterior, prior = sv.Tensor([[0.2] * 5]), sv.Tensor(sv.classifier.DEFAULT_PRIOR)
/// >>> round(sv.classifier.free_energy(posterior, prior).item(), 6)
/// 0.581224
#[pyfunction]
#[pyo3(signature = (posterior, prior, log_likelihood=None))]
fn free_energy(
    py: Python<'_>,
    posterior: TensorArgument,
    prior: TensorArgument,
    log_likelihood: Option<TensorArgument>,
) -> Result<PyTensor> {
    let likelihood = log_likelihood.as_ref().map(|tensor| &tensor.0);
    Ok(py.detach(|| library::free_energy(&posterior.0, &prior.0, likelihood))?.into())
}

/// Each row of posteriors (rows, classes) times the prior (classes), normalised.
///
/// >>> sv.classifier.fuse_prior(sv.Tensor([[0.5, 0.5]]), sv.Tensor([0.25, 0.75])).tolist()
/// [[0.25, 0.75]]
#[pyfunction]
fn fuse_prior(py: Python<'_>, posterior: TensorArgument, prior: TensorArgument) -> Result<PyTensor> {
    Ok(py.detach(|| library::fuse_prior(&posterior.0, &prior.0))?.into())
}

/// 0.9 of a prior plus 0.1 of the observed probabilities of the classes, normalised.
///
/// >>> sv.classifier.learned_prior([0.5, 0.5], [1.0, 0.0])
/// [0.55, 0.45]
#[pyfunction]
fn learned_prior(prior: Vec<InRange<f64>>, observed: Vec<InRange<f64>>) -> Result<Vec<f64>> {
    Ok(library::learned_prior(&numbers(prior), &numbers(observed))?)
}

/// Adds the classes and functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGenerativeModel>()?;
    module.add_class::<PySyntheticData>()?;
    module.add_function(wrap_pyfunction!(synthetic, module)?)?;
    module.add_function(wrap_pyfunction!(free_energy, module)?)?;
    module.add_function(wrap_pyfunction!(fuse_prior, module)?)?;
    module.add_function(wrap_pyfunction!(learned_prior, module)?)
}
