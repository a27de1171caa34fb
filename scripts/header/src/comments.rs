//! Rustdoc's headings and links in the words of a C header.

/// The headings of rustdoc, and the words that begin the paragraph after each.
const HEADINGS: [(&str, &str); 2] = [("# Safety", "Requires: "), ("# Errors", "Errors: ")];

/// Rewrites the comments and constants of a header that cbindgen wrote.
pub fn in_c_words(header: &str) -> String {
    let mut text = String::new();
    // The words of a heading whose paragraph has not begun.
    let mut opening = None;
    for line in header.lines() {
        if let Some(comment) = line.trim_start().strip_prefix("* ").or((line.trim() == "*").then_some("")) {
            let comment = comment.trim();
            if let Some((_, words)) = HEADINGS.iter().find(|(heading, _)| *heading == comment) {
                opening = Some(*words);
                continue;
            }
            if comment.is_empty() && opening.is_some() {
                continue;
            }
            let indent = &line[..line.len() - line.trim_start().len()];
            let words = opening.take().unwrap_or_default();
            let comment = unlink(comment);
            text.push_str(format!("{indent}* {words}{comment}").trim_end());
        } else {
            text.push_str(&constant(line));
        }
        text.push('\n');
    }
    text
}

/// Returns the text without the brackets and targets of rustdoc's links.
fn unlink(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((name, after)) = after.split_once("`]") else {
            plain.push_str("[`");
            rest = after;
            continue;
        };
        plain.push_str(&format!("`{name}`"));
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

/// Puts a negative constant in brackets, so that `x -SV_CPU` keeps its meaning.
fn constant(line: &str) -> String {
    let mut parts = line.splitn(3, ' ');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("#define"), Some(name), Some(value)) if value.starts_with('-') => {
            format!("#define {name} ({value})")
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_words_of_their_paragraph() {
        let before =
            "/**\n * Does it.\n *\n * # Safety\n *\n * `x` points to\n * an `int`.\n */\nint f(int *x);\n";
        let after = "/**\n * Does it.\n *\n * Requires: `x` points to\n * an `int`.\n */\nint f(int *x);\n";
        assert_eq!(in_c_words(before), after);
    }

    #[test]
    fn links_lose_their_brackets() {
        assert_eq!(unlink("see [`sv_a`](super::a) and [`sv_b`], a[0]"), "see `sv_a` and `sv_b`, a[0]");
    }

    #[test]
    fn negative_constants_are_in_brackets() {
        assert_eq!(
            in_c_words("#define SV_CPU -1\n#define SV_OK 0\n"),
            "#define SV_CPU (-1)\n#define SV_OK 0\n"
        );
    }
}
