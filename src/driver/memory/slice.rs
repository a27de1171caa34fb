//! Borrowed slices of device buffers.

use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use bytemuck::Pod;

use super::allocation::Allocation;
use super::buffer::DeviceBuffer;
use super::usage::Access;
use crate::driver::device::{Device, DeviceState};
use crate::driver::graph::capture;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result};

/// The location of elements, for an operation on a buffer or a slice.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) allocation: &'a Arc<Allocation>,
    pub(crate) address: u64,
    pub(crate) length: usize,
    /// True if no other part of the buffer can be written meanwhile (nor used, if this one is exclusive).
    pub(crate) whole: bool,
}

impl View<'_> {
    /// Converts a view of elements of this type to bytes.
    pub(crate) fn bytes<T>(self) -> Self {
        View { length: self.length * size_of::<T>(), ..self }
    }

    /// Makes the stream wait for the memory's writers, and registers it as a reader.
    #[inline]
    pub(crate) fn enter_read(&self, stream: &Arc<StreamState>) -> Result<()> {
        stream.enter(self.allocation, self.allocation.read_access(self.whole))
    }

    /// Makes the stream wait for the memory's other users, and registers it as a writer.
    #[inline]
    pub(crate) fn enter_write(&self, stream: &Arc<StreamState>) -> Result<()> {
        stream.enter(self.allocation, self.allocation.write_access(self.whole))
    }

    /// Registers the stream as a user of both sides of a copy.
    #[inline]
    pub(crate) fn enter_copy(&self, to: &View<'_>, stream: &Arc<StreamState>) -> Result<()> {
        if capture::any() {
            capture::join_for(stream, [(self.allocation, Access::Read), (to.allocation, Access::Write)])?;
        }
        self.enter_read(stream)?;
        to.enter_write(stream)
    }

    /// Fails if this use of the memory belongs to a capture, for an operation that cannot be captured.
    pub(crate) fn refuse_capture(
        &self,
        operation: &'static str,
        stream: &StreamState,
        writes: bool,
    ) -> Result<()> {
        capture::refuse(operation, stream, Some((self.allocation, Access::of(writes))))
    }

    pub(crate) fn device(&self) -> &'static DeviceState {
        self.allocation.device
    }
}

mod sealed {
    use super::View;

    /// Restricts buffers to the types of this module.
    pub trait HasView {
        /// The location of the elements.
        #[doc(hidden)]
        fn view(&self) -> View<'_>;
    }
}
pub(crate) use sealed::HasView;

/// Readable device memory: [`DeviceBuffer`], [`DeviceSlice`] and [`DeviceSliceMut`].
pub trait DeviceRead<T>: HasView {}

/// Device memory that is writable through `&mut`: [`DeviceBuffer`] and [`DeviceSliceMut`].
pub trait DeviceWrite<T>: DeviceRead<T> {}

/// A shared slice of a [`DeviceBuffer`].
#[derive(Clone, Copy)]
pub struct DeviceSlice<'a, T> {
    pub(crate) allocation: &'a Arc<Allocation>,
    /// Launches pass a pointer to this field.
    pub(crate) address: u64,
    length: usize,
    /// As [`View::whole`].
    pub(crate) whole: bool,
    element: PhantomData<&'a [T]>,
}

/// An exclusive slice of a [`DeviceBuffer`].
pub struct DeviceSliceMut<'a, T> {
    pub(crate) allocation: &'a Arc<Allocation>,
    /// Launches pass a pointer to this field.
    pub(crate) address: u64,
    length: usize,
    /// As [`View::whole`].
    pub(crate) whole: bool,
    element: PhantomData<&'a mut [T]>,
}

impl<T> HasView for DeviceBuffer<T> {
    fn view(&self) -> View<'_> {
        View { allocation: &self.allocation, address: self.address, length: self.len(), whole: true }
    }
}

impl<T> HasView for DeviceSlice<'_, T> {
    fn view(&self) -> View<'_> {
        View { allocation: self.allocation, address: self.address, length: self.length, whole: self.whole }
    }
}

impl<T> HasView for DeviceSliceMut<'_, T> {
    fn view(&self) -> View<'_> {
        View { allocation: self.allocation, address: self.address, length: self.length, whole: self.whole }
    }
}

impl<T: Pod> DeviceRead<T> for DeviceBuffer<T> {}
impl<T: Pod> DeviceRead<T> for DeviceSlice<'_, T> {}
impl<T: Pod> DeviceRead<T> for DeviceSliceMut<'_, T> {}
impl<T: Pod> DeviceWrite<T> for DeviceBuffer<T> {}
impl<T: Pod> DeviceWrite<T> for DeviceSliceMut<'_, T> {}

/// Resolves a range over `length` elements.
pub(crate) fn range_of(range: impl RangeBounds<usize>, length: usize) -> Result<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&start) => start.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(length),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= length => Ok(start..end),
        _ => Err(Error::OutOfRange {
            start: start.unwrap_or(usize::MAX),
            end: end.unwrap_or(usize::MAX),
            length,
        }),
    }
}

/// Returns the number of elements of `U` in `length` elements of `T` at `address`.
fn reinterpreted<T, U>(address: u64, length: usize) -> Result<usize> {
    let bytes = length * size_of::<T>();
    if size_of::<U>() == 0
        || !bytes.is_multiple_of(size_of::<U>())
        || !address.is_multiple_of(align_of::<U>() as u64)
    {
        return Err(Error::invalid(
            "reinterpret",
            format!("{bytes} bytes at {address:#x}"),
            format!(
                "a multiple of {} bytes, aligned to {}, for {}",
                size_of::<U>(),
                align_of::<U>(),
                std::any::type_name::<U>()
            ),
        ));
    }
    Ok(bytes / size_of::<U>())
}

impl<'a, T: Pod> DeviceSlice<'a, T> {
    pub(crate) fn new(view: View<'a>) -> DeviceSlice<'a, T> {
        DeviceSlice {
            allocation: view.allocation,
            address: view.address,
            length: view.length,
            whole: view.whole,
            element: PhantomData,
        }
    }

    fn part(&self, range: Range<usize>) -> DeviceSlice<'a, T> {
        DeviceSlice {
            allocation: self.allocation,
            address: self.address + (range.start * size_of::<T>()) as u64,
            length: range.len(),
            whole: self.whole,
            element: PhantomData,
        }
    }

    /// Returns a part of this slice.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'a, T>> {
        Ok(self.part(range_of(range, self.length)?))
    }

    /// Splits the slice into the first `middle` elements and the rest.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn split_at(&self, middle: usize) -> Result<(DeviceSlice<'a, T>, DeviceSlice<'a, T>)> {
        let first = range_of(..middle, self.length)?;
        Ok((self.part(first), self.part(middle..self.length)))
    }

    /// Returns the same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if size or alignment does not fit.
    pub fn reinterpret<U: Pod>(&self) -> Result<DeviceSlice<'a, U>> {
        let length = reinterpreted::<T, U>(self.address, self.length)?;
        Ok(DeviceSlice {
            allocation: self.allocation,
            address: self.address,
            length,
            whole: self.whole,
            element: PhantomData,
        })
    }
}

impl<'a, T: Pod> DeviceSliceMut<'a, T> {
    pub(crate) fn new(view: View<'a>) -> DeviceSliceMut<'a, T> {
        DeviceSliceMut {
            allocation: view.allocation,
            address: view.address,
            length: view.length,
            whole: view.whole,
            element: PhantomData,
        }
    }

    fn part(&self, range: Range<usize>) -> DeviceSliceMut<'a, T> {
        DeviceSliceMut {
            allocation: self.allocation,
            address: self.address + (range.start * size_of::<T>()) as u64,
            length: range.len(),
            whole: self.whole,
            element: PhantomData,
        }
    }

    /// Borrows the same elements for a shorter time, as reborrowing a `&mut [T]` does.
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        self.part(0..self.length)
    }

    /// Returns a shared view of a part.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        DeviceSlice::new(self.view()).slice(range)
    }

    /// Returns an exclusive part, which borrows this slice.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        Ok(self.part(range_of(range, self.length)?))
    }

    /// Splits the slice into two exclusive ones: the first `middle` elements and the rest.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`]. The slice is then lost, so check first or split a [`reborrow`](Self::reborrow).
    pub fn split_at_mut(mut self, middle: usize) -> Result<(DeviceSliceMut<'a, T>, DeviceSliceMut<'a, T>)> {
        let first = range_of(..middle, self.length)?;
        // From here on another part can be used at the same time.
        self.whole = false;
        Ok((self.part(first), self.part(middle..self.length)))
    }

    /// Returns the same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if size or alignment does not fit.
    pub fn reinterpret<U: Pod>(self) -> Result<DeviceSliceMut<'a, U>> {
        let length = reinterpreted::<T, U>(self.address, self.length)?;
        Ok(DeviceSliceMut {
            allocation: self.allocation,
            address: self.address,
            length,
            whole: self.whole,
            element: PhantomData,
        })
    }
}

impl<'a, T: Pod> From<&'a DeviceBuffer<T>> for DeviceSlice<'a, T> {
    #[inline]
    fn from(memory: &'a DeviceBuffer<T>) -> DeviceSlice<'a, T> {
        DeviceSlice::new(memory.view())
    }
}

impl<'a, T: Pod> From<&'a DeviceSlice<'_, T>> for DeviceSlice<'a, T> {
    #[inline]
    fn from(memory: &'a DeviceSlice<'_, T>) -> DeviceSlice<'a, T> {
        *memory
    }
}

impl<'a, T: Pod> From<&'a DeviceSliceMut<'_, T>> for DeviceSlice<'a, T> {
    #[inline]
    fn from(memory: &'a DeviceSliceMut<'_, T>) -> DeviceSlice<'a, T> {
        DeviceSlice::new(memory.view())
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuffer<T>> for DeviceSliceMut<'a, T> {
    #[inline]
    fn from(memory: &'a mut DeviceBuffer<T>) -> DeviceSliceMut<'a, T> {
        let memory: &'a DeviceBuffer<T> = memory;
        DeviceSliceMut::new(memory.view())
    }
}

impl<'a, T: Pod> From<&'a mut DeviceSliceMut<'_, T>> for DeviceSliceMut<'a, T> {
    #[inline]
    fn from(memory: &'a mut DeviceSliceMut<'_, T>) -> DeviceSliceMut<'a, T> {
        memory.reborrow()
    }
}

macro_rules! common {
    ($type:ident) => {
        impl<T> $type<'_, T> {
            /// The number of elements.
            pub fn len(&self) -> usize {
                self.length
            }

            /// Returns whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.length == 0
            }

            /// The device address of the first element.
            pub fn address(&self) -> u64 {
                self.address
            }

            /// The device that holds the elements.
            pub fn device(&self) -> Device {
                Device(self.allocation.device)
            }
        }

        impl<T> std::fmt::Debug for $type<'_, T> {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let (name, element) = (stringify!($type), std::any::type_name::<T>());
                write!(formatter, "{name}<{element}>({} at {:#x})", self.length, self.address)
            }
        }
    };
}

common!(DeviceSlice);
common!(DeviceSliceMut);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_held_against_the_length() {
        assert_eq!(range_of(.., 5).unwrap(), 0..5);
        assert_eq!(range_of(1..=2, 5).unwrap(), 1..3);
        assert_eq!(range_of(5.., 5).unwrap(), 5..5);
        assert!(matches!(range_of(2..6, 5), Err(Error::OutOfRange { start: 2, end: 6, length: 5 })));
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = range_of(3..2, 5);
        assert!(backwards.is_err());
        assert!(range_of(0..=usize::MAX, 5).is_err());
    }

    #[test]
    fn reinterpreting_checks_size_and_alignment() {
        assert_eq!(reinterpreted::<f32, u8>(0x1000, 3).unwrap(), 12);
        assert_eq!(reinterpreted::<f32, f64>(0x1000, 4).unwrap(), 2);
        assert!(reinterpreted::<f32, f64>(0x1000, 3).is_err());
        assert!(reinterpreted::<f32, f64>(0x1004, 4).is_err());
    }
}
