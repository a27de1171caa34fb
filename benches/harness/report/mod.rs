//! The result of a benchmark: one JSON file a subject, from which `benches/RESULTS.md` and the plot are made.
//!
//! A [`Report`] is the only thing that the benchmarks and the rendering share, so a page can be made again on a
//! machine without a GPU. It holds quartiles and not only medians, because a figure without its spread cannot be
//! judged. Invariant: a figure is compared with its reference *inside one run*, round by round; absolute times of
//! different runs are never compared.

pub mod page;
pub mod plot;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// An error that a person at a shell reads.
pub type Failure = Box<dyn std::error::Error>;

/// Everything that one benchmark measured in one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The file's name without `.json`.
    pub name: String,
    /// The heading.
    pub title: String,
    /// How it was measured, in a sentence or two.
    pub method: String,
    /// The machine of the measurement.
    pub machine: Machine,
    /// The commit of the source that was measured.
    pub commit: String,
    /// The day of the run, as `2026-01-31`.
    pub date: String,
    /// The library, and its version, that figures have beside their reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// The measurements.
    pub figures: Vec<Figure>,
    /// Figures that could not be measured there, and why.
    pub skipped: Vec<String>,
}

/// The machine of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// The first device's name.
    pub device: String,
    /// How many devices there were.
    pub devices: usize,
    /// The driver's own version, or the CUDA version where it does not tell.
    pub driver: String,
    /// The processor.
    pub processor: String,
    /// The device's clocks as nvidia-smi gave them before and after the run; none where there is no nvidia-smi.
    pub clocks: Vec<Clocks>,
}

/// One reading of a device's clocks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Clocks {
    /// Of the multiprocessors, in MHz.
    pub multiprocessor: u32,
    /// Of the memory, in MHz.
    pub memory: u32,
}

/// One comparison with its reference.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// The operation that was timed.
    pub name: String,
    /// The reference's name.
    pub against: String,
    /// The unit of `own` and `reference`.
    pub unit: Unit,
    /// How many times each side was measured.
    pub rounds: usize,
    /// In which order the two sides were measured.
    pub order: String,
    /// Our side.
    pub own: Spread,
    /// The other side.
    pub reference: Spread,
    /// Bytes that our side moves in one operation, where that is the point.
    pub own_bytes: Option<u64>,
    /// The same for the reference.
    pub reference_bytes: Option<u64>,
    /// Floating-point operations of a run, where their rate is the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<f64>,
    /// How the two are compared.
    pub rule: Rule,
    /// The comparison by [`Rule`], over the rounds: each round's own against the same round's reference.
    pub comparison: Spread,
    /// The value that the comparison shall reach.
    pub goal: Option<f64>,
    /// The value at which the goal counts as reached in practice, where that is not the goal itself.
    pub resolve_at: Option<f64>,
    /// The same work in turns with the report's library, in rounds of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Box<Figure>>,
}

/// A unit of time or of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Gibibytes.
    #[serde(rename = "GiB")]
    Gibibytes,
}

/// The end of the name of a figure that is the geometric mean of several measurements.
pub const GEOMETRIC_MEAN: &str = "geometric mean";

/// How own and reference are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Our speed over the reference's; a goal is a lower bound.
    Speed,
    /// Our time over the reference's; a goal is a ceiling.
    Time,
    /// Our time less the reference's, in the figure's unit; a goal is a ceiling.
    Extra,
    /// Our time itself, in the figure's unit; a goal is a ceiling.
    Own,
    /// Our memory over the reference's; a goal is a ceiling.
    Memory,
}

/// The middle half of a sample.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Spread {
    /// A quarter of the sample lies below.
    pub lower: f64,
    /// Half of the sample lies below.
    pub median: f64,
    /// A quarter of the sample lies above.
    pub upper: f64,
}

/// The comparison of a figure with its goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It does.
    Met,
    /// It does not, but it reaches `resolve_at`.
    Close,
    /// It does not, by this part of the goal.
    Missed(f64),
    /// It has none.
    NoGoal,
}

impl Spread {
    /// The quartiles of a sample, which must not be empty. Between two values they are interpolated linearly.
    pub fn of(sample: &[f64]) -> Spread {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Spread { lower: at(0.25), median: at(0.5), upper: at(0.75) }
    }
}

impl Unit {
    /// How many of it a second has; none for memory, so that it has no speed.
    pub fn per_second(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1e9,
            Unit::Microseconds => 1e6,
            Unit::Milliseconds => 1e3,
            Unit::Gibibytes => 0.0,
        }
    }

    /// As written behind a number.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Gibibytes => "GiB",
        }
    }
}

impl Report {
    /// Every comparison: the figures, and behind each the one beside its library.
    pub fn comparisons(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().flat_map(|figure| [Some(figure), figure.beside.as_deref()]).flatten()
    }
}

impl Figure {
    /// Returns whether the figure is itself a mean of several measurements.
    pub fn is_mean(&self) -> bool {
        self.name.ends_with(GEOMETRIC_MEAN)
    }

    /// Compares one measurement of ours with one of the reference.
    pub fn compare(&self, own: f64, reference: f64) -> f64 {
        match self.rule {
            Rule::Speed => self.speed(own, reference),
            Rule::Time | Rule::Memory => own / reference,
            Rule::Extra => own - reference,
            Rule::Own => own,
        }
    }

    /// Our speed over the reference's; where the two move a different number of bytes, the speed is in bytes.
    pub fn speed(&self, own: f64, reference: f64) -> f64 {
        let work = match (self.own_bytes, self.reference_bytes) {
            (Some(own), Some(reference)) => own as f64 / reference as f64,
            _ => 1.0,
        };
        work * reference / own
    }

    /// The goal as a speed over the reference's, so that figures of every rule can stand in one plot.
    pub fn goal_speed(&self) -> Option<f64> {
        let goal = self.goal?;
        match self.rule {
            Rule::Speed => Some(goal),
            Rule::Time | Rule::Memory => Some(1.0 / goal),
            Rule::Extra => Some(self.reference.median / (self.reference.median + goal)),
            Rule::Own => Some(self.reference.median / goal),
        }
    }

    /// Returns whether the median reaches the goal.
    pub fn verdict(&self) -> Verdict {
        let reaches = |goal: f64| match self.rule {
            Rule::Speed => self.comparison.median >= goal,
            _ => self.comparison.median <= goal,
        };
        match self.goal {
            None => Verdict::NoGoal,
            Some(goal) if reaches(goal) => Verdict::Met,
            Some(_) if self.resolve_at.is_some_and(reaches) => Verdict::Close,
            Some(goal) => Verdict::Missed((self.comparison.median - goal).abs() / goal),
        }
    }
}

/// Explanations of missed goals, by `report/figure`. Maintained by hand beside the results, which each run overwrites.
pub type Notes = BTreeMap<String, String>;

/// The file, in a folder of results, of another library's times in the same run.
const OTHERS: &str = "others.json";

/// Another library's time for the same work in the same run. It did not take turns with ours, so it has no verdict.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Others {
    /// The library and its version.
    pub library: String,
    /// The device, the driver and the day.
    pub machine: String,
    /// By `report/figure`.
    pub figures: BTreeMap<String, OtherFigure>,
}

/// One measurement of another library.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OtherFigure {
    /// The function that was called.
    pub call: String,
    /// The median, in `unit`.
    pub median: f64,
    /// A unit of time.
    pub unit: Unit,
    /// How many times it was measured.
    pub rounds: usize,
}

/// The measurements of another library, where a run left any.
pub fn read_others(folder: &Path) -> Result<Option<Others>, Failure> {
    let path = folder.join(OTHERS);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    Ok(Some(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?))
}

/// Every report of a folder, by name. A folder that is not there holds none.
pub fn read_all(folder: &Path) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(reports) };
    for entry in entries {
        let path = entry?.path();
        let json = path.extension().is_some_and(|extension| extension == "json");
        if json && path.file_name().is_some_and(|name| name != OTHERS) {
            let text = std::fs::read_to_string(&path)?;
            let report: Report =
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            reports.push(report);
        }
    }
    reports.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(reports)
}

/// Reads the explanations, which are one JSON object.
pub fn read_notes(path: &Path) -> Result<Notes, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
}
