//! The cost of the launcher: a run by name beside a bare launch, a compile that the cache answers at first use in a process,
//! and a cold one beside bare NVRTC.
//!
//! `cargo bench --bench launcher` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` says the rest.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod bare_nvrtc;
mod by_name;
mod compile;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program, report};

const HELP: &str = "\
launcher [--only NAME,NAME] [--out FOLDER] [--rounds N] [--nvrtc PATH]

  --only    of run_by_name, compile; both without it
  --out     where the JSON files go; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --nvrtc   the NVRTC of both sides; the one that the crate finds without it
";

const PROGRAM: Program = Program {
    name: "launcher",
    help: HELP,
    file_option: "--nvrtc",
    benchmarks: &[
        ("run_by_name", Benchmark::Device(by_name::measure)),
        ("compile", Benchmark::Device(compile::measure)),
    ],
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(word) if word == compile::ARGUMENT => {
            report(compile::ARGUMENT, compile::first_use(&arguments.collect::<Vec<_>>()))
        }
        first => PROGRAM.run(first.into_iter().chain(arguments)),
    }
}
