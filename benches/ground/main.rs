//! The cost of the thin layer, beside the bare driver in the same process: launches, copies, the way from the start
//! of a process to a first result.
//!
//! `cargo bench --bench ground` measures everything and writes `benches/results/*.json`; `-- render` makes
//! `benches/RESULTS.md` of them, which needs no GPU. `-- --help` says the rest. The program needs neither cargo nor a
//! source folder when it runs, so it can be carried to another machine.

#[path = "../harness/mod.rs"]
mod harness;

mod first_result;
mod launch;
mod pageable;
mod peer;
mod transfer;
mod vector_add;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use harness::bare::Bare;
use harness::report::{Failure, page, plot, read_all, read_notes};
use harness::turns::Turns;

const HELP: &str = "\
ground [--only NAME,NAME] [--out FOLDER] [--rounds N] [--baseline PATH]
ground render

  --only      of launch, transfer, pageable, peer, first_result, vector_add; all without it
  --out       where the JSON files go; benches/results without it
  --rounds    rounds of each figure, at least 20; each benchmark's own without it
  --baseline  csrc/bench/first_result.c as a program; built with cc, or found beside this one, without it
  render      makes benches/RESULTS.md and its plot from benches/results
";

/// What the command line says.
pub struct Options {
    only: Option<Vec<String>>,
    out: PathBuf,
    rounds: Option<usize>,
    baseline: Option<PathBuf>,
}

impl Options {
    fn turns(&self, warm_up: usize, rounds: usize) -> Turns {
        Turns { warm_up, rounds: self.rounds.unwrap_or(rounds) }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    // First of all, so that the child of `first_result` does nothing but its steps.
    if arguments.peek().is_some_and(|first| first == first_result::ARGUMENT) {
        return report(first_result::run_own());
    }
    if arguments.peek().is_some_and(|first| first == "render") {
        return report(render(Path::new("benches")));
    }
    report(parse(arguments).and_then(|options| options.map_or(Ok(()), |options| measure(&options))))
}

fn report(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ground: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, Failure> {
    let mut options =
        Options { only: None, out: PathBuf::from("benches/results"), rounds: None, baseline: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{HELP}"));
        match argument.as_str() {
            "--only" => options.only = Some(value()?.split(',').map(str::to_owned).collect()),
            "--out" => options.out = PathBuf::from(value()?),
            "--baseline" => options.baseline = Some(PathBuf::from(value()?)),
            "--rounds" => {
                let rounds: usize = value()?.parse()?;
                if rounds < 20 {
                    return Err("at least 20 rounds".into());
                }
                options.rounds = Some(rounds);
            }
            // What cargo adds.
            "--bench" => {}
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(format!("'{other}' is no option\n\n{HELP}").into()),
        }
    }
    Ok(Some(options))
}

type Benchmark = fn(&Bare, &Options) -> Result<(), Failure>;

const BENCHMARKS: [(&str, Benchmark); 6] = [
    // Whole processes before this one holds memory on the device, and launches while it is cool.
    ("first_result", first_result::measure),
    ("launch", launch::measure),
    ("transfer", transfer::measure),
    ("pageable", pageable::measure),
    ("peer", peer::measure),
    ("vector_add", vector_add::measure),
];

fn measure(options: &Options) -> Result<(), Failure> {
    for name in options.only.iter().flatten() {
        if !BENCHMARKS.iter().any(|(known, _)| known == name) {
            return Err(format!("there is no benchmark '{name}'\n\n{HELP}").into());
        }
    }
    let bare = Bare::open(0)?;
    let mut failed = Vec::new();
    for (name, benchmark) in BENCHMARKS {
        if options.only.as_ref().is_none_or(|only| only.iter().any(|wanted| wanted == name)) {
            // One that fails does not take the others' figures with it.
            bare.make_current()?;
            if let Err(failure) = benchmark(&bare, options) {
                eprintln!("{name}: {failure}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

fn render(benches: &Path) -> Result<(), Failure> {
    let reports = read_all(&benches.join("results"))?;
    let notes = read_notes(&benches.join("notes.json"))?;
    std::fs::write(benches.join("RESULTS.md"), page::render(&reports, &notes))?;
    if !reports.is_empty() {
        std::fs::write(benches.join("results/ratios.svg"), plot::render(&reports))?;
    }
    println!("{} reports -> {}", reports.len(), benches.join("RESULTS.md").display());
    Ok(())
}
