//! The language of comments: subject and verb first, and the field's words.

use std::fs;

use super::root;

/// Words that begin a sentence without its subject.
const OPENINGS: [&str; 4] = ["what", "where", "whether", "those"];

/// A word of the crate's first vocabulary, the field's word for it, and phrases in which the word has another sense.
const WORDS: &[(&str, &str, &[&str])] = &[
    ("trial", "test", &[]),
    ("trials", "tests", &[]),
    ("promise", "guarantee", &[]),
    ("promises", "guarantees", &[]),
    ("promised", "guaranteed", &[]),
    ("planted", "injected", &[]),
    ("turned over", "transposed", &[]),
    ("turns over", "transposes", &[]),
    ("turn over", "transpose", &[]),
    ("lying", "memory layout", &[]),
    ("room", "module, or space", &["room for"]),
    ("rooms", "modules", &[]),
    ("floor", "layer", &["floor of", "floor division"]),
    ("floors", "layers", &[]),
    ("told", "reported", &[]),
    ("recipe", "cached operation", &[]),
    ("recipes", "cached operations", &[]),
    ("numerals", "number formatting", &[]),
    ("latch", "spinlock", &[]),
    ("latches", "spinlocks", &[]),
    ("books", "accounting", &[]),
    ("piece", "work tile", &[]),
    ("pieces", "work tiles", &[]),
    ("note", "work descriptor", &["performance notes"]),
    ("notes", "work descriptors", &["performance notes", "notes json"]),
    ("must stay true", "invariants", &[]),
];

#[derive(Clone, Copy, PartialEq)]
enum Language {
    C,
    Hash,
}

fn language(path: &str) -> Option<Language> {
    match path.rsplit_once('.').map_or(path, |(_, ending)| ending) {
        "rs" | "c" | "h" | "hpp" | "cu" | "cuh" => Some(Language::C),
        "py" | "sh" | "toml" => Some(Language::Hash),
        _ => (path == ".ci/run").then_some(Language::Hash),
    }
}

/// Returns the paragraphs of comments with the number of their first line. Code between backquotes and in fences is no
/// part of them.
fn paragraphs(source: &str, language: Language) -> Vec<(usize, String)> {
    let (mut found, mut open): (Vec<(usize, String)>, bool) = (Vec::new(), false);
    let (mut in_block, mut in_fence) = (false, false);
    for (index, line) in source.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = match language {
            Language::Hash => "#",
            // The first mark of a line begins its comment: `// src/*.rs` opens no block.
            Language::C => match (line.find("//"), line.find("/*")) {
                (Some(at), Some(block)) if at < block => "//",
                (Some(_), None) => "//",
                _ => "/*",
            },
        };
        let comment = if in_block {
            Some((true, trimmed))
        } else if trimmed.starts_with("#!") || trimmed.starts_with("#include") {
            None
        } else if let Some(text) = trimmed.strip_prefix(mark) {
            Some((true, text))
        } else {
            // Behind code. A mark inside of a word, such as a web address, begins no comment.
            line.split_once(&format!(" {mark} ")).map(|(_, text)| (false, text))
        };
        in_block |= mark == "/*" && comment.is_some();
        in_block &= !line.contains("*/");
        let Some((whole_line, text)) = comment else {
            (open, in_fence) = (false, false);
            continue;
        };
        let text = text.trim_start_matches(['/', '!', '*']).trim().trim_end_matches("*/").trim();
        if text.starts_with("```") {
            in_fence = !in_fence;
        }
        let begins_item = ["- ", "* ", "| "].iter().any(|mark| text.starts_with(mark));
        let is_heading = language == Language::C && text.starts_with("# ");
        if text.is_empty() || text.starts_with("```") || in_fence || is_heading {
            open = false;
            continue;
        }
        // Text between backquotes is every second part.
        let text: Vec<&str> = text.split('`').step_by(2).collect();
        let text = text.join("code");
        match found.last_mut().filter(|_| open && whole_line && !begins_item) {
            Some((_, paragraph)) => *paragraph += &format!(" {text}"),
            None => found.push((index + 1, text)),
        }
        open = whole_line;
    }
    found
}

/// Returns the words that begin sentences without a subject.
fn openings(paragraph: &str) -> Vec<String> {
    let ends = [". ", "! ", "? "];
    let mut starts = vec![0];
    for end in ends {
        starts.extend(paragraph.match_indices(end).map(|(at, _)| at + end.len()));
    }
    let word = |at: &usize| {
        let start = paragraph[*at..].trim_start_matches([' ', '-', '*', '|', '(', '[', '"']);
        start.chars().take_while(|letter| letter.is_alphabetic()).collect::<String>()
    };
    let is_capital = |word: &String| word.starts_with(char::is_uppercase);
    starts
        .iter()
        .map(word)
        .filter(is_capital)
        .filter(|word| OPENINGS.contains(&word.to_lowercase().as_str()))
        .collect()
}

/// Returns the old words of a paragraph, each with the field's word.
fn old_words(paragraph: &str) -> Vec<(&'static str, &'static str)> {
    let words: Vec<String> = paragraph
        .to_lowercase()
        // A function's name, such as floor(x).
        .replace("floor(", "code(")
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let text = format!(" {} ", words.join(" "));
    let has = |(word, _, allowed): &&(&str, &str, &[&str])| {
        let text =
            allowed.iter().fold(text.clone(), |text, phrase| text.replace(&format!(" {phrase} "), " code "));
        text.contains(&format!(" {word} "))
    };
    WORDS.iter().filter(has).map(|(word, field, _)| (*word, *field)).collect()
}

/// Every file with comments of our own: those of a generator, and recorded output, are not.
fn sources() -> Vec<(String, String)> {
    let folders = ["src", "csrc", "tests", "benches", "examples", "scripts", "build", ".ci"];
    let mut paths = vec!["build.rs".to_owned(), "wrapper.h".to_owned(), "Cargo.toml".to_owned()];
    let mut open: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a readable folder") {
            let entry = entry.expect("a readable folder");
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true if path.ends_with("/target") || path.ends_with("/.venv") => {}
                true => open.push(path),
                false => paths.push(path),
            }
        }
    }
    // The cases of this file's own test have every defect.
    paths.retain(|path| language(path).is_some() && path != "tests/documents/comments.rs");
    let read = |path: String| {
        let source = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        (path, source)
    };
    paths.into_iter().map(read).filter(|(_, source)| !source.starts_with("// Generated ")).collect()
}

/// Lists the defects that `find` sees in any comment.
fn defects(find: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let sources = sources();
    assert!(sources.len() > 500, "only {} files found", sources.len());
    let mut defects = Vec::new();
    for (path, source) in &sources {
        let Some(language) = language(path) else { continue };
        for (line, paragraph) in paragraphs(source, language) {
            defects.extend(find(&paragraph).into_iter().map(|what| format!("{path}:{line}: {what}")));
        }
    }
    defects.sort();
    defects
}

#[test]
fn sentences_of_comments_begin_with_their_subject() {
    let found = defects(openings);
    assert!(found.is_empty(), "name the subject first:\n{}", found.join("\n"));
}

#[test]
fn comments_use_the_words_of_the_field() {
    let pair = |(word, field)| format!("'{word}': write {field}");
    let found = defects(|paragraph| old_words(paragraph).into_iter().map(pair).collect());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Identifiers of the crate's first vocabulary, and the field's words for them.
const NAMES: [(&str, &str); 4] =
    [("way", "path, or distance"), ("ways", "paths"), ("lies", "layout"), ("turned", "transposed")];

/// Returns the old names in a line of code. Strings and comments are no part of it.
fn old_names(line: &str) -> Vec<(&'static str, &'static str)> {
    let code = line.split("//").next().unwrap_or_default();
    // Text between quotes is every second part.
    let code = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words: Vec<&str> = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    NAMES.into_iter().filter(|(name, _)| words.contains(name)).collect()
}

#[test]
fn names_in_the_crate_are_the_words_of_the_field() {
    let mut found = Vec::new();
    for (path, source) in
        sources().iter().filter(|(path, _)| path.starts_with("src/") && path.ends_with(".rs"))
    {
        for (index, line) in source.lines().enumerate() {
            let names = old_names(line).into_iter();
            found.extend(names.map(|(name, field)| format!("{path}:{}: '{name}': write {field}", index + 1)));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_bad_name_is_found() {
    for (line, wanted) in [
        ("let way = program.subtract(y, x);", 1),
        ("fn lies(turned: bool) {}", 2),
        ("let name = \"split-k/64x64x4/turned\"; // turned that way", 0),
        ("let families = always(returned);", 0),
    ] {
        assert_eq!(old_names(line).len(), wanted, "{line}");
    }
}

#[test]
fn a_bad_comment_is_found() {
    let of = |source: &str, language| {
        let all = paragraphs(source, language);
        let openings: usize = all.iter().map(|(_, text)| openings(text).len()).sum();
        let words: usize = all.iter().map(|(_, text)| old_words(text).len()).sum();
        (openings, words)
    };
    for (source, wanted) in [
        ("/// What it does.\n", (1, 0)),
        ("//! Does it. Whether it\n//! does: see there.\n", (1, 0)),
        ("//! A sentence that ends\n//! where the line does.\n//! Where it goes on\n", (1, 0)),
        ("    // One line.\n    // Those of two.\n", (1, 0)),
        ("let x = 1; // Where x is.\n", (1, 0)),
        ("/* Text.\n * What follows.\n */\nint what; /* Whether. */\n", (2, 0)),
        ("// - What an item says.\n", (1, 0)),
        ("/// # Errors\n/// Those of it.\n", (1, 0)),
        ("let x = \"https://a.b/c\"; f(What);\n", (0, 0)),
        ("//! Reads a/*.json.\nuse notes;\n", (0, 0)),
        ("// A `Trial` in code, and `What`.\n// ```\n// What is code\n// ```\n", (0, 0)),
        ("// A trial of a promise that is told,\n// turned\n// over.\n", (0, 4)),
        ("// There is room for it, floor(x), docs/performance-notes.md, and no room.\n", (0, 1)),
    ] {
        let found = of(source, Language::C);
        assert_eq!(found, wanted, "{source}");
    }
    assert_eq!(of("x = 1  # What x is.\n# A note.\n#!/bin/sh\n", Language::Hash), (1, 1));
}
