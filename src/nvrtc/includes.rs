//! The files on disk that a program can include.
//!
//! NVRTC searches for a quoted name among the passed headers, in the folders of the including file and of the source
//! (by the program's name, so in the current folder for `saxpy.cu`), and in the `-I` folders. The contents of these
//! files decide the result, so the cache key includes them. This module searches the texts for directives, even
//! inactive ones: an unnecessary file costs at most an extra compilation, but a missed one would return an outdated
//! image.
//!
//! Invariants: every file that NVRTC reads for a program is found here, or the program is not cached. The one gap is
//! `__has_include` of a macro, which is treated as false.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::program::Program;

/// The reason why a program cannot be cached.
pub(super) type Reason = String;

/// Options by which NVRTC reads or writes other files: precompiled headers and time reports.
const WITH_FILES: &[&str] = &["pch", "create-pch", "use-pch", "pch-dir", "time", "fdevice-time-trace"];

/// Returns the files that the program may read, by path, with their contents.
pub(super) fn outside(program: &Program) -> Result<BTreeMap<PathBuf, Vec<u8>>, Reason> {
    if let Some(option) = program.options_named(WITH_FILES).next() {
        return Err(format!("the option {option} has to do with a file"));
    }
    let mut search = Search { program, folders: Vec::new(), found: BTreeMap::new(), open: Vec::new() };
    search.folders.push(folder_of(&program.name));
    for folder in program.values_of(&["I", "include-path"]) {
        search.folders.push(PathBuf::from(folder));
    }
    for name in program.values_of(&["include", "pre-include"]) {
        search.look_for(name, Path::new(""))?;
    }
    search.read(&program.source, &folder_of(&program.name))?;
    // The crate's own headers include only each other.
    for (name, text) in &program.headers {
        search.read(text, &folder_of(name))?;
    }
    while let Some(path) = search.open.pop() {
        let text = search.found.get(&path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        search.read(&text.unwrap_or_default(), path.parent().unwrap_or(Path::new("")))?;
    }
    Ok(search.found)
}

fn folder_of(name: &str) -> PathBuf {
    Path::new(name).parent().map(Path::to_path_buf).unwrap_or_default()
}

struct Search<'a> {
    program: &'a Program,
    /// The folders that every name is searched in.
    folders: Vec<PathBuf>,
    found: BTreeMap<PathBuf, Vec<u8>>,
    /// Files that were not yet searched for directives.
    open: Vec<PathBuf>,
}

impl Search<'_> {
    /// Finds everything that a text includes. `folder` is that of its file.
    fn read(&mut self, text: &str, folder: &Path) -> Result<(), Reason> {
        for name in names_in(&joined(text)) {
            let name =
                name.map_err(|directive| format!("what it includes is made by a macro: {directive}"))?;
            self.look_for(name, folder)?;
        }
        Ok(())
    }

    /// Adds every file of this name, since NVRTC chooses among them.
    fn look_for(&mut self, name: &str, folder: &Path) -> Result<(), Reason> {
        if self.program.all_headers().any(|(known, _)| known == name) {
            return Ok(());
        }
        let folders = std::iter::once(folder).chain(self.folders.iter().map(PathBuf::as_path));
        // An absolute name replaces the folder.
        let paths: Vec<PathBuf> =
            folders.map(|folder| folder.join(name)).filter(|path| path.is_file()).collect();
        for path in paths {
            if !self.found.contains_key(&path) {
                let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                self.found.insert(path.clone(), bytes);
                self.open.push(path);
            }
        }
        Ok(())
    }
}

/// Returns a text in preprocessed form: with continued lines joined, and `#` for its digraph.
fn joined(text: &str) -> String {
    text.replace("\\\r\n", "").replace("\\\n", "").replace("%:", "#")
}

/// Returns the names that a joined text includes, or queries by `__has_include`, or the directive if it has no name.
///
/// Comments are not removed, since a string may contain similar text; but the search skips leading ones.
fn names_in(text: &str) -> impl Iterator<Item = Result<&str, &str>> {
    let directives = text.match_indices('#').filter_map(|(at, sign)| {
        let rest = behind_comments(text.get(at + sign.len()..)?).strip_prefix("include")?;
        let rest = behind_comments(rest.strip_prefix("_next").unwrap_or(rest));
        // Without a name it is a directive only at the start of a line, else words of a comment.
        quoted(rest).map(Ok).or_else(|| {
            let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
            let before = text.get(start..at)?.trim();
            let begins = before.is_empty() || before.ends_with("*/");
            begins.then(|| Err(text.get(start..).and_then(|line| line.lines().next()).unwrap_or_default()))
        })
    });
    let questions = text.split("__has_include").skip(1).filter_map(|rest| {
        let rest = behind_comments(rest.strip_prefix("_next").unwrap_or(rest));
        quoted(behind_comments(rest.strip_prefix('(')?)).map(Ok)
    });
    directives.chain(questions)
}

/// Returns the rest of a text after blanks and comments at its start. The end of a line is not a blank.
fn behind_comments(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() && letter != '\n');
        match rest.strip_prefix("/*").and_then(|comment| comment.split_once("*/")) {
            Some((_, behind)) => rest = behind,
            None => return rest,
        }
    }
}

/// Returns the name in quotes or angle brackets at the start of a text's first line.
fn quoted(text: &str) -> Option<&str> {
    let end = match text.bytes().next()? {
        b'"' => '"',
        b'<' => '>',
        _ => return None,
    };
    text.lines().next()?.get(1..)?.split_once(end).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found_wherever_they_stand() {
        let text = "#include \"a.h\"\n  #  include <b/c.h> // why\n/* x */ #include\"d.h\"\n// include \"no.h\"\n\
                    #if __has_include(<e.h>) && __has_include ( \"f.h\" )\n#ifdef __has_include\n#include_next <g.h>\nint included;\n";
        let names: Result<Vec<&str>, &str> = names_in(text).collect();
        assert_eq!(names.unwrap(), ["a.h", "b/c.h", "d.h", "g.h", "e.h", "f.h"]);
        let made: Vec<_> = names_in("#include NAME\n#include \"open\n// an #include of it\n").collect();
        assert_eq!(made, [Err("#include NAME"), Err("#include \"open")]);
    }

    #[test]
    fn directives_are_found_in_every_spelling() {
        for directive in [
            "%:include \"a.h\"",
            "#/* why */include \"a.h\"",
            "# /* over\nlines */ include /**/ <a.h>",
            "#\\\ninclude \"a.h\"",
            "#inc\\\r\nlude \"a\\\n.h\"",
            "const char *open = \"/*\";\n#include \"a.h\"\nconst char *end = \"*/\";",
            "#if __has_include /* why */ ( /* and */ <a.h>)",
        ] {
            let text = joined(directive);
            assert_eq!(names_in(&text).collect::<Vec<_>>(), [Ok("a.h")], "{directive}");
        }
        for made in ["/* why */ #include NAME", "over lines */ %:include NAME", "#include /* why */ NAME"] {
            let text = joined(made);
            assert!(matches!(names_in(&text).collect::<Vec<_>>()[..], [Err(_)]), "{made}");
        }
        assert_eq!(names_in("#define A\ninclude \"no.h\"\n#\ninclude \"no.h\"").next(), None);
    }

    #[test]
    fn files_are_found_through_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("inc/deep")).unwrap();
        std::fs::write(path("inc/one.h"), "#include \"deep/two.h\"\n#include <selvedge/half.cuh>\n").unwrap();
        std::fs::write(path("inc/deep/two.h"), "#include \"three.h\"\n#include \"nowhere.h\"\n").unwrap();
        std::fs::write(path("inc/deep/three.h"), "#include \"two.h\"\n").unwrap();
        std::fs::write(path("beside.h"), "").unwrap();
        std::fs::write(path("pre.h"), "").unwrap();
        std::fs::write(path("held.h"), "").unwrap();
        let source = "#include <one.h>\n#include \"beside.h\"\n#include \"held.h\"\n";
        let program = Program::new(path("a.cu").display().to_string(), source).header("held.h", "");
        let found = |program: &Program| {
            let found = outside(program).unwrap();
            found
                .keys()
                .map(|found| found.strip_prefix(folder.path()).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&program), ["beside.h"]);
        let all = ["beside.h", "inc/deep/three.h", "inc/deep/two.h", "inc/one.h"];
        let inc = path("inc").display().to_string();
        for options in [
            vec![format!("-I{inc}")],
            vec!["-I".to_owned(), inc.clone()],
            vec![format!("-I={inc}")],
            vec![format!("-I {inc}")],
            vec![format!("--include-path={inc}")],
            vec!["--include-path".to_owned(), inc.clone()],
        ] {
            let program = options.iter().fold(program.clone(), |program, option| program.option(option));
            assert_eq!(found(&program), all, "{options:?}");
        }
        let pre = program.clone().option(format!("--pre-include={}", path("pre.h").display()));
        assert_eq!(found(&pre), ["beside.h", "pre.h"]);
        let pre = program.clone().option("-include").option("pre.h");
        assert_eq!(found(&pre), ["beside.h", "pre.h"]);
        assert!(outside(&program.clone().option("--use-pch=x")).unwrap_err().contains("--use-pch=x"));
        assert!(
            outside(&Program::new("a.cu", "#define A <b.h>\n#include A\n"))
                .unwrap_err()
                .contains("#include A")
        );
    }
}
