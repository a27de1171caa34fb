//! The manifest of a folder of images: a line an image, by which a build script finds it and anyone can tell whether it is
//! what its sources give.
//!
//! The columns, with a space between them: family, target, the lowest PTX ISA that the driver must take, kind (`ptx` or
//! `cubin`), hash of options and sources, hash of the image, compiler, options, sources; the last two with commas. Hashes
//! are FNV-1a of 64 bits. That of the sources is of the options, with a space between them, then of each source's name and
//! bytes, with a zero byte before each.

use std::collections::BTreeMap;
use std::path::Path;

use selvedge::nvrtc::Target;

use super::family::Family;
use crate::failure::Failure;
use crate::files;
use crate::source::fnv1a;

/// The manifest's file name.
pub const MANIFEST: &str = "manifest";

/// An image's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub family: String,
    /// The architecture, `sm_80` of PTX and of machine code alike.
    pub target: String,
    pub isa: (i32, i32),
    pub kind: &'static str,
    source_hash: String,
    image_hash: String,
    compiler: String,
    options: String,
    sources: String,
}

impl Line {
    pub fn of(family: &Family, target: Target, compiler: &str, isa: (i32, i32), image_hash: String) -> Line {
        let sources = family.sources();
        let mut content = family.options.join(" ").into_bytes();
        for (name, bytes) in &sources {
            content.push(0);
            content.extend(name.bytes());
            content.push(0);
            content.extend(*bytes);
        }
        let names: Vec<&str> = sources.iter().map(|(name, _)| name.as_str()).collect();
        Line {
            family: family.name.clone(),
            target: machine_target(target).to_string(),
            isa,
            kind: kind(target),
            source_hash: fnv1a(&content),
            image_hash,
            compiler: compiler.to_owned(),
            options: family.options.join(","),
            sources: names.join(","),
        }
    }

    /// The image's file name.
    pub fn file(&self) -> String {
        format!("{}.{}.{}", self.family, self.target, self.kind)
    }

    pub fn text(&self) -> String {
        // A column that is empty would not be one.
        let options = if self.options.is_empty() { "-" } else { &self.options };
        format!(
            "{} {} {}.{} {} {} {} {} {options} {}",
            self.family,
            self.target,
            self.isa.0,
            self.isa.1,
            self.kind,
            self.source_hash,
            self.image_hash,
            self.compiler,
            self.sources
        )
    }
}

/// The file of a family's image.
pub fn file(family: &str, target: Target) -> String {
    format!("{family}.{}.{}", machine_target(target), kind(target))
}

fn kind(target: Target) -> &'static str {
    if target.is_ptx() { "ptx" } else { "cubin" }
}

/// The architecture itself, for machine code.
pub fn machine_target(target: Target) -> Target {
    let name = target.to_string().replace("compute_", "sm_");
    name.parse().unwrap_or(target)
}

/// The whole manifest of lines that are sorted by their files.
pub fn text(comment: &str, lines: &[String]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("# {}\n{lines}", comment.replace('\n', " "))
}

/// The manifest of a folder and the files that it lists, as far as they are there.
pub fn present(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let mut present = BTreeMap::new();
    let manifest = folder.join(MANIFEST);
    if !manifest.exists() {
        return Ok(present);
    }
    let text = files::read_text(&manifest, "a manifest of images")?;
    for file in text.lines().filter_map(listed) {
        let path = folder.join(&file);
        if path.exists() {
            present.insert(file, files::read(&path, "an image of the manifest")?);
        }
    }
    present.insert(MANIFEST.to_owned(), text.into_bytes());
    Ok(present)
}

/// The file that a line lists. One in another folder is none of a manifest's.
fn listed(line: &str) -> Option<String> {
    let columns: Vec<&str> = line.split(' ').collect();
    let &[family, target, _, kind, ..] = columns.as_slice() else { return None };
    let file = format!("{family}.{target}.{kind}");
    let plain = !line.starts_with('#') && matches!(kind, "ptx" | "cubin") && !file.contains(['/', '\\']);
    plain.then_some(file)
}

/// Compares a folder's manifest with these families and compiles nothing.
pub fn is_current(
    comment: &str,
    families: &[Family],
    compiler: impl Fn(Target, &Family) -> String,
    present: &BTreeMap<String, Vec<u8>>,
) -> bool {
    let mut lines = BTreeMap::new();
    for family in families {
        let Some(found) = lines_of(family, &compiler, present) else { return false };
        lines.extend(found.into_iter().map(|line| (line.file(), line.text())));
    }
    let lines: Vec<String> = lines.into_values().collect();
    present.get(MANIFEST).is_some_and(|manifest| *manifest == text(comment, &lines).into_bytes())
}

/// The lines of a family's images by the sources as they are and the images that are present; `None` where an image is
/// missing.
pub fn lines_of(
    family: &Family,
    compiler: impl Fn(Target, &Family) -> String,
    present: &BTreeMap<String, Vec<u8>>,
) -> Option<Vec<Line>> {
    let manifest = std::str::from_utf8(present.get(MANIFEST)?).ok()?;
    let line = |target| {
        let file = file(&family.name, target);
        // The ISA is known only from the image, so it is the one that was written.
        let (bytes, isa) = (present.get(&file)?, isa_of(manifest, &file)?);
        Some(Line::of(family, target, &compiler(target, family), isa, fnv1a(bytes)))
    };
    family.images().map(line).collect()
}

fn isa_of(manifest: &str, file: &str) -> Option<(i32, i32)> {
    let line = manifest.lines().find(|line| listed(line).as_deref() == Some(file))?;
    let (major, minor) = line.split(' ').nth(2)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_architecture_and_kind() {
        for (target, wanted) in [("compute_60", "k.sm_60.ptx"), ("sm_90a", "k.sm_90a.cubin")] {
            assert_eq!(file("k", target.parse().unwrap()), wanted);
        }
    }

    #[test]
    fn only_files_of_the_folder_are_listed() {
        let line = |family: &str, kind: &str| format!("{family} sm_60 8.0 {kind} 0 0 nvrtc-12.0 - a.cu");
        assert_eq!(listed(&line("k", "ptx")).as_deref(), Some("k.sm_60.ptx"));
        assert_eq!(listed(&line("k", "cubin")).as_deref(), Some("k.sm_60.cubin"));
        for line in
            [line("../k", "ptx"), line("k", "rs"), line("# k", "ptx"), line("a\\k", "ptx"), String::new()]
        {
            assert_eq!(listed(&line), None, "{line}");
        }
        let manifest = text("two\nlines", &[line("j", "ptx"), line("k", "ptx").replace("8.0", "7.8")]);
        assert!(manifest.starts_with("# two lines\nj "));
        assert_eq!(isa_of(&manifest, "k.sm_60.ptx"), Some((7, 8)));
        assert_eq!(isa_of(&manifest, "l.sm_60.ptx"), None);
    }
}
