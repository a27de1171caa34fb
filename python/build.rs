//! Writes the docstring of each method of `Tensor` from its Rust documentation and the examples of `src/examples.txt`.
//!
//! A docstring is the text of the Rust method up to its first heading, without its Rust example, links and paths, and then the
//! Python example. `doc!(name)` of `src/lib.rs` includes it.
//!
//! It also writes the macro `with_elementwise`, the list of elementwise operations as `ops!` has them, for
//! `src/tensor/elementwise.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The names of the arguments behind the first one of operations with three operands. `clamp` has defaults, so it is a method of its own.
const TERNARY: [(&str, &str); 3] =
    [("choose", "yes, no"), ("fma", "factor, summand"), ("lerp", "end, weight")];

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
    let list = fs::read_to_string("../src/fuse/language/operation.rs")?;
    operations(&list, &mut documents);
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    fs::write(folder.join("with_elementwise.rs"), with_elementwise(&list)?)?;
    let examples = fs::read_to_string("src/examples.txt")?;
    let examples: BTreeMap<&str, &str> =
        examples.split("\n\n").filter_map(|entry| entry.trim().split_once('\n')).collect();
    let unknown: Vec<_> = examples.keys().filter(|name| !documents.contains_key(**name)).collect();
    if !unknown.is_empty() {
        return Err(io::Error::other(format!("src/examples.txt names methods that Rust lacks: {unknown:?}")));
    }
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

/// Reads the head of a row of `ops!`, `code Variant name arity …`: the variant, the name and the number of operands.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    match line.split_whitespace().take(4).collect::<Vec<_>>()[..] {
        [code, variant, name, arity] if code.parse::<u32>().is_ok() && ["1", "2", "3"].contains(&arity) => {
            Some((variant, name, arity))
        }
        _ => None,
    }
}

/// Returns the macro that passes the operations to another one: those of one operand, of two and of three.
fn with_elementwise(source: &str) -> io::Result<String> {
    let mut lists = [const { String::new() }; 3];
    for (variant, name, arity) in source.lines().filter_map(row).filter(|(_, name, _)| *name != "clamp") {
        let arguments = TERNARY.iter().find(|(other, _)| *other == name).map(|(_, arguments)| *arguments);
        match (arity, arguments) {
            ("1", _) => lists[0] += &format!("{name} {variant} "),
            ("2", _) => lists[1] += &format!("{name} {variant} "),
            (_, Some(arguments)) => lists[2] += &format!("{name}({arguments}) {variant} "),
            _ => return Err(io::Error::other(format!("TERNARY of build.rs has no row for {name}"))),
        }
    }
    let [one, two, three] = lists;
    Ok(format!(
        "macro_rules! with_elementwise {{ ($callback:ident) => {{ $callback! {{ [{one}] [{two}] [{three}] }} }}; }}\n"
    ))
}

/// Adds the elementwise operations: rows `code Variant name arity … "document"`.
fn operations(source: &str, documents: &mut BTreeMap<String, String>) {
    let mut name = None;
    for line in source.lines() {
        if let Some((_, found, _)) = row(line) {
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
