//! `selvedge trace`, on traces of this program itself, and on files that are broken or none.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{FAILED_FOR_INPUT, Folder, common, fails, json, selvedge, succeeds};

/// A trace of the demonstration on the CPU.
fn demonstration(folder: &Folder) -> String {
    let path = folder.file("trace.json.gz");
    let mut command = std::process::Command::new(common::program());
    let command = common::hide_libraries(&mut command).args(["demo", "--elements", "4096"]);
    let output = command.env("SELVEDGE_TRACE", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    path
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
