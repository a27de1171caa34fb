//! The committed benchmark page says what the committed results say, and owns up to what was missed.

#[path = "common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the benchmarks use the rest of it")]
#[path = "../benches/harness/report/mod.rs"]
mod report;

use std::path::PathBuf;

use report::{
    Figure, Notes, Others, Report, Rule, Spread, Unit, Verdict, page, plot, read_all, read_notes, read_others,
};

fn benches() -> PathBuf {
    common::repository().join("benches")
}

fn everything() -> (Vec<Report>, Notes) {
    let reports = read_all(&benches().join("results")).expect("every results file is a report");
    let notes =
        read_notes(&benches().join("notes.json")).expect("benches/notes.json is an object of strings");
    (reports, notes)
}

fn others() -> Option<Others> {
    read_others(&benches().join("results")).expect("what other libraries needed can be read")
}

#[test]
fn the_page_is_rendered_from_the_results() {
    let (reports, notes) = everything();
    let committed =
        std::fs::read_to_string(benches().join("RESULTS.md")).expect("benches/RESULTS.md is there");
    assert!(
        committed == page::render(&reports, &notes, others().as_ref()),
        "benches/RESULTS.md is not what benches/results gives: run cargo bench --bench ground -- render"
    );
    let pictures = plot::render(&reports);
    for picture in &pictures {
        let committed = std::fs::read_to_string(benches().join("results").join(&picture.file));
        assert!(
            committed.is_ok_and(|committed| committed == picture.svg),
            "benches/results/{} is not what benches/results gives: run cargo bench --bench ground -- render",
            picture.file
        );
    }
    let entries = std::fs::read_dir(benches().join("results")).expect("a readable folder");
    let names = entries.map(|entry| entry.expect("a readable folder").file_name());
    let drawn = names.filter(|name| name.to_string_lossy().ends_with(".svg")).count();
    assert_eq!(drawn, pictures.len(), "benches/results has a picture that nothing renders");
}

#[test]
fn pictures_fit_a_screen_and_every_report_has_an_area() {
    let pictures = plot::render(&everything().0);
    for picture in &pictures {
        assert!(picture.height <= plot::TALLEST, "{} is {} pixels tall", picture.file, picture.height);
        assert_ne!(
            picture.file, "speed-other.svg",
            "benches/harness/report/plot.rs lists no area for a report"
        );
    }
}

#[test]
fn half_and_double_speed_are_equally_far_from_the_reference() {
    let report = a_report(vec![
        a_comparison("half", 4.0, 2.0),
        a_comparison("double", 2.0, 4.0),
        a_comparison("ten times", 1.0, 10.0),
    ]);
    let svg = &plot::render(&[report])[1].svg;
    let widths: Vec<f64> = svg
        .split("height=\"12\"")
        .map(|before| before.rsplit("width=\"").next().and_then(|width| width.split('"').next()))
        .filter_map(|width| width.and_then(|width| width.parse().ok()))
        .take(3)
        .collect();
    let [half, double, ten] = widths[..] else { panic!("three bars are wanted: {svg}") };
    assert_eq!(half, double);
    assert!((ten / double - 10f64.log2()).abs() < 0.01, "{ten} is not {} times {double}", 10f64.log2());
}

#[test]
fn the_overview_averages_neither_means_nor_references() {
    let overview = |figures| plot::render(&[a_report(figures)]).remove(0).svg;
    let mean = a_comparison("geometric mean", 1.0, 1.2);
    let svg = overview(vec![mean, a_comparison("worst: 1 x 1", 2.0, 1.0)]);
    assert!(svg.contains(">1.20 of a<"), "{svg}");
    let other = Figure { against: "b".to_owned(), ..a_comparison("c", 9.0, 1.0) };
    let svg = overview(vec![a_comparison("a", 1.0, 2.0), other, a_comparison("b", 1.0, 8.0)]);
    assert!(svg.contains(">4.00 of a, 2 of 3 figures<"), "{svg}");
}

/// A report of figures.
fn a_report(figures: Vec<Figure>) -> Report {
    Report {
        name: "test".to_owned(),
        title: "T".to_owned(),
        method: String::new(),
        machine: report::Machine {
            device: String::new(),
            devices: 1,
            driver: String::new(),
            processor: String::new(),
            clocks: Vec::new(),
        },
        commit: String::new(),
        date: String::new(),
        library: None,
        figures,
        skipped: Vec::new(),
    }
}

/// A figure of two times.
fn a_comparison(name: &str, own: f64, reference: f64) -> Figure {
    let spread = |median| Spread { lower: median, median, upper: median };
    Figure {
        name: name.to_owned(),
        own: spread(own),
        reference: spread(reference),
        comparison: spread(reference / own),
        ..a_figure()
    }
}

/// A figure whose values do not matter.
fn a_figure() -> Figure {
    let spread = |median| Spread { lower: median, median, upper: median };
    Figure {
        name: "n".to_owned(),
        against: "a".to_owned(),
        unit: Unit::Nanoseconds,
        rounds: 20,
        order: String::new(),
        own: spread(2.0),
        reference: spread(1.0),
        own_bytes: None,
        reference_bytes: None,
        operations: None,
        rule: Rule::Speed,
        comparison: spread(0.5),
        goal: None,
        resolve_at: None,
        beside: None,
    }
}

#[test]
fn every_figure_was_measured_in_turns_and_often_enough() {
    for report in everything().0 {
        for figure in &report.figures {
            assert!(figure.rounds >= 20, "{}/{}: only {} rounds", report.name, figure.name, figure.rounds);
            if let Some(beside) = &figure.beside {
                assert!(report.library.is_some(), "{}: beside which library?", report.name);
                assert!(
                    beside.rounds >= 10,
                    "{}/{}: only {} rounds",
                    report.name,
                    beside.name,
                    beside.rounds
                );
            }
        }
        for figure in report.comparisons() {
            // Memory is counted, not timed: both numbers are of one run.
            assert!(
                figure.order.contains("alternating") || figure.rule == Rule::Memory,
                "{}/{}: {}",
                report.name,
                figure.name,
                figure.order
            );
            let spread = [figure.own, figure.reference, figure.comparison];
            let ordered = spread.iter().all(|side| side.lower <= side.median && side.median <= side.upper);
            assert!(ordered, "{}/{}: the quartiles are out of order", report.name, figure.name);
        }
    }
}

#[test]
fn every_missed_goal_has_a_note_and_every_note_a_figure() {
    let (reports, notes) = everything();
    let mut keys = Vec::new();
    for report in &reports {
        for figure in report.comparisons() {
            let key = page::key(report, figure);
            if let Verdict::Missed(_) = figure.verdict() {
                assert!(notes.contains_key(&key), "'{key}' misses its goal: say why in benches/notes.json");
            }
            keys.push(key);
        }
    }
    for key in notes.keys() {
        assert!(keys.contains(key), "benches/notes.json has '{key}', which no result has");
    }
    for key in others().iter().flat_map(|others| others.figures.keys()) {
        assert!(keys.contains(key), "benches/results/others.json has '{key}', which no result has");
    }
}

#[test]
fn a_verdict_follows_from_the_rule_and_the_goal() {
    let figure = |rule, comparison: f64, goal, resolve_at| {
        let comparison = Spread { lower: comparison, median: comparison, upper: comparison };
        Figure { rule, comparison, goal, resolve_at, ..a_figure() }.verdict()
    };
    assert_eq!(figure(Rule::Speed, 0.995, Some(0.99), None), Verdict::Met);
    assert_eq!(figure(Rule::Speed, 0.5, Some(1.0), None), Verdict::Missed(0.5));
    assert_eq!(figure(Rule::Speed, 0.95, Some(1.0), Some(0.9)), Verdict::Close);
    assert_eq!(figure(Rule::Time, 1.5, Some(1.0), None), Verdict::Missed(0.5));
    assert_eq!(figure(Rule::Extra, -5.0, Some(60.0), None), Verdict::Met);
    assert_eq!(figure(Rule::Extra, 90.0, Some(60.0), None), Verdict::Missed(0.5));
    assert_eq!(figure(Rule::Time, 9.0, None, None), Verdict::NoGoal);
    assert_eq!(figure(Rule::Own, 90.0, Some(100.0), None), Verdict::Met);
    assert_eq!(figure(Rule::Own, 150.0, Some(100.0), None), Verdict::Missed(0.5));
    assert_eq!(figure(Rule::Memory, 1.1, Some(1.15), None), Verdict::Met);
}
