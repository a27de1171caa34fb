//! Filling device memory with one value.

use bytemuck::Pod;

use super::slice::{DeviceWrite, View};
use crate::driver::context::stream_call;
use crate::driver::stream::Stream;
use crate::error::Result;

/// How the driver's memsets make a value of some size at some address.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Bytes(u8),
    Halves(u16),
    Words(u32),
    /// One strided memset for each of the value's words.
    Columns(Vec<u32>),
    /// No memset fits: write the values from the host.
    Upload,
}

impl Plan {
    fn new(value: &[u8], address: u64) -> Plan {
        if value.iter().all(|&byte| byte == value[0]) {
            return Plan::Bytes(value[0]);
        }
        let words: Vec<u32> = value
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        match value.len() {
            2 if address.is_multiple_of(2) => Plan::Halves(u16::from_ne_bytes([value[0], value[1]])),
            length if length % 4 == 0 && address.is_multiple_of(4) => {
                if words.iter().all(|&word| word == words[0]) {
                    Plan::Words(words[0])
                } else {
                    Plan::Columns(words)
                }
            }
            _ => Plan::Upload,
        }
    }
}

impl Stream {
    /// Sets every element to `value`.
    ///
    /// Values whose bytes, halves or 32-bit words are all equal take one memset of the driver; others one for each
    /// word, which is slower than a fill kernel. Values of odd sizes are copied from the host, and the call waits for that.
    ///
    /// # Errors
    ///
    /// The memory is another device's, or the driver's errors.
    pub fn fill<T: Pod>(&self, destination: &mut impl DeviceWrite<T>, value: T) -> Result<()> {
        let view = destination.view();
        let (size, length) = (size_of::<T>(), view.length);
        if size * length == 0 {
            return Ok(());
        }
        let plan = Plan::new(bytemuck::bytes_of(&value), view.address);
        if plan == Plan::Upload {
            return self.fill_from_host(view, value);
        }
        let stream = self.state();
        stream.reaches("fill", &view)?;
        view.enter_write(stream)?;
        let (address, raw) = (view.address, stream.raw.0);
        // SAFETY: the range is inside a live allocation of this device, and aligned as the plan checked.
        stream.submit(|| unsafe {
            match plan {
                Plan::Bytes(byte) => stream_call!(stream, cuMemsetD8Async(address, byte, size * length, raw)),
                Plan::Halves(half) => stream_call!(stream, cuMemsetD16Async(address, half, length, raw)),
                Plan::Words(word) => {
                    stream_call!(stream, cuMemsetD32Async(address, word, size / 4 * length, raw))
                }
                Plan::Columns(words) => words.iter().zip(0u64..).try_for_each(|(&word, column)| {
                    stream_call!(stream, cuMemsetD2D32Async(address + 4 * column, size, word, 1, length, raw))
                }),
                Plan::Upload => Ok(()),
            }
        })
    }

    /// Writes the values from the host, in chunks; done when this returns.
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
    use super::Plan;

    #[test]
    fn the_plan_is_the_widest_that_fits() {
        assert_eq!(Plan::new(&[7], 1), Plan::Bytes(7));
        assert_eq!(Plan::new(&0u64.to_ne_bytes(), 8), Plan::Bytes(0));
        assert_eq!(Plan::new(&0x0102u16.to_ne_bytes(), 2), Plan::Halves(0x0102));
        assert_eq!(Plan::new(&1.5f32.to_ne_bytes(), 4), Plan::Words(1.5f32.to_bits()));
        let pair = bytemuck::cast::<[u32; 2], [u8; 8]>([5, 6]);
        assert_eq!(Plan::new(&pair, 4), Plan::Columns(vec![5, 6]));
        assert_eq!(Plan::new(&pair, 2), Plan::Upload, "a misaligned word");
        assert_eq!(Plan::new(&[1, 2, 3], 0), Plan::Upload, "an odd size");
        assert_eq!(Plan::new(&[5, 0, 0, 0, 5, 0, 0, 0], 4), Plan::Words(u32::from_ne_bytes([5, 0, 0, 0])));
    }
}
