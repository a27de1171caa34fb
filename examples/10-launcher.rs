//! Kernels by name: from source where NVRTC is there, on the CPU where it is not, and as a typed function.
//!
//! Compiled kernels are cached (`SELVEDGE_CACHE`), so the second run of this program compiles nothing.
//!
//! ```text
//! cargo run --example 10-launcher
//! SELVEDGE_LIBNVRTC=none cargo run --example 10-launcher
//! ```

mod common;

use selvedge::driver::{Device, LaunchConfig};
use selvedge::launcher::{Definition, Fallback, Launcher};

const SAXPY: &str = "__global__ void saxpy(float a, const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}";

selvedge::kernel! {
    /// y = a x + y, for n elements.
    unsafe fn saxpy(a: f32, x: &[f32], y: &mut [f32], n: u32);
}

fn kernels_by_name() -> selvedge::Result<()> {
    let launcher = Launcher::new(&Device::new(0)?)?;
    let on_the_cpu = Fallback::cpu(|launch| {
        let [a, x, y, n] = launch.arguments()?;
        let (a, n, x) = (a.value::<f32>()?, n.value::<u32>()? as usize, x.slice::<f32>()?);
        y.slice_mut::<f32>()?.iter_mut().zip(x).take(n).for_each(|(y, x)| *y += a * x);
        Ok(())
    });
    let kernel = launcher.define(Definition::new("saxpy").source(SAXPY).fallback(on_the_cpu))?;

    let stream = launcher.stream();
    let x = stream.upload(&[1.0f32; 1000])?;
    let mut y = stream.upload(&[2.0f32; 1000])?;
    // SAFETY: saxpy touches n = 1000 elements of each buffer.
    let ran = unsafe { launcher.run("saxpy", 4, 256, (3.0f32, &x, &mut y, 1000u32))? };
    println!("3 x 1 + 2 is {}, computed by the {ran:?} from {:?}", stream.download(&y)?[0], kernel.origin());

    // Buffers of another type are refused, because the kernel's name says what it takes.
    let wide = stream.upload(&[1.0f64; 1000])?;
    // SAFETY: nothing is launched.
    if let Err(error) = unsafe { launcher.run("saxpy", 4, 256, (3.0f32, &wide, &mut y, 1000u32)) } {
        println!("{error}");
    }

    // Held against the kernel once; the compiler checks the rest.
    let saxpy = saxpy::bind(&kernel)?;
    // SAFETY: as above.
    unsafe { saxpy.run(stream, LaunchConfig::for_elements(1000), -1.0, &x, &mut y, 1000)? };
    println!("less 1 is {}; the CPU was asked {} times", stream.download(&y)?[0], launcher.fallbacks_taken());
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(kernels_by_name)
}
