//! docs/faces.md: the public name of each system in Rust, C, C++, Python and the shell.
//!
//! The rows are data, a file for each group of topics. A row names items of the sources ([`names`] looks them up), or says why a
//! face has none. A new layer, function of the C ABI, class, command or export that no row names fails a test here.

#[path = "names.rs"]
mod names;
#[path = "network_rows.rs"]
mod network_rows;
#[path = "runtime_rows.rs"]
mod runtime_rows;
#[path = "tensor_rows.rs"]
mod tensor_rows;
#[path = "training_rows.rs"]
mod training_rows;

use std::collections::BTreeSet;

use self::Face::{Has, HasSome, Lacks};
use self::names::Names;
use super::{read, root};

/// The contents of one cell.
///
/// Names are separated by spaces, and those of the shell by commas. The page lists the names before a `|`, and stands for those after
/// it with an ellipsis. A name that ends with `*` stands for all that begin with the rest.
enum Face {
    Has(&'static str),
    /// The names, and the reason for the part that is missing.
    HasSome(&'static str, &'static str),
    /// The reason why the face has nothing.
    Lacks(&'static str),
}

impl Face {
    /// Returns the names that the page lists, and those that it leaves out.
    fn names(&self, face: usize) -> (Vec<&'static str>, Vec<&'static str>) {
        let (Has(text) | HasSome(text, _)) = self else {
            return Default::default();
        };
        let (listed, others) = text.split_once('|').unwrap_or((text, ""));
        let separator = if FACES[face] == "shell" { ',' } else { ' ' };
        let names = |text: &'static str| {
            text.split(separator).map(str::trim).filter(|name| !name.is_empty()).collect()
        };
        (names(listed), names(others))
    }

    fn reason(&self) -> Option<&'static str> {
        match self {
            Has(_) => None,
            HasSome(_, reason) | Lacks(reason) => Some(reason),
        }
    }
}

/// A system, and its names in the order of [`FACES`].
type Row = (&'static str, [Face; 5]);

struct Topic {
    name: &'static str,
    rows: &'static [Row],
}

const FACES: [&str; 5] = ["Rust", "C", "C++", "Python", "shell"];

fn topics() -> impl Iterator<Item = &'static Topic> {
    [runtime_rows::TOPICS, tensor_rows::TOPICS, network_rows::TOPICS, training_rows::TOPICS]
        .into_iter()
        .flatten()
}

/// All names of a face, with their systems.
fn named(face: usize) -> Vec<(&'static str, &'static str)> {
    let rows = topics().flat_map(|topic| topic.rows);
    rows.flat_map(|(system, cells)| {
        let (listed, others) = cells[face].names(face);
        listed.into_iter().chain(others).map(move |name| (*system, name))
    })
    .collect()
}

/// Returns whether a name of a row stands for the item: it is the item, a member of it, or a pattern.
fn names_item(name: &str, item: &str, separator: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => item.starts_with(start),
        None => name.strip_prefix(item).is_some_and(|rest| rest.is_empty() || rest.starts_with(separator)),
    }
}

#[test]
fn each_name_in_the_table_of_faces_is_in_the_sources() {
    let names = Names::of_sources();
    let mut missing = Vec::new();
    for (face, label) in FACES.into_iter().enumerate() {
        for (system, name) in named(face) {
            if !names.has(face, name) {
                missing.push(format!("{label}, {system}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "the sources have no such names:\n{}", missing.join("\n"));
}

#[test]
fn each_public_item_has_a_row_in_the_table_of_faces() {
    let names = Names::of_sources();
    let mut missing = Vec::new();
    for (face, separator) in ["::", "::", "::", ".", " "].into_iter().enumerate() {
        let items = names.items(face);
        assert!(items.len() >= [300, 600, 70, 150, 15][face], "{}: {items:?}", FACES[face]);
        let rows: BTreeSet<String> =
            named(face).into_iter().map(|(_, name)| names.whole(face, name)).collect();
        let is_named = |item: &String| rows.iter().any(|name| names_item(name, item, separator));
        missing.extend(
            items.into_iter().filter(|item| !is_named(item)).map(|item| format!("{}: {item}", FACES[face])),
        );
    }
    assert!(
        missing.is_empty(),
        "no row of tests/documents/faces names these; add them to the row of their system, or a row:\n{}",
        missing.join("\n")
    );
}

#[test]
fn a_name_that_no_source_has_is_not_found() {
    let names = Names::of_sources();
    for (face, found, missing) in [
        (0, "nn::Linear", "nn::Liner"),
        (0, "Tensor::softmax", "Tensor::softmaxes"),
        (0, "nn::ScheduleShape::Wsd", "nn::ScheduleShape::Wdd"),
        (0, "io::npy::*", "io::nqy::*"),
        (1, "sv_tensor_cast", "sv_tensor_case"),
        (1, "sv_stream_*", "sv_streams_*"),
        (2, "nn::Variable::backward", "nn::Variable::backwards"),
        (2, "Tensor::cumsum", "Stream::cumsum"),
        (3, "nn.Linear", "nn.Liner"),
        (3, "sv.Tensor.softmax", "sv.Device.softmax"),
        (4, "train --lora", "train --lore"),
        (4, "burst verify", "burst prove"),
    ] {
        assert!(names.has(face, found), "{found}");
        assert!(!names.has(face, missing), "{missing}");
    }
}

#[test]
fn systems_of_the_table_of_faces_are_unique_and_their_reasons_are_sentences() {
    let mut systems = BTreeSet::new();
    for (system, cells) in topics().flat_map(|topic| topic.rows) {
        assert!(systems.insert(system), "two rows for {system}");
        assert!(cells.iter().any(|cell| cell.reason().is_none()), "no face has all of {system}");
        for cell in cells {
            let reason = cell.reason().unwrap_or("A reason.");
            let is_sentence = reason.starts_with(|letter: char| letter.is_uppercase() || letter == '`');
            assert!(is_sentence && reason.ends_with('.'), "{system}: {reason}");
        }
    }
}

const HEAD: &str = "\
# The faces of the library

Each table lists the systems of one topic, and the public name of each in Rust, C, C++, Python and the shell. A footnote says why a
face lacks a system, or a part of it. `scripts/generate.sh faces` writes this page from the rows of `tests/documents/faces` and
checks each name against the sources.

- **Rust**: paths in the crate `selvedge`; `cargo doc --open` is the reference, and [tensor-methods.md](tensor-methods.md) lists the
  methods of `Tensor`.
- **C**: functions and constants of `selvedge.h`; [c-abi.md](c-abi.md).
- **C++**: names in the namespace `selvedge`; [cpp.md](cpp.md).
- **Python**: `sv` is the package `selvedge`, and `nn`, `io`, `burst`, `srt`, `catalogue` and `classifier` are its modules;
  [python.md](python.md).
- **shell**: commands of the program `selvedge`, which is also `python -m selvedge`; [shell.md](shell.md).

An ellipsis stands for further names of the system, which the rows have.

[examples/languages](../examples/languages) trains an MLP, a small GPT and a classifier of digits in Rust, C, C++ and Python. Tests compare
the bits of their last losses and of all parameters, which are equal in the four languages.
";

fn rendered() -> String {
    let mut page = HEAD.to_owned();
    let mut reasons: Vec<&str> = Vec::new();
    for Topic { name, rows } in topics() {
        page += &format!("\n## {name}\n\n| | {} |\n|---|---|---|---|---|---|\n", FACES.join(" | "));
        let first = reasons.len();
        for (system, cells) in *rows {
            let cells = cells.iter().enumerate().map(|(face, cell)| {
                let (listed, others) = cell.names(face);
                let mut text: Vec<String> = listed.iter().map(|name| format!("`{name}`")).collect();
                if text.is_empty() {
                    text.push("no".to_owned());
                }
                if !others.is_empty() {
                    text.push("…".to_owned());
                }
                let mut text = text.join(", ");
                if let Some(reason) = cell.reason() {
                    let number = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                        reasons.push(reason);
                        reasons.len() - 1
                    });
                    text += &format!(" [^{}]", number + 1);
                }
                text
            });
            let cells: Vec<String> = cells.collect();
            page += &format!("| {system} | {} |\n", cells.join(" | "));
        }
        for (number, reason) in reasons.iter().enumerate().skip(first) {
            page += &format!("\n[^{}]: {reason}\n", number + 1);
        }
    }
    page
}

#[test]
fn the_page_of_faces_is_that_of_the_table() {
    let (path, page) = (root().join("docs/faces.md"), rendered());
    if std::env::var_os("SELVEDGE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/faces.md is not that of tests/documents/faces: run scripts/generate.sh faces"
    );
}
