//! Objects of other code: borrowed streams, contexts, and memory with a deleter.
//!
//! A borrowed stream belongs to other code, which may destroy it once its last [`Stream`] is dropped. Memory whose last use
//! was on the stream may live longer. The drop therefore records one more event, which stands for the stream's work from
//! then on, and the driver does not see the stream again.
//!
//! Invariants: a deleter is called at most once, outside of all locks, after every use of its memory, and not in a forked
//! process.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::context::{Handle, call, gone};
use super::device::{Device, DeviceState};
use super::event::EventCell;
use super::fork;
use super::graph::capture;
use super::stream::{Stream, StreamState};
use crate::error::{Error, Result, report_deferred};
use crate::sys::call as api_call;
use crate::sys::driver::{CUcontext, CUdevice, CUpointer_attribute, CUresult, CUstreamCaptureStatus};

/// The driver's name for the default stream of the calling thread, which is another stream on each thread.
const PER_THREAD: usize = 2;

/// The mark of a stream of other code, with the event that stands for its work after the last handle was dropped.
#[derive(Default)]
pub(crate) struct BorrowedStream(OnceLock<Arc<EventCell>>);

impl StreamState {
    /// The event that stands for the stream's work while the driver's stream must not be asked: during a capture, and after
    /// a borrowed stream was given back.
    pub(crate) fn stand_in(&self) -> Option<Arc<EventCell>> {
        self.slot.before().or_else(|| self.borrowed.as_ref()?.0.get().cloned())
    }

    /// Returns whether work can be issued to the driver's stream and runs there.
    pub(crate) fn takes_work(&self) -> bool {
        !self.slot.is_open() && self.borrowed.as_ref().is_none_or(|borrowed| borrowed.0.get().is_none())
    }

    /// Gives a borrowed stream back: records the event that stands for its work. Does nothing for another stream.
    pub(crate) fn detach(&self) -> Result<()> {
        if let Some(borrowed) = &self.borrowed {
            let event = self.mark()?;
            // The lock keeps a query from the driver's stream meanwhile.
            let _marker = self.lock_marker();
            let _ = borrowed.0.set(event);
        }
        Ok(())
    }
}

impl Stream {
    /// Borrows a `CUstream` of other code, such as a `cudaStream_t` of PyTorch. Null and 1 are the legacy default stream.
    ///
    /// 2 is the default stream of the calling thread, and gives the legacy default stream too: the driver orders that one
    /// before and after the default streams of all threads, so the result may be used and dropped on any thread.
    ///
    /// Work of both sides is ordered as the driver orders one stream. Work that this library issues to other streams waits
    /// for everything that the other code has put on this one so far. Dropping the last clone does not destroy the driver's
    /// stream, and its owner may destroy it from then on, even if buffers were last used there.
    ///
    /// # Errors
    ///
    /// The stream belongs to another context than the device's primary one or is being captured; the driver's errors; or
    /// [`Error::ContextLost`].
    ///
    /// # Safety
    ///
    /// `raw` is a live stream, and stays so until the last clone is dropped and no call that uses it runs. Other code does
    /// not capture it meanwhile.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Stream> {
        const OPERATION: &str = "Stream::from_raw";
        let device = device.0;
        let raw = if raw.addr() == PER_THREAD { std::ptr::null_mut() } else { raw };
        let _bound = device.bind()?;
        let mut context: CUcontext = std::ptr::null_mut();
        let mut capturing = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the caller vouches for the stream; the pointers are to locals.
        unsafe { call!(device, cuStreamGetCtx(raw.cast(), &mut context))? };
        if context != device.context.0 {
            return Err(Error::invalid(
                OPERATION,
                format!("a stream of the context {context:p}"),
                format!("one of the primary context {:p} of device {}", device.context.0, device.ordinal),
            ));
        }
        // SAFETY: as above.
        unsafe { call!(device, cuStreamIsCapturing(raw.cast(), &mut capturing))? };
        if capturing != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            let found = format!("other code captures the stream {raw:p} of device {}", device.ordinal);
            return Err(capture::not_capturable(OPERATION, found));
        }
        Ok(Stream::open(device, Handle(raw.cast()), 0, Some(BorrowedStream::default())))
    }
}

impl Device {
    /// Returns the device of a primary `CUcontext`, which is the one that `cudart` uses too.
    ///
    /// # Errors
    ///
    /// The context is null or not a primary one, or the driver's errors.
    ///
    /// # Safety
    ///
    /// `context` is a live context.
    pub unsafe fn from_context(context: *mut c_void) -> Result<Device> {
        const OPERATION: &str = "Device::from_context";
        if context.is_null() {
            return Err(Error::invalid(OPERATION, "a null context", "a context"));
        }
        let api = fork::driver()?;
        let (mut before, mut raw): (CUcontext, CUdevice) = (std::ptr::null_mut(), 0);
        // SAFETY: the caller vouches for the context; the pointers are to locals, and the earlier context is put back.
        let found = unsafe {
            api_call!(api, cuCtxGetCurrent(&mut before))?;
            api_call!(api, cuCtxSetCurrent(context.cast()))?;
            let found = api_call!(api, cuCtxGetDevice(&mut raw));
            api_call!(api, cuCtxSetCurrent(before))?;
            found
        };
        found?;
        let device = Device::new(usize::try_from(raw).unwrap_or(usize::MAX))?;
        if device.0.context.into_void() != context {
            return Err(Error::invalid(
                OPERATION,
                format!("another context of {device}"),
                "the device's primary context",
            ));
        }
        Ok(device)
    }

    /// The driver's primary `CUcontext`, retained for the life of the process.
    pub fn as_raw_context(&self) -> *mut c_void {
        self.0.context.into_void()
    }
}

/// Checks a range of memory of other code, as far as the driver knows it.
pub(super) fn check_memory(
    device: &'static DeviceState,
    address: u64,
    bytes: usize,
    alignment: usize,
) -> Result<()> {
    const OPERATION: &str = "DeviceBuffer::from_raw";
    device.check_alive()?;
    if bytes == 0 {
        return Ok(());
    }
    if address == 0 || !address.is_multiple_of(alignment as u64) {
        let wanted = format!("a device address aligned to {alignment} bytes");
        return Err(Error::invalid(OPERATION, format!("the address {address:#x}"), wanted));
    }
    let last = address.checked_add(bytes as u64 - 1).filter(|_| isize::try_from(bytes).is_ok());
    let Some(last) = last else {
        let found = format!("{bytes} bytes at {address:#x}");
        return Err(Error::invalid(OPERATION, found, "a size that fits the address space"));
    };
    let _bound = device.bind()?;
    for byte in [address, last] {
        let mut ordinal = -1i32;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: the attribute is a number of 32 bits; the driver answers an unknown address with a status.
        let status =
            unsafe { (device.api.cuPointerGetAttribute()?)((&raw mut ordinal).cast(), attribute, byte) };
        let found = if status == CUresult::CUDA_ERROR_INVALID_VALUE {
            format!("{byte:#x}, which the driver does not know")
        } else {
            device.check("cuPointerGetAttribute", status)?;
            if ordinal == device.ordinal {
                continue;
            }
            format!("memory of device {ordinal} at {byte:#x}")
        };
        return Err(Error::invalid(OPERATION, found, format!("memory of device {}", device.ordinal)));
    }
    Ok(())
}

/// A function that frees memory of other code.
pub(crate) struct Deleter(Mutex<Box<dyn FnOnce() + Send>>);

/// A deleter whose memory is still in use.
struct Waiting {
    deleter: Deleter,
    after: Vec<Arc<EventCell>>,
}

static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());
/// The number of entries, so that waits in programs without such memory cost one load.
static WAITING_COUNT: AtomicUsize = AtomicUsize::new(0);

impl Deleter {
    pub(super) fn new(deleter: impl FnOnce() + Send + 'static) -> Deleter {
        Deleter(Mutex::new(Box::new(deleter)))
    }

    /// Calls the function after these events, or at once if they are over. Never blocks.
    pub(super) fn call_after(
        self,
        device: &'static DeviceState,
        events: impl FnOnce() -> Result<Vec<Arc<EventCell>>>,
    ) {
        if fork::forked() {
            return std::mem::forget(self);
        }
        if device.is_lost() {
            return self.call();
        }
        match events() {
            Ok(after) => {
                let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.push(Waiting { deleter: self, after });
                WAITING_COUNT.store(waiting.len(), Ordering::Release);
                drop(waiting);
                call_deleters();
            }
            Err(error) if gone(&error) => self.call(),
            Err(error) => {
                // Nothing says when the memory is unused, so it is leaked.
                report_deferred(&error);
                std::mem::forget(self);
            }
        }
    }

    fn call(self) {
        let function = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(function)) {
            report_deferred(&Error::invalid("a deleter", "a panic", "a function that returns"));
            // The payload's destructor may panic too.
            std::mem::forget(payload);
        }
    }
}

/// Calls the deleters of dropped memory whose every use is done.
pub(crate) fn call_deleters() {
    if WAITING_COUNT.load(Ordering::Acquire) == 0 || fork::forked() {
        return;
    }
    let mut failed = Vec::new();
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, rest): (Vec<Waiting>, _) = std::mem::take(&mut *waiting).into_iter().partition(|entry| {
        entry.after.iter().all(|event| match event.is_released() {
            Ok(done) => done,
            Err(error) if gone(&error) => true,
            Err(error) => {
                failed.push(error);
                false
            }
        })
    });
    *waiting = rest;
    WAITING_COUNT.store(waiting.len(), Ordering::Release);
    drop(waiting);
    // The hook may call this library, so no lock is held.
    failed.iter().for_each(report_deferred);
    for entry in done {
        // Dropped first: an event returns to its device's pool.
        drop(entry.after);
        entry.deleter.call();
    }
}
