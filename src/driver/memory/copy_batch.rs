//! Many copies between device buffers in one call.
//!
//! Newer drivers (CUDA 12.8) take a list of copies in one call, which costs the host 2 to 8 % less than one call per
//! copy (measured with driver 580). Older drivers take one call per copy. In both cases every argument is checked and
//! every buffer registered before the first driver call, so an error of this library leaves nothing half done.
//!
//! Invariants: the copies of a list are unordered, so none may write bytes that another uses. The borrow checker
//! ensures this: each pair holds its destination exclusively. The driver takes no list during a capture, and no copy
//! between devices in a list.

use bytemuck::Pod;

use super::copy::same_length;
use super::slice::{DeviceRead, DeviceWrite, View};
use super::usage::Access;
use crate::driver::context::stream_call;
use crate::driver::graph::capture;
use crate::driver::stream::{Stream, StreamState};
use crate::driver::stream_work::StreamWork;
use crate::error::{Error, Result};
use crate::sys::driver::{CUmemcpyAttributes_v1, CUmemcpySrcAccessOrder};

/// The smallest number of copies that is passed as a list.
const FEWEST: usize = 2;

/// A list of copies in the driver's form.
#[derive(Default)]
struct List {
    to: Vec<u64>,
    from: Vec<u64>,
    bytes: Vec<usize>,
}

impl Stream {
    /// Copies each source to its destination. The pairs are unordered among themselves. Together they are one operation
    /// of the stream.
    ///
    /// A pair may consist of slices, including disjoint slices of one buffer, or of buffers of two devices. Use
    /// [`reinterpret`](super::DeviceSlice::reinterpret) to combine pairs of several element types.
    ///
    /// ```no_run
    /// # fn main() -> selvedge::Result<()> {
    /// # let stream = selvedge::driver::Device::new(0)?.stream()?;
    /// let gradients = [stream.zeros::<f32>(100)?, stream.zeros::<f32>(28)?];
    /// let mut bucket = stream.zeros::<f32>(128)?;
    /// let (first, second) = bucket.split_at_mut(100)?;
    /// stream.copy_batch(&mut [(gradients[0].slice(..)?, first), (gradients[1].slice(..)?, second)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The lengths of a pair differ, or neither side of one is on the stream's device; nothing is then copied. The
    /// driver's errors, after which some pairs may have been copied.
    pub fn copy_batch<T, S, D>(&self, copies: &mut [(S, D)]) -> Result<()>
    where
        T: Pod,
        S: DeviceRead<T>,
        D: DeviceWrite<T>,
    {
        const OPERATION: &str = "copy_batch";
        let stream = self.state();
        let mut views = Vec::with_capacity(copies.len());
        for (source, destination) in copies {
            let (from, to) = (source.view(), destination.view());
            same_length(OPERATION, to.length, from.length)?;
            if from.length * size_of::<T>() > 0 {
                stream.reaches(OPERATION, &from).or_else(|_| stream.reaches(OPERATION, &to))?;
                views.push((from, to));
            }
        }
        if capture::any() {
            let reads = views.iter().map(|(from, _)| (from.allocation, Access::Read));
            let writes = views.iter().map(|(_, to)| (to.allocation, Access::Write));
            capture::join_for(stream, reads.chain(writes))?;
        }
        for (from, to) in &views {
            from.enter_read(stream)?;
            to.enter_write(stream)?;
        }
        if views.is_empty() {
            return Ok(());
        }
        let (near, far): (Vec<_>, Vec<_>) =
            views.into_iter().partition(|(from, to)| std::ptr::eq(from.device(), to.device()));
        let size = size_of::<T>();
        // SAFETY: all sides are inside live allocations, which the borrows keep from overlapping.
        let call = || unsafe {
            let listed = stream.takes_lists(near.len());
            if listed {
                stream.copy_list(&near, size)?;
            }
            let single = if listed { [].iter() } else { near.iter() };
            single.chain(&far).try_for_each(|(from, to)| stream.copy_bytes(from, to, from.length * size))
        };
        let bytes = || near.iter().chain(&far).map(|(from, _)| from.length * size).sum();
        stream.submit_work(|| StreamWork::copy("copy a batch", bytes()), call).map(drop)
    }
}

impl StreamState {
    /// Returns whether this many copies go to the driver in one call.
    fn takes_lists(&self, copies: usize) -> bool {
        copies >= FEWEST && !self.slot.is_open() && self.device.api.cuMemcpyBatchAsync().is_ok()
    }

    /// # Safety
    ///
    /// The views are live memory of this stream's device, at least one pair, and no destination overlaps anything else.
    unsafe fn copy_list(&self, copies: &[(View<'_>, View<'_>)], size: usize) -> Result<()> {
        let mut list = List::default();
        for (from, to) in copies {
            list.to.push(to.address);
            list.from.push(from.address);
            list.bytes.push(from.length * size);
        }
        let count = copies.len();
        let mut attributes = CUmemcpyAttributes_v1 {
            srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
            ..CUmemcpyAttributes_v1::default()
        };
        let (mut first, mut failed) = (0usize, usize::MAX);
        // SAFETY: the lists are of one length, the attributes are for all of it; the caller vouches for the memory.
        let result = unsafe {
            stream_call!(
                self,
                cuMemcpyBatchAsync(
                    list.to.as_mut_ptr(),
                    list.from.as_mut_ptr(),
                    list.bytes.as_mut_ptr(),
                    count,
                    &mut attributes,
                    &mut first,
                    1,
                    &mut failed,
                    self.raw.0,
                )
            )
        };
        result.map_err(|error| match error {
            Error::Driver { call, code, name, text, .. } if failed < count => {
                Error::Driver { call, code, name, text, detail: format!("copy {failed} of {count}") }
            }
            other => other,
        })
    }
}
