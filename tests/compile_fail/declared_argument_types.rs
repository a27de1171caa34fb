//! A declared kernel takes memory and scalars of just the declared types, and writes only what is lent mutably.

use selvedge::driver::{DeviceBuffer, LaunchConfig, Stream};

selvedge::kernel! {
    pub unsafe fn saxpy(x: &[f32], y: &mut [f32], a: f32, n: u32);
}

fn launch(stream: &Stream, saxpy: saxpy, wide: DeviceBuffer<f64>, mut y: DeviceBuffer<f32>) -> selvedge::Result<()> {
    let config = LaunchConfig::new(1, 32);
    let x = stream.upload(&[1.0f32])?;
    // SAFETY: not reached, this does not compile.
    unsafe {
        saxpy.run(stream, config, &wide, &mut y, 2.0, 1)?;
        saxpy.run(stream, config, &x, &y, 2.0, 1)?;
        saxpy.run(stream, config, &x, &mut y, 2.0f64, 1)?;
        saxpy.run(stream, config, &x, &mut y, 2.0)?;
    }
    Ok(())
}

fn main() {}
