//! Decoder models beside transformers and PyTorch, and the attention of a cache beside the driver's copy.
//!
//! `cargo bench --features nn --bench models` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` lists the options.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod cached_attention;
mod decoding;
mod loading;
mod on_cpu;
mod prefill;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
models [--only NAME,NAME] [--out FOLDER] [--rounds N] [--ids N]

  --only    of decode_attention, decoding, batch_invariance, prefill, loading and decoding_on_cpu; all without it
  --out     the folder of the JSON files; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --ids     new ids of a sample of decoding; 64 without it

SELVEDGE_BENCH_PYTHON names the Python whose transformers take turns with ours; python3 without it, and none leaves them out: then our
times are printed alone. SELVEDGE_BENCH_ROWS=TEXT,TEXT measures only the rows whose names have one of the texts.
";

const PROGRAM: Program = Program {
    name: "models",
    help: HELP,
    file_option: "--ids",
    benchmarks: &[
        ("decode_attention", Benchmark::Device(cached_attention::measure)),
        ("decoding", Benchmark::Device(decoding::measure)),
        ("batch_invariance", Benchmark::Device(decoding::measure_invariance)),
        ("prefill", Benchmark::Device(prefill::measure)),
        ("loading", Benchmark::Device(loading::measure)),
        ("decoding_on_cpu", Benchmark::Host(on_cpu::measure)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}
