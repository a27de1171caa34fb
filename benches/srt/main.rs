//! Golden-ratio operations: their bandwidth beside the driver's copy, products beside plain ones, and a generation of the evolver.
//!
//! `cargo bench --features srt --bench srt` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod elementwise;
mod products;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
srt [--only NAME,NAME] [--out FOLDER] [--rounds N] [--bytes N]

  --only    of srt and srt_products; all without it
  --out     the folder of the JSON files; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --bytes   of the array: a power of two from 4194304 on; 1073741824 without it, so that no cache holds it

SELVEDGE_BENCH_PYTHON names the Python whose PyTorch takes turns with ours; python3 without it, and none leaves it out.
";

const PROGRAM: Program = Program {
    name: "srt",
    help: HELP,
    file_option: "--bytes",
    benchmarks: &[
        ("srt", Benchmark::Device(elementwise::measure)),
        ("srt_products", Benchmark::Device(products::measure)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
