//! Work that is written down once and launched as one operation.
//!
//! A thousand small launches cost the host a few milliseconds each time; captured into a graph they cost it microseconds.
//! Nothing here is unsafe but the launches themselves: the graph holds what it uses, and a launch of it waits for, and is
//! waited for by, every other use of its buffers.
//!
//! ```text
//! cargo run --release --example 08-graphs
//! cargo run --release --example 08-graphs -- graph.dot    # and a picture, for `dot -Tsvg graph.dot`
//! ```

mod common;

use std::time::Instant;

use selvedge::driver::{Captured, Device, LaunchConfig, Stream};

const ELEMENTS: usize = 1 << 16;
const STEPS: usize = 1000;

fn graphs() -> selvedge::Result<()> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let saxpy = device.load(include_bytes!("saxpy/saxpy.ptx"))?.function("saxpy")?;
    let config = LaunchConfig::for_elements(ELEMENTS);

    let ones = stream.upload(&vec![1.0f32; ELEMENTS])?;
    let mut sum = stream.zeros::<f32>(ELEMENTS)?;
    let mut steps = |stream: &Stream| -> selvedge::Result<()> {
        // Memory that is allocated while capturing belongs to the graph, and serves again inside it once it is dropped.
        let mut next = stream.uninitialized::<f32>(ELEMENTS)?;
        for _ in 0..STEPS / 2 {
            // SAFETY: saxpy(const float *x, const float *y, float *out, float a, unsigned n) stays below n.
            unsafe {
                saxpy.launch(stream, config, (&ones, &sum, &mut next, 1.0f32, ELEMENTS as u32))?;
                saxpy.launch(stream, config, (&ones, &next, &mut sum, 1.0f32, ELEMENTS as u32))?;
            }
        }
        Ok(())
    };

    let begun = Instant::now();
    steps(&stream)?;
    let launches = begun.elapsed();
    stream.synchronize()?;

    let (graph, ()) = stream.capture(steps)?;
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(&path, graph.to_dot()?).unwrap_or_else(|error| eprintln!("{path}: {error}"));
    }
    let graph = graph.instantiate()?;
    graph.upload(&stream)?;
    stream.synchronize()?;
    let begun = Instant::now();
    graph.launch(&stream)?;
    let launch = begun.elapsed();
    let result = stream.download(&sum)?;
    assert!(result.iter().all(|&value| value == 2.0 * STEPS as f32));
    println!(
        "{STEPS} launches took the host {launches:.0?}, one of the graph {launch:.0?}; both gave {}",
        result[0]
    );

    // A closure that is captured again when its key changes, here the length.
    let mut filled = Captured::new(|stream: &Stream, &length: &usize| {
        let mut buffer = stream.uninitialized::<f32>(length)?;
        stream.fill(&mut buffer, length as f32)?;
        Ok(buffer)
    });
    for length in [100, 100, 200, 200] {
        let buffer = filled.launch(&stream, length)?;
        assert_eq!(stream.download(buffer)?, vec![length as f32; length]);
    }
    println!("four launches for two lengths were captured {} times", filled.captures());
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(graphs)
}
