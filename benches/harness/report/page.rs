//! `benches/RESULTS.md` out of the reports: a table a subject, with each goal, the figure, and why a goal was missed.
//!
//! The text depends on nothing but the reports and the explanations, so a test can compare the committed page with it.

use std::fmt::Write;

use super::{Figure, Machine, Notes, Others, Report, Rule, Spread, Verdict, plot};

/// The whole page.
pub fn render(reports: &[Report], notes: &Notes, others: Option<&Others>) -> String {
    let mut page = String::from(OPENING);
    if reports.is_empty() {
        page.push_str("\nNo run has been recorded yet.\n");
        return page;
    }
    for picture in plot::render(reports) {
        // Writing to a `String` cannot fail.
        let _ = write!(page, "\n![Speed over the reference's](results/{})\n", picture.file);
    }
    for report in reports {
        section(&mut page, report, notes, others);
    }
    page
}

const OPENING: &str = "\
# Benchmark results

Rendered from `benches/results/*.json` by `cargo bench --bench ground -- render`; a test fails when the two differ.
Own and reference are measured in one process (or, for whole processes, one after the other), taking turns at going
first. Times are medians, with the middle half of the sample in brackets. The comparison is made round by round and its
median is given, so a drift of the machine touches both sides. Compare figures within a run, never absolute times
between runs. `benches/notes.json` says why a goal was missed; the page shows it under the table.
";

fn section(page: &mut String, report: &Report, notes: &Notes, others: Option<&Others>) {
    // Writing to a `String` cannot fail.
    let _ = write!(page, "\n## {}\n\n{}\n\n{}\n\n", report.title, report.method, machine(report));
    let library = report.library.as_deref();
    let (mut heads, mut rule) = (
        "| what | own | reference | comparison | goal | verdict |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    );
    if let Some(library) = library {
        let name = library.split(' ').next().unwrap_or(library);
        let _ = write!(heads, " in turns with {name} |");
        rule.push_str("---|");
    }
    let _ = writeln!(page, "{heads}\n{rule}");
    for figure in &report.figures {
        let _ = write!(
            page,
            "| {} | {} | {}: {} | {} | {} | {} |",
            figure.name,
            time(&figure.own, figure, figure.own_bytes),
            figure.against,
            time(&figure.reference, figure, figure.reference_bytes),
            comparison(figure),
            goal(figure),
            verdict(figure),
        );
        let _ = match (library, figure.beside.as_deref()) {
            (None, _) => writeln!(page),
            (Some(_), None) => writeln!(page, " |"),
            (Some(_), Some(beside)) => writeln!(page, " {} |", cell(beside)),
        };
    }
    let beside = report.figures.iter().find_map(|figure| figure.beside.as_deref());
    if let (Some(library), Some(beside)) = (library, beside) {
        let _ = write!(
            page,
            "\nIn the last column: {library} in turns with own, {} rounds that come after those with the reference; goal {}.\n",
            beside.rounds,
            goal(beside)
        );
    }
    if let Some(others) = others {
        other_library(page, report, others);
    }
    for line in &report.skipped {
        let _ = write!(page, "\nNot measured in this run: {line}\n");
    }
    for figure in report.comparisons() {
        let note = notes.get(&key(report, figure));
        match (note, figure.verdict()) {
            (Some(note), _) => drop(write!(page, "\n**{}**: {note}\n", figure.name)),
            (None, Verdict::Missed(_)) => {
                let _ = write!(page, "\n**{}**: missed; why is not known yet.\n", figure.name);
            }
            (None, _) => {}
        }
    }
}

/// A cell of a figure beside its library.
fn cell(beside: &Figure) -> String {
    let unit = beside.unit.symbol();
    format!(
        "{}: {} {unit}, {}, {}",
        beside.against,
        digits(beside.reference.median),
        comparison(beside),
        verdict(beside)
    )
}

/// Another library's times for the section's figures, if it did not take turns with them.
fn other_library(page: &mut String, report: &Report, others: &Others) {
    let mut opened = false;
    for figure in report.figures.iter().filter(|figure| figure.beside.is_none()) {
        let Some(other) = others.figures.get(&key(report, figure)) else { continue };
        if !opened {
            let _ = write!(page, "\nBeside, not in turns: {} on {}.\n\n", others.library, others.machine);
            opened = true;
        }
        let _ = writeln!(
            page,
            "- {}: {} {} by `{}`, {} rounds",
            figure.name,
            digits(other.median),
            other.unit.symbol(),
            other.call,
            other.rounds
        );
    }
}

/// The name of a figure in the explanations.
pub fn key(report: &Report, figure: &Figure) -> String {
    format!("{}/{}", report.name, figure.name)
}

fn machine(report: &Report) -> String {
    let Machine { device, devices, driver, processor, clocks } = &report.machine;
    let mut line = match devices {
        0 => format!("No device; {processor}"),
        _ => format!("{devices} x {device}, driver {driver}; {processor}"),
    };
    if let (Some(before), Some(after)) = (clocks.first(), clocks.last()) {
        let _ = write!(
            line,
            "; multiprocessor clock {} MHz before and {} MHz after, memory {} MHz",
            before.multiprocessor, after.multiprocessor, after.memory
        );
    }
    let rounds = report.figures.iter().map(|figure| figure.rounds);
    if let (Some(fewest), Some(most)) = (rounds.clone().min(), rounds.max()) {
        let _ = write!(line, "; {fewest}");
        if most > fewest {
            let _ = write!(line, " to {most}");
        }
        line.push_str(" rounds");
    }
    if let Some(figure) = report.figures.first() {
        let _ = write!(line, ", {}", figure.order);
    }
    let _ = write!(line, "; {}, commit {}.", report.date, report.commit);
    line
}

fn time(spread: &Spread, figure: &Figure, bytes: Option<u64>) -> String {
    let unit = figure.unit.symbol();
    let mut text =
        format!("{} {unit} ({} to {})", digits(spread.median), digits(spread.lower), digits(spread.upper));
    if let Some(bytes) = bytes {
        let rate = bytes as f64 * figure.unit.per_second() / spread.median / 1e9;
        let _ = write!(text, ", {} GB/s", digits(rate));
    }
    if let Some(operations) = figure.operations {
        let rate = operations * figure.unit.per_second() / spread.median / 1e12;
        let _ = write!(text, ", {} TFLOP/s", digits(rate));
    }
    text
}

fn comparison(figure: &Figure) -> String {
    let Spread { lower, median, upper } = figure.comparison;
    match figure.rule {
        Rule::Extra => {
            let unit = figure.unit.symbol();
            format!("{median:+.0} {unit} ({lower:+.0} to {upper:+.0})")
        }
        Rule::Own => "own alone".to_owned(),
        Rule::Time => format!("{median:.3} of its time ({lower:.3} to {upper:.3})"),
        Rule::Memory => format!("{median:.3} of it ({lower:.3} to {upper:.3})"),
        Rule::Speed => {
            format!("{median:.3} of its speed ({lower:.3} to {upper:.3})")
        }
    }
}

fn goal(figure: &Figure) -> String {
    let Some(goal) = figure.goal else { return "none".to_owned() };
    let mut text = match figure.rule {
        Rule::Extra => format!("at most {goal:+.0} {}", figure.unit.symbol()),
        Rule::Own => format!("at most {goal:.0} {}", figure.unit.symbol()),
        Rule::Time | Rule::Memory => format!("at most {goal}"),
        Rule::Speed => format!("at least {goal}"),
    };
    if let Some(resolve_at) = figure.resolve_at {
        let _ = write!(text, ", resolved at {resolve_at}");
    }
    text
}

fn verdict(figure: &Figure) -> String {
    match figure.verdict() {
        Verdict::Met => "met".to_owned(),
        Verdict::Close => "resolved, goal not reached".to_owned(),
        Verdict::Missed(part) => format!("**missed by {:.2} %**", part * 100.0),
        Verdict::NoGoal => "for information".to_owned(),
    }
}

/// Four significant digits, without an exponent.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.places$}")
}
