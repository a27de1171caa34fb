//! Functions of numerical models, beside the driver's copy and in turns with PyTorch.
//!
//! `cargo bench --features catalogue --bench catalogue` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod streaming;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
catalogue [--only NAME,NAME] [--out FOLDER] [--rounds N] [--bytes N]

  --only    of catalogue; all without it
  --out     the folder of the JSON files; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --bytes   of each operand: a power of two from 4194304 on; 1073741824 without it, so that no cache holds it

SELVEDGE_BENCH_PYTHON names the Python whose PyTorch takes turns with ours; python3 without it, and none leaves it out.
";

const PROGRAM: Program = Program {
    name: "catalogue",
    help: HELP,
    file_option: "--bytes",
    benchmarks: &[("catalogue", Benchmark::Device(streaming::measure))],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
