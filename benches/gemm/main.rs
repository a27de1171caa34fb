//! Matrix products beside cuBLAS in the same process, in device time.
//!
//! `cargo bench --bench gemm` measures everything and writes `benches/results/gemm_*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` says the rest.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod first;
mod fused;
mod pair;
mod programmatic;
mod random;
mod shapes;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program, report};

const HELP: &str = "\
gemm [--only NAME,NAME] [--out FOLDER] [--rounds N] [--cublas PATH]

  --only    of first, square, gpt, gradients, fused, small, programmatic, skinny, batched, plain, older, random; all
            without it
  --out     where the JSON files go; benches/results without it
  --rounds  rounds of each figure, at least 20
  --cublas  the reference's library; without it SELVEDGE_BENCH_CUBLAS, the linker's, the toolkit's or python3's
";

const PROGRAM: Program = Program {
    name: "gemm",
    help: HELP,
    file_option: "--cublas",
    benchmarks: &[
        // Whole processes before this one holds memory on the device.
        ("first", Benchmark::Device(first::measure)),
        ("square", Benchmark::Device(shapes::square)),
        ("gpt", Benchmark::Device(shapes::gpt)),
        ("gradients", Benchmark::Device(shapes::gradients)),
        ("fused", Benchmark::Device(fused::measure)),
        ("small", Benchmark::Device(shapes::small)),
        ("programmatic", Benchmark::Device(programmatic::measure)),
        ("skinny", Benchmark::Device(shapes::skinny)),
        ("batched", Benchmark::Device(shapes::batched)),
        ("plain", Benchmark::Device(shapes::plain)),
        ("older", Benchmark::Device(shapes::older)),
        ("random", Benchmark::Device(random::measure)),
    ],
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    // First of all, so that the children of `first` do nothing but their steps.
    if let Some(result) = arguments.peek().and_then(|argument| first::child(argument)) {
        return report(PROGRAM.name, result);
    }
    PROGRAM.run(arguments)
}
