//! Source and destination of a copy are not one buffer.

use selvedge::driver::{DeviceBuffer, Stream};

fn copy(stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<()> {
    stream.copy(&*buffer, buffer)
}

fn main() {}
