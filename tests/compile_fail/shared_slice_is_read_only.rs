//! A shared part cannot be a destination.

use selvedge::driver::{DeviceBuffer, Stream};

fn write(stream: &Stream, buffer: &DeviceBuffer<f32>) -> selvedge::Result<()> {
    let mut part = buffer.slice(1..)?;
    stream.fill(&mut part, 1.0)?;
    stream.copy_from_host(&[1.0], &mut part)
}

fn main() {}
