//! Circles of imports: files of one module that use each other, directly or through others.
//!
//! A file uses the file that declares what a path names. A re-export (`pub use`) leads to the declaration and is no use of it.
//! Items for tests alone, visibilities such as `pub(in crate::fuse)` and declarations of modules do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Token, files, read, tokens};

/// The files of the largest circle of each module; other modules have none. A circle that becomes smaller lowers its number.
const LARGEST_CIRCLES: &[(&str, usize)] = &[
    ("attention", 6),
    ("burst", 5),
    ("capi", 2),
    ("classifier", 2),
    ("driver", 33),
    ("fuse", 14),
    ("gemm", 3),
    ("images", 2),
    ("io", 4),
    ("launcher", 2),
    ("nn", 7),
    ("nvrtc", 7),
    ("sort", 2),
    ("srt", 2),
    ("sys", 9),
    ("tensor", 6),
];

/// A module and the names in it, such as `["fuse", "ptx", "Writer"]`.
type NamedPath = Vec<String>;

/// The paths of a file.
#[derive(Default)]
struct Paths {
    used: Vec<NamedPath>,
    /// By the name of a re-export, the path that it stands for.
    exported: BTreeMap<String, NamedPath>,
}

/// A reader of a file's tokens.
struct Reader<'a> {
    tokens: Vec<Token>,
    /// The module of the file.
    module: &'a [String],
    modules: &'a BTreeMap<Vec<String>, usize>,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is(&self, at: usize, sign: char) -> bool {
        self.tokens.get(at) == Some(&Token::Sign(sign))
    }

    fn is_separator(&self, at: usize) -> bool {
        self.tokens.get(at) == Some(&Token::PathSeparator)
    }

    /// Returns the position after the bracket that closes the one at `at`.
    fn after_group(&self, mut at: usize) -> usize {
        let mut depth = 0;
        while let Some(token) = self.tokens.get(at) {
            match token {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at
    }

    /// Returns the position after the item at `at`, which an attribute gives to tests alone.
    fn after_item(&self, mut at: usize) -> usize {
        while let Some(token) = self.tokens.get(at) {
            match token {
                Token::Sign('{') => return self.after_group(at),
                Token::Sign('(' | '[') => at = self.after_group(at),
                Token::Sign(';' | ',') => return at + 1,
                Token::Sign('}') => return at,
                _ => at += 1,
            }
        }
        at
    }

    /// Adds the paths that begin at `at` behind `prefix`: one, or each of a group, with the name that an import gives it. Returns
    /// the next position to read.
    fn path(&self, mut at: usize, prefix: &[String], found: &mut Vec<(String, NamedPath)>) -> usize {
        if self.is(at, '{') {
            at += 1;
            while at < self.tokens.len() && !self.is(at, '}') {
                at = if self.is(at, ',') { at + 1 } else { self.path(at, prefix, found).max(at + 1) };
            }
            return at + 1;
        }
        let Some(word) = self.word(at) else { return at };
        let mut path = prefix.to_vec();
        match word {
            "self" => {}
            "super" => drop(path.pop()),
            _ => path.push(word.to_owned()),
        }
        if self.is_separator(at + 1) {
            return self.path(at + 2, &path, found);
        }
        let (name, next) = match (self.word(at + 1), self.word(at + 2)) {
            (Some("as"), Some(name)) => (name, at + 3),
            _ => (path.last().map_or("", String::as_str), at + 1),
        };
        found.push((name.to_owned(), path.clone()));
        next
    }

    /// Returns the module that a path at `at` begins in, and its first token behind that.
    fn start(&self, at: usize, here: &[String]) -> Option<(Vec<String>, usize)> {
        let is_visibility = at >= 2 && self.word(at - 1) == Some("in") && self.is(at - 2, '(');
        if !self.is_separator(at + 1) || at > 0 && self.is_separator(at - 1) || is_visibility {
            return None;
        }
        let word = self.word(at)?;
        let child = || here.iter().cloned().chain([word.to_owned()]).collect::<Vec<_>>();
        match word {
            "crate" => Some((Vec::new(), at + 2)),
            "super" | "self" => Some((here.to_vec(), at)),
            _ if self.modules.contains_key(&child()) => Some((here.to_vec(), at)),
            _ => None,
        }
    }

    fn read(&self) -> Paths {
        let mut paths = Paths::default();
        // Inline modules around this place, with the depth of braces at which each began.
        let (mut inline, mut depth): (Vec<(String, usize)>, usize) = (Vec::new(), 0);
        let (mut at, mut is_export) = (0, false);
        while at < self.tokens.len() {
            let here: Vec<String> =
                self.module.iter().chain(inline.iter().map(|(name, _)| name)).cloned().collect();
            match &self.tokens[at] {
                Token::Sign('#') if self.is(at + 1, '[') => {
                    let after = self.after_group(at + 1);
                    let has = |name: &str| (at..after).any(|place| self.word(place) == Some(name));
                    let is_test = has("cfg") && has("test") && !has("not");
                    at = if is_test { self.after_item(after) } else { after };
                    continue;
                }
                Token::Sign('{') => {
                    depth += 1;
                    let is_module = (2..4).any(|back| at >= back && self.word(at - back) == Some("mod"));
                    if let (true, Some(name)) = (is_module, self.word(at - 1)) {
                        inline.push((name.to_owned(), depth));
                    }
                }
                Token::Sign('}') => {
                    if inline.last().is_some_and(|(_, begun)| *begun == depth) {
                        inline.pop();
                    }
                    depth = depth.saturating_sub(1);
                }
                Token::Sign(';') => is_export = false,
                Token::Word(word) if word == "use" => {
                    is_export = at > 0 && (self.word(at - 1) == Some("pub") || self.is(at - 1, ')'));
                }
                Token::Word(_) => {
                    if let Some((start, first)) = self.start(at, &here) {
                        let mut found = Vec::new();
                        at = self.path(first, &start, &mut found).max(at + 1);
                        match is_export {
                            true => paths.exported.extend(found),
                            false => paths.used.extend(found.into_iter().map(|(_, path)| path)),
                        }
                        continue;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        paths
    }
}

/// Returns the file that declares the end of a path, through re-exports.
fn declaration(
    path: &[String],
    modules: &BTreeMap<Vec<String>, usize>,
    paths: &[Paths],
    steps: usize,
) -> Option<usize> {
    let length = (1..=path.len()).rev().find(|&length| modules.contains_key(&path[..length]))?;
    let file = modules[&path[..length]];
    match path.get(length).and_then(|name| paths[file].exported.get(name)) {
        Some(exported) if steps > 0 => declaration(exported, modules, paths, steps - 1).or(Some(file)),
        _ => Some(file),
    }
}

/// Returns the circles of at least two files, the largest before smaller ones. `sources` are paths below `src` with their text.
fn circles(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
    let modules: BTreeMap<Vec<String>, usize> = sources
        .iter()
        .enumerate()
        .map(|(index, (path, _))| {
            let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
            (stem.split('/').map(str::to_owned).collect(), index)
        })
        .collect();
    let mut paths: Vec<Paths> = sources.iter().map(|_| Paths::default()).collect();
    for (module, &index) in &modules {
        let tokens = tokens(sources[index].1).into_iter().map(|(_, token)| token).collect();
        paths[index] = Reader { tokens, module, modules: &modules }.read();
    }
    let root = |index: usize| sources[index].0.split('/').next();
    let uses: Vec<BTreeSet<usize>> = (0..sources.len())
        .map(|from| {
            let all = paths[from].used.iter().filter_map(|path| declaration(path, &modules, &paths, 8));
            all.filter(|&to| to != from && root(to) == root(from)).collect()
        })
        .collect();
    let reached: Vec<BTreeSet<usize>> = (0..sources.len())
        .map(|from| {
            let (mut found, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(file) = next.pop() {
                next.extend(uses[file].iter().filter(|to| found.insert(**to)));
            }
            found
        })
        .collect();
    let mut all = Vec::new();
    for file in 0..sources.len() {
        let circle: Vec<usize> =
            reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
        // Each circle once, with its first file.
        if circle.len() > 1 && circle[0] == file {
            all.push(circle.into_iter().map(|index| sources[index].0.to_owned()).collect::<Vec<_>>());
        }
    }
    all.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    all
}

#[test]
fn circles_of_imports_do_not_grow() {
    let paths =
        files("src").into_iter().filter(|path| path.ends_with(".rs") && !path.starts_with("src/bin/"));
    let sources: Vec<(String, String)> = paths
        .filter(|path| path != "src/lib.rs")
        .map(|path| (path.trim_start_matches("src/").to_owned(), read(&path)))
        .collect();
    let sources: Vec<(&str, &str)> =
        sources.iter().map(|(path, source)| (path.as_str(), source.as_str())).collect();
    let all = circles(&sources);
    assert!(all.iter().any(|circle| circle.contains(&"burst/simulation.rs".to_owned())), "{all:?}");
    let grown: Vec<String> = all
        .iter()
        .filter_map(|circle| {
            let module = circle[0].split('/').next()?;
            let known = LARGEST_CIRCLES.iter().find(|(name, _)| *name == module);
            let most = known.map_or(1, |(_, most)| *most);
            (circle.len() > most).then(|| {
                let files = circle.join("\n  ");
                format!(
                    "{module} has a circle of {} files, at most {most} are allowed:\n  {files}",
                    circle.len()
                )
            })
        })
        .collect();
    assert!(grown.is_empty(), "\n{}\nmove what two files share to a third\n", grown.join("\n"));
}

#[test]
fn a_circle_of_imports_is_found() {
    let found = |sources: &[(&str, &str)]| circles(sources);

    // Through a re-export, by each form of a path.
    let module = ("a/mod.rs", "mod b; mod c; mod d; pub(crate) use b::{B, inner as I};");
    let c = ("a/c.rs", "use super::d::{self, D}; fn f(_: D) {}");
    for b in [
        "use super::c::C; use crate::driver::{Device, Stream};",
        "fn f() { crate::a::c::f() }",
        "use crate::{a::{c::C as Other}, driver::Device};",
        "mod inner { use super::super::c::C; }",
    ] {
        let found = found(&[module, ("a/b.rs", b), c, ("a/d.rs", "use super::{B, I}; fn g(_: B) {}")]);
        assert_eq!(found, [["a/b.rs", "a/c.rs", "a/d.rs"]], "{b}");
    }
    // A file and a child that it names without `self`.
    assert_eq!(found(&[("a/mod.rs", "mod b; use b::B;"), ("a/b.rs", "use super::A;")]).len(), 1);

    // Tests, visibilities, comments, re-exports alone and other modules are no uses.
    for b in [
        "#[cfg(test)]\nmod tests { use super::super::c::C; }",
        "#[cfg(test)] use super::c::C;",
        "pub(in crate::a::c) fn f() {}",
        "// crate::a::c\nfn f() {}",
        "pub use super::c::C;",
        "use crate::c::C;",
    ] {
        let sources = [module, ("a/b.rs", b), c, ("a/d.rs", "use super::B; fn g(_: B) {}"), ("c.rs", "")];
        assert_eq!(found(&sources), Vec::<Vec<String>>::new(), "{b}");
    }
}
