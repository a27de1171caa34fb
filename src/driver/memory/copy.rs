//! Copies: host to device, device to host, device to device and between devices, in one and two dimensions.
//!
//! Copies from and to plain host slices are synchronous by contract: when they return, the driver is done with the
//! slice; large ones go by way of [`staging`](super::staging). The asynchronous ones take an owned
//! [`PinnedBuffer`](super::PinnedBuffer), see [`transfer`](super::transfer).

use bytemuck::Pod;

use super::slice::{DeviceRead, DeviceWrite, View};
use super::staging::room_for;
use crate::driver::context::stream_call;
use crate::driver::stream::{Stream, StreamState};
use crate::error::{Error, Result};
use crate::sys::driver::{CUDA_MEMCPY2D_v2, CUmemorytype};

/// A two-dimensional copy: `height` rows of `width` elements, each row a pitch behind the one before. All in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy2d {
    /// Elements of a row that are copied.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// From the start of one row of the source to the next.
    pub source_pitch: usize,
    /// From the start of one row of the destination to the next.
    pub destination_pitch: usize,
}

impl Copy2d {
    /// Checks one side; `length` is what it has.
    fn check(&self, operation: &'static str, pitch: usize, length: usize) -> Result<()> {
        if pitch < self.width {
            return Err(Error::invalid(
                operation,
                format!("rows of {} elements {pitch} apart", self.width),
                "a pitch of at least the width",
            ));
        }
        let needed = match self.height {
            0 => Some(0),
            rows => (rows - 1).checked_mul(pitch).and_then(|start| start.checked_add(self.width)),
        };
        match needed {
            Some(needed) if needed <= length => Ok(()),
            _ => {
                Err(Error::LengthMismatch { operation, wanted: needed.unwrap_or(usize::MAX), found: length })
            }
        }
    }

    fn is_empty<T>(&self) -> bool {
        self.width == 0 || self.height == 0 || size_of::<T>() == 0
    }

    /// A pitch in bytes. One row has none; with more, the pitch is inside the buffer, so the product fits.
    fn pitch_bytes(&self, pitch: usize, element: usize) -> usize {
        if self.height == 1 { self.width * element } else { pitch * element }
    }
}

/// One side of a copy in two or three dimensions.
pub(super) enum Side {
    Host(*mut u8),
    Device(u64),
}

pub(super) fn same_length(operation: &'static str, wanted: usize, found: usize) -> Result<()> {
    if wanted == found { Ok(()) } else { Err(Error::LengthMismatch { operation, wanted, found }) }
}

impl StreamState {
    /// Waits until the driver is done with host memory that a copy of this stream was given.
    ///
    /// Where the stream's own wait fails without the context being lost, the whole device is waited for: the caller gets
    /// its memory back in any case.
    pub(crate) fn drain(&self) -> Result<()> {
        let result = self.synchronize();
        if result.is_err() && !self.device.is_lost() {
            let _ = self.device.wait_until_idle();
        }
        result
    }

    /// Fails where a copy on this stream could not reach the memory: it belongs to another device than the stream.
    pub(super) fn reaches(&self, operation: &'static str, view: &View<'_>) -> Result<()> {
        if std::ptr::eq(self.device, view.device()) {
            return Ok(());
        }
        // One of the two may be from before a reset.
        self.device.check_alive()?;
        view.device().check_alive()?;
        Err(Error::DeviceMismatch {
            operation,
            left: format!("a stream of device {}", self.device.ordinal),
            right: format!("memory of device {}", view.device().ordinal),
        })
    }
}

impl Stream {
    /// Issues a copy of host memory to device memory; both hold `bytes` bytes.
    ///
    /// # Safety
    ///
    /// `source` stays valid and unwritten until the stream has done the copy.
    pub(crate) unsafe fn issue_upload(
        &self,
        source: *const u8,
        destination: View<'_>,
        bytes: usize,
    ) -> Result<u64> {
        let stream = self.state();
        stream.reaches("an upload", &destination)?;
        destination.enter_write(stream)?;
        // SAFETY: the caller vouches for the host side.
        unsafe { self.submit_upload(source, destination, bytes) }
    }

    /// As [`issue_upload`](Self::issue_upload), where the stream has entered the destination for a write.
    ///
    /// # Safety
    ///
    /// As there.
    pub(super) unsafe fn submit_upload(
        &self,
        source: *const u8,
        destination: View<'_>,
        bytes: usize,
    ) -> Result<u64> {
        let stream = self.state();
        // SAFETY: the caller vouches for the host side; the device side is inside a live allocation.
        stream.submit_placed(|| unsafe {
            stream_call!(stream, cuMemcpyHtoDAsync(destination.address, source.cast(), bytes, stream.raw.0))
        })
    }

    /// Issues a copy of device memory to host memory; both hold `bytes` bytes.
    ///
    /// # Safety
    ///
    /// `destination` stays valid and untouched until the stream has done the copy.
    pub(crate) unsafe fn issue_download(
        &self,
        source: View<'_>,
        destination: *mut u8,
        bytes: usize,
    ) -> Result<u64> {
        let stream = self.state();
        stream.reaches("a download", &source)?;
        source.enter_read(stream)?;
        // SAFETY: the caller vouches for the host side.
        unsafe { self.submit_download(source, destination, bytes) }
    }

    /// As [`issue_download`](Self::issue_download), where the stream has entered the source for a read.
    ///
    /// # Safety
    ///
    /// As there.
    pub(super) unsafe fn submit_download(
        &self,
        source: View<'_>,
        destination: *mut u8,
        bytes: usize,
    ) -> Result<u64> {
        let stream = self.state();
        // SAFETY: the caller vouches for the host side; the device side is inside a live allocation.
        stream.submit_placed(|| unsafe {
            stream_call!(stream, cuMemcpyDtoHAsync(destination.cast(), source.address, bytes, stream.raw.0))
        })
    }

    /// Copies host elements to the device; done when this returns.
    ///
    /// # Errors
    ///
    /// Lengths differ, the memory is another device's, or the driver's errors.
    pub fn copy_from_host<T: Pod>(&self, source: &[T], destination: &mut impl DeviceWrite<T>) -> Result<()> {
        let view = destination.view();
        same_length("copy_from_host", view.length, source.len())?;
        if size_of_val(source) == 0 {
            return Ok(());
        }
        // SAFETY: `source` is borrowed until this returns.
        unsafe { self.upload_now(source.as_ptr().cast(), view, size_of_val(source)) }
    }

    /// Copies device elements to the host, after whatever wrote them; done when this returns.
    ///
    /// # Errors
    ///
    /// Lengths differ, the memory is another device's, a kernel before it faulted, or the driver's errors.
    pub fn copy_to_host<T: Pod>(&self, source: &impl DeviceRead<T>, destination: &mut [T]) -> Result<()> {
        let view = source.view();
        same_length("copy_to_host", view.length, destination.len())?;
        if size_of_val(destination) == 0 {
            return Ok(());
        }
        // SAFETY: `destination` is borrowed until this returns; any bytes are a value of `T`.
        unsafe { self.download_now(view, destination.as_mut_ptr().cast(), size_of_val(destination)) }
    }

    /// The elements as a vector on the host, after whatever wrote them.
    ///
    /// # Errors
    ///
    /// As [`copy_to_host`](Self::copy_to_host), or the host has no memory for the vector.
    pub fn download<T: Pod>(&self, source: &impl DeviceRead<T>) -> Result<Vec<T>> {
        let view = source.view();
        let mut elements = room_for::<T>(view.length)?;
        let bytes = view.length * size_of::<T>();
        if bytes > 0 {
            // SAFETY: the vector's own room, of which nothing was handed out yet.
            unsafe { self.download_now(view, elements.as_mut_ptr().cast(), bytes)? };
        }
        // SAFETY: there is room for them, every byte was written, and any bytes are a value of `T`.
        unsafe { elements.set_len(view.length) };
        Ok(elements)
    }

    /// Copies device elements, within this stream's device or between it and another.
    ///
    /// # Errors
    ///
    /// Lengths differ, neither side is on the stream's device, or the driver's errors.
    pub fn copy<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut impl DeviceWrite<T>,
    ) -> Result<()> {
        let stream = self.state();
        let (from, to) = (source.view(), destination.view());
        same_length("copy", to.length, from.length)?;
        let bytes = from.length * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        stream.reaches("a copy", &from).or_else(|_| stream.reaches("a copy", &to))?;
        from.enter_read(stream)?;
        to.enter_write(stream)?;
        // SAFETY: both sides are inside live allocations of these devices.
        stream.submit(|| unsafe {
            if std::ptr::eq(from.device(), to.device()) {
                stream_call!(stream, cuMemcpyDtoDAsync(to.address, from.address, bytes, stream.raw.0))
            } else {
                let (there, here) = (to.device().context.0, from.device().context.0);
                stream_call!(
                    stream,
                    cuMemcpyPeerAsync(to.address, there, from.address, here, bytes, stream.raw.0)
                )
            }
        })
    }

    /// Copies rows of device elements on this stream's device.
    ///
    /// # Errors
    ///
    /// The shape leaves a side, a side is on another device, or the driver's errors.
    pub fn copy_2d<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut impl DeviceWrite<T>,
        shape: Copy2d,
    ) -> Result<()> {
        let (from, to) = (source.view(), destination.view());
        self.check_2d(&shape, from.length, to.length)?;
        if shape.is_empty::<T>() {
            return Ok(());
        }
        let stream = self.state();
        stream.reaches("copy_2d", &from)?;
        stream.reaches("copy_2d", &to)?;
        from.enter_read(stream)?;
        to.enter_write(stream)?;
        // SAFETY: both sides are inside live allocations of this device.
        unsafe { self.issue_2d(Side::Device(from.address), Side::Device(to.address), shape, size_of::<T>()) }
    }

    /// Copies rows of host elements to the device; done when this returns.
    ///
    /// # Errors
    ///
    /// As [`copy_2d`](Self::copy_2d).
    pub fn copy_2d_from_host<T: Pod>(
        &self,
        source: &[T],
        destination: &mut impl DeviceWrite<T>,
        shape: Copy2d,
    ) -> Result<()> {
        let to = destination.view();
        self.check_2d(&shape, source.len(), to.length)?;
        if shape.is_empty::<T>() {
            return Ok(());
        }
        let stream = self.state();
        to.refuse_capture("copy_2d_from_host", stream, true)?;
        stream.reaches("copy_2d_from_host", &to)?;
        to.enter_write(stream)?;
        let host = Side::Host(source.as_ptr().cast_mut().cast());
        // SAFETY: the host side is borrowed until the drain below and only read; the other is a live allocation.
        let issued = unsafe { self.issue_2d(host, Side::Device(to.address), shape, size_of::<T>()) };
        issued.and(stream.drain())
    }

    /// Copies rows of device elements to the host; done when this returns.
    ///
    /// # Errors
    ///
    /// As [`copy_2d`](Self::copy_2d).
    pub fn copy_2d_to_host<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut [T],
        shape: Copy2d,
    ) -> Result<()> {
        let from = source.view();
        self.check_2d(&shape, from.length, destination.len())?;
        if shape.is_empty::<T>() {
            return Ok(());
        }
        let stream = self.state();
        from.refuse_capture("copy_2d_to_host", stream, false)?;
        stream.reaches("copy_2d_to_host", &from)?;
        from.enter_read(stream)?;
        let host = Side::Host(destination.as_mut_ptr().cast());
        // SAFETY: the host side is borrowed until the drain below; the other is a live allocation.
        let issued = unsafe { self.issue_2d(Side::Device(from.address), host, shape, size_of::<T>()) };
        issued.and(stream.drain())
    }

    fn check_2d(&self, shape: &Copy2d, source: usize, destination: usize) -> Result<()> {
        shape.check("the source of a 2-D copy", shape.source_pitch, source)?;
        shape.check("the destination of a 2-D copy", shape.destination_pitch, destination)
    }

    /// # Safety
    ///
    /// Both sides hold the shape; a host side stays valid until the stream has done the copy.
    unsafe fn issue_2d(&self, source: Side, destination: Side, shape: Copy2d, element: usize) -> Result<()> {
        let mut request = CUDA_MEMCPY2D_v2::default();
        match source {
            Side::Host(pointer) => {
                request.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                request.srcHost = pointer.cast();
            }
            Side::Device(address) => {
                request.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                request.srcDevice = address;
            }
        }
        match destination {
            Side::Host(pointer) => {
                request.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                request.dstHost = pointer.cast();
            }
            Side::Device(address) => {
                request.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                request.dstDevice = address;
            }
        }
        request.srcPitch = shape.pitch_bytes(shape.source_pitch, element);
        request.dstPitch = shape.pitch_bytes(shape.destination_pitch, element);
        request.WidthInBytes = shape.width * element;
        request.Height = shape.height;
        let stream = self.state();
        // SAFETY: the caller vouches for both sides.
        stream.submit(|| unsafe { stream_call!(stream, cuMemcpy2DAsync(&request, stream.raw.0)) })
    }
}
