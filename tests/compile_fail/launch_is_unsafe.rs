//! The caller guarantees what a kernel does with its arguments, so a launch is unsafe.

use selvedge::driver::{Argument, DeviceBuffer, Function, LaunchConfig, Stream};

fn typed(stream: &Stream, kernel: &Function, buffer: &DeviceBuffer<f32>) -> selvedge::Result<()> {
    kernel.launch(stream, LaunchConfig::new(1, 32), (buffer,))
}

fn dynamic(stream: &Stream, kernel: &Function, arguments: &[Argument<'_>]) -> selvedge::Result<()> {
    kernel.launch(stream, LaunchConfig::new(1, 32), arguments)
}

fn main() {}
