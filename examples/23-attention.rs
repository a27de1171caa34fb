//! Attention that stores no scores: heads in the order that a layer has them, causal masks, windows, and sequences of
//! different lengths.
//!
//! It runs on the first device, or on the CPU where there is none. `selvedge explain attention 4 12 1024 64 bf16 --causal` says
//! which kernels a device would run.

use selvedge::attention::{Band, Pass, Plan, Problem};
use selvedge::images::DeviceProperties;
use selvedge::nn::{self, Variable};
use selvedge::tensor::{AttentionOptions, Device, Generator, SequenceLengths, Tensor};
use selvedge::types::{DType, Layout};

fn main() -> selvedge::Result<()> {
    let device = Device::best();
    println!("on {device}");

    // A layer's queries, keys and values lie beside each other: (batch, length, 3, heads, head dimension). Views of them are read where
    // they are, as (batch, heads, length, head dimension).
    let (batch, length, heads, dimension) = (2, 256, 4, 64);
    let packed = Generator::new(1).randn(&[batch, length, 3, heads, dimension], DType::BF16, &device)?;
    let part = |at: usize| packed.select(2, at as isize)?.transpose(1, 2);
    let (queries, keys, values) = (part(0)?, part(1)?, part(2)?);
    let causal = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
    let result = queries.scaled_dot_product_attention(&keys, &values, &causal)?;
    println!("{} attends to {}: {}", queries.shape(), keys.shape(), result.shape());

    // The first query reads the first key alone, so it has that key's values.
    let first = |x: &Tensor| x.select(0, 0)?.select(0, 0)?.select(0, 0)?.narrow(0, 0, 3);
    println!("the first result {} is the first value {}", first(&result)?, first(&values)?);

    // A query reads the 32 keys before its own, and itself.
    let window = Band { before: Some(31), after: Some(0) };
    let near = AttentionOptions { window, soft_cap: Some(30.0), ..AttentionOptions::default() };
    println!("with a window: {}", first(&queries.scaled_dot_product_attention(&keys, &values, &near)?)?);

    // The second sequence has 100 positions; behind them the result is 0.
    let counts = Some(Tensor::new([256i64, 100], &device)?);
    let lengths = Some(SequenceLengths::Padded { queries: counts.clone(), keys: counts });
    let padded = AttentionOptions { lengths, ..causal.clone() };
    let result = queries.scaled_dot_product_attention(&keys, &values, &padded)?;
    let behind = result.select(0, 1)?.narrow(1, 100, 156)?;
    println!("the largest result behind 100 positions: {}", behind.abs()?.max_all()?);

    // Gradients: memory grows with the length, and equal runs have equal bits.
    let inputs = [Variable::with_grad(queries)?, Variable::with_grad(keys)?, Variable::with_grad(values)?];
    let options = nn::AttentionOptions { is_causal: true, ..nn::AttentionOptions::default() };
    let result = nn::scaled_dot_product_attention(&inputs[0], &inputs[1], &inputs[2], &options)?;
    result.sum_all()?.backward()?;
    if let Some(gradient) = inputs[0].grad() {
        // The first query reads one key, whatever it is.
        println!("the gradient of the first query: {}", first(&gradient)?);
    }

    // Explains the kernels that an H200 would run; this needs no device.
    let layout = Layout::contiguous(&[64, 1024, 12, 64])?.transpose(1, 2)?;
    let problem = Problem { band: Band::causal(), ..Problem::new(DType::BF16, layout, layout, layout) };
    println!("{}", Plan::explain(&problem, Pass::Backward, DeviceProperties::reference((9, 0)))?);
    Ok(())
}
