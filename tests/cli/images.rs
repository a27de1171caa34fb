//! `selvedge build-images`: the folder that it makes, checks and leaves alone, and input that it refuses.

use std::collections::BTreeMap;

use super::compile::{compiling, nvrtc, output_of, refused, sources};
use super::{FAILED_FOR_DEVICE, FAILED_FOR_INPUT, Folder, fails, json};

/// A folder's files.
fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn wrong_usage_of_build_images_ends_with_2() {
    let folder = sources("images-usage");
    let (file, out) = (folder.file("kernels.cu"), folder.file("out"));
    let build = |more: &[&str]| -> Vec<String> {
        ["build-images", "--out", &out].iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let refuses = |more: &[&str], parts: &[&str]| {
        let words = build(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        fails(FAILED_FOR_INPUT, &words, parts);
    };
    refuses(&[], &["SOURCE.cu", "--list"]);
    refuses(&[&file], &["--target"]);
    refuses(&[&file, "--list", &file, "--target", "sm_80"], &["cannot be used with"]);
    refuses(&[&file, "--target", "80"], &["'80'", "sm_80 or sm_90a"]);
    refuses(&[&file, "--target", "sm_80", "--check", "--if-changed"], &["cannot be used with"]);
    refuses(&[&file, "--target", "sm_80", "--keep", "manifest", "--if-changed"], &["cannot be used with"]);
    refuses(&[&file, "--target", "sm_80", "--ptxas", "ptxas"], &["--assemble-for"]);
    refuses(&[&file, "--target", "sm_80", "--target", "sm_80"], &["kernels.sm_80.cubin twice"]);
    refuses(&[&file, "--target", "sm_80", "--option=a b"], &["'a b'", "without spaces"]);
    refuses(&[&folder.file("none.cu"), "--target", "sm_80"], &["none.cu", "no such file"]);
    let list = folder.file("list.txt");
    for (text, parts) in [
        ("# nothing\n", ["list.txt", "no image"]),
        ("\nk kernels.cu\n", ["'k kernels.cu' in line 2", "NAME SOURCE TARGET"]),
        ("entries k k_{a,b}\n", ["list.txt", "no image"]),
        ("k kernels.cu sm_80\nentries k\n", ["'entries k' in line 2", "entries FAMILY ENTRY..."]),
        ("k kernels.cu sm_80,sm80\n", ["'sm80'", "line 1"]),
        ("../k kernels.cu sm_80\n", ["'../k'", "letters"]),
        ("k nowhere.cu sm_80\n", ["nowhere.cu", "no such file"]),
        ("k kernels.cu sm_80:cubin\n", ["'sm_80:cubin'", "PTX to assemble"]),
        ("k kernels.cu compute_80:cubin,sm_80\n", ["k.sm_80.cubin twice", "a name and target"]),
    ] {
        std::fs::write(&list, text).unwrap();
        refuses(&["--list", &list], &parts);
    }
    std::fs::write(folder.file("macro.cu"), "#include NAME\n").unwrap();
    refuses(&[&folder.file("macro.cu"), "--target", "sm_80"], &["a macro makes"]);
    let words = build(&[&file, "--target", "sm_80"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fails(FAILED_FOR_DEVICE, &words, &["NVRTC could not be loaded", "pip install"]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn a_folder_is_made_checked_and_left_alone() {
    if !nvrtc("a_folder_is_made_checked_and_left_alone") {
        return;
    }
    let folder = sources("images");
    let out = folder.file("out");
    let list = folder.file("list.txt");
    let written = "# two\none kernels.cu compute_80,sm_80 -DFACTOR=1\ntwo kernels.cu compute_75 -DFACTOR=2\n";
    std::fs::write(&list, written).unwrap();
    let build = |more: &[&str]| {
        compiling(&folder, &[&["build-images", "--list", &list, "--out", &out, "--json"], more].concat())
    };
    refused(1, &build(&["--check"]), &["manifest, one.sm_80.cubin, one.sm_80.ptx, two.sm_75.ptx"]);
    assert!(!std::path::Path::new(&out).exists());

    let value = json(&output_of(&build(&[])));
    assert_eq!((&value["changed"], value["images"].as_array().unwrap().len()), (&json("true"), 3));
    let made = files(&out);
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    assert_eq!(names, ["manifest", "one.sm_80.cubin", "one.sm_80.ptx", "two.sm_75.ptx"]);
    let ptx = String::from_utf8(made["two.sm_75.ptx"].clone()).unwrap();
    assert!(ptx.starts_with(".version ") && ptx.contains(".target sm_75\n") && !ptx.contains("//"), "{ptx}");
    assert!(made["one.sm_80.cubin"].starts_with(b"\x7fELF"));
    let manifest = String::from_utf8(made["manifest"].clone()).unwrap();
    let lines: Vec<Vec<&str>> = manifest.lines().skip(1).map(|line| line.split(' ').collect()).collect();
    let (major, minor) = selvedge::nvrtc::version().unwrap();
    for (line, wanted) in lines.iter().zip([["one", "sm_80"], ["one", "sm_80"], ["two", "sm_75"]]) {
        assert_eq!((line.len(), &line[..2]), (9, &wanted[..]), "{manifest}");
        assert!(line[6].starts_with(&format!("nvrtc-{major}.{minor}.")), "{manifest}");
        assert_eq!(line[8], "kernels.cu,parts/scale.cuh,parts/twice.cuh");
    }
    assert_eq!((lines[0][3], lines[1][3], lines[2][7]), ("cubin", "ptx", "-DFACTOR=2"));

    // The same again, wherever it is made and in another process.
    output_of(&build(&["--check"]));
    assert_eq!(json(&output_of(&build(&["--if-changed"])))["changed"], false);
    assert_eq!(json(&output_of(&build(&[])))["changed"], false);
    assert_eq!(files(&out), made);

    // Images that are as a manifest lists them are not compiled again.
    let manifest = folder.file("out/manifest");
    let compiled = |more: &[&str]| {
        json(&output_of(&build(&[&["--keep", &manifest], more].concat())))["compiled"].clone()
    };
    assert_eq!(compiled(&["--check"]), 0);
    std::fs::write(&list, written.replace("FACTOR=2", "FACTOR=3")).unwrap();
    refused(1, &build(&["--check", "--keep", &manifest]), &["are: manifest, two.sm_75.ptx;"]);
    assert_eq!(compiled(&[]), 1);
    output_of(&build(&["--check"]));
    std::fs::write(&list, written).unwrap();
    assert_eq!(compiled(&[]), 1);
    assert_eq!(files(&out), made);

    // A file that is not of the folder's manifest stays, a change of any kind is seen.
    std::fs::write(folder.file("out/notes.txt"), "mine").unwrap();
    output_of(&build(&["--check"]));
    std::fs::write(folder.file("out/two.sm_75.ptx"), ptx.replace("sm_75", "sm_86")).unwrap();
    refused(1, &build(&["--check"]), &["are: two.sm_75.ptx;"]);
    assert_eq!(json(&output_of(&build(&["--if-changed"])))["changed"], true);
    std::fs::write(
        folder.file("parts/twice.cuh"),
        "__device__ inline float twice(float x) { return 3 * x; }\n",
    )
    .unwrap();
    refused(1, &build(&["--check"]), &["manifest"]);
    std::fs::write(&list, written.replace(",sm_80", "")).unwrap();
    assert_eq!(json(&output_of(&build(&["--if-changed"])))["changed"], true);
    assert_eq!(
        files(&out).into_keys().collect::<Vec<_>>(),
        ["manifest", "notes.txt", "one.sm_80.ptx", "two.sm_75.ptx"]
    );
}

#[test]
fn ptx_in_a_source_is_assembled() {
    if !nvrtc("ptx_in_a_source_is_assembled") {
        return;
    }
    let folder = Folder::new("images-inline");
    let (file, out) = (folder.file("k.cu"), folder.file("out"));
    let source = "extern \"C\" __global__ void k() { asm volatile(\"no.such.instruction;\"); }\n";
    std::fs::write(&file, source).unwrap();
    let output = compiling(&folder, &["build-images", &file, "--target", "compute_80", "--out", &out]);
    refused(FAILED_FOR_INPUT, &output, &["k.cu", "sm_80", "no"]);
    assert!(!std::path::Path::new(&out).exists());
}

/// A stand-in for `ptxas`: it records its arguments, and fails or prints figures as the test asks.
#[cfg(unix)]
#[test]
fn an_assembler_sees_every_image_that_it_should() {
    use std::os::unix::fs::PermissionsExt;

    if !nvrtc("an_assembler_sees_every_image_that_it_should") {
        return;
    }
    let folder = sources("images-ptxas");
    let (file, out, ptxas) = (folder.file("kernels.cu"), folder.file("out"), folder.file("ptxas"));
    let build = |script: &str, more: &[&str]| {
        std::fs::write(&ptxas, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&ptxas, std::fs::Permissions::from_mode(0o755)).unwrap();
        let arguments = ["build-images", &file, "--target", "compute_80", "--target", "sm_80", "--out", &out];
        let assembled =
            ["--define", "FACTOR=2", "--ptxas", &ptxas, "--assemble-for", "sm_75,sm_80,sm_90,sm_90a"];
        compiling(&folder, &[&arguments, &assembled[..], more].concat())
    };
    let calls = folder.file("calls");
    output_of(&build(&format!("grep -c target \"$5\" >> {calls}; echo \"$2\" >> {calls}"), &[]));
    let mut seen: Vec<String> = std::fs::read_to_string(&calls).unwrap().lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen, ["-arch=sm_80", "-arch=sm_90", "1", "1"]);

    std::fs::remove_dir_all(&out).unwrap();
    let refuses = build("echo \"$5, line 3: error\" >&2; exit 255", &[]);
    refused(
        FAILED_FOR_INPUT,
        &refuses,
        &["ptxas for sm_80 refused kernels.sm_80.ptx:\nkernels.sm_80.ptx, line 3", "sm_90"],
    );
    let spills = "echo 'ptxas info : Function properties for bare' >&2; echo '    16 bytes stack frame, 0 bytes spill' >&2";
    let local = build(spills, &["--forbid-local-memory"]);
    refused(FAILED_FOR_INPUT, &local, &["bare of kernels.sm_80.ptx uses 16 bytes of local memory"]);
    assert!(!std::path::Path::new(&out).exists());
    output_of(&build(spills, &[]));
}

/// A stand-in for `ptxas` again, which gives machine code that it was given.
#[cfg(unix)]
#[test]
fn what_is_to_be_assembled_is_kept_beside_its_text() {
    use std::os::unix::fs::PermissionsExt;

    if !nvrtc("what_is_to_be_assembled_is_kept_beside_its_text") {
        return;
    }
    let folder = sources("images-kept");
    let (list, out, ptxas) = (folder.file("list.txt"), folder.file("out"), folder.file("ptxas"));
    let (file, other) = (folder.file("kernels.cu"), folder.file("other"));
    let one = ["build-images", &file, "--target", "sm_80", "--out", &other, "--define", "FACTOR=2"];
    output_of(&compiling(&folder, &one));
    let code = folder.file("other/kernels.sm_80.cubin");

    std::fs::write(&list, "k kernels.cu compute_80+cubin,compute_75 -DFACTOR=2\n").unwrap();
    let calls = folder.file("calls");
    let build = |said: &str, more: &[&str]| {
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release 12.9, V12.9.86'; exit; fi\n\
             echo \"$2\" >> {calls}\n{said}\ncp {code} \"$4\"\n"
        );
        std::fs::write(&ptxas, script).unwrap();
        std::fs::set_permissions(&ptxas, std::fs::Permissions::from_mode(0o755)).unwrap();
        let arguments = ["build-images", "--list", &list, "--out", &out, "--json"];
        compiling(&folder, &[&arguments, more].concat())
    };
    let with = ["--ptxas", &ptxas, "--assemble-for", "sm_75"];
    refused(FAILED_FOR_INPUT, &build("", &[]), &["'k', which is to be assembled", "--ptxas"]);
    let serialised = "echo 'ptxas info : (C7515) Potential Performance Loss: serialized' >&2";
    refused(FAILED_FOR_INPUT, &build(serialised, &with), &["k.sm_80.ptx", "C7515"]);
    assert!(!std::path::Path::new(&out).exists());

    std::fs::remove_file(&calls).unwrap();
    output_of(&build("", &with));
    let called = std::fs::read_to_string(&calls).unwrap();
    assert_eq!(called.lines().collect::<Vec<_>>(), ["-arch=sm_75", "-arch=sm_80"]);
    let made = files(&out);
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    assert_eq!(names, ["k.sm_75.ptx", "k.sm_80.cubin", "k.sm_80.ptx", "manifest"]);
    assert_eq!(made["k.sm_80.cubin"], std::fs::read(&code).unwrap());
    let manifest = String::from_utf8(made["manifest"].clone()).unwrap();
    let assembled = |line: &str| line.split(' ').nth(6).unwrap().ends_with("+ptxas-12.9.86");
    assert_eq!(manifest.lines().skip(1).map(assembled).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(json(&output_of(&build("", &[&with[..], &["--if-changed"]].concat())))["changed"], false);

    // Machine code without its text, which is assembled for the check all the same.
    std::fs::write(&list, "k kernels.cu compute_80:cubin,compute_75 -DFACTOR=2\n").unwrap();
    std::fs::remove_file(&calls).unwrap();
    let only = ["--ptxas", &ptxas, "--assemble-for", "sm_80"];
    output_of(&build("", &only));
    let called = std::fs::read_to_string(&calls).unwrap();
    assert_eq!(called.lines().collect::<Vec<_>>(), ["-arch=sm_80"; 3]);
    assert_eq!(files(&out).into_keys().collect::<Vec<_>>(), ["k.sm_75.ptx", "k.sm_80.cubin", "manifest"]);
    assert_eq!(json(&output_of(&build("", &[&only[..], &["--if-changed"]].concat())))["changed"], false);
    output_of(&build("", &[&only[..], &["--check"]].concat()));

    std::fs::write(&list, "k kernels.cu sm_80+cubin\n").unwrap();
    refused(FAILED_FOR_INPUT, &build("", &with), &["'sm_80+cubin'", "PTX to assemble"]);
}
