//! Starting a device over.
//!
//! A context that a fault has ended does nothing more, but the driver can mostly make a new one. Everything of the old
//! context is gone with it, so a reset does not repair a [`DeviceState`]: it makes a new one beside it. The old one counts
//! as lost from then on, which is what every handle of it looks at before it calls the driver; what it had cached and retired
//! is left to it.
//!
//! What other devices still hold of it: events to wait for before a block is used or freed, and streams among a block's users.
//! Nothing of a device that was reset runs any more, so a block may be freed or written over without them. Whether
//! what the device was to write there can be *read* is another question: it can where all of its work was done when it
//! was reset, and where it was not, the read answers [`Error::ContextLost`].
//!
//! What must stay true: no handle of the old context reaches the driver, also not as the context to put back after a call.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::Handle;
use super::device::{Device, DeviceState};
use super::fork;
use super::memory::forget_locked_by;
use crate::error::{Error, Result, report_deferred};
use crate::sys::call as api_call;
use crate::sys::driver::{CUcontext, CUctx_st};

/// Whether a device was reset, and what of its work was done by then.
#[derive(Default)]
pub(crate) struct Reset(AtomicU8);

/// Some of its work may never have been done.
const CUT_SHORT: u8 = 1;
/// All of its work was done.
const FINISHED: u8 = 2;

impl DeviceState {
    /// Whether the context was taken down, so that nothing of it runs or ever will.
    pub(crate) fn was_reset(&self) -> bool {
        self.reset.0.load(Ordering::Acquire) != 0
    }

    /// Whether all that the device had been given was done when it was reset.
    pub(crate) fn was_finished(&self) -> bool {
        self.reset.0.load(Ordering::Acquire) == FINISHED
    }
}

/// Contexts that were taken down and whose handles no newer one has.
static GONE: Mutex<Vec<Handle<CUctx_st>>> = Mutex::new(Vec::new());
/// Whether there ever was one, so that programs without pay one load.
static ANY_GONE: AtomicBool = AtomicBool::new(false);

fn gone_contexts() -> MutexGuard<'static, Vec<Handle<CUctx_st>>> {
    GONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this context, which a thread still has as its current one, was taken down.
pub(super) fn is_gone(context: CUcontext) -> bool {
    ANY_GONE.load(Ordering::Acquire) && gone_contexts().iter().any(|gone| gone.0 == context)
}

impl Device {
    /// Ends the device's context and gives the device with a new one, as it is at the start of a process.
    ///
    /// This is how a process goes on after a fault (see [`is_lost`](Self::is_lost)), where the driver allows it. Where
    /// nothing has faulted, the device's work is waited for first. Whatever was made from the device before is lost: its
    /// handles answer [`Error::ContextLost`] and can be dropped at any time. Its earlier [`Device`] values are unequal to the
    /// new one, which is also what [`Device::new`] gives from now on. What the old context cached on the host (a few
    /// kilobytes) stays for the life of the process. Peer access has to be enabled again, in both directions.
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
    /// [`Error::ResetFailed`] where the driver does not make a new context: some (580 is one) do not after a fault, and
    /// only a new process helps. [`Error::NotCapturable`] while a graph is captured on the device,
    /// [`Error::ContextLost`] for a `Device` from before an earlier reset.
    ///
    /// # Safety
    ///
    /// The context is shared with everything else in the process that uses the device, such as `cudart` and the libraries
    /// on it, and all of it loses its memory, streams and modules; nothing of that kind may be in use. Of this library:
    ///
    /// - no other thread is in a call that concerns the device;
    /// - no [`PinnedBuffer`](super::PinnedBuffer) from [`Device::pinned`] of this device is read or written afterwards, and none is
    ///   on its way in a transfer of another device: the driver takes that memory back (dropping one is fine, and so is a
    ///   registered one);
    /// - no kernel or copy of another device that uses this one's memory is under way.
    pub unsafe fn reset(self) -> Result<Device> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        // Before any lock: in a child it may stay locked for ever.
        fork::check()?;
        let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.0;
        if !old.is_current() {
            return Err(old.lost_error());
        }
        let finished = old.finish()?;
        if finished && !old.is_lost() {
            let _bound = old.bind()?;
            old.release_pages();
        }
        old.lose("the device was reset, and everything made before went with its context".to_owned());
        for other in DeviceState::opened() {
            other.peers.forget(old.ordinal);
        }
        forget_locked_by(old);
        // Pages belong to the process. After a fault the driver may refuse, and takes them back with the context.
        if let (Err(error), true) = (old.discard_pool(), finished) {
            report_deferred(&error);
        }
        // SAFETY: the caller vouches for everything that uses the context; ours leaves it alone from here on.
        unsafe { api_call!(old.api, cuDevicePrimaryCtxReset(old.raw)) }
            .map_err(|error| old.reset_failed(&error))?;
        old.reset.0.store(if finished { FINISHED } else { CUT_SHORT }, Ordering::Release);
        gone_contexts().push(old.context);
        ANY_GONE.store(true, Ordering::Release);
        let new = DeviceState::open(old.ordinal).map_err(|error| old.reset_failed(&error))?;
        // The driver may give the same handle again.
        gone_contexts().retain(|gone| gone.0 != new.context.0);
        let new: &'static DeviceState = Box::leak(Box::new(new));
        // One that answers is wanted, not one that only says it is there.
        new.wait_until_idle().map_err(|error| old.reset_failed(&error))?;
        {
            // What a fault left mapped; nothing otherwise.
            let _bound = new.bind()?;
            old.release_pages();
        }
        new.take_the_place_of_the_old();
        Ok(Device(new))
    }
}

impl DeviceState {
    /// Waits for the device's work; whether it was done.
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
