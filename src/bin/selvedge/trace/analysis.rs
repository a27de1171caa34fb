//! The sums of a trace: by operation, by kernel, and for each device its gaps, its distance to the host and its memory.

use std::collections::BTreeMap;

use super::read::{Event, Trace};
use super::spans::{Launched, Spans};

/// The process of device 0 in a trace; the others follow.
const FIRST_DEVICE: u64 = 1 << 30;
/// Categories of a device's work.
const DEVICE_WORK: [&str; 4] = ["kernel", "device copy", "device fill", "graph"];

/// Times of events with one name, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    pub count: u64,
    pub total: f64,
    pub max: f64,
}

impl Times {
    fn add(&mut self, duration: f64) {
        self.count += 1;
        self.total += duration;
        self.max = self.max.max(duration);
    }

    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total / self.count as f64 }
    }
}

/// An operation or a range of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationTimes {
    pub name: String,
    pub category: String,
    pub host: Times,
    /// The device's work that this operation, and no operation inside of it, launched.
    pub device: Times,
}

/// A kernel, or a copy, a fill or a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelTimes {
    pub name: String,
    pub category: String,
    pub times: Times,
}

/// A time without work on any stream of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gap {
    pub start: f64,
    pub duration: f64,
    /// The name of the work that ends the gap.
    pub before: String,
}

/// The sums of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTimes {
    pub name: String,
    /// From the start of the first work to the end of the last.
    pub span: f64,
    /// The time with work on at least one stream.
    pub busy: f64,
    pub gaps: u64,
    pub longest: Option<Gap>,
    /// Times from a launch on the host to the start on the device.
    pub ahead: Times,
    /// The largest number of bytes in use, and its time.
    pub peak_live: Option<(f64, f64)>,
    pub peak_reserved: Option<f64>,
    /// The largest error of the clock's calibrations.
    pub clock_error: Option<f64>,
}

impl DeviceTimes {
    pub fn idle(&self) -> f64 {
        (self.span - self.busy).max(0.0)
    }
}

/// The sums of a trace.
#[derive(Debug, Default)]
pub struct Analysis {
    /// From the first event to the end of the last.
    pub duration: f64,
    /// Sorted by the device's time, then by the host's.
    pub operations: Vec<OperationTimes>,
    /// Sorted by time.
    pub kernels: Vec<KernelTimes>,
    /// The host's waits.
    pub waits: Times,
    pub devices: BTreeMap<u64, DeviceTimes>,
}

pub(super) fn is_device_work(event: &Event) -> bool {
    event.phase == 'X' && DEVICE_WORK.contains(&event.category.as_str())
}

/// Returns whether this is an operation of tensors, a call of an engine, or a range of the program.
pub fn is_operation(event: &Event) -> bool {
    event.phase == 'X' && matches!(event.category.as_str(), "operation" | "engine" | "range")
}

fn larger(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.max(right)),
        (left, right) => left.or(right),
    }
}

impl Analysis {
    pub fn of(trace: &Trace) -> Analysis {
        let timed = || trace.events.iter().filter(|event| event.phase != 'M');
        let first = timed().map(|event| event.start).fold(f64::INFINITY, f64::min);
        let last = timed().map(Event::end).fold(f64::NEG_INFINITY, f64::max);
        let mut analysis = Analysis { duration: (last - first).max(0.0), ..Analysis::default() };
        for event in timed().filter(|event| event.phase == 'X' && event.category == "wait") {
            analysis.waits.add(event.duration);
        }
        analysis.add_kernels(trace);
        analysis.add_devices(trace);
        let launched = Launched::all(trace);
        for Launched { launch, work } in &launched {
            let device = analysis.devices.entry(work.process).or_default();
            device.ahead.add((work.start - launch.start).max(0.0));
        }
        analysis.add_operations(trace, &launched);
        analysis
    }

    fn add_kernels(&mut self, trace: &Trace) {
        let mut kernels: BTreeMap<(&str, &str), Times> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| is_device_work(event)) {
            kernels.entry((&event.category, &event.name)).or_default().add(event.duration);
        }
        let made = |((category, name), times): ((&str, &str), Times)| KernelTimes {
            name: name.to_owned(),
            category: category.to_owned(),
            times,
        };
        self.kernels = kernels.into_iter().map(made).collect();
        self.kernels.sort_by(|left, right| right.times.total.total_cmp(&left.times.total));
    }

    fn add_devices(&mut self, trace: &Trace) {
        let mut work: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| event.process >= FIRST_DEVICE) {
            let device = self.devices.entry(event.process).or_default();
            match (event.phase, event.name.as_str()) {
                ('M', "process_name") => {
                    device.name = event.arguments["name"].as_str().unwrap_or_default().to_owned();
                }
                ('M', "selvedge_calibration") => {
                    let error = event.number("error_us");
                    device.clock_error = larger(device.clock_error, error);
                }
                ('C', _) => {
                    if let Some(live) = event.number("live")
                        && device.peak_live.is_none_or(|(peak, _)| live > peak)
                    {
                        device.peak_live = Some((live, event.start));
                    }
                    device.peak_reserved = larger(device.peak_reserved, event.number("reserved"));
                }
                _ if is_device_work(event) => work.entry(event.process).or_default().push(event),
                _ => {}
            }
        }
        for (process, mut events) in work {
            let device = self.devices.entry(process).or_default();
            events.sort_by(|left, right| left.start.total_cmp(&right.start));
            let (first, mut end) = (events[0].start, events[0].start);
            for event in events {
                if event.start > end {
                    let duration = event.start - end;
                    device.gaps += 1;
                    if device.longest.as_ref().is_none_or(|longest| duration > longest.duration) {
                        device.longest = Some(Gap { start: end, duration, before: event.name.clone() });
                    }
                }
                device.busy += (event.end() - event.start.max(end)).max(0.0);
                end = end.max(event.end());
            }
            device.span = end - first;
        }
    }

    /// Adds each launch to the innermost operation around it.
    fn add_operations(&mut self, trace: &Trace, launched: &[Launched<'_>]) {
        let spans = Spans::of(trace);
        let mut sums: BTreeMap<(&str, &str), (Times, Times)> = BTreeMap::new();
        for Launched { launch, work } in launched {
            if let Some(owner) = spans.around(launch).map(|inner| spans.owner(inner)) {
                sums.entry((&owner.category, &owner.name)).or_default().1.add(work.duration);
            }
        }
        for (index, span) in spans.all.iter().enumerate() {
            // A call of an engine within an operation is a part of it.
            if std::ptr::eq(spans.owner(index), span.event) {
                sums.entry((&span.event.category, &span.event.name)).or_default().0.add(span.event.duration);
            }
        }
        let made = |((category, name), (host, device)): ((&str, &str), (Times, Times))| OperationTimes {
            name: name.to_owned(),
            category: category.to_owned(),
            host,
            device,
        };
        self.operations = sums.into_iter().map(made).collect();
        self.operations.sort_by(|left, right| {
            let by_device = right.device.total.total_cmp(&left.device.total);
            by_device.then(right.host.total.total_cmp(&left.host.total))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DEVICE: u64 = FIRST_DEVICE;

    fn event(
        phase: char,
        category: &str,
        name: &str,
        (process, thread): (u64, u64),
        times: (f64, f64),
    ) -> Event {
        Event {
            phase,
            category: category.to_owned(),
            name: name.to_owned(),
            process,
            thread,
            start: times.0,
            duration: times.1,
            ..Event::default()
        }
    }

    fn counter(start: f64, arguments: Value) -> Event {
        Event { arguments, ..event('C', "memory", "memory", (DEVICE, 0), (start, 0.0)) }
    }

    /// Two operations, one in a range, with a launch each: device work from 20 to 30 and from 35 to 40.
    fn trace() -> Trace {
        let arrow = |id, launch, start| {
            [
                Event { id, ..event('s', "flow", "launch", (1, 1), (launch, 0.0)) },
                Event { id, ..event('f', "flow", "launch", (DEVICE, 7), (start, 0.0)) },
            ]
        };
        let mut events = vec![
            event('X', "operation", "add", (1, 1), (1.0, 4.0)),
            event('X', "operation", "multiply", (1, 1), (6.0, 3.0)),
            event('X', "range", "step", (1, 1), (0.0, 12.0)),
            event('X', "wait", "wait for a stream", (1, 1), (10.0, 30.0)),
            event('X', "kernel", "k", (DEVICE, 7), (20.0, 10.0)),
            event('X', "kernel", "k", (DEVICE, 7), (35.0, 5.0)),
            event('X', "device copy", "c", (DEVICE, 8), (25.0, 8.0)),
            counter(1.0, json!({ "live": 100 })),
            counter(2.0, json!({ "live": 300, "reserved": 500 })),
            counter(3.0, json!({ "live": 200 })),
        ];
        events.extend(arrow(1, 2.0, 20.0));
        events.extend(arrow(2, 7.0, 35.0));
        Trace { events, ..Trace::default() }
    }

    #[test]
    fn launches_belong_to_the_innermost_operation() {
        let analysis = Analysis::of(&trace());
        let found: Vec<_> =
            analysis.operations.iter().map(|sum| (&*sum.name, sum.device.total, sum.host.total)).collect();
        assert_eq!(found, [("add", 10.0, 4.0), ("multiply", 5.0, 3.0), ("step", 0.0, 12.0)]);
    }

    #[test]
    fn kernels_gaps_and_peaks_are_summed() {
        let analysis = Analysis::of(&trace());
        assert_eq!(analysis.duration, 40.0);
        let kernel = &analysis.kernels[0];
        assert_eq!(
            (kernel.times.count, kernel.times.total, kernel.times.mean(), kernel.times.max),
            (2, 15.0, 7.5, 10.0)
        );
        let device = &analysis.devices[&DEVICE];
        // From 20 to 33 and from 35 to 40.
        assert_eq!((device.span, device.busy, device.idle(), device.gaps), (20.0, 18.0, 2.0, 1));
        assert_eq!(device.longest, Some(Gap { start: 33.0, duration: 2.0, before: "k".to_owned() }));
        assert_eq!((device.ahead.count, device.ahead.mean(), device.ahead.max), (2, 23.0, 28.0));
        assert_eq!((device.peak_live, device.peak_reserved), (Some((300.0, 2.0)), Some(500.0)));
        assert_eq!(analysis.waits, Times { count: 1, total: 30.0, max: 30.0 });
    }

    #[test]
    fn a_trace_without_events_has_empty_sums() {
        let analysis = Analysis::of(&Trace::default());
        assert!(analysis.duration == 0.0 && analysis.kernels.is_empty() && analysis.devices.is_empty());
    }
}
