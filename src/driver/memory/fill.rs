//! Filling device memory with one value.

use bytemuck::Pod;

use super::slice::{DeviceWrite, View};
use crate::driver::context::stream_call;
use crate::driver::stream::Stream;
use crate::driver::stream_work::StreamWork;
use crate::error::Result;

/// How the driver's memsets write a value of some size at some address.
#[derive(Debug, PartialEq, Eq)]
enum FillPlan {
    Bytes(u8),
    Halves(u16),
    Words(u32),
    /// One strided memset for each 32-bit word of the value.
    Columns(Vec<u32>),
    /// No memset fits: copy the values from the host.
    Upload,
}

impl FillPlan {
    fn new(value: &[u8], address: u64) -> FillPlan {
        if value.iter().all(|&byte| byte == value[0]) {
            return FillPlan::Bytes(value[0]);
        }
        let words: Vec<u32> = value
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        match value.len() {
            2 if address.is_multiple_of(2) => FillPlan::Halves(u16::from_ne_bytes([value[0], value[1]])),
            length if length % 4 == 0 && address.is_multiple_of(4) => {
                if words.iter().all(|&word| word == words[0]) {
                    FillPlan::Words(words[0])
                } else {
                    FillPlan::Columns(words)
                }
            }
            _ => FillPlan::Upload,
        }
    }
}

impl Stream {
    /// Sets every element to `value`.
    ///
    /// A value whose bytes, halves or 32-bit words are all equal takes one memset of the driver. Other values take one
    /// memset per word, which is slower than a fill kernel. Values of odd sizes are copied from the host,
    /// synchronously.
    ///
    /// # Errors
    ///
    /// The memory belongs to another device, or the driver's errors.
    pub fn fill<T: Pod>(&self, destination: &mut impl DeviceWrite<T>, value: T) -> Result<()> {
        let view = destination.view();
        let (size, length) = (size_of::<T>(), view.length);
        if size * length == 0 {
            return Ok(());
        }
        match FillPlan::new(bytemuck::bytes_of(&value), view.address) {
            FillPlan::Upload => self.fill_from_host(view, value),
            plan => self.fill_on_device(view, size, plan),
        }
    }

    /// Fills elements of so many bytes.
    fn fill_on_device(&self, view: View<'_>, size: usize, plan: FillPlan) -> Result<()> {
        let (stream, length) = (self.state(), view.length);
        stream.reaches("fill", &view)?;
        view.enter_write(stream)?;
        let (address, raw) = (view.address, stream.raw.0);
        // SAFETY: the range is inside a live allocation of this device, and aligned as the plan checked.
        let call = || unsafe {
            match plan {
                FillPlan::Bytes(byte) => {
                    stream_call!(stream, cuMemsetD8Async(address, byte, size * length, raw))
                }
                FillPlan::Halves(half) => stream_call!(stream, cuMemsetD16Async(address, half, length, raw)),
                FillPlan::Words(word) => {
                    stream_call!(stream, cuMemsetD32Async(address, word, size / 4 * length, raw))
                }
                FillPlan::Columns(words) => words.iter().zip(0u64..).try_for_each(|(&word, column)| {
                    stream_call!(stream, cuMemsetD2D32Async(address + 4 * column, size, word, 1, length, raw))
                }),
                FillPlan::Upload => Ok(()),
            }
        };
        stream.submit_work(|| StreamWork::fill(size * length), call).map(drop)
    }

    /// Copies the values from the host, in chunks. Synchronous.
    fn fill_from_host<T: Pod>(&self, view: View<'_>, value: T) -> Result<()> {
        view.refuse_capture("a fill with a value of this size", self.state(), true)?;
        let size = size_of::<T>();
        let chunk = vec![value; view.length.min((1 << 20) / size + 1)];
        let mut issued = Ok(());
        for start in (0..view.length).step_by(chunk.len()) {
            let length = chunk.len().min(view.length - start);
            let part = View { address: view.address + (start * size) as u64, length, ..view };
            // SAFETY: `chunk` lives until the drain below has returned and is only read.
            issued = unsafe { self.issue_upload(chunk.as_ptr().cast(), part, length * size) }.map(drop);
            if issued.is_err() {
                break;
            }
        }
        issued.and(self.state().drain())
    }
}

#[cfg(test)]
mod tests {
    use super::FillPlan;

    #[test]
    fn the_plan_is_the_widest_that_fits() {
        assert_eq!(FillPlan::new(&[7], 1), FillPlan::Bytes(7));
        assert_eq!(FillPlan::new(&0u64.to_ne_bytes(), 8), FillPlan::Bytes(0));
        assert_eq!(FillPlan::new(&0x0102u16.to_ne_bytes(), 2), FillPlan::Halves(0x0102));
        assert_eq!(FillPlan::new(&1.5f32.to_ne_bytes(), 4), FillPlan::Words(1.5f32.to_bits()));
        let pair = bytemuck::cast::<[u32; 2], [u8; 8]>([5, 6]);
        assert_eq!(FillPlan::new(&pair, 4), FillPlan::Columns(vec![5, 6]));
        assert_eq!(FillPlan::new(&pair, 2), FillPlan::Upload, "a misaligned word");
        assert_eq!(FillPlan::new(&[1, 2, 3], 0), FillPlan::Upload, "an odd size");
        assert_eq!(
            FillPlan::new(&[5, 0, 0, 0, 5, 0, 0, 0], 4),
            FillPlan::Words(u32::from_ne_bytes([5, 0, 0, 0]))
        );
    }
}
