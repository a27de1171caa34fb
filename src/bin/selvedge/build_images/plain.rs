//! PTX that depends on its source and its compiler alone.
//!
//! NVRTC names its own build in comments; it makes up names for what has internal linkage, some of them from the number of
//! its process; and it writes variables that no kernel uses, of a header that it always reads. So comments go,
//! made-up names are numbered, and variables that have one and that nothing else names go too.

use std::collections::{HashMap, HashSet};

/// The mark of a generated name inside a mangled one.
const INTERNAL: &str = "_INTERNAL_";

/// The text without comments, empty lines, unused internal variables and made-up names.
pub fn plain(ptx: &str) -> String {
    let text = without_comments(ptx);
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    // One that goes may have been all that named another.
    loop {
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for word in lines.iter().flat_map(|line| words(line)).filter(|word| is_made_up(word)) {
            *uses.entry(word).or_default() += 1;
        }
        let before = lines.len();
        lines.retain(|line| {
            let variable =
                (line.starts_with(".global ") || line.starts_with(".const ")) && line.ends_with(';');
            let name = words(line).find(|word| is_made_up(word));
            !(variable && name.is_some_and(|name| uses.get(name) == Some(&1)))
        });
        if lines.len() == before {
            break;
        }
    }
    renamed(&lines)
}

/// Lines with made-up names numbered in the order of their first use.
fn renamed(lines: &[&str]) -> String {
    let taken: HashSet<&str> = lines.iter().flat_map(|line| words(line)).collect();
    let mut numbers =
        (0..).map(|number| format!("internal_{number}")).filter(|name| !taken.contains(name.as_str()));
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut text = String::new();
    for line in lines {
        for piece in pieces(line) {
            if is_made_up(piece) {
                text += names.entry(piece).or_insert_with(|| numbers.next().unwrap_or_default());
            } else {
                text += piece;
            }
        }
        text.push('\n');
    }
    text
}

fn is_made_up(word: &str) -> bool {
    word.starts_with("_Z") && word.contains(INTERNAL)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    pieces(line).filter(|piece| piece.starts_with(is_word))
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$')
}

/// The line in words and what stands between them.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let word = rest.starts_with(is_word);
        let end = rest.find(|letter| is_word(letter) != word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Comments of both kinds go; what stands in quotes stays.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, here) = rest.split_at(at);
        out += before;
        let end = |from: usize, mark: &str| {
            here.get(from..).and_then(|text| text.find(mark)).map_or(here.len(), |at| from + at)
        };
        let after = if here.starts_with("//") {
            end(2, "\n")
        } else if here.starts_with("/*") {
            (end(2, "*/") + 2).min(here.len())
        } else {
            let end = if here.starts_with('"') { (end(1, "\"") + 1).min(here.len()) } else { 1 };
            out += &here[..end];
            end
        };
        rest = &here[after..];
    }
    out + rest
}

/// Returns the text with another PTX ISA in its `.version` directive.
pub fn with_isa(text: &str, isa: &str) -> String {
    let replaced = |line: &str| match line.strip_prefix(".version ") {
        Some(_) => format!(".version {isa}\n"),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_isa_is_that_of_the_directive() {
        assert_eq!(with_isa(".version 8.0\n.target sm_90a\n", "8.1"), ".version 8.1\n.target sm_90a\n");
    }

    #[test]
    fn comments_and_empty_lines_go() {
        let text = "// Compiler Build ID\n/* two\nlines */.version 8.0 // yes\n\n\t.file \"a//b\" /* x */ \"/*\"\nx / y\n";
        assert_eq!(plain(text), ".version 8.0\n\t.file \"a//b\"  \"/*\"\nx / y\n");
        for text in ["/*", "//", "\"", "/", "/* *", "\"\\"] {
            let _ = plain(text);
        }
    }

    #[test]
    fn made_up_names_are_numbered_and_others_kept() {
        let name = |number: u32, what: &str| format!("_ZN43_INTERNAL_00000000_4_k_cu_{number}_{what}E");
        let of = |number: u32| {
            let (unused, used) = (name(number, "unused"), name(number, "used"));
            let (other, last) = (name(number, "other"), name(number, "last"));
            plain(&format!(
                ".global .align 8 .u64 {unused} = 1;\n\
                 .global .align 8 .u64 {last} = 1;\n\
                 .global .align 8 .u64 {other}[1] = {{generic({last})}};\n\
                 .global .align 4 .u32 {used};\n\
                 .visible .entry _Z5scalePf(\n\t.param .u64 _Z5scalePf_param_0\n)\n{{\n\tmov.u64 %rd1, {used};\n}}\n"
            ))
        };
        assert_eq!(
            of(1),
            ".global .align 4 .u32 internal_0;\n.visible .entry _Z5scalePf(\n\t.param .u64 _Z5scalePf_param_0\n)\n{\n\
             \tmov.u64 %rd1, internal_0;\n}\n"
        );
        assert_eq!(of(1), of(77));
    }

    #[test]
    fn a_number_that_is_taken_is_left_out() {
        let made_up = "_ZN1_INTERNAL_1E";
        assert_eq!(plain(&format!("call internal_0, {made_up};")), "call internal_0, internal_1;\n");
    }
}
