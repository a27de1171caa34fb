//! Traces: a program's requests to the pool, in order, and their JSON form.
//!
//! A trace has no addresses and no times, only sizes, streams and the order of requests and frees. Fragmentation
//! depends on nothing else, so a trace recorded on a device can be replayed anywhere.

use std::fmt::Write;

use super::json::{JsonError, JsonReader, Read, needed, once, write_string};
use super::snapshot::read_head;
use crate::error::{Error, Result};

const FORMAT: &str = "selvedge-memory-trace";
const VERSION: u64 = 1;

/// One request of a program to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// The creation of a buffer.
    Allocate {
        /// The stream, numbered from 1 by first appearance.
        stream: u32,
        /// The requested bytes; at least 1.
        bytes: u64,
    },
    /// The drop of a buffer.
    Free {
        /// The index of its allocation in the trace, from 0.
        allocation: u32,
    },
}

/// The requests and frees of a device's pool, in order.
///
/// In JSON the events are arrays: `[stream,bytes]` is a request, and `[allocation]` frees the request with this index,
/// counted from 0.
///
/// ```
/// use selvedge::driver::{MemoryTrace, TraceEvent};
///
/// let trace = MemoryTrace::training_like(1, 1000);
/// assert_eq!(MemoryTrace::from_json(&trace.to_json())?, trace);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTrace {
    /// The device that it was recorded on.
    pub device: String,
    /// The events, in order.
    pub events: Vec<TraceEvent>,
}

impl MemoryTrace {
    /// The number of requests among the events.
    pub fn requests(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, TraceEvent::Allocate { .. })).count()
    }

    /// Returns the trace as JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(128 + self.events.len() * 10);
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"device\":");
        write_string(&mut out, &self.device);
        out.push_str(",\n\"events\":[");
        for (at, event) in self.events.iter().enumerate() {
            let comma = match at {
                0 => "\n",
                _ if at % 16 == 0 => ",\n",
                _ => ",",
            };
            let _ = match event {
                TraceEvent::Allocate { stream, bytes } => write!(out, "{comma}[{stream},{bytes}]"),
                TraceEvent::Free { allocation } => write!(out, "{comma}[{allocation}]"),
            };
        }
        out.push_str("\n]}\n");
        out
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the position of the first error, including a buffer that is freed twice or
    /// before its allocation.
    pub fn from_json(text: &str) -> Result<MemoryTrace> {
        read(&mut JsonReader::new(text))
            .map_err(|JsonError { found, wanted }| Error::invalid("reading a memory trace", found, wanted))
    }
}

fn read(reader: &mut JsonReader<'_>) -> Read<MemoryTrace> {
    let (mut format, mut version, mut device, mut events) = (None, None, None, None);
    reader.object(|reader, key| match key {
        "format" | "version" => read_head(reader, key, (FORMAT, &mut format), (VERSION, &mut version)),
        "device" => {
            let value = reader.string();
            once(reader, key, &mut device, value)
        }
        "events" => {
            let value = read_events(reader);
            once(reader, key, &mut events, value)
        }
        _ => Err(reader.wrong(format!("a member of a trace, not '{key}'"))),
    })?;
    needed(reader, "format", format)?;
    needed(reader, "version", version)?;
    let trace =
        MemoryTrace { device: needed(reader, "device", device)?, events: needed(reader, "events", events)? };
    reader.end()?;
    Ok(trace)
}

fn read_events(reader: &mut JsonReader<'_>) -> Read<Vec<TraceEvent>> {
    let mut events = Vec::new();
    // For each allocation so far, true while it is alive.
    let mut alive = Vec::new();
    reader.array(|reader| {
        let (mut numbers, mut count) = ([0; 2], 0);
        reader.array(|reader| {
            let number = reader.number()?;
            match numbers.get_mut(count) {
                Some(position) => *position = number,
                None => return Err(reader.wrong("one or two numbers")),
            }
            count += 1;
            Ok(())
        })?;
        let event = match (count, numbers) {
            (2, [stream, bytes]) => {
                let stream = u32::try_from(stream).ok().filter(|&stream| stream > 0);
                // A trace numbers allocations by 32 bits.
                let (Some(stream), 1.., true) = (stream, bytes, u32::try_from(alive.len()).is_ok()) else {
                    return Err(reader.wrong("a stream from 1 to 2^32 - 1 and at least one byte before this"));
                };
                alive.push(true);
                TraceEvent::Allocate { stream, bytes }
            }
            (1, [allocation, _]) => {
                let known = usize::try_from(allocation).ok().and_then(|number| alive.get_mut(number));
                match (known, u32::try_from(allocation)) {
                    (Some(alive @ true), Ok(allocation)) => {
                        *alive = false;
                        TraceEvent::Free { allocation }
                    }
                    _ => return Err(reader.wrong("the number of an allocation that is alive before this")),
                }
            }
            _ => return Err(reader.wrong("one or two numbers before this")),
        };
        events.push(event);
        Ok(())
    })?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::{MemoryTrace, TraceEvent};

    fn sample() -> MemoryTrace {
        MemoryTrace {
            device: "NVIDIA H200".to_owned(),
            events: vec![
                TraceEvent::Allocate { stream: 1, bytes: 4096 },
                TraceEvent::Allocate { stream: 2, bytes: 1 },
                TraceEvent::Free { allocation: 0 },
            ],
        }
    }

    #[test]
    fn a_trace_comes_back_from_its_text() {
        for trace in [MemoryTrace::default(), sample()] {
            assert_eq!(MemoryTrace::from_json(&trace.to_json()).unwrap(), trace);
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error_or_a_trace() {
        let text = sample().to_json();
        for at in 0..text.trim_end().len() {
            assert!(MemoryTrace::from_json(&text[..at]).is_err(), "cut at {at}");
            for with in ["\"", "]", "9", "x", "é", ""] {
                let changed = format!("{}{with}{}", &text[..at], &text[at + 1..]);
                if let Ok(trace) = MemoryTrace::from_json(&changed) {
                    assert_eq!(MemoryTrace::from_json(&trace.to_json()).unwrap(), trace);
                }
            }
        }
    }

    #[test]
    fn impossible_events_are_named() {
        let text = sample().to_json();
        for (from, to, names) in [
            ("[0]", "[0],[0]", "alive"),
            ("[0]", "[2]", "alive"),
            ("[0]", "[18446744073709551615]", "alive"),
            ("[0]", "[]", "one or two"),
            ("[0]", "[1,2,3]", "one or two"),
            ("[2,1]", "[0,1]", "a stream from 1"),
            ("[2,1]", "[2,0]", "at least one byte"),
            ("[2,1]", "[4294967296,1]", "a stream from 1"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let error = MemoryTrace::from_json(&changed).unwrap_err().to_string();
            assert!(error.contains(names) && error.contains("at byte"), "{from} -> {to}: {error}");
        }
    }
}
