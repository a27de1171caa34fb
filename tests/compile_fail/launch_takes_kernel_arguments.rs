//! Text, vectors, references to scalars and host slices are no kernel arguments, nor is a buffer given away.

use selvedge::driver::{DeviceBuffer, Function, LaunchConfig, Stream};

fn launch(stream: &Stream, kernel: &Function, buffer: DeviceBuffer<f32>) -> selvedge::Result<()> {
    let config = LaunchConfig::new(1, 32);
    // SAFETY: not reached, this does not compile.
    unsafe {
        kernel.launch(stream, config, ("text",))?;
        kernel.launch(stream, config, (&1.0f32,))?;
        kernel.launch(stream, config, (vec![1.0f32],))?;
        kernel.launch(stream, config, (buffer,))
    }
}

fn main() {}
