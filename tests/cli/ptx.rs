//! `selvedge ptx`: what it says of images, and of files that are none.

use serde_json::Value;

use super::{FAILED_FOR_INPUT, Folder, PTX, common, fails, json, succeeds};

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", common::repository().display())
}

fn shown(file: &str) -> Value {
    json(&succeeds(&["ptx", file, "--json"]))
}

/// Kind, size and offset of each parameter of a kernel.
fn parameters(value: &Value, kernel: &str) -> Vec<(String, u64, u64)> {
    let kernels = value["kernels"].as_array().unwrap();
    let found = kernels.iter().find(|found| found["name"] == kernel).unwrap_or_else(|| panic!("{value}"));
    let parameter = |parameter: &Value| {
        let number = |name: &str| parameter[name].as_u64().unwrap();
        (parameter["kind"].as_str().unwrap().to_owned(), number("bytes"), number("offset"))
    };
    found["parameters"].as_array().unwrap().iter().map(parameter).collect()
}

#[test]
fn ptx_is_shown() {
    let folder = Folder::new("ptx");
    let file = folder.file("kernel.ptx");
    let table = ".global .align 4 .f32 table[4];\n.visible .entry";
    std::fs::write(&file, PTX.replacen(".visible .entry", table, 1).replace(")\n{", ")\n.reqntid 8, 4\n{"))
        .unwrap();
    let value = shown(&file);
    let integer = |bytes, offset| ("integer".to_owned(), bytes, offset);
    assert_eq!(parameters(&value, "scale"), [integer(8, 0), ("float".to_owned(), 4, 8), integer(4, 12)]);
    let entry = &value["entries"][0];
    let found = ["kind", "target", "isa", "needs_cuda"].map(|name| entry[name].as_str().unwrap());
    assert_eq!(found, ["PTX", "sm_60", "8.0", "12.0"]);
    assert_eq!(entry["needs_linux_driver"], 525);
    assert_eq!(value["globals"], json(r#"["table"]"#));
    assert_eq!(value["kernels"][0]["required_block"], json("[8, 4, 1]"));
    assert!(value["machine"]["error"].as_str().unwrap().contains("could not be loaded"));

    let text = succeeds(&["ptx", &file]);
    for part in [
        "kernel.ptx: PTX",
        "a driver of CUDA 12.0 or newer (525 on Linux)",
        "scale (blocks of 8,4,1)",
        "1: a float of 4 bytes, at 8",
        "table",
        "the NVIDIA driver could not be loaded",
    ] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

#[test]
fn machine_code_and_fatbins_are_shown() {
    let value = shown(&data("images/one_cuda12.9_sm100.cubin"));
    let entry = &value["entries"][0];
    assert_eq!((&value["kind"], &entry["target"]), (&json(r#""cubin""#), &json(r#""sm_100""#)));
    assert_eq!((&entry["toolkit"], &entry["needs_cuda"]), (&json(r#""12.9""#), &json(r#""12.0""#)));
    let unknown = |bytes, offset| ("unknown".to_owned(), bytes, offset);
    assert_eq!(parameters(&value, "add_one"), [unknown(8, 0), unknown(4, 8)]);

    let value = shown(&data("gpu/foreign/nvcc_compressed.fatbin"));
    assert_eq!((&value["kind"], &value["complete"]), (&json(r#""fatbin""#), &Value::Bool(false)));
    assert_eq!(value["entries"].as_array().unwrap().len(), 5);
    let text = succeeds(&["ptx", &data("gpu/foreign/nvcc_compressed.fatbin")]);
    assert!(text.contains("A compressed entry is not looked into"), "{text}");
}

#[test]
fn what_is_no_image_is_refused() {
    let folder = Folder::new("no-ptx");
    let file = folder.file("x.bin");
    fails(FAILED_FOR_INPUT, &["ptx", &file], &["x.bin", "no such file", "a .cu file"]);
    std::fs::write(&file, "hello").unwrap();
    fails(FAILED_FOR_INPUT, &["ptx", &file], &["not a kernel image"]);
    std::fs::write(&file, PTX).unwrap();
    for option in [&["--define", "A=1"][..], &["--option=-G"], &["--target", "sm_80"], &["--no-cache"]] {
        let name = option[0].split('=').next().unwrap();
        fails(
            FAILED_FOR_INPUT,
            &[&["ptx", &file], option].concat(),
            &[name, "x.bin", "a .cu file, which alone"],
        );
    }
    fails(FAILED_FOR_INPUT, &["ptx"], &["Usage"]);
    fails(FAILED_FOR_INPUT, &["ptx", &file, "--target", "sm80"], &["'sm80'", "sm_80 or sm_90a"]);
    fails(FAILED_FOR_INPUT, &["ptx", &file, "--define", "A-B"], &["'A-B'", "NAME=VALUE"]);
}

#[cfg(target_os = "linux")]
#[test]
fn each_device_takes_it_or_says_why_not() {
    use super::on_the_fake_driver;

    let folder = Folder::new("ptx-here");
    let file = folder.file("kernel.ptx");
    for (text, reason) in [
        (PTX.to_owned(), None),
        (PTX.replace("sm_60", "sm_100"), Some("PTX runs on its architecture and later ones")),
        (PTX.replace(".version 8.0", ".version 9.0"), Some("takes PTX up to 8.7")),
    ] {
        std::fs::write(&file, text).unwrap();
        let value = json(&on_the_fake_driver::succeeds(&["ptx", &file, "--json"]));
        assert_eq!(value["machine"]["cuda"], "12.8");
        let devices = value["machine"]["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 2);
        for device in devices {
            assert_eq!(device["takes_it"], reason.is_none());
            match reason {
                Some(reason) => assert!(device["reason"].as_str().unwrap().contains(reason), "{device}"),
                None => assert_eq!(device["reason"], Value::Null),
            }
        }
        let text = on_the_fake_driver::succeeds(&["ptx", &file]);
        assert!(text.contains(reason.unwrap_or("Fake GPU 1 takes it")), "{text}");
    }
}
