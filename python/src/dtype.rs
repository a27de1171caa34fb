//! `selvedge.DType`.

use pyo3::prelude::*;
use selvedge::DType;

use crate::arguments::DTypeArgument;
use crate::error::{Result, wrong_type};

/// The type of a tensor's elements: `selvedge.f32`, or `selvedge.DType("float32")`.
#[pyclass(name = "DType", module = "selvedge", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDType(pub DType);

#[pymethods]
impl PyDType {
    #[new]
    fn new(dtype: DTypeArgument) -> PyDType {
        PyDType(dtype.0)
    }

    /// The name, such as "f32".
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// NumPy's name, such as "float32".
    #[getter]
    fn numpy_name(&self) -> &'static str {
        self.0.numpy_name()
    }

    /// The bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn is_float(&self) -> bool {
        self.0.is_float()
    }

    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    #[getter]
    fn is_integer(&self) -> bool {
        self.0.is_integer()
    }

    fn __repr__(&self) -> String {
        format!("selvedge.{}", self.0.name())
    }

    fn __str__(&self) -> &'static str {
        self.0.name()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, pyo3::types::PyType>, (&'static str,)) {
        (py.get_type::<PyDType>(), (self.0.name(),))
    }
}

/// Returns NumPy's dtype; those that NumPy lacks are of the package `ml_dtypes`.
pub fn numpy_dtype(py: Python<'_>, dtype: DType) -> Result<Bound<'_, PyAny>> {
    let name = dtype.numpy_name();
    if !matches!(dtype, DType::BF16 | DType::F8E4M3 | DType::F8E5M2) {
        return Ok(py.import("numpy")?.call_method1("dtype", (name,))?);
    }
    match py.import("ml_dtypes").and_then(|module| module.getattr(name)) {
        Ok(kind) => Ok(py.import("numpy")?.call_method1("dtype", (kind,))?),
        Err(_) => {
            let found = format!("{dtype}, which needs the package ml_dtypes");
            Err(wrong_type("numpy", found, "a dtype of NumPy, such as that of .to(\"f32\")").into())
        }
    }
}
