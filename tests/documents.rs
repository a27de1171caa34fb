//! Holds what the documents say against what is there: code, links, files, variables and features.

#[path = "common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    common::repository()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The Markdown files, relative to the root.
fn documents() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("docs is there");
    let mut documents = vec!["README.md".to_owned(), "CHANGELOG.md".to_owned()];
    for entry in entries {
        documents.push(format!("docs/{}", entry.expect("a readable folder").file_name().to_string_lossy()));
    }
    documents.retain(|path| path.ends_with(".md"));
    assert!(documents.len() >= 4, "{documents:?}");
    documents
}

/// The blocks of one language in a Markdown text.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(opening) = line.trim_start().strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        if opening.split(',').next() == Some(language) {
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

#[test]
fn the_readme_shows_the_first_example() {
    let shown = &blocks(&read("README.md"), "rust")[0];
    let (imports, code) = shown.split_once("\n\n").expect("imports and a function");
    let code = code.replace("fn main()", "fn saxpy()");
    let example = read("examples/01-saxpy.rs");
    assert!(
        example.contains(imports) && example.contains(&code),
        "examples/01-saxpy.rs lacks\n{imports}\n\n{code}"
    );
}

#[test]
fn what_else_the_readme_shows_is_in_an_example() {
    let entries = fs::read_dir(root().join("examples")).expect("examples are there");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let sources = paths.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let examples: Vec<String> =
        sources.map(|path| fs::read_to_string(path).expect("sources are text")).collect();
    let shown = blocks(&read("README.md"), "rust");
    assert!(shown.len() >= 2, "{shown:?}");
    for block in &shown[1..] {
        let indent = |line: &str| if line.is_empty() { String::new() } else { format!("    {line}") };
        let lines: Vec<String> = block.lines().map(indent).collect();
        let code = lines.join("\n");
        assert!(examples.iter().any(|example| example.contains(&code)), "no example has\n{code}");
    }
}

#[test]
fn links_lead_somewhere() {
    for document in documents() {
        let folder = root().join(&document).parent().expect("a file has a folder").to_owned();
        for rest in read(&document).split("](").skip(1) {
            let target = rest.split(')').next().expect("split gives one at least");
            if target.starts_with("http") || target.starts_with('#') {
                continue;
            }
            assert!(folder.join(target).exists(), "{document} links to {target}");
        }
    }
}

#[test]
fn commands_name_files_that_are_there() {
    let commands: Vec<String> = documents().iter().flat_map(|path| blocks(&read(path), "sh")).collect();
    let text = commands.join("\n");
    let named: BTreeSet<&str> = text
        .split_whitespace()
        .filter(|word| ["scripts/", "examples/", ".ci/"].iter().any(|folder| word.starts_with(folder)))
        .collect();
    assert!(named.len() >= 2, "{named:?}");
    for file in named {
        assert!(root().join(file).is_file(), "a command names {file}");
    }
}

#[test]
fn the_readme_lists_every_variable() {
    fn collect(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("sources are text");
                // Whole names in quotes are what the environment is asked for.
                for part in text.split("\"SELVEDGE_").skip(1) {
                    let name: String = part
                        .chars()
                        .take_while(|letter| letter.is_ascii_uppercase() || *letter == '_')
                        .collect();
                    if part[name.len()..].starts_with('"') {
                        found.insert(format!("SELVEDGE_{name}"));
                    }
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(&root().join("src"), &mut found);
    collect(&root().join("build"), &mut found);
    assert!(found.len() >= 6, "{found:?}");
    let readme = read("README.md");
    let unlisted: Vec<_> = found.iter().filter(|name| !readme.contains(&format!("`{name}`"))).collect();
    assert!(unlisted.is_empty(), "README.md has no row for {unlisted:?}");
}

#[test]
fn the_readme_lists_every_feature() {
    let manifest = read("Cargo.toml");
    let features = manifest.split("[features]").nth(1).and_then(|rest| rest.split("\n[").next());
    let readme = read("README.md");
    let names: Vec<&str> = features
        .expect("the manifest has features")
        .lines()
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .filter(|name| *name != "default")
        .collect();
    assert!(names.contains(&"cli"), "{names:?}");
    for name in names {
        assert!(readme.contains(&format!("\n| `{name}` |")), "README.md has no row for the feature {name}");
    }
}
