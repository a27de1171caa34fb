//! A part does not outlive its buffer.

use selvedge::driver::{DeviceSlice, Stream};

fn dangling(stream: &Stream) -> selvedge::Result<DeviceSlice<'static, f32>> {
    let buffer = stream.zeros::<f32>(8)?;
    buffer.slice(2..4)
}

fn dropped_under_it(stream: &Stream) -> selvedge::Result<Vec<f32>> {
    let buffer = stream.zeros::<f32>(8)?;
    let part = buffer.slice(2..4)?;
    drop(buffer);
    stream.download(&part)
}

fn main() {}
