//! `cargo test --release --test parity -- --time [FILTER]` prints a table of times, a line for each operation
//! and dtype whose name contains the filter, on the CPU and on a device if there is one.
//!
//! The times are approximate, because nothing is interleaved. `cargo bench --bench fuse` gives figures to
//! quote.

use std::time::{Duration, Instant};

use selvedge::driver::Stream;
use selvedge::fuse::{
    DeviceInput, DeviceOutput, Expression, Graph, HostInput, HostOutput, Operation, Signature,
};
use selvedge::types::{DType, Layout};

use super::arrays::aligned;
use super::harness::device;
use super::value::{Value, write};

/// The number of elements on the CPU, more than its caches hold, and on a device.
const ON_HOST: usize = 1 << 22;
const ON_DEVICE: usize = 1 << 26;
const RUNS: u32 = 7;

/// Prints the table.
pub fn print(filter: &str) -> selvedge::Result<()> {
    println!("{:<28} {:>14} {:>14}", "operation and dtype", "CPU, ns each", "device, GB/s");
    for &operation in Operation::ALL {
        for dtype in operation.dtypes().iter() {
            let name = format!("{}::{dtype}", operation.name());
            if !name.contains(filter) {
                continue;
            }
            let signature = operation.signature(&vec![dtype; operation.arity()])?;
            let operands = &signature.operands[..operation.arity()];
            let graph = Graph::new();
            let inputs: Vec<_> = operands.iter().map(|&dtype| graph.input(dtype)).collect();
            let expression = graph.expression(&[inputs[0].operation(operation, &inputs[1..])])?;
            let host = on_host(&expression, operands, &signature)?.as_nanos() as f64 / ON_HOST as f64;
            let device = match device() {
                Ok(stream) => {
                    let bytes: usize =
                        operands.iter().chain([&signature.result]).map(|dtype| dtype.size()).sum();
                    let taken = on_device(stream, &expression, operands, &signature)?;
                    format!("{:.0}", (bytes * ON_DEVICE) as f64 / taken.as_nanos() as f64)
                }
                Err(_) => "-".to_owned(),
            };
            println!("{name:<28} {host:>14.3} {device:>14}");
        }
    }
    Ok(())
}

/// Returns the bytes of elements in the domain of most functions: 0.5 and 0.75 alternately, integers 1 and 2.
fn ordinary(dtype: DType, count: usize) -> Vec<u8> {
    let size = dtype.size();
    let mut pair = vec![0; 2 * size];
    for (room, (real, whole)) in pair.chunks_exact_mut(size).zip([(0.5, 1), (0.75, 2)]) {
        let value = match dtype {
            dtype if dtype.is_complex() => Value::Complex(real, real),
            dtype if dtype.is_float() => Value::Real(real),
            _ => Value::Integer(whole),
        };
        write(dtype, value, room);
    }
    pair.repeat(count / 2)
}

/// Returns the shortest of several runs.
fn shortest(mut run: impl FnMut() -> selvedge::Result<()>) -> selvedge::Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

fn on_host(expression: &Expression, operands: &[DType], signature: &Signature) -> selvedge::Result<Duration> {
    let layout = Layout::contiguous(&[ON_HOST])?;
    let words = |dtype: DType| aligned(&ordinary(dtype, ON_HOST));
    let sources: Vec<Vec<u128>> = operands.iter().map(|&dtype| words(dtype)).collect();
    let mut target = words(signature.result);
    shortest(|| {
        let from = operands
            .iter()
            .zip(&sources)
            .map(|(&dtype, words)| HostInput::of_bytes(dtype, bytemuck::cast_slice(words), layout))
            .collect::<selvedge::Result<Vec<_>>>()?;
        let output = HostOutput::of_bytes(signature.result, bytemuck::cast_slice_mut(&mut target), layout)?;
        expression.run_host(&from, &[], &mut [output])
    })
}

fn on_device(
    stream: &Stream,
    expression: &Expression,
    operands: &[DType],
    signature: &Signature,
) -> selvedge::Result<Duration> {
    let layout = Layout::contiguous(&[ON_DEVICE])?;
    let upload = |dtype: &DType| stream.upload(&ordinary(*dtype, ON_DEVICE));
    let sources = operands.iter().map(upload).collect::<selvedge::Result<Vec<_>>>()?;
    let mut target = upload(&signature.result)?;
    shortest(|| {
        let from = operands
            .iter()
            .zip(&sources)
            .map(|(&dtype, memory)| DeviceInput::of_bytes(dtype, memory, layout))
            .collect::<selvedge::Result<Vec<_>>>()?;
        let output = DeviceOutput::of_bytes(signature.result, &mut target, layout)?;
        expression.run(stream, &from, &[], &mut [output])?;
        stream.synchronize()
    })
}
