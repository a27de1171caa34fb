//! The memory that the pool takes from the driver above its users' requests, by traces that are replayed on the CPU.
//!
//! The code that decides is the pool's own; only the memory is made of numbers, so no device is needed.

use std::time::Instant;

use selvedge::driver::{MemoryTrace, ReplayOptions, ReplayPool};

use crate::Options;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Figure, Rule, Unit};
use crate::harness::turns::{Subject, figure};

const REQUESTS: u32 = 10_000_000;
/// Of the pool without pages, which is for information.
const FEWER: u32 = 1_000_000;
const METHOD: &str = "The most memory that the pool ever had of the driver beside the most that was ever asked of it, \
     counted in replays on the CPU with pages of 2 MiB.";

/// Traces that the generator makes, each of another seed.
pub fn generated(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "replay",
        "Memory above what is asked for: training-like traces",
        &format!(
            "{METHOD} Each round is a trace of another seed: sizes from 512 bytes to gigabytes, weights that stay, \
             activations freed in reverse, lengths that change from step to step, three streams. A use is known to be \
             done 64 requests later."
        ),
    );
    let seeds = options.turns(0, 20).rounds as u64;
    let paged = ReplayOptions::default();
    let mut plain = ReplayOptions::default();
    plain.pool = ReplayPool::Plain;
    for (name, requests, pool, goal) in [
        ("10 million requests", REQUESTS, &paged, Some(1.15)),
        ("1 million requests", FEWER, &paged, Some(1.15)),
        ("1 million requests, no pages", FEWER, &plain, None),
    ] {
        let started = Instant::now();
        let mut pairs = Vec::new();
        for seed in 1..=seeds {
            pairs.push(replay(&MemoryTrace::training_like(seed, requests), pool)?);
        }
        recorder.add(found(name, &pairs, goal)?);
        println!("    {seeds} traces in {:.1} s", started.elapsed().as_secs_f64());
    }
    recorder.finish(&options.out)
}

/// A trace that was recorded, named by `--trace`.
pub fn recorded(options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::on_host(
        "replay_recorded",
        "Memory above what is asked for: a recorded trace",
        &format!("{METHOD} Each round takes the device to be further behind the host, by 16 requests more."),
    );
    let Some(path) = &options.file else {
        recorder.skip("a recorded trace: none was named by --trace.");
        return recorder.finish(&options.out);
    };
    let trace = MemoryTrace::from_json(&std::fs::read_to_string(path)?)?;
    let mut pairs = Vec::new();
    for round in 0..options.turns(0, 20).rounds as u64 {
        let mut pool = ReplayOptions::default();
        pool.lag = 16 * round;
        pairs.push(replay(&trace, &pool)?);
    }
    let name = format!("{}, {} requests", trace.device, trace.requests());
    recorder.add(found(&name, &pairs, Some(1.15))?);
    recorder.finish(&options.out)
}

/// The peaks of what was reserved and of what was asked for, in GiB.
fn replay(trace: &MemoryTrace, options: &ReplayOptions) -> Result<(f64, f64), Failure> {
    let report = trace.replay(options)?;
    if report.refused > 0 {
        return Err(format!("{} requests were refused", report.refused).into());
    }
    let gibibytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let statistics = &report.statistics;
    Ok((gibibytes(statistics.peak_reserved_bytes), gibibytes(statistics.peak_requested_bytes)))
}

fn found(name: &str, pairs: &[(f64, f64)], goal: Option<f64>) -> Result<Figure, Failure> {
    let subject =
        Subject { name, against: "asked for", unit: Unit::Gibibytes, bytes: None, rule: Rule::Memory, goal };
    Ok(Figure { order: "counted, not timed".to_owned(), ..figure(&subject, pairs)? })
}
