//! What was dropped while it was in use, or could not be released, until it can be.
//!
//! Everything that the driver gives is released through [`DeviceState::release`]. The driver frees memory and unloads
//! modules only when no kernel of the device runs (measured: each such call waited for an unrelated kernel), so `Drop`
//! never releases those: it retires them, and the next call that may wait frees them ([`DeviceState::free_retired`],
//! [`DeviceState::trim`]).

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

/// Something that the driver gave and wants back.
pub(crate) enum Resource {
    Memory(u64),
    /// A block of the pool's heap.
    Block(Block),
    Pinned(Handle<u8>),
    /// Registered host memory and its owner, which must outlive the registration.
    Registered(Handle<u8>, #[allow(dead_code)] Box<dyn Any + Send>),
    Module(Handle<CUmod_st>),
    /// A linker and the options and logs that the driver writes to as long as it lives.
    Linker(Handle<CUlinkState_st>, #[allow(dead_code)] Box<dyn Any + Send>),
    Stream(Handle<CUstream_st>),
    Event(Handle<CUevent_st>),
    Graph(Handle<CUgraph_st>),
    ExecutableGraph(Handle<CUgraphExec_st>),
}

/// A resource and what must be done before it may be released.
struct Entry {
    resource: Resource,
    after: Vec<Arc<EventCell>>,
    /// No events could be had: wait for every device.
    until_idle: bool,
}

/// The resources of a device that wait to be released.
#[derive(Default)]
pub(crate) struct Retired {
    entries: Mutex<Vec<Entry>>,
    /// Held from taking resources out until they are released, so that whoever needs room waits for the room that
    /// another is making.
    trimming: Mutex<()>,
}

impl Retired {
    fn push(&self, entry: Entry) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn take_all(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What becomes of an entry.
enum Fate {
    Release,
    Keep,
}

impl DeviceState {
    /// Gives a resource back to the driver.
    ///
    /// The call is made once. A driver that answers it with an error has mostly released and reports something earlier;
    /// calling again could take what somebody else has been given in the meantime. Where the call cannot even be made,
    /// the resource is kept for later. What went with its context is no error.
    pub(crate) fn release(&'static self, resource: Resource) -> Result<()> {
        let result = match self.bind() {
            Ok(_bound) => {
                let result = self.call_release(&resource);
                if result.is_err() && matches!(resource, Resource::Registered(..) | Resource::Linker(..)) {
                    // Perhaps the driver still uses the memory: it is not given to anybody else.
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

    /// The context is current.
    fn call_release(&'static self, resource: &Resource) -> Result<()> {
        if let Resource::Pinned(pointer) | Resource::Registered(pointer, _) = resource {
            no_longer_locked(pointer.0);
        }
        // SAFETY: each resource was given by this device's driver, is released once and used by nothing any more.
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

    /// Releases a resource when the events are complete.
    pub(crate) fn retire(&self, resource: Resource, after: Vec<Arc<EventCell>>) {
        self.retired.push(Entry { resource, after, until_idle: false });
    }

    /// Releases a resource when every device was found idle, at the next trim.
    pub(crate) fn retire_until_idle(&self, resource: Resource) {
        self.retired.push(Entry { resource, after: Vec::new(), until_idle: true });
    }

    /// Releases what is no longer in use. Freeing memory and unloading modules wait for running kernels of the whole
    /// device, so this is for calls that wait anyway.
    pub(crate) fn free_retired(&'static self) {
        if self.is_lost() {
            return;
        }
        let mut errors = Vec::new();
        let one_at_a_time = self.retired.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in self.retired.take_all() {
            let done = match entry.until_idle {
                true => Ok(false),
                false => entry.after.iter().try_fold(true, |done, event| Ok(done && event.has_let_go()?)),
            };
            let result = match done {
                Ok(true) => self.release(entry.resource),
                Ok(false) => {
                    self.retired.push(entry);
                    Ok(())
                }
                Err(error) => {
                    self.retired.push(Entry { until_idle: true, ..entry });
                    Err(error)
                }
            };
            errors.extend(result.err());
        }
        // The user's hook may well call what waits for the lock.
        drop(one_at_a_time);
        errors.iter().filter(|error| !gone(error)).for_each(report_deferred);
    }

    /// Waits for the device and gives back everything that is cached or retired.
    pub(crate) fn trim(&'static self) -> Result<()> {
        fork::check()?;
        self.condition_kernel.forget();
        let _one_at_a_time = self.retired.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        self.trim_alone()
    }

    /// Calls `attempt`, which wants memory; while it gets none, first waits for a trim that is under way, then trims.
    pub(crate) fn with_room<R>(&'static self, attempt: impl Fn() -> Result<Option<R>>) -> Result<Option<R>> {
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
        // Taken before the wait, so that what is freed is what the wait was for.
        let mut entries = self.retired.take_all();
        entries.extend(self.pinned.take_cached().into_iter().map(|(pointer, event)| Entry {
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
        // While a graph is captured only streams could be waited for: what has no events stays.
        let (idle, partly) = (matches!(waited, Ok(true)), matches!(waited, Ok(false)));
        let others_are_idle = matches!(others_idle, Ok(true));
        let mut result = waited.map(drop);
        for entry in entries {
            let waited_for = match entry.until_idle {
                true => idle && others_are_idle,
                false => idle || (partly && !entry.after.is_empty()),
            };
            let fate = if !waited_for {
                Fate::Keep
            } else {
                // Memory locked for one device may be in use by another.
                match entry.after.iter().try_for_each(|event| event.wait_until_let_go()) {
                    Ok(()) => Fate::Release,
                    // Its last user went with another device's context, which lets go of it for certain in a reset only.
                    Err(error) if gone(&error) => Fate::Keep,
                    Err(error) => {
                        result = result.and(Err(error));
                        Fate::Keep
                    }
                }
            };
            match fate {
                Fate::Release => {
                    let released = self.release(entry.resource);
                    result = result.and(released);
                }
                Fate::Keep if partly && !entry.until_idle && !entry.after.is_empty() => {
                    self.retired.push(entry)
                }
                Fate::Keep => self.retired.push(Entry { until_idle: true, ..entry }),
            }
        }
        if idle || partly {
            let trimmed = before.and_then(|(done, events)| {
                for event in events {
                    // One that went with another device's context is never complete; its blocks stay.
                    event.synchronize().or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })?;
                }
                // Where only streams could be waited for, the pool asks them how far they are.
                self.trim_pool(if idle { done } else { Vec::new() })
            });
            result = result.and(trimmed);
        }
        result.and(others_idle.map(drop)).and(self.destroy_pooled_events())
    }

    /// Waits for every opened device; one that is lost has nothing to wait for. False where graphs are being captured.
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
