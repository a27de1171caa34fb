//! Current contexts and driver statuses.
//!
//! [`DeviceState::bind`] asks the driver for the current context. If another context is current, the guard makes ours
//! current and restores the other one when it is dropped. If none is current, ours stays, as `cudart` does it. A status
//! that ends a context, such as an illegal address, is recorded: every later call returns [`Error::ContextLost`]
//! without calling the driver.
//!
//! The driver forbids most calls on a thread that captures a graph, because it cannot know which of them disturb the
//! capture. This library refuses the disturbing calls itself, and the guard relaxes the driver's capture mode for the
//! others.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::device::DeviceState;
use super::fork;
use super::graph::capture;
use super::reset;
use super::stream::StreamState;
use crate::error::{Error, Result, report_deferred};
use crate::sys::codes;
use crate::sys::driver::{CUcontext, CUresult, CUstreamCaptureMode};

/// Calls a driver function of a device and checks its status. Used inside the caller's `unsafe` block.
macro_rules! call {
    ($device:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $device.api.$name() {
            Ok(function) => $device.check(stringify!($name), function($($argument),*)),
            Err(error) => Err(error),
        }
    };
}
pub(crate) use call;

/// Calls a driver function that works on a stream. A fault names the kernel that was launched there last.
macro_rules! stream_call {
    ($stream:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $stream.device.api.$name() {
            Ok(function) => $stream.check(stringify!($name), function($($argument),*)),
            Err(error) => Err(error),
        }
    };
}
pub(crate) use stream_call;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const OUT_OF_MEMORY: u32 = 2;
const DEINITIALIZED: u32 = 4;
pub(crate) const NOT_READY: u32 = 600;
const CONTEXT_IS_DESTROYED: u32 = 709;

/// Returns whether a status means that its context is unusable from now on.
fn ends_context(code: u32) -> bool {
    // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED; ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT; then
    // HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS, INVALID_ADDRESS_SPACE, INVALID_PC, LAUNCH_FAILED;
    // TENSOR_MEMORY_LEAK, MPS_CLIENT_TERMINATED, EXTERNAL_DEVICE.
    matches!(code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810 | 911)
}

/// Returns whether a release failed only because the context or process took the resource with it.
pub(crate) fn gone(error: &Error) -> bool {
    match error {
        Error::ContextLost { .. } | Error::KernelFault { .. } | Error::ForkedProcess => true,
        Error::Driver { code, .. } => *code == DEINITIALIZED as i32 || *code == CONTEXT_IS_DESTROYED as i32,
        _ => false,
    }
}

/// Restores the state that [`DeviceState::bind`] found.
pub(crate) struct Bound {
    device: &'static DeviceState,
    /// The context that was current, or null.
    previous: CUcontext,
    /// The capture mode of this thread, if the guard relaxed it.
    strictness: Option<CUstreamCaptureMode>,
}

impl Drop for Bound {
    #[inline]
    fn drop(&mut self) {
        if let Some(mode) = self.strictness {
            self.tighten(mode);
        }
        if !self.previous.is_null() {
            self.restore();
        }
    }
}

impl Bound {
    #[cold]
    fn restore(&mut self) {
        // SAFETY: `previous` was current on this thread when the guard was made, and is only put back.
        let status = self.device.api.cuCtxSetCurrent().map(|function| unsafe { function(self.previous) });
        // A failure of the other context says nothing about ours.
        let error = match status {
            Ok(status) if status.0 == SUCCESS => return,
            Ok(status) => {
                driver_error("cuCtxSetCurrent", status.0, "putting the earlier context back".to_owned())
            }
            Err(error) => error,
        };
        report_deferred(&error);
    }

    /// Relaxes this thread's capture mode if it captures.
    #[cold]
    fn loosen(self) -> Result<Bound> {
        if capture::on_this_thread() { self.relax() } else { Ok(self) }
    }

    /// Relaxes this thread's capture mode.
    fn relax(mut self) -> Result<Bound> {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the pointer is to a local.
        unsafe { call!(self.device, cuThreadExchangeStreamCaptureMode(&mut mode))? };
        self.strictness = Some(mode);
        Ok(self)
    }

    #[cold]
    fn tighten(&self, mut mode: CUstreamCaptureMode) {
        // SAFETY: the pointer is to a local; the mode is the one that was there before.
        if let Err(error) = unsafe { call!(self.device, cuThreadExchangeStreamCaptureMode(&mut mode)) }
            && !gone(&error)
        {
            report_deferred(&error);
        }
    }
}

impl DeviceState {
    /// Makes this device's context current until the guard is dropped. Allows any call during a capture.
    #[inline(always)]
    pub(crate) fn bind(&'static self) -> Result<Bound> {
        let bound = self.bind_strictly()?;
        if capture::any() { bound.loosen() } else { Ok(bound) }
    }

    /// As [`bind`](Self::bind), and allows any call while other code captures a graph that the library does not know.
    pub(super) fn bind_relaxed(&'static self) -> Result<Bound> {
        self.bind_strictly()?.relax()
    }

    /// As [`bind`](Self::bind), for calls that the driver allows during a capture.
    #[inline(always)]
    pub(crate) fn bind_strictly(&'static self) -> Result<Bound> {
        let current = self.current()?;
        if current == self.context.0 {
            return Ok(Bound { device: self, previous: std::ptr::null_mut(), strictness: None });
        }
        self.switch(current)
    }

    /// Returns whether the context is current, so that calls need no [`bind`](Self::bind).
    #[inline(always)]
    pub(crate) fn is_bound(&'static self) -> Result<bool> {
        Ok(self.current()? == self.context.0 && !capture::any())
    }

    /// The context that is current on this thread, or null.
    #[inline(always)]
    fn current(&'static self) -> Result<CUcontext> {
        self.check_alive()?;
        let mut current: CUcontext = std::ptr::null_mut();
        // SAFETY: the pointer is to a local of the right type.
        unsafe { call!(self, cuCtxGetCurrent(&mut current))? };
        Ok(current)
    }

    #[cold]
    fn switch(&'static self, previous: CUcontext) -> Result<Bound> {
        // SAFETY: the context is this device's primary context, which is retained until it counts as lost.
        unsafe { call!(self, cuCtxSetCurrent(self.context.0))? };
        // A context that a reset destroyed is not restored.
        let previous = if reset::is_gone(previous) { std::ptr::null_mut() } else { previous };
        Ok(Bound { device: self, previous, strictness: None })
    }

    /// Converts a status to a result, and records a status that ends the context.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        if status.0 == SUCCESS { Ok(()) } else { Err(self.failure(call, status.0)) }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: u32) -> Error {
        if !ends_context(code) {
            return driver_error(call, code, String::new());
        }
        let kernels = self.recent_kernels();
        self.fault(code, kernels, format!("device {} (seen by {call})", self.ordinal))
    }

    /// Marks the context as lost and returns the error of the fault.
    fn fault(&self, code: u32, kernel: String, stream: String) -> Error {
        // Some drivers (580 on H200) end every context of the process when one faults. The first one is then to blame.
        let others = DeviceState::opened();
        let first = others.iter().find(|other| !std::ptr::eq(**other, self) && other.is_lost());
        if let Some(cause) = first.and_then(|first| first.lost.get()) {
            let name = codes::describe(CUresult(code)).0;
            self.lose(format!(
                "the driver ended all contexts of the process together, or another kernel faulted too ({name} on \
                 {stream}, launched there last: {kernel}); first: {cause}"
            ));
            return self.lost_error();
        }
        let (name, text) = codes::describe(CUresult(code));
        let error = Error::KernelFault { kernel, stream, code: code as i32, name, text };
        self.lose(error.to_string());
        error
    }

    /// Marks the context as lost, unless it is already.
    pub(super) fn lose(&self, cause: String) {
        let _ = self.lost.set(Arc::from(cause));
        self.lost_flag.store(true, Ordering::Release);
    }

    /// Returns whether the context was lost to a fault, to a reset, or in a forked child.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost_flag.load(Ordering::Acquire)
    }

    /// Fails if the context is lost.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.lost_flag.load(Ordering::Relaxed) { Err(self.lost_error()) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn lost_error(&self) -> Error {
        if fork::forked() {
            return Error::ForkedProcess;
        }
        let cause = self.lost.get().cloned().unwrap_or_else(|| Arc::from("a fault"));
        Error::ContextLost { device: self.ordinal, cause }
    }
}

impl StreamState {
    /// Makes the device's context current for an operation of the stream.
    #[cold]
    pub(super) fn bind(&self) -> Result<Bound> {
        if self.slot.is_open() {
            capture::check(self)?;
            return self.device.bind_strictly();
        }
        self.device.bind()
    }

    /// As [`DeviceState::check`]. A fault names this stream and the kernel launched on it last.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, status: CUresult) -> Result<()> {
        if status.0 == SUCCESS { Ok(()) } else { Err(self.failure(call, status.0)) }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: u32) -> Error {
        if !ends_context(code) {
            return driver_error(call, code, String::new());
        }
        let kernel = match self.last_kernel() {
            Some(name) => name.to_owned(),
            // Another stream faulted; this one only observed it.
            None => self.device.recent_kernels(),
        };
        self.device.fault(code, kernel, self.to_string())
    }
}

/// Returns the error of a failed driver call.
pub(crate) fn driver_error(call: &'static str, code: u32, detail: String) -> Error {
    crate::sys::driver_error(call, CUresult(code), detail)
}

/// A driver handle that may cross threads. The driver's functions are thread-safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle<T>(pub(crate) *mut T);

// SAFETY: the handle is only a name for an object of the driver, whose functions may be called from any thread.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; the pointee is never dereferenced by this crate.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    pub(crate) fn into_void(self) -> *mut c_void {
        self.0.cast()
    }
}
