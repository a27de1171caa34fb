//! `selvedge memory` and `selvedge memory replay`: what they print and draw, and what they say about files that are wrong.

use std::path::Path;

use selvedge::driver::{BlockSnapshot, BlockState, MemorySnapshot, MemoryTrace, SegmentSnapshot, TraceEvent};

use super::xml::texts;
use super::{FAILED_FOR_INPUT, Folder, fails, json, selvedge, succeeds};

const MIB: u64 = 1 << 20;

/// Three blocks on two streams, one of them cached, and a range of addresses behind them.
fn snapshot() -> MemorySnapshot {
    let block = |offset, bytes, state, stream| BlockSnapshot { offset, bytes, state, stream };
    let blocks = vec![
        block(0, 48 * MIB, BlockState::Live, Some(1)),
        block(48 * MIB, 12 * MIB, BlockState::Cached, None),
        block(60 * MIB, 4 * MIB, BlockState::Live, Some(2)),
        block(64 * MIB, 1 << 40, BlockState::Unmapped, None),
    ];
    let mut snapshot = MemorySnapshot {
        device: "Card <&> \"7\"".to_owned(),
        ordinal: 3,
        pool: "paged".to_owned(),
        total_bytes: 1 << 30,
        limit_bytes: Some(512 * MIB),
        page_bytes: 2 * MIB,
        segments: vec![SegmentSnapshot { address: 0x7f00_0000_0000, bytes: (1 << 40) + 64 * MIB, blocks }],
        ..MemorySnapshot::default()
    };
    let numbers = &mut snapshot.statistics;
    numbers.live_bytes = 52 * MIB;
    numbers.requested_bytes = 51 * MIB;
    numbers.peak_live_bytes = 100 * MIB;
    numbers.cached_bytes = 12 * MIB;
    numbers.largest_cached_bytes = 9 * MIB;
    numbers.reserved_bytes = 64 * MIB;
    numbers.peak_reserved_bytes = 110 * MIB;
    numbers.requests = 1234;
    snapshot
}

/// Of 6 MiB at most, of which 2 are freed before other 2 are asked for.
fn trace() -> MemoryTrace {
    let allocate = |stream, bytes| TraceEvent::Allocate { stream, bytes };
    let free = |allocation| TraceEvent::Free { allocation };
    let events =
        vec![allocate(1, 4 * MIB), allocate(1, 2 * MIB), free(1), allocate(1, 2 * MIB), free(2), free(0)];
    MemoryTrace { device: "Card".to_owned(), events }
}

fn written(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.file(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// All text of a picture; fails where it is not well formed.
#[track_caller]
fn picture(path: &str) -> String {
    texts(&std::fs::read_to_string(path).unwrap())
        .unwrap_or_else(|wrong| panic!("{path}: {wrong}"))
        .join("\n")
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

#[test]
fn a_snapshot_is_summed_up() {
    let folder = Folder::new("summary");
    let file = written(&folder, "s.json", &snapshot().to_json());
    let text = succeeds(&["memory", &file]);
    let parts = [
        "Card <&> \"7\" (device 3)",
        "52.0 MiB",
        "in 2 blocks; 51.0 MiB were asked for",
        "fragmentation 0.250",
    ];
    has(&text, &parts);
    has(
        &text,
        &["110.0 MiB  1.100 of peak live", "512.0 MiB", "0x7f0000000000", "1,234", "paged, pages of 2.0 MiB"],
    );

    let value = json(&succeeds(&["memory", &file, "--json"]));
    assert_eq!((&value["device"], &value["ordinal"]), (&"Card <&> \"7\"".into(), &3.into()));
    assert_eq!(value["statistics"]["peak_reserved_bytes"], 110 * MIB);
    assert_eq!(value["limit_bytes"], 512 * MIB);
    assert_eq!(value["fragmentation"], 0.25);
    assert_eq!((&value["live_blocks"], &value["cached_blocks"]), (&2.into(), &1.into()));
    assert_eq!(value["segments"][0]["live_bytes"], 52 * MIB);
    assert_eq!(value["segments"][0]["unmapped_bytes"], 1u64 << 40);
    let largest = &value["largest_live"];
    assert_eq!(largest.as_array().unwrap().len(), 2);
    assert_eq!(largest[1]["address"], 0x7f00_0000_0000u64 + 60 * MIB);
    assert_eq!((&largest[1]["bytes"], &largest[1]["stream"]), (&(4 * MIB).into(), &2.into()));
    assert_eq!(value["picture"], serde_json::Value::Null);
}

#[test]
fn a_snapshot_is_drawn() {
    let folder = Folder::new("map");
    let (file, map) = (written(&folder, "s.json", &snapshot().to_json()), folder.file("map.svg"));
    let text = succeeds(&["memory", &file, "-o", &map]);
    has(&text, &["picture in ", &map, "52.0 MiB"]);
    let drawn = picture(&map);
    has(
        &drawn,
        &["Memory of Card <&> \"7\" (device 3)", "cap 512.0 MiB", "peak reserved 110.0 MiB", "0.250"],
    );
    has(
        &drawn,
        &["stream 1: 48.0 MiB in 1 block", "#1  48.0 MiB", "cached: 12.0 MiB", "addresses without memory"],
    );
    let address = 0x7f00_0000_0000u64 + 60 * MIB;
    has(
        &drawn,
        &[&format!("live: 4.0 MiB (4194304 bytes) at {address:#x}, stream 2"), "0x7f0000000000", "+32 MiB"],
    );

    let value = json(&succeeds(&["memory", &file, "-o", &map, "--json"]));
    assert_eq!(value["picture"], map.as_str());

    // Nothing at all, and a name that could command a terminal or end a picture.
    let empty = MemorySnapshot { device: "\u{1b}[2J\u{0}\u{ffff}".repeat(1000), ..MemorySnapshot::default() };
    let file = written(&folder, "empty.json", &empty.to_json());
    let text = succeeds(&["memory", &file, "-o", &map]);
    assert!(!text.contains('\u{1b}') && text.len() < 2000, "{text:?}");
    has(&picture(&map), &["The pool holds no memory."]);
}

#[test]
fn snapshots_of_any_size_are_drawn() {
    let folder = Folder::new("sizes");
    let map = folder.file("map.svg");
    let states = [BlockState::Live, BlockState::Live, BlockState::Cached, BlockState::Live];
    let segment = |address: u64, blocks: u64, unit: u64| {
        let mut end = 0;
        let blocks = (0..blocks).map(|at| {
            let bytes = unit * (1 + at * at % 89);
            let (offset, state) = (end, states[(at % 4) as usize]);
            end += bytes;
            BlockSnapshot { offset, bytes, state, stream: (at % 13 > 0).then_some(at % 13) }
        });
        let blocks = blocks.collect();
        SegmentSnapshot { address, bytes: end, blocks }
    };
    let largest = SegmentSnapshot {
        address: 0,
        bytes: u64::MAX,
        blocks: vec![
            BlockSnapshot { offset: 0, bytes: u64::MAX - 1, state: BlockState::Live, stream: Some(u64::MAX) },
            BlockSnapshot { offset: u64::MAX - 1, bytes: 1, state: BlockState::Unmapped, stream: None },
        ],
    };
    for segments in [
        vec![segment(512, 1, 1)],
        vec![segment(0, 5, MIB)],
        vec![segment(0, 5000, 512), segment(1 << 40, 700, MIB)],
        (0..400).map(|at| segment(at << 40, 1 + at % 40, 4096)).collect(),
        vec![largest],
    ] {
        let snapshot = MemorySnapshot { segments, ..MemorySnapshot::default() };
        let blocks: usize = snapshot.segments.iter().map(|segment| segment.blocks.len()).sum();
        let file = written(&folder, "s.json", &snapshot.to_json());
        succeeds(&["memory", &file, "-o", &map]);
        has(&picture(&map), &["Largest live blocks", "#1"]);
        let bytes = std::fs::metadata(&map).unwrap().len();
        assert!(bytes < 3 << 20, "{bytes} bytes for {blocks} blocks");
    }
}

/// Refused: the message names the file and says these things, and there is no picture.
#[track_caller]
fn refused(folder: &Folder, command: &[&str], text: &[u8], parts: &[&str]) {
    let (file, picture) = (folder.file("bad.json"), folder.file("bad.svg"));
    std::fs::write(&file, text).unwrap();
    let arguments = [command, &[&file, "-o", &picture]].concat();
    fails(FAILED_FOR_INPUT, &arguments, &[&["bad.json", "found", "wanted"], parts].concat());
    assert!(!Path::new(&picture).exists(), "a picture of a bad file");
}

#[test]
fn a_wrong_snapshot_is_refused_by_what_is_wrong() {
    let folder = Folder::new("bad-snapshots");
    let good = snapshot().to_json();
    let refused = |text: &str, parts: &[&str]| refused(&folder, &["memory"], text.as_bytes(), parts);
    refused("", &["the end of the text at byte 0"]);
    refused(&good[..good.len() / 2], &["a string that ends", "at byte"]);
    refused(&good[..good.len() - 4], &["the end of the text at byte"]);
    refused("[]", &["'{'"]);
    refused("null", &["'{'"]);
    for (from, to, named) in [
        ("\"version\":1", "\"version\":2", "version 1"),
        ("\"ordinal\":3", "\"ordinal\":\"3\"", "a whole number"),
        ("\"ordinal\":3", "\"ordinal\":3.5", "a whole number"),
        ("\"ordinal\":3,", "", "'ordinal'"),
        ("\"pool\":\"paged\"", "\"pool\":7", "a string"),
        ("\"bytes\":12582912", "\"bytes\":-12582912", "a whole number from 0"),
        ("\"bytes\":12582912", "\"bytes\":99999999999999999999", "2^64"),
        ("\"bytes\":12582912", "\"bytes\":18446744073709551615", "fit the address space"),
        ("\"bytes\":12582912", "\"bytes\":0", "at least one byte"),
        // It begins before its neighbour ends.
        ("\"offset\":62914560", "\"offset\":62914048", "from offset 62914560"),
        ("\"state\":\"cached\"", "\"state\":\"lost\"", "'live', 'cached' or 'unmapped'"),
        ("\"live_bytes\":", "\"dead_bytes\":", "'dead_bytes'"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        refused(&bad, &[named, "at byte"]);
    }
    refused(&trace().to_json(), &["selvedge-memory-snapshot", "selvedge memory replay"]);

    let mut overlapping = snapshot();
    let twin = SegmentSnapshot { address: 0x7f00_0000_0200, ..overlapping.segments[0].clone() };
    overlapping.segments.push(twin);
    refused(&overlapping.to_json(), &["segments that do not overlap", "0x7f0000000200"]);
}

#[test]
fn a_file_that_cannot_be_used_is_refused_before_anything_is_written() {
    let folder = Folder::new("unusable");
    refused(&folder, &["memory"], b"{\xff}", &["no text at byte 1"]);
    refused(&folder, &["memory", "replay"], b"\x80", &["no text at byte 0"]);
    let (none, map) = (folder.file("none.json"), folder.file("map.svg"));
    fails(
        FAILED_FOR_INPUT,
        &["memory", &none, "-o", &map],
        &["none.json", "no such file", "a memory snapshot"],
    );
    fails(FAILED_FOR_INPUT, &["memory", "replay", &none], &["none.json", "no such file", "a memory trace"]);
    fails(FAILED_FOR_INPUT, &["memory", folder.0.to_str().unwrap()], &["cannot be read"]);
    let (file, nowhere) = (written(&folder, "s.json", &snapshot().to_json()), folder.file("none/map.svg"));
    fails(FAILED_FOR_INPUT, &["memory", &file, "-o", &nowhere], &["folder does not exist"]);
    fails(FAILED_FOR_INPUT, &["memory", &file, "-o", folder.0.to_str().unwrap()], &["a folder"]);
    let made = ["memory", "replay", "--generate", "training", "--requests", "9", "--save", &nowhere];
    fails(FAILED_FOR_INPUT, &made, &["folder does not exist"]);

    let output = selvedge(&["memory", &none, "--json"]);
    assert_eq!(output.status.code(), Some(FAILED_FOR_INPUT));
    let value = json(std::str::from_utf8(&output.stdout).unwrap());
    has(value["error"]["message"].as_str().unwrap(), &["none.json"]);
    let output = selvedge(&["memory", "replay", &none, "--json"]);
    let value = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(value["error"]["exit_code"], FAILED_FOR_INPUT);
}

#[test]
fn a_recorded_trace_gives_its_numbers() {
    let folder = Folder::new("replay");
    let (file, plot) = (written(&folder, "t.json", &trace().to_json()), folder.file("plot.svg"));
    let value = json(&succeeds(&["memory", "replay", &file, "--json"]));
    let numbers = &value["statistics"];
    let numbered = |name: &str| numbers[name].as_u64().unwrap();
    assert_eq!((numbered("requests"), value["events"].as_u64()), (3, Some(6)));
    assert_eq!((numbered("peak_requested_bytes"), numbered("peak_live_bytes")), (6 * MIB, 6 * MIB));
    // The third request takes the place of the second.
    assert_eq!((numbered("peak_reserved_bytes"), numbered("reserved_bytes")), (6 * MIB, 6 * MIB));
    assert_eq!((numbered("hits"), numbered("live_bytes"), numbered("cached_bytes")), (1, 0, 6 * MIB));
    assert_eq!((&value["ratio"], &value["refused"], &value["waits"]), (&1.0.into(), &0.into(), &0.into()));
    assert_eq!((&value["pool"], &value["page_bytes"]), (&"paged".into(), &(2 * MIB).into()));

    let text = succeeds(&["memory", "replay", &file, "-o", &plot]);
    has(
        &text,
        &["replay of Card", "6.0 MiB", "1.0000 of the peak asked for", "33.33 % from the cache", &plot],
    );
    let drawn = picture(&plot);
    has(
        &drawn,
        &["Replay of Card", "3 requests", "peak reserved", "6.0 MiB", "1.0000", "Fragmentation", "no cap"],
    );
    has(&drawn, &["peak asked for: 6.0 MiB at event 2"]);

    // With too little memory the second request is refused, and the third again.
    let capped = ["memory", "replay", &file, "--cap", "5M", "--pool", "paged", "--page", "1M"];
    let value = json(&succeeds(&[&capped[..], &["--json", "-o", &plot]].concat()));
    assert_eq!((&value["refused"], &value["limit_bytes"]), (&2.into(), &(5 * MIB).into()));
    assert_eq!(value["statistics"]["peak_requested_bytes"], 4 * MIB);
    has(&picture(&plot), &["2 refused", "cap 5.0 MiB"]);
    has(&succeeds(&capped), &["refused", "cap 5.0 MiB", "pages of 1.0 MiB"]);

    let value = json(&succeeds(&["memory", "replay", &file, "--pool", "plain", "--json"]));
    assert_eq!((&value["pool"], &value["statistics"]["maps"]), (&"plain".into(), &0.into()));

    let empty = written(&folder, "empty.json", &MemoryTrace::default().to_json());
    assert_eq!(json(&succeeds(&["memory", "replay", &empty, "--json", "-o", &plot]))["ratio"], 0.0);
    picture(&plot);
}

#[test]
fn a_made_up_trace_is_the_same_each_time_and_can_be_kept() {
    let folder = Folder::new("generate");
    let (saved, plot) = (folder.file("t.json"), folder.file("plot.svg"));
    let made = ["memory", "replay", "--generate", "training", "--requests", "20000", "--seed", "7"];
    let text = succeeds(&[&made[..], &["--save", &saved, "-o", &plot]].concat());
    has(&text, &["training-like, seed 7", "20,000", "trace in ", &saved]);
    picture(&plot);
    let first = json(&succeeds(&[&made[..], &["--json"]].concat()));
    let again = json(&succeeds(&["memory", "replay", &saved, "--json"]));
    assert_eq!(first, again);
    assert_eq!(first["statistics"]["requests"], 20000);
    assert!(first["ratio"].as_f64().unwrap() >= 1.0);
    let other = json(&succeeds(&[&made[..6], &["--json"]].concat()));
    assert_ne!(first["statistics"], other["statistics"]);
}

#[test]
fn a_wrong_trace_is_refused_by_what_is_wrong() {
    let folder = Folder::new("bad-traces");
    let good = trace().to_json();
    let refused =
        |text: &str, parts: &[&str]| refused(&folder, &["memory", "replay"], text.as_bytes(), parts);
    refused(&good[..good.len() - 4], &["the end of the text"]);
    for (from, to, named) in [
        ("[1,4194304]", "[1,-1]", "a whole number from 0"),
        ("[1,4194304]", "[1,0]", "at least one byte"),
        ("[1,4194304]", "[\"1\",1]", "a whole number"),
        ("[1,4194304]", "[1,2,3]", "one or two numbers"),
        ("[0]", "[7]", "an allocation that is alive"),
        ("[0]", "[1]", "an allocation that is alive"),
        ("\"version\":1", "\"version\":9", "version 1"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        refused(&bad, &[named, "at byte"]);
    }
    refused(&snapshot().to_json(), &["selvedge-memory-trace", "use `selvedge memory`"]);

    // Numbers that no device has are refused one by one, by the pool.
    let huge = good
        .replace("4194304", "18446744073709551615")
        .replace("[1,2097152]", "[4294967295,4611686018427387904]");
    let file = written(&folder, "huge.json", &huge);
    assert_eq!(json(&succeeds(&["memory", "replay", &file, "--json"]))["refused"], 3);
}

#[test]
fn wrong_usage_of_memory_ends_with_2() {
    fails(2, &["memory"], &["Usage"]);
    fails(2, &["memory", "replay"], &["Usage"]);
    fails(2, &["memory", "replay", "--lag", "3"], &["TRACE.json", "--generate"]);
    fails(2, &["memory", "s.json", "replay", "t.json"], &["cannot be used with"]);
    fails(2, &["memory", "replay", "t.json", "--generate", "training"], &["cannot be used with"]);
    fails(2, &["memory", "replay", "t.json", "--save", "u.json"], &["cannot be used with", "TRACE.json"]);
    fails(2, &["memory", "replay", "t.json", "--seed", "3"], &["cannot be used with", "TRACE.json"]);
    fails(2, &["memory", "replay", "--generate", "sorting"], &["training"]);
    fails(2, &["memory", "replay", "t.json", "--pool", "driver"], &["paged", "plain"]);
    for size in ["0", "-1", "1X", "1.5G", "99999999999999999999"] {
        fails(
            2,
            &["memory", "replay", "t.json", &format!("--cap={size}")],
            &[size, "such as 4096, 2M or 80G"],
        );
    }
    let made = ["memory", "replay", "--generate", "training", "--requests", "9", "--page", "3M"];
    fails(2, &made, &["3145728", "a power of two from 4096"]);
    let text = succeeds(&["memory", "--help"]);
    has(&text, &["SNAPSHOT.json", "--output", "replay", "Exit codes"]);
    has(&succeeds(&["memory", "replay", "--help"]), &["--generate", "--cap", "80G", "Exit codes"]);
}
