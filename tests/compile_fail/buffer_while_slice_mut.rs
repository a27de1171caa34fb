//! A buffer is not read while an exclusive part of it lives.

use selvedge::driver::{DeviceBuffer, Stream};

fn read_under_a_writer(stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<Vec<f32>> {
    let mut part = buffer.slice_mut(1..)?;
    let all = stream.download(buffer)?;
    stream.fill(&mut part, 0.0)?;
    Ok(all)
}

fn main() {}
