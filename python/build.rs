//! Writes the docstring of each method of `Tensor` from its Rust documentation and the examples of `src/examples.txt`.
//!
//! A docstring is the text of the Rust method up to its first heading, without its Rust example, links and paths, and then the
//! Python example. `doc!(name)` of `src/lib.rs` includes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    for path in ["build.rs", "src/examples.txt", "../src/tensor", "../src/fuse/language/operation.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut documents = BTreeMap::new();
    let mut sources = Vec::new();
    collect(Path::new("../src/tensor"), &mut sources)?;
    sources.sort();
    for source in sources {
        methods(&fs::read_to_string(source)?, &mut documents);
    }
    operations(&fs::read_to_string("../src/fuse/language/operation.rs")?, &mut documents);
    let examples = fs::read_to_string("src/examples.txt")?;
    let examples: BTreeMap<&str, &str> =
        examples.split("\n\n").filter_map(|entry| entry.trim().split_once('\n')).collect();
    let unknown: Vec<_> = examples.keys().filter(|name| !documents.contains_key(**name)).collect();
    if !unknown.is_empty() {
        return Err(io::Error::other(format!("src/examples.txt names methods that Rust lacks: {unknown:?}")));
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    for (name, document) in &documents {
        let mut text = plain(document);
        if let Some(example) = examples.get(name.as_str()) {
            text.push_str("\n\n");
            text.push_str(example.trim_end());
        }
        fs::write(folder.join(format!("{name}.txt")), text)?;
    }
    Ok(())
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, sources)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            sources.push(path);
        }
    }
    Ok(())
}

/// Adds the public methods of `Tensor` in a source, macros' tables included.
fn methods(source: &str, documents: &mut BTreeMap<String, String>) {
    let (mut document, mut is_tensor) = (String::new(), false);
    for line in source.lines() {
        let code = line.trim_start();
        if line.starts_with("impl") || line == "}" {
            is_tensor = line.starts_with("impl Tensor {");
        }
        // Tables of methods: `name(…) |layout| …;` and `name, name_keepdim, name_all […] …;`.
        is_tensor |= ["views! {", "reductions! {"].contains(&line);
        if let Some(text) = code.strip_prefix("///") {
            document.push_str(text.strip_prefix(' ').unwrap_or(text));
            document.push('\n');
            continue;
        }
        if code.starts_with("#[") {
            continue;
        }
        let head = code.strip_prefix("pub fn ").or(code.ends_with(';').then_some(code)).unwrap_or("");
        let end = head.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let name = &head[..end.unwrap_or(0)];
        if is_tensor && !name.is_empty() && !document.is_empty() {
            documents.entry(name.to_owned()).or_insert_with(|| document.clone());
        }
        document.clear();
    }
}

/// Adds the elementwise operations: rows `number Variant name arity … "document"`.
fn operations(source: &str, documents: &mut BTreeMap<String, String>) {
    let mut name = None;
    for line in source.lines() {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        if let [number, _, found, arity] = words[..]
            && number.parse::<u32>().is_ok()
            && ["1", "2", "3"].contains(&arity)
        {
            name = Some(found.to_owned());
        }
        let text = line.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
        if let (Some(known), Some((text, _))) = (&name, text) {
            documents.entry(known.clone()).or_insert_with(|| text.to_owned());
            name = None;
        }
    }
}

/// Returns a document without its sections, code blocks and links.
fn plain(document: &str) -> String {
    let (mut text, mut in_code) = (String::new(), false);
    for line in document.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if line.starts_with("# ") && !in_code {
            break;
        } else if !in_code {
            text.push_str(line);
            text.push('\n');
        }
    }
    // `[`name`](path)` and `[`Type::name`]` become `name`.
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((name, behind)) = after.split_once("`]") else {
            plain.push_str("[`");
            rest = after;
            continue;
        };
        plain.push_str(&format!("`{}`", name.rsplit("::").next().unwrap_or(name)));
        rest = match behind.strip_prefix('(').and_then(|path| path.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    plain.push_str(rest);
    while plain.contains("\n\n\n") {
        plain = plain.replace("\n\n\n", "\n\n");
    }
    plain.trim().to_owned()
}
