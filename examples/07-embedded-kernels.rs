//! The crate's own kernels: complex division by an embedded image that fits device and driver.
//!
//! The images are chosen before anything is loaded: `SELVEDGE_ARCH=sm_70` chooses as for an older card, and a driver that
//! is too old is named together with what the image needs.
//!
//! ```text
//! cargo run --example 07-embedded-kernels
//! ```

mod common;

use num_complex::Complex;
use selvedge::driver::{Device, LaunchConfig, driver_isa};
use selvedge::images;

fn embedded_kernels() -> selvedge::Result<()> {
    println!("embedded families: {}", images::families().join(", "));
    let device = Device::new(0)?;
    let image = images::select("arithmetic", device.compute_capability(), driver_isa()?)?;
    println!("{device} takes {image}");

    let stream = device.stream()?;
    let divide = device.load(&image.bytes()?)?.function("div_c64")?;
    // The square of 1e30 is no f32: dividing by the square of the absolute value would give 0 or NaN.
    let dividend = stream.upload(&[Complex::new(1e30f32, 2e30); 1000])?;
    let divisor = stream.upload(&[Complex::new(2e30f32, 1e30); 1000])?;
    let mut quotient = stream.zeros::<Complex<f32>>(1000)?;
    let config = LaunchConfig::for_elements(1000);
    // SAFETY: div_c64(left, right, result, u64 n) stays below n in each buffer.
    unsafe { divide.launch(&stream, config, (&dividend, &divisor, &mut quotient, 1000u64))? };
    println!("(1 + 2i) / (2 + i), both times 1e30, is {}", stream.download(&quotient)?[0]);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(embedded_kernels)
}
