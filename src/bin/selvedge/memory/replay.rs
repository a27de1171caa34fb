//! `selvedge memory replay`: a trace, recorded or made up, run through the pool on the CPU.

use selvedge::driver::{MemoryTrace, ReplayOptions as Settings, ReplayPool, ReplayReport, TraceEvent};
use serde_json::{Value, json};

use super::summary::{heading, statistics};
use super::{plot, read};
use crate::failure::Failure;
use crate::files;
use crate::options::{Generator, PoolKind, ReplayOptions};
use crate::output::{self, Progress, Report, Style, Table, grouped, printable_name};

/// Points of the curve, several a pixel, so that the picture's peaks are near the true ones.
const SAMPLES: usize = 8000;
/// Events that take less time than a reader takes to notice.
const QUICK: usize = 500_000;

/// A replay and what it was of.
pub struct Replayed {
    pub name: String,
    pub events: usize,
    pub settings: Settings,
    pub report: ReplayReport,
}

/// Runs the command.
pub fn replay(options: &ReplayOptions) -> Result<Report, Failure> {
    for path in [&options.output, &options.save].into_iter().flatten() {
        files::check_writable(path)?;
    }
    let trace = trace(options)?;
    let mut settings = Settings::default();
    settings.pool = match options.pool {
        PoolKind::Paged => ReplayPool::Paged,
        PoolKind::Plain => ReplayPool::Plain,
    };
    settings.page_bytes = options.page;
    settings.limit_bytes = options.cap;
    settings.lag = options.lag;
    settings.samples = SAMPLES;

    let mut report = {
        let requests = trace.requests();
        let _progress = (trace.events.len() > QUICK)
            .then(|| Progress::spinner(&format!("replaying {requests} requests")));
        trace.replay(&settings)?
    };
    keep_peaks(&trace, &mut report);
    if let Some(path) = &options.save {
        files::write(path, trace.to_json())?;
    }
    let replayed =
        Replayed { name: printable_name(&trace.device), events: trace.events.len(), settings, report };
    let mut report = Report { text: text(&replayed), json: json(&replayed) };
    if let Some(path) = &options.save {
        let path = path.display().to_string();
        report.text += &format!("\n  trace in {path}\n");
        report.json["trace"] = path.into();
    }
    if let Some(path) = &options.output {
        super::picture(path, &plot::draw(&replayed), &mut report)?;
    }
    Ok(report)
}

fn trace(options: &ReplayOptions) -> Result<MemoryTrace, Failure> {
    match (&options.file, options.generate) {
        (Some(file), _) => {
            let _progress = std::fs::metadata(file)
                .is_ok_and(|data| data.len() > 32 << 20)
                .then(|| Progress::spinner("reading the trace"));
            read(file, "a memory trace", MemoryTrace::from_json)
        }
        (None, Some(Generator::Training)) => {
            let _progress = (options.requests as usize > QUICK)
                .then(|| Progress::spinner(&format!("making {} requests", options.requests)));
            Ok(MemoryTrace::training_like(options.seed, options.requests))
        }
        // The options say that one of both is needed.
        (None, None) => Err(Failure::failed("no trace was named")),
    }
}

/// Raises each sample to the peak since the previous sample, which sampling alone misses. Refused requests are not in the
/// trace, so with any of them the samples stay as they are.
fn keep_peaks(trace: &MemoryTrace, report: &mut ReplayReport) {
    if report.refused > 0 {
        return;
    }
    let (mut sizes, mut events) = (Vec::new(), trace.events.iter());
    let (mut now, mut before) = (0u64, 0);
    for sample in &mut report.samples {
        let mut most = now;
        for event in events.by_ref().take((sample.event - before) as usize) {
            match *event {
                TraceEvent::Allocate { bytes, .. } => {
                    sizes.push(bytes);
                    now = now.saturating_add(bytes);
                    most = most.max(now);
                }
                TraceEvent::Free { allocation } => {
                    // The replay has refused a trace that frees what it never made.
                    now = now.saturating_sub(sizes.get(allocation as usize).copied().unwrap_or(0));
                }
            }
        }
        before = sample.event;
        sample.requested_bytes = most;
    }
}

pub fn pool_name(settings: &Settings) -> &'static str {
    match settings.pool {
        ReplayPool::Paged => "paged",
        ReplayPool::Plain => "plain",
    }
}

/// Such as `pool paged, pages of 2.0 MiB, cap 80.0 GiB`.
pub fn conditions(settings: &Settings) -> String {
    let mut text = format!("pool {}", pool_name(settings));
    if settings.pool == ReplayPool::Paged {
        text += &format!(", pages of {}", output::bytes(settings.page_bytes));
    }
    match settings.limit_bytes {
        Some(limit) => text += &format!(", cap {}", output::bytes(limit)),
        None => text += ", no cap",
    }
    text
}

fn text(replayed: &Replayed) -> String {
    let style = Style::of_stdout();
    let Replayed { name, settings, report, .. } = replayed;
    let numbers = &report.statistics;
    let mut text = format!("{}\n  {}\n\n", style.bold(&format!("replay of {name}")), conditions(settings));

    let mut table = Table::new("<><");
    let mut row = |name: &str, value: String, details: String| table.row([name.to_owned(), value, details]);
    let hits = numbers.hits as f64 * 100.0 / numbers.requests.max(1) as f64;
    row("requests", grouped(numbers.requests), format!("{hits:.2} % from the cache"));
    if report.refused > 0 {
        row("refused", grouped(report.refused), "for which there was no memory".to_owned());
    }
    row("peak asked for", output::bytes(numbers.peak_requested_bytes), String::new());
    let rounding = "with what sizes are rounded up by".to_owned();
    row("peak live", output::bytes(numbers.peak_live_bytes), rounding);
    let ratio = format!("{:.4} of the peak asked for", report.ratio());
    row("peak reserved", output::bytes(numbers.peak_reserved_bytes), ratio);
    let worst = report.samples.iter().map(|sample| sample.fragmentation).fold(0.0, f64::max);
    let fragmentation = format!("at the end; {worst:.3} at worst");
    row("fragmentation", format!("{:.3}", numbers.fragmentation()), fragmentation);
    let calls = [numbers.driver_allocations, numbers.driver_frees, numbers.maps, numbers.unmaps];
    let sum = grouped(calls.into_iter().fold(0, u64::saturating_add));
    let [allocations, frees, maps, unmaps] = calls.map(grouped);
    let each = format!("allocations {allocations}, frees {frees}, maps {maps}, unmaps {unmaps}");
    row("driver calls", sum, each);
    row("waits", grouped(report.waits), "of the host for the device".to_owned());
    text += &table.render(style);

    text += &heading(style, "in the pool");
    let mut table = Table::new("<>");
    for (name, value) in [
        ("splits", numbers.splits),
        ("merges", numbers.merges),
        ("hand-overs between streams", numbers.hand_overs),
    ] {
        table.row([name.to_owned(), grouped(value)]);
    }
    text + &table.render(style)
}

fn json(replayed: &Replayed) -> Value {
    let Replayed { name, events, settings, report } = replayed;
    json!({
        "device": name,
        "events": events,
        "pool": pool_name(settings),
        "page_bytes": settings.page_bytes,
        "limit_bytes": settings.limit_bytes,
        "lag": settings.lag,
        "statistics": statistics(&report.statistics),
        "ratio": report.ratio(),
        "fragmentation": report.statistics.fragmentation(),
        "refused": report.refused,
        "waits": report.waits,
    })
}
