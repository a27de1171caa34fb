//! `.cu` files given to `selvedge run` and `selvedge ptx`. Tests that need a compiler use the NVRTC that the crate finds.
//! Without one they are skipped, with a line that says so; `SELVEDGE_TEST_NVRTC=12.0` requires one of that version.

use std::process::{Command, Output};

use serde_json::Value;

use super::{FAILED_FOR_DEVICE, FAILED_FOR_INPUT, Folder, common, fails, json, run};

/// Two templates, a kernel with a C++ name, one with a C name; included files in a folder of their own.
const SOURCE: &str = "\
#include \"parts/scale.cuh\"
extern \"C\" __global__ void bare(float *x, unsigned n) { if (threadIdx.x < n) x[threadIdx.x] = FACTOR; }
__global__ void plain(float *x) { x[threadIdx.x] = twice(1.0f); }
";
const SCALE: &str = "\
#include \"twice.cuh\"
namespace ours {
template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= twice(by); }
}
";
const TWICE: &str = "__device__ inline float twice(float x) { return 2 * x; }\n";

/// Returns whether there is an NVRTC for the test of this name.
pub fn nvrtc(test: &str) -> bool {
    let found = selvedge::nvrtc::version();
    match (std::env::var("SELVEDGE_TEST_NVRTC"), found) {
        (Ok(wanted), Ok((major, minor))) => assert_eq!(wanted, format!("{major}.{minor}"), "{test}"),
        (Ok(wanted), Err(error)) => panic!("{test} wants NVRTC {wanted}: {error}"),
        (Err(_), Ok(_)) => {}
        (Err(_), Err(_)) => {
            eprintln!("{test} is left out: there is no NVRTC here");
            return false;
        }
    }
    true
}

/// A folder with the source and what it includes.
pub fn sources(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir_all(folder.file("parts")).unwrap();
    for (file, text) in [("kernels.cu", SOURCE), ("parts/scale.cuh", SCALE), ("parts/twice.cuh", TWICE)] {
        std::fs::write(folder.file(file), text).unwrap();
    }
    folder
}

/// The program with the NVRTC that there is, a cache of its own, and without a driver.
pub fn compiling(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(common::program());
    common::hide_devices(&mut command).env("SELVEDGE_CACHE", folder.0.join("cache"));
    command.args(arguments).output().unwrap()
}

#[track_caller]
pub fn output_of(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
pub fn refused(code: i32, output: &Output, parts: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "'{part}' is not in: {errors}");
    }
}

#[test]
fn without_nvrtc_it_is_said_what_to_do() {
    let folder = sources("no-nvrtc");
    let file = folder.file("kernels.cu");
    let advice =
        ["NVRTC could not be loaded", "pip install", "SELVEDGE_LIBNVRTC", "give PTX, a cubin or a fatbin"];
    fails(FAILED_FOR_DEVICE, &run(&file, "plain", &["--target", "compute_80"]), &advice);
    fails(FAILED_FOR_DEVICE, &["ptx", &file], &advice);
    // And before that what is wrong without one.
    fails(FAILED_FOR_DEVICE, &run(&file, "plain", &[]), &["the NVIDIA driver could not be loaded"]);
    let none = folder.file("none.cu");
    fails(FAILED_FOR_INPUT, &run(&none, "plain", &[]), &["none.cu", "no such file", "CUDA C++"]);
    std::fs::write(&none, [0xff, 0xfe]).unwrap();
    fails(FAILED_FOR_INPUT, &run(&none, "plain", &[]), &["none.cu", "no text at byte 0"]);
    let nowhere = folder.file("nowhere");
    fails(
        FAILED_FOR_INPUT,
        &run(&file, "plain", &["--include-path", &nowhere]),
        &["nowhere", "no such folder"],
    );
}

#[test]
fn sources_compile_with_all_that_they_include() {
    if !nvrtc("sources_compile_with_all_that_they_include") {
        return;
    }
    let folder = sources("compile");
    let file = folder.file("kernels.cu");
    let ptx = |more: &[&str]| {
        compiling(&folder, &[&["ptx", &file, "--json", "--target", "compute_80"], more].concat())
    };
    let value = json(&output_of(&ptx(&["--define", "FACTOR=2"])));
    assert_eq!(value["compiled"]["target"], "compute_80");
    assert_eq!((&value["kind"], &value["entries"][0]["target"]), (&json(r#""PTX""#), &json(r#""sm_80""#)));
    let names: Vec<&str> =
        value["kernels"].as_array().unwrap().iter().map(|kernel| kernel["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"bare") && names.contains(&"_Z5plainPf"), "{names:?}");
    let machine_code = ["ptx", &file, "--json", "--target", "sm_80", "--option=-DFACTOR=3"];
    assert_eq!(json(&output_of(&compiling(&folder, &machine_code)))["kind"], "cubin");

    // Included files elsewhere are found where they are said to be.
    std::fs::rename(folder.file("parts"), folder.file("moved")).unwrap();
    refused(FAILED_FOR_INPUT, &ptx(&["--define", "FACTOR=2"]), &["parts/scale.cuh"]);
    std::fs::create_dir(folder.file("elsewhere")).unwrap();
    std::fs::rename(folder.file("moved"), folder.file("elsewhere/parts")).unwrap();
    output_of(&ptx(&["--define", "FACTOR=2", "--include-path", &folder.file("elsewhere")]));
}

#[test]
fn errors_show_the_line_and_the_place() {
    if !nvrtc("errors_show_the_line_and_the_place") {
        return;
    }
    let folder = sources("errors");
    let file = folder.file("bad.cu");
    std::fs::write(&file, "extern \"C\" __global__ void k(float *x) {\n    x[0] = missing;\n}\n").unwrap();
    for arguments in [run(&file, "k", &["--target", "sm_80"]), vec!["ptx", &file, "--target", "sm_80"]] {
        let output = compiling(&folder, &arguments);
        refused(
            FAILED_FOR_INPUT,
            &output,
            &["bad.cu", "line 2", "x[0] = missing;", "\"missing\" is undefined"],
        );
        let errors = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = errors.lines().collect();
        let at = lines.iter().position(|line| line.contains("x[0] = missing;")).unwrap();
        // NVRTC itself marks the end of a name, this crate its start.
        let caret = lines[at + 1].find('^').unwrap_or_else(|| panic!("{errors}"));
        let name = lines[at].find("missing").unwrap();
        assert!((name..=name + "missing".len()).contains(&caret) && lines[at + 1].trim() == "^", "{errors}");
    }
    let output = compiling(&folder, &run(&file, "k", &["--target", "sm_80", "--json"]));
    let value = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(value["error"]["exit_code"], FAILED_FOR_INPUT);
    assert!(value["error"]["message"].as_str().unwrap().contains("x[0] = missing;"));
    let unknown = compiling(&folder, &["ptx", &file, "--target", "sm_80", "--option=--no-such-option"]);
    refused(FAILED_FOR_INPUT, &unknown, &["no-such-option"]);
    refused(
        FAILED_FOR_INPUT,
        &compiling(&folder, &["ptx", &file, "--target", "sm_31"]),
        &["sm_31", "compiles for"],
    );
}

#[test]
fn kernels_are_found_by_name_and_by_instance() {
    if !nvrtc("kernels_are_found_by_name_and_by_instance") {
        return;
    }
    let folder = sources("entries");
    let file = folder.file("kernels.cu");
    let tried = |entry: &str, more: &[&str]| {
        let target = ["--define", "FACTOR=2", "--target", "compute_80"];
        compiling(&folder, &run(&file, entry, &[&target, more].concat()))
    };
    // All is right but for the driver, which is looked for last.
    let good = |entry: &str, more: &[&str]| {
        refused(FAILED_FOR_DEVICE, &tried(entry, more), &["the NVIDIA driver could not be loaded"]);
    };
    good("bare", &["--arg", "x:f32[4]", "--arg", "4:u32"]);
    good("plain", &["--arg", "x:f32[4]"]);
    good("_Z5plainPf", &["--arg", "x:f32[4]"]);
    good("ours::scale<float>", &["--arg", "x:f32[4]", "--arg", "2:f32"]);
    good("ours::scale<double>", &["--arg", "x:f64[4]", "--arg", "2:f64"]);
    let wrong = tried("ours::scale<double>", &["--arg", "x:f64[4]", "--arg", "2:f32"]);
    refused(FAILED_FOR_INPUT, &wrong, &["argument 1", "a float of 4 bytes", "a float of 8 bytes"]);
    // Machine code does not say it, the PTX that it was made of does.
    let code = ["--define", "FACTOR=2", "--target", "sm_80", "--arg", "x:f32[4]", "--arg", "4:f32"];
    let wrong = compiling(&folder, &run(&file, "bare", &code));
    refused(FAILED_FOR_INPUT, &wrong, &["argument 1", "a float of 4 bytes", "an integer of 4 bytes"]);
    refused(FAILED_FOR_INPUT, &tried("none", &[]), &["no kernel 'none'", "bare", "_Z5plainPf"]);
    refused(FAILED_FOR_INPUT, &tried("none<float>", &[]), &["none<float>", "undefined"]);
}

#[test]
fn a_changed_include_is_compiled_again() {
    if !nvrtc("a_changed_include_is_compiled_again") {
        return;
    }
    let folder = sources("cached");
    let file = folder.file("kernels.cu");
    let ptx = |more: &[&str]| {
        let arguments =
            [&["ptx", &file, "--json", "--target", "compute_80", "--define", "FACTOR=2"], more].concat();
        json(&output_of(&compiling(&folder, &arguments)))
    };
    let cached = |value: &Value| value["compiled"]["from_cache"].as_bool().unwrap();
    assert!(!cached(&ptx(&[])));
    assert!(cached(&ptx(&[])));
    assert!(!cached(&ptx(&["--no-cache"])));
    assert!(!cached(&ptx(&["--define", "OTHER=1"])));
    std::fs::write(folder.file("parts/twice.cuh"), TWICE.replace("2 * x", "x + x + 0 * x")).unwrap();
    assert!(!cached(&ptx(&[])));
    assert!(cached(&ptx(&[])));
    // If a macro makes the name, the included file is unknown, and nothing is cached.
    let text = SOURCE
        .replace("#include \"parts", "#define NAME \"parts")
        .replace("cuh\"\n", "cuh\"\n#include NAME\n");
    std::fs::write(&file, text).unwrap();
    assert!(!cached(&ptx(&[])));
    assert!(!cached(&ptx(&[])));
}

#[test]
fn the_cache_is_shown_and_cleared() {
    if !nvrtc("the_cache_is_shown_and_cleared") {
        return;
    }
    let folder = sources("cache");
    let cache = |arguments: &[&str]| json(&output_of(&compiling(&folder, arguments)));
    let empty = cache(&["cache", "--json"]);
    assert_eq!((&empty["entries"], &empty["bytes"]), (&json("0"), &json("0")));
    assert_eq!(empty["folder"].as_str(), folder.0.join("cache").to_str());
    for target in ["compute_80", "sm_80"] {
        let arguments = ["ptx", &folder.file("kernels.cu"), "--define", "FACTOR=2", "--target", target];
        output_of(&compiling(&folder, &arguments));
    }
    let full = cache(&["cache", "--json"]);
    assert!(full["entries"].as_u64().unwrap() >= 2 && full["bytes"].as_u64().unwrap() > 1000, "{full}");
    assert!(full["limit_bytes"].as_u64().unwrap() > full["bytes"].as_u64().unwrap(), "{full}");
    let text = output_of(&compiling(&folder, &["cache"]));
    assert!(["folder", "entries", "bytes", "limit"].iter().all(|part| text.contains(part)), "{text}");
    let cleared = cache(&["cache", "clear", "--json"]);
    assert_eq!((&cleared["removed_entries"], &cleared["removed_bytes"]), (&full["entries"], &full["bytes"]));
    assert_eq!(cache(&["cache", "--json"])["entries"], 0);
    assert!(output_of(&compiling(&folder, &["cache", "clear"])).contains("Removed 0 entries"));
}

#[test]
fn there_may_be_no_cache() {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(common::program());
        command.env("SELVEDGE_CACHE", "none").args(arguments).output().unwrap()
    };
    assert!(output_of(&command(&["cache"])).contains("There is no cache"));
    assert_eq!(json(&output_of(&command(&["cache", "clear", "--json"])))["folder"], Value::Null);
    let mut relative = Command::new(common::program());
    let output = relative.env("SELVEDGE_CACHE", "some/where").arg("cache").output().unwrap();
    refused(FAILED_FOR_INPUT, &output, &["SELVEDGE_CACHE", "some/where", "absolute"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_source_runs() {
    if !nvrtc("a_source_runs") {
        return;
    }
    let folder = sources("run-source");
    let file = folder.file("kernels.cu");
    let arguments =
        ["--define", "FACTOR=2", "--arg", "x:f32[256]", "--arg", "2:f32", "--time", "5", "--json"];
    let ran = |more: &[&str]| {
        let all = run(&file, "ours::scale<float>", &[&arguments, more].concat());
        let mut command = super::on_the_fake_driver::with_nvrtc(&all);
        command.env("SELVEDGE_CACHE", folder.0.join("cache")).output().unwrap()
    };
    for from_cache in [false, true] {
        // PTX for the oldest driver of the NVRTC's own release.
        let value = json(&output_of(&ran(&["--target", "compute_80", "--lower-ptx-version"])));
        assert_eq!(value["image"]["name"], "_ZN4ours5scaleIfEEvPT_S1_");
        assert_eq!(value["image"]["compiled"]["from_cache"], from_cache);
        assert_eq!((&value["image"]["image"], &value["time"]["samples"]), (&json(r#""PTX""#), &json("5")));
    }
    // Without a target it is the device's own, machine code.
    let value = json(&output_of(&ran(&[])));
    assert_eq!(value["image"]["image"], "cubin");
    assert!(value["image"]["compiled"]["target"].as_str().unwrap().starts_with("sm_90"), "{value}");
}
