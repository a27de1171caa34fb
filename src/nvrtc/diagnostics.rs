//! NVRTC's log, with the source line and a caret for every position in it.
//!
//! NVRTC prints these itself from 12.1 on. Older versions print only the line number, which does not help if a program
//! generated the text and no file has it. For those the caret points at the text that the message quotes, or at the
//! line's first letter.
//!
//! Invariants: nothing that NVRTC printed is lost; only the first error is moved to the start.

/// An annotated log, and the position of the first error.
pub(super) struct AnnotatedLog {
    /// The log, with source lines and carets, the first error first.
    pub(super) log: String,
    /// The first error's file; empty if it has no position.
    pub(super) file: String,
    /// Its line, from 1; 0 if it has no position.
    pub(super) line: u32,
    /// Its column, from 1; 0 if it is not known.
    pub(super) column: u32,
}

/// The parts of a line `file(12): error: message`.
struct Head<'a> {
    file: &'a str,
    line: u32,
    is_error: bool,
    message: &'a str,
}

impl<'a> Head<'a> {
    fn parse(text: &'a str) -> Option<Head<'a>> {
        // The message may contain `): ` too, so the first one counts.
        let (location, rest) = text.split_once("): ")?;
        let (file, line) = location.rsplit_once('(')?;
        let line = line.parse().ok().filter(|line| *line > 0)?;
        let (kind, message) = rest.split_once(": ")?;
        let is_error = kind.contains("error");
        let known = is_error || kind.starts_with("warning") || kind.starts_with("remark") || kind == "note";
        (known && !file.is_empty()).then_some(Head { file, line, is_error, message })
    }
}

/// Annotates a log. `source` returns the text of a file that was passed to NVRTC.
pub(super) fn annotate<'s>(log: &str, source: impl Fn(&str) -> Option<&'s str>) -> AnnotatedLog {
    let mut report = AnnotatedLog { log: String::new(), file: String::new(), line: 0, column: 0 };
    let mut blocks: Vec<String> = Vec::new();
    let mut first_error = None;
    for lines in blocks_of(log.trim_end_matches(['\0', '\n', ' '])) {
        let mut block = String::new();
        for (index, text) in lines.iter().enumerate() {
            block.push_str(text.trim_end());
            block.push('\n');
            let Some(head) = Head::parse(text).filter(|_| index == 0) else { continue };
            let own = lines.iter().skip(2).find_map(|line| caret_column(line));
            let column = own.or_else(|| {
                let line = source(head.file)?.lines().nth(head.line as usize - 1)?;
                let at = likely_column(line, head.message);
                block.push_str(&excerpt(line, at));
                Some(at as u32 + 1)
            });
            if head.is_error && first_error.is_none() {
                first_error = Some(blocks.len());
                report.file = head.file.to_owned();
                report.line = head.line;
                report.column = column.unwrap_or(0);
            }
        }
        blocks.push(block);
    }
    if let Some(number) = first_error {
        let block = blocks.remove(number);
        blocks.insert(0, block);
    }
    report.log = blocks.concat().trim_end().to_owned();
    report
}

/// The lines of each message, from one head to the next. Lines before the first and the final count are separate.
fn blocks_of(log: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    for line in log.lines() {
        if Head::parse(line).is_some() || line.contains(" detected in the compilation of ") {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
    }
    blocks
}

/// Returns the column of a line with only a caret and blanks. NVRTC indents source by two.
fn caret_column(line: &str) -> Option<u32> {
    let before = line.trim_end().strip_suffix('^')?;
    let blank = before.len() >= 2 && before.chars().all(char::is_whitespace);
    blank.then(|| (before.chars().count() - 1) as u32)
}

/// Returns the column that the message points at, in characters: the first text that it quotes and that the line
/// contains as a whole word, else the start.
fn likely_column(line: &str, message: &str) -> usize {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    for quoted in message.split('"').skip(1).step_by(2).filter(|quoted| !quoted.is_empty()) {
        for (at, _) in line.match_indices(quoted) {
            let before = line[..at].chars().next_back().is_some_and(is_word);
            let after = line[at + quoted.len()..].chars().next().is_some_and(is_word);
            let is_name = quoted.chars().all(is_word);
            if !(is_name && (before || after)) {
                return line[..at].chars().count();
            }
        }
    }
    line.chars().take_while(|letter| letter.is_whitespace()).count()
}

/// Returns the line, and a caret under one of its characters, in NVRTC's own form. Tabs stay tabs, to align the caret.
fn excerpt(line: &str, at: usize) -> String {
    let indent: String =
        line.chars().take(at).map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
    format!("  {}\n  {indent}^\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#include \"h.cuh\"\nvoid f(float *x) {\n\tint unused;\n    x[0] = y + xy;\n}\n";

    fn annotated(log: &str) -> AnnotatedLog {
        annotate(log, |name| (name == "a.cu").then_some(SOURCE))
    }

    #[test]
    fn lines_and_carets_are_added_and_the_first_error_leads() {
        let report = annotated(
            "a.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n\n\
             a.cu(4): error: identifier \"y\" is undefined\n\n1 error detected in the compilation of \"a.cu\".\n \0",
        );
        assert_eq!(
            report.log,
            "a.cu(4): error: identifier \"y\" is undefined\n      x[0] = y + xy;\n             ^\n\n\
             a.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n  \tint unused;\n  \t    ^\n\n\
             1 error detected in the compilation of \"a.cu\"."
        );
        assert_eq!((report.file.as_str(), report.line, report.column), ("a.cu", 4, 12));
    }

    #[test]
    fn what_nvrtc_shows_itself_is_kept() {
        for more in ["", "            argument types are: (int)\n"] {
            let log =
                format!("a.cu(4): error: in \"y\" an error\n{more}      x[0] = y + xy;\n                 ^");
            let report = annotated(&log);
            assert_eq!(report.log, log);
            assert_eq!(report.column, 16);
        }
    }

    #[test]
    fn whole_words_count_and_the_line_begins_otherwise() {
        assert_eq!(likely_column("  xy = y;", "identifier \"y\" is undefined"), 7);
        assert_eq!(likely_column("  xy = 1;", "identifier \"y\" is undefined"), 2);
        assert_eq!(likely_column("\u{e4} = \"s\" y", "\"\" and \"y\""), 8);
        assert_eq!(likely_column("#include \"nope.h\"", "cannot open source file \"nope.h\""), 10);
        assert_eq!(likely_column("", "expected a \";\""), 0);
    }

    #[test]
    fn places_that_are_not_there_are_left_alone() {
        for log in [
            "nvrtc: error: invalid value for --gpu-architecture (-arch)",
            "a.cu(400): error: past the end",
            "b.cu(1): error: of a file that nobody gave",
            "a.cu(0): error: no such line",
            "ptxas application ptx input, line 26; error   : Not a name of any known instruction: 'bogus'",
            "): error: x",
            "",
        ] {
            assert_eq!(annotated(log).log, log);
        }
        assert_eq!(annotated("b.cu(1): error: x").line, 1);
        assert_eq!(annotated("nvrtc: error: x").file, "");
    }
}
