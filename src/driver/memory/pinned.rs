//! Page-locked host memory, which the device accesses without the driver's staging copies.

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
const MIN_BYTES: usize = 4096;

/// Unused page-locked blocks by size, and blocks whose last copy is still in progress.
#[derive(Default)]
pub(crate) struct PinnedPool(Mutex<PinnedBlocks>);

#[derive(Default)]
struct PinnedBlocks {
    idle: BTreeMap<usize, Vec<Handle<u8>>>,
    copying: Vec<(usize, Handle<u8>, Arc<EventCell>)>,
}

/// A cached block, with the event to wait for before it is freed.
type CachedBlock = (Handle<u8>, Option<Arc<EventCell>>);

impl PinnedPool {
    fn lock(&self) -> MutexGuard<'_, PinnedBlocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, class: usize) -> Option<Handle<u8>> {
        let mut blocks = self.lock();
        for (class, pointer, event) in std::mem::take(&mut blocks.copying) {
            // A block whose event cannot be queried stays; a trim reports the error.
            match event.is_released() {
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

    /// Removes every cached block.
    pub(crate) fn take_cached(&self) -> Vec<CachedBlock> {
        let blocks = std::mem::take(&mut *self.lock());
        let idle = blocks.idle.into_values().flatten().map(|pointer| (pointer, None));
        let copying = blocks.copying.into_iter().map(|(_, pointer, event)| (pointer, Some(event)));
        idle.chain(copying).collect()
    }
}

/// A page-locked range.
struct LockedRange {
    end: usize,
    /// The device whose context locked the range.
    by: &'static DeviceState,
}

/// The ranges that this library has locked and not yet unlocked, by start address. They do not overlap.
static LOCKED: Mutex<BTreeMap<usize, LockedRange>> = Mutex::new(BTreeMap::new());

fn locked() -> MutexGuard<'static, BTreeMap<usize, LockedRange>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the device can copy from and to this host memory directly. Memory locked by other code is unknown; a
/// wrong answer costs only speed.
pub(crate) fn is_page_locked(start: *const u8, bytes: usize) -> bool {
    let ranges = locked();
    match ranges.range(..=start.addr()).next_back() {
        Some((_, range)) => start.addr().checked_add(bytes).is_some_and(|last| last <= range.end),
        None => false,
    }
}

fn now_locked(by: &'static DeviceState, start: *const u8, bytes: usize) {
    locked().insert(start.addr(), LockedRange { end: start.addr() + bytes, by });
}

/// Removes the ranges that the device locked: they were unlocked with its context.
pub(crate) fn forget_locked_by(device: &DeviceState) {
    locked().retain(|_, range| !std::ptr::eq(range.by, device));
}

/// Called before the memory is unlocked, because afterwards it may have another owner.
pub(super) fn no_longer_locked(start: *const u8) {
    locked().remove(&start.addr());
}

/// The origin of the memory.
enum PinnedOrigin<T> {
    /// A block of the device's pool, with its size.
    Pool(usize),
    /// The caller's own vector, page-locked for the life of the buffer.
    Registered(ManuallyDrop<Vec<T>>),
    /// No memory: the buffer is empty.
    Empty,
}

/// Page-locked host memory that is read and written as a slice.
///
/// Dropping one returns its block to the device's pool. The next call that waits for the device unlocks and frees a
/// registered vector ([`into_vec`](PinnedBuffer::into_vec) does so at once). During a copy the
/// [`Transfer`](super::Transfer) owns the buffer, so the host cannot touch memory that the device is using.
pub struct PinnedBuffer<T: Pod> {
    device: &'static DeviceState,
    pointer: NonNull<T>,
    length: usize,
    origin: PinnedOrigin<T>,
}

// SAFETY: the buffer owns its memory, as a `Vec<T>` does.
unsafe impl<T: Pod + Send> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for PinnedBuffer<T> {}

/// The error of page-locking a vector. It returns the vector.
#[derive(Debug)]
pub struct RegisterError<T> {
    /// The cause.
    pub error: Box<Error>,
    /// The vector, unchanged.
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
    /// Allocates page-locked memory for `length` elements, with unspecified contents.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a size that overflows the address space, the driver's errors, or
    /// [`Error::ContextLost`].
    pub fn pinned<T: Pod>(&self, length: usize) -> Result<PinnedBuffer<T>> {
        // Checked here, because a cached block needs no driver call.
        self.0.check_alive()?;
        let bytes = length.checked_mul(size_of::<T>()).and_then(|bytes| {
            if bytes == 0 { Some(0) } else { bytes.max(MIN_BYTES).checked_next_power_of_two() }
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
            let origin = PinnedOrigin::Empty;
            return Ok(PinnedBuffer { device: self.0, pointer: NonNull::dangling(), length, origin });
        }
        let pointer = match self.0.pinned.take(class) {
            Some(pointer) => pointer,
            None => self.0.allocate_pinned(class)?,
        };
        let Some(pointer) = NonNull::new(pointer.0.cast()) else {
            return Err(Error::invalid("cuMemHostAlloc", "a null pointer", "memory"));
        };
        Ok(PinnedBuffer { device: self.0, pointer, length, origin: PinnedOrigin::Pool(class) })
    }

    /// Page-locks a vector in place, without a copy. [`PinnedBuffer::into_vec`] returns it.
    ///
    /// Locking takes time for each page. It pays for memory that is copied more than once.
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
            return Ok(PinnedBuffer { device: self.0, pointer, length, origin: PinnedOrigin::Empty });
        }
        let pointer = vector.as_mut_ptr();
        let registered = self.0.bind().and_then(|_bound| {
            // SAFETY: the range is the vector's memory, which stays where it is until it is unregistered.
            unsafe { call!(self.0, cuMemHostRegister(pointer.cast(), bytes, PORTABLE)) }
        });
        match (registered, NonNull::new(pointer)) {
            (Ok(()), Some(pointer)) => {
                now_locked(self.0, pointer.as_ptr().cast(), bytes);
                Ok(PinnedBuffer { device: self.0, pointer, length, origin: PinnedOrigin::Registered(vector) })
            }
            (Ok(()), None) => Ok(PinnedBuffer {
                device: self.0,
                pointer: NonNull::dangling(),
                length: 0,
                origin: PinnedOrigin::Registered(vector),
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
        let found = self.with_retry(|| {
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
    /// The device that the memory was locked for. Every device can use the memory.
    pub fn device(&self) -> Device {
        Device(self.device)
    }

    /// Returns the elements as an ordinary vector. A registered vector is returned without a copy.
    ///
    /// # Errors
    ///
    /// The driver's errors while unlocking. The vector is then leaked, because it may still be locked.
    pub fn into_vec(mut self) -> Result<Vec<T>>
    where
        T: Send,
    {
        match std::mem::replace(&mut self.origin, PinnedOrigin::Empty) {
            PinnedOrigin::Registered(vector) => {
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

    /// Moves the buffer to the graph being captured, and returns its handle there.
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

    /// Frees the memory when the event is complete, for a copy that nobody waits for.
    pub(crate) fn retire(mut self, after: Option<Arc<EventCell>>) {
        if self.device.is_lost() {
            // A dead context may still own a transfer, so the memory is leaked.
            self.origin = PinnedOrigin::Empty;
            return;
        }
        let pointer = Handle(self.pointer.as_ptr().cast());
        let resource = match (std::mem::replace(&mut self.origin, PinnedOrigin::Empty), &after) {
            (PinnedOrigin::Pool(class), Some(event)) => {
                return self.device.pinned.put_after(class, pointer, event.clone());
            }
            (PinnedOrigin::Pool(_), None) => Resource::Pinned(pointer),
            (PinnedOrigin::Registered(vector), _) => {
                Resource::Registered(pointer, Box::new(VectorOwner(ManuallyDrop::into_inner(vector))))
            }
            (PinnedOrigin::Empty, _) => return,
        };
        match after {
            Some(event) => self.device.retire(resource, vec![event]),
            None => self.device.retire_until_idle(resource),
        }
    }
}

/// The vector of a retired buffer, which is only ever dropped.
struct VectorOwner<T>(#[allow(dead_code)] Vec<T>);

// SAFETY: `T` is plain data without a destructor, and only the vector's memory is touched from here on.
unsafe impl<T: Pod> Send for VectorOwner<T> {}

impl<T: Pod> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let pointer = Handle(self.pointer.as_ptr().cast::<u8>());
        match std::mem::replace(&mut self.origin, PinnedOrigin::Empty) {
            PinnedOrigin::Pool(class) => {
                if !self.device.is_lost() {
                    self.device.pinned.put(class, pointer);
                }
            }
            // A reset has unlocked it. Otherwise nothing can unlock it any more, and locked memory must not be freed.
            PinnedOrigin::Registered(vector) if self.device.is_lost() => {
                if self.device.was_reset() && !fork::forked() {
                    drop(ManuallyDrop::into_inner(vector));
                }
            }
            PinnedOrigin::Registered(vector) => {
                // Unlocking waits for every running kernel, so it is left to a call that may wait.
                let owner = Box::new(VectorOwner(ManuallyDrop::into_inner(vector)));
                self.device.retire(Resource::Registered(pointer, owner), Vec::new());
            }
            PinnedOrigin::Empty => {}
        }
    }
}

impl<T: Pod> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is ours and contains `length` elements; any bytes are a value of `T`, and no copy runs.
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
