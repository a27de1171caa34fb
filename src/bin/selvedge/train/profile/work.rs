//! The work of the profiled steps: kernels with their times and bounds, or the operations of the CPU.
//!
//! A bound is the larger of the bytes over the card's bandwidth and the operations over the peak of their dtype. Both numbers are
//! those that the library recorded with the operation around the launch, from its operands' shapes. An operation's work counts for
//! the longest of the kernels that it launches itself; the others, and kernels of operations without such numbers, have no bound.

use std::collections::{BTreeMap, HashMap};

use super::peaks::Peaks;
use crate::trace::{Event, Launched, Spans, Trace, is_operation};

/// The part of a card that limits a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Memory,
    Arithmetic,
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Limit::Memory => "memory",
            Limit::Arithmetic => "arithmetic",
        }
    }
}

/// The least time that a card needs, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub time: f64,
    pub limit: Limit,
}

/// The kernels of a step that have one name, operation and shapes, or the operations of a step on the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The kernel's name, or that of a copy, a fill or a graph; the operation's on the CPU.
    pub name: String,
    /// The operation that launched it, which is empty on the CPU and outside of operations.
    pub operation: String,
    /// The operands' shapes and dtypes.
    pub operands: String,
    /// How often a step runs it, on average.
    pub count: f64,
    /// The time in a step, in microseconds.
    pub time: f64,
    /// For all of them in a step.
    pub bound: Option<Bound>,
}

impl Work {
    /// The time over the bound.
    pub fn ratio(&self) -> Option<f64> {
        self.bound.filter(|bound| bound.time > 0.0).map(|bound| self.time / bound.time)
    }

    /// The time beyond the bound, in microseconds.
    pub fn excess(&self) -> Option<f64> {
        self.bound.map(|bound| self.time - bound.time)
    }
}

/// The profile of some steps.
#[derive(Debug, Default)]
pub struct Profile {
    /// The number of steps in the trace.
    pub steps: u64,
    /// The mean time of a step on the host, in microseconds.
    pub step_time: f64,
    /// True if a device ran the work.
    pub has_device: bool,
    /// Sorted by time.
    pub work: Vec<Work>,
}

#[derive(Default)]
struct Sum {
    count: u64,
    time: f64,
    bound: Option<Bound>,
    has_unbound: bool,
}

type Sums = BTreeMap<(String, String, String), Sum>;

impl Profile {
    /// Returns the profile of the ranges with these names.
    pub fn of(trace: &Trace, names: &[String], peaks: Option<&Peaks>) -> Profile {
        let is_step =
            |event: &&Event| event.phase == 'X' && event.category == "range" && names.contains(&event.name);
        let steps: Vec<&Event> = trace.events.iter().filter(is_step).collect();
        if steps.is_empty() {
            return Profile::default();
        }
        let in_step = |event: &Event| {
            steps.iter().any(|step| {
                step.process == event.process && step.start <= event.start && event.start <= step.end()
            })
        };
        let spans = Spans::of(trace);
        let launched: Vec<Launched<'_>> =
            Launched::all(trace).into_iter().filter(|launched| in_step(launched.launch)).collect();
        let has_device = !launched.is_empty();
        let sums = match has_device {
            true => of_device(&spans, &launched, peaks),
            false => of_host(&spans, in_step),
        };
        let count = steps.len() as f64;
        let work = sums.into_iter().map(|((name, operation, operands), sum)| Work {
            name,
            operation,
            operands,
            count: sum.count as f64 / count,
            time: sum.time / count,
            bound: sum
                .bound
                .filter(|_| !sum.has_unbound)
                .map(|bound| Bound { time: bound.time / count, ..bound }),
        });
        let mut work: Vec<Work> = work.collect();
        work.sort_by(|left, right| right.time.total_cmp(&left.time));
        let step_time = steps.iter().map(|step| step.duration).sum::<f64>() / count;
        Profile { steps: steps.len() as u64, step_time, has_device, work }
    }

    /// The time of all work of a step, in microseconds.
    pub fn total(&self) -> f64 {
        self.work.iter().map(|work| work.time).sum()
    }

    /// The works with the most time beyond their bounds.
    pub fn worst(&self) -> Vec<&Work> {
        let mut bounded: Vec<(f64, &Work)> =
            self.work.iter().filter_map(|work| work.excess().map(|excess| (excess, work))).collect();
        bounded.sort_by(|left, right| right.0.total_cmp(&left.0));
        bounded.into_iter().take(3).map(|(_, work)| work).collect()
    }
}

fn of_device(spans: &Spans<'_>, launched: &[Launched<'_>], peaks: Option<&Peaks>) -> Sums {
    let inner = |launched: &Launched<'_>| spans.around(launched.launch);
    // The longest work that each span launches itself.
    let mut longest: HashMap<usize, (f64, usize)> = HashMap::new();
    for (index, one) in launched.iter().enumerate() {
        if let Some(span) = inner(one) {
            let entry = longest.entry(span).or_insert((one.work.duration, index));
            if one.work.duration > entry.0 {
                *entry = (one.work.duration, index);
            }
        }
    }
    let mut sums = Sums::new();
    for (index, one) in launched.iter().enumerate() {
        let span = inner(one);
        let of_span = || {
            let span = span.filter(|span| longest.get(span).is_some_and(|(_, longest)| *longest == index))?;
            bound(spans.all[span].event, peaks?)
        };
        let bound = match one.work.category.as_str() {
            "kernel" => of_span(),
            _ => peaks.and_then(|peaks| bound_of_copy(one.work, peaks)),
        };
        let described = span.filter(|&span| spans.all[span].event.category != "range");
        let operands = described.map_or_else(String::new, |span| operands(spans.all[span].event));
        let operation = span.map(|span| spans.owner(span)).filter(|event| event.category != "range");
        let operation = operation.map_or_else(String::new, |event| event.name.clone());
        let sum = sums.entry((one.work.name.clone(), operation, operands)).or_default();
        sum.count += 1;
        sum.time += one.work.duration;
        match bound {
            Some(bound) => {
                let before = sum.bound.map_or(0.0, |bound| bound.time);
                sum.bound = Some(Bound { time: before + bound.time, ..bound });
            }
            None => sum.has_unbound = true,
        }
    }
    sums
}

/// Operations without the time of the operations inside of them.
fn of_host(spans: &Spans<'_>, in_step: impl Fn(&Event) -> bool) -> Sums {
    let mut sums = Sums::new();
    for span in spans.all.iter().filter(|span| is_operation(span.event) && in_step(span.event)) {
        if span.event.category == "range" {
            continue;
        }
        let key = (span.event.name.clone(), String::new(), operands(span.event));
        let sum = sums.entry(key).or_default();
        sum.count += 1;
        sum.time += (span.event.duration - span.inside).max(0.0);
        sum.has_unbound = true;
    }
    sums
}

/// The product's sizes, or the shapes of the operands, with their dtypes.
fn operands(event: &Event) -> String {
    let text = |name: &str| event.arguments[name].as_str().unwrap_or_default();
    let sizes = if text("product").is_empty() { text("shapes") } else { text("product") };
    let dtypes = if text("dtype").is_empty() { text("dtypes") } else { text("dtype") };
    format!("{sizes} {dtypes}").trim().to_owned()
}

/// The bound of an operation's numbers; `None` if it has none, or if the peak of its dtype is unknown.
fn bound(event: &Event, peaks: &Peaks) -> Option<Bound> {
    let bytes = event.number("bytes").filter(|_| peaks.bytes > 0.0);
    let memory = bytes.map(|bytes| bytes / peaks.bytes * 1e6);
    let operations = event.number("operations");
    let Some(operations) = operations else {
        return memory.map(|time| Bound { time, limit: Limit::Memory });
    };
    let peak = peaks.operations(event.arguments["dtype"].as_str()?)?;
    let arithmetic = Bound { time: operations / peak * 1e6, limit: Limit::Arithmetic };
    Some(match memory {
        Some(time) if time > arithmetic.time => Bound { time, limit: Limit::Memory },
        _ => arithmetic,
    })
}

/// A copy within a device reads and writes each byte, and a fill writes it. The bus to the host has no known limit.
fn bound_of_copy(work: &Event, peaks: &Peaks) -> Option<Bound> {
    let bytes = work.number("bytes").filter(|_| peaks.bytes > 0.0)?;
    let times = match (work.category.as_str(), work.name.as_str()) {
        ("device fill", _) => 1.0,
        ("device copy", "copy device to device") => 2.0,
        _ => return None,
    };
    Some(Bound { time: times * bytes / peaks.bytes * 1e6, limit: Limit::Memory })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DEVICE: u64 = 1 << 30;

    fn event(category: &str, name: &str, track: (u64, u64), times: (f64, f64), arguments: Value) -> Event {
        Event {
            phase: 'X',
            category: category.to_owned(),
            name: name.to_owned(),
            process: track.0,
            thread: track.1,
            start: times.0,
            duration: times.1,
            arguments,
            ..Event::default()
        }
    }

    /// A step of a product in two kernels, a sum, a copy and an operation without numbers; the same work before the step.
    fn trace() -> Trace {
        let mut events = vec![event("range", "step 7", (1, 1), (100.0, 50.0), Value::Null)];
        let mut arrow = 0;
        for start in [0.0, 100.0] {
            let product =
                json!({ "product": "8x8x8 (nn)", "dtype": "bf16", "operations": 4_096_000, "bytes": 1000 });
            events.push(event("operation", "matmul", (1, 1), (start + 1.0, 9.0), json!({ "shapes": "s" })));
            events.push(event("engine", "gemm", (1, 1), (start + 2.0, 7.0), product));
            let sum = json!({ "shapes": "[4]", "dtypes": "f32", "bytes": 7000 });
            events.push(event("operation", "sum", (1, 1), (start + 11.0, 2.0), sum));
            events.push(event("operation", "take", (1, 1), (start + 21.0, 2.0), json!({})));
            for (name, category, launch, duration, bytes) in [
                ("slices", "kernel", 3.0, 5.0, 0),
                ("add slices", "kernel", 4.0, 2.0, 0),
                ("sum", "kernel", 12.0, 8.0, 0),
                ("copy device to device", "device copy", 15.0, 6.0, 3000),
                ("copy host to device", "device copy", 16.0, 1.0, 3000),
                ("take", "kernel", 22.0, 3.0, 0),
            ] {
                arrow += 1;
                let at = start + 40.0 + launch;
                let flow = |phase, track: (u64, u64), start| Event {
                    phase,
                    id: arrow,
                    ..event("flow", "launch", track, (start, 0.0), Value::Null)
                };
                events.push(flow('s', (1, 1), start + launch));
                events.push(flow('f', (DEVICE, 1), at));
                events.push(event(category, name, (DEVICE, 1), (at, duration), json!({ "bytes": bytes })));
            }
        }
        Trace { events, ..Trace::default() }
    }

    #[test]
    fn kernels_of_a_step_have_times_and_bounds() {
        let profile = Profile::of(&trace(), &["step 7".to_owned()], Some(&Peaks::of_test((9, 0))));
        assert_eq!((profile.steps, profile.step_time, profile.has_device), (1, 50.0, true));
        let rows: Vec<_> = profile
            .work
            .iter()
            .map(|work| {
                let bound = work.bound.map(|bound| (bound.time.round(), bound.limit));
                (work.name.as_str(), work.operation.as_str(), work.operands.as_str(), work.time, bound)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("sum", "sum", "[4] f32", 8.0, Some((4.0, Limit::Memory))),
                ("copy device to device", "", "", 6.0, Some((3.0, Limit::Memory))),
                // 4096 operations a clock at 10^9 clocks a second.
                ("slices", "matmul", "8x8x8 (nn) bf16", 5.0, Some((1.0, Limit::Arithmetic))),
                ("take", "take", "", 3.0, None),
                ("add slices", "matmul", "8x8x8 (nn) bf16", 2.0, None),
                ("copy host to device", "", "", 1.0, None),
            ]
        );
        assert_eq!(profile.work[2].ratio(), Some(5.0));
        let worst: Vec<&str> = profile.worst().iter().map(|work| work.name.as_str()).collect();
        assert_eq!(worst, ["sum", "slices", "copy device to device"]);
        assert_eq!(profile.total(), 25.0);
    }

    #[test]
    fn a_card_without_peaks_has_no_bounds_of_products() {
        let bounds = |peaks: Option<&Peaks>| {
            let profile = Profile::of(&trace(), &["step 7".to_owned()], peaks);
            profile.work.iter().filter(|work| work.bound.is_some()).count()
        };
        let peaks = Peaks::of_test((7, 0));
        assert_eq!((bounds(Some(&peaks)), bounds(None)), (2, 0));
    }

    #[test]
    fn operations_of_the_cpu_have_their_time_without_those_inside() {
        let events = vec![
            event("range", "step 1", (1, 1), (0.0, 10.0), Value::Null),
            event("operation", "outer", (1, 1), (1.0, 6.0), json!({ "shapes": "[2]", "dtypes": "f32" })),
            event("operation", "inner", (1, 1), (2.0, 4.0), json!({})),
            event("operation", "after the step", (1, 1), (11.0, 4.0), json!({})),
        ];
        let trace = Trace { events, ..Trace::default() };
        let profile = Profile::of(&trace, &["step 1".to_owned()], None);
        let rows: Vec<_> = profile.work.iter().map(|work| (work.name.as_str(), work.time)).collect();
        assert_eq!((profile.has_device, rows), (false, vec![("inner", 4.0), ("outer", 2.0)]));
        assert!(profile.worst().is_empty());
        assert_eq!(Profile::of(&trace, &["step 2".to_owned()], None).steps, 0);
    }
}
