//! Bursts of the spiking engine: their time beside the memory traffic and the reductions that they cannot do without, and on the
//! CPU beside a C loop.
//!
//! `cargo bench --features burst --bench burst` measures everything and writes `benches/results/burst*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod on_cpu;
mod probe;
mod steady;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
burst [--only NAME,NAME] [--out FOLDER] [--rounds N] [--neurons N]

  --only     of burst_cpu and burst; all without it
  --out      the folder of the JSON files; benches/results without it
  --rounds   rounds of each figure, at least 20; each benchmark's own without it
  --neurons  of the largest network; 1000000 without it
";

const PROGRAM: Program = Program {
    name: "burst",
    help: HELP,
    file_option: "--neurons",
    benchmarks: &[
        ("burst_cpu", Benchmark::Host(on_cpu::measure)),
        ("burst", Benchmark::Device(steady::measure)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
