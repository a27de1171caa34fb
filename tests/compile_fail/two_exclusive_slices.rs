//! Two exclusive parts of one buffer, taken one by one, could overlap: `split_at_mut` gives two that do not.

use selvedge::driver::{DeviceBuffer, Stream};

fn overlap(stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<()> {
    let mut left = buffer.slice_mut(..3)?;
    let mut right = buffer.slice_mut(2..)?;
    stream.fill(&mut left, 1.0)?;
    stream.fill(&mut right, 2.0)
}

fn main() {}
