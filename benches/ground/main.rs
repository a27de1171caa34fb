//! The cost of the thin layer, beside the bare driver in the same process: launches, copies, the time from the start of a
//! process to a first result.
//!
//! `cargo bench --bench ground` measures everything and writes `benches/results/*.json`; `-- render` makes
//! `benches/RESULTS.md` of the results of every program here, which needs no GPU. `-- --help` says the rest.

#[allow(dead_code, reason = "the other program uses the rest of it")]
#[path = "../harness/mod.rs"]
mod harness;

#[cfg(feature = "io")]
mod files;
mod first_result;
mod launch;
mod pageable;
mod peer;
mod run_source;
mod transfer;
mod vector_add;

use std::path::Path;
use std::process::ExitCode;

use harness::program::{Benchmark, Options, Program, report};
use harness::report::{Failure, page, plot, read_all, read_notes, read_others};

const HELP: &str = "\
ground [--only NAME,NAME] [--out FOLDER] [--rounds N] [--baseline PATH]
ground render

  --only      of launch, transfer, pageable, files (with the feature io), peer, first_result, run_source, vector_add; all without
              it
  --out       where the JSON files go; benches/results without it
  --rounds    rounds of each figure, at least 20; each benchmark's own without it
  --baseline  csrc/bench/first_result.c as a program; built with cc, or found beside this one, without it
  render      makes benches/RESULTS.md and its plot from benches/results
";

const PROGRAM: Program = Program {
    name: "ground",
    help: HELP,
    file_option: "--baseline",
    benchmarks: &[
        // Whole processes before this one holds memory on the device, and launches while it is cool.
        ("first_result", Benchmark::Device(first_result::measure)),
        ("run_source", Benchmark::Device(run_source::measure)),
        ("launch", Benchmark::Device(launch::measure)),
        ("transfer", Benchmark::Device(transfer::measure)),
        ("pageable", Benchmark::Device(pageable::measure)),
        #[cfg(feature = "io")]
        ("files", Benchmark::Device(files::measure)),
        ("peer", Benchmark::Device(peer::measure)),
        ("vector_add", Benchmark::Device(vector_add::measure)),
    ],
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    // First of all, so that the child of `first_result` does nothing but its steps.
    if arguments.peek().is_some_and(|first| first == first_result::ARGUMENT) {
        return report(PROGRAM.name, first_result::run_own());
    }
    if arguments.peek().is_some_and(|first| first == "render") {
        return report(PROGRAM.name, render(Path::new("benches")));
    }
    PROGRAM.run(arguments)
}

fn render(benches: &Path) -> Result<(), Failure> {
    let results = benches.join("results");
    let reports = read_all(&results)?;
    let (notes, others) = (read_notes(&benches.join("notes.json"))?, read_others(&results)?);
    std::fs::write(benches.join("RESULTS.md"), page::render(&reports, &notes, others.as_ref()))?;
    for picture in plot::render(&reports) {
        std::fs::write(results.join(picture.file), picture.svg)?;
    }
    println!("{} reports -> {}", reports.len(), benches.join("RESULTS.md").display());
    Ok(())
}
