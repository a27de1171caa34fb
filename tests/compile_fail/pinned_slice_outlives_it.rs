//! The host's view of pinned memory ends before a copy takes it.

use selvedge::driver::{DeviceBuffer, PinnedBuffer, Stream};

fn keep_a_view(
    stream: &Stream,
    mut pinned: PinnedBuffer<u8>,
    buffer: &DeviceBuffer<u8>,
) -> selvedge::Result<u8> {
    let view = &mut pinned[..];
    let transfer = stream.download_async(buffer, pinned)?;
    view[0] = 1;
    Ok(transfer.wait()?[0])
}

fn main() {}
