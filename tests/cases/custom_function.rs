//! A function with kernels of its own for the forward and the backward: softsign(x) = x / (1 + |x|).

use std::sync::OnceLock;

use selvedge::driver::{LaunchConfig, Stream};
use selvedge::launcher::Launcher;
use selvedge::nn::{Function, FunctionContext};
use selvedge::tensor::kernel::{self, Output};
use selvedge::{Result, Tensor};

const SOURCE: &str = "
extern \"C\" __global__ void softsign(const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + fabsf(x[i]));
}
extern \"C\" __global__ void softsign_backward(const float *x, const float *g, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float d = 1.0f + fabsf(x[i]); y[i] = g[i] / (d * d); }
}";

fn kernels(stream: &Stream) -> Result<&'static Launcher> {
    static KERNELS: OnceLock<Launcher> = OnceLock::new();
    if let Some(kernels) = KERNELS.get() {
        return Ok(kernels);
    }
    let kernels = Launcher::new(&stream.device())?;
    kernels.compile("softsign", SOURCE)?;
    kernels.compile("softsign_backward", SOURCE)?;
    Ok(KERNELS.get_or_init(|| kernels))
}

/// Of f32.
pub struct Softsign;

impl Function for Softsign {
    fn name(&self) -> &'static str {
        "softsign"
    }

    fn forward(&self, context: &mut FunctionContext, inputs: &[&Tensor]) -> Result<Tensor> {
        context.save_input(0);
        let x = inputs[0].contiguous()?;
        let mut y = Output::new(&x.device(), x.dtype(), x.shape())?;
        kernel::run(
            "softsign",
            [&x],
            [&mut y],
            |[x], [mut y]| y.write(x.as_slice::<f32>()?.iter().map(|x| x / (1.0 + x.abs()))),
            |stream, [x], [mut y]| {
                let (n, kernels) = (x.as_slice::<f32>()?.len(), kernels(stream)?);
                let arguments = (x.as_slice::<f32>()?, y.as_slice_mut::<f32>()?, n as u32);
                // SAFETY: the kernel reads and writes n elements.
                unsafe {
                    kernels.run_on(stream, "softsign", LaunchConfig::for_elements(n), arguments).map(drop)
                }
            },
        )?;
        Ok(y.into_tensor())
    }

    fn backward(&self, saved: &[Tensor], gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let (x, gradient) = (saved[0].contiguous()?, gradient.contiguous()?);
        let mut y = Output::new(&x.device(), x.dtype(), x.shape())?;
        kernel::run(
            "softsign_backward",
            [&x, &gradient],
            [&mut y],
            |[x, g], [mut y]| {
                let pairs = x.as_slice::<f32>()?.iter().zip(g.as_slice::<f32>()?);
                y.write(pairs.map(|(x, g)| g / ((1.0 + x.abs()) * (1.0 + x.abs()))))
            },
            |stream, [x, g], [mut y]| {
                let (n, kernels) = (x.as_slice::<f32>()?.len(), kernels(stream)?);
                let arguments =
                    (x.as_slice::<f32>()?, g.as_slice::<f32>()?, y.as_slice_mut::<f32>()?, n as u32);
                let config = LaunchConfig::for_elements(n);
                // SAFETY: the kernel reads and writes n elements.
                unsafe { kernels.run_on(stream, "softsign_backward", config, arguments).map(drop) }
            },
        )?;
        Ok(vec![Some(y.into_tensor())])
    }
}
