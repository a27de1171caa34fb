//! Both halves of a split hold the whole buffer.

use selvedge::driver::{DeviceBuffer, Stream};

fn whole_beside_its_half(stream: &Stream, buffer: &mut DeviceBuffer<u32>) -> selvedge::Result<()> {
    let (_, mut right) = buffer.split_at_mut(4)?;
    stream.fill(buffer, 1)?;
    stream.fill(&mut right, 2)
}

fn main() {}
