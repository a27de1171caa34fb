//! `selvedge.trace`: a file of what the program and its devices did and when.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use selvedge::trace::Range;

use crate::error::Result;

/// Records a trace into a file during a `with` block: host calls, memory and the devices' work, which Perfetto and `selvedge trace`
/// show. There is one trace at a time in a process.
///
/// >>> import os, tempfile
/// >>> path = os.path.join(tempfile.mkdtemp(), "trace.json.gz")
/// >>> with sv.trace(path):
/// ...     with sv.trace.range("load batch"):
/// ...         x = sv.zeros(2, 3) + 1
/// >>> os.path.getsize(path) > 0
/// True
#[pyclass(name = "trace", module = "selvedge", frozen)]
pub struct PyTrace {
    path: PathBuf,
}

#[pymethods]
impl PyTrace {
    #[new]
    fn new(path: PathBuf) -> PyTrace {
        PyTrace { path }
    }

    /// A block of code by a name, for a `with` statement.
    #[staticmethod]
    fn range(name: String) -> PyTraceRange {
        PyTraceRange { name, open: Mutex::new(Vec::new()) }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> Result<PyRef<'_, Self>> {
        selvedge::trace::start(&slf.path)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> Result<()> {
        Ok(py.detach(selvedge::trace::stop)?)
    }
}

/// A block of code by a name in a trace; see `selvedge.trace.range`.
#[pyclass(name = "trace_range", module = "selvedge", frozen)]
pub struct PyTraceRange {
    name: String,
    /// One for each `with` block that has entered it.
    open: Mutex<Vec<Range>>,
}

#[pymethods]
impl PyTraceRange {
    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        let range = selvedge::trace::range(slf.name.clone());
        slf.open.lock().unwrap_or_else(PoisonError::into_inner).push(range);
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        drop(self.open.lock().unwrap_or_else(PoisonError::into_inner).pop());
    }
}
