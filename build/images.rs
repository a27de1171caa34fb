//! Embeds the images of `ptx/`: compressed one by one, so that a process pays only for what it loads, with an index that
//! `src/images` includes.
//!
//! What is embedded is what `ptx/manifest` lists; a listed file that is missing fails the build. The output depends on
//! `ptx/` alone.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// How hard `miniz_oxide` tries: the highest of its plain levels. Build scripts are not optimised, and more costs
/// seconds for a few percent.
const LEVEL: u8 = 6;

pub fn embed() {
    println!("cargo:rerun-if-changed=ptx");
    println!("cargo:rerun-if-changed=build/images.rs");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let (images, out) = (Path::new(&root).join("ptx"), Path::new(&out));
    let manifest = images.join("manifest");
    let manifest =
        fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));

    let mut index = String::from("&[\n");
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(' ').collect();
        let &[family, target, isa, kind, ..] = columns.as_slice() else {
            panic!("ptx/manifest: not a line of an image: {line}");
        };
        let (major, minor) = isa.split_once('.').expect("ptx/manifest: the ISA is two numbers");
        let variant = match kind {
            "ptx" => "Ptx",
            "cubin" => "Cubin",
            _ => panic!("ptx/manifest: unknown kind {kind}"),
        };
        let name = format!("{family}.{target}.{kind}");
        let file = images.join(&name);
        let data = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let packed = miniz_oxide::deflate::compress_to_vec(&data, LEVEL);
        fs::write(out.join(format!("{name}.deflate")), packed).expect("OUT_DIR can be written to");
        let length = data.len();
        writeln!(
            index,
            "Image {{ family: {family:?}, target_name: {target:?}, isa: ({major}, {minor}), kind: ImageKind::{variant}, \
             length: {length}, packed: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.deflate\")) }},"
        )
        .expect("a String can be written to");
    }
    index.push(']');
    fs::write(out.join("images.rs"), index).expect("OUT_DIR can be written to");
}
