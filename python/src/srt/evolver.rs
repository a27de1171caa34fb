//! `selvedge.srt.Evolver`: the resonant evolution strategy.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use selvedge::srt::{Evolver, EvolverOptions, GenerationReport, Q_DEFICIT};

use super::arguments::{GoldenArgument, given};
use super::classes::PyGoldenTensor;
use crate::arguments::{DeviceArgument, InRange, TensorArgument};
use crate::device::device_or_default;
use crate::error::{Failure, Result, invalid};
use crate::tensor::PyTensor;

/// An evolution of a vector of points toward syntony.
///
/// `Evolver(state, n2=None, *, ...)` takes a GoldenTensor, the squared mode norms (0, 1, 4, 9 and so on without them) and the
/// options. `fitness(values)` gets the values of the survivors, f64 of shape (survivors, n), and returns an f64 tensor of shape
/// (survivors,); it must not use the evolver.
#[pyclass(name = "Evolver", module = "selvedge.srt", frozen)]
pub struct PyEvolver {
    evolver: Mutex<Evolver>,
    /// The thread whose call uses the evolver.
    user: Mutex<Option<ThreadId>>,
    /// The exception of the fitness.
    failure: Arc<Mutex<Option<PyErr>>>,
}

/// The results of a generation.
#[pyclass(name = "GenerationReport", module = "selvedge.srt", frozen, get_all)]
pub struct PyGenerationReport {
    /// The generations so far.
    generation: u64,
    /// The syntony of the best state.
    best_syntony: f64,
    /// The winner's position in the population and its syntony, or None if no survivor has a score.
    winner: Option<(usize, f64)>,
    /// True if the winner replaced the best state.
    is_accepted: bool,
    /// True if the run has converged.
    is_converged: bool,
}

impl From<GenerationReport> for PyGenerationReport {
    fn from(report: GenerationReport) -> PyGenerationReport {
        let GenerationReport { generation, best_syntony, winner, is_accepted, is_converged } = report;
        PyGenerationReport { generation, best_syntony, winner, is_accepted, is_converged }
    }
}

#[pymethods]
impl PyGenerationReport {
    fn __repr__(&self) -> String {
        let PyGenerationReport { generation, best_syntony, .. } = self;
        format!("GenerationReport(generation={generation}, best_syntony={best_syntony})")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PyEvolver {
    fn of(evolver: Evolver, fitness: Option<Py<PyAny>>) -> PyEvolver {
        let failure = Arc::new(Mutex::new(None));
        let evolver = match fitness {
            None => evolver,
            Some(fitness) => {
                let failure = failure.clone();
                evolver.with_fitness(move |values| {
                    Python::attach(|py| {
                        let answer = fitness.bind(py).call1((PyTensor::from(values.clone()),));
                        answer
                            .and_then(|answer| answer.extract::<TensorArgument>())
                            .map(|answer| answer.0)
                            .map_err(|error| {
                                let found = error.to_string();
                                *lock(&failure) = Some(error);
                                invalid("the fitness of an evolver", found, "a tensor of f64")
                            })
                    })
                })
            }
        };
        PyEvolver { evolver: Mutex::new(evolver), user: Mutex::new(None), failure }
    }

    /// Works on the evolver while other threads of Python run.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Evolver) -> selvedge::Result<T> + Send,
    ) -> Result<T> {
        let current = Some(thread::current().id());
        // The thread would wait for itself.
        if *lock(&self.user) == current {
            return Err(invalid("an evolver", "a call of its own fitness", "calls of other functions").into());
        }
        let (result, failure) = py.detach(|| {
            let mut evolver = lock(&self.evolver);
            *lock(&self.user) = current;
            let result = work(&mut evolver);
            *lock(&self.user) = None;
            (result, lock(&self.failure).take())
        });
        match (result, failure) {
            (Err(_), Some(error)) => Err(Failure::Python(error)),
            (result, _) => Ok(result?),
        }
    }
}

#[pymethods]
impl PyEvolver {
    #[new]
    #[pyo3(
        signature = (
            state, n2=None, *, seed=InRange(0), population=InRange(64), survivors=InRange(16), lambda_=InRange(Q_DEFICIT),
            mutation_scale=InRange(0.1), bound=InRange(100), sigma=InRange(0.01), max_generations=InRange(1000),
            threshold=InRange(1e-6), fitness=None
        ),
        text_signature = "(state, n2=None, *, seed=0, population=64, survivors=16, lambda_=..., mutation_scale=0.1, bound=100, sigma=0.01, max_generations=1000, threshold=1e-6, fitness=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of an evolver")]
    fn new(
        py: Python<'_>,
        state: GoldenArgument,
        n2: Option<TensorArgument>,
        seed: InRange<u64>,
        population: InRange<usize>,
        survivors: InRange<usize>,
        lambda_: InRange<f64>,
        mutation_scale: InRange<f64>,
        bound: InRange<i64>,
        sigma: InRange<f64>,
        max_generations: InRange<u64>,
        threshold: InRange<f64>,
        fitness: Option<Py<PyAny>>,
    ) -> Result<PyEvolver> {
        let options = EvolverOptions {
            seed: seed.0,
            population: population.0,
            survivors: survivors.0,
            lambda: lambda_.0,
            mutation_scale: mutation_scale.0,
            bound: bound.0,
            sigma: sigma.0,
            max_generations: max_generations.0,
            threshold: threshold.0,
        };
        let evolver = py.detach(|| Evolver::new(&state.0, given(&n2), options))?;
        Ok(PyEvolver::of(evolver, fitness))
    }

    /// An evolver of a file of `save`. Its next generations are those of the one that was saved, with the same fitness.
    #[staticmethod]
    #[pyo3(signature = (path, *, device=None, fitness=None))]
    fn restore(
        py: Python<'_>,
        path: PathBuf,
        device: Option<DeviceArgument>,
        fitness: Option<Py<PyAny>>,
    ) -> Result<PyEvolver> {
        let device = device_or_default(device);
        Ok(PyEvolver::of(py.detach(|| Evolver::restore(path, &device))?, fitness))
    }

    /// Writes the state, the history and the options to a file. A fitness is not in it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.with(py, |evolver| evolver.save(path))
    }

    /// Runs one generation, converged or not. After an exception the evolver is as it was.
    fn step(&self, py: Python<'_>) -> Result<PyGenerationReport> {
        Ok(self.with(py, Evolver::step)?.into())
    }

    /// Runs generations until convergence, the largest number of them, or False of `progress`, which gets each report. The result is
    /// "converged", "generation_limit" or "stopped".
    #[pyo3(signature = (progress=None))]
    fn run(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>) -> Result<&'static str> {
        loop {
            py.check_signals()?;
            let next = self.with(py, |evolver| {
                if evolver.is_converged() {
                    return Ok(Err("converged"));
                }
                if evolver.generation() >= evolver.options().max_generations {
                    return Ok(Err("generation_limit"));
                }
                evolver.step().map(Ok)
            })?;
            let report = match next {
                Ok(report) => PyGenerationReport::from(report),
                Err(end) => return Ok(end),
            };
            let Some(progress) = &progress else { continue };
            if matches!(progress.call1((report,))?.extract::<bool>(), Ok(false)) {
                return Ok("stopped");
            }
        }
    }

    /// The best state so far.
    #[getter]
    fn best(&self, py: Python<'_>) -> Result<PyGoldenTensor> {
        self.with(py, |evolver| Ok(PyGoldenTensor(evolver.best().clone())))
    }

    /// The syntony of the best state.
    #[getter]
    fn best_syntony(&self, py: Python<'_>) -> Result<f64> {
        self.with(py, |evolver| Ok(evolver.best_syntony()))
    }

    /// The generations so far.
    #[getter]
    fn generation(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |evolver| Ok(evolver.generation()))
    }

    /// The best syntony at the start and after each generation.
    #[getter]
    fn history(&self, py: Python<'_>) -> Result<Vec<f64>> {
        self.with(py, |evolver| Ok(evolver.history().to_vec()))
    }

    /// True if the last ten numbers of the history differ by less than the threshold.
    #[getter]
    fn is_converged(&self, py: Python<'_>) -> Result<bool> {
        self.with(py, |evolver| Ok(evolver.is_converged()))
    }

    /// The squared mode norms.
    #[getter]
    fn n2(&self, py: Python<'_>) -> Result<PyTensor> {
        self.with(py, |evolver| Ok(evolver.n2().clone().into()))
    }

    /// The options by name, as the constructor takes them.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let options = self.with(py, |evolver| Ok(evolver.options().clone()))?;
        let named = PyDict::new(py);
        named.set_item("seed", options.seed)?;
        named.set_item("population", options.population)?;
        named.set_item("survivors", options.survivors)?;
        named.set_item("lambda_", options.lambda)?;
        named.set_item("mutation_scale", options.mutation_scale)?;
        named.set_item("bound", options.bound)?;
        named.set_item("sigma", options.sigma)?;
        named.set_item("max_generations", options.max_generations)?;
        named.set_item("threshold", options.threshold)?;
        Ok(named)
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        let (generation, syntony) =
            self.with(py, |evolver| Ok((evolver.generation(), evolver.best_syntony())))?;
        Ok(format!("Evolver(generation={generation}, best_syntony={syntony})"))
    }
}
