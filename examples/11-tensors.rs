//! Tensors: arrays as in NumPy and PyTorch, on a CUDA device where there is one and otherwise on the CPU, which gives the
//! same numbers.

mod common;

use selvedge::tensor::{Device, Tensor};
use selvedge::types::{DType, Slice};

/// Distances of points to each other: broadcasting makes a table of two lists.
fn distances(points: &Tensor) -> selvedge::Result<Tensor> {
    let (from, to) = (points.unsqueeze(1)?, points.unsqueeze(0)?);
    let apart = (&from - &to)?;
    let (x, y) = (apart.select(-1, 0)?, apart.select(-1, 1)?);
    x.hypot(&y)
}

fn tensors() -> selvedge::Result<()> {
    let (device, reason) = Device::choose();
    match reason {
        None => println!("on {device}"),
        Some(reason) => println!("on the CPU, because there is no GPU to run this on: {reason}"),
    }

    let points = Tensor::new([[0.0f32, 0.0], [3.0, 4.0], [6.0, 8.0], [-5.0, 12.0]], &device)?;
    let table = distances(&points)?;
    println!("distances of four points:\n{table}");

    // Views share the elements of the tensor.
    println!("its diagonal: {}", table.diagonal(0, 0, 1)?);
    println!("every second row, backwards:\n{}", table.slice(0, Slice::from(..).step(-2))?);

    // Numbers take part by kind, tensors of two dtypes meet in one.
    let counts = Tensor::new([1i32, 2, 3, 4], &device)?;
    println!("i32 / 2 is {:?}", (&counts / 2)?);
    println!("i32 + f16 is {:?}", (&counts + &Tensor::ones(&[4], DType::F16, &device)?)?);

    // A write does not change clones, which keep their elements.
    let mut masked = table.clone();
    let far = table.gt(10.0)?;
    masked.in_place().assign(&far.choose(f64::INFINITY, &table)?)?;
    masked.slice_mut(0, ..1)?.fill(0.0)?;
    println!("with what is far taken away, and the first row:\n{masked}");
    println!("the table itself, still:\n{table:?}");

    // A mistake is an error that names both sides.
    if let Err(error) = &counts + &points.slice(0, 1..)? {
        println!("error: {error}");
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(tensors)
}
