//! The cost of elementwise expressions: their bandwidth beside the driver's copy, the host's time for a run beside a bare
//! launch of the same kernel, both in turns with PyTorch too, and the first use of an expression; on the CPU, chains of them
//! beside `ndarray`, for which no GPU is needed.
//!
//! `cargo bench --bench fuse` measures everything and writes `benches/results/*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` says the rest.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod check;
mod first_use;
mod functions;
mod host_time;
mod on_cpu;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program, report};

const HELP: &str = "\
fuse [--only NAME,NAME] [--out FOLDER] [--rounds N] [--bytes N]

  --only    of fuse, fuse_list, fuse_host, fuse_first, fuse_cpu; all without it
  --out     where the JSON files go; benches/results without it
  --rounds  rounds of each figure, at least 20; each benchmark's own without it
  --bytes   of one operand of fuse: a power of four from 4194304 on; 1073741824 without it, so that no cache holds it

SELVEDGE_BENCH_PYTHON names the Python whose PyTorch takes turns with ours; python3 without it, and none leaves it out.
";

const PROGRAM: Program = Program {
    name: "fuse",
    help: HELP,
    file_option: "--bytes",
    benchmarks: &[
        ("fuse_host", Benchmark::Device(host_time::measure)),
        ("fuse_first", Benchmark::Device(first_use::measure)),
        ("fuse", Benchmark::Device(speed::measure)),
        ("fuse_list", Benchmark::Device(functions::measure)),
        ("fuse_cpu", Benchmark::Host(on_cpu::measure)),
    ],
};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(word) if word == first_use::ARGUMENT => {
            report(first_use::ARGUMENT, first_use::child(&arguments.collect::<Vec<_>>()))
        }
        first => {
            // The driver's cache of assembled kernels: empty at first, and this program's and its children's alone.
            let cache =
                Folder(std::env::temp_dir().join(format!("selvedge-bench-fuse-{}", std::process::id())));
            if let Err(why) = std::fs::create_dir_all(&cache.0) {
                return report(PROGRAM.name, Err(format!("{}: {why}", cache.0.display()).into()));
            }
            // SAFETY: no other thread runs yet in this program.
            unsafe {
                std::env::set_var("CUDA_CACHE_PATH", &cache.0);
                std::env::remove_var("CUDA_CACHE_DISABLE");
            }
            PROGRAM.run(first.into_iter().chain(arguments))
        }
    }
}
