//! Three-dimensional copies, between device memory and device or host memory.
//!
//! Each side has two pitches: from one row to the next, and from one slice to the next. The driver takes the second as
//! a number of rows, and so does this module. Copy slices whose distance is not a whole number of rows one by one with
//! [`copy_2d`](Stream::copy_2d).

use bytemuck::Pod;

use super::copy_shape::{CopyShape, CopySide, set_sides};
use super::slice::{DeviceRead, DeviceWrite};
use crate::driver::context::stream_call;
use crate::driver::stream::{Stream, StreamState};
use crate::driver::stream_work::StreamWork;
use crate::error::{Error, Result};
use crate::sys::driver::{CUDA_MEMCPY3D_v2, CUmemorytype};

/// A three-dimensional copy: `depth` slices of `height` rows of `width` elements. Values are in elements, rows and
/// slices.
///
/// ```
/// use selvedge::driver::Copy3d;
///
/// // The box of 8 x 4 x 2 at the start of a volume of 32 x 16 x 10, to one that has just its size.
/// let shape = Copy3d { source_pitch: 32, source_rows: 16, ..Copy3d::packed(8, 4, 2) };
/// assert_eq!((shape.destination_pitch, shape.destination_rows), (8, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy3d {
    /// Elements per row to copy.
    pub width: usize,
    /// Rows per slice to copy.
    pub height: usize,
    /// Slices.
    pub depth: usize,
    /// Elements from the start of one row of the source to the next.
    pub source_pitch: usize,
    /// Rows from the start of one slice of the source to the next.
    pub source_rows: usize,
    /// Elements from the start of one row of the destination to the next.
    pub destination_pitch: usize,
    /// Rows from the start of one slice of the destination to the next.
    pub destination_rows: usize,
}

/// The pitches of one side, in elements and rows.
#[derive(Clone, Copy)]
struct Pitches {
    pitch: usize,
    rows: usize,
}

impl Copy3d {
    /// A copy between two sides that contain only these elements.
    pub fn packed(width: usize, height: usize, depth: usize) -> Copy3d {
        Copy3d {
            width,
            height,
            depth,
            source_pitch: width,
            source_rows: height,
            destination_pitch: width,
            destination_rows: height,
        }
    }

    fn source(&self) -> Pitches {
        Pitches { pitch: self.source_pitch, rows: self.source_rows }
    }

    fn destination(&self) -> Pitches {
        Pitches { pitch: self.destination_pitch, rows: self.destination_rows }
    }

    /// Returns the number of elements from the first to the last of one side; `None` if it overflows.
    fn span(&self, pitches: Pitches) -> Option<usize> {
        if self.height == 0 || self.depth == 0 {
            return Some(0);
        }
        let last_row = (self.depth - 1).checked_mul(pitches.rows)?.checked_add(self.height - 1)?;
        last_row.checked_mul(pitches.pitch)?.checked_add(self.width)
    }

    /// Checks one side, which has `length` elements.
    fn check_side(&self, operation: &'static str, pitches: Pitches, length: usize) -> Result<()> {
        if pitches.pitch < self.width || pitches.rows < self.height {
            return Err(Error::invalid(
                operation,
                format!(
                    "rows of {} elements {} apart, slices of {} rows {} apart",
                    self.width, pitches.pitch, self.height, pitches.rows
                ),
                "a pitch of at least the width, and slices at least their height apart",
            ));
        }
        match self.span(pitches) {
            Some(needed) if needed <= length => Ok(()),
            needed => {
                Err(Error::LengthMismatch { operation, wanted: needed.unwrap_or(usize::MAX), found: length })
            }
        }
    }

    /// The pitch in bytes and the rows per slice. Pitches without effect may have any value, so they become the
    /// smallest; the others stay inside the buffer, so the product fits.
    fn taken(&self, pitches: Pitches, element: usize) -> (usize, usize) {
        let rows = if self.depth == 1 { self.height } else { pitches.rows };
        let pitch = if self.depth == 1 && self.height == 1 { self.width } else { pitches.pitch };
        (pitch * element, rows)
    }
}

impl CopyShape for Copy3d {
    const OPERATIONS: [&'static str; 3] = ["copy_3d", "copy_3d_from_host", "copy_3d_to_host"];

    fn check(&self, source: usize, destination: usize) -> Result<()> {
        self.check_side("the source of a 3-D copy", self.source(), source)?;
        self.check_side("the destination of a 3-D copy", self.destination(), destination)
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    unsafe fn issue(
        &self,
        stream: &StreamState,
        source: CopySide,
        destination: CopySide,
        element: usize,
    ) -> Result<()> {
        let mut request = CUDA_MEMCPY3D_v2::default();
        set_sides!(request, source, destination);
        (request.srcPitch, request.srcHeight) = self.taken(self.source(), element);
        (request.dstPitch, request.dstHeight) = self.taken(self.destination(), element);
        request.WidthInBytes = self.width * element;
        request.Height = self.height;
        request.Depth = self.depth;
        // SAFETY: the caller vouches for both sides.
        let call = || unsafe { stream_call!(stream, cuMemcpy3DAsync(&request, stream.raw.0)) };
        let bytes = || request.WidthInBytes * self.height * self.depth;
        stream.submit_work(|| StreamWork::copy("copy in three dimensions", bytes()), call).map(drop)
    }
}

impl Stream {
    /// Copies a box of device elements on this stream's device.
    ///
    /// ```no_run
    /// # fn main() -> selvedge::Result<()> {
    /// # use selvedge::driver::{Copy3d, Device};
    /// # let stream = Device::new(0)?.stream()?;
    /// let volume = stream.zeros::<f32>(32 * 16 * 10)?;
    /// let mut cut = stream.zeros::<f32>(8 * 4 * 2)?;
    /// // The box that begins at x 3, y 2, z 1.
    /// let start = (1 * 16 + 2) * 32 + 3;
    /// let shape = Copy3d { source_pitch: 32, source_rows: 16, ..Copy3d::packed(8, 4, 2) };
    /// stream.copy_3d(&volume.slice(start..)?, &mut cut, shape)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The shape exceeds a side, a side is on another device, or the driver's errors.
    pub fn copy_3d<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut impl DeviceWrite<T>,
        shape: Copy3d,
    ) -> Result<()> {
        self.copy_shape(source, destination, shape)
    }

    /// Copies a box of host elements to the device. Synchronous.
    ///
    /// # Errors
    ///
    /// As [`copy_3d`](Self::copy_3d).
    pub fn copy_3d_from_host<T: Pod>(
        &self,
        source: &[T],
        destination: &mut impl DeviceWrite<T>,
        shape: Copy3d,
    ) -> Result<()> {
        self.copy_shape_from_host(source, destination, shape)
    }

    /// Copies a box of device elements to the host, after the operations that write them. Synchronous.
    ///
    /// # Errors
    ///
    /// As [`copy_3d`](Self::copy_3d), or an earlier kernel faulted.
    pub fn copy_3d_to_host<T: Pod>(
        &self,
        source: &impl DeviceRead<T>,
        destination: &mut [T],
        shape: Copy3d,
    ) -> Result<()> {
        self.copy_shape_to_host(source, destination, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::{Copy3d, CopyShape, Error, Pitches};

    #[test]
    fn the_span_ends_at_the_last_element() {
        let shape = Copy3d { source_pitch: 10, source_rows: 7, ..Copy3d::packed(3, 4, 5) };
        assert_eq!(shape.span(shape.source()), Some((4 * 7 + 3) * 10 + 3));
        assert_eq!(shape.span(shape.destination()), Some(60));
        assert!(shape.check(313, 60).is_ok());
        assert!(matches!(shape.check(312, 60), Err(Error::LengthMismatch { wanted: 313, found: 312, .. })));
        assert!(matches!(shape.check(313, 59), Err(Error::LengthMismatch { wanted: 60, found: 59, .. })));
        assert_eq!(Copy3d { depth: 0, ..shape }.span(shape.source()), Some(0));
    }

    #[test]
    fn steps_are_at_least_what_they_step_over() {
        let shape = Copy3d::packed(3, 4, 5);
        for wrong in [Copy3d { source_pitch: 2, ..shape }, Copy3d { destination_rows: 3, ..shape }] {
            assert!(matches!(wrong.check(1000, 1000), Err(Error::InvalidArgument { .. })), "{wrong:?}");
        }
        for past in
            [Copy3d { source_pitch: usize::MAX, ..shape }, Copy3d { source_rows: usize::MAX, ..shape }]
        {
            assert!(matches!(past.check(1000, 1000), Err(Error::LengthMismatch { .. })), "{past:?}");
        }
    }

    #[test]
    fn steps_that_are_not_taken_do_not_matter() {
        let huge = Pitches { pitch: usize::MAX, rows: usize::MAX };
        assert_eq!(Copy3d::packed(3, 1, 1).taken(huge, 8), (24, 1));
        let pitches = Pitches { pitch: 10, rows: usize::MAX };
        assert_eq!(Copy3d::packed(3, 2, 1).taken(pitches, 8), (80, 2));
    }
}
