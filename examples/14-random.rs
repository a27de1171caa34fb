//! Random tensors: seeds, distributions, and the same numbers everywhere.
//!
//! A number follows from the seed and its place alone, so a program that was written on a laptop draws the same on a GPU,
//! and what was drawn can be drawn again from where the generator was.
//!
//! ```text
//! cargo run --release --example 14-random
//! ```

mod common;

use selvedge::tensor::{Device, Fused, Generator, Tensor};
use selvedge::types::DType;

/// Points of the unit square; of those within the circle there are pi / 4.
const POINTS: usize = 1 << 22;

fn random() -> selvedge::Result<()> {
    let device = Device::best();
    let generator = Generator::new(2026);
    println!("on {device}, {generator:?}");

    let start = generator.state();
    let x = generator.rand(&[POINTS], DType::F32, &device)?;
    let y = generator.rand(&[POINTS], DType::F32, &device)?;
    let inside = Fused::new(|[x, y]| (x * x + y * y).lt(1.0).cast(DType::U8)).run([&x, &y])?;
    let count: u64 = inside.to_vec::<u8>()?.into_iter().map(u64::from).sum();
    println!("pi is near {}", 4.0 * count as f64 / POINTS as f64);

    // From where the generator was, the CPU draws the same.
    let again = Generator::at(start).rand(&[POINTS], DType::F32, &Device::cpu())?;
    println!("the CPU draws the same: {}", again.to_vec::<f32>()? == x.to_vec::<f32>()?);

    let dice = generator.randint(1, 7, &[10], DType::U8, &device)?;
    println!("dice           {dice}");
    println!("a card deck    {}", generator.permutation(12, &device)?);
    // Parameters may be tensors that broadcast.
    let means = Tensor::new([[0.0f32], [100.0]], &device)?;
    println!("two normals\n{}", generator.normal(&means, 1.5, &[2, 4], DType::F32, &device)?);

    // Draws that name no generator use the device's own.
    device.manual_seed(7);
    println!("complex        {}", Tensor::randn(&[2], DType::C64, &device)?);
    println!("spaced evenly  {}", Tensor::linspace(0.0, 1.0, 5, DType::F64, &device)?);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(random)
}
