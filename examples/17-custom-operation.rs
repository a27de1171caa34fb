//! An operation of one's own on tensors: a closure for the CPU and a kernel for CUDA devices.
//!
//! ```text
//! cargo run --example 17-custom-operation
//! ```

use std::process::ExitCode;

use once_cell::sync::OnceCell;
use selvedge::driver::LaunchConfig;
use selvedge::launcher::Launcher;
use selvedge::tensor::kernel::{self, Output};
use selvedge::tensor::{Device, Tensor};

const SOFTSIGN: &str = "__global__ void softsign(const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + fabsf(x[i]));
}";

/// x / (1 + |x|) of an f32 tensor.
fn softsign(x: &Tensor) -> selvedge::Result<Tensor> {
    static KERNELS: OnceCell<Launcher> = OnceCell::new();
    let (x, n) = (x.contiguous()?, x.count());
    let mut y = Output::new(&x.device(), x.dtype(), x.shape())?;
    kernel::run(
        "softsign",
        [&x],
        [&mut y],
        |[x], [mut y]| y.write(x.as_slice::<f32>()?.iter().map(|x| x / (1.0 + x.abs()))),
        |stream, [x], [mut y]| {
            let kernels = KERNELS.get_or_try_init(|| {
                let kernels = Launcher::new(&stream.device())?;
                kernels.compile("softsign", SOFTSIGN)?;
                Ok::<_, selvedge::Error>(kernels)
            })?;
            let arguments = (x.as_slice::<f32>()?, y.as_slice_mut::<f32>()?, n as u32);
            // SAFETY: the kernel reads and writes n elements.
            unsafe { kernels.run_on(stream, "softsign", LaunchConfig::for_elements(n), arguments).map(drop) }
        },
    )?;
    Ok(y.into_tensor())
}

fn custom_operation() -> selvedge::Result<()> {
    let (mut device, reason) = Device::choose();
    match (reason, selvedge::nvrtc::version()) {
        (None, Ok(_)) => println!("On {device}:"),
        (Some(reason), _) => println!("On the CPU: {reason}"),
        (None, Err(error)) => {
            // The kernel is compiled from its source.
            device = Device::cpu();
            println!("On the CPU: {error}");
        }
    }
    let x = Tensor::new([[1.0f32, -3.0], [0.0, 7.0]], &device)?;
    println!("{}", softsign(&x)?);
    // Operands may be views, and the result goes on like any other tensor.
    println!("{}", (softsign(&x.t()?)? * 2.0)?);
    Ok(())
}

fn main() -> ExitCode {
    match custom_operation() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
