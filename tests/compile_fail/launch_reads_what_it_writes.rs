//! One buffer is not read and written by one launch under two names: a kernel that does both takes one `&mut`.

use selvedge::driver::{DeviceBuffer, Function, LaunchConfig, Stream};

fn aliased(stream: &Stream, add: &Function, buffer: &mut DeviceBuffer<f32>) -> selvedge::Result<()> {
    // SAFETY: not reached, this does not compile.
    unsafe { add.launch(stream, LaunchConfig::new(1, 32), (&*buffer, buffer)) }
}

fn main() {}
