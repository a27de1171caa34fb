//! The `selvedge` program as a shell sees it: output, exit codes, and what it says about bad input. No test here needs a
//! device: the driver is turned off, and a run then ends with code 3, after everything that can be refused without one;
//! what comes after runs on the fake driver.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use selvedge::io::npy;
use serde_json::Value;

#[path = "cli/attention.rs"]
mod attention;
#[cfg(target_os = "linux")]
#[path = "fake/emulated/build.rs"]
mod build;
#[path = "cli/burst.rs"]
mod burst;
#[path = "cli/classify.rs"]
mod classify;
#[path = "common/mod.rs"]
mod common;
#[path = "cli/compile.rs"]
mod compile;
#[path = "cli/expr.rs"]
mod expr;
#[path = "cli/fine_tuning.rs"]
mod fine_tuning;
#[path = "cli/gemm.rs"]
mod gemm;
#[path = "cli/images.rs"]
mod images;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/model_files.rs"]
mod model_files;
#[path = "cli/models.rs"]
mod models;
#[cfg(target_os = "linux")]
#[path = "cli/on_the_fake_driver.rs"]
mod on_the_fake_driver;
#[path = "cli/profile.rs"]
mod profile;
#[path = "cli/ptx.rs"]
mod ptx;
#[path = "cli/srt.rs"]
mod srt;
#[path = "cli/tokenize.rs"]
mod tokenize;
#[path = "cli/trace.rs"]
mod trace;
#[path = "cli/train.rs"]
mod train;
#[path = "cli/train_data.rs"]
mod train_data;
#[path = "cli/train_memory.rs"]
mod train_memory;
#[cfg(target_os = "linux")]
#[path = "fake/variant.rs"]
mod variant;
#[cfg(target_os = "linux")]
#[path = "cli/writing.rs"]
mod writing;
#[path = "cli/xml.rs"]
mod xml;

const FAILED: i32 = 1;
const FAILED_FOR_INPUT: i32 = 2;
const FAILED_FOR_DEVICE: i32 = 3;

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("selvedge-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program in a machine that has no CUDA library, as far as it can see.
fn selvedge(arguments: &[&str]) -> Output {
    let mut command = Command::new(common::program());
    common::hide_libraries(&mut command).args(arguments).output().unwrap()
}

#[track_caller]
fn succeeds(arguments: &[&str]) -> String {
    let output = selvedge(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// As [`succeeds`], with one warning that says this.
#[track_caller]
fn warns(arguments: &[&str], part: &str) -> String {
    let output = selvedge(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    let is_one = errors.lines().count() == 1 && errors.starts_with("warning: ");
    assert!(output.status.success() && is_one && errors.contains(part), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs what must fail with this code, without output, and say these things.
#[track_caller]
fn fails(code: i32, arguments: &[&str], parts: &[&str]) {
    let output = selvedge(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(code), &b""[..]), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "'{part}' is not in: {errors}");
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A kernel `add(f32*, f32*, f32*, u64)` and one `scale(f32*, f32, u32)`.
const PTX: &str = "\
.version 8.0
.target sm_60
.address_size 64

.visible .entry add(
    .param .u64 add_param_0,
    .param .u64 add_param_1,
    .param .u64 add_param_2,
    .param .u64 add_param_3
)
{
    ret;
}

.visible .entry scale(
    .param .u64 scale_param_0,
    .param .f32 scale_param_1,
    .param .u32 scale_param_2
)
{
    ret;
}
";

#[test]
fn info_works_without_a_driver() {
    let text = succeeds(&["info"]);
    assert!(text.contains("the NVIDIA driver could not be loaded"), "{text}");
    for part in [
        "NVRTC",
        "cuBLAS",
        "cuBLASLt",
        "NCCL",
        "SELVEDGE_LIBCUDA",
        "SELVEDGE_LIBNCCL",
        "asks for none",
        "libcuda.so.1",
    ] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    assert!(!text.contains('\x1b'), "colour in a pipe: {text}");
    for part in ["processors", "threads", "instruction sets"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let value = json(&succeeds(&["info", "--json"]));
    let cpu = &value["cpu"];
    assert!(cpu["processors"].as_u64() > Some(0) && cpu["threads"].as_u64() > Some(0), "{cpu}");
    assert!(cpu["instruction_sets"].is_array() && cpu["architecture"] == std::env::consts::ARCH, "{cpu}");
}

/// A pipe may be an image, and what has no end is refused.
#[test]
#[cfg(unix)]
fn pipes_are_read_and_endless_files_are_not() {
    use std::io::Write;
    use std::process::Stdio;
    for arguments in
        [&["ptx", "/dev/stdin", "--json"][..], &run("/dev/stdin", "scale", &["--arg", "out:f32[4]"])]
    {
        let mut command = Command::new(common::program());
        common::hide_libraries(&mut command).args(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(PTX.as_bytes()).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("scale"), "{arguments:?}: {text}");
    }
    for arguments in [
        &["ptx", "/dev/zero"][..],
        &run("/dev/zero", "scale", &["--arg", "out:f32[4]"]),
        &["memory", "replay", "/dev/zero"],
    ] {
        fails(FAILED_FOR_INPUT, arguments, &["/dev/zero", "more than 512 MiB"]);
    }
}

#[test]
fn info_lists_every_path_that_was_tried() {
    let missing = std::env::temp_dir().join("selvedge-no-such-driver.so");
    let output = Command::new(common::program())
        .args(["info", "--json"])
        .env("SELVEDGE_LIBCUDA", &missing)
        .env("SELVEDGE_LIBNVRTC", "relative/libnvrtc.so")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let value = json(std::str::from_utf8(&output.stdout).unwrap());
    let attempts = |name: &str| {
        let libraries = value["libraries"].as_array().unwrap();
        let library =
            libraries.iter().find(|library| library["name"].as_str().unwrap().contains(name)).unwrap();
        assert_eq!((&library["usable"], &library["path"]), (&Value::Bool(false), &Value::Null));
        library["attempts"].as_array().unwrap().clone()
    };
    let driver = attempts("driver");
    assert_eq!(driver[0]["path"].as_str(), missing.to_str());
    assert_eq!(driver[0]["source"], "SELVEDGE_LIBCUDA");
    assert_eq!(driver[0]["taken"], false);
    assert!(!driver[0]["reason"].as_str().unwrap().is_empty());
    assert!(attempts("NVRTC")[0]["reason"].as_str().unwrap().contains("relative"));
    assert!(value["devices"].as_array().unwrap().is_empty());
    assert!(value["driver"]["error"].as_str().unwrap().contains("could not be loaded"));
}

#[test]
fn the_demonstration_runs_on_the_cpu_and_says_why() {
    let text = succeeds(&["demo", "--elements", "5000"]);
    for part in [
        "on the CPU",
        "No GPU is used: the NVIDIA driver",
        "x[..4] = [",
        "x / (1 + exp(-x)) * y, fused",
        "the same, five kernels",
        "a @ b",
        "[70, 70]",
        "[5000]",
        "GB/s",
        "FLOP/s",
        "all 5,000 elements within 4 ulp of f64",
        "time   the median",
        "selvedge explain matmul",
        "selvedge --help",
    ] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }

    let value = json(&succeeds(&["demo", "--elements", "5000", "--json"]));
    assert_eq!(value["device"]["kind"], "cpu");
    assert!(value["reason"].as_str().unwrap().contains("could not be loaded"));
    let operations = value["operations"].as_array().unwrap();
    let shapes: Vec<&Value> = operations.iter().map(|operation| &operation["shape"]).collect();
    assert_eq!(shapes, [&json("[5000]"), &json("[5000]"), &json("[5000]"), &json("[70, 70]")]);
    for (index, operation) in operations.iter().enumerate() {
        assert_eq!(operation["dtype"], "f32");
        assert!(operation["median_seconds"].as_f64().unwrap() > 0.0);
        let speeds = ["gigabytes_per_second", "gigaflops"].map(|name| operation[name].as_f64());
        assert_eq!(speeds.map(|speed| speed.is_some_and(|speed| speed > 0.0)), [index < 3, index == 3]);
        assert!(!operation["verified"].as_str().unwrap().is_empty());
    }
}

#[test]
fn the_demonstration_of_tensors_reads_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (x, y) = (path("x.npy"), path("y.npy"));
    npy::write_slice(&x, &[1.0f32, 2.0, 3.0, 4.0, 5.0, f32::NAN], &[2, 3]).unwrap();
    npy::write_slice(&y, &[10.0f32, 20.0, 30.0], &[3]).unwrap();
    let text = succeeds(&["demo", "--npy", &x, &y]);
    for part in
        ["tensors on cpu", "No GPU is used", "x.npy", "[2, 3]", "x * y + x", "of plain code", "mean NaN"]
    {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    npy::write_slice(&x, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let value = json(&succeeds(&["demo", "--json", "--npy", &x, &y]));
    assert_eq!((value["device"].as_str(), value["mean"].as_f64()), (Some("cpu"), Some(481.0 / 6.0)));
    assert_eq!(json(&succeeds(&["demo", "--json", "--npy", &y]))["mean"], 1460.0 / 3.0);
    fails(2, &["demo", "--npy", "/no/such.npy"], &["no such file"]);
    fails(2, &["demo", "--npy", &x, "--elements", "4"], &["--elements"]);
    npy::write_slice(&y, &[1.0f32; 4], &[4]).unwrap();
    fails(2, &["demo", "--npy", &x, &y], &["[2, 3]", "[4]"]);
}

/// The mean is NumPy's for each kind of dtype: integers wrap, bools are 0 and 1, and complex numbers keep both parts.
#[test]
fn the_demonstration_of_tensors_takes_every_kind() {
    use num_complex::Complex;

    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x.npy").to_str().unwrap().to_owned();
    let mean = |printed: &str, value: &str| {
        let text = succeeds(&["demo", "--npy", &x]);
        assert!(text.contains(&format!("\nmean {printed}\n")), "{text}");
        assert_eq!(json(&succeeds(&["demo", "--json", "--npy", &x]))["mean"], json(value));
    };
    // (1+2j)^2 + (1+2j) = -2+6j and (3-1j)^2 + (3-1j) = 11-7j.
    npy::write_slice(&x, &[Complex::new(1.0f64, 2.0), Complex::new(3.0, -1.0)], &[2]).unwrap();
    mean("4.5-0.5j", "[4.5, -0.5]");
    npy::write_slice(&x, &[Complex::new(0.0f32, 1.0)], &[1]).unwrap();
    mean("-1+1j", "[-1.0, 1.0]");
    npy::write_slice(&x, &[true.into(), false.into()] as &[selvedge::types::Bool], &[2]).unwrap();
    mean("0.5", "0.5");
    // 100 * 101 is 116 modulo 256, 16 * 17 is 16.
    npy::write_slice(&x, &[100i8, 16], &[2]).unwrap();
    mean("66", "66.0");
    npy::write_slice(&x, &[u64::MAX, 3], &[2]).unwrap();
    mean("6", "6.0");
    npy::write_slice(&x, &[half::f16::from_f32(300.0)], &[1]).unwrap();
    mean("inf", "null");
    npy::write_slice(&x, &[half::bf16::from_f32(3.0)], &[1]).unwrap();
    mean("12", "12.0");
}

#[test]
fn a_device_that_was_asked_for_is_not_replaced_by_the_cpu() {
    fails(FAILED_FOR_DEVICE, &["demo", "--device", "0"], &["the NVIDIA driver could not be loaded"]);
}

#[test]
fn a_wrong_number_of_threads_is_an_error() {
    let demo = &["demo", "--elements", "16"][..];
    // Commands that make no tensor refuse it too.
    for (value, arguments) in [
        ("0", demo),
        ("-1", demo),
        ("many", demo),
        ("0", &["burst", "make", "G", "--output", "missing/g.burst"]),
        ("many", &["ptx", "missing.ptx"]),
    ] {
        let mut command = Command::new(common::program());
        common::hide_libraries(&mut command).args(arguments);
        let output = command.env("SELVEDGE_THREADS", value).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("SELVEDGE_THREADS: found '{value}'; wanted a number of threads, at least 1");
        assert!(output.status.code() == Some(2) && errors.contains(&wanted), "{errors}");
    }
    let mut info = Command::new(common::program());
    let info =
        common::hide_libraries(&mut info).arg("info").env("SELVEDGE_THREADS", "many").output().unwrap();
    assert!(info.status.success(), "{info:?}");
}

#[test]
fn wrong_usage_ends_with_2() {
    fails(2, &["demo", "--elements", "0"], &["'0'"]);
    fails(2, &["sing"], &["sing"]);
    fails(2, &[], &["Usage"]);
    fails(2, &["run", "k.ptx", "--grid", "1", "--block", "1"], &["--entry"]);
    let run = |more: &[&'static str]| [&["run", "k.ptx", "--entry", "k", "--block", "1"], more].concat();
    fails(2, &run(&["--grid", "0"]), &["found '0'", "wanted one to three positive numbers"]);
    fails(2, &run(&["--grid", "1,2,3,4"]), &["found '1,2,3,4'"]);
    fails(2, &run(&["--grid", "1", "--arg", "3:i33"]), &["'i33'", "wanted one of bool, u8"]);
    fails(2, &run(&["--grid", "1", "--arg", "300:u8"]), &["found '300'", "0 to 255 for u8"]);
    fails(2, &run(&["--grid", "1", "--arg", "-1:u32"]), &["found '-1'", "0 to 4294967295"]);
    fails(2, &run(&["--grid", "1", "--arg", "out:f32"]), &["found 'out'", "out:f32[LENGTH]"]);
    fails(2, &run(&["--grid", "1", "--arg", "out:f32[2"]), &["found the shape '[2'"]);
    fails(2, &run(&["--grid", "1", "--out", "r.npy"]), &["NAME=FILE.npy"]);
    fails(2, &run(&["--grid", "1", "--time", "0"]), &["'0'"]);
}

#[test]
fn help_documents_arguments_and_exit_codes() {
    let text = succeeds(&["run", "--help"]);
    for part in ["--arg out:f32[1024]", "--out", "--time", "Exit codes", "no device or no driver"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    assert!(succeeds(&["--help"]).contains("Exit codes"));
    assert!(succeeds(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

/// `selvedge run` of a kernel in a folder.
fn run<'a>(kernel: &'a str, entry: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", kernel, "--entry", entry, "--grid", "4", "--block", "256"], more].concat()
}

#[test]
fn bad_input_is_refused_before_a_device_is_looked_for() {
    let folder = Folder::new("input");
    let kernel = folder.file("kernel.ptx");
    std::fs::write(&kernel, PTX).unwrap();
    let x = folder.file("x.npy");
    npy::write_slice(&x, &[1.0f32; 1024], &[1024]).unwrap();
    let refused = |entry: &str, more: &[&str], parts: &[&str]| {
        fails(FAILED_FOR_INPUT, &run(&kernel, entry, more), parts);
    };

    // Files.
    let bytes = std::fs::read(&x).unwrap();
    let bad = folder.file("bad.npy");
    std::fs::write(&bad, &bytes[..bytes.len() - 10]).unwrap();
    refused("scale", &["--arg", &bad], &["bad.npy", "truncated", "4086 bytes", "4096 bytes for f32[1024]"]);
    let big_endian = String::from_utf8_lossy(&bytes[10..128]).replace("<f4", ">f4");
    std::fs::write(&bad, [&bytes[..10], big_endian.as_bytes(), &bytes[128..]].concat()).unwrap();
    refused("scale", &["--arg", &bad], &["big-endian", "'>f4'", "little-endian"]);
    refused("scale", &["--arg", &format!("{x}:f64")], &["wants f64", "found f32"]);
    refused("scale", &["--arg", &folder.file("none.npy")], &["none.npy", "no such file"]);

    // Names.
    let out = format!("r={}", folder.file("r.npy"));
    refused("scale", &["--arg", "out:f32[4]", "--out", &out], &["--out r", "one of out"]);
    let nowhere = format!("out={}", folder.file("none/r.npy"));
    refused("scale", &["--arg", "out:f32[4]", "--out", &nowhere], &["folder does not exist"]);
    refused("subtract", &[], &["no kernel 'subtract'", "add, scale"]);

    // Arguments against the image's parameters.
    let arguments = |value: &'static str| ["--arg", "out:f32[4]", "--arg", value, "--arg", "4:u32"];
    refused("scale", &arguments("2.5:f32")[..4], &["the arguments of kernel 'scale': found 2; wanted 3"]);
    refused("scale", &arguments("2.5:f64"), &["argument 1", "a float of 8 bytes", "a float of 4 bytes"]);
    refused("scale", &arguments("2:i32"), &["argument 1", "an integer of 4 bytes", "a float of 4 bytes"]);
    refused("scale", &arguments("b:f32[4]"), &["argument 1", "an address of 8 bytes"]);

    // Images.
    let other = folder.file("other");
    fails(FAILED_FOR_INPUT, &run(&other, "k", &[]), &["other", "no such file", "a PTX, cubin or fatbin"]);
    std::fs::write(&other, "#!/bin/sh\necho no kernel\n").unwrap();
    fails(FAILED_FOR_INPUT, &run(&other, "k", &[]), &["not a kernel image", "wanted PTX text"]);

    // And nothing but a device is missing where all of it is right.
    fails(
        FAILED_FOR_DEVICE,
        &run(&kernel, "scale", &arguments("2.5:f32")),
        &["the NVIDIA driver could not be loaded"],
    );
    assert!(!Path::new(&folder.file("r.npy")).exists());
}

#[test]
fn errors_are_json_where_that_was_asked_for() {
    let folder = Folder::new("json");
    let kernel = folder.file("kernel.ptx");
    std::fs::write(&kernel, PTX).unwrap();
    for (entry, code) in [("none", FAILED_FOR_INPUT), ("add", FAILED_FOR_INPUT)] {
        let output = selvedge(&run(&kernel, entry, &["--json"]));
        assert_eq!(output.status.code(), Some(code));
        let value = json(std::str::from_utf8(&output.stdout).unwrap());
        assert_eq!(value["error"]["exit_code"], code);
        assert!(value["error"]["message"].as_str().unwrap().contains(entry));
    }
}
