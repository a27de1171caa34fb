//! What copies in two and three dimensions share: which sides there are, and when each may be touched.
//!
//! A shape says what it asks of each side and how the driver is called; the rest is the same for all.

use bytemuck::Pod;

use super::slice::{DeviceRead, DeviceWrite};
use crate::driver::stream::{Stream, StreamState};
use crate::error::Result;

/// One side of a copy.
pub(super) enum Side {
    Host(*mut u8),
    Device(u64),
}

/// Enters both sides into a request of the driver, whose fields have the same names in two and three dimensions.
macro_rules! set_sides {
    ($request:ident, $source:expr, $destination:expr) => {
        match $source {
            Side::Host(pointer) => {
                $request.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                $request.srcHost = pointer.cast();
            }
            Side::Device(address) => {
                $request.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                $request.srcDevice = address;
            }
        }
        match $destination {
            Side::Host(pointer) => {
                $request.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                $request.dstHost = pointer.cast();
            }
            Side::Device(address) => {
                $request.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                $request.dstDevice = address;
            }
        }
    };
}
pub(super) use set_sides;

/// Which elements of two sides a copy is of.
pub(super) trait Shape: Copy {
    /// What errors call the copy within the device, from the host and to the host.
    const OPERATIONS: [&'static str; 3];

    /// Fails where a side with so many elements does not hold the shape.
    fn check(&self, source: usize, destination: usize) -> Result<()>;

    fn is_empty(&self) -> bool;

    /// # Safety
    ///
    /// Both sides hold the shape, in elements of this many bytes; a host side stays valid until the stream has done the
    /// copy.
    unsafe fn issue(
        &self,
        stream: &StreamState,
        source: Side,
        destination: Side,
        element: usize,
    ) -> Result<()>;
}

impl Stream {
    pub(super) fn copy_shape<T: Pod, S: Shape>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut impl DeviceWrite<T>,
        shape: S,
    ) -> Result<()> {
        let [operation, ..] = S::OPERATIONS;
        let (from, to) = (source.view(), destination.view());
        shape.check(from.length, to.length)?;
        if shape.is_empty() || size_of::<T>() == 0 {
            return Ok(());
        }
        let stream = self.state();
        stream.reaches(operation, &from)?;
        stream.reaches(operation, &to)?;
        from.enter_copy(&to, stream)?;
        // SAFETY: both sides are inside live allocations of this device.
        unsafe { shape.issue(stream, Side::Device(from.address), Side::Device(to.address), size_of::<T>()) }
    }

    pub(super) fn copy_shape_from_host<T: Pod, S: Shape>(
        &self,
        source: &[T],
        destination: &mut impl DeviceWrite<T>,
        shape: S,
    ) -> Result<()> {
        let [_, operation, _] = S::OPERATIONS;
        let to = destination.view();
        shape.check(source.len(), to.length)?;
        if shape.is_empty() || size_of::<T>() == 0 {
            return Ok(());
        }
        let stream = self.state();
        to.refuse_capture(operation, stream, true)?;
        stream.reaches(operation, &to)?;
        to.enter_write(stream)?;
        let host = Side::Host(source.as_ptr().cast_mut().cast());
        // SAFETY: the host side is borrowed until the drain below and only read; the other is a live allocation.
        let issued = unsafe { shape.issue(stream, host, Side::Device(to.address), size_of::<T>()) };
        issued.and(stream.drain())
    }

    pub(super) fn copy_shape_to_host<T: Pod, S: Shape>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut [T],
        shape: S,
    ) -> Result<()> {
        let [.., operation] = S::OPERATIONS;
        let from = source.view();
        shape.check(from.length, destination.len())?;
        if shape.is_empty() || size_of::<T>() == 0 {
            return Ok(());
        }
        let stream = self.state();
        from.refuse_capture(operation, stream, false)?;
        stream.reaches(operation, &from)?;
        from.enter_read(stream)?;
        let host = Side::Host(destination.as_mut_ptr().cast());
        // SAFETY: the host side is borrowed until the drain below; the other is a live allocation.
        let issued = unsafe { shape.issue(stream, Side::Device(from.address), host, size_of::<T>()) };
        issued.and(stream.drain())
    }
}
