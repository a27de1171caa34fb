//! Page-locked host memory, which the device copies from and to without the driver's staging.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use super::retired::Resource;
use crate::driver::context::{Handle, OUT_OF_MEMORY, call, driver_error};
use crate::driver::device::{Device, DeviceState};
use crate::driver::event::EventCell;
use crate::driver::fork;
use crate::driver::graph::{CapturedBuffer, HeldPinned, capture::Capture};
use crate::error::{Error, Result};

/// Usable from every context.
const PORTABLE: u32 = 1;
const SMALLEST: usize = 4096;

/// Page-locked blocks that are not in use, by size, and those whose last copy is still under way.
#[derive(Default)]
pub(crate) struct PinnedPool(Mutex<PinnedBlocks>);

#[derive(Default)]
struct PinnedBlocks {
    idle: BTreeMap<usize, Vec<Handle<u8>>>,
    copying: Vec<(usize, Handle<u8>, Arc<EventCell>)>,
}

/// A block taken out, with the event that must be waited for before it is freed.
type CachedBlock = (Handle<u8>, Option<Arc<EventCell>>);

impl PinnedPool {
    fn lock(&self) -> MutexGuard<'_, PinnedBlocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, class: usize) -> Option<Handle<u8>> {
        let mut blocks = self.lock();
        for (class, pointer, event) in std::mem::take(&mut blocks.copying) {
            // One that cannot be asked stays: a trim will find out.
            match event.has_let_go() {
                Ok(true) => blocks.idle.entry(class).or_default().push(pointer),
                _ => blocks.copying.push((class, pointer, event)),
            }
        }
        blocks.idle.get_mut(&class)?.pop()
    }

    fn put(&self, class: usize, pointer: Handle<u8>) {
        self.lock().idle.entry(class).or_default().push(pointer);
    }

    fn put_after(&self, class: usize, pointer: Handle<u8>, event: Arc<EventCell>) {
        self.lock().copying.push((class, pointer, event));
    }

    /// Takes every cached block out.
    pub(crate) fn take_cached(&self) -> Vec<CachedBlock> {
        let blocks = std::mem::take(&mut *self.lock());
        let idle = blocks.idle.into_values().flatten().map(|pointer| (pointer, None));
        let copying = blocks.copying.into_iter().map(|(_, pointer, event)| (pointer, Some(event)));
        idle.chain(copying).collect()
    }
}

/// A range that is locked.
struct Locked {
    end: usize,
    /// The device whose context locked it.
    by: &'static DeviceState,
}

/// The ranges that this library has locked and not unlocked since, by their starts. They do not overlap.
static LOCKED: Mutex<BTreeMap<usize, Locked>> = Mutex::new(BTreeMap::new());

fn locked() -> MutexGuard<'static, BTreeMap<usize, Locked>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the device can copy from and to this host memory as it is. Memory that others have locked is not known; a wrong
/// answer costs speed and nothing else.
pub(crate) fn is_page_locked(start: *const u8, bytes: usize) -> bool {
    let ranges = locked();
    match ranges.range(..=start.addr()).next_back() {
        Some((_, range)) => start.addr().checked_add(bytes).is_some_and(|last| last <= range.end),
        None => false,
    }
}

fn now_locked(by: &'static DeviceState, start: *const u8, bytes: usize) {
    locked().insert(start.addr(), Locked { end: start.addr() + bytes, by });
}

/// The ranges that the device has locked are not any more: they went with its context.
pub(crate) fn forget_locked_by(device: &DeviceState) {
    locked().retain(|_, range| !std::ptr::eq(range.by, device));
}

/// Called before the memory is unlocked: afterwards it may be somebody else's.
pub(super) fn no_longer_locked(start: *const u8) {
    locked().remove(&start.addr());
}

/// Where the memory is from.
enum Origin<T> {
    /// A block of the device's pool, with its size.
    Pool(usize),
    /// The caller's own vector, page-locked while it is here.
    Registered(ManuallyDrop<Vec<T>>),
    /// No memory: the buffer is empty.
    Empty,
}

/// Page-locked host memory that is read and written as a slice.
///
/// Dropping one gives its block to the device's pool; a registered vector is unlocked and freed by the next call that
/// waits for the device ([`into_vec`](PinnedBuffer::into_vec) does it at once). While a copy runs the [`Transfer`](super::Transfer) owns it, so
/// the host cannot touch what the device is using.
pub struct PinnedBuffer<T: Pod> {
    device: &'static DeviceState,
    pointer: NonNull<T>,
    length: usize,
    origin: Origin<T>,
}

// SAFETY: the buffer owns its memory, as a `Vec<T>` does.
unsafe impl<T: Pod + Send> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for PinnedBuffer<T> {}

/// A vector that could not be page-locked, given back.
#[derive(Debug)]
pub struct RegisterError<T> {
    /// What went wrong.
    pub error: Box<Error>,
    /// The vector, as it was.
    pub vector: Vec<T>,
}

impl<T> std::fmt::Display for RegisterError<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(formatter)
    }
}

impl<T: std::fmt::Debug> std::error::Error for RegisterError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl<T> From<RegisterError<T>> for Error {
    fn from(failed: RegisterError<T>) -> Error {
        *failed.error
    }
}

impl Device {
    /// Page-locked memory for `length` elements, with unspecified contents.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a size past the address space, the driver's errors, or [`Error::ContextLost`].
    pub fn pinned<T: Pod>(&self, length: usize) -> Result<PinnedBuffer<T>> {
        // Cached blocks are had without the driver, who would say so.
        self.0.check_alive()?;
        let bytes = length.checked_mul(size_of::<T>()).and_then(|bytes| {
            if bytes == 0 { Some(0) } else { bytes.max(SMALLEST).checked_next_power_of_two() }
        });
        let Some(class) = bytes.filter(|&class| isize::try_from(class).is_ok()) else {
            let found = format!("{length} elements of {}", std::any::type_name::<T>());
            return Err(Error::invalid(
                "allocating pinned memory",
                found,
                "a size that fits the address space",
            ));
        };
        if class == 0 {
            let origin = Origin::Empty;
            return Ok(PinnedBuffer { device: self.0, pointer: NonNull::dangling(), length, origin });
        }
        let pointer = match self.0.pinned.take(class) {
            Some(pointer) => pointer,
            None => self.0.allocate_pinned(class)?,
        };
        let Some(pointer) = NonNull::new(pointer.0.cast()) else {
            return Err(Error::invalid("cuMemHostAlloc", "a null pointer", "memory"));
        };
        Ok(PinnedBuffer { device: self.0, pointer, length, origin: Origin::Pool(class) })
    }

    /// Page-locks a vector where it is, without a copy. [`PinnedBuffer::into_vec`] gives it back.
    ///
    /// Locking takes time for each page; it pays for memory that is copied more than once.
    ///
    /// # Errors
    ///
    /// The driver's errors, with the vector.
    pub fn register<T: Pod + Send>(&self, vector: Vec<T>) -> Result<PinnedBuffer<T>, RegisterError<T>> {
        let mut vector = ManuallyDrop::new(vector);
        let (length, bytes) = (vector.len(), size_of_val(vector.as_slice()));
        if bytes == 0 {
            let pointer = NonNull::dangling();
            drop(ManuallyDrop::into_inner(vector));
            return Ok(PinnedBuffer { device: self.0, pointer, length, origin: Origin::Empty });
        }
        let pointer = vector.as_mut_ptr();
        let registered = self.0.bind().and_then(|_bound| {
            // SAFETY: the range is the vector's memory, which stays where it is until it is unregistered.
            unsafe { call!(self.0, cuMemHostRegister(pointer.cast(), bytes, PORTABLE)) }
        });
        match (registered, NonNull::new(pointer)) {
            (Ok(()), Some(pointer)) => {
                now_locked(self.0, pointer.as_ptr().cast(), bytes);
                Ok(PinnedBuffer { device: self.0, pointer, length, origin: Origin::Registered(vector) })
            }
            (Ok(()), None) => Ok(PinnedBuffer {
                device: self.0,
                pointer: NonNull::dangling(),
                length: 0,
                origin: Origin::Registered(vector),
            }),
            (Err(error), _) => {
                Err(RegisterError { error: Box::new(error), vector: ManuallyDrop::into_inner(vector) })
            }
        }
    }
}

impl DeviceState {
    fn allocate_pinned(&'static self, bytes: usize) -> Result<Handle<u8>> {
        let _bound = self.bind()?;
        let found = self.with_room(|| {
            let mut pointer = std::ptr::null_mut();
            // SAFETY: the pointer is to a local; the device's context is current.
            let status = unsafe { (self.api.cuMemHostAlloc()?)(&mut pointer, bytes, PORTABLE) };
            if status.0 == OUT_OF_MEMORY {
                return Ok(None);
            }
            self.check("cuMemHostAlloc", status)?;
            now_locked(self, pointer.cast(), bytes);
            Ok(Some(Handle(pointer.cast())))
        })?;
        found.ok_or_else(|| driver_error("cuMemHostAlloc", OUT_OF_MEMORY, format!("{bytes} bytes")))
    }
}

impl<T: Pod> PinnedBuffer<T> {
    /// The device that the memory was locked for; it works with all of them.
    pub fn device(&self) -> Device {
        Device(self.device)
    }

    /// The elements as an ordinary vector. A registered one comes back without a copy.
    ///
    /// # Errors
    ///
    /// The driver's, while unlocking; the vector is lost then, because it may still be locked.
    pub fn into_vec(mut self) -> Result<Vec<T>>
    where
        T: Send,
    {
        match std::mem::replace(&mut self.origin, Origin::Empty) {
            Origin::Registered(vector) => {
                let pointer = Handle(self.pointer.as_ptr().cast::<u8>());
                // Nothing uses the memory: a transfer would own this buffer.
                self.device.release(Resource::Registered(pointer, Box::new(())))?;
                Ok(ManuallyDrop::into_inner(vector))
            }
            origin => {
                let elements = self.to_vec();
                self.origin = origin;
                Ok(elements)
            }
        }
    }

    /// Gives the buffer to the graph that is being captured; its name there.
    pub(crate) fn into_graph(self, capture: &Capture) -> CapturedBuffer<T> {
        let (capture, index) = capture.hold_pinned(HeldPinned {
            buffer: Box::new(self),
            retire: |buffer, after| {
                if let Ok(buffer) = buffer.downcast::<PinnedBuffer<T>>() {
                    buffer.retire(after);
                }
            },
        });
        CapturedBuffer::new(capture, index)
    }

    /// Gives the memory back when the event is complete, for a copy that nobody waits for.
    pub(crate) fn retire(mut self, after: Option<Arc<EventCell>>) {
        if self.device.is_lost() {
            // A dead context may still own a transfer: the memory is left alone for good.
            self.origin = Origin::Empty;
            return;
        }
        let pointer = Handle(self.pointer.as_ptr().cast());
        let resource = match (std::mem::replace(&mut self.origin, Origin::Empty), &after) {
            (Origin::Pool(class), Some(event)) => {
                return self.device.pinned.put_after(class, pointer, event.clone());
            }
            (Origin::Pool(_), None) => Resource::Pinned(pointer),
            (Origin::Registered(vector), _) => {
                Resource::Registered(pointer, Box::new(Owner(ManuallyDrop::into_inner(vector))))
            }
            (Origin::Empty, _) => return,
        };
        match after {
            Some(event) => self.device.retire(resource, vec![event]),
            None => self.device.retire_until_idle(resource),
        }
    }
}

/// The vector of a retired buffer, only ever dropped.
struct Owner<T>(#[allow(dead_code)] Vec<T>);

// SAFETY: `T` is plain data without a destructor, and nothing but the vector's memory is touched from here on.
unsafe impl<T: Pod> Send for Owner<T> {}

impl<T: Pod> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let pointer = Handle(self.pointer.as_ptr().cast::<u8>());
        match std::mem::replace(&mut self.origin, Origin::Empty) {
            Origin::Pool(class) => {
                if !self.device.is_lost() {
                    self.device.pinned.put(class, pointer);
                }
            }
            // A reset has unlocked it. Otherwise nothing can unlock it any more, and locked memory is not freed.
            Origin::Registered(vector) if self.device.is_lost() => {
                if self.device.was_reset() && !fork::forked() {
                    drop(ManuallyDrop::into_inner(vector));
                }
            }
            Origin::Registered(vector) => {
                // Unlocking waits for every running kernel, so it is left to a call that may wait.
                let owner = Box::new(Owner(ManuallyDrop::into_inner(vector)));
                self.device.retire(Resource::Registered(pointer, owner), Vec::new());
            }
            Origin::Empty => {}
        }
    }
}

impl<T: Pod> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is ours and holds `length` elements; any bytes are a value of `T`, and no copy runs.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl<T: Pod> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.length) }
    }
}

impl<T: Pod> std::fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PinnedBuffer<{}>({})", std::any::type_name::<T>(), self.length)
    }
}
