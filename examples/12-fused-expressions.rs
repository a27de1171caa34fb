//! Fused expressions: any chain of elementwise operations as one kernel, which reads each input and writes each output once.
//! The kernel is written by this crate and assembled by the driver, so nothing else has to be installed; on the CPU the
//! same instructions run block by block.

mod common;

use std::time::Instant;

use selvedge::tensor::{Device, Fused, Tensor, fuse};
use selvedge::types::DType;

const COUNT: usize = 1 << 22;

/// The seconds of the fastest of some runs.
fn seconds(device: &Device, mut work: impl FnMut() -> selvedge::Result<Tensor>) -> selvedge::Result<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        work()?;
        device.synchronize()?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok(fastest)
}

fn fused() -> selvedge::Result<()> {
    let (device, reason) = Device::choose();
    match reason {
        None => println!("on {device}"),
        Some(reason) => println!("on the CPU, because there is no GPU to run this on: {reason}"),
    }
    let a = Tensor::full(&[COUNT], 1.5, DType::F32, &device)?;
    let b = Tensor::full(&[COUNT], -0.5, DType::F32, &device)?;
    let c = Tensor::full(&[1], 2.0, DType::F32, &device)?;

    // Written once, and run on tensors of any dtype and shape.
    let f = Fused::new(|[a, b, c]| ((a * b + c).relu() - 0.25).abs().sqrt());
    let one = seconds(&device, || f.run([&a, &b, &c]))?;
    let many = seconds(&device, || (((&a * &b)? + &c)?.relu()? - 0.25)?.abs()?.sqrt())?;
    println!("one kernel: {:.2} ms; six operations one by one: {:.2} ms", one * 1e3, many * 1e3);

    // Several outputs, and a number that each run gives: it is a parameter of the kernel, so no other one is made.
    let step = Fused::with_outputs(|[value, gradient, velocity, rate]| {
        let velocity = velocity * 0.9 + gradient;
        [value - velocity * rate, velocity]
    });
    let mut value = Tensor::new([1.0f64, -2.0, 3.0], &device)?;
    let mut velocity = value.zeros_like()?;
    for round in 0..100 {
        let gradient = (&value * 2.0)?;
        let rate = 0.1 / f64::from(1 + round / 50);
        [value, velocity] = step.run_all((&value, &gradient, &velocity, rate))?;
    }
    println!("after 100 steps down a parabola: {value}");

    // For one call.
    let grid = Tensor::new([0.0f32, 0.5, 1.0], &device)?;
    let bump = fuse([&grid.unsqueeze(1)?, &grid], |[x, y]| (-(x * x + y * y)).exp())?;
    println!("a bump:\n{bump}");

    // The plan, and the kernel itself.
    println!("{}", f.explain([&a, &b, &c])?);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(fused)
}
