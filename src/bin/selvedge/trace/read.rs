//! Reading a trace: one event a line in an array, compressed by gzip or already unpacked.

use std::io::{self, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use selvedge::Error;
use serde_json::Value;

use crate::failure::Failure;
use crate::files;

/// The version that this program reads.
const VERSION: u64 = 1;
/// The most bytes of an unpacked trace.
const MAX_BYTES: u64 = 4 << 30;
const WANTED: &str = "a trace that SELVEDGE_TRACE or selvedge::trace recorded";

/// One event; times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub phase: char,
    pub category: String,
    pub name: String,
    pub process: u64,
    pub thread: u64,
    pub start: f64,
    pub duration: f64,
    pub id: u64,
    pub arguments: Value,
}

impl Event {
    pub fn end(&self) -> f64 {
        self.start + self.duration
    }

    /// A number among the arguments.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.arguments.get(name).and_then(Value::as_f64)
    }
}

/// The events of a file.
#[derive(Debug, Default)]
pub struct Trace {
    pub events: Vec<Event>,
    /// The library's version.
    pub selvedge: String,
    /// The arguments of the last event; `None` if the file breaks off.
    pub end: Option<Value>,
}

/// Reads a trace up to its end or its break.
pub fn read(path: &Path) -> Result<Trace, Failure> {
    let bytes = files::read(path, WANTED)?;
    parse(&unpack(&bytes)).map_err(|(found, wanted)| {
        Error::File { path: path.display().to_string(), found, wanted: wanted.to_owned() }.into()
    })
}

/// The text of a compressed file up to its break, or the file itself.
fn unpack(bytes: &[u8]) -> Vec<u8> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes.to_vec();
    }
    let mut text = Vec::new();
    let mut decoder = GzDecoder::new(bytes).take(MAX_BYTES);
    let mut chunk = vec![0; 1 << 16];
    loop {
        match decoder.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The rest is missing or damaged.
            Err(_) => break,
        }
    }
    text
}

/// The trace, or what was found and wanted.
fn parse(text: &[u8]) -> Result<Trace, (String, &'static str)> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let is_array = lines.next() == Some(b"[");
    let first = lines.next().and_then(event);
    let Some(first) = first.filter(|first| is_array && first.arguments["format"] == "selvedge-trace") else {
        let found = if text.is_empty() { "no events" } else { "no such trace at its beginning" };
        return Err((found.to_owned(), WANTED));
    };
    match first.arguments["version"].as_u64() {
        Some(VERSION) => {}
        version => {
            let version =
                version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
            return Err((
                version,
                "version 1 of the format; use the program of the library that recorded it",
            ));
        }
    }
    let selvedge = first.arguments["selvedge"].as_str().unwrap_or("unknown").to_owned();
    let mut trace = Trace { events: vec![first], selvedge, end: None };
    for line in lines {
        match event(line) {
            Some(event) if event.name == "selvedge_end" => {
                trace.end = Some(event.arguments);
                break;
            }
            Some(event) => trace.events.push(event),
            None => break,
        }
    }
    Ok(trace)
}

/// The event of a line, which ends with a comma unless it is the last one.
fn event(line: &[u8]) -> Option<Event> {
    let json: Value = serde_json::from_slice(line.strip_suffix(b",").unwrap_or(line)).ok()?;
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| json[key].as_f64().filter(|number| number.is_finite()).unwrap_or(0.0);
    let whole = |key: &str| json[key].as_u64().unwrap_or(0);
    Some(Event {
        phase: json["ph"].as_str()?.chars().next()?,
        category: text("cat"),
        name: text("name"),
        process: whole("pid"),
        thread: whole("tid"),
        start: number("ts"),
        duration: number("dur").max(0.0),
        id: whole("id"),
        arguments: json["args"].clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const FIRST: &str = r#"{"ph":"M","pid":1,"tid":0,"cat":"metadata","name":"selvedge_trace","args":{"format":"selvedge-trace","version":1,"selvedge":"0.1.0"}},"#;
    const NEXT: &str =
        r#"{"ph":"X","pid":1,"tid":2,"ts":3.250,"dur":1.500,"cat":"range","name":"a","args":{"b":4}},"#;
    const END: &str =
        r#"{"ph":"M","pid":1,"tid":0,"cat":"metadata","name":"selvedge_end","args":{"dropped":5}}"#;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_whole_file_has_its_events_and_its_end() {
        let text = format!("[\n{FIRST}\n{NEXT}\n{END}\n]\n");
        for bytes in [packed(&text), text.into_bytes()] {
            let trace = parse(&unpack(&bytes)).unwrap();
            assert_eq!((trace.events.len(), trace.selvedge.as_str()), (2, "0.1.0"));
            let event = &trace.events[1];
            assert_eq!((event.phase, event.thread, event.end()), ('X', 2, 4.75));
            assert_eq!((event.number("b"), event.number("c")), (Some(4.0), None));
            assert_eq!(trace.end.unwrap()["dropped"], 5);
        }
    }

    #[test]
    fn every_truncation_is_read_up_to_its_break() {
        let text = format!("[\n{FIRST}\n{NEXT}\n{NEXT}\n{END}\n]\n");
        let last = text.find(END).unwrap() + END.len();
        for length in 2 + FIRST.len()..last {
            let trace = parse(&unpack(&text.as_bytes()[..length])).unwrap();
            assert!(trace.end.is_none() && trace.events.len() <= 3, "{length}");
        }
        let whole = packed(&text);
        let mut before = 0;
        for length in 0..whole.len() {
            if let Ok(trace) = parse(&unpack(&whole[..length])) {
                assert!(trace.events.len() >= before, "{length}");
                before = trace.events.len();
            }
        }
    }

    #[test]
    fn other_files_and_versions_are_refused() {
        for text in ["", "[", "{}", "[]", "[\n{}\n]", "[\n{\"ph\":\"X\"},\n", NEXT] {
            let (_, wanted) = parse(&unpack(text.as_bytes())).unwrap_err();
            assert_eq!(wanted, WANTED, "{text}");
        }
        assert!(parse(&unpack(&[0x1f, 0x8b, 1, 2, 3])).is_err());
        for (version, found) in [("2", "version 2"), ("\"1\"", "no version"), ("-1", "no version")] {
            let text = format!("[\n{}\n", FIRST.replace("\"version\":1", &format!("\"version\":{version}")));
            assert_eq!(parse(text.as_bytes()).unwrap_err().0, found);
        }
    }
}
