//! Compares the documents with the source: code, links, files, variables and features.

#[path = "documents/comments.rs"]
mod comments;
#[path = "common/mod.rs"]
mod common;
#[path = "documents/faces/mod.rs"]
mod faces;
#[path = "documents/scripts.rs"]
mod scripts;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::blocks;

fn root() -> PathBuf {
    common::repository()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The Markdown files, relative to the root.
fn documents() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("docs is there");
    let mut documents = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned).to_vec();
    for entry in entries {
        documents.push(format!("docs/{}", entry.expect("a readable folder").file_name().to_string_lossy()));
    }
    documents.retain(|path| path.ends_with(".md"));
    assert!(documents.len() >= 4, "{documents:?}");
    documents
}

#[test]
fn the_readme_shows_code_of_the_examples() {
    let entries = fs::read_dir(root().join("examples")).expect("examples are there");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let sources = paths.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let examples: Vec<String> =
        sources.map(|path| fs::read_to_string(path).expect("sources are text")).collect();
    let shown = blocks(&read("README.md"), "rust");
    assert!(shown.len() >= 2, "{shown:?}");
    let indent = |line: &str| if line.is_empty() { String::new() } else { format!("    {line}") };
    for block in &shown {
        let code = block.lines().map(indent).collect::<Vec<_>>().join("\n");
        assert!(examples.iter().any(|example| example.contains(&code)), "no example has\n{block}");
    }
}

#[test]
fn the_readme_shows_cpp_of_the_example() {
    let example = read("csrc/examples/tensors.cpp");
    let shown = blocks(&read("README.md"), "cpp");
    assert_eq!(shown.len(), 1, "{shown:?}");
    let lines: Vec<String> = shown[0].lines().map(|line| format!("    {line}")).collect();
    assert!(example.contains(&lines.join("\n")), "csrc/examples/tensors.cpp has not\n{}", shown[0]);
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 150, "README.md has {lines} lines: reference material belongs to docs/");
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
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            assert!(folder.join(path).exists(), "{document} links to {target}");
            if !heading.is_empty() {
                let text = std::fs::read_to_string(folder.join(path)).expect("a document is a text");
                let mut headings = text.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(headings.any(|found| found == heading), "{document} links to {target}");
            }
        }
    }
}

/// The name by which a link reaches a heading: its words in lower case, with hyphens between them.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

#[test]
fn paths_in_the_design_lead_somewhere() {
    let text = read("docs/design.md");
    // Text between backquotes is every second part.
    let quoted: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    let folders = ["src/", "csrc/", "tests/", "scripts/", "benches/", "docs/", "examples/", ".ci/"];
    let paths: Vec<&str> = quoted
        .into_iter()
        .filter(|text| folders.iter().any(|folder| text.starts_with(folder)))
        // A command is a path and its arguments.
        .map(|text| text.split(' ').next().unwrap_or(text))
        // Names that a reader replaces.
        .filter(|path| !path.contains("NAME"))
        .collect();
    assert!(paths.len() >= 50, "{paths:?}");
    let missing: Vec<_> = paths.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "docs/design.md names {missing:?}");
}

#[test]
fn no_sentence_begins_with_a_relative_clause() {
    for document in documents() {
        let mut in_code = false;
        for (number, line) in read(&document).lines().enumerate() {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            let starts = line.split(". ").map(|part| part.trim_start_matches([' ', '-', '#', '|', '*', '>']));
            let word =
                |part: &str| part.chars().take_while(|letter| letter.is_alphabetic()).collect::<String>();
            let found =
                starts.map(word).find(|word| ["What", "Where", "Whether", "Those"].contains(&word.as_str()));
            assert!(
                in_code || found.is_none(),
                "{document}:{}: a sentence begins with {found:?}: name the subject first",
                number + 1
            );
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
fn the_page_of_variables_lists_each() {
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
    let page = read("docs/environment.md");
    let unlisted: Vec<_> = found.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(unlisted.is_empty(), "docs/environment.md has no row for {unlisted:?}");
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

/// Returns the statuses of the header: code, name and the text of the comment.
fn statuses(header: &str) -> Vec<(u32, String, String)> {
    let definitions = header.split("/**\n").filter_map(|part| part.split_once("*/\n#define SV_"));
    let statuses = definitions.filter_map(|(comment, definition)| {
        let (name, code) = definition.lines().next()?.split_once(' ')?;
        let is_status = name == "OK" || name.starts_with("ERROR_");
        let words: Vec<&str> =
            comment.lines().map(|line| line.trim().trim_start_matches("* ").trim()).collect();
        is_status
            .then(|| (code.parse().expect("a code"), format!("SV_{name}"), words.join(" ").trim().to_owned()))
    });
    let mut statuses: Vec<_> = statuses.collect();
    statuses.sort();
    statuses
}

#[test]
fn the_page_of_the_c_abi_has_the_codes_of_the_header() {
    let (header, page) = (read("include/selvedge.h"), read("docs/c-abi.md"));
    let wanted: Vec<String> = statuses(&header)
        .into_iter()
        .map(|(code, name, meaning)| format!("| {code} | `{name}` | {meaning} |"))
        .collect();
    let defined = header.lines().filter(|line| line.starts_with("#define SV_ERROR_")).count();
    assert!(defined > 30 && wanted.len() == defined + 1, "{} of {defined} codes", wanted.len());
    let (_, table) = page.split_once("| code | name | meaning |\n|---|---|---|\n").expect("a table of codes");
    let found: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(found, wanted, "the rows of docs/c-abi.md are the comments of include/selvedge.h");
}

#[test]
fn samples_of_tests_reach_every_row() {
    common::sampling::checks().unwrap();
}

/// The topics of docs/tensor-methods.md, and the sources of their methods.
const METHOD_TOPICS: [(&str, &[&str]); 19] = [
    ("Creation", &["convert", "creation", "ranges", "ndarray", "files"]),
    ("Random numbers", &["random/distributions", "random/sampling"]),
    ("Properties and memory", &["tensor", "raw_memory"]),
    ("Elementwise operations", &["elementwise"]),
    ("Comparison", &["comparison"]),
    ("Reductions", &["reduction", "statistics"]),
    ("Scans", &["scan"]),
    ("Sorting and selection", &["sorting/order", "sorting/statistics", "sorting/nonzero"]),
    ("Search, sets and counts", &["sorting/search", "sorting/distinct", "sorting/counts"]),
    ("Softmax and normalisation", &["normalization/mod", "clip"]),
    (
        "Losses and gradients",
        &["losses/mod", "normalization/softmax_backward", "normalization/norm_backward"],
    ),
    ("Products and attention", &["matmul/mod", "diagonals", "attention/mod"]),
    ("Views", &["shape/views"]),
    ("Rows and single elements", &["shape/rows"]),
    ("Joining and splitting", &["shape/join", "shape/split"]),
    ("Repeating and padding", &["shape/repeat", "shape/pad"]),
    ("Masks and triangles", &["shape/mask"]),
    ("Indexing", &["indexing/gather", "indexing/scatter", "indexing/accumulate", "indexing/index"]),
    ("Writing in place", &["in_place"]),
];

/// The public methods of `Tensor` in a source file, those of macros' tables included.
fn tensor_methods(path: &str) -> Vec<String> {
    let text = read(&format!("src/tensor/{path}.rs"));
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
    };
    let (mut names, mut in_tensor, mut in_table) = (Vec::new(), false, false);
    for line in text.lines() {
        let code = line.trim_start();
        if line.starts_with("impl") {
            in_tensor = line.contains("Tensor {");
        }
        if ["views! {", "reductions! {", "of_the_device! {"].contains(&line) {
            in_table = true;
        } else if line == "}" {
            (in_tensor, in_table) = (false, false);
        } else if in_tensor && code.starts_with("pub fn ") {
            let name = &code["pub fn ".len()..];
            names.extend(name.split(['(', '<']).next().map(str::to_owned));
        } else if in_table && !code.starts_with("//") {
            // `name(…) |layout| …`, `sum, sum_keepdim, sum_all […] …`, `"Doc." name[…](…)`.
            let code = code.rsplit('"').next().unwrap_or(code).trim_start();
            let head = code.split(['(', '[', '|']).next().unwrap_or("");
            let table: Vec<&str> = head.split(',').map(str::trim).collect();
            if code.ends_with(';') && table.iter().all(|name| is_name(name)) {
                names.extend(table.into_iter().map(str::to_owned));
            }
        }
    }
    if path == "elementwise" {
        // The compiler's list: `NUMBER Variant name arity …`.
        for line in read("src/fuse/language/operation.rs").lines() {
            let words: Vec<&str> = line.split_whitespace().take(4).collect();
            if let [number, variant, name, arity] = words[..] {
                let is_row = number.parse::<u32>().is_ok() && ["1", "2", "3"].contains(&arity);
                if is_row && variant.starts_with(|letter: char| letter.is_ascii_uppercase()) && is_name(name)
                {
                    names.push(name.to_owned());
                }
            }
        }
    }
    names
}

#[test]
fn the_page_of_tensor_methods_is_that_of_the_source() {
    let mut page =
        "# Methods of `Tensor` by topic\n\n`scripts/generate.sh methods` writes this page from the source. \
                    `cargo doc --open` describes each method.\n"
            .to_owned();
    for (topic, sources) in METHOD_TOPICS {
        let names: Vec<String> = sources.iter().flat_map(|path| tensor_methods(path)).collect();
        assert!(!names.is_empty(), "{topic} has no methods");
        let files: Vec<String> =
            sources.iter().map(|path| format!("[{path}.rs](../src/tensor/{path}.rs)")).collect();
        page += &format!("\n## {topic}\n\n{}\n\n", files.join(", "));
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        for row in names.chunks(10) {
            page += &format!("{}\n", row.join(" "));
        }
    }
    for method in ["`sum_keepdim`", "`arange`", "`transpose`", "`matmul`", "`exp`", "`randn`", "`unbind`"] {
        assert!(page.contains(method), "the page lacks {method}");
    }
    let path = root().join("docs/tensor-methods.md");
    if std::env::var_os("SELVEDGE_UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("docs can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/tensor-methods.md is not that of the source: run scripts/generate.sh methods"
    );
}
