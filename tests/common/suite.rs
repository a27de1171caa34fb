//! The harness of suites with many tests: one line a table, and every failure.
//!
//! It takes the arguments of `cargo test` (filters, `--skip`, `--exact`, `--list`, `--test-threads`). A test's table is its name up
//! to the first `::`. `--nocapture` also prints what tests measured. `SELVEDGE_TESTS_TIMES=file` appends the time of each
//! test to that file, from which .ci/run lists the slowest.

#![allow(dead_code, reason = "each test executable uses its own part")]

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed};

use super::sampling::{self, Share};

/// A test by name.
pub struct Test {
    name: String,
    run: Box<dyn FnOnce() -> Result<(), Failed> + Send>,
}

impl Test {
    pub fn new(name: impl Into<String>, run: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Test {
        Test { name: name.into(), run: Box::new(run) }
    }

    /// A test that fails by a panic alone.
    pub fn of(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Test {
        Test::new(name, || {
            run();
            Ok(())
        })
    }

    fn table(&self) -> &str {
        self.name.split_once("::").map_or(&*self.name, |(table, _)| table)
    }
}

/// Prints what a test measured, with `--nocapture` alone.
pub fn detail(text: impl FnOnce() -> String) {
    if std::env::args().any(|argument| argument == "--nocapture") {
        println!("{}", text());
    }
}

/// The tests of one executable.
pub struct Suite {
    name: &'static str,
    arguments: Arguments,
    tests: Vec<Test>,
    /// Tests that the sample left out.
    left_out: usize,
}

/// The sums of a table.
#[derive(Default)]
struct Table {
    tests: usize,
    failed: usize,
    time: Duration,
}

/// A finished test.
struct Finished {
    name: String,
    table: String,
    time: Duration,
    failure: Option<String>,
}

impl Suite {
    pub fn new(name: &'static str) -> Suite {
        Suite { name, arguments: Arguments::from_args(), tests: Vec::new(), left_out: 0 }
    }

    /// Returns whether the tests are only listed.
    pub fn lists(&self) -> bool {
        self.arguments.list
    }

    pub fn add(&mut self, tests: impl IntoIterator<Item = Test>) {
        self.tests.extend(tests);
    }

    /// Adds a share of a table (see `sampling`). A run with a filter takes all that match.
    pub fn sample(&mut self, set: &str, share: Share, tests: Vec<Test>) {
        let all = tests.len();
        let named = self.arguments.filter.is_some() || self.arguments.list;
        let tests = if named { tests } else { sampling::sample(set, share, tests, |test| &test.name) };
        self.left_out += all - tests.len();
        self.tests.extend(tests);
    }

    fn is_chosen(&self, name: &str) -> bool {
        let meets =
            |pattern: &String| if self.arguments.exact { name == pattern } else { name.contains(&**pattern) };
        self.arguments.filter.iter().all(meets) && !self.arguments.skip.iter().any(meets)
    }

    /// Runs the tests and reports them.
    pub fn run(mut self) -> ExitCode {
        let before = self.tests.len();
        let tests = std::mem::take(&mut self.tests);
        let tests: Vec<Test> = tests.into_iter().filter(|test| self.is_chosen(&test.name)).collect();
        let filtered = before - tests.len();
        if self.arguments.list {
            for test in &tests {
                println!("{}: test", test.name);
            }
            return ExitCode::SUCCESS;
        }
        // None of these tests is ignored or a benchmark.
        if self.arguments.ignored || self.arguments.bench {
            return ExitCode::SUCCESS;
        }
        let started = Instant::now();
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let finished = run_all(tests, self.arguments.test_threads.unwrap_or(threads));
        self.report(&finished, filtered, started.elapsed());
        write_times(self.name, &finished);
        match finished.iter().any(|test| test.failure.is_some()) {
            true => ExitCode::from(101),
            false => ExitCode::SUCCESS,
        }
    }

    fn report(&self, finished: &[Finished], filtered: usize, time: Duration) {
        let mut tables: BTreeMap<&str, Table> = BTreeMap::new();
        for test in finished {
            let table = tables.entry(&test.table).or_default();
            table.tests += 1;
            table.failed += usize::from(test.failure.is_some());
            table.time += test.time;
        }
        println!();
        for (name, table) in tables {
            let state = if table.failed > 0 { "FAILED" } else { "ok" };
            let Table { tests, failed, time } = table;
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            println!(
                "{}: {name}: {tests} tests{failed} ... {state} ({:.1} s)",
                self.name,
                time.as_secs_f64()
            );
        }
        for test in finished {
            if let Some(failure) = &test.failure {
                println!("\n---- {} ----\n{failure}", test.name);
            }
        }
        let failed = finished.iter().filter(|test| test.failure.is_some()).count();
        if self.left_out > 0 {
            println!("\n{}: {} more are left out: {}", self.name, self.left_out, sampling::instructions());
        }
        // In the words of libtest, which scripts/run_tests.sh reads.
        println!(
            "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
            if failed > 0 { "FAILED" } else { "ok" },
            finished.len() - failed,
            filtered + self.left_out,
            time.as_secs_f64()
        );
    }
}

fn run_all(tests: Vec<Test>, threads: usize) -> Vec<Finished> {
    let (queue, finished) = (Mutex::new(tests.into_iter()), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(test) = next else { return };
            let test = run_one(test);
            if test.failure.is_some() {
                println!("test {} ... FAILED", test.name);
            }
            finished.lock().unwrap_or_else(PoisonError::into_inner).push(test);
        }
    };
    // One thread alone runs them here, where a debugger and thread-bound libraries expect them.
    if threads <= 1 {
        worker();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(worker);
            }
        });
    }
    finished.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_one(test: Test) -> Finished {
    let (table, started) = (test.table().to_owned(), Instant::now());
    let failure = match catch_unwind(AssertUnwindSafe(test.run)) {
        Ok(Ok(())) => None,
        Ok(Err(failed)) => Some(failed.message().unwrap_or("failed without a message").to_owned()),
        Err(payload) => Some(message(&*payload)),
    };
    Finished { name: test.name, table, time: started.elapsed(), failure }
}

/// The message of a panic.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

fn write_times(suite: &str, finished: &[Finished]) {
    let Some(file) = std::env::var_os("SELVEDGE_TESTS_TIMES").filter(|file| !file.is_empty()) else { return };
    let lines: String = finished
        .iter()
        .map(|test| format!("{:.2} {suite} {}\n", test.time.as_secs_f64(), test.name))
        .collect();
    let file = OpenOptions::new().create(true).append(true).open(&file);
    if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        eprintln!("SELVEDGE_TESTS_TIMES cannot be written: {error}");
    }
}
