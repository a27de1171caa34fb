//! The CPU device beside NumPy, in turns on one pinned core, and two cores beside one; needs no GPU.
//!
//! `cargo bench --features io --bench cpu` measures everything and writes `benches/results/cpu*.json`, of which
//! `cargo bench --bench ground -- render` makes the page. `-- --help` says the rest.

#[allow(dead_code, reason = "the other programs use the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

mod cores;
mod numpy;
mod passes;
mod rows;

use std::path::Path;
use std::process::{Command, ExitCode};

use harness::machine::{Recorder, processor};
use harness::program::{Benchmark, Options, Program, is_wanted};
use harness::report::Failure;
use numpy::Numpy;
use rows::Row;

const HELP: &str = "\
cpu [--only NAME,NAME] [--out FOLDER] [--rounds N] [--core N]

  --only    of cpu_cores, cpu_first, cpu, cpu_memory; all without it
  --out     where the JSON files go; benches/results without it
  --rounds  rounds of each figure, at least 20; 20 without it
  --core    the core of cpu_first, cpu and cpu_memory, to which taskset pins both sides; 0 without it

SELVEDGE_BENCH_PYTHON names the Python whose NumPy takes turns with ours; python3 without it. SELVEDGE_BENCH_ROWS=TEXT,TEXT
measures only the rows whose names have one of the texts.
";

/// Elements of an array that the first-level cache holds three of, even of 8 bytes in 48 KiB.
const IN_FIRST: usize = 1 << 11;
/// Elements of an array that the last-level cache holds.
const IN_CACHE: usize = 1 << 20;
/// Elements of an array that it does not hold.
const IN_MEMORY: usize = 1 << 24;
/// The goal of every row in memory.
const GOAL_IN_MEMORY: f64 = 1.6;

const METHOD: &str = "one thread of each, pinned to one core, in turns. Each side makes its own random arrays of the same \
     distribution. NumPy writes into an array that is there wherever a call takes `out=`; ours returns a new tensor each \
     time, and it is dropped. A side's time of a round is that of the fastest block of calls in its turn of 3 ms, or of three \
     calls if they take longer. Integers are divided by `floor_divide`. Files are written \
     to a file system in memory.";

const PROGRAM: Program = Program {
    name: "cpu",
    help: HELP,
    file_option: "--core",
    benchmarks: &[
        // Before the process is pinned.
        ("cpu_cores", Benchmark::Host(cores::measure)),
        ("cpu_first", Benchmark::Host(in_first_cache)),
        ("cpu", Benchmark::Host(in_cache)),
        ("cpu_memory", Benchmark::Host(in_memory)),
    ],
};

fn main() -> ExitCode {
    PROGRAM.run(std::env::args().skip(1))
}

/// Arrays in the first-level cache, for which the cost of a call counts most.
fn in_first_cache(options: &Options) -> Result<(), Failure> {
    let title = "The CPU beside NumPy, in the first-level cache";
    beside_numpy(options, "cpu_first", title, "2^11 elements", (3, &|| rows::of_count(IN_FIRST)))
}

/// Arrays in the cache, and the rows of one size.
fn in_cache(options: &Options) -> Result<(), Failure> {
    // In memory if possible: a disk's writes of other programs would be measured too.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let rows = || {
        let mut rows = rows::of_count(IN_CACHE);
        rows.extend(rows::random(IN_CACHE));
        rows.extend(rows::of_one_size(folder.path()));
        rows
    };
    beside_numpy(
        options,
        "cpu",
        "The CPU beside NumPy, in the cache",
        "2^20 elements unless said",
        (3, &rows),
    )
}

/// Arrays in memory.
fn in_memory(options: &Options) -> Result<(), Failure> {
    let rows = || {
        let mut rows = rows::of_count(IN_MEMORY);
        rows.iter_mut().for_each(|row| row.goal = GOAL_IN_MEMORY);
        rows
    };
    beside_numpy(options, "cpu_memory", "The CPU beside NumPy, in memory", "2^24 elements", (1, &rows))
}

fn beside_numpy(
    options: &Options,
    name: &str,
    title: &str,
    size: &str,
    (passes, rows): (usize, &dyn Fn() -> Vec<Row>),
) -> Result<(), Failure> {
    pin(options.file.as_deref())?;
    let mut numpy = Numpy::start()?;
    let mut method = format!("{size}, beside {}: {METHOD}", numpy.library);
    if passes > 1 {
        method += &format!(
            " All rows are measured {passes} times, and of each row the pass is given in which both sides together took least."
        );
    }
    let mut recorder = Recorder::on_host(name, title, &method);
    let rows = || rows().into_iter().filter(|row| is_wanted(&row.name)).collect();
    passes::record(options, &mut recorder, &mut numpy, (passes, &rows))?;
    recorder.finish(&options.out)
}

/// Pins this thread, and the threads and processes that it starts, to a core.
fn pin(core: Option<&Path>) -> Result<(), Failure> {
    // The report names all cores.
    processor();
    selvedge::set_threads(1);
    let core = core.unwrap_or(Path::new("0"));
    let status = Command::new("taskset")
        .args(["-p", "-c"])
        .arg(core)
        .arg(std::process::id().to_string())
        .stdout(std::process::Stdio::null())
        .status()
        .map_err(|why| format!("taskset could not be started ({why})"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("taskset: core {} is not to be had", core.display()).into())
    }
}
