//! The machine that a run was made on. Nothing here changes the machine: clocks are read, never set.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use super::bare::Bare;
use super::report::{Clocks, Failure, Figure, Machine, Report};

/// A report that grows during a run.
pub struct Recorder {
    report: Report,
}

impl Recorder {
    /// Starts a report, and reads the clocks for the first time.
    pub fn new(bare: &Bare, name: &str, title: &str, method: &str) -> Result<Recorder, Failure> {
        let (mut driver, version) = (smi("driver_version"), bare.driver_version()?);
        let cuda = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        driver = Some(driver.map_or(cuda.clone(), |driver| format!("{driver} ({cuda})")));
        let machine = Machine {
            device: bare.device_name(0)?,
            devices: bare.device_count()?,
            driver: driver.unwrap_or_default(),
            processor: processor(),
            clocks: clocks().into_iter().collect(),
        };
        Ok(Recorder::of(machine, name, title, method))
    }

    /// Starts a report of what needs no device.
    pub fn on_host(name: &str, title: &str, method: &str) -> Recorder {
        let machine = Machine {
            device: String::new(),
            devices: 0,
            driver: String::new(),
            processor: processor(),
            clocks: Vec::new(),
        };
        Recorder::of(machine, name, title, method)
    }

    fn of(machine: Machine, name: &str, title: &str, method: &str) -> Recorder {
        let report = Report {
            name: name.to_owned(),
            title: title.to_owned(),
            method: method.split_whitespace().collect::<Vec<_>>().join(" "),
            machine,
            commit: commit(),
            date: date(),
            library: None,
            figures: Vec::new(),
            skipped: Vec::new(),
        };
        println!("\n{title}");
        Recorder { report }
    }

    /// Adds a figure, and prints it.
    pub fn add(&mut self, figure: Figure) {
        for figure in [Some(&figure), figure.beside.as_deref()].into_iter().flatten() {
            let unit = figure.unit.symbol();
            println!(
                "  {:<34} own {:>11.3} {unit}  reference {:>11.3} {unit}  {:?} {:.4} (goal {:?}) {:?}",
                figure.name,
                figure.own.median,
                figure.reference.median,
                figure.rule,
                figure.comparison.median,
                figure.goal,
                figure.verdict()
            );
        }
        self.report.figures.push(figure);
    }

    /// Returns the figures of the report's file in the folder, if the same commit measured them on the same kind of device.
    pub fn earlier_figures(&self, folder: &Path) -> Result<Vec<Figure>, Failure> {
        let path = folder.join(format!("{}.json", self.report.name));
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Vec::new()) };
        let earlier: Report =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let source = |report: &Report| {
            let Machine { device, driver, .. } = &report.machine;
            format!("commit {} on {device}, driver {driver}", report.commit)
        };
        let (found, wanted) = (source(&earlier), source(&self.report));
        if found != wanted {
            println!("  {} is of {found}, and this run of {wanted}: it is replaced", path.display());
            return Ok(Vec::new());
        }
        Ok(earlier.figures)
    }

    /// Adds a figure of an earlier run.
    pub fn keep(&mut self, figure: Figure) {
        self.report.figures.push(figure);
    }

    /// Names the library that figures have beside their reference.
    pub fn name_library(&mut self, library: &str) {
        self.report.library = Some(library.to_owned());
    }

    /// Says what could not be measured here, once.
    pub fn skip(&mut self, why: impl Into<String>) {
        let why = why.into();
        if self.report.skipped.contains(&why) {
            return;
        }
        println!("  not measured: {why}");
        self.report.skipped.push(why);
    }

    /// Reads the clocks again and writes the report as `folder/name.json`.
    pub fn finish(mut self, folder: &Path) -> Result<(), Failure> {
        if self.report.machine.devices > 0 {
            self.report.machine.clocks.extend(clocks());
        }
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}.json", self.report.name));
        std::fs::write(&path, serde_json::to_string_pretty(&self.report)? + "\n")?;
        println!("  -> {}", path.display());
        Ok(())
    }
}

/// One value of nvidia-smi for the first device; none where it is absent.
fn smi(query: &str) -> Option<String> {
    let output = Command::new("nvidia-smi")
        .args(["--id=0", "--format=csv,noheader,nounits", &format!("--query-gpu={query}")])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}

fn clocks() -> Option<Clocks> {
    let line = smi("clocks.sm,clocks.mem")?;
    let (multiprocessor, memory) = line.split_once(',')?;
    Some(Clocks { multiprocessor: multiprocessor.trim().parse().ok()?, memory: memory.trim().parse().ok()? })
}

/// The processor and the cores that the process might use when it was first asked, before it pins itself to one.
pub fn processor() -> String {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    let read = || {
        let name = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        format!("{}, {cores} cores", name.as_deref().unwrap_or(std::env::consts::ARCH))
    };
    PROCESSOR.get_or_init(read).clone()
}

/// `SELVEDGE_BENCH_COMMIT` (a bundle sets it), or what git says here.
fn commit() -> String {
    let git = || {
        let output =
            Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=10"]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    std::env::var("SELVEDGE_BENCH_COMMIT").ok().or_else(git).unwrap_or_else(|| "unknown".to_owned())
}

/// `SELVEDGE_BENCH_DATE`, or today by the system's clock.
fn date() -> String {
    if let Ok(date) = std::env::var("SELVEDGE_BENCH_DATE") {
        return date;
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The Gregorian date of a day counted from 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date
/// algorithms", `civil_from_days`, for days after the epoch only).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}
