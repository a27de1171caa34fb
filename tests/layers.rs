//! Checks the crate's layers: a module uses only modules of lower layers (docs/design.md). The parts of `fuse` are layers, too.
//!
//! The test reads every path that names a top-level module: `crate::module::…`, groups of them, `super::…` that leaves its
//! module, and `selvedge::module::…` in the program. Comments and strings do not count. [`circles`] limits the circles of files
//! within a module. Two smaller rules are tested here, too: no file is longer than a limit, and `Cargo.toml`, which lists test
//! files by hand, misses none.

#[path = "layers/circles.rs"]
mod circles;
#[path = "common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The top-level modules and their layers. A module that is not here fails the test, so every new one gets a layer.
const LAYERS: &[(&str, u32)] = &[
    ("error", 0),
    ("sys", 0),
    ("threads", 0),
    ("trace", 0),
    ("types", 1),
    ("driver", 1),
    ("nvrtc", 1),
    ("cublas", 1),
    ("nccl", 1),
    ("images", 2),
    ("io", 2),
    ("launcher", 2),
    ("attention", 3),
    ("fuse", 3),
    ("gemm", 3),
    ("sort", 3),
    ("tensor", 4),
    ("collective", 3),
    ("nn", 5),
    ("srt", 5),
    ("burst", 5),
    ("catalogue", 5),
    ("classifier", 6),
    ("capi", 7),
    ("bin", 7),
];

/// The only module that others of its layer may use: every fallible function returns its type.
const KNOWN_TO_ALL: &str = "error";

/// The parts of `fuse` and their layers. The back ends are in one layer, so neither uses the other.
const FUSE_LAYERS: &[(&str, u32)] =
    &[("ir", 0), ("language", 1), ("plan", 2), ("ptx", 3), ("cpu", 3), ("run", 4), ("explain", 5)];

/// The most lines of a file. A longer one becomes a folder of the same name.
const MAX_LINES: usize = 600;

/// The first line of files that a program wrote, which may be of any length.
const GENERATED: &str = "// Generated ";

fn layer(module: &str) -> Option<u32> {
    layer_in(LAYERS, module)
}

fn layer_in(layers: &[(&str, u32)], module: &str) -> Option<u32> {
    layers.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
}

/// A path in a source file that leads to a top-level module.
#[derive(Debug, PartialEq)]
struct Edge {
    line: usize,
    to: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    PathSeparator,
    Sign(char),
}

/// The source as words and signs with their lines, without comments, strings and characters.
fn tokens(source: &str) -> Vec<(usize, Token)> {
    let bytes = source.as_bytes();
    let (mut found, mut line, mut at) = (Vec::new(), 1, 0);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if rest[0] == b'"' {
            string(rest)
        } else if rest[0] == b'\'' {
            character_or_lifetime(rest)
        } else if is_word(rest[0]) {
            let length = rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len());
            let (word, after) = (&source[at..at + length], &rest[length..]);
            let hashes = after.iter().take_while(|&&byte| byte == b'#').count();
            if matches!(word, "r" | "br" | "cr") && after.get(hashes) == Some(&b'"') {
                length + hashes + raw_string(&after[hashes..], hashes)
            } else if matches!(word, "b" | "c") && after.first() == Some(&b'"') {
                length + string(after)
            } else if word == "b" && after.first() == Some(&b'\'') {
                length + character_or_lifetime(after)
            } else {
                found.push((line, Token::Word(word.to_owned())));
                length
            }
        } else if rest.starts_with(b"::") {
            found.push((line, Token::PathSeparator));
            2
        } else {
            if !rest[0].is_ascii_whitespace() {
                found.push((line, Token::Sign(rest[0] as char)));
            }
            1
        };
        let end = (at + length).min(bytes.len());
        line += bytes[at..end].iter().filter(|&&byte| byte == b'\n').count();
        at = end;
    }
    found
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string(rest: &[u8], hashes: usize) -> usize {
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = &rest[1..];
    body.windows(end.len()).position(|window| window == end).map_or(rest.len(), |at| 1 + at + end.len())
}

fn character_or_lifetime(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        // The escaped character may itself be a quote.
        return rest.iter().skip(3).position(|&byte| byte == b'\'').map_or(rest.len(), |at| at + 4);
    }
    // UTF-8 tells a character's length by its first byte.
    let width = match rest.get(1) {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..) => 4,
        _ => 1,
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 1 }
}

/// Reads the paths of one file to the modules of `root`: `[]` for the crate, `["fuse"]` for the parts of `fuse`. `module` is
/// the file's path below `root`, such as `["driver", "memory", "pool"]`; `library` is the name by which the file knows
/// the library, `crate` inside of it.
fn edges(root: &[&str], source: &str, module: &[&str], library: &str) -> Vec<Edge> {
    let tokens = tokens(source);
    let word = |at: usize| match tokens.get(at) {
        Some((_, Token::Word(word))) => Some(word.as_str()),
        _ => None,
    };
    let is = |at: usize, wanted: &Token| tokens.get(at).is_some_and(|(_, token)| token == wanted);
    let mut found = Vec::new();
    // Inline modules around this place: the depth of braces at which each began, and how `super` counts from here.
    let (mut inline, mut braces): (Vec<u32>, u32) = (Vec::new(), 0);
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].1 {
            Token::Sign('{') => {
                braces += 1;
                if at >= 2 && word(at - 2) == Some("mod") {
                    inline.push(braces);
                }
            }
            Token::Sign('}') => {
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
                braces = braces.saturating_sub(1);
            }
            Token::Word(start) if start == library => {
                if is(at + 1, &Token::PathSeparator) {
                    // A path that leaves `root` is none of its modules; a group of paths would hide them.
                    let mut next = at + 2;
                    let is_inside = root.iter().all(|name| {
                        next += 2;
                        word(next - 2) == Some(name) && is(next - 1, &Token::PathSeparator)
                    });
                    if is_inside || is(at + 2, &Token::Sign('{')) {
                        at = targets(&tokens, if is_inside { next } else { at + 2 }, &mut found);
                        continue;
                    }
                }
                if word(at + 1) == Some("as") {
                    found.push(Edge { line: tokens[at].0, to: format!("{library} as …") });
                }
            }
            Token::Word(start) if start == "super" && library == "crate" => {
                let (mut up, mut next) = (1, at + 1);
                while is(next, &Token::PathSeparator) && word(next + 1) == Some("super") {
                    up += 1;
                    next += 2;
                }
                let depth = module.len() + inline.len();
                let reaches = if root.is_empty() { up >= depth } else { up == depth };
                if reaches && is(next, &Token::PathSeparator) {
                    at = targets(&tokens, next + 1, &mut found);
                    continue;
                }
                at = next;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Adds the modules that a path names behind the root: one, or each of a group. Returns the next position to read.
fn targets(tokens: &[(usize, Token)], start: usize, found: &mut Vec<Edge>) -> usize {
    let name = |token: &Token| match token {
        Token::Word(word) => word.clone(),
        Token::PathSeparator => "::".to_owned(),
        Token::Sign(sign) => sign.to_string(),
    };
    let Some((line, first)) = tokens.get(start) else { return start };
    if *first != Token::Sign('{') {
        found.push(Edge { line: *line, to: name(first) });
        return start + 1;
    }
    let (mut at, mut depth, mut expects_module) = (start, 0, true);
    while at < tokens.len() {
        match &tokens[at].1 {
            Token::Sign('{') => {
                depth += 1;
            }
            Token::Sign('}') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            Token::Sign(',') => expects_module = depth == 1,
            token if depth == 1 && expects_module => {
                found.push(Edge { line: tokens[at].0, to: name(token) });
                expects_module = false;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Returns the defect of an edge from one module to another; `None` if it leads to a lower layer.
fn complaint(layers: &[(&str, u32)], from: &str, to: &str) -> Option<String> {
    if from == to || to == KNOWN_TO_ALL {
        return None;
    }
    let Some(own) = layer_in(layers, from) else { return Some(format!("`{from}` has no layer")) };
    match layer_in(layers, to) {
        None => Some(format!("`{to}` has no layer")),
        Some(other) if other < own => None,
        Some(other) if other == own => {
            Some(format!("`{from}` and `{to}` are both in layer {own} and must not use each other"))
        }
        Some(other) => Some(format!("`{from}` is in layer {own}, `{to}` above it in layer {other}")),
    }
}

/// Returns all defects of one file of `src/`. `names` are the items that lib.rs re-exports.
fn complaints(path: &str, source: &str, names: &BTreeMap<String, String>) -> Vec<String> {
    let stem = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let module: Vec<&str> = stem.split('/').collect();
    let from = module[0];
    let library = if from == "bin" { "selvedge" } else { "crate" };
    edges(&[], source, &module, library)
        .iter()
        .filter_map(|edge| {
            let to = names.get(&edge.to).unwrap_or(&edge.to);
            complaint(LAYERS, from, to).map(|what| format!("{path}:{}: {what}", edge.line))
        })
        .collect()
}

/// Returns what is wrong with the paths of a file of `src/fuse/` to other parts of `fuse`. `names` are the items that
/// src/fuse/mod.rs re-exports.
fn fuse_complaints(path: &str, source: &str, names: &BTreeMap<String, String>) -> Vec<String> {
    let stem = path.trim_start_matches("src/fuse/").trim_end_matches(".rs").trim_end_matches("/mod");
    let module: Vec<&str> = stem.split('/').collect();
    edges(&["fuse"], source, &module, "crate")
        .iter()
        .filter_map(|edge| {
            let to = names.get(&edge.to).unwrap_or(&edge.to);
            let what = complaint(FUSE_LAYERS, module[0], to)?;
            Some(format!("{path}:{}: {what}", edge.line))
        })
        .collect()
}

/// Returns the items that the root of `layers` re-exports, with their modules: `pub use error::{Error, Result};` in lib.rs
/// gives `Error` to `error`. Items of other crates belong to [`KNOWN_TO_ALL`].
fn names_of_the_root(layers: &[(&str, u32)], source: &str) -> BTreeMap<String, String> {
    let tokens = tokens(source);
    let mut names = BTreeMap::new();
    for statement in tokens.split(|(_, token)| *token == Token::Sign(';')) {
        let words: Vec<&str> = statement
            .iter()
            .filter_map(|(_, token)| match token {
                Token::Word(word) => Some(word.as_str()),
                _ => None,
            })
            .collect();
        let Some(start) = words.iter().position(|word| *word == "use") else { continue };
        let Some(module) = words.get(start + 1) else { continue };
        // Every module may use what the root re-exports of another crate.
        let module = if layer_in(layers, module).is_some() { module } else { &KNOWN_TO_ALL };
        for name in &words[start + 2..] {
            names.insert((*name).to_owned(), (*module).to_owned());
        }
    }
    names
}

fn root() -> PathBuf {
    common::repository()
}

/// Every file below a folder of the repository, as `folder/…` with `/` between, sorted.
fn files(folder: &str) -> Vec<String> {
    fn walk(folder: &Path, name: &str, found: &mut Vec<String>) {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let entry = entry.expect("a readable folder");
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &name, found);
            } else {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    if root().join(folder).is_dir() {
        walk(&root().join(folder), folder, &mut found);
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn modules_use_only_lower_layers() {
    let names = names_of_the_root(LAYERS, &read("src/lib.rs"));
    assert_eq!(names.get("Error").map(String::as_str), Some("error"));
    let sources: Vec<String> =
        files("src").into_iter().filter(|path| path.ends_with(".rs") && path != "src/lib.rs").collect();
    assert!(sources.len() > 20, "only {} files found", sources.len());
    let wrong: Vec<String> = sources.iter().flat_map(|path| complaints(path, &read(path), &names)).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn parts_of_fuse_use_only_lower_layers() {
    let names = names_of_the_root(FUSE_LAYERS, &read("src/fuse/mod.rs"));
    assert_eq!(names.get("Graph").map(String::as_str), Some("language"));
    let sources: Vec<String> = files("src/fuse")
        .into_iter()
        .filter(|path| path.ends_with(".rs") && path != "src/fuse/mod.rs")
        .collect();
    assert!(sources.len() > 100, "only {} files found", sources.len());
    let of_file = |path: &String| fuse_complaints(path, &read(path), &names);
    let wrong: Vec<String> = sources.iter().flat_map(of_file).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_bad_edge_inside_fuse_is_caught() {
    let names =
        names_of_the_root(FUSE_LAYERS, "pub use run::expression::Expression; pub use language::Graph;");
    let caught = |path: &str, source: &str| !fuse_complaints(path, source, &names).is_empty();

    // Upward and between the back ends, in each form of a path.
    assert!(caught("src/fuse/plan/rows.rs", "use crate::fuse::run::row_program::RowProgram;"));
    assert!(caught("src/fuse/plan/rows.rs", "use super::super::ptx::Register;"));
    assert!(caught("src/fuse/ir/mod.rs", "use super::language::graph::Graph;"));
    assert!(caught("src/fuse/cpu/native/mod.rs", "use crate::fuse::{ir::program::Program, ptx};"));
    assert!(caught("src/fuse/ptx/rows/mod.rs", "fn f() { crate::fuse::cpu::has_vectors() }"));
    assert!(caught("src/fuse/run/scan.rs", "use crate::fuse::explain::rows::RowLaunch;"));
    assert!(caught("src/fuse/language/graph.rs", "use crate::fuse::Expression;"));
    assert!(caught("src/fuse/plan/rows.rs", "mod tests { use super::super::super::run::scan::Scan; }"));
    // Forms that would hide a target.
    assert!(caught("src/fuse/plan/rows.rs", "use crate::fuse::*;"));
    assert!(caught("src/fuse/plan/rows.rs", "use crate::{error::Error, fuse::run::scan::Scan};"));
    assert!(caught("src/fuse/unknown/mod.rs", "use crate::fuse::ir::program::Program;"));

    // Downward, inside the part, and out of `fuse`.
    for (path, source) in [
        ("src/fuse/plan/rows.rs", "use crate::fuse::ir::program::Program; use super::space::Space;"),
        ("src/fuse/plan/rows.rs", "use crate::types::DType; use crate::fuse::Graph;"),
        ("src/fuse/cpu/native/run.rs", "use super::super::memory::HostOperand; use super::run;"),
        ("src/fuse/explain/rows.rs", "use crate::fuse::{cpu, ptx::rows, run::row_program::RowProgram};"),
        ("src/fuse/plan/rows.rs", "/// [`run`](crate::fuse::Expression::run)\nfn f() {}"),
    ] {
        assert_eq!(fuse_complaints(path, source, &names), Vec::<String>::new(), "{path}: {source}");
    }
}

#[test]
fn every_module_has_a_layer() {
    let modules = files("src").into_iter().filter_map(|path| {
        let module = path.strip_prefix("src/")?.split('/').next()?.trim_end_matches(".rs").to_owned();
        (module != "lib").then_some(module)
    });
    let unknown: Vec<String> = modules.filter(|module| layer(module).is_none()).collect();
    assert!(unknown.is_empty(), "no layer is given for {unknown:?}");
    assert_eq!(layer("unknown"), None);
}

#[test]
fn a_bad_edge_is_caught() {
    let names = BTreeMap::from([("Error".to_owned(), "error".to_owned())]);
    let caught = |path: &str, source: &str| !complaints(path, source, &names).is_empty();

    // Upward and sideways, in each form of a path.
    assert!(caught("src/driver/device.rs", "use crate::tensor::Tensor;"));
    assert!(caught("src/driver/device.rs", "use crate::types::DType;"));
    assert!(caught("src/driver/mod.rs", "use super::types::DType;"));
    assert!(caught("src/driver/memory/pool.rs", "use super::super::super::types::DType;"));
    assert!(caught(
        "src/gemm/mod.rs",
        "use crate::{error::Error, driver::{Device, Stream}, tensor::Tensor};"
    ));
    assert!(caught("src/types/dtype.rs", "fn f() -> usize { crate::images::count() }"));
    assert!(caught("src/types/dtype.rs", "macro_rules! m { () => { $crate::driver::count() } }"));
    assert!(caught(
        "src/types/dtype.rs",
        "#[cfg(test)]\nmod tests { use super::super::super::driver::Device; }"
    ));
    assert!(caught("src/error.rs", "use crate::sys::codes;"));
    assert!(caught("src/sys/mod.rs", "type A = &'static str; use crate::driver::Device;"));
    // Forms that would hide a target.
    assert!(caught("src/driver/device.rs", "use crate as library;"));
    assert!(caught("src/driver/device.rs", "use crate::*;"));
    assert!(caught("src/driver/device.rs", "use crate::unknown::Item;"));
    assert!(caught("src/unknown/mod.rs", "use crate::sys::codes;"));
    let line = complaints("src/driver/device.rs", "// one\n\"two\n\"\n;use\ncrate::tensor::T;", &names);
    assert!(line[0].starts_with("src/driver/device.rs:5: "), "{line:?}");

    // Downward, inside the module, to `error`, and words that are no paths.
    for (path, source) in [
        ("src/images/mod.rs", "use crate::driver::Device; use crate::types::DType; use crate::Error;"),
        ("src/driver/device.rs", "use super::stream::Stream; use crate::driver::event::Event;"),
        ("src/driver/memory/pool.rs", "use super::super::stream::Stream; use crate::sys::driver::CUstream;"),
        ("src/driver/device.rs", "mod tests { use super::*; use super::super::stream::Stream; }"),
        ("src/sys/mod.rs", "use crate::error::Error; pub(crate) fn f() {} pub(super) fn g() {}"),
        ("src/types/dtype.rs", "// crate::driver\n/* crate::driver /* crate::tensor */ */ /// [`crate::nn`]"),
        (
            "src/types/dtype.rs",
            r###"const A: &str = "crate::driver"; const B: &str = r#"" crate::driver "#;"###,
        ),
        ("src/types/dtype.rs", r"const A: (char, char, u8) = ('\'', '»', b'\''); fn f<'a>(x: &'a str) {}"),
        ("src/bin/selvedge/main.rs", "use crate::plan::Plan; use selvedge::driver::Device; use super::run;"),
    ] {
        assert_eq!(complaints(path, source, &names), Vec::<String>::new(), "{path}: {source}");
    }
}

#[test]
fn files_can_be_read_in_one_go() {
    let written = ["rs", "c", "h", "hpp", "cc", "cpp", "cu", "cuh"];
    let long: Vec<String> = files("src")
        .into_iter()
        .chain(files("csrc"))
        .filter(|path| path.rsplit_once('.').is_some_and(|(_, ending)| written.contains(&ending)))
        .filter_map(|path| {
            let source = read(&path);
            let lines = source.lines().count();
            (lines > MAX_LINES && !source.starts_with(GENERATED)).then(|| format!("{path} has {lines} lines"))
        })
        .collect();
    assert!(long.is_empty(), "over {MAX_LINES} lines, make each a folder: {long:#?}");
}

/// The roots of the test or bench targets in `folder` that no entry of the manifest names.
fn unlisted(manifest: &str, section: &str, folder: &str, files: &[String]) -> Vec<String> {
    let mut listed = Vec::new();
    let header = format!("[[{section}]]");
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == header;
        } else if let (true, Some((key, value))) = (inside, line.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim() {
                "name" => {
                    listed.push(format!("{folder}/{value}.rs"));
                    listed.push(format!("{folder}/{value}/main.rs"));
                }
                "path" => listed.push(value.to_owned()),
                _ => {}
            }
        }
    }
    let is_root = |path: &&String| {
        let parts: Vec<&str> = path.split('/').collect();
        matches!(parts[..], [_, file] if file.ends_with(".rs")) || matches!(parts[..], [_, _, "main.rs"])
    };
    files.iter().filter(is_root).filter(|path| !listed.contains(path)).cloned().collect()
}

#[test]
fn no_test_or_bench_is_forgotten() {
    let manifest = read("Cargo.toml");
    for (section, folder) in [("test", "tests"), ("bench", "benches")] {
        let forgotten = unlisted(&manifest, section, folder, &files(folder));
        assert!(forgotten.is_empty(), "Cargo.toml has no [[{section}]] for {forgotten:?}");
    }
    // And the rule sees one that is not there.
    let files = ["tests/a.rs", "tests/b.rs", "tests/c/main.rs", "tests/d/part.rs"].map(str::to_owned);
    let manifest = "[[test]]\nname = \"a\"\n[[bench]]\nname = \"b\"\n";
    assert_eq!(unlisted(manifest, "test", "tests", &files), ["tests/b.rs", "tests/c/main.rs"]);
}
