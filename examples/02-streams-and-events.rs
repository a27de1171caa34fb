//! Two streams share buffers without a wait being written; events measure what the device did.
//!
//! Each operation makes its stream wait for whatever still uses the buffers that it names, so the result is that of the
//! program's order, on however many streams. A wait is issued only where another stream used the buffer last.
//!
//! ```text
//! cargo run --release --example 02-streams-and-events
//! ```

mod common;

use selvedge::driver::{Device, LaunchConfig};

const ELEMENTS: usize = 1 << 24;
const ROUNDS: usize = 20;

fn streams_and_events() -> selvedge::Result<()> {
    let device = Device::new(0)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let saxpy = device.load(include_bytes!("saxpy/saxpy.ptx"))?.function("saxpy")?;
    let config = LaunchConfig::for_elements(ELEMENTS);

    let mut x = first.zeros::<f32>(ELEMENTS)?;
    let ones = first.upload(&vec![1.0f32; ELEMENTS])?;
    let mut out = second.zeros::<f32>(ELEMENTS)?;

    let (mut start, mut end) = (device.timing_event()?, device.timing_event()?);
    start.record(&second)?;
    for round in 0..ROUNDS {
        // The streams take turns: out = x + 1, then x = out.
        let (stream, other) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        // SAFETY: saxpy(const float *x, const float *y, float *out, float a, unsigned n) stays below n in each buffer.
        unsafe { saxpy.launch(stream, config, (&x, &ones, &mut out, 1.0f32, ELEMENTS as u32))? };
        other.copy(&out, &mut x)?;
    }
    // The last round copied on the first stream; the end mark goes behind it, on the stream of the start mark.
    second.wait_for(&first)?;
    end.record(&second)?;

    let result = first.download(&x)?;
    assert!(result.iter().all(|&value| value == ROUNDS as f32));
    end.synchronize()?;
    let milliseconds = start.elapsed_ms(&end)?;
    println!("{ROUNDS} rounds over two streams gave {} everywhere, in {milliseconds:.2} ms", result[0]);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(streams_and_events)
}
