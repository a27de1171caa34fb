//! A program of benchmarks: its command line, and one after another of those that it was asked for.
//!
//! It needs neither cargo nor a source folder when it runs, so it can be carried to another machine.

use std::cell::{RefCell, RefMut};
use std::path::PathBuf;
use std::process::ExitCode;

use super::bare::Bare;
use super::pytorch::PyTorch;
use super::report::Failure;
use super::turns::Turns;

/// The options of the command line.
pub struct Options {
    only: Option<Vec<String>>,
    /// The folder of the JSON files.
    pub out: PathBuf,
    rounds: Option<usize>,
    /// The value of the program's own option.
    pub file: Option<PathBuf>,
    pytorch: RefCell<PyTorch>,
}

impl Options {
    /// A figure's own number of rounds, unless the command line has another.
    pub fn turns(&self, warm_up: usize, rounds: usize) -> Turns {
        Turns { warm_up, rounds: self.rounds.unwrap_or(rounds) }
    }

    /// The bytes that `--bytes` names, or 1 GiB: a power of two from 4 MiB on.
    pub fn bytes(&self) -> Result<usize, Failure> {
        let bytes = match &self.file {
            None => 1 << 30,
            Some(text) => text.to_string_lossy().parse::<usize>()?,
        };
        if bytes < 1 << 22 || !bytes.is_power_of_two() {
            return Err(format!("--bytes {bytes}: a power of two from {} on is wanted", 1 << 22).into());
        }
        Ok(bytes)
    }

    /// The child that all benchmarks of the program share.
    pub fn pytorch(&self) -> RefMut<'_, PyTorch> {
        self.pytorch.borrow_mut()
    }
}

/// Returns whether SELVEDGE_BENCH_ROWS names the row, if it is set.
pub fn is_wanted(row: &str) -> bool {
    match std::env::var("SELVEDGE_BENCH_ROWS") {
        Ok(wanted) => wanted.split(',').any(|text| row.contains(text)),
        Err(_) => true,
    }
}

/// A benchmark's work.
#[derive(Clone, Copy)]
pub enum Benchmark {
    /// It needs a device, and the driver as the reference.
    Device(fn(&Bare, &Options) -> Result<(), Failure>),
    /// It runs on the host alone.
    Host(fn(&Options) -> Result<(), Failure>),
}

/// The benchmarks of one executable.
pub struct Program {
    /// The executable's name.
    pub name: &'static str,
    /// The text that `--help` prints.
    pub help: &'static str,
    /// The option that names a file.
    pub file_option: &'static str,
    /// The benchmarks in the order in which they run.
    pub benchmarks: &'static [(&'static str, Benchmark)],
}

impl Program {
    /// Runs what the arguments ask for.
    pub fn run(&self, arguments: impl Iterator<Item = String>) -> ExitCode {
        let measured = |options: Option<Options>| options.map_or(Ok(()), |options| self.measure(&options));
        report(self.name, self.parse(arguments).and_then(measured))
    }

    fn parse(&self, mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, Failure> {
        let mut options = Options {
            only: None,
            out: PathBuf::from("benches/results"),
            rounds: None,
            file: None,
            pytorch: RefCell::new(PyTorch::new()),
        };
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{}", self.help));
            match argument.as_str() {
                "--only" => options.only = Some(value()?.split(',').map(str::to_owned).collect()),
                "--out" => options.out = PathBuf::from(value()?),
                "--rounds" => {
                    let rounds: usize = value()?.parse()?;
                    if rounds < 20 {
                        return Err("at least 20 rounds".into());
                    }
                    options.rounds = Some(rounds);
                }
                // Cargo adds it.
                "--bench" => {}
                "--help" | "-h" => {
                    print!("{}", self.help);
                    return Ok(None);
                }
                other if other == self.file_option => options.file = Some(PathBuf::from(value()?)),
                other => return Err(format!("'{other}' is no option\n\n{}", self.help).into()),
            }
        }
        Ok(Some(options))
    }

    fn measure(&self, options: &Options) -> Result<(), Failure> {
        for name in options.only.iter().flatten() {
            if !self.benchmarks.iter().any(|(known, _)| known == name) {
                return Err(format!("there is no benchmark '{name}'\n\n{}", self.help).into());
            }
        }
        let wanted = |name: &str| options.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name));
        let chosen: Vec<_> = self.benchmarks.iter().filter(|(name, _)| wanted(name)).collect();
        let needs_device = chosen.iter().any(|(_, benchmark)| matches!(benchmark, Benchmark::Device(_)));
        let bare = if needs_device { Some(Bare::open(0)) } else { None };
        let mut failed = Vec::new();
        for (name, benchmark) in chosen {
            let result = match (benchmark, &bare) {
                (Benchmark::Host(work), _) => work(options),
                (Benchmark::Device(work), Some(Ok(bare))) => {
                    bare.make_current().and_then(|()| work(bare, options))
                }
                (Benchmark::Device(_), Some(Err(why))) => Err(format!("no device: {why}").into()),
                (Benchmark::Device(_), None) => Err("no device was opened".into()),
            };
            // One that fails does not take the others' figures with it.
            if let Err(failure) = result {
                eprintln!("{name}: {failure}");
                failed.push(*name);
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
    }
}

/// The exit code of a result, whose failure is printed.
pub fn report(program: &str, result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{program}: {failure}");
            ExitCode::FAILURE
        }
    }
}
