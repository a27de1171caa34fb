//! The cost of memory and graphs, beside the bare driver in the same process: allocations, the pool's memory above the
//! live bytes, copies in both directions beside kernels, graphs.
//!
//! `cargo bench --bench memory` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` says the rest.

#[allow(dead_code, reason = "the other program uses the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod allocation;
mod batch;
mod graph;
mod graph_launch;
mod overlap;
mod replay;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
memory [--only NAME,NAME] [--out FOLDER] [--rounds N] [--trace PATH]

  --only    of allocation, graph_launch, graph, overlap, batch, replay, replay_recorded; all without it; the last two
            need no device
  --out     where the JSON files go; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --trace   a recorded memory trace, for replay_recorded
";

const PROGRAM: Program = Program {
    name: "memory",
    help: HELP,
    file_option: "--trace",
    benchmarks: &[
        ("allocation", Benchmark::Device(allocation::measure)),
        ("graph_launch", Benchmark::Device(graph_launch::measure)),
        ("graph", Benchmark::Device(graph::measure)),
        ("overlap", Benchmark::Device(overlap::measure)),
        ("batch", Benchmark::Device(batch::measure)),
        ("replay", Benchmark::Host(replay::generated)),
        ("replay_recorded", Benchmark::Host(replay::recorded)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
