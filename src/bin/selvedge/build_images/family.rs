//! Families of kernels to compile. The kernels of a family are loaded together and share source, targets and options.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use selvedge::Error;
use selvedge::nvrtc::Target;

use super::include::{self, Included};
use super::manifest;
use crate::failure::Failure;
use crate::files;
use crate::options::{BuildImagesOptions, CompileOptions};
use crate::source::{self, Source};

/// Kernels of one source with one set of options.
#[derive(Debug)]
pub struct Family {
    pub name: String,
    path: PathBuf,
    pub source: Source,
    included: Vec<Included>,
    pub targets: Vec<Target>,
    /// The subset of `targets` whose PTX the assembler turns into machine code for its own architecture.
    pub assembled: Vec<Target>,
    /// The subset of `assembled` of which only the machine code is written.
    pub code_only: Vec<Target>,
    /// Options and macros, as the manifest has them.
    pub options: Vec<String>,
}

impl Family {
    fn read(
        name: &str,
        path: &Path,
        targets: &[Target],
        compile: &CompileOptions,
    ) -> Result<Family, Failure> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(super::refused(
                format!("the name '{name}'"),
                "letters, digits, _ and - in an image's name",
            ));
        }
        let macros = compile.definitions.iter().map(|macro_| format!("-D{}={}", macro_.name, macro_.value));
        let options: Vec<String> = compile.options.iter().cloned().chain(macros).collect();
        let spoils = |letter: char| letter.is_whitespace() || letter == ',';
        if let Some(option) = options.iter().find(|option| option.contains(spoils)) {
            let wanted = "options without spaces and commas, which a manifest cannot hold";
            return Err(super::refused(format!("the option '{option}'"), wanted));
        }
        let source = Source::read(path, compile)?;
        let includes =
            include::scan(source::folder_of(path), source.text().as_bytes(), &compile.include_paths);
        if !includes.certain {
            let found = format!("an #include of {} that a macro makes", path.display());
            return Err(super::refused(found, "names of files, so that a change of them is seen"));
        }
        let mut names = includes.files.iter().map(|file| file.name.as_str());
        let own = file_name(path);
        if let Some(name) = names.find(|name| name.contains(spoils)).or(own.contains(spoils).then_some(&own))
        {
            let wanted = "names of files without spaces and commas, which a manifest cannot hold";
            return Err(super::refused(format!("the file '{name}'"), wanted));
        }
        let targets = targets.to_vec();
        let (name, path, included) = (name.to_owned(), path.to_owned(), includes.files);
        let (assembled, code_only) = (Vec::new(), Vec::new());
        Ok(Family { name, path, source, included, targets, assembled, code_only, options })
    }

    /// Returns the target of each image that is written: PTX or machine code, compiled or assembled.
    pub fn images(&self) -> impl Iterator<Item = Target> + '_ {
        let assembled = self.assembled.iter().map(|target| manifest::machine_target(*target));
        self.targets.iter().copied().filter(|target| self.is_written(*target)).chain(assembled)
    }

    /// Returns `false` for PTX that is compiled only to be assembled.
    pub fn is_written(&self, target: Target) -> bool {
        !self.code_only.contains(&target)
    }

    /// Returns the PTX ISA of text that is assembled, such as `8.1`, if the options name one (`-DPTX_ISA=8.1`).
    ///
    /// A compiler writes its own ISA into the text. A newer assembler takes instructions of later ones in inline assembly if the
    /// text says so, and machine code loads from the same drivers on.
    pub fn assembler_isa(&self) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(ASSEMBLER_ISA))
    }

    /// The source's own name, without its folder.
    pub fn file_name(&self) -> String {
        file_name(&self.path)
    }

    /// Names and contents of the source and of all that it includes, sorted by name.
    pub fn sources(&self) -> Vec<(String, &[u8])> {
        let included = self.included.iter().map(|file| (file.name.clone(), &file.bytes[..]));
        let mut sources: Vec<_> =
            std::iter::once((self.file_name(), self.source.text().as_bytes())).chain(included).collect();
        sources.sort();
        sources
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The families of the command line or of its list; no two images have the same name.
pub fn families(options: &BuildImagesOptions) -> Result<Vec<Family>, Failure> {
    let families = match &options.list {
        Some(list) => listed(list, &options.compile)?,
        None => {
            let family = |path: &PathBuf| {
                let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
                Family::read(&name.unwrap_or_default(), path, &options.targets, &options.compile)
            };
            options.sources.iter().map(family).collect::<Result<_, _>>()?
        }
    };
    let mut seen = HashSet::new();
    for family in &families {
        for target in family.images() {
            let file = manifest::file(&family.name, target);
            if !seen.insert(file.clone()) {
                return Err(super::refused(format!("{file} twice"), "a name and target for each image"));
            }
        }
    }
    Ok(families)
}

/// The option that names the PTX ISA of text that is assembled.
const ASSEMBLER_ISA: &str = "-DPTX_ISA=";

/// The suffix of a listed target whose PTX and assembled machine code are both written.
const WITH_CODE: &str = "+cubin";
/// The suffix of a listed target of which only the assembled machine code is written.
const CODE_ONLY: &str = ":cubin";

/// The first word of a listed line that declares the names of a family's kernels: for readers of the list, not compiled.
const ENTRIES: &str = "entries";

/// Reads a list: `NAME SOURCE TARGET[,TARGET...] [OPTION...]` a line, beside lines `entries FAMILY ENTRY...`.
fn listed(path: &Path, compile: &CompileOptions) -> Result<Vec<Family>, Failure> {
    let text = files::read_text(path, "a list of images")?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut families = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|first| first.starts_with('#')) {
            continue;
        }
        let wrong = |found: String, wanted: &str| Error::File {
            path: path.display().to_string(),
            found: format!("{found} in line {}", number + 1),
            wanted: wanted.to_owned(),
        };
        if words[0] == ENTRIES {
            if words.len() < 3 {
                return Err(wrong(format!("'{line}'"), "entries FAMILY ENTRY...").into());
            }
            continue;
        }
        let &[name, source, targets, ref options @ ..] = words.as_slice() else {
            return Err(wrong(format!("'{line}'"), "NAME SOURCE TARGET[,TARGET...] [OPTION...]").into());
        };
        let target = |text: &str| text.parse::<Target>().map_err(|error| wrong(error.to_string(), "targets"));
        let (mut all, mut assembled, mut code_only) = (Vec::new(), Vec::new(), Vec::new());
        for text in targets.split(',') {
            let without_text = text.strip_suffix(CODE_ONLY);
            let name = without_text.or_else(|| text.strip_suffix(WITH_CODE));
            let target = target(name.unwrap_or(text))?;
            if name.is_some() && !target.is_ptx() {
                let wanted = "PTX to assemble, such as compute_90a+cubin or compute_90a:cubin";
                return Err(wrong(format!("'{text}'"), wanted).into());
            }
            all.push(target);
            assembled.extend(name.map(|_| target));
            code_only.extend(without_text.map(|_| target));
        }
        let mut compile = compile.clone();
        compile.options.extend(options.iter().map(|option| (*option).to_owned()));
        let family = Family::read(name, &folder.join(source), &all, &compile)?;
        families.push(Family { assembled, code_only, ..family });
    }
    if families.is_empty() {
        let found = "no image".to_owned();
        let wanted = "a line NAME SOURCE TARGET[,TARGET...] [OPTION...] for each".to_owned();
        return Err(Error::File { path: path.display().to_string(), found, wanted }.into());
    }
    Ok(families)
}
