//! Device buffers.

use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use bytemuck::Pod;

use super::allocation::Allocation;
use super::pool::Block;
use super::slice::{DeviceSlice, DeviceSliceMut, HasView};
use crate::driver::device::Device;
use crate::driver::foreign::{self, Deleter};
use crate::driver::stream::Stream;
use crate::error::{Error, Result};

/// Elements of `T` in device memory.
///
/// A buffer may be used on any stream of any device that can reach it: each operation waits for the conflicting ones
/// before it. It may be dropped at any time, on any thread, while work runs: its memory is reused only after that work.
/// `T` is [`Pod`], so that every byte pattern that a kernel may write is a valid value; `bool` is stored as `u8`.
pub struct DeviceBuffer<T> {
    pub(crate) allocation: Arc<Allocation>,
    /// Launches pass a pointer to this field.
    pub(crate) address: u64,
    length: usize,
    element: PhantomData<T>,
}

impl Stream {
    /// Allocates a buffer of `length` elements with unspecified contents, such as those of a buffer dropped earlier.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], the driver's errors, or [`Error::ContextLost`].
    #[inline]
    pub fn uninitialized<T: Pod>(&self, length: usize) -> Result<DeviceBuffer<T>> {
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(|| too_long::<T>(length))?;
        let allocation = Allocation::new(self.state(), bytes)?;
        let address = allocation.address();
        Ok(DeviceBuffer { allocation, address, length, element: PhantomData })
    }

    /// Allocates a buffer of `length` elements whose bytes are all zero.
    ///
    /// # Errors
    ///
    /// As [`uninitialized`](Self::uninitialized).
    pub fn zeros<T: Pod>(&self, length: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = self.uninitialized(length)?;
        self.fill(&mut buffer, T::zeroed())?;
        Ok(buffer)
    }

    /// Allocates a buffer and copies the elements to it. Synchronous.
    ///
    /// # Errors
    ///
    /// As [`uninitialized`](Self::uninitialized).
    pub fn upload<T: Pod>(&self, elements: &[T]) -> Result<DeviceBuffer<T>> {
        let mut buffer = self.uninitialized(elements.len())?;
        self.copy_from_host(elements, &mut buffer)?;
        Ok(buffer)
    }
}

#[cold]
fn too_long<T>(length: usize) -> Error {
    let element = std::any::type_name::<T>();
    let found = format!("{length} elements of {element}");
    Error::invalid("allocating", found, "a size in bytes that fits usize")
}

impl<T> DeviceBuffer<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The device address of the first element; 0 for an empty buffer.
    ///
    /// This library does not order direct uses of the address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The device that holds the elements.
    #[inline]
    pub fn device(&self) -> Device {
        Device(self.allocation.device)
    }
}

impl<T: Pod> DeviceBuffer<T> {
    /// Returns a shared slice of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        DeviceSlice::new(self.view()).slice(range)
    }

    /// Returns an exclusive slice of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        let range = super::range_of(range, self.length)?;
        let mut view = self.view();
        view.address += (range.start * size_of::<T>()) as u64;
        view.length = range.len();
        Ok(DeviceSliceMut::new(view))
    }

    /// Splits the buffer into two shared slices: the first `middle` elements and the rest.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn split_at(&self, middle: usize) -> Result<(DeviceSlice<'_, T>, DeviceSlice<'_, T>)> {
        DeviceSlice::new(self.view()).split_at(middle)
    }

    /// Splits the buffer into two exclusive slices: the first `middle` elements and the rest.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn split_at_mut(&mut self, middle: usize) -> Result<(DeviceSliceMut<'_, T>, DeviceSliceMut<'_, T>)> {
        DeviceSliceMut::new(self.view()).split_at_mut(middle)
    }

    /// Returns the same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the length in bytes is not a multiple of the new size.
    pub fn reinterpret<U: Pod>(&self) -> Result<DeviceSlice<'_, U>> {
        DeviceSlice::<T>::new(self.view()).reinterpret()
    }

    /// Returns the same bytes, exclusively, as elements of another type.
    ///
    /// # Errors
    ///
    /// As [`reinterpret`](Self::reinterpret).
    pub fn reinterpret_mut<U: Pod>(&mut self) -> Result<DeviceSliceMut<'_, U>> {
        DeviceSliceMut::<T>::new(self.view()).reinterpret()
    }
}

impl<T> std::fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let element = std::any::type_name::<T>();
        write!(
            formatter,
            "DeviceBuffer<{element}>({} on device {})",
            self.length, self.allocation.device.ordinal
        )
    }
}

impl<T: Pod> DeviceBuffer<T> {
    /// Takes over memory of other code: `length` elements at a device address. `deleter` is called once, after the buffer
    /// was dropped and every use of it is done, on the thread that finds this out: one that drops a buffer of this kind, or
    /// that waits for a stream or a device. It is not called in a forked process.
    ///
    /// The contents are ordered on `stream`: other streams wait for its work before they use the buffer. Use a stream of
    /// [`Stream::from_raw`] for memory that other code has just written.
    ///
    /// # Errors
    ///
    /// A misaligned address, a size that overflows, memory that the driver does not know or that belongs to another
    /// device, or [`Error::ContextLost`]. The deleter is then dropped and not called.
    ///
    /// # Safety
    ///
    /// The memory is valid until the deleter is called. Other code uses it only in the order of `stream`, or not at all.
    pub unsafe fn from_raw(
        stream: &Stream,
        address: u64,
        length: usize,
        deleter: impl FnOnce() + Send + 'static,
    ) -> Result<DeviceBuffer<T>> {
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(|| too_long::<T>(length))?;
        foreign::check_memory(stream.state().device, address, bytes, align_of::<T>())?;
        let address = if bytes == 0 { 0 } else { address };
        let block = Block::foreign(address, bytes);
        let allocation = Allocation::foreign(stream.state(), block, Deleter::new(deleter));
        Ok(DeviceBuffer { allocation, address, length, element: PhantomData })
    }

    /// Converts the buffer to bytes of the same memory.
    pub(crate) fn into_bytes(self) -> DeviceBuffer<u8> {
        let DeviceBuffer { allocation, address, length, .. } = self;
        DeviceBuffer { allocation, address, length: length * size_of::<T>(), element: PhantomData }
    }
}

impl DeviceBuffer<u8> {
    /// Marks memory of other code as read-only, while only this buffer names it.
    pub(crate) fn set_read_only(&mut self) {
        if let Some(allocation) = Arc::get_mut(&mut self.allocation) {
            allocation.read_only = true;
        }
    }

    /// Returns whether this library may not write to the memory.
    pub(crate) fn is_read_only(&self) -> bool {
        self.allocation.read_only
    }

    /// Converts the buffer to elements of the same memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if size or alignment does not fit.
    pub(crate) fn into_elements<T: Pod>(self) -> Result<DeviceBuffer<T>> {
        let length = DeviceSlice::<u8>::new(self.view()).reinterpret::<T>()?.view().length;
        let DeviceBuffer { allocation, address, .. } = self;
        Ok(DeviceBuffer { allocation, address, length, element: PhantomData })
    }
}
