//! `selvedge.nn.no_grad`, a context and a decorator.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use selvedge::nn::{NoGradGuard, is_grad_enabled as is_enabled, no_grad};

thread_local! {
    /// The guards of nested `with` blocks of this thread.
    static GUARDS: RefCell<Vec<NoGradGuard>> = const { RefCell::new(Vec::new()) };
}

/// Disables gradients on this thread: `with no_grad(): ...`, or `@no_grad()` for a function.
///
/// >>> x = sv.nn.Variable([1.0], requires_grad=True)
/// >>> with sv.nn.no_grad():
/// ...     y = x * 2
/// >>> y.requires_grad
/// False
#[pyclass(name = "no_grad", module = "selvedge.nn", frozen)]
pub struct PyNoGrad;

#[pymethods]
impl PyNoGrad {
    #[new]
    fn new() -> PyNoGrad {
        PyNoGrad
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        GUARDS.with_borrow_mut(|guards| guards.push(NoGradGuard::new()));
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        GUARDS.with_borrow_mut(|guards| guards.pop());
    }

    fn __call__<'py>(&self, py: Python<'py>, function: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let wrapper = Bound::new(py, PyWithoutGrad { function: function.clone().unbind() })?;
        py.import("functools")?.getattr("update_wrapper")?.call1((wrapper, function))
    }
}

/// A function without gradients, which is a method where it is an attribute of a class.
#[pyclass(frozen, dict)]
struct PyWithoutGrad {
    function: Py<PyAny>,
}

#[pymethods]
impl PyWithoutGrad {
    #[pyo3(signature = (*arguments, **keywords))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        no_grad(|| self.function.bind(py).call(arguments, keywords))
    }

    fn __get__<'py>(
        slf: Bound<'py, Self>,
        instance: Option<Bound<'py, PyAny>>,
        _owner: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(instance) = instance else { return Ok(slf.into_any()) };
        slf.py().import("types")?.getattr("MethodType")?.call1((slf, instance))
    }
}

/// True if operations of this thread are recorded.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    is_enabled()
}
