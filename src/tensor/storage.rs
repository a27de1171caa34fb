//! The memory of tensors: [`Shared`], which nobody writes while several have it, and [`Storage`], which is written before
//! there is a tensor of it.
//!
//! Invariants: storage is written only by who holds it alone, and nobody sees memory that was not written.

use std::alloc;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::cached_blocks::ALIGNMENT;
use super::device::{Device, stream};
use super::host_memory::AlignedStart;
use super::tensor::mismatch;
use super::{cached_blocks, host_memory};
use crate::driver::{DeviceBuffer, PinnedBuffer, SharedBuffer, prefer_large_pages};
use crate::error::{Error, Result};
use crate::threads::check_variable;
use crate::types::{DType, Element, Shape};

/// Memory that nobody shares yet, in bytes.
pub(crate) enum Storage {
    Host(HostMemory),
    Cuda(DeviceBuffer<u8>),
}

/// Memory that tensors share. [`Drop`] drops the fields.
#[derive(Clone)]
pub(crate) enum Shared {
    Host(ManuallyDrop<Arc<HostMemory>>),
    Cuda(ManuallyDrop<SharedBuffer>),
    /// No memory: a compound assignment on this device failed with this error.
    Failed(ManuallyDrop<Arc<(Device, Error)>>),
}

impl Drop for Shared {
    /// A call, because more than a thousand call sites drop tensors, and inlined counts make a fiftieth of the library.
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: this is the only drop of a field, and nothing uses it afterwards.
        unsafe {
            match self {
                Shared::Host(memory) => ManuallyDrop::drop(memory),
                Shared::Cuda(buffer) => ManuallyDrop::drop(buffer),
                Shared::Failed(failure) => ManuallyDrop::drop(failure),
            }
        }
    }
}

/// Memory that an operation reads.
pub(crate) enum Memory<'a> {
    Host(&'a [u8]),
    Cuda(&'a DeviceBuffer<u8>),
    Failed(&'a Error),
}

/// Memory that an operation writes.
pub(crate) enum MemoryMut<'a> {
    Host(&'a mut [u8]),
    Cuda(&'a mut DeviceBuffer<u8>),
}

impl Storage {
    /// Memory for elements of this dtype and shape, with contents that mean nothing: whoever makes a tensor of it writes
    /// every element first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more bytes than an address counts, [`Error::OutOfMemory`] where there is no memory
    /// for them, and the driver's.
    pub(super) fn uninitialized(device: &Device, dtype: DType, shape: &Shape) -> Result<Storage> {
        match device.is_cpu() {
            true => Ok(Storage::Host(HostMemory::uninitialized(bytes_of(dtype, shape)?)?)),
            false => Ok(Storage::Cuda(stream(device)?.uninitialized(bytes_of(dtype, shape)?)?)),
        }
    }

    #[inline]
    pub(crate) fn memory_mut(&mut self) -> MemoryMut<'_> {
        match self {
            Storage::Host(memory) => MemoryMut::Host(memory.bytes_mut()),
            Storage::Cuda(buffer) => MemoryMut::Cuda(buffer),
        }
    }
}

impl From<Storage> for Shared {
    fn from(storage: Storage) -> Shared {
        match storage {
            Storage::Host(memory) => Shared::Host(ManuallyDrop::new(Arc::new(memory))),
            Storage::Cuda(buffer) => Shared::of_buffer(buffer.into()),
        }
    }
}

impl Shared {
    #[inline]
    pub(super) fn of_buffer(buffer: SharedBuffer) -> Shared {
        Shared::Cuda(ManuallyDrop::new(buffer))
    }

    /// Returns an error of a device instead of memory.
    pub(super) fn of_error(device: Device, error: Error) -> Shared {
        Shared::Failed(ManuallyDrop::new(Arc::new((device, error))))
    }

    #[inline]
    pub(crate) fn device(&self) -> Device {
        match self {
            Shared::Host(_) => Device::cpu(),
            Shared::Cuda(buffer) => Device::from(buffer.device()),
            Shared::Failed(failure) => failure.0,
        }
    }

    #[inline]
    pub(crate) fn memory(&self) -> Memory<'_> {
        match self {
            Shared::Host(memory) => Memory::Host(memory.bytes()),
            Shared::Cuda(buffer) => Memory::Cuda(buffer),
            Shared::Failed(failure) => Memory::Failed(&failure.1),
        }
    }

    /// The memory itself, where nobody else has it.
    pub(super) fn into_unique(self) -> Option<Storage> {
        let mut shared = ManuallyDrop::new(self);
        // SAFETY: `shared` is never dropped, and its field is taken once.
        unsafe {
            match &mut *shared {
                Shared::Host(memory) => Arc::into_inner(ManuallyDrop::take(memory)).map(Storage::Host),
                Shared::Cuda(buffer) => ManuallyDrop::take(buffer).into_unique().map(Storage::Cuda),
                Shared::Failed(failure) => {
                    ManuallyDrop::drop(failure);
                    None
                }
            }
        }
    }

    /// Returns whether the memory is page-locked memory of the host.
    pub(super) fn is_pinned(&self) -> bool {
        matches!(self, Shared::Host(memory) if memory.pinned)
    }

    /// Returns whether no other tensor shares the memory, and it may be written.
    pub(super) fn is_unique(&self) -> bool {
        match self {
            Shared::Host(memory) => Arc::strong_count(memory) == 1 && !memory.read_only,
            Shared::Cuda(buffer) => buffer.is_unique() && !buffer.is_read_only(),
            Shared::Failed(_) => false,
        }
    }

    /// To write.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if others share it; the error that it holds instead of memory.
    pub(super) fn unique_memory(&mut self) -> Result<MemoryMut<'_>> {
        if let Shared::Failed(failure) = self {
            return Err(failure.1.clone());
        }
        self.memory_mut().ok_or_else(|| Error::invalid("writing to a tensor", "shared elements", "its own"))
    }

    /// To write, where nobody else has it.
    fn memory_mut(&mut self) -> Option<MemoryMut<'_>> {
        match self {
            Shared::Host(memory) => {
                let memory = Arc::get_mut(memory).filter(|memory| !memory.read_only);
                memory.map(|memory| MemoryMut::Host(memory.bytes_mut()))
            }
            Shared::Cuda(buffer) => {
                buffer.get_mut().filter(|buffer| !buffer.is_read_only()).map(MemoryMut::Cuda)
            }
            Shared::Failed(_) => None,
        }
    }
}

/// The bytes of elements of this dtype and shape.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for more than memory can have.
#[inline]
pub(super) fn bytes_of(dtype: DType, shape: &Shape) -> Result<usize> {
    let bytes = shape.count().checked_mul(dtype.size()).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or_else(|| too_large(dtype, shape))
}

#[cold]
fn too_large(dtype: DType, shape: &Shape) -> Error {
    let found = format!("{shape} elements of {dtype}");
    Error::invalid("allocating a tensor", found, format!("at most {} bytes", isize::MAX))
}

impl<'a> Memory<'a> {
    /// Memory of the CPU.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] where it is a device's.
    #[inline]
    pub(crate) fn host(self, operation: &'static str) -> Result<&'a [u8]> {
        match self {
            Memory::Host(memory) => Ok(memory),
            Memory::Cuda(buffer) => Err(mismatch(operation, Device::from(buffer.device()), Device::cpu())),
            Memory::Failed(error) => Err(error.clone()),
        }
    }

    /// Memory of a CUDA device.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] where it is the CPU's.
    #[inline]
    pub(crate) fn cuda(self, operation: &'static str) -> Result<&'a DeviceBuffer<u8>> {
        match self {
            Memory::Cuda(buffer) => Ok(buffer),
            Memory::Host(_) => Err(not_on_a_device(operation)),
            Memory::Failed(error) => Err(error.clone()),
        }
    }

    /// As [`cuda`](Self::cuda), for runs whose host time a result would be a part of.
    #[inline]
    pub(crate) fn cuda_buffer(self) -> Option<&'a DeviceBuffer<u8>> {
        match self {
            Memory::Cuda(buffer) => Some(buffer),
            Memory::Host(_) | Memory::Failed(_) => None,
        }
    }

    /// Copies a part of it, after what wrote it and before this returns.
    pub(crate) fn read(self, range: Range<usize>, to: &mut [u8]) -> Result<()> {
        match self {
            Memory::Host(memory) => to.copy_from_slice(part(memory, range)?),
            Memory::Cuda(buffer) => {
                stream(&Device::from(buffer.device()))?.copy_to_host(&buffer.slice(range)?, to)?;
            }
            Memory::Failed(error) => return Err(error.clone()),
        }
        Ok(())
    }
}

/// A part of host memory.
///
/// # Errors
///
/// [`Error::OutOfRange`].
pub(super) fn part(memory: &[u8], range: Range<usize>) -> Result<&[u8]> {
    memory.get(range.clone()).ok_or_else(|| outside(&range, memory.len()))
}

/// As [`part`], to write.
pub(super) fn part_mut(memory: &mut [u8], range: Range<usize>) -> Result<&mut [u8]> {
    let length = memory.len();
    memory.get_mut(range.clone()).ok_or_else(|| outside(&range, length))
}

#[cold]
fn outside(range: &Range<usize>, length: usize) -> Error {
    Error::OutOfRange { start: range.start, end: range.end, length }
}

#[cold]
pub(super) fn not_on_a_device(operation: &'static str) -> Error {
    Error::DeviceMismatch {
        operation,
        left: "a tensor on cpu".to_owned(),
        right: "kernels of a CUDA device; move it there with to()".to_owned(),
    }
}

impl<'a> MemoryMut<'a> {
    /// The same memory, for a shorter time.
    #[inline]
    fn reborrow(&mut self) -> MemoryMut<'_> {
        match self {
            MemoryMut::Host(memory) => MemoryMut::Host(memory),
            MemoryMut::Cuda(buffer) => MemoryMut::Cuda(buffer),
        }
    }

    /// As [`Memory::host`].
    #[inline]
    pub(crate) fn host(&mut self, operation: &'static str) -> Result<&mut [u8]> {
        self.reborrow().into_host(operation)
    }

    /// As [`Memory::cuda`].
    #[inline]
    pub(crate) fn cuda(&mut self, operation: &'static str) -> Result<&mut DeviceBuffer<u8>> {
        self.reborrow().into_cuda(operation)
    }

    /// As [`Memory::cuda_buffer`].
    #[inline]
    pub(crate) fn cuda_buffer(&mut self) -> Option<&mut DeviceBuffer<u8>> {
        match self {
            MemoryMut::Cuda(buffer) => Some(buffer),
            MemoryMut::Host(_) => None,
        }
    }

    /// As [`host`](Self::host), for as long as the memory is borrowed.
    #[inline]
    pub(crate) fn into_host(self, operation: &'static str) -> Result<&'a mut [u8]> {
        match self {
            MemoryMut::Host(memory) => Ok(memory),
            MemoryMut::Cuda(buffer) => Err(mismatch(operation, Device::from(buffer.device()), Device::cpu())),
        }
    }

    /// As [`cuda`](Self::cuda), for as long as the memory is borrowed.
    #[inline]
    pub(crate) fn into_cuda(self, operation: &'static str) -> Result<&'a mut DeviceBuffer<u8>> {
        match self {
            MemoryMut::Cuda(buffer) => Ok(buffer),
            MemoryMut::Host(_) => Err(not_on_a_device(operation)),
        }
    }

    /// Copies host memory to the elements from byte `start` on, before this returns.
    pub(crate) fn write(self, start: usize, from: &[u8]) -> Result<()> {
        let range = start..start + from.len();
        match self {
            MemoryMut::Host(memory) => part_mut(memory, range)?.copy_from_slice(from),
            MemoryMut::Cuda(buffer) => {
                let stream = stream(&Device::from(buffer.device()))?;
                stream.copy_from_host(from, &mut buffer.slice_mut(range)?)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn device(&self) -> Device {
        match self {
            MemoryMut::Host(_) => Device::cpu(),
            MemoryMut::Cuda(buffer) => Device::from(buffer.device()),
        }
    }
}

/// Host memory, aligned for its elements: its own, that of a vector, which is taken over as it is, or that of other code.
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// As it was asked for; without a size for memory of other code.
    layout: alloc::Layout,
    /// The bytes of the block before `start`.
    offset: u8,
    /// True for memory of other code that this library may not write to.
    read_only: bool,
    /// True for memory that its owner page-locked.
    pinned: bool,
    release: HostRelease,
    /// The owner of memory of other code, which frees it when it is dropped.
    _owner: Option<Box<dyn Send + Sync>>,
}

/// The receiver of host memory that its tensor no longer needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostRelease {
    /// The global allocator, for a vector's memory. Memory without a size is not freed.
    Global,
    /// The allocator of tensors' memory.
    Allocator,
    /// The kept blocks, for a block of a size class.
    Kept,
}

// SAFETY: plain bytes that this or its owner, which is `Send`, owns.
unsafe impl Send for HostMemory {}
// SAFETY: as above, with an owner that is `Sync`; written only through `&mut`.
unsafe impl Sync for HostMemory {}

/// Memory from here on is asked for in large pages: a fault for each 4 KiB takes longer than what is written there.
const LARGE: usize = 4 << 20;

impl HostMemory {
    fn owned(start: NonNull<u8>, bytes: usize, layout: alloc::Layout, release: HostRelease) -> HostMemory {
        HostMemory::aligned(AlignedStart { start, offset: 0 }, bytes, layout, release)
    }

    fn aligned(
        memory: AlignedStart,
        bytes: usize,
        layout: alloc::Layout,
        release: HostRelease,
    ) -> HostMemory {
        host_memory::add_live(layout.size());
        let AlignedStart { start, offset } = memory;
        HostMemory { start, bytes, layout, offset, read_only: false, pinned: false, release, _owner: None }
    }

    /// Memory of other code, or of a pinned buffer, until `owner` is dropped. A null address stands for no bytes.
    ///
    /// # Safety
    ///
    /// The bytes are valid until the owner is dropped, and are written only by the holder of this if it is not read-only.
    pub(super) unsafe fn foreign(
        address: *mut u8,
        bytes: usize,
        read_only: bool,
        pinned: bool,
        owner: Box<dyn Send + Sync>,
    ) -> HostMemory {
        let start = NonNull::new(address).unwrap_or(layout_start());
        let layout = alloc::Layout::new::<()>();
        let release = HostRelease::Global;
        HostMemory { start, bytes, layout, offset: 0, read_only, pinned, release, _owner: Some(owner) }
    }

    /// Memory whose bytes mean nothing: those of a freed tensor, or zeros.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] where the host has none; [`Error::InvalidArgument`] for a wrong `SELVEDGE_THREADS`.
    pub(crate) fn uninitialized(bytes: usize) -> Result<HostMemory> {
        check_variable()?;
        let class = class_of(bytes);
        match class.zip(class.and_then(cached_blocks::take)) {
            Some((size, block)) => {
                let layout = alloc::Layout::from_size_align(size, ALIGNMENT);
                let layout = layout.map_err(|_| Error::host_memory(bytes, "allocating a tensor"))?;
                // SAFETY: kept blocks of this size have its padded layout.
                let memory = unsafe { AlignedStart::of_block(block, layout) };
                Ok(HostMemory::aligned(memory, bytes, layout, HostRelease::Kept))
            }
            None => HostMemory::zeros(bytes),
        }
    }

    /// Zeros; large memory gets its pages when they are first touched.
    ///
    /// # Errors
    ///
    /// As [`uninitialized`](Self::uninitialized).
    pub(crate) fn zeros(bytes: usize) -> Result<HostMemory> {
        check_variable()?;
        let none = || Error::host_memory(bytes, "allocating a tensor");
        let class = class_of(bytes);
        let layout = alloc::Layout::from_size_align(class.unwrap_or(bytes), ALIGNMENT).map_err(|_| none())?;
        if bytes == 0 {
            return Ok(HostMemory::owned(layout_start(), bytes, layout, HostRelease::Global));
        }
        let memory = match host_memory::allocate_zeroed(layout)? {
            Some(memory) => memory,
            None => {
                cached_blocks::release();
                host_memory::allocate_zeroed(layout)?.ok_or_else(none)?
            }
        };
        // Pages of the caller's memory are the caller's to advise.
        if bytes >= LARGE && !host_memory::is_custom() {
            prefer_large_pages(memory.start.as_ptr(), bytes);
        }
        let release = if class.is_some() { HostRelease::Kept } else { HostRelease::Allocator };
        Ok(HostMemory::aligned(memory, bytes, layout, release))
    }

    /// The vector's memory.
    pub(crate) fn of_vec<T: Element>(vector: Vec<T>) -> HostMemory {
        let mut vector = ManuallyDrop::new(vector);
        let bytes = vector.len() * size_of::<T>();
        // A vector's capacity always has a layout; one that it was not allocated with would be a defect of std.
        match alloc::Layout::array::<T>(vector.capacity()) {
            Ok(layout) => {
                // SAFETY: a vector's pointer is never null.
                let start = unsafe { NonNull::new_unchecked(vector.as_mut_ptr().cast()) };
                HostMemory::owned(start, bytes, layout, HostRelease::Global)
            }
            Err(_) => HostMemory::owned(layout_start(), 0, alloc::Layout::new::<()>(), HostRelease::Global),
        }
    }

    /// The memory of a pinned buffer, which is freed as the buffer's.
    pub(super) fn of_pinned<T: Element>(mut buffer: PinnedBuffer<T>) -> HostMemory {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut buffer);
        let (address, length) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the bytes are the buffer's, which nobody else has and which stays where it is until it is dropped.
        unsafe { HostMemory::foreign(address, length, false, true, Box::new(buffer)) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are allocated and written, and nobody writes them while this is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

/// Returns the size class of memory that is kept when its tensor is freed. The caller's allocator gets all of its memory back.
fn class_of(bytes: usize) -> Option<usize> {
    if host_memory::is_custom() { None } else { cached_blocks::class_of(bytes) }
}

/// An address for no bytes.
fn layout_start() -> NonNull<u8> {
    NonNull::<u128>::dangling().cast()
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        host_memory::remove_live(self.layout.size());
        let memory = AlignedStart { start: self.start, offset: self.offset };
        match self.release {
            // SAFETY: allocated with this layout, which all blocks of the size have, from zeros.
            HostRelease::Kept => unsafe { cached_blocks::give(memory.block(), self.layout) },
            // SAFETY: allocated with this layout by the same allocator.
            HostRelease::Allocator => unsafe { host_memory::deallocate(memory, self.layout) },
            HostRelease::Global if self.layout.size() == 0 => {}
            // SAFETY: allocated with this layout by the vector that was taken over.
            HostRelease::Global => unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) },
        }
    }
}
