//! Retired resources: resources that were dropped while in use, or could not be released yet.
//!
//! [`DeviceState::release`] releases every resource of the driver. The driver frees memory and unloads modules only
//! when no kernel of the device runs (measured: each such call waited for an unrelated kernel). `Drop` therefore never
//! releases these resources: it retires them, and the next call that may wait releases them
//! ([`DeviceState::free_retired`], [`DeviceState::trim`]).

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::pinned::no_longer_locked;
use super::pool::Block;
use crate::driver::context::{Handle, call, gone};
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::driver::fork;
use crate::error::{Result, report_deferred};
use crate::sys::driver::{CUevent_st, CUgraph_st, CUgraphExec_st, CUlinkState_st, CUmod_st, CUstream_st};

/// A resource that belongs to the driver.
pub(crate) enum Resource {
    Memory(u64),
    /// A block of the pool's heap.
    Block(Block),
    Pinned(Handle<u8>),
    /// Registered host memory and its owner, which must outlive the registration.
    Registered(Handle<u8>, #[allow(dead_code)] Box<dyn Any + Send>),
    Module(Handle<CUmod_st>),
    /// A linker, with the options and logs that the driver writes to while it lives.
    Linker(Handle<CUlinkState_st>, #[allow(dead_code)] Box<dyn Any + Send>),
    Stream(Handle<CUstream_st>),
    Event(Handle<CUevent_st>),
    Graph(Handle<CUgraph_st>),
    ExecutableGraph(Handle<CUgraphExec_st>),
}

/// A resource, and the events to wait for before its release.
struct RetiredEntry {
    resource: Resource,
    after: Vec<Arc<EventCell>>,
    /// True if no events could be recorded: wait for every device.
    until_idle: bool,
}

/// The retired resources of a device.
#[derive(Default)]
pub(crate) struct Retired {
    entries: Mutex<Vec<RetiredEntry>>,
    /// Held from taking resources out until they are released, so that a request without memory waits for a release in
    /// progress.
    trimming: Mutex<()>,
}

impl Retired {
    fn push(&self, entry: RetiredEntry) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn take_all(&self) -> Vec<RetiredEntry> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The outcome for an entry.
enum ReleaseOutcome {
    Release,
    Keep,
}

impl DeviceState {
    /// Releases a resource.
    ///
    /// The driver call is made once. If it returns an error, the driver has usually released the resource and reports
    /// an earlier failure; a second call could release an object of another owner. If the call cannot be made at all,
    /// the resource is kept for later. A resource that was lost with its context is no error.
    pub(crate) fn release(&'static self, resource: Resource) -> Result<()> {
        let result = match self.bind() {
            Ok(_bound) => {
                let result = self.call_release(&resource);
                if result.is_err() && matches!(resource, Resource::Registered(..) | Resource::Linker(..)) {
                    // The driver may still use the memory, so it is leaked.
                    std::mem::forget(resource);
                }
                result
            }
            Err(error) => {
                self.retire_until_idle(resource);
                Err(error)
            }
        };
        match result {
            Err(error) if !gone(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// As [`release`](Self::release), for `Drop`: an error goes to the hook.
    pub(crate) fn release_or_report(&'static self, resource: Resource) {
        if let Err(error) = self.release(resource) {
            report_deferred(&error);
        }
    }

    /// The context must be current.
    fn call_release(&'static self, resource: &Resource) -> Result<()> {
        if let Resource::Pinned(pointer) | Resource::Registered(pointer, _) = resource {
            no_longer_locked(pointer.0);
        }
        // SAFETY: this device's driver created each resource, which is unused and released once.
        unsafe {
            match resource {
                Resource::Block(block) => {
                    self.take_back_idle(*block);
                    Ok(())
                }
                Resource::Memory(address) => call!(self, cuMemFree(*address)),
                Resource::Pinned(pointer) => call!(self, cuMemFreeHost(pointer.into_void())),
                Resource::Registered(pointer, _) => call!(self, cuMemHostUnregister(pointer.into_void())),
                Resource::Module(module) => call!(self, cuModuleUnload(module.0)),
                Resource::Linker(linker, _) => call!(self, cuLinkDestroy(linker.0)),
                Resource::Stream(stream) => call!(self, cuStreamDestroy(stream.0)),
                Resource::Event(event) => call!(self, cuEventDestroy(event.0)),
                Resource::Graph(graph) => call!(self, cuGraphDestroy(graph.0)),
                Resource::ExecutableGraph(graph) => call!(self, cuGraphExecDestroy(graph.0)),
            }
        }
    }

    /// Releases a resource once the events are complete.
    pub(crate) fn retire(&self, resource: Resource, after: Vec<Arc<EventCell>>) {
        self.retired.push(RetiredEntry { resource, after, until_idle: false });
    }

    /// Releases a resource at the next trim that finds every device idle.
    pub(crate) fn retire_until_idle(&self, resource: Resource) {
        self.retired.push(RetiredEntry { resource, after: Vec::new(), until_idle: true });
    }

    /// Releases resources that are no longer in use. Freeing memory and unloading modules wait for all running kernels
    /// of the device, so only calls that wait anyway do this.
    pub(crate) fn free_retired(&'static self) {
        if self.is_lost() {
            return;
        }
        let mut errors = Vec::new();
        let one_at_a_time = self.retired.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in self.retired.take_all() {
            let done = match entry.until_idle {
                true => Ok(false),
                false => entry.after.iter().try_fold(true, |done, event| Ok(done && event.is_released()?)),
            };
            let result = match done {
                Ok(true) => self.release(entry.resource),
                Ok(false) => {
                    self.retired.push(entry);
                    Ok(())
                }
                Err(error) => {
                    self.retired.push(RetiredEntry { until_idle: true, ..entry });
                    Err(error)
                }
            };
            errors.extend(result.err());
        }
        // The user's hook may make a call that waits for the lock.
        drop(one_at_a_time);
        errors.iter().filter(|error| !gone(error)).for_each(report_deferred);
    }

    /// Waits for the device, and releases all cached and retired resources.
    pub(crate) fn trim(&'static self) -> Result<()> {
        fork::check()?;
        self.condition_kernel.forget();
        let _one_at_a_time = self.retired.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        self.trim_alone()
    }

    /// Calls `attempt`, which allocates memory. If it gets none, first waits for a trim in progress, then trims.
    pub(crate) fn with_retry<R>(&'static self, attempt: impl Fn() -> Result<Option<R>>) -> Result<Option<R>> {
        if let Some(found) = attempt()? {
            return Ok(Some(found));
        }
        let _one_at_a_time = self.retired.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = attempt()? {
            return Ok(Some(found));
        }
        self.trim_alone()?;
        attempt()
    }

    fn trim_alone(&'static self) -> Result<()> {
        // Taken before the wait, so that the wait covers these entries.
        let mut entries = self.retired.take_all();
        entries.extend(self.pinned.take_cached().into_iter().map(|(pointer, event)| RetiredEntry {
            resource: Resource::Pinned(pointer),
            after: event.into_iter().collect(),
            until_idle: false,
        }));
        let before = self.before_trim();
        let waited = self.wait_until_idle();
        let others_idle = match &waited {
            Ok(true) if entries.iter().any(|entry| entry.until_idle) => DeviceState::wait_until_others_idle(),
            _ => Ok(false),
        };
        // During a capture only streams can be waited for, so entries without events stay.
        let (idle, partly) = (matches!(waited, Ok(true)), matches!(waited, Ok(false)));
        let others_are_idle = matches!(others_idle, Ok(true));
        let mut result = waited.map(drop);
        for entry in entries {
            let waited_for = match entry.until_idle {
                true => idle && others_are_idle,
                false => idle || (partly && !entry.after.is_empty()),
            };
            let fate = if !waited_for {
                ReleaseOutcome::Keep
            } else {
                // Another device may use memory that this one locked.
                match entry.after.iter().try_for_each(|event| event.wait_until_released()) {
                    Ok(()) => ReleaseOutcome::Release,
                    // The last user was lost with another device's context, which certainly stops using it only at a
                    // reset.
                    Err(error) if gone(&error) => ReleaseOutcome::Keep,
                    Err(error) => {
                        result = result.and(Err(error));
                        ReleaseOutcome::Keep
                    }
                }
            };
            match fate {
                ReleaseOutcome::Release => {
                    let released = self.release(entry.resource);
                    result = result.and(released);
                }
                ReleaseOutcome::Keep if partly && !entry.until_idle && !entry.after.is_empty() => {
                    self.retired.push(entry)
                }
                ReleaseOutcome::Keep => self.retired.push(RetiredEntry { until_idle: true, ..entry }),
            }
        }
        if idle || partly {
            let trimmed = before.and_then(|(done, events)| {
                for event in events {
                    // An event that was lost with another device's context never completes; its blocks stay.
                    event.synchronize().or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })?;
                }
                // If only streams could be waited for, the pool queries their progress.
                self.trim_pool(if idle { done } else { Vec::new() })
            });
            result = result.and(trimmed);
        }
        result.and(others_idle.map(drop)).and(self.destroy_pooled_events())
    }

    /// Waits for every opened device that is not lost. Returns false if graphs are being captured.
    fn wait_until_others_idle() -> Result<bool> {
        let mut all = true;
        for device in DeviceState::opened() {
            match device.wait_until_idle() {
                Ok(idle) => all &= idle,
                Err(error) if !device.is_lost() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(all)
    }
}
