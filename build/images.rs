//! Embeds the images of `ptx/`, compressed one by one as they lie there, so that a process pays only for what it loads, by an
//! index that `src/images` includes.
//!
//! `ptx/manifest` lists the embedded files; a listed file that is missing fails the build. The output depends on
//! `ptx/` alone.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

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
        let name = format!("{family}.{target}.{kind}.zst");
        assert!(images.join(&name).exists(), "ptx/manifest lists {name}, which is not there");
        writeln!(
            index,
            "Image {{ family: {family:?}, target_name: {target:?}, isa: ({major}, {minor}), kind: ImageKind::{variant}, \
             packed: include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/ptx/{name}\")) }},"
        )
        .expect("a String can be written to");
    }
    index.push(']');
    fs::write(out.join("images.rs"), index).expect("OUT_DIR can be written to");
}
