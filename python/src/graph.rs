//! `selvedge.Graph` and `selvedge.ExecutableGraph`: captured work that is launched as one operation.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use selvedge::Device;
use selvedge::driver::{ExecutableGraph, Graph, Stream};

use crate::device::PyDevice;
use crate::error::{Result, invalid, raised, type_name, wrong_type};
use crate::nn::PyVariable;
use crate::stream::{PyStream, cuda_device, cuda_of};
use crate::tensor::PyTensor;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Captured work, which `Graph.capture` returns. It runs by `instantiate` and `ExecutableGraph.launch`.
#[pyclass(name = "Graph", module = "selvedge", frozen)]
pub struct PyGraph {
    graph: Mutex<Option<Graph>>,
}

/// Returns the error of a graph that is no longer there.
fn instantiated() -> selvedge::Error {
    invalid("a graph", "one that was instantiated, or that an update took", "a graph that is captured again")
}

/// Returns the device of the first tensor of arguments.
fn device_of(py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> Option<Device> {
    arguments.iter().find_map(|argument| {
        let tensor = argument.cast::<PyTensor>().map(|tensor| tensor.get().tensor(py).device());
        tensor.or_else(|_| argument.cast::<PyVariable>().map(|variable| variable.get().0.device())).ok()
    })
}

#[pymethods]
impl PyGraph {
    /// Calls `function(*arguments)` and captures its operations on tensors instead of running them. Returns the graph and the function's
    /// result, whose tensors hold what the last launch wrote.
    ///
    /// The operations are those of this thread on the device of the stream, which is by default a new stream of the device of the first
    /// tensor among the arguments, or of the innermost `with device:` block, or of the first CUDA device. A launch reads the tensors that
    /// the function read, where they are. An operation that waits for the device, such as `item()`, is an error, and ends the capture
    /// unless the function catches it.
    ///
    ///     x = sv.ones((1000,), device="cuda")
    ///     graph, y = sv.Graph.capture(lambda: (x * 2).exp())
    ///     executable = graph.instantiate()
    ///     executable.launch()
    ///     print(y)
    #[staticmethod]
    #[pyo3(signature = (function, *arguments, stream=None))]
    fn capture<'py>(
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        stream: Option<&Bound<'py, PyStream>>,
    ) -> Result<(PyGraph, Py<PyAny>)> {
        const OPERATION: &str = "a capture";
        let py = function.py();
        if !function.is_callable() {
            return Err(wrong_type(OPERATION, type_name(function), "a function").into());
        }
        let stream = match (stream, device_of(py, arguments)) {
            (Some(stream), _) => stream.get().stream.clone(),
            (None, device) => {
                let device = match device {
                    Some(device) => cuda_of(OPERATION, &device)?,
                    None => cuda_device(OPERATION, None)?,
                };
                py.detach(|| device.stream())?
            }
        };
        let (function, arguments) = (function.clone().unbind(), arguments.clone().unbind());
        let call = |stream: &Stream| {
            Device::with_stream(stream, || {
                Python::attach(|py| {
                    function.bind(py).call1(arguments.bind(py)).map(Bound::unbind).map_err(raised)
                })
            })
        };
        let (graph, result) = py.detach(|| stream.capture(call))?;
        Ok((PyGraph { graph: Mutex::new(Some(graph)) }, result))
    }

    /// Makes the graph one that can be launched, which holds everything that its operations use. A graph is instantiated once.
    fn instantiate(&self, py: Python<'_>) -> Result<PyExecutableGraph> {
        let executable = py.detach(|| lock(&self.graph).take().ok_or_else(instantiated)?.instantiate())?;
        Ok(PyExecutableGraph { graph: Mutex::new(executable) })
    }

    /// The graph in the DOT language of Graphviz.
    fn to_dot(&self, py: Python<'_>) -> Result<String> {
        Ok(py.detach(|| lock(&self.graph).as_ref().ok_or_else(instantiated)?.to_dot())?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match py.detach(|| lock(&self.graph).as_ref().map(|graph| Device::from(graph.device()))) {
            Some(device) => format!("selvedge.Graph(device='{device}')"),
            None => "selvedge.Graph(instantiated)".to_owned(),
        }
    }
}

/// A graph that can be launched any number of times, which `Graph.instantiate` returns.
#[pyclass(name = "ExecutableGraph", module = "selvedge", frozen)]
pub struct PyExecutableGraph {
    graph: Mutex<ExecutableGraph>,
}

impl PyExecutableGraph {
    /// Uses the graph and a stream: the given one, or this thread's of operations on the device.
    fn with_stream(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyStream>>,
        work: impl FnOnce(&ExecutableGraph, &Stream) -> selvedge::Result<()> + Send,
    ) -> Result<()> {
        let stream = stream.map(|stream| stream.get());
        Ok(py.detach(|| {
            let graph = lock(&self.graph);
            match stream {
                Some(stream) => work(&graph, &stream.stream),
                None => work(&graph, &Device::from(graph.graph().device()).stream()?),
            }
        })?)
    }
}

#[pymethods]
impl PyExecutableGraph {
    /// The device.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyDevice {
        PyDevice(py.detach(|| lock(&self.graph).graph().device()).into())
    }

    /// Launches the graph on a stream, by default this thread's stream of operations on the device. It follows all earlier uses of its
    /// tensors on any stream. The call does not wait.
    #[pyo3(signature = (stream=None))]
    fn launch(&self, py: Python<'_>, stream: Option<&Bound<'_, PyStream>>) -> Result<()> {
        self.with_stream(py, stream, ExecutableGraph::launch)
    }

    /// Copies what the first launch needs to the device ahead of it.
    #[pyo3(signature = (stream=None))]
    fn upload(&self, py: Python<'_>, stream: Option<&Bound<'_, PyStream>>) -> Result<()> {
        self.with_stream(py, stream, ExecutableGraph::upload)
    }

    /// Takes the place of a graph by another capture of the same operations in the same order, with other tensors. It is cheaper than
    /// `instantiate`. An error leaves both as they were.
    fn update(&self, py: Python<'_>, graph: &Bound<'_, PyGraph>) -> Result<()> {
        let other = graph.get();
        Ok(py.detach(|| {
            let graph = lock(&other.graph).take().ok_or_else(instantiated)?;
            lock(&self.graph).update(graph).map_err(|failed| {
                *lock(&other.graph) = Some(failed.graph);
                *failed.error
            })
        })?)
    }

    /// The graph in the DOT language of Graphviz.
    fn to_dot(&self, py: Python<'_>) -> Result<String> {
        Ok(py.detach(|| lock(&self.graph).graph().to_dot())?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let device = py.detach(|| Device::from(lock(&self.graph).graph().device()));
        format!("selvedge.ExecutableGraph(device='{device}')")
    }
}
