//! Functions of the host that run in a stream's order.

use std::ffi::c_void;

use super::context::stream_call;
use super::graph::capture;
use super::stream::Stream;
use crate::error::{Error, Result, report_deferred};

impl Stream {
    /// Calls a function on a thread of the driver after all earlier work of this stream. Later work waits for the
    /// function.
    ///
    /// The function **must not call CUDA, nor drop a buffer, stream, event or module**: the driver forbids such calls
    /// and may deadlock. Send a message to another thread instead. A panic in the function is caught and passed to the
    /// deferred-error hook. The function is not called if the context is lost first.
    ///
    /// # Errors
    ///
    /// [`Error::NotCapturable`], the driver's errors, or [`Error::ContextLost`]. The function is then dropped.
    pub fn on_complete(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        type Callback = Box<dyn FnOnce() + Send>;

        unsafe extern "C" fn trampoline(data: *mut c_void) {
            // SAFETY: `data` is the box made below, and the driver calls this once.
            let function = unsafe { Box::from_raw(data.cast::<Callback>()) };
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(function)).is_err() {
                report_deferred(&Error::invalid(
                    "Stream::on_complete",
                    "a callback that panicked",
                    "one that returns",
                ));
            }
        }

        let state = self.state();
        // A graph would call the function at each launch.
        capture::refuse("Stream::on_complete", state, None)?;
        let data = Box::into_raw(Box::new(Box::new(function) as Callback));
        let result = state.submit(|| {
            // SAFETY: the stream is live, and the trampoline frees the box.
            unsafe { stream_call!(state, cuLaunchHostFunc(state.raw.0, Some(trampoline), data.cast())) }
        });
        if result.is_err() {
            // SAFETY: the driver refused the callback, so this function still owns the box.
            drop(unsafe { Box::from_raw(data) });
        }
        result
    }
}
