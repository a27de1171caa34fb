//! The nesting of a trace's operations, and the launch of each work of a device.

use std::collections::{BTreeMap, HashMap};

use super::analysis::{is_device_work, is_operation};
use super::read::{Event, Trace};

/// The largest rounding of a time, in microseconds.
const TINY: f64 = 0.002;

/// Work of a device, and the end of its launch's arrow on the host.
#[derive(Clone, Copy, Debug)]
pub struct Launched<'a> {
    pub launch: &'a Event,
    pub work: &'a Event,
}

/// The bits of a time and a track, by which an arrow's end finds its event.
fn point(event: &Event) -> (u64, u64, u64) {
    (event.process, event.thread, event.start.to_bits())
}

impl<'a> Launched<'a> {
    /// Returns the work of all devices that has an arrow.
    pub fn all(trace: &'a Trace) -> Vec<Launched<'a>> {
        let work = trace.events.iter().filter(|event| is_device_work(event));
        let work: HashMap<_, _> = work.map(|event| (point(event), event)).collect();
        let starts = trace.events.iter().filter(|event| event.phase == 's');
        let starts: HashMap<u64, &Event> = starts.map(|event| (event.id, event)).collect();
        let ends = trace.events.iter().filter(|event| event.phase == 'f');
        ends.filter_map(|end| Some(Launched { launch: starts.get(&end.id)?, work: work.get(&point(end))? }))
            .collect()
    }
}

/// An operation, a call of an engine, or a range.
#[derive(Debug)]
pub struct Span<'a> {
    pub event: &'a Event,
    /// The index of the span around it.
    pub parent: Option<usize>,
    /// The time of the spans directly inside of it, in microseconds.
    pub inside: f64,
}

/// The spans of a trace. Spans of one thread nest.
#[derive(Debug, Default)]
pub struct Spans<'a> {
    /// By thread, then by start.
    pub all: Vec<Span<'a>>,
    /// The indices of each thread.
    threads: BTreeMap<(u64, u64), std::ops::Range<usize>>,
}

impl<'a> Spans<'a> {
    pub fn of(trace: &'a Trace) -> Spans<'a> {
        let mut threads: BTreeMap<(u64, u64), Vec<&Event>> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| is_operation(event)) {
            threads.entry((event.process, event.thread)).or_default().push(event);
        }
        let mut spans = Spans::default();
        for (thread, mut events) in threads {
            events.sort_by(|a, b| a.start.total_cmp(&b.start).then(b.duration.total_cmp(&a.duration)));
            let (first, mut open): (usize, Vec<usize>) = (spans.all.len(), Vec::new());
            for event in events {
                while open.last().is_some_and(|&last| spans.all[last].event.end() + TINY < event.end()) {
                    open.pop();
                }
                let parent = open.last().copied();
                if let Some(parent) = parent {
                    spans.all[parent].inside += event.duration;
                }
                open.push(spans.all.len());
                spans.all.push(Span { event, parent, inside: 0.0 });
            }
            spans.threads.insert(thread, first..spans.all.len());
        }
        spans
    }

    /// Returns the index of the innermost span around an event's start, on its thread.
    pub fn around(&self, event: &Event) -> Option<usize> {
        let thread = self.threads.get(&(event.process, event.thread))?.clone();
        let started = self.all[thread.clone()].partition_point(|span| span.event.start <= event.start);
        // A span that began later and has ended lies beside it, and so does all inside of that one.
        let mut inner = thread.start + started.checked_sub(1)?;
        while self.all[inner].event.end() < event.start {
            inner = self.all[inner].parent?;
        }
        Some(inner)
    }

    /// Returns the operation that a span belongs to: itself, or for a call of an engine the operation around it, if there is one.
    pub fn owner(&self, index: usize) -> &'a Event {
        let event = self.all[index].event;
        let mut outer = self.all[index].parent;
        while event.category == "engine"
            && let Some(index) = outer
        {
            match self.all[index].event.category.as_str() {
                "operation" => return self.all[index].event,
                "range" => break,
                _ => outer = self.all[index].parent,
            }
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(category: &str, name: &str, start: f64, duration: f64) -> Event {
        Event {
            phase: 'X',
            category: category.to_owned(),
            name: name.to_owned(),
            start,
            duration,
            ..Event::default()
        }
    }

    #[test]
    fn spans_nest_and_engines_belong_to_their_operation() {
        let events = vec![
            event("engine", "gemm", 2.0, 3.0),
            event("operation", "matmul", 1.0, 5.0),
            event("range", "step", 0.0, 20.0),
            event("engine", "sort", 10.0, 2.0),
            event("operation", "later", 30.0, 1.0),
        ];
        let trace = Trace { events, ..Trace::default() };
        let spans = Spans::of(&trace);
        let names: Vec<_> = spans.all.iter().map(|span| (span.event.name.as_str(), span.parent)).collect();
        assert_eq!(
            names,
            [("step", None), ("matmul", Some(0)), ("gemm", Some(1)), ("sort", Some(0)), ("later", None)]
        );
        assert_eq!(spans.all[0].inside, 7.0);
        let around = |at: f64| spans.around(&event("", "", at, 0.0));
        assert_eq!(
            [-1.0, 0.5, 1.5, 3.0, 5.5, 8.0, 11.0, 25.0, 30.5].map(around),
            [None, Some(0), Some(1), Some(2), Some(1), Some(0), Some(3), None, Some(4)]
        );
        let owners: Vec<&str> = (0..5).map(|index| spans.owner(index).name.as_str()).collect();
        assert_eq!(owners, ["step", "matmul", "matmul", "sort", "later"]);
    }
}
