//! `selvedge info`: the CPU, the devices, the driver and the optional libraries, each path tried and why it was or was not taken.
//!
//! Nothing here fails: a missing driver is what the command is asked about.

use selvedge::Error;
use selvedge::driver::{Device, driver_isa, driver_version};
use selvedge::sys::{self, LibraryReport};
use selvedge::thread_count;
use serde_json::{Value, json};

use crate::output::{self, Report, Style, Table};

/// Gathers what there is.
pub fn info() -> Report {
    let style = Style::of_stdout();
    let mut text = format!("{}\n", style.bold(&format!("selvedge {}", env!("CARGO_PKG_VERSION"))));

    text += &heading(style, "CPU");
    let (processors, threads) = (std::thread::available_parallelism().map_or(1, usize::from), thread_count());
    let sets = instruction_sets();
    let mut table = Table::new("<<");
    table.row(["architecture".to_owned(), std::env::consts::ARCH.to_owned()]);
    table.row(["processors".to_owned(), format!("{processors} that this process may run on")]);
    table.row(["threads".to_owned(), format!("{threads} at most in an operation")]);
    let known = if sets.is_empty() { "none of those that kernels use".to_owned() } else { sets.join(" ") };
    table.row(["instruction sets".to_owned(), known]);
    text += &table.render(style);
    let cpu = json!({
        "architecture": std::env::consts::ARCH,
        "processors": processors,
        "threads": threads,
        "instruction_sets": sets,
    });

    text += &heading(style, "driver");
    let driver = match (driver_version(), driver_isa()) {
        (Ok(cuda), Ok(isa)) => {
            let mut table = Table::new("<<");
            table.row(["CUDA".to_owned(), version(cuda)]);
            table.row(["PTX ISA".to_owned(), format!("up to {}", version(isa))]);
            text += &table.render(style);
            json!({ "cuda": version(cuda), "ptx_isa": version(isa) })
        }
        (Err(error), _) | (_, Err(error)) => {
            text += &match &error {
                // The list of paths tried follows below.
                Error::LibraryUnavailable { library, .. } => {
                    let advice = error.advice().map(|advice| output::indented(advice, 2));
                    format!("  {library} could not be loaded\n{}", advice.unwrap_or_default())
                }
                error => output::indented(&error.to_string(), 2),
            };
            json!({ "error": error.to_string() })
        }
    };

    let mut devices = Vec::new();
    let mut problem = None;
    if driver.get("error").is_none() {
        text += &heading(style, "devices");
        match Device::count() {
            Ok(0) => text += "  none\n",
            Ok(count) => text += &table_of_devices(count, style, &mut devices),
            Err(error) => {
                text += &output::indented(&error.to_string(), 2);
                problem = Some(error.to_string());
            }
        }
    }

    let report = sys::report();
    text += &heading(style, "libraries");
    let mut table = Table::new("<<<");
    for library in &report.libraries {
        let version = library.version.clone().unwrap_or_else(|| "-".to_owned());
        table.row([library.name.to_owned(), version, state(library)]);
    }
    text += &table.render(style);

    let mut rest = report.libraries.as_slice();
    while let [library, later @ ..] = rest {
        // Two libraries of one folder are looked for together.
        let together = later.iter().take_while(|other| other.attempts == library.attempts).count();
        let (same, later) = rest.split_at(1 + together);
        rest = later;
        if library.attempts.is_empty() {
            continue;
        }
        let names: Vec<&str> = same.iter().map(|library| library.name).collect();
        let verb = if together == 0 { "was" } else { "were" };
        text += &heading(style, &format!("where {} {verb} looked for", names.join(" and ")));
        let mut table = Table::new("<<<");
        for attempt in &library.attempts {
            let mark = if attempt.taken { "+" } else { "-" };
            table.row([format!("{mark} {}", attempt.path), attempt.source.clone(), attempt.reason.clone()]);
        }
        text += &table.render(style);
        same.iter().for_each(|library| text += &missing(library));
    }

    let json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "cpu": cpu,
        "driver": driver,
        "devices": devices,
        "devices_error": problem,
        "libraries": report.libraries.iter().map(library_json).collect::<Vec<_>>(),
    });
    Report { text, json }
}

/// Returns the instruction sets of this CPU among those that kernels of the CPU use.
fn instruction_sets() -> Vec<&'static str> {
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut sets = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        // The macro takes literals alone.
        macro_rules! add {
            ($($name:tt)*) => { $(if std::arch::is_x86_feature_detected!($name) { sets.push($name); })* };
        }
        add!("avx2" "fma" "f16c" "avx512f" "avx512bw" "avx512dq" "avx512vl");
    }
    sets
}

fn heading(style: Style, name: &str) -> String {
    format!("\n{}\n", style.dim(name))
}

fn version((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

/// Returns the state of a library as one line.
fn state(library: &LibraryReport) -> String {
    match (&library.path, &library.problem) {
        (Some(path), None) => path.clone(),
        (Some(path), Some(problem)) => format!("{path}, cannot be used: {}", first_line(problem)),
        (None, _) if library.attempts.iter().all(|attempt| attempt.path == "none") => "turned off".to_owned(),
        (None, _) => "not found".to_owned(),
    }
}

/// A line for each function that a library does not have.
fn missing(library: &LibraryReport) -> String {
    let line = |symbol: &sys::MissingSymbol| {
        let needs = if symbol.needs.is_empty() { String::new() } else { format!(" (CUDA {})", symbol.needs) };
        let required = if symbol.required { ", which is required" } else { "" };
        format!("  {} has no {}{needs}{required}\n", library.name, symbol.name)
    };
    library.missing.iter().map(line).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn table_of_devices(count: usize, style: Style, devices: &mut Vec<Value>) -> String {
    let names = ["#", "name", "capability", "memory free", "of", "PCI", "UUID"];
    let mut table = Table::with_head("><>>><<", names);
    for ordinal in 0..count {
        let device = match Device::new(ordinal) {
            Ok(device) => device,
            Err(error) => {
                table.row([ordinal.to_string(), error.to_string()]);
                devices.push(json!({ "ordinal": ordinal, "error": error.to_string() }));
                continue;
            }
        };
        let memory = device.memory_info().ok();
        table.row([
            ordinal.to_string(),
            device.name().to_owned(),
            version(device.compute_capability()),
            memory.map_or_else(|| "-".to_owned(), |memory| output::bytes(memory.free)),
            output::bytes(device.total_memory()),
            device.pci_bus_id().to_owned(),
            device.uuid().to_owned(),
        ]);
        devices.push(json!({
            "ordinal": ordinal,
            "name": device.name(),
            "compute_capability": version(device.compute_capability()),
            "memory_free_bytes": memory.map(|memory| memory.free),
            "memory_total_bytes": device.total_memory(),
            "pci_bus_id": device.pci_bus_id(),
            "uuid": device.uuid(),
        }));
    }
    table.render(style)
}

fn library_json(library: &LibraryReport) -> Value {
    let attempts = library.attempts.iter().map(|attempt| {
        json!({
            "path": attempt.path,
            "source": attempt.source,
            "taken": attempt.taken,
            "reason": attempt.reason,
        })
    });
    let missing = library.missing.iter().map(
        |symbol| json!({ "name": symbol.name, "needs_cuda": symbol.needs, "required": symbol.required }),
    );
    json!({
        "name": library.name,
        "path": library.path,
        "version": library.version,
        "usable": library.usable,
        "problem": library.problem,
        "attempts": attempts.collect::<Vec<_>>(),
        "missing": missing.collect::<Vec<_>>(),
    })
}
