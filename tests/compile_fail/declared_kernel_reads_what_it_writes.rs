//! A buffer is not both read and written by one run of a declared kernel.

use selvedge::driver::{DeviceBuffer, LaunchConfig, Stream};

selvedge::kernel! {
    pub unsafe fn saxpy(x: &[f32], y: &mut [f32], a: f32, n: u32);
}

fn launch(stream: &Stream, saxpy: &saxpy, mut y: DeviceBuffer<f32>) -> selvedge::Result<()> {
    // SAFETY: not reached, this does not compile.
    unsafe { saxpy.run(stream, LaunchConfig::new(1, 32), &y, &mut y, 2.0, 1)? };
    Ok(())
}

fn main() {}
