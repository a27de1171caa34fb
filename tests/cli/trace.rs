//! `selvedge trace`, on traces of this program itself, and on files that are broken or none.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{FAILED_FOR_INPUT, Folder, common, fails, json, selvedge, succeeds};

/// A trace of the demonstration on the CPU.
pub(super) fn demonstration(folder: &Folder) -> String {
    let path = folder.file("trace.json.gz");
    let mut command = std::process::Command::new(common::program());
    let command = common::hide_libraries(&mut command).args(["demo", "--elements", "4096"]);
    let output = command.env("SELVEDGE_TRACE", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

#[test]
fn a_trace_that_cannot_be_written_is_a_warning() {
    let mut command = std::process::Command::new(common::program());
    let command = common::hide_libraries(&mut command).args(["demo", "--elements", "4096"]);
    let output = command.env("SELVEDGE_TRACE", "/no/such/folder/trace.json.gz").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("warning: SELVEDGE_TRACE: no trace is recorded"), "{text}");
}

fn packed(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.file(name);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    std::fs::write(&path, encoder.finish().unwrap()).unwrap();
    path
}

#[test]
fn a_trace_of_the_cpu_shows_its_operations() {
    let folder = Folder::new("trace");
    let path = demonstration(&folder);
    let text = succeeds(&["trace", &path]);
    for part in ["trace of", "operations", "matmul", "host mean"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    assert!(!text.contains("breaks off"), "{text}");
    let value = json(&succeeds(&["trace", &path, "--json"]));
    assert_eq!((&value["complete"], &value["dropped"]), (&json("true"), &json("0")));
    let operations = value["operations"].as_array().unwrap();
    let matmul = operations.iter().find(|operation| operation["name"] == "matmul").unwrap();
    assert!(matmul["host"]["total_us"].as_f64().unwrap() > 0.0, "{matmul}");
}

#[test]
fn a_variable_that_is_still_set_does_not_replace_the_file() {
    let folder = Folder::new("trace-set");
    let path = demonstration(&folder);
    let before = std::fs::read(&path).unwrap();
    let mut command = std::process::Command::new(common::program());
    let output = command.args(["trace", &path]).env("SELVEDGE_TRACE", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_truncated_trace_is_read_up_to_its_break() {
    let folder = Folder::new("trace-truncated");
    let path = demonstration(&folder);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let text = succeeds(&["trace", &path]);
    assert!(text.contains("the file breaks off"), "{text}");
    assert_eq!(json(&succeeds(&["trace", &path, "--json"]))["complete"], false);
}

/// A trace with an addition of so many microseconds, and one kernel for each of these names and times.
fn written(folder: &Folder, name: &str, host: u32, kernels: &[(&str, u32)]) -> String {
    let mut text = "[\n{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"cat\":\"metadata\",\"name\":\"selvedge_trace\",\
                    \"args\":{\"format\":\"selvedge-trace\",\"version\":1,\"selvedge\":\"0.1.0\"}},\n"
        .to_owned();
    let mut add = |process: u32, category: &str, name: &str, start: u32, duration: u32| {
        text += &format!(
            "{{\"ph\":\"X\",\"pid\":{process},\"tid\":1,\"ts\":{start},\"dur\":{duration},\
             \"cat\":\"{category}\",\"name\":\"{name}\"}},\n"
        );
    };
    add(1, "operation", "add", 0, host);
    let mut start = 1000;
    for (kernel, duration) in kernels {
        add(1 << 30, "kernel", kernel, start, *duration);
        start += duration;
    }
    packed(folder, name, &text)
}

#[test]
fn two_traces_are_compared_by_operation_and_by_kernel() {
    let folder = Folder::new("trace-compare");
    let before = written(&folder, "before.gz", 100, &[("old", 30), ("same", 7), ("same", 7), ("k", 100)]);
    let after =
        written(&folder, "after.gz", 150, &[("new", 20), ("same", 7), ("same", 7), ("k", 25), ("k", 25)]);
    let text = succeeds(&["trace", "--compare", &before, &after]);
    for part in ["A: ", "B: ", "operations, by host time", "-50.00 us", "+20.00 us", "0.500", "1.500"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let value = json(&succeeds(&["trace", "--compare", &before, &after, "--json"]));
    let kernels = value["kernels"].as_array().unwrap();
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["k", "old", "new", "same"]);
    let change = |at: usize, key: &str| kernels[at][key].clone();
    let times = |count: u32, total: f64| serde_json::json!({ "count": count, "total_us": total });
    assert_eq!((change(0, "before"), change(0, "after")), (times(1, 100.0), times(2, 50.0)));
    assert_eq!((change(0, "difference_us"), change(0, "ratio")), (json("-50.0"), json("0.5")));
    assert_eq!((change(1, "after"), change(1, "ratio")), (Value::Null, Value::Null));
    assert_eq!((change(2, "before"), change(2, "difference_us")), (Value::Null, json("20.0")));
    assert_eq!(change(3, "ratio"), json("1.0"));
    let operations = value["operations"].as_array().unwrap();
    assert_eq!((operations.len(), &operations[0]["ratio"]), (1, &json("1.5")));
    assert_eq!(value["operations_by"], "host");
    // Neither file has an end.
    assert_eq!((&value["before"]["complete"], text.matches("breaks off").count()), (&json("false"), 2));
}

#[test]
fn a_comparison_takes_two_traces_and_no_other_file() {
    let folder = Folder::new("trace-compare-refused");
    let one = written(&folder, "one.gz", 1, &[]);
    for arguments in
        [&["--compare", &one][..], &["--compare", &one, &one, &one], &[&one, "--compare", &one, &one]]
    {
        let output = selvedge(&[&["trace"], arguments].concat());
        assert_eq!(output.status.code(), Some(FAILED_FOR_INPUT), "{arguments:?}");
    }
    let missing = folder.file("missing");
    fails(FAILED_FOR_INPUT, &["trace", "--compare", &one, &missing], &["missing", "no such file"]);
    let value = json(&succeeds(&["trace", "--compare", &one, &one, "--json"]));
    assert_eq!((&value["difference_us"], &value["kernels"]), (&json("0.0"), &json("[]")));
}

#[test]
fn files_that_are_no_trace_are_refused() {
    let folder = Folder::new("trace-refused");
    let first = r#"{"ph":"M","pid":1,"tid":0,"cat":"metadata","name":"selvedge_trace","args":{"format":"selvedge-trace","version":2}}"#;
    let version = packed(&folder, "version.gz", &format!("[\n{first},\n]\n"));
    fails(FAILED_FOR_INPUT, &["trace", &version], &["version.gz", "version 2", "version 1"]);
    let other = packed(&folder, "other.gz", "[\n{\"name\":\"of another program\"}\n]\n");
    fails(FAILED_FOR_INPUT, &["trace", &other], &["other.gz", "SELVEDGE_TRACE"]);
    let empty = folder.file("empty");
    std::fs::write(&empty, "").unwrap();
    fails(FAILED_FOR_INPUT, &["trace", &empty], &["empty", "no events"]);
    fails(FAILED_FOR_INPUT, &["trace", &folder.file("missing")], &["missing", "no such file"]);
    fails(FAILED_FOR_INPUT, &["trace", &folder.file("")], &["cannot be read"]);
    assert_eq!(selvedge(&["trace"]).status.code(), Some(FAILED_FOR_INPUT));
}

#[test]
fn a_path_that_cannot_be_written_does_not_stop_the_program() {
    let mut command = std::process::Command::new(common::program());
    let command = common::hide_libraries(&mut command).args(["demo", "--elements", "4096"]);
    let output = command.env("SELVEDGE_TRACE", "/no/such/folder/trace.json.gz").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_of_a_device_shows_kernels_gaps_and_memory() {
    let folder = Folder::new("trace-device");
    let (kernel, path) = (folder.file("kernel.ptx"), folder.file("trace.json.gz"));
    std::fs::write(&kernel, super::PTX).unwrap();
    let arguments = ["run", &kernel, "--entry", "scale", "--grid", "1", "--block", "32"];
    let values = ["--arg", "out:f32[4]", "--arg", "1:f32", "--arg", "4:u32"];
    let mut command = super::on_the_fake_driver::on_fake(&[&arguments[..], &values[..]].concat());
    let output = command.env("SELVEDGE_TRACE", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = succeeds(&["trace", &path]);
    for part in ["kernels", "scale", "device copy", "busy", "host ahead", "in use", "the host waited"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let value = json(&succeeds(&["trace", &path, "--json"]));
    let kernels = value["kernels"].as_array().unwrap();
    assert_eq!(kernels.iter().filter(|kernel| kernel["name"] == "scale").count(), 1, "{value}");
    let device = &value["devices"][0];
    assert!(device["peak_live_bytes"].as_f64().unwrap() >= 16.0, "{device}");
    assert!(
        device["clock_error_us"].is_number() && device["host_ahead"]["count"].as_u64() > Some(0),
        "{device}"
    );
}
