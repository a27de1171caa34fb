//! The files outside a program that it can read: what `#include` finds on disk.
//!
//! NVRTC looks for a quoted name among the headers that it was handed, in the folders of the file that includes it and of the source
//! (by the program's name, so in the current folder for `saxpy.cu`), and in those of `-I`. What it reads there decides what comes of
//! the program, so the cache's key must have it. The texts are searched for directives, whether these take part or not: more files
//! than needed cost a compilation too much at most, and one that is missed would give an old image.
//!
//! What must stay true: every file that NVRTC reads for a program is found here, or the program is not cached. The one gap is
//! `__has_include` of a macro, which is taken for false.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::program::Program;

/// Why a program cannot be cached.
pub(super) type Reason = String;

/// Options by which NVRTC reads or writes other files: precompiled headers and reports of time.
const WITH_FILES: &[&str] = &["pch", "create-pch", "use-pch", "pch-dir", "time", "fdevice-time-trace"];

/// The files that the program may read, by path, with what is in them.
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
    // The crate's own name none but each other.
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
    /// Where every name is looked for.
    folders: Vec<PathBuf>,
    found: BTreeMap<PathBuf, Vec<u8>>,
    /// Those that were not searched for directives so far.
    open: Vec<PathBuf>,
}

impl Search<'_> {
    /// Looks for all that a text includes. `folder` is that of its file.
    fn read(&mut self, text: &str, folder: &Path) -> Result<(), Reason> {
        for name in names_in(text) {
            let name =
                name.map_err(|directive| format!("what it includes is made by a macro: {directive}"))?;
            self.look_for(name, folder)?;
        }
        Ok(())
    }

    /// Takes every file of this name, since which of them counts is NVRTC's choice.
    fn look_for(&mut self, name: &str, folder: &Path) -> Result<(), Reason> {
        if self.program.all_headers().any(|(known, _)| known == name) {
            return Ok(());
        }
        let folders = std::iter::once(folder).chain(self.folders.iter().map(PathBuf::as_path));
        // An absolute name takes the place of the folder.
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

/// What a text includes, or asks for by `__has_include`: names, or the directive where there is no name.
fn names_in(text: &str) -> impl Iterator<Item = Result<&str, &str>> {
    let lines = text.lines().filter(|line| line.contains("include"));
    lines.flat_map(|line| {
        let begins = line.trim_start().starts_with('#');
        let directives = line.split('#').skip(1).enumerate().filter_map(move |(number, rest)| {
            let rest = rest.trim_start().strip_prefix("include")?;
            let rest = rest.strip_prefix("_next").unwrap_or(rest).trim_start();
            // Without a name it is a directive only at the start of a line, else words of a comment.
            quoted(rest).map(Ok).or_else(|| (begins && number == 0).then_some(Err(line)))
        });
        let questions = line.split("__has_include").skip(1).filter_map(|rest| {
            let rest = rest.strip_prefix("_next").unwrap_or(rest).trim_start();
            quoted(rest.strip_prefix('(')?.trim_start()).map(Ok)
        });
        directives.chain(questions)
    })
}

/// The name in quotes or angles at the start of a text.
fn quoted(text: &str) -> Option<&str> {
    let end = match text.bytes().next()? {
        b'"' => '"',
        b'<' => '>',
        _ => return None,
    };
    text.get(1..)?.split_once(end).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found_wherever_they_stand() {
        let text = "#include \"a.h\"\n  #  include <b/c.h> // why\n/* x */ #include\"d.h\"\n// include \"no.h\"\n\
                    #if __has_include(<e.h>) && __has_include ( \"f.h\" )\n#ifdef __has_include\n#include_next <g.h>\nint included;\n";
        let names: Result<Vec<&str>, &str> = names_in(text).collect();
        assert_eq!(names.unwrap(), ["a.h", "b/c.h", "d.h", "e.h", "f.h", "g.h"]);
        let made: Vec<_> = names_in("#include NAME\n#include \"open\n// an #include of it\n").collect();
        assert_eq!(made, [Err("#include NAME"), Err("#include \"open")]);
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
