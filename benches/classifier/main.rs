//! The active-inference classifier: one row with its result on the host, and large batches, by one kernel and by several.
//!
//! `cargo bench --features classifier --bench classifier` measures everything and writes `benches/results/classifier.json`, of
//! which `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod classify;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
classifier [--only NAME,NAME] [--out FOLDER] [--rounds N] [--rows N]

  --only    of classifier; all without it
  --out     the folder of the JSON files; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --rows    of the batch; 65536 without it
";

const PROGRAM: Program = Program {
    name: "classifier",
    help: HELP,
    file_option: "--rows",
    benchmarks: &[("classifier", Benchmark::Device(classify::measure))],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
