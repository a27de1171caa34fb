//! A copy has one element type on both sides.

use selvedge::driver::{DeviceBuffer, Stream};

fn copy(stream: &Stream, from: &DeviceBuffer<f32>, to: &mut DeviceBuffer<f64>) -> selvedge::Result<()> {
    stream.copy(from, to)
}

fn main() {}
