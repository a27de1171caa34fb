//! Optimizers, and steps of training, in turns with PyTorch and with each other.
//!
//! `cargo bench --features nn --bench nn` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod on_cpu;
mod operations;
mod steps;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
nn [--only NAME,NAME] [--out FOLDER] [--rounds N] [--parameters N]

  --only        of nn, nn_steps and nn_cpu; all without it
  --out         the folder of the JSON files; benches/results without it
  --rounds      rounds of each figure, at least 20; each benchmark's own without it
  --parameters  of the optimizer, in rows of 768; 124416000 without it, about GPT-2's

SELVEDGE_BENCH_PYTHON names the Python whose PyTorch takes turns with ours; python3 without it, and none leaves it out.
";

const PROGRAM: Program = Program {
    name: "nn",
    help: HELP,
    file_option: "--parameters",
    benchmarks: &[
        ("nn", Benchmark::Device(operations::measure)),
        ("nn_steps", Benchmark::Device(steps::measure)),
        ("nn_cpu", Benchmark::Host(on_cpu::measure)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
