//! A program's memory: the peak of a scope, a snapshot of all blocks, and a trace of every request, which can be replayed on
//! a machine without a GPU.
//!
//! ```text
//! cargo run --release --example 09-memory -- snapshot.json trace.json
//! selvedge memory snapshot.json -o map.svg
//! selvedge memory replay trace.json -o replay.svg
//! ```

mod common;

use selvedge::driver::{Device, DeviceBuffer, MemorySnapshot, ReplayOptions, ReplayPool, Stream};

const LAYERS: usize = 24;

/// Allocates buffers as a training step does: layer by layer in the forward pass, freed in reverse order. Returns the
/// snapshot at the peak, between the two passes.
fn step(stream: &Stream, rows: usize) -> selvedge::Result<MemorySnapshot> {
    let mut kept: Vec<DeviceBuffer<f32>> = Vec::new();
    for layer in 0..LAYERS {
        let mut activation = stream.uninitialized(rows * 4096)?;
        stream.fill(&mut activation, layer as f32)?;
        // Dropped at the end of the layer, and soon used again.
        let _workspace = stream.zeros::<u8>(rows * (1 + layer % 3) * 10_000)?;
        kept.push(activation);
    }
    let snapshot = stream.device().memory_snapshot()?;
    while let Some(activation) = kept.pop() {
        let mut gradient = stream.uninitialized::<f32>(activation.len())?;
        stream.copy(&activation, &mut gradient)?;
    }
    Ok(snapshot)
}

fn memory() -> selvedge::Result<()> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    device.start_memory_trace()?;
    let weights = stream.zeros::<f32>(16 << 20)?;

    let mut snapshot = MemorySnapshot::default();
    for rows in [128, 700, 300, 1024, 513] {
        let scope = device.memory_scope("a step");
        snapshot = step(&stream, rows)?;
        println!("a step of {rows} rows took {} MiB at most", scope.finish().peak_bytes >> 20);
    }

    let numbers = device.pool_statistics();
    println!(
        "now {} MiB are live and {} MiB are kept for what comes; {} of {} requests did not ask the driver",
        numbers.live_bytes >> 20,
        numbers.cached_bytes >> 20,
        numbers.hits,
        numbers.requests
    );
    drop(weights);

    // The same requests in other circumstances, without a device.
    let trace = device.finish_memory_trace()?;
    for pool in [ReplayPool::Paged, ReplayPool::Plain] {
        let mut options = ReplayOptions::default();
        options.pool = pool;
        let ratio = trace.replay(&options)?.ratio();
        println!("a pool of {pool:?} memory reserves {ratio:.3} of what is asked for at most");
    }

    let mut paths = std::env::args().skip(1);
    for text in [snapshot.to_json(), trace.to_json()] {
        if let Some(path) = paths.next() {
            std::fs::write(&path, text).unwrap_or_else(|error| eprintln!("{path}: {error}"));
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(memory)
}
