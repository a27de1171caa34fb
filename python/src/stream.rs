//! `selvedge.Stream` and `selvedge.Event`: the order of work on a CUDA device.

use std::cell::RefCell;
use std::ffi::c_void;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use selvedge::driver::{self, Event, Stream};
use selvedge::tensor::StreamGuard;
use selvedge::{Device, Error};

use crate::arguments::{DeviceArgument, InRange};
use crate::device::{PyDevice, device_in_scope};
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::host_function::caller;

/// The longest part of a wait with a timeout between two looks for signals, such as that of Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The guards of nested `with` blocks of this thread.
    static GUARDS: RefCell<Vec<StreamGuard>> = const { RefCell::new(Vec::new()) };
}

/// Returns the CUDA device that an argument names, or that of the innermost `with` block, or the first one.
pub fn cuda_device(operation: &'static str, device: Option<DeviceArgument>) -> Result<driver::Device> {
    let device = device.map(|device| device.0).or_else(device_in_scope);
    cuda_of(operation, &device.map_or_else(|| Device::cuda(0), Ok)?)
}

/// Returns the CUDA device of a tensor's device.
pub fn cuda_of(operation: &'static str, device: &Device) -> Result<driver::Device> {
    let refused =
        || invalid(operation, format!("the device {device}"), "a CUDA device: only these have streams");
    Ok(*device.as_cuda().ok_or_else(refused)?)
}

/// Waits while other threads of Python run. A timeout is in seconds; signals are handled during a wait with one, and after a wait
/// without.
fn wait(
    py: Python<'_>,
    timeout: Option<InRange<f64>>,
    wait: impl Fn() -> selvedge::Result<()> + Sync,
    wait_for: impl Fn(Duration) -> selvedge::Result<()> + Sync,
) -> Result<()> {
    let Some(InRange(seconds)) = timeout else {
        py.detach(&wait)?;
        return Ok(py.check_signals()?);
    };
    let refused = || invalid("synchronize", format!("timeout={seconds}"), "seconds from 0 on");
    let limit = Duration::try_from_secs_f64(seconds).map_err(|_| refused())?;
    let start = Instant::now();
    loop {
        let rest = limit.saturating_sub(start.elapsed());
        let waited = py.detach(|| wait_for(rest.min(SIGNAL_INTERVAL)));
        py.check_signals()?;
        match waited {
            Err(Error::TimedOut { operation, what, .. }) => {
                if rest <= SIGNAL_INTERVAL {
                    let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(Error::TimedOut { operation, waited_ms, what }.into());
                }
            }
            waited => return Ok(waited?),
        }
    }
}

/// A queue of work of a CUDA device, which runs in its order: `selvedge.Stream(device=None, *, priority=0)`.
///
/// Without a device it is that of the innermost `with device:` block, or the first CUDA device. A lower `priority` is more urgent. Operations
/// on tensors of the device that a thread issues in a `with stream:` block go to the stream. Tensors may be used on any stream: an operation
/// waits for the work that wrote its operands.
///
/// `__cuda_stream__` is the protocol by which CUDA Python and other libraries take the stream.
///
///     stream = sv.Stream("cuda:0", priority=-1)
///     with stream:
///         y = x @ x
///     stream.synchronize()
#[pyclass(name = "Stream", module = "selvedge", frozen, eq, hash)]
pub struct PyStream {
    pub stream: Stream,
    /// The object of another library that owns the driver's stream.
    _owner: Option<Py<PyAny>>,
}

impl From<Stream> for PyStream {
    fn from(stream: Stream) -> PyStream {
        PyStream { stream, _owner: None }
    }
}

impl PartialEq for PyStream {
    fn eq(&self, other: &PyStream) -> bool {
        self.stream == other.stream
    }
}

impl Eq for PyStream {}

impl Hash for PyStream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.stream.id().hash(state);
    }
}

/// Returns the driver's handle of an integer or of an object with `__cuda_stream__`.
fn handle_of(stream: &Bound<'_, PyAny>) -> Result<usize> {
    if stream.is_instance_of::<PyInt>() {
        return Ok(stream.extract::<InRange<usize>>()?.0);
    }
    let wanted = "the integer of a CUstream, or an object with __cuda_stream__";
    let Ok(protocol) = stream.getattr("__cuda_stream__") else {
        return Err(wrong_type("Stream.from_handle", type_name(stream), wanted).into());
    };
    // Older objects have a property in place of the method.
    let pair = if protocol.is_callable() { protocol.call0()? } else { protocol };
    let refused = |_| wrong_type("__cuda_stream__", type_name(&pair), "a tuple (version, handle)");
    let (version, handle): (i64, usize) = pair.extract().map_err(refused)?;
    match version {
        0 => Ok(handle),
        version => Err(invalid("__cuda_stream__", format!("version {version}"), "version 0").into()),
    }
}

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (device=None, *, priority=InRange(0)), text_signature = "(device=None, *, priority=0)")]
    fn new(py: Python<'_>, device: Option<DeviceArgument>, priority: InRange<i32>) -> Result<PyStream> {
        let device = cuda_device("a stream", device)?;
        Ok(py.detach(|| device.stream_with_priority(priority.0))?.into())
    }

    /// Borrows a stream of another library: the integer of its `CUstream`, or an object with `__cuda_stream__`, which is held meanwhile.
    ///
    /// 0 and 1 are the legacy default stream. The owner of an integer keeps the driver's stream alive, and does not capture it, as long as
    /// this object is used.
    ///
    ///     theirs = torch.cuda.Stream()
    ///     stream = sv.Stream.from_handle(theirs.cuda_stream, device="cuda:0")
    #[staticmethod]
    #[pyo3(signature = (handle, device=None))]
    fn from_handle(
        py: Python<'_>,
        handle: &Bound<'_, PyAny>,
        device: Option<DeviceArgument>,
    ) -> Result<PyStream> {
        let device = cuda_device("a stream", device)?;
        let raw = handle_of(handle)?;
        // SAFETY: the owner is held, and the caller in Python vouches for an integer, as the documentation says.
        let borrow =
            || unsafe { Stream::from_raw(&device, std::ptr::with_exposed_provenance_mut::<c_void>(raw)) };
        Ok(PyStream { stream: py.detach(borrow)?, _owner: Some(handle.clone().unbind()) })
    }

    /// The device.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.stream.device().into())
    }

    /// The priority: a lower one is more urgent.
    #[getter]
    fn priority(&self) -> i32 {
        self.stream.priority()
    }

    /// The driver's `CUstream` as an integer. The library does not see work that other code puts on it: record an event behind that work
    /// before another stream uses its memory.
    #[getter]
    fn handle(&self) -> usize {
        self.stream.as_raw().expose_provenance()
    }

    /// The version of the protocol, 0, and the handle.
    fn __cuda_stream__(&self) -> (u32, usize) {
        (0, self.handle())
    }

    /// Waits for all work of the stream. With a timeout, in seconds, more is a `DeviceError`, the work goes on, and Ctrl-C ends the wait.
    #[pyo3(signature = (timeout=None))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<InRange<f64>>) -> Result<()> {
        let stream = &self.stream;
        wait(py, timeout, || stream.synchronize(), |limit| stream.synchronize_timeout(limit))
    }

    /// True if all work of the stream is done.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        Ok(py.detach(|| self.stream.is_idle())?)
    }

    /// Makes later work of the stream wait for an event.
    fn wait_event(&self, py: Python<'_>, event: &Bound<'_, PyEvent>) -> Result<()> {
        let event = event.get();
        Ok(py.detach(|| self.stream.wait(&event.read()))?)
    }

    /// Makes later work of the stream wait for all work that another stream has now.
    fn wait_stream(&self, py: Python<'_>, stream: &Bound<'_, PyStream>) -> Result<()> {
        let other = stream.get();
        Ok(py.detach(|| self.stream.wait_for(&other.stream))?)
    }

    /// Calls a function of no arguments, once, when all work that the stream has now is done. Later work does not wait for it.
    ///
    /// Functions are called one after the other, in the order in which their work ends, on a thread of the package that may use tensors
    /// and CUDA. An exception goes to `sys.unraisablehook`. No function is called after an error of the device.
    ///
    ///     y = x @ x
    ///     stream.on_complete(lambda: results.put(y))
    fn on_complete(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> Result<()> {
        if !function.is_callable() {
            return Err(wrong_type("Stream.on_complete", type_name(function), "a function").into());
        }
        let call = caller(py, function.clone().unbind())?;
        Ok(py.detach(|| self.stream.on_complete(call))?)
    }

    /// Records an event, or a new one without timing, behind all work that the stream has now, and returns it.
    #[pyo3(signature = (event=None))]
    fn record_event<'py>(
        &self,
        py: Python<'py>,
        event: Option<Bound<'py, PyEvent>>,
    ) -> Result<Bound<'py, PyEvent>> {
        let event = match event {
            Some(event) => event,
            None => Bound::new(py, PyEvent(RwLock::new(py.detach(|| self.stream.device().event())?)))?,
        };
        event.get().record_on(py, &self.stream)?;
        Ok(event)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let guard = StreamGuard::new(&slf.get().stream);
        GUARDS.with_borrow_mut(|guards| guards.push(guard));
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        // Dropped outside of the borrow.
        drop(GUARDS.with_borrow_mut(Vec::pop));
    }

    fn __repr__(&self) -> String {
        let device = Device::from(self.stream.device());
        format!("selvedge.Stream('{device}', priority={}, handle={:#x})", self.priority(), self.handle())
    }
}

/// A point in the order of a stream: `selvedge.Event(enable_timing=False, *, device=None)`. The device is found as that of a `Stream`.
///
///     start, end = sv.Event(enable_timing=True), sv.Event(enable_timing=True)
///     start.record()
///     y = x @ x
///     end.record()
///     end.synchronize()
///     print(start.elapsed_time(end), "ms")
#[pyclass(name = "Event", module = "selvedge", frozen)]
pub struct PyEvent(RwLock<Event>);

impl PyEvent {
    /// Locks the event, without the interpreter: a record waits for a wait.
    fn read(&self) -> RwLockReadGuard<'_, Event> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_on(&self, py: Python<'_>, stream: &Stream) -> Result<()> {
        Ok(py.detach(|| self.0.write().unwrap_or_else(PoisonError::into_inner).record(stream))?)
    }
}

#[pymethods]
impl PyEvent {
    #[new]
    #[pyo3(signature = (enable_timing=false, *, device=None), text_signature = "(enable_timing=False, *, device=None)")]
    fn new(py: Python<'_>, enable_timing: bool, device: Option<DeviceArgument>) -> Result<PyEvent> {
        let device = cuda_device("an event", device)?;
        let event = py.detach(|| if enable_timing { device.timing_event() } else { device.event() })?;
        Ok(PyEvent(RwLock::new(event)))
    }

    /// The device.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyDevice {
        PyDevice(py.detach(|| self.read().device()).into())
    }

    /// Records the event behind all work that a stream has now, by default this thread's stream of operations on the event's device. It
    /// replaces an earlier record.
    #[pyo3(signature = (stream=None))]
    fn record(&self, py: Python<'_>, stream: Option<&Bound<'_, PyStream>>) -> Result<()> {
        match stream {
            Some(stream) => self.record_on(py, &stream.get().stream),
            None => {
                let stream = py.detach(|| Device::from(self.read().device()).stream())?;
                self.record_on(py, &stream)
            }
        }
    }

    /// Waits for the work before the event; returns at once if nothing was recorded. With a timeout, in seconds, more is a `DeviceError`,
    /// and Ctrl-C ends the wait.
    #[pyo3(signature = (timeout=None))]
    fn synchronize(&self, py: Python<'_>, timeout: Option<InRange<f64>>) -> Result<()> {
        wait(py, timeout, || self.read().synchronize(), |limit| self.read().synchronize_timeout(limit))
    }

    /// True if the work before the event is done, or nothing was recorded.
    fn query(&self, py: Python<'_>) -> Result<bool> {
        Ok(py.detach(|| self.read().is_complete())?)
    }

    /// The milliseconds from this event to another one. Both have timing, were recorded and are done.
    fn elapsed_time(&self, py: Python<'_>, end_event: &Bound<'_, PyEvent>) -> Result<f32> {
        let end = end_event.get();
        Ok(py.detach(|| {
            if std::ptr::eq(self, end) {
                let event = self.read();
                return event.elapsed_ms(&event);
            }
            // By their addresses, so that no two threads hold one each and wait for the other.
            let (from, to) = if std::ptr::from_ref(self) < std::ptr::from_ref(end) {
                let from = self.read();
                (from, end.read())
            } else {
                let to = end.read();
                (self.read(), to)
            };
            from.elapsed_ms(&to)
        })?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let device = Device::from(py.detach(|| self.read().device()));
        format!("selvedge.Event(device='{device}')")
    }
}
