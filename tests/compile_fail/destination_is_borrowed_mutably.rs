//! Copies write through `&mut` alone.

use selvedge::driver::{DeviceBuffer, Stream};

fn copy(stream: &Stream, from: &DeviceBuffer<f32>, to: &DeviceBuffer<f32>) -> selvedge::Result<()> {
    stream.copy(from, to)
}

fn main() {}
