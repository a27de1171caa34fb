//! One event of a trace, and its JSON in the Chrome trace event format.

use std::borrow::Cow;
use std::fmt::Write;

/// Named values of an event.
pub(crate) type Arguments = Vec<(&'static str, Value)>;

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i64),
    Float(f64),
    Text(Cow<'static, str>),
    /// Extents in x, y and z, such as `16x16x1`.
    Extents([u32; 3]),
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Integer(value.into())
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Integer(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<[u32; 3]> for Value {
    fn from(extents: [u32; 3]) -> Value {
        Value::Extents(extents)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value.into())
    }
}

impl From<&'static str> for Value {
    fn from(value: &'static str) -> Value {
        Value::Text(value.into())
    }
}

/// A row of the picture: a thread of the host, or a stream of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Track {
    pub(crate) process: u64,
    pub(crate) thread: u64,
}

/// The process number of device 0. No process of a system has such a number.
const FIRST_DEVICE: u64 = 1 << 30;

impl Track {
    /// The track of a stream.
    pub(crate) fn stream(device: i32, stream: u64) -> Track {
        Track { process: FIRST_DEVICE + u64::from(device.unsigned_abs()), thread: stream }
    }

    /// The track of a thread of this process.
    pub(crate) fn host(thread: u64) -> Track {
        Track { process: std::process::id().into(), thread }
    }
}

/// The phase of an event: `ph` in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// An event with a duration in nanoseconds.
    Complete { duration: u64 },
    /// A point in time.
    Instant,
    /// Values over time.
    Counter,
    /// The beginning of an arrow between tracks.
    FlowStart { id: u64 },
    /// The end of an arrow.
    FlowEnd { id: u64 },
    /// A description of the file, a process or a thread.
    Metadata,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) phase: Phase,
    pub(crate) category: &'static str,
    pub(crate) name: Cow<'static, str>,
    /// Nanoseconds by [`now`](super::now).
    pub(crate) start: u64,
    /// `None` for the thread that records the event.
    pub(crate) track: Option<Track>,
    pub(crate) arguments: Arguments,
}

impl Event {
    /// A description with the name of the format's own or of this library's.
    pub(crate) fn metadata(name: &'static str, track: Track, arguments: Arguments) -> Event {
        Event {
            phase: Phase::Metadata,
            category: "metadata",
            name: name.into(),
            start: 0,
            track: Some(track),
            arguments,
        }
    }

    /// Appends the event's JSON, without a line break. Times are microseconds with three decimals.
    pub(crate) fn write(&self, out: &mut String, track: Track) {
        let letter = match self.phase {
            Phase::Complete { .. } => 'X',
            Phase::Instant => 'i',
            Phase::Counter => 'C',
            Phase::FlowStart { .. } => 's',
            Phase::FlowEnd { .. } => 'f',
            Phase::Metadata => 'M',
        };
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{{\"ph\":\"{letter}\",\"pid\":{},\"tid\":{}", track.process, track.thread);
        if self.phase != Phase::Metadata {
            out.push_str(",\"ts\":");
            write_microseconds(out, self.start);
        }
        match self.phase {
            Phase::Complete { duration } => {
                out.push_str(",\"dur\":");
                write_microseconds(out, duration);
            }
            Phase::Instant => out.push_str(",\"s\":\"t\""),
            Phase::FlowStart { id } => drop(write!(out, ",\"id\":{id}")),
            // The arrow ends at the event that encloses this point.
            Phase::FlowEnd { id } => drop(write!(out, ",\"id\":{id},\"bp\":\"e\"")),
            Phase::Counter | Phase::Metadata => {}
        }
        out.push_str(",\"cat\":");
        write_text(out, self.category);
        out.push_str(",\"name\":");
        write_text(out, &self.name);
        if !self.arguments.is_empty() {
            out.push_str(",\"args\":{");
            for (index, (name, value)) in self.arguments.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                match value {
                    Value::Integer(value) => drop(write!(out, "{value}")),
                    Value::Float(value) if value.is_finite() => drop(write!(out, "{value}")),
                    Value::Float(_) => out.push_str("null"),
                    Value::Text(text) => write_text(out, text),
                    Value::Extents([x, y, z]) => drop(write!(out, "\"{x}x{y}x{z}\"")),
                }
            }
            out.push('}');
        }
        out.push('}');
    }
}

fn write_microseconds(out: &mut String, nanoseconds: u64) {
    let _ = write!(out, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if u32::from(control) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}
