//! A kernel of your own from ten lines: load its PTX, upload, launch, download. The code of the README.
//!
//! ```text
//! cargo run --example 01-saxpy
//! ```

mod common;

use selvedge::driver::{Device, LaunchConfig};

fn saxpy() -> selvedge::Result<()> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let saxpy = device.load(include_bytes!("saxpy/saxpy.ptx"))?.function("saxpy")?;
    let x = stream.upload(&[1.0f32; 1000])?;
    let y = stream.upload(&[2.0f32; 1000])?;
    let mut out = stream.zeros::<f32>(1000)?;
    // SAFETY: saxpy(const float *x, const float *y, float *out, float a, unsigned n) stays below n in each buffer.
    unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(1000), (&x, &y, &mut out, 3.0f32, 1000u32))? };
    println!("3 x 1 + 2 = {}", stream.download(&out)?[999]);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(saxpy)
}
