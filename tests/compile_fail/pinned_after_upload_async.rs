//! While an asynchronous copy runs it owns the pinned memory; `wait` gives it back.

use selvedge::driver::{DeviceBuffer, PinnedBuffer, Stream};

fn write_under_the_copy(
    stream: &Stream,
    mut pinned: PinnedBuffer<f32>,
    buffer: &mut DeviceBuffer<f32>,
) -> selvedge::Result<()> {
    let transfer = stream.upload_async(pinned, buffer)?;
    pinned[0] = 1.0;
    transfer.wait()?;
    Ok(())
}

fn read_before_it_is_there(
    stream: &Stream,
    pinned: PinnedBuffer<f32>,
    buffer: &DeviceBuffer<f32>,
) -> selvedge::Result<f32> {
    let transfer = stream.download_async(buffer, pinned)?;
    let first = pinned[0];
    transfer.wait()?;
    Ok(first)
}

fn main() {}
