//! Steps of training of GPT-2 and a Llama, in turns with PyTorch on the same GPU.
//!
//! `cargo bench --features nn --bench training -- 124M-64` measures one row of [`rows::ROWS`] and writes
//! `benches/results/training.json`, of which `cargo bench --bench ground -- render` makes the page. `-- --help` lists the rows.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod own;
mod reference;
mod rows;
mod steps;

use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program};

const HELP: &str = "\
training [ROW ...] [--out FOLDER] [--rounds N]

  ROW       of 124M-64, 124M-16, 124M-16-f32, 350M-16, 774M-8, 1558M-16 and llama-4: a model, its sequences a step, and
            f32 for a step without bf16; all without one
  --out     the folder of training.json; benches/results without it. Rows that are not measured stay as they are there, if
            the same commit measured them on the same kind of device
  --rounds  rounds of each figure, at least 20; 20 without it

SELVEDGE_BENCH_PYTHON names the Python whose PyTorch takes turns with ours; python3 without it, and none leaves it out: then our
figures are printed alone. TORCHINDUCTOR_CACHE_DIR names the folder in which torch.compile keeps its kernels and its autotuning.
SELVEDGE_BENCH_COMMIT is the commit of the report where there is no git.
";

const PROGRAM: Program = Program {
    name: "training",
    help: HELP,
    file_option: "--rows",
    benchmarks: &[("training", Benchmark::Device(steps::measure))],
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut rows = Vec::new();
    while let Some(row) = arguments.next_if(|argument| !argument.starts_with('-')) {
        rows.push(row);
    }
    let option = if rows.is_empty() { Vec::new() } else { vec!["--rows".to_owned(), rows.join(",")] };
    PROGRAM.run(option.into_iter().chain(arguments))
}
