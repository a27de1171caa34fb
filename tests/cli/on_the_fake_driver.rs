//! The program on the fake driver, whose kernels do not compute but whose calls are those of a device.

use std::sync::LazyLock;

use selvedge::types::DType;

use super::*;

/// The version that the fake driver reports.
const VERSION: i32 = 12080;

/// Compiled once, however many tests ask at once.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| variant::build(&variant::Variant::new(VERSION)).unwrap());

/// A driver at least as new as the machine's NVRTC, whose machine code an older driver refuses.
static DRIVER_OF_NVRTC: LazyLock<PathBuf> = LazyLock::new(|| {
    let nvrtc = selvedge::nvrtc::version().map_or(0, |(major, minor)| major * 1000 + minor * 10);
    variant::build(&variant::Variant::new(VERSION.max(nvrtc))).unwrap()
});

fn on_driver(driver: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(common::program());
    command.args(arguments).env("SELVEDGE_LIBCUDA", driver);
    command
}

/// The program on the fake driver, without an NVRTC.
pub fn on_fake(arguments: &[&str]) -> Command {
    let mut command = on_driver(&DRIVER, arguments);
    command.env("SELVEDGE_LIBNVRTC", "none");
    command
}

fn selvedge(arguments: &[&str]) -> Output {
    on_fake(arguments).output().unwrap()
}

/// The program on the fake driver, with the NVRTC that there is.
pub fn with_nvrtc(arguments: &[&str]) -> Command {
    on_driver(&DRIVER_OF_NVRTC, arguments)
}

#[track_caller]
pub fn succeeds(arguments: &[&str]) -> String {
    let output = selvedge(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub fn fails(code: i32, arguments: &[&str], parts: &[&str]) {
    let output = selvedge(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "'{part}' is not in: {errors}");
    }
}

#[test]
fn info_shows_devices_and_the_driver() {
    let value = json(&succeeds(&["info", "--json"]));
    assert_eq!(value["driver"]["cuda"], "12.8");
    assert_eq!(value["driver"]["ptx_isa"], "8.7");
    let device = &value["devices"][0];
    assert!(device["memory_free_bytes"].as_u64().unwrap() <= device["memory_total_bytes"].as_u64().unwrap());
    assert!(device["uuid"].as_str().unwrap().starts_with("GPU-"));
    let text = succeeds(&["info"]);
    assert!(text.contains(device["name"].as_str().unwrap()) && text.contains("up to 8.7"), "{text}");
}

#[test]
fn a_kernel_runs_on_files() {
    let folder = Folder::new("run");
    let kernel = folder.file("kernel.ptx");
    std::fs::write(&kernel, PTX).unwrap();
    let (x, r) = (folder.file("x.npy"), folder.file("r.npy"));
    npy::write_slice(&x, &[1.0f32; 24], &[2, 12]).unwrap();
    let (named, saved) = (format!("x={x}:f32"), format!("out={r}"));
    let x_saved = format!("x={}", folder.file("x2.npy"));
    let arguments = [
        ["--arg", named.as_str()],
        ["--arg", x.as_str()],
        ["--arg", "out:f16[4,6]"],
        ["--arg", "24:u64"],
        ["--out", saved.as_str()],
        ["--out", x_saved.as_str()],
        ["--time", "70"],
    ];
    let arguments = run(&kernel, "add", arguments.as_flattened());

    let text = succeeds(&arguments);
    for part in ["add of", "grid", "4,1,1", "256,1,1", "[2, 12]", "out", "f16", "[4, 6]", "70", "median"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    let result = npy::read(&r).unwrap();
    assert_eq!((result.dtype(), result.shape()), (DType::F16, &[4, 6][..]));
    let x_saved = npy::read(folder.file("x2.npy")).unwrap();
    assert_eq!((x_saved.dtype(), x_saved.shape()), (DType::F32, &[2, 12][..]));

    let value = json(&succeeds(&[&arguments[..], &["--json"]].concat()));
    assert_eq!(value["entry"], "add");
    assert_eq!(value["arguments"].as_array().unwrap().len(), 4);
    assert_eq!(value["arguments"][3]["value"], "24");
    assert_eq!(value["results"][1]["path"], r.as_str());
    assert_eq!(value["results"][1]["first"].as_array().unwrap().len(), 6);
    let time = &value["time"];
    assert_eq!((&time["samples"], &time["argument_bytes"]), (&json("70"), &json("240")));
    let seconds = |name: &str| time[name].as_f64().unwrap();
    assert!(seconds("min_seconds") <= seconds("median_seconds"), "{time}");
    assert!(seconds("median_seconds") <= seconds("max_seconds"), "{time}");
    // The fake's launches take a microsecond each, so many make a sample.
    assert!((seconds("median_seconds") - 1e-6).abs() < 1e-7, "{time}");
    assert!(time["launches_per_sample"].as_u64().unwrap() > 1, "{time}");
    let counted = time["histogram"].as_array().unwrap().iter();
    assert_eq!(counted.map(|bucket| bucket["samples"].as_u64().unwrap()).sum::<u64>(), 70);
    // Eight blocks of 256 are the 2048 threads of the fake's multiprocessors.
    let occupancy = &time["occupancy"];
    assert_eq!(
        (&occupancy["blocks_per_multiprocessor"], &occupancy["fraction_of_threads"]),
        (&json("8"), &json("1.0"))
    );
}

#[test]
fn ptx_loads_with_a_byte_order_mark_and_with_other_comments() {
    let folder = Folder::new("mark");
    let kernel = folder.file("kernel.ptx");
    let arguments = ["--arg", "out:f32[4]", "--arg", "1:f32", "--arg", "4:u32"];
    let comment = format!("// größe\n/* é\n× */ {PTX}");
    for text in [format!("\u{feff}{PTX}"), comment.clone(), format!("\u{feff}{comment}")] {
        std::fs::write(&kernel, text).unwrap();
        succeeds(&run(&kernel, "scale", &arguments));
    }
    // Elsewhere the assembler says that it cannot be.
    std::fs::write(&kernel, PTX.replace("ret;", "ret; é")).unwrap();
    let parts = ["Unexpected non-ASCII character"];
    fails(FAILED_FOR_INPUT, &run(&kernel, "scale", &arguments), &parts);
}

#[test]
fn times_have_a_histogram() {
    let folder = Folder::new("times");
    let kernel = folder.file("kernel.ptx");
    std::fs::write(&kernel, PTX).unwrap();
    let arguments = ["--arg", "out:f32[4]", "--arg", "1:f32", "--arg", "4:u32", "--time", "20"];
    let text = succeeds(&run(&kernel, "scale", &arguments));
    for part in ["samples", "a sample is a graph of", "occupancy: 8 blocks", "100 %", "  20  #####"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

#[test]
fn newer_ptx_is_tried_as_older_where_that_is_wanted() {
    let folder = Folder::new("lower");
    let kernel = folder.file("kernel.ptx");
    let arguments = ["--arg", "out:f32[4]", "--arg", "1:f32", "--arg", "4:u32"];
    let lower = [&arguments[..], &["--lower-ptx-version"]].concat();
    let newer = PTX.replace(".version 8.0", "// .version 1.0\n.version 9.9");
    std::fs::write(&kernel, &newer).unwrap();
    let hint = "--lower-ptx-version tries it as PTX 8.7 (CUDA 12.8)";
    fails(FAILED_FOR_INPUT, &run(&kernel, "scale", &arguments), &["PTX 9.9", hint]);

    let text = succeeds(&run(&kernel, "scale", &lower));
    let said = "from PTX 9.9 to PTX 8.7 (CUDA 12.8), which the driver assembled";
    assert!(text.contains(said), "{text}");
    let value = json(&succeeds(&run(&kernel, "scale", &[&lower[..], &["--json"]].concat())));
    assert_eq!(value["image"]["lowered"], json(r#"{ "from": "9.9", "to": "8.7" }"#));

    // PTX that the assembler refuses then is an error that lists the attempts.
    std::fs::write(&kernel, format!("{newer}~\n")).unwrap();
    let parts = ["PTX 9.9, tried as PTX 8.7 (CUDA 12.8)", "Parsing error near '~'"];
    fails(FAILED_FOR_INPUT, &run(&kernel, "scale", &lower), &parts);

    // PTX that the driver takes is left as it is, and bytes that are no PTX cannot be lowered.
    std::fs::write(&kernel, PTX).unwrap();
    let value = json(&succeeds(&run(&kernel, "scale", &[&lower[..], &["--json"]].concat())));
    assert_eq!(value["image"]["lowered"], Value::Null);
    let machine_code = common::repository().join("tests/data/images/one_cuda12.9_sm100.cubin");
    let arguments = ["--arg", "x:f32[4]", "--arg", "4:u32", "--lower-ptx-version"];
    fails(
        FAILED_FOR_INPUT,
        &run(machine_code.to_str().unwrap(), "add_one", &arguments),
        &["machine code for sm_100"],
    );
}

#[test]
fn the_example_fits_its_kernel() {
    let folder = Folder::new("example");
    let path = |name: &str| format!("{}/examples/saxpy/{name}", common::repository().display());
    let (kernel, x, y) = (path("saxpy.ptx"), path("x.npy"), path("y.npy"));
    let saved = format!("out={}", folder.file("result.npy"));
    let arguments = [
        ["--arg", x.as_str()],
        ["--arg", y.as_str()],
        ["--arg", "out:f32[1000]"],
        ["--arg", "2.5:f32"],
        ["--arg", "1000:u32"],
        ["--out", saved.as_str()],
    ];
    succeeds(&run(&kernel, "saxpy", arguments.as_flattened()));
    assert_eq!(npy::read(folder.file("result.npy")).unwrap().shape(), [1000]);
}

#[test]
fn limits_and_devices_are_refused_by_name() {
    let folder = Folder::new("limits");
    let kernel = folder.file("kernel.ptx");
    std::fs::write(&kernel, PTX).unwrap();
    let arguments = ["--arg", "out:f32[4]", "--arg", "1:f32", "--arg", "4:u32"];
    let base = ["run", &kernel, "--entry", "scale", "--grid", "1"];
    let refused = |more: &[&str], code: i32, parts: &[&str]| {
        fails(code, &[&base, &arguments[..], more].concat(), parts)
    };
    refused(&["--block", "2048"], FAILED_FOR_INPUT, &["2048", "at most 1024"]);
    refused(&["--block", "1", "--shared", "9000000"], FAILED_FOR_INPUT, &["shared", "9000000", "at most"]);
    refused(&["--block", "1", "--device", "77"], FAILED_FOR_DEVICE, &["no device 77", "there are"]);

    let newer = folder.file("newer.ptx");
    std::fs::write(&newer, PTX.replace(".version 8.0", ".version 9.9")).unwrap();
    let base = ["run", &newer, "--entry", "scale", "--grid", "1", "--block", "1"];
    fails(FAILED_FOR_INPUT, &[&base, &arguments[..]].concat(), &["9.9", "8.7"]);
}

/// The fake computes nothing, so its results are wrong.
#[test]
fn a_wrong_result_of_the_demonstration_is_a_failure() {
    let parts = ["x / (1 + exp(-x)) * y, fused: element 0", "when computed in f64"];
    fails(1, &["demo", "--elements", "1000"], &parts);
}
