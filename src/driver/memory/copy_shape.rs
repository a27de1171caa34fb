//! The common part of two- and three-dimensional copies: the kinds of sides, and when each may be accessed.
//!
//! A shape checks each side and issues the driver call. This module does the rest.

use bytemuck::Pod;

use super::slice::{DeviceRead, DeviceWrite};
use crate::driver::stream::{Stream, StreamState};
use crate::error::Result;

/// One side of a copy.
pub(super) enum CopySide {
    Host(*mut u8),
    Device(u64),
}

/// Sets both sides of a driver request, whose fields have the same names in two and three dimensions.
macro_rules! set_sides {
    ($request:ident, $source:expr, $destination:expr) => {
        match $source {
            CopySide::Host(pointer) => {
                $request.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                $request.srcHost = pointer.cast();
            }
            CopySide::Device(address) => {
                $request.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                $request.srcDevice = address;
            }
        }
        match $destination {
            CopySide::Host(pointer) => {
                $request.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                $request.dstHost = pointer.cast();
            }
            CopySide::Device(address) => {
                $request.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                $request.dstDevice = address;
            }
        }
    };
}
pub(super) use set_sides;

/// The shape of a copy: the elements of two sides that it covers.
pub(super) trait CopyShape: Copy {
    /// The names of the copy in errors: within the device, from the host, and to the host.
    const OPERATIONS: [&'static str; 3];

    /// Fails if a side with this many elements does not contain the shape.
    fn check(&self, source: usize, destination: usize) -> Result<()>;

    fn is_empty(&self) -> bool;

    /// # Safety
    ///
    /// Both sides contain the shape, in elements of `element` bytes. A host side stays valid until the stream has
    /// finished the copy.
    unsafe fn issue(
        &self,
        stream: &StreamState,
        source: CopySide,
        destination: CopySide,
        element: usize,
    ) -> Result<()>;
}

impl Stream {
    pub(super) fn copy_shape<T: Pod, S: CopyShape>(
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
        unsafe {
            shape.issue(stream, CopySide::Device(from.address), CopySide::Device(to.address), size_of::<T>())
        }
    }

    pub(super) fn copy_shape_from_host<T: Pod, S: CopyShape>(
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
        let host = CopySide::Host(source.as_ptr().cast_mut().cast());
        // SAFETY: the host side is borrowed until the drain below and only read; the other is a live allocation.
        let issued = unsafe { shape.issue(stream, host, CopySide::Device(to.address), size_of::<T>()) };
        issued.and(stream.drain())
    }

    pub(super) fn copy_shape_to_host<T: Pod, S: CopyShape>(
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
        let host = CopySide::Host(destination.as_mut_ptr().cast());
        // SAFETY: the host side is borrowed until the drain below; the other is a live allocation.
        let issued = unsafe { shape.issue(stream, CopySide::Device(from.address), host, size_of::<T>()) };
        issued.and(stream.drain())
    }
}
