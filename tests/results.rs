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
    if !reports.is_empty() {
        let committed =
            std::fs::read_to_string(benches().join("results/ratios.svg")).expect("the plot is there");
        assert!(
            committed == plot::render(&reports),
            "benches/results/ratios.svg is not what benches/results gives: run cargo bench --bench ground -- render"
        );
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
            rule,
            comparison: spread(comparison),
            goal,
            resolve_at,
            beside: None,
        }
        .verdict()
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
