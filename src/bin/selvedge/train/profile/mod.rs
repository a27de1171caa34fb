//! `selvedge train --profile`: a trace of some steps, and the time and the bound of each kernel of a step.
//!
//! `work` sums the kernels, `peaks` has the limits of cards, and `picture` draws the bars. A profile never ends a run: a trace that
//! cannot be written is said at the start, and a failure later at the end.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use selvedge::nn::{LanguageModel, StepReport, Trainer};
use selvedge::{Device, Error, trace};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::options::TrainOptions;
use crate::output::{Style, Table, grouped, microseconds, shortened};
use crate::trace::read;

mod peaks;
mod picture;
mod work;

use peaks::Peaks;
use work::{Profile, Work};

/// The steps that are profiled unless others are given: those after the first ones, which compile kernels.
const FIRST: u64 = 3;
const STEPS: u64 = 3;
/// Lines of the table.
const LISTED: usize = 40;
/// The most letters of an operation with its operands in the table.
const LETTERS: usize = 56;

#[derive(Debug, PartialEq)]
enum State {
    Waiting,
    Tracing,
    Traced,
    /// There will be no profile, for this reason.
    Failed(String),
}

/// The profiler of a run.
pub struct Profiler {
    path: PathBuf,
    picture: PathBuf,
    steps: RangeInclusive<u64>,
    state: State,
}

/// Returns the steps to profile of a run that continues after `done` steps.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for steps that the run does not take.
fn profiled(given: Option<RangeInclusive<u64>>, done: u64, last: u64) -> Result<RangeInclusive<u64>, Error> {
    let Some(steps) = given else {
        let first = (done + FIRST).min(last);
        return Ok(first..=(first + STEPS - 1).min(last));
    };
    if *steps.start() <= done || *steps.end() > last {
        let first = done + 1;
        return Err(Error::InvalidArgument {
            operation: "train --profile",
            found: format!("--steps {}..{}", steps.start(), steps.end()),
            wanted: format!("steps of this run, which takes {first} to {last}; a larger --steps N goes on"),
        });
    }
    Ok(steps)
}

impl Profiler {
    /// Returns the profiler of a run that continues after `done` steps, if one is wanted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for steps that the run does not take.
    pub fn new(options: &TrainOptions, done: u64, last: u64) -> Result<Option<Profiler>, Failure> {
        let Some(path) = &options.profile else { return Ok(None) };
        let steps = profiled(options.profiled_steps(), done, last)?;
        let state = if done >= last {
            State::Failed("the run has no step left".to_owned())
        } else {
            // A trace that cannot be written would be known only at its steps.
            match trace::start(path).and_then(|()| trace::stop()) {
                Ok(()) => State::Waiting,
                Err(error) => State::Failed(error.to_string()),
            }
        };
        Ok(Some(Profiler { path: path.clone(), picture: PathBuf::new(), steps, state }))
    }

    /// Sets the picture's path, beside that of the losses.
    pub fn set_picture(&mut self, losses: &Path) {
        let stem = losses.file_stem().unwrap_or(losses.as_os_str()).to_string_lossy();
        self.picture = losses.with_file_name(format!("{stem}-profile.svg"));
    }

    /// Returns why there will be no profile.
    pub fn failure(&self) -> Option<&str> {
        match &self.state {
            State::Failed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Takes the trainer's next step, traced if it is among the steps.
    ///
    /// # Errors
    ///
    /// As [`Trainer::step`].
    pub fn step(&mut self, trainer: &mut Trainer<impl LanguageModel>) -> Result<StepReport, Error> {
        let step = trainer.step_count() + 1;
        if self.state == State::Waiting && step == *self.steps.start() {
            self.state = match trace::start(&self.path) {
                Ok(()) => State::Tracing,
                Err(error) => State::Failed(error.to_string()),
            };
        }
        if self.state != State::Tracing {
            return trainer.step();
        }
        let result = {
            let _step = trace::range(name_of(step));
            trainer.step_uncaptured()
        };
        if result.is_err() || step == *self.steps.end() {
            self.stop();
        }
        result
    }

    fn stop(&mut self) {
        if self.state == State::Tracing {
            self.state = match trace::stop() {
                Ok(()) => State::Traced,
                Err(error) => State::Failed(error.to_string()),
            };
        }
    }

    /// Returns the text and the JSON of the profile, and draws its picture.
    pub fn finish(mut self, device: &Device) -> (String, Value) {
        self.stop();
        let failed = |reason: String| (format!("\nNo profile: {reason}\n"), json!({ "error": reason }));
        match self.state {
            State::Failed(reason) => return failed(reason),
            State::Traced => {}
            State::Waiting | State::Tracing => {
                let first = self.steps.start();
                return failed(format!("the run ended before step {first}, the first one to trace"));
            }
        }
        let trace = match read(&self.path) {
            Ok(trace) => trace,
            Err(failure) => return failed(failure.message),
        };
        let peaks = device.as_cuda().map(Peaks::of).transpose();
        let (peaks, no_peaks) = match peaks {
            Ok(peaks) => (peaks, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let names: Vec<String> = self.steps.clone().map(name_of).collect();
        let profile = Profile::of(&trace, &names, peaks.as_ref());
        if let Err(failure) = files::write(&self.picture, picture::draw(&profile)) {
            return failed(failure.message);
        }
        let mut text = text(&profile, Style::of_stdout());
        if let Some(reason) = &no_peaks {
            text += &format!("  no bounds: {reason}\n");
        }
        let mut table = Table::new("<<");
        table.row(["trace".to_owned(), self.path.display().to_string()]);
        table.row(["profile".to_owned(), self.picture.display().to_string()]);
        text += &format!("\n{}", table.render(Style::of_stdout()));
        let json = json!({
            "trace": self.path,
            "picture": self.picture,
            "first_step": self.steps.start(),
            "steps": profile.steps,
            "step_us": profile.step_time,
            "on": if profile.has_device { "device" } else { "host" },
            "bytes_per_second": peaks.map(|peaks| peaks.bytes),
            "work": profile.work.iter().map(work_json).collect::<Vec<_>>(),
            "worst": profile.worst().into_iter().map(work_json).collect::<Vec<_>>(),
        });
        (text, json)
    }
}

fn name_of(step: u64) -> String {
    format!("step {step}")
}

/// The operation of a kernel and its operands.
fn described(work: &Work) -> String {
    shortened(format!("{} {}", work.operation, work.operands).trim(), LETTERS)
}

fn text(profile: &Profile, style: Style) -> String {
    let what = if profile.has_device { "kernels" } else { "operations" };
    let (total, step) = (profile.total(), profile.step_time);
    let mut text = format!("\n{}\n", style.bold(&format!("The {what} of a step:")));
    let share = |time: f64| format!("{:.1} %", if total > 0.0 { 100.0 * time / total } else { 0.0 });
    let mut table = match profile.has_device {
        true => Table::with_head(
            "<<>>>><>",
            ["kernel", "operation", "count", "time", "share", "bound", "by", "ratio"],
        ),
        false => Table::with_head("<<>>>", ["operation", "operands", "count", "time", "share"]),
    };
    for work in profile.work.iter().take(LISTED) {
        let count =
            if work.count.fract() == 0.0 { grouped(work.count as u64) } else { format!("{:.1}", work.count) };
        let mut row = vec![
            shortened(&work.name, LETTERS),
            described(work),
            count,
            microseconds(work.time),
            share(work.time),
        ];
        if profile.has_device {
            row.extend(match work.bound {
                Some(bound) => [
                    microseconds(bound.time),
                    bound.limit.name().to_owned(),
                    work.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
                ],
                None => ["-".to_owned(), String::new(), "-".to_owned()],
            });
        }
        table.row(row);
    }
    text += &table.render(style);
    if let more @ 1.. = profile.work.len().saturating_sub(LISTED) {
        text += &format!("  and {} more\n", grouped(more as u64));
    }
    text += &format!(
        "  {} of {} in a step, the mean of {}\n",
        microseconds(total),
        microseconds(step),
        if profile.steps == 1 { "one step".to_owned() } else { format!("{} steps", profile.steps) }
    );
    if !profile.has_device {
        return text;
    }
    text += "  the steps ran without their graph, whose kernels have no names and times of their own\n";
    let unbound = profile.work.iter().filter(|work| work.bound.is_none());
    let (count, unbound) = unbound.fold((0, 0.0), |(count, sum), work| (count + 1, sum + work.time));
    if count > 0 {
        let share = share(unbound);
        text += &format!("  {count} without a bound ({share}): their bytes or the card's peak are unknown\n");
    }
    let worst = profile.worst();
    if !worst.is_empty() {
        text += &format!("\n{}\n", style.bold("The most time beyond a bound:"));
        let mut table = Table::new("<<>>");
        for work in worst {
            let excess = work.excess().map_or_else(String::new, |excess| microseconds(excess.max(0.0)));
            let ratio = work.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2} times its bound"));
            table.row([shortened(&work.name, LETTERS), described(work), excess, ratio]);
        }
        text += &table.render(style);
    }
    text
}

fn work_json(work: &Work) -> Value {
    json!({
        "name": work.name,
        "operation": work.operation,
        "operands": work.operands,
        "count": work.count,
        "time_us": work.time,
        "bound_us": work.bound.map(|bound| bound.time),
        "bound_by": work.bound.map(|bound| bound.limit.name()),
        "ratio": work.ratio(),
    })
}

#[cfg(test)]
mod tests {
    use super::work::{Bound, Limit};
    use super::*;

    #[test]
    fn steps_are_those_of_the_run() {
        assert_eq!(profiled(None, 0, 300).unwrap(), 3..=5);
        assert_eq!(profiled(None, 10, 300).unwrap(), 13..=15);
        assert_eq!(profiled(None, 0, 4).unwrap(), 3..=4);
        assert_eq!(profiled(None, 0, 1).unwrap(), 1..=1);
        assert_eq!(profiled(Some(1..=300), 0, 300).unwrap(), 1..=300);
        for (given, done) in [(1..=301, 0), (400..=401, 0), (10..=12, 10), (1..=2, 10)] {
            let error = profiled(Some(given.clone()), done, 300).unwrap_err().to_string();
            let (found, wanted) = (format!("{}..{}", given.start(), given.end()), format!("{}", done + 1));
            assert!(error.contains(&found) && error.contains(&format!("takes {wanted} to 300")), "{error}");
        }
    }

    #[test]
    fn the_table_has_times_bounds_and_the_worst() {
        let work = |name: &str, time, bound: Option<f64>| Work {
            name: name.to_owned(),
            operation: "matmul".to_owned(),
            operands: "8x8x8 (nn) bf16".to_owned(),
            count: 1.5,
            time,
            bound: bound.map(|time| Bound { time, limit: Limit::Arithmetic }),
        };
        let list = vec![
            work("large", 50.0, Some(40.0)),
            work("slow", 30.0, Some(10.0)),
            work("other", 20.0, None),
            work("small", 2.0, Some(1.0)),
            work("least", 1.0, Some(1.0)),
        ];
        let profile = Profile { steps: 2, step_time: 200.0, has_device: true, work: list };
        let text = text(&profile, Style::of_stdout());
        let (table, worst) = text.split_once("The most time beyond a bound").unwrap();
        for part in ["1.25", "3.00", "48.5 %", "arithmetic", "1.5", "8x8x8", "103.00 us of 200.00 us"] {
            assert!(table.contains(part), "'{part}' is not in: {text}");
        }
        assert!(table.contains("1 without a bound (19.4 %)"), "{text}");
        let names: Vec<&str> =
            worst.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["slow", "large", "small"], "{text}");
    }
}
