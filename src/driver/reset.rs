//! Device resets.
//!
//! A context that a fault has ended is unusable, but the driver can usually create a new one. Everything in the old
//! context is gone, so a reset does not repair a [`DeviceState`]: it creates a new one beside it. The old state counts
//! as lost from then on. Every handle checks this before it calls the driver. The old state keeps its cached and
//! retired objects.
//!
//! Other devices may still hold events of the old state to wait for, and streams of it among a block's users. No work
//! of a reset device runs any more, so they may free or overwrite such a block without waiting. They may *read* memory
//! that the device was to write only if all of its work was done at the reset. Otherwise the read returns
//! [`Error::ContextLost`].
//!
//! Invariants: no handle of the old context reaches the driver, not even as the context to restore after a call.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::Handle;
use super::device::{Device, DeviceState};
use super::fork;
use super::memory::forget_locked_by;
use crate::error::{Error, Result, report_deferred};
use crate::sys::call as api_call;
use crate::sys::driver::{CUcontext, CUctx_st};

/// The state of a device's reset, and of its work at that time.
#[derive(Default)]
pub(crate) struct Reset(AtomicU8);

/// Some of its work may never have been done.
const CUT_SHORT: u8 = 1;
/// All of its work was done.
const FINISHED: u8 = 2;

impl DeviceState {
    /// Returns whether a reset destroyed the context, so that none of its work runs any more.
    pub(crate) fn was_reset(&self) -> bool {
        self.reset.0.load(Ordering::Acquire) != 0
    }

    /// Returns whether all work issued to the device was done at the reset.
    pub(crate) fn was_finished(&self) -> bool {
        self.reset.0.load(Ordering::Acquire) == FINISHED
    }
}

/// Destroyed contexts whose handles the driver has not given to a newer context.
static GONE: Mutex<Vec<Handle<CUctx_st>>> = Mutex::new(Vec::new());
/// True once a context was destroyed, so that programs without resets pay one load.
static ANY_GONE: AtomicBool = AtomicBool::new(false);

fn gone_contexts() -> MutexGuard<'static, Vec<Handle<CUctx_st>>> {
    GONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a reset destroyed this context, which may still be current on a thread.
pub(super) fn is_gone(context: CUcontext) -> bool {
    ANY_GONE.load(Ordering::Acquire) && gone_contexts().iter().any(|gone| gone.0 == context)
}

impl Device {
    /// Destroys the device's context and returns the device with a new one, as at the start of a process.
    ///
    /// A process recovers from a fault in this way (see [`is_lost`](Self::is_lost)), if the driver allows it. Without a
    /// fault, the call first waits for the device's work. Everything made from the device before is lost: its handles
    /// return [`Error::ContextLost`] and can be dropped at any time. Earlier [`Device`] values are unequal to the new
    /// one, which [`Device::new`] returns from now on. The old context's host-side state (a few kilobytes) stays for
    /// the life of the process. Peer access must be enabled again, in both directions.
    ///
    /// ```no_run
    /// # use selvedge::driver::Device;
    /// # fn train(device: Device) -> selvedge::Result<()> { Ok(()) }
    /// # fn main() -> selvedge::Result<()> {
    /// let mut device = Device::new(0)?;
    /// while let Err(error) = train(device) {
    ///     if !device.is_lost() {
    ///         return Err(error);
    ///     }
    ///     eprintln!("from the last checkpoint, after {error}");
    ///     // SAFETY: `train` has returned with all that it had, and nothing else in this process uses CUDA.
    ///     device = unsafe { device.reset()? };
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ResetFailed`] if the driver does not create a new context. Some drivers, such as 580, do not after a
    /// fault; then only a new process helps. [`Error::NotCapturable`] while a graph is captured on the device.
    /// [`Error::ContextLost`] for a `Device` from before an earlier reset.
    ///
    /// # Safety
    ///
    /// The whole process shares the context with other users of the device, such as `cudart` and its libraries. They
    /// all lose their memory, streams and modules, and none of these may be in use. For objects of this library:
    ///
    /// - No other thread is in a call that concerns the device.
    /// - No [`PinnedBuffer`](super::PinnedBuffer) from [`Device::pinned`] of this device is read or written afterwards,
    ///   or in use by a transfer of another device: the driver frees that memory. Dropping one is allowed, and so is a
    ///   registered one.
    /// - No kernel or copy of another device that uses this device's memory is in progress.
    pub unsafe fn reset(self) -> Result<Device> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        // Checked before any lock, which may stay locked for ever in a child.
        fork::check()?;
        let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let _no_times = DeviceState::pause_clock();
        let old = self.0;
        if !old.is_current() {
            return Err(old.lost_error());
        }
        let finished = old.finish()?;
        if finished && !old.is_lost() {
            let _bound = old.bind()?;
            old.release_pages();
        }
        old.lose("the device was reset, and everything made before is lost with its context".to_owned());
        for other in DeviceState::opened() {
            other.peers.forget(old.ordinal);
        }
        forget_locked_by(old);
        // The process owns the pages. After a fault the driver may refuse to unmap them, and frees them with the
        // context.
        if let (Err(error), true) = (old.discard_pool(), finished) {
            report_deferred(&error);
        }
        // SAFETY: the caller vouches for other users of the context; this library leaves it alone from here on.
        unsafe { api_call!(old.api, cuDevicePrimaryCtxReset(old.raw)) }
            .map_err(|error| old.reset_failed(&error))?;
        old.reset.0.store(if finished { FINISHED } else { CUT_SHORT }, Ordering::Release);
        gone_contexts().push(old.context);
        ANY_GONE.store(true, Ordering::Release);
        let new = DeviceState::open(old.ordinal).map_err(|error| old.reset_failed(&error))?;
        // The driver may return the same handle again.
        gone_contexts().retain(|gone| gone.0 != new.context.0);
        let new: &'static DeviceState = Box::leak(Box::new(new));
        // Wait once, to see that the new context answers.
        new.wait_until_idle().map_err(|error| old.reset_failed(&error))?;
        {
            // Restore mappings that survived a fault, if any.
            let _bound = new.bind()?;
            old.release_pages();
        }
        new.replace_old();
        Ok(Device(new))
    }
}

impl DeviceState {
    /// Waits for the device's work, and returns whether it was done.
    fn finish(&'static self) -> Result<bool> {
        if self.is_lost() {
            return Ok(self.was_finished());
        }
        match self.wait_until_idle() {
            Ok(true) => Ok(true),
            Ok(false) => Err(super::graph::capture::not_capturable(
                "Device::reset",
                format!("a graph is being captured on device {}", self.ordinal),
            )),
            Err(_) if self.is_lost() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn reset_failed(&self, found: &Error) -> Error {
        let cause = self.lost.get().cloned().unwrap_or_else(|| Arc::from("it was asked for"));
        Error::ResetFailed { device: self.ordinal, found: found.to_string(), cause }
    }
}
