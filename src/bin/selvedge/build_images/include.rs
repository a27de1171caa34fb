//! The files that a CUDA C++ source includes, by names that are the same on every machine.
//!
//! The compiler reads the files itself. This list is for the manifest and must miss no file, so it ignores `#if`: every
//! `#include` counts, and every file that its name may mean. A name that a macro makes is reported, since the list may then
//! be incomplete.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// A file that is included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included {
    /// How it is named from the folder that it was found in, `/` between folders; the same on every machine.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The files included directly or indirectly, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Includes {
    pub files: Vec<Included>,
    /// `true` if no other file is included.
    pub certain: bool,
}

/// Finds the files that `text`, a file of `folder`, includes; `paths` are searched too.
pub fn scan(folder: &Path, text: &[u8], paths: &[PathBuf]) -> Includes {
    let mut seen = HashSet::new();
    let mut found = Includes { files: Vec::new(), certain: true };
    // Each with its folder and that folder's name.
    let mut waiting = vec![(folder.to_owned(), String::new(), text.to_vec())];
    while let Some((own, prefix, text)) = waiting.pop() {
        for directive in directives(&text) {
            let Some(wanted) = directive else {
                found.certain = false;
                continue;
            };
            let others = std::iter::once(folder).chain(paths.iter().map(PathBuf::as_path));
            let folders =
                std::iter::once((own.as_path(), prefix.as_str())).chain(others.map(|path| (path, "")));
            for (parent, prefix) in folders {
                let path = parent.join(&wanted);
                // A file included several times is read once. The compiler reports a file that cannot be read.
                let Ok(canonical) = path.canonicalize() else { continue };
                if !path.is_file() || !seen.insert(canonical) {
                    continue;
                }
                let Ok(bytes) = std::fs::read(&path) else { continue };
                let name = plain_name(prefix, &wanted);
                let folder_name =
                    name.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default().to_owned();
                let folder = path.parent().unwrap_or(parent).to_owned();
                waiting.push((folder, folder_name, bytes.clone()));
                found.files.push(Included { name, bytes });
            }
        }
    }
    found.files.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

/// Returns the name in every `#include` and `__has_include` of a text; `None` for a name that a macro makes.
fn directives(text: &[u8]) -> Vec<Option<String>> {
    let text = String::from_utf8_lossy(text);
    let mut names = Vec::new();
    for line in text.lines() {
        let include = line.trim_start().strip_prefix('#').map(str::trim_start);
        if let Some(rest) = include.and_then(|line| line.strip_prefix("include")) {
            names.push(quoted(rest.strip_prefix("_next").unwrap_or(rest)));
        }
        names.extend(line.split("__has_include").skip(1).map(|rest| {
            let rest = rest.strip_prefix("_next").unwrap_or(rest).trim_start();
            rest.strip_prefix('(').and_then(quoted)
        }));
    }
    names
}

/// Returns the text in quotes or angle brackets at the start.
fn quoted(text: &str) -> Option<String> {
    let text = text.trim_start();
    let (rest, end) = match text.strip_prefix('"') {
        Some(rest) => (rest, '"'),
        None => (text.strip_prefix('<')?, '>'),
    };
    rest.split_once(end).map(|(name, _)| name.to_owned())
}

/// The name within a folder of that name, without `.` and, where it can be, without `..`.
fn plain_name(folder: &str, name: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in Path::new(folder).join(name).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.last().is_some_and(|last| last != "..") => drop(parts.pop()),
            part => parts.push(part.as_os_str().to_string_lossy().into_owned()),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> Folder {
            let root = std::env::temp_dir().join(format!("selvedge-include-{}-{name}", std::process::id()));
            for (name, text) in files {
                let path = root.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Folder(root)
        }

        fn scan(&self, text: &str, paths: &[&str]) -> (Vec<String>, bool) {
            let paths: Vec<PathBuf> = paths.iter().map(|path| self.0.join(path)).collect();
            let found = scan(&self.0.join("src"), text.as_bytes(), &paths);
            (found.files.into_iter().map(|file| file.name).collect(), found.certain)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn names(names: &[&str]) -> (Vec<String>, bool) {
        (names.iter().map(|name| (*name).to_owned()).collect(), true)
    }

    #[test]
    fn every_file_is_found_once_whoever_includes_it() {
        let folder = Folder::new(
            "all",
            &[
                ("src/a.cuh", "#include \"deep/b.cuh\"\n#include \"a.cuh\"\n"),
                ("src/deep/b.cuh", "  #  include \"c.cuh\"\n#include \"../d.cuh\"\n#include <a.cuh>"),
                ("src/deep/c.cuh", "#if 0\n#include \"never.cuh\"\n#endif"),
                ("src/d.cuh", ""),
                ("src/never.cuh", ""),
                ("more/e.cuh", "#include \"f.cuh\""),
                ("more/f.cuh", ""),
            ],
        );
        let source = "#include \"a.cuh\"\n#include <e.cuh>\n#include <cstdint>\nint include;\n";
        assert_eq!(
            folder.scan(source, &[]),
            names(&["a.cuh", "d.cuh", "deep/b.cuh", "deep/c.cuh", "never.cuh"])
        );
        let all = ["a.cuh", "d.cuh", "deep/b.cuh", "deep/c.cuh", "e.cuh", "f.cuh", "never.cuh"];
        assert_eq!(folder.scan(source, &["more"]), names(&all));
        assert_eq!(folder.scan("", &["more"]), names(&[]));
        assert_eq!(folder.scan("#if __has_include(\"d.cuh\") && 1\n#endif", &[]), names(&["d.cuh"]));
    }

    #[test]
    fn every_file_that_may_be_meant_counts() {
        let folder = Folder::new("several", &[("src/a.cuh", "1"), ("one/a.cuh", "2"), ("two/a.cuh", "3")]);
        assert_eq!(folder.scan("#include \"a.cuh\"", &["one", "two"]), names(&["a.cuh", "a.cuh", "a.cuh"]));
    }

    #[test]
    fn a_name_that_a_macro_makes_is_not_certain() {
        let folder = Folder::new("macro", &[("src/a.cuh", "#include HEADER\n")]);
        assert_eq!(folder.scan("#include \"a.cuh\"", &[]), (vec!["a.cuh".to_owned()], false));
        for text in ["#include NAME", "#include \"open", "#if __has_include(NAME)", "#include"] {
            assert!(!folder.scan(text, &[]).1, "{text}");
        }
    }

    #[test]
    fn names_are_the_same_on_every_machine() {
        assert_eq!(plain_name("", "./a.cuh"), "a.cuh");
        assert_eq!(plain_name("deep/er", "../a.cuh"), "deep/a.cuh");
        assert_eq!(plain_name("deep", "../../a.cuh"), "../a.cuh");
    }
}
