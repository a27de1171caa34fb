//! `selvedge.Device`, and the device that functions use if they are given none.

use std::cell::RefCell;

use pyo3::prelude::*;
use selvedge::Device;

use crate::arguments::DeviceArgument;
use crate::error::Result;
use crate::stream::{PyStream, cuda_of};

thread_local! {
    /// The devices of nested `with` blocks of this thread.
    static SCOPES: RefCell<Vec<Device>> = const { RefCell::new(Vec::new()) };
}

/// Returns the device of the innermost `with` block.
pub fn device_in_scope() -> Option<Device> {
    SCOPES.with_borrow(|scopes| scopes.last().copied())
}

/// Returns the given device, or that of the innermost `with` block, or the CPU.
pub fn device_or_default(device: Option<DeviceArgument>) -> Device {
    device.map(|device| device.0).or_else(device_in_scope).unwrap_or(Device::cpu())
}

/// A device: `selvedge.Device("cpu")`, or `selvedge.Device("cuda:0")`. Tensors of a `with` block are made on it.
#[pyclass(name = "Device", module = "selvedge", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDevice(pub Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<DeviceArgument>) -> PyDevice {
        PyDevice(device_or_default(device))
    }

    /// The first CUDA device if there is one, otherwise the CPU.
    #[staticmethod]
    fn best(py: Python<'_>) -> PyDevice {
        PyDevice(py.detach(Device::best))
    }

    /// "cpu" or "cuda".
    #[getter(r#type)]
    fn kind(&self) -> &'static str {
        if self.0.is_cpu() { "cpu" } else { "cuda" }
    }

    /// The ordinal of a CUDA device, None for the CPU.
    #[getter]
    fn index(&self) -> Option<usize> {
        self.0.as_cuda().map(|device| device.ordinal())
    }

    /// Waits for all work of the device.
    fn synchronize(&self, py: Python<'_>) -> Result<()> {
        py.detach(|| self.0.synchronize())?;
        Ok(py.check_signals()?)
    }

    /// The stream of this thread's operations on the device: that of the innermost `with stream:` block, or the device's default one.
    fn current_stream(&self, py: Python<'_>) -> Result<PyStream> {
        cuda_of("a stream", &self.0)?;
        Ok(py.detach(|| self.0.stream())?.into())
    }

    /// Sets the seed of the device's default generator.
    fn manual_seed(&self, seed: crate::arguments::InRange<u64>) {
        self.0.manual_seed(seed.0);
    }

    fn __enter__(&self) -> PyDevice {
        SCOPES.with_borrow_mut(|scopes| scopes.push(self.0));
        *self
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        SCOPES.with_borrow_mut(|scopes| scopes.pop());
    }

    fn __repr__(&self) -> String {
        format!("selvedge.Device('{}')", self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, pyo3::types::PyType>, (String,)) {
        (py.get_type::<PyDevice>(), (self.0.to_string(),))
    }
}
