//! Embeds the images of `ptx/`, compressed as they lie there, so that a process pays only for what it loads, by an
//! index that `src/images` includes.
//!
//! `ptx/manifest` lists the embedded files; a listed file that is missing fails the build. `ptx/references` lists the images
//! that are compressed with another one as their dictionary. The output depends on `ptx/` alone.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

pub fn embed() {
    println!("cargo:rerun-if-changed=ptx");
    println!("cargo:rerun-if-changed=build/images.rs");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let (images, out) = (Path::new(&root).join("ptx"), Path::new(&out));
    let read = |name: &str| {
        let file = images.join(name);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    let (manifest, references) = (read("manifest"), read("references"));
    let lines = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
    let manifest: Vec<Vec<&str>> = lines(manifest.leak()).map(|line| line.split(' ').collect()).collect();
    let names = manifest.iter().map(|columns| match columns[..] {
        [family, target, _, kind, ..] => format!("{family}.{target}.{kind}"),
        _ => panic!("ptx/manifest: not a line of an image: {}", columns.join(" ")),
    });
    let names: Vec<String> = names.collect();
    let place = |name: &str| {
        let place = names.iter().position(|known| known == name);
        place.unwrap_or_else(|| panic!("ptx/references names {name}, which ptx/manifest lacks"))
    };
    let references = lines(references.leak()).map(|line| match line.split_once(' ') {
        Some((name, reference)) => (place(name), place(reference)),
        None => panic!("ptx/references: not a line of two images: {line}"),
    });
    let references: Vec<(usize, usize)> = references.collect();

    let mut index = String::from("&[\n");
    for (at, columns) in manifest.iter().enumerate() {
        let (family, target, isa, kind) = (columns[0], columns[1], columns[2], columns[3]);
        let (major, minor) = isa.split_once('.').expect("ptx/manifest: the ISA is two numbers");
        let variant = match kind {
            "ptx" => "Ptx",
            "cubin" => "Cubin",
            _ => panic!("ptx/manifest: unknown kind {kind}"),
        };
        let name = format!("{}.zst", names[at]);
        let reference = references.iter().find(|(image, _)| *image == at).map(|(_, reference)| reference);
        assert!(images.join(&name).exists(), "ptx/manifest lists {name}, which is not there");
        writeln!(
            index,
            "Image {{ family: {family:?}, target_name: {target:?}, isa: ({major}, {minor}), kind: ImageKind::{variant}, \
             reference: {reference:?}, packed: include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/ptx/{name}\")) }},"
        )
        .expect("a String can be written to");
    }
    index.push(']');
    fs::write(out.join("images.rs"), index).expect("OUT_DIR can be written to");
}
