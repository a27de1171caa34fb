//! `selvedge.Device`, and the device that functions use if they are given none.

use std::cell::RefCell;

use pyo3::prelude::*;
use selvedge::driver::{self, Attribute};
use selvedge::{Device, Error};

use crate::arguments::DeviceArgument;
use crate::error::{Result, invalid};
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

impl PyDevice {
    /// Returns the CUDA device.
    ///
    /// # Errors
    ///
    /// An invalid argument for the CPU, which has no property of this name.
    fn cuda(&self, operation: &'static str) -> Result<driver::Device, Error> {
        let refused = || invalid(operation, format!("the device {}", self.0), "a CUDA device");
        self.0.as_cuda().copied().ok_or_else(refused)
    }

    /// Returns the CUDA devices of this object and of an argument.
    fn peers(&self, operation: &'static str, other: DeviceArgument) -> Result<[driver::Device; 2], Error> {
        Ok([self.cuda(operation)?, PyDevice(other.0).cuda(operation)?])
    }
}

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

    /// The name of a CUDA device, such as "NVIDIA H200".
    #[getter]
    fn name(&self) -> Result<&'static str> {
        Ok(self.cuda("Device.name")?.name())
    }

    /// The compute capability of a CUDA device, such as (9, 0).
    #[getter]
    fn compute_capability(&self) -> Result<(i32, i32)> {
        Ok(self.cuda("Device.compute_capability")?.compute_capability())
    }

    /// The bytes of memory of a CUDA device.
    #[getter]
    fn total_memory(&self) -> Result<u64> {
        Ok(self.cuda("Device.total_memory")?.total_memory())
    }

    /// The multiprocessors of a CUDA device.
    #[getter]
    fn multiprocessor_count(&self, py: Python<'_>) -> Result<i32> {
        let device = self.cuda("Device.multiprocessor_count")?;
        Ok(py.detach(|| device.attribute(Attribute::MULTIPROCESSOR_COUNT))?)
    }

    /// An attribute of a CUDA device by the driver's name without CU_DEVICE_ATTRIBUTE_, in either case.
    ///
    ///     sv.Device("cuda:0").attribute("max_shared_memory_per_multiprocessor")
    fn attribute(&self, py: Python<'_>, name: &str) -> Result<i32> {
        let device = self.cuda("Device.attribute")?;
        let unknown = || {
            let found = Attribute::all().filter_map(Attribute::name).map(str::to_lowercase).collect();
            Error::UnknownName { kind: "attribute", wanted: name.to_owned(), found }
        };
        let attribute = Attribute::from_name(name).ok_or_else(unknown)?;
        Ok(py.detach(|| device.attribute(attribute))?)
    }

    /// True if the hardware lets kernels of this device use memory of another one.
    fn can_access_peer(&self, py: Python<'_>, other: DeviceArgument) -> Result<bool> {
        let [device, other] = self.peers("Device.can_access_peer", other)?;
        Ok(py.detach(|| device.can_access_peer(&other))?)
    }

    /// Lets kernels of this device use memory of another one. Does nothing if they already may.
    ///
    ///     sv.Device("cuda:0").enable_peer_access("cuda:1")
    fn enable_peer_access(&self, py: Python<'_>, other: DeviceArgument) -> Result<()> {
        let [device, other] = self.peers("Device.enable_peer_access", other)?;
        Ok(py.detach(|| device.enable_peer_access(&other))?)
    }

    /// Revokes the access of `enable_peer_access`. Does nothing if it was not enabled.
    fn disable_peer_access(&self, py: Python<'_>, other: DeviceArgument) -> Result<()> {
        let [device, other] = self.peers("Device.disable_peer_access", other)?;
        Ok(py.detach(|| device.disable_peer_access(&other))?)
    }

    /// Destroys the context of a CUDA device, and returns the device with a new one, such as after a fault of a kernel.
    ///
    /// Tensors, streams and kernels of the device are lost: they raise a `DeviceError`, as does this object. Other libraries of the
    /// process lose theirs too, and may not use them again; no other thread may be in a call that concerns the device.
    ///
    ///     device = device.reset()
    fn reset(&self, py: Python<'_>) -> Result<PyDevice> {
        let device = self.cuda("Device.reset")?;
        // SAFETY: the caller in Python vouches for the other users of the device, as the documentation says.
        Ok(PyDevice(py.detach(|| unsafe { device.reset() })?.into()))
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
