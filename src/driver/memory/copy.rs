//! Copies: host to device, device to host, device to device and between devices.
//!
//! Copies from and to plain host slices are synchronous: when they return, the driver no longer uses the slice. Large
//! ones go through [`staging`](super::staging). Asynchronous copies take an owned
//! [`PinnedBuffer`](super::PinnedBuffer); see [`transfer`](super::transfer).

use bytemuck::Pod;

use super::slice::{DeviceRead, DeviceWrite, View};
use super::staging::vec_with_capacity;
use crate::driver::context::stream_call;
use crate::driver::stream::{Stream, StreamState};
use crate::driver::stream_work::StreamWork;
use crate::error::{Error, Result};

pub(super) fn same_length(operation: &'static str, wanted: usize, found: usize) -> Result<()> {
    if wanted == found { Ok(()) } else { Err(Error::LengthMismatch { operation, wanted, found }) }
}

/// The name of a copy between two ranges of device memory in a trace.
pub(super) fn within_or_between(from: &View<'_>, to: &View<'_>) -> &'static str {
    if std::ptr::eq(from.device(), to.device()) { "copy device to device" } else { "copy between devices" }
}

impl StreamState {
    /// Waits until the driver no longer uses host memory of this stream's copies.
    ///
    /// If the stream's own wait fails without loss of the context, this waits for the whole device: the caller gets its
    /// memory back in any case.
    pub(crate) fn drain(&self) -> Result<()> {
        let result = self.synchronize();
        if result.is_err() && !self.device.is_lost() {
            let _ = self.device.wait_until_idle();
        }
        result
    }

    /// Fails if the memory belongs to another device than the stream.
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

impl StreamState {
    /// Calls the driver for a copy within a device or between two. Called inside an operation.
    ///
    /// # Safety
    ///
    /// Both views are of live memory of at least `bytes` bytes.
    pub(super) unsafe fn copy_bytes(&self, from: &View<'_>, to: &View<'_>, bytes: usize) -> Result<()> {
        // SAFETY: the caller vouches for both sides.
        unsafe {
            if std::ptr::eq(from.device(), to.device()) {
                stream_call!(self, cuMemcpyDtoDAsync(to.address, from.address, bytes, self.raw.0))
            } else {
                let (there, here) = (to.device().context.0, from.device().context.0);
                stream_call!(
                    self,
                    cuMemcpyPeerAsync(to.address, there, from.address, here, bytes, self.raw.0)
                )
            }
        }
    }
}

impl Stream {
    /// Issues a copy of host memory to device memory; both hold `bytes` bytes.
    ///
    /// # Safety
    ///
    /// `source` stays valid and unwritten until the stream has finished the copy.
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

    /// As [`issue_upload`](Self::issue_upload), for a destination that the stream has already registered for a write.
    ///
    /// # Safety
    ///
    /// As [`issue_upload`](Self::issue_upload).
    pub(super) unsafe fn submit_upload(
        &self,
        source: *const u8,
        destination: View<'_>,
        bytes: usize,
    ) -> Result<u64> {
        let stream = self.state();
        // SAFETY: the caller vouches for the host side; the device side is inside a live allocation.
        let call = || unsafe {
            stream_call!(stream, cuMemcpyHtoDAsync(destination.address, source.cast(), bytes, stream.raw.0))
        };
        stream.submit_work(|| StreamWork::copy("copy host to device", bytes), call)
    }

    /// Issues a copy of device memory to host memory; both hold `bytes` bytes.
    ///
    /// # Safety
    ///
    /// `destination` stays valid and untouched until the stream has finished the copy.
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

    /// As [`issue_download`](Self::issue_download), for a source that the stream has already registered for a read.
    ///
    /// # Safety
    ///
    /// As [`issue_download`](Self::issue_download).
    pub(super) unsafe fn submit_download(
        &self,
        source: View<'_>,
        destination: *mut u8,
        bytes: usize,
    ) -> Result<u64> {
        let stream = self.state();
        // SAFETY: the caller vouches for the host side; the device side is inside a live allocation.
        let call = || unsafe {
            stream_call!(stream, cuMemcpyDtoHAsync(destination.cast(), source.address, bytes, stream.raw.0))
        };
        stream.submit_work(|| StreamWork::copy("copy device to host", bytes), call)
    }

    /// Copies host elements to the device. Synchronous.
    ///
    /// # Errors
    ///
    /// The lengths differ, the memory belongs to another device, or the driver's errors.
    pub fn copy_from_host<T: Pod>(&self, source: &[T], destination: &mut impl DeviceWrite<T>) -> Result<()> {
        let view = destination.view();
        same_length("copy_from_host", view.length, source.len())?;
        if size_of_val(source) == 0 {
            return Ok(());
        }
        // SAFETY: `source` is borrowed until this returns.
        unsafe { self.upload_now(source.as_ptr().cast(), view, size_of_val(source)) }
    }

    /// Copies device elements to the host, after the operations that write them. Synchronous.
    ///
    /// # Errors
    ///
    /// The lengths differ, the memory belongs to another device, an earlier kernel faulted, a [device-side
    /// error](crate::driver::KernelError), or the driver's errors.
    pub fn copy_to_host<T: Pod>(&self, source: &impl DeviceRead<T>, destination: &mut [T]) -> Result<()> {
        let view = source.view();
        same_length("copy_to_host", view.length, destination.len())?;
        if size_of_val(destination) > 0 {
            // SAFETY: `destination` is borrowed until this returns; any bytes are a value of `T`.
            unsafe { self.download_now(view, destination.as_mut_ptr().cast(), size_of_val(destination))? };
        }
        view.device().take_report()
    }

    /// Returns the elements as a vector on the host, after the operations that write them.
    ///
    /// # Errors
    ///
    /// As [`copy_to_host`](Self::copy_to_host), or the host is out of memory.
    pub fn download<T: Pod>(&self, source: &impl DeviceRead<T>) -> Result<Vec<T>> {
        let view = source.view();
        let mut elements = vec_with_capacity::<T>(view.length)?;
        let bytes = view.length * size_of::<T>();
        if bytes > 0 {
            // SAFETY: the vector's own capacity, not handed out yet.
            unsafe { self.download_now(view, elements.as_mut_ptr().cast(), bytes)? };
        }
        view.device().take_report()?;
        // SAFETY: the capacity suffices, every byte was written, and any bytes are a value of `T`.
        unsafe { elements.set_len(view.length) };
        Ok(elements)
    }

    /// Copies device elements, within this stream's device or between it and another device.
    ///
    /// # Errors
    ///
    /// The lengths differ, neither side is on the stream's device, or the driver's errors.
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
        from.enter_copy(&to, stream)?;
        // SAFETY: both sides are inside live allocations of these devices.
        let call = || unsafe { stream.copy_bytes(&from, &to, bytes) };
        stream.submit_work(|| StreamWork::copy(within_or_between(&from, &to), bytes), call).map(drop)
    }
}
