//! Two-dimensional copies, between device memory and device or host memory.

use bytemuck::Pod;

use super::copy_shape::{CopyShape, CopySide, set_sides};
use super::slice::{DeviceRead, DeviceWrite};
use crate::driver::context::stream_call;
use crate::driver::stream::{Stream, StreamState};
use crate::driver::stream_work::StreamWork;
use crate::error::{Error, Result};
use crate::sys::driver::{CUDA_MEMCPY2D_v2, CUmemorytype};

/// A two-dimensional copy: `height` rows of `width` elements, with a pitch for each side. All values are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy2d {
    /// Elements per row to copy.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The distance from the start of one source row to the next.
    pub source_pitch: usize,
    /// The distance from the start of one destination row to the next.
    pub destination_pitch: usize,
}

impl Copy2d {
    /// Checks one side, which has `length` elements.
    fn check_side(&self, operation: &'static str, pitch: usize, length: usize) -> Result<()> {
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

    /// The pitch in bytes; 0 for a single row. Otherwise the pitch lies inside the buffer, so the product fits.
    fn pitch_bytes(&self, pitch: usize, element: usize) -> usize {
        if self.height == 1 { self.width * element } else { pitch * element }
    }
}

impl CopyShape for Copy2d {
    const OPERATIONS: [&'static str; 3] = ["copy_2d", "copy_2d_from_host", "copy_2d_to_host"];

    fn check(&self, source: usize, destination: usize) -> Result<()> {
        self.check_side("the source of a 2-D copy", self.source_pitch, source)?;
        self.check_side("the destination of a 2-D copy", self.destination_pitch, destination)
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    unsafe fn issue(
        &self,
        stream: &StreamState,
        source: CopySide,
        destination: CopySide,
        element: usize,
    ) -> Result<()> {
        let mut request = CUDA_MEMCPY2D_v2::default();
        set_sides!(request, source, destination);
        request.srcPitch = self.pitch_bytes(self.source_pitch, element);
        request.dstPitch = self.pitch_bytes(self.destination_pitch, element);
        request.WidthInBytes = self.width * element;
        request.Height = self.height;
        // SAFETY: the caller vouches for both sides.
        let call = || unsafe { stream_call!(stream, cuMemcpy2DAsync(&request, stream.raw.0)) };
        let bytes = || request.WidthInBytes * self.height;
        stream.submit_work(|| StreamWork::copy("copy in two dimensions", bytes()), call).map(drop)
    }
}

impl Stream {
    /// Copies rows of device elements on this stream's device.
    ///
    /// # Errors
    ///
    /// The shape exceeds a side, a side is on another device, or the driver's errors.
    pub fn copy_2d<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut impl DeviceWrite<T>,
        shape: Copy2d,
    ) -> Result<()> {
        self.copy_shape(source, destination, shape)
    }

    /// Copies rows of host elements to the device. Synchronous.
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
        self.copy_shape_from_host(source, destination, shape)
    }

    /// Copies rows of device elements to the host. Synchronous.
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
        self.copy_shape_to_host(source, destination, shape)
    }
}
