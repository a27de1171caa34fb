//! Attention that stores no scores, in turns with PyTorch's kernels, and beside attention that stores them.
//!
//! `cargo bench --features nn --bench attention` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod arrays;
mod composed;
mod on_cpu;
mod passes;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
attention [--only NAME,NAME] [--out FOLDER] [--rounds N] [--lengths N,N]

  --only     of attention_composed, attention_forward, attention_backward and attention_cpu; all without it
  --out      the folder of the JSON files; benches/results without it
  --rounds   rounds of each figure, at least 20; each benchmark's own without it
  --lengths  of attention_forward and attention_backward: powers of two up to 16384; 1024,2048,4096,8192,16384 without it

SELVEDGE_BENCH_PYTHON names the Python whose PyTorch takes turns with ours; python3 without it, and none leaves it out: then our times
are printed alone. SELVEDGE_BENCH_ROWS=TEXT,TEXT measures only the rows whose names have one of the texts.
`taskset -c 0,1` before the command gives both sides of attention_cpu two cores.
";

const PROGRAM: Program = Program {
    name: "attention",
    help: HELP,
    file_option: "--lengths",
    benchmarks: &[
        // First, because a peak of memory is that since the start.
        ("attention_composed", Benchmark::Device(composed::measure)),
        ("attention_forward", Benchmark::Device(passes::forward)),
        ("attention_backward", Benchmark::Device(passes::backward)),
        ("attention_cpu", Benchmark::Host(on_cpu::measure)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
