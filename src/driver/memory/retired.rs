//! What was dropped while it was in use, or could not be released, until it can be.
//!
//! Everything that the driver gives is released through [`DeviceState::release`].

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::pinned::no_longer_locked;
use crate::driver::context::{Handle, call, gone};
use crate::driver::device::DeviceState;
use crate::driver::event::EventCell;
use crate::error::{Result, report_deferred};
use crate::sys::driver::{CUevent_st, CUlinkState_st, CUmod_st, CUstream_st};

/// Something that the driver gave and wants back.
pub(crate) enum Resource {
    Memory(u64),
    Pinned(Handle<u8>),
    /// Registered host memory and its owner, which must outlive the registration.
    Registered(Handle<u8>, #[allow(dead_code)] Box<dyn Any + Send>),
    Module(Handle<CUmod_st>),
    Linker(Handle<CUlinkState_st>),
    Stream(Handle<CUstream_st>),
    Event(Handle<CUevent_st>),
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
pub(crate) struct Retired(Mutex<Vec<Entry>>);

impl Retired {
    fn push(&self, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn take_all(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl DeviceState {
    /// Gives a resource back to the driver.
    ///
    /// The call is made once. A driver that answers it with an error has mostly released and reports something earlier;
    /// calling again could take what somebody else has been given in the meantime. Where the call cannot even be made,
    /// the resource is kept for later. What went with its context is no error.
    pub(crate) fn release(&'static self, resource: Resource) -> Result<()> {
        let result = match self.bind() {
            Ok(_bound) => self.call_release(&resource),
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
                Resource::Memory(address) => call!(self, cuMemFree(*address)),
                Resource::Pinned(pointer) => call!(self, cuMemFreeHost(pointer.into_void())),
                Resource::Registered(pointer, _) => call!(self, cuMemHostUnregister(pointer.into_void())),
                Resource::Module(module) => call!(self, cuModuleUnload(module.0)),
                Resource::Linker(linker) => call!(self, cuLinkDestroy(linker.0)),
                Resource::Stream(stream) => call!(self, cuStreamDestroy(stream.0)),
                Resource::Event(event) => call!(self, cuEventDestroy(event.0)),
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

    /// Releases what is no longer in use. Never blocks.
    pub(crate) fn collect_retired(&'static self) {
        if self.retired.is_empty() || self.is_lost() {
            return;
        }
        for entry in self.retired.take_all() {
            let done = match entry.until_idle {
                true => Ok(false),
                false => entry.after.iter().try_fold(true, |done, event| Ok(done && event.is_complete()?)),
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
            if let Err(error) = result {
                if !gone(&error) {
                    report_deferred(&error);
                }
            }
        }
    }

    /// Waits for the device and gives back everything that is cached or retired.
    pub(crate) fn trim(&'static self) -> Result<()> {
        // Taken before the wait, so that what is freed is what the wait was for.
        let mut entries = self.retired.take_all();
        let cached = self.pool.take_cached().into_iter().map(Resource::Memory);
        let pinned = self.pinned.take_cached().into_iter().map(Resource::Pinned);
        entries.extend(cached.chain(pinned).map(|resource| Entry {
            resource,
            after: Vec::new(),
            until_idle: false,
        }));
        if let Err(error) = self.wait_for_entries(&entries) {
            for entry in entries {
                self.retired.push(Entry { until_idle: true, ..entry });
            }
            return Err(error);
        }
        let mut result = Ok(());
        for entry in entries {
            if let Err(error) = self.release(entry.resource) {
                result = Err(error);
            }
        }
        self.destroy_pooled_events().and(result)
    }

    fn wait_for_entries(&'static self, entries: &[Entry]) -> Result<()> {
        self.wait_until_idle()?;
        // Pinned memory locked for one device may be in use by another.
        for event in entries.iter().flat_map(|entry| &entry.after) {
            event.synchronize()?;
        }
        if entries.iter().any(|entry| entry.until_idle) {
            for device in DeviceState::opened() {
                if !device.is_lost() {
                    device.wait_until_idle()?;
                }
            }
        }
        Ok(())
    }
}
