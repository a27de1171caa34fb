//! A buffer is not written while a shared part of it lives.

use selvedge::driver::{DeviceBuffer, Stream};

fn write_under_a_reader(stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<Vec<f32>> {
    let part = buffer.slice(1..)?;
    stream.fill(buffer, 0.0)?;
    stream.download(&part)
}

fn main() {}
