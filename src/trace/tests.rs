//! The writer's tests. They share the one recorder of the process, so each holds a lock.

use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::read::GzDecoder;
use serde_json::Value as Json;

use super::*;

fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The events of a complete file.
fn events(path: &Path) -> Vec<Json> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn named<'a>(events: &'a [Json], name: &str) -> Vec<&'a Json> {
    events.iter().filter(|event| event["name"] == name).collect()
}

#[test]
fn ranges_are_written_once_with_nesting_and_escapes() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json.gz");
    assert!(!is_on());
    drop(range("before"));
    start(&path).unwrap();
    {
        let _outer = range("outer \"\\\n\u{1}");
        drop(range("inner"));
        let thread = std::thread::Builder::new().name("loader".to_owned());
        thread.spawn(|| drop(range("elsewhere"))).unwrap().join().unwrap();
    }
    stop().unwrap();
    drop(range("after"));
    let events = events(&path);
    assert_eq!(events[0]["args"]["format"], "selvedge-trace");
    assert_eq!(events[0]["args"]["version"], 1);
    assert_eq!(events[0]["args"]["selvedge"], env!("CARGO_PKG_VERSION"));
    assert!(named(&events, "before").is_empty() && named(&events, "after").is_empty());
    let one = |name: &str| {
        let found = named(&events, name);
        assert_eq!(found.len(), 1, "{name}");
        let number = |key: &str| found[0][key].as_f64().unwrap();
        (number("ts"), number("ts") + number("dur"), found[0]["tid"].as_u64().unwrap())
    };
    let (outer, inner, elsewhere) = (one("outer \"\\\n\u{1}"), one("inner"), one("elsewhere"));
    assert!(outer.0 <= inner.0 && inner.1 <= outer.1 + 0.001, "{inner:?} is not inside of {outer:?}");
    assert!(outer.2 == inner.2 && outer.2 != elsewhere.2);
    let thread = named(&events, "thread_name");
    assert!(thread.iter().any(|event| event["tid"] == elsewhere.2 && event["args"]["name"] == "loader"));
    let end = events.last().unwrap();
    assert_eq!((&end["name"], &end["args"]["dropped"]), (&"selvedge_end".into(), &0.into()));
}

#[test]
fn a_second_trace_is_refused_and_leaves_the_first() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.gz"), folder.path().join("second.gz"));
    start(&first).unwrap();
    let error = start(&second).unwrap_err();
    assert!(matches!(error, crate::Error::InvalidArgument { .. }), "{error}");
    assert!(error.to_string().contains("first.gz") && !second.exists(), "{error}");
    drop(range("still recorded"));
    stop().unwrap();
    assert_eq!(named(&events(&first), "still recorded").len(), 1);
    stop().unwrap();
    start(&second).unwrap();
    stop().unwrap();
    assert!(named(&events(&second), "still recorded").is_empty());
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_at_the_start() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let error = start(folder.path().join("missing").join("trace.gz")).unwrap_err();
    assert!(matches!(error, crate::Error::FileNotWritten { .. }), "{error}");
    assert!(!is_on());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_of_stop() {
    let _alone = alone();
    if !Path::new("/dev/full").exists() {
        return;
    }
    let error = match start("/dev/full") {
        Ok(()) => stop().unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, crate::Error::FileNotWritten { .. }), "{error}");
    assert!(!is_on());
}

#[test]
fn a_range_of_an_earlier_trace_is_not_in_the_next() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.gz"), folder.path().join("second.gz"));
    start(&first).unwrap();
    let open = range("begun in the first");
    stop().unwrap();
    start(&second).unwrap();
    drop(open);
    stop().unwrap();
    assert!(named(&events(&first), "begun in the first").is_empty());
    assert!(named(&events(&second), "begun in the first").is_empty());
}

#[test]
fn a_full_buffer_drops_events_and_the_file_counts_them() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.gz");
    start(&path).unwrap();
    let more = 1000;
    let recorded = {
        // No flush happens while the lock is held.
        let held = recording::hold();
        for _ in 0..buffer::MAX_WAITING + more {
            drop(range("many"));
        }
        drop(held);
        buffer::MAX_WAITING
    };
    stop().unwrap();
    let events = events(&path);
    assert_eq!(named(&events, "many").len(), recorded);
    assert_eq!(events.last().unwrap()["args"]["dropped"], more as u64);
}
