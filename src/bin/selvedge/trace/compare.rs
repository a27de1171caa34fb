//! `selvedge trace --compare`: the changes of time between two traces, by operation and by kernel.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::analysis::{Analysis, Times};
use super::read::Trace;
use super::tables::{number_at_end, section};
use crate::output::{Style, Table, counted, grouped, microseconds, printable_name};

/// Lines of a table.
const LISTED: usize = 20;

/// The times of one name in both traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub name: String,
    pub category: String,
    /// `None` if the trace has no event of this name.
    pub before: Option<Times>,
    pub after: Option<Times>,
}

impl Change {
    /// The time after minus the time before, in microseconds.
    pub fn difference(&self) -> f64 {
        let total = |times: &Option<Times>| times.as_ref().map_or(0.0, |times| times.total);
        total(&self.after) - total(&self.before)
    }

    /// The time after over the time before.
    pub fn ratio(&self) -> Option<f64> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        (before.total > 0.0).then(|| after.total / before.total)
    }
}

/// The changes between two traces, the largest first.
#[derive(Debug)]
pub struct Comparison {
    /// True if operations have the device's time, false if they have the host's, as for traces of the CPU alone.
    pub by_device: bool,
    pub operations: Vec<Change>,
    pub kernels: Vec<Change>,
}

impl Comparison {
    pub fn of(before: &Analysis, after: &Analysis) -> Comparison {
        let mut operations = [before, after].into_iter().flat_map(|analysis| &analysis.operations);
        let by_device = operations.any(|operation| operation.device.count > 0);
        let operations = [before, after].map(|analysis| {
            let named = analysis.operations.iter().map(|operation| {
                // The count is that of calls in both cases.
                let times = match by_device {
                    true => Times { count: operation.host.count, ..operation.device.clone() },
                    false => operation.host.clone(),
                };
                ((operation.category.clone(), operation.name.clone()), times)
            });
            named.collect::<BTreeMap<_, _>>()
        });
        let kernels = [before, after].map(|analysis| {
            let named = analysis.kernels.iter();
            let named =
                named.map(|kernel| ((kernel.category.clone(), kernel.name.clone()), kernel.times.clone()));
            named.collect::<BTreeMap<_, _>>()
        });
        Comparison { by_device, operations: changes(operations), kernels: changes(kernels) }
    }
}

type Named = BTreeMap<(String, String), Times>;

fn changes([before, mut after]: [Named; 2]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for ((category, name), times) in before {
        let after = after.remove(&(category.clone(), name.clone()));
        changes.push(Change { name, category, before: Some(times), after });
    }
    for ((category, name), times) in after {
        changes.push(Change { name, category, before: None, after: Some(times) });
    }
    // Names are in order, and the sort is stable.
    changes.sort_by(|left, right| right.difference().abs().total_cmp(&left.difference().abs()));
    changes
}

/// A time with its sign.
fn signed(time: f64) -> String {
    format!("{}{}", if time < 0.0 { "-" } else { "+" }, microseconds(time.abs()))
}

/// The tables of two traces, which are named as on the command line.
pub fn text(names: [&str; 2], traces: [&Trace; 2], analyses: [&Analysis; 2]) -> String {
    let (style, comparison) = (Style::of_stdout(), Comparison::of(analyses[0], analyses[1]));
    let mut text = String::new();
    for (letter, ((name, trace), analysis)) in
        ["A", "B"].into_iter().zip(names.into_iter().zip(traces).zip(analyses))
    {
        let events = counted(trace.events.len() as u64, "event");
        text +=
            &format!("{letter}: {} of {}, {events}", printable_name(name), microseconds(analysis.duration));
        if trace.end.is_none() {
            text += "; the file breaks off: it was read up to there";
        }
        match number_at_end(trace, "dropped") + number_at_end(trace, "untimed") {
            0 => {}
            missing => text += &format!("; {} missing", counted(missing, "event")),
        }
        text.push('\n');
    }
    let difference = analyses[1].duration - analyses[0].duration;
    text += &format!("B - A: {}\n", signed(difference));
    let head = if comparison.by_device { "operations, by device time" } else { "operations, by host time" };
    for (head, changes) in [(head, &comparison.operations), ("kernels", &comparison.kernels)] {
        if changes.is_empty() {
            continue;
        }
        let names = ["name", "kind", "count A", "count B", "time A", "time B", "change", "ratio"];
        let mut table = Table::with_head("<<>>>>>>", names);
        for change in changes.iter().take(LISTED) {
            let count = |times: &Option<Times>| times.as_ref().map_or("-".into(), |one| grouped(one.count));
            let total =
                |times: &Option<Times>| times.as_ref().map_or("-".into(), |one| microseconds(one.total));
            table.row([
                printable_name(&change.name),
                change.category.clone(),
                count(&change.before),
                count(&change.after),
                total(&change.before),
                total(&change.after),
                signed(change.difference()),
                change.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            ]);
        }
        text += &section(style, head, &table, changes.len());
    }
    text
}

/// The same numbers; times are in microseconds.
pub fn json(names: [&str; 2], traces: [&Trace; 2], analyses: [&Analysis; 2]) -> Value {
    let comparison = Comparison::of(analyses[0], analyses[1]);
    let trace = |at: usize| {
        json!({
            "file": names[at],
            "selvedge": traces[at].selvedge,
            "complete": traces[at].end.is_some(),
            "dropped": number_at_end(traces[at], "dropped"),
            "untimed": number_at_end(traces[at], "untimed"),
            "duration_us": analyses[at].duration,
        })
    };
    let times = |times: &Option<Times>| match times {
        Some(times) => json!({ "count": times.count, "total_us": times.total }),
        None => Value::Null,
    };
    let list = |changes: &[Change]| -> Vec<Value> {
        let json = |change: &Change| {
            json!({
                "name": change.name,
                "category": change.category,
                "before": times(&change.before),
                "after": times(&change.after),
                "difference_us": change.difference(),
                "ratio": change.ratio(),
            })
        };
        changes.iter().map(json).collect()
    };
    json!({
        "before": trace(0),
        "after": trace(1),
        "difference_us": analyses[1].duration - analyses[0].duration,
        "operations_by": if comparison.by_device { "device" } else { "host" },
        "operations": list(&comparison.operations),
        "kernels": list(&comparison.kernels),
    })
}

#[cfg(test)]
mod tests {
    use super::super::analysis::{KernelTimes, OperationTimes};
    use super::*;

    fn times(count: u64, total: f64) -> Times {
        Times { count, total, max: total }
    }

    fn analysis(operations: &[(&str, Times, Times)], kernels: &[(&str, Times)]) -> Analysis {
        let operation = |(name, host, device): &(&str, Times, Times)| OperationTimes {
            name: (*name).to_owned(),
            category: "operation".to_owned(),
            host: host.clone(),
            device: device.clone(),
        };
        let kernel = |(name, times): &(&str, Times)| KernelTimes {
            name: (*name).to_owned(),
            category: "kernel".to_owned(),
            times: times.clone(),
        };
        Analysis {
            operations: operations.iter().map(operation).collect(),
            kernels: kernels.iter().map(kernel).collect(),
            ..Analysis::default()
        }
    }

    #[test]
    fn changes_are_sorted_by_their_size_and_have_both_sides() {
        let before =
            analysis(&[], &[("same", times(1, 5.0)), ("gone", times(2, 30.0)), ("k", times(4, 10.0))]);
        let after = analysis(&[], &[("same", times(1, 5.0)), ("new", times(1, 20.0)), ("k", times(8, 55.0))]);
        let found: Vec<_> = Comparison::of(&before, &after)
            .kernels
            .into_iter()
            .map(|change| (change.difference(), change.ratio(), change.name))
            .collect();
        let row = |difference, ratio, name: &str| (difference, ratio, name.to_owned());
        assert_eq!(
            found,
            [
                row(45.0, Some(5.5), "k"),
                row(-30.0, None, "gone"),
                row(20.0, None, "new"),
                row(0.0, Some(1.0), "same")
            ]
        );
    }

    #[test]
    fn operations_have_the_time_of_a_device_if_a_trace_has_one() {
        let none = Times::default();
        let host = analysis(&[("add", times(3, 6.0), none.clone())], &[]);
        let device = analysis(&[("add", times(3, 9.0), times(2, 4.0))], &[]);
        let one = |before, after| {
            let comparison = Comparison::of(before, after);
            let change = comparison.operations[0].clone();
            (comparison.by_device, change.before.unwrap(), change.after.unwrap())
        };
        assert_eq!(one(&host, &host), (false, times(3, 6.0), times(3, 6.0)));
        let (by_device, before, after) = one(&host, &device);
        assert!(by_device && before.total == 0.0 && after.total == 4.0);
        assert_eq!((before.count, after.count), (3, 3));
    }

    #[test]
    fn a_change_has_its_sign() {
        assert_eq!([signed(-2000.0), signed(0.0), signed(1.5)], ["-2.00 ms", "+0.00 us", "+1.50 us"]);
    }
}
