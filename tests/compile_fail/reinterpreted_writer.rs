//! The same bytes as another type are still the same bytes: they have one writer.

use selvedge::driver::{DeviceBuffer, Stream};

fn two_types(stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<Vec<f32>> {
    let mut bits = buffer.reinterpret_mut::<u32>()?;
    let values = stream.download(buffer)?;
    stream.fill(&mut bits, 0)?;
    Ok(values)
}

fn main() {}
