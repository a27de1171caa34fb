//! `selvedge build-images`: CUDA C++ compiled to a folder of PTX and cubin files with a manifest.
//!
//! The output depends only on the sources, their options and the compiler, so that a repository can hold the images
//! and a machine without a GPU can tell whether they are what their sources give. An image is kept without compiling only
//! where a manifest that the caller names lists it with the sources as they are. Nothing is written before everything was
//! compiled and assembled; the manifest comes last.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use selvedge::Error;
use selvedge::driver::image::{ImageInfo, ImageKind, isa_of_driver};
use selvedge::nvrtc::{self, Cache, Program, Target};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::options::BuildImagesOptions;
use crate::output::{self, Progress, Report, Style, Table};
use crate::source::{self, fnv1a};

mod assemble;
mod family;
mod include;
mod manifest;
mod plain;

use family::Family;
use manifest::{Line, MANIFEST};

/// An image, compiled.
struct Image {
    line: Line,
    bytes: Vec<u8>,
}

/// Compiles, checks or finds nothing to do.
pub fn build_images(options: &BuildImagesOptions) -> Result<Report, Failure> {
    let families = family::families(options)?;
    let tools = Tools::of(options, &families)?;
    let present = manifest::present(&options.out)?;
    let made_by = |target, family: &Family| tools.of_image(target, family);
    if options.if_changed && manifest::is_current(&options.comment, &families, made_by, &present) {
        let folder = options.out.display().to_string();
        let text = format!("{folder} fits its sources\n");
        return Ok(Report { text, json: json!({ "folder": folder, "changed": false }) });
    }

    let (kept, families) = kept(options.keep.as_deref(), families, made_by, &present)?;
    let compiled = families.len();
    let mut images = compile(&families, &tools.compiler)?;
    if let Some(ptxas) = &options.ptxas {
        assemble::check(ptxas, &options.architectures, options.forbid_local_memory, &images)?;
        let assembled = assemble_kept(ptxas, &families, &tools, &images)?;
        images.retain(|image| is_written(&families, &image.line.file()));
        images.extend(assembled);
    }
    images.extend(kept);
    images.sort_by_key(|image| image.line.file());
    let mut made: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let lines: Vec<String> = images.iter().map(|image| image.line.text()).collect();
    made.insert(MANIFEST.to_owned(), manifest::text(&options.comment, &lines).into_bytes());
    for image in &images {
        made.insert(image.line.file(), image.bytes.clone());
    }
    let mut names: Vec<&String> = made.keys().chain(present.keys()).collect();
    names.sort();
    names.dedup();
    let differing: Vec<&str> =
        names.into_iter().filter(|name| made.get(*name) != present.get(*name)).map(String::as_str).collect();
    if options.check && !differing.is_empty() {
        let folder = options.out.display();
        let differing = differing.join(", ");
        return Err(Failure::failed(format!(
            "{folder} is not what its sources give; other, missing or too many are: {differing}; make them again without --check"
        )));
    }
    if !options.check {
        write(&options.out, &made, &present)?;
    }
    Ok(report(options, &images, compiled, !differing.is_empty()))
}

/// Takes out the families whose images are there as the manifest lists them, with the same sources, options and compilers.
fn kept(
    manifest: Option<&Path>,
    families: Vec<Family>,
    made_by: impl Fn(Target, &Family) -> String,
    present: &BTreeMap<String, Vec<u8>>,
) -> Result<(Vec<Image>, Vec<Family>), Failure> {
    let Some(manifest) = manifest else { return Ok((Vec::new(), families)) };
    let text = files::read_text(manifest, "a manifest of images")?;
    let listed: HashSet<&str> = text.lines().collect();
    let (mut kept, mut others) = (Vec::new(), Vec::new());
    for family in families {
        let lines = manifest::lines_of(&family, &made_by, present).unwrap_or_default();
        if lines.is_empty() || lines.iter().any(|line| !listed.contains(line.text().as_str())) {
            others.push(family);
            continue;
        }
        for line in lines {
            let bytes = present.get(&line.file()).cloned().unwrap_or_default();
            kept.push(Image { line, bytes });
        }
    }
    Ok((kept, others))
}

/// The compiler and the assembler, by name and version.
struct Tools {
    compiler: String,
    /// The assembler; `None` where no machine code is written.
    assembler: Option<String>,
}

impl Tools {
    fn of(options: &BuildImagesOptions, families: &[Family]) -> Result<Tools, Failure> {
        let compiler = compiler().map_err(source::explained)?;
        let assembled = families.iter().find(|family| !family.assembled.is_empty());
        let assembler = match (assembled, &options.ptxas) {
            (None, _) => None,
            (Some(_), Some(ptxas)) => Some(assemble::version(ptxas)?),
            (Some(family), None) => {
                let found = format!("'{}', which is to be assembled", family.name);
                return Err(refused(found, "--ptxas, which assembles it"));
            }
        };
        Ok(Tools { compiler, assembler })
    }

    /// Returns the tool that makes a family's image for this target, as the manifest names it.
    fn of_image(&self, target: Target, family: &Family) -> String {
        match &self.assembler {
            Some(assembler) if !family.targets.contains(&target) => format!("{}+{assembler}", self.compiler),
            _ => self.compiler.clone(),
        }
    }
}

/// Assembles the PTX of targets that are written as machine code too.
fn assemble_kept(
    ptxas: &Path,
    families: &[Family],
    tools: &Tools,
    images: &[Image],
) -> Result<Vec<Image>, Failure> {
    let mut kept = Vec::new();
    for family in families {
        for target in &family.assembled {
            let file = manifest::file(&family.name, *target);
            let Some(text) = images.iter().find(|image| image.line.file() == file) else { continue };
            let machine = manifest::machine_target(*target);
            let bytes = assemble::keep(ptxas, text, machine)?;
            let isa = isa_of(&bytes, machine)?;
            let line = Line::of(family, machine, &tools.of_image(machine, family), isa, fnv1a(&bytes));
            kept.push(Image { line, bytes });
        }
    }
    Ok(kept)
}

/// Returns `false` for PTX of which only the machine code is written.
fn is_written(families: &[Family], file: &str) -> bool {
    families.iter().any(|family| family.images().any(|target| manifest::file(&family.name, target) == file))
}

/// NVRTC and its version as the manifest has it, such as `nvrtc-12.0.76`: what is written into PTX says it whole.
fn compiler() -> selvedge::Result<String> {
    let (major, minor) = nvrtc::version()?;
    let oldest = nvrtc::architectures()?.first().copied().unwrap_or_default();
    let target: Target = format!("compute_{oldest}").parse()?;
    let compiled = Program::new("version.cu", "").compile(target, &Cache::none())?;
    let text = String::from_utf8_lossy(compiled.image());
    let version = text.lines().find_map(|line| line.split_once(&format!(", V{major}.{minor}.")));
    let patch: String =
        version.map_or("", |(_, patch)| patch).chars().take_while(char::is_ascii_digit).collect();
    let patch = if patch.is_empty() { patch } else { format!(".{patch}") };
    Ok(format!("nvrtc-{major}.{minor}{patch}"))
}

/// Compiles every family for every target, sorted by file name.
fn compile(families: &[Family], compiler: &str) -> Result<Vec<Image>, Failure> {
    let count: usize = families.iter().map(|family| family.targets.len()).sum();
    let progress = Progress::of_steps("compiling", count as u64);
    let mut images = Vec::with_capacity(count);
    for family in families {
        for target in &family.targets {
            images.push(image(family, *target, compiler)?);
            progress.set(images.len() as u64);
        }
    }
    images.sort_by_key(|image| image.line.file());
    Ok(images)
}

fn image(family: &Family, target: Target, compiler: &str) -> Result<Image, Failure> {
    let program = family.source.program(&family.file_name());
    let compile = |target| program.compile(target, &Cache::none()).map_err(source::explained);
    let compiled = compile(target)?;
    source::show_warnings(&compiled);
    let bytes = if target.is_ptx() {
        // Only this assembles, and so checks, what stands in the source as PTX; unless the assembler will.
        if !family.assembled.contains(&target) {
            compile(manifest::machine_target(target))?;
        }
        let text = plain::plain(&String::from_utf8_lossy(compiled.image()));
        family.assembler_isa().map_or(text.clone(), |isa| plain::with_isa(&text, isa)).into_bytes()
    } else {
        compiled.image().to_vec()
    };
    let isa = isa_of(&bytes, target)?;
    let line = Line::of(family, target, compiler, isa, fnv1a(&bytes));
    Ok(Image { line, bytes })
}

/// The lowest PTX ISA that a driver must take to load the image.
fn isa_of(bytes: &[u8], target: Target) -> Result<(i32, i32), Failure> {
    let info = ImageInfo::parse(bytes)?;
    let [entry] = &info.entries[..] else {
        return Err(Failure::failed(format!("{} was made for {target}, not one image", info.kind)));
    };
    match (entry.kind, entry.isa, entry.toolkit) {
        (ImageKind::Ptx, Some(isa), _) => Ok(isa),
        // Machine code loads from the first driver of its toolkit's major on.
        (_, _, Some((major, _))) => Ok(isa_of_driver(major * 1000)),
        _ => Err(Failure::failed(format!("the {} for {target} does not say what made it", info.kind))),
    }
}

/// Writes what differs, the manifest last, and removes what the old manifest lists and the new one does not.
fn write(
    folder: &Path,
    made: &BTreeMap<String, Vec<u8>>,
    present: &BTreeMap<String, Vec<u8>>,
) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::failed(format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let images = made.iter().filter(|(name, _)| *name != MANIFEST);
    for (name, bytes) in images.chain(made.get_key_value(MANIFEST)) {
        if present.get(name) != Some(bytes) {
            files::write(&folder.join(name), bytes)?;
        }
    }
    for name in present.keys().filter(|name| !made.contains_key(*name)) {
        let path = folder.join(name);
        std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn report(options: &BuildImagesOptions, images: &[Image], compiled: usize, changed: bool) -> Report {
    let style = Style::of_stdout();
    let folder = options.out.display().to_string();
    let total: usize = images.iter().map(|image| image.bytes.len()).sum();
    let mut table = Table::with_head("<>>", ["image", "needs ISA", "bytes"]);
    let mut rows: Vec<Value> = Vec::new();
    for Image { line, bytes } in images {
        let isa = format!("{}.{}", line.isa.0, line.isa.1);
        table.row([line.file(), isa.clone(), output::grouped(bytes.len() as u64)]);
        rows.push(json!({
            "file": line.file(),
            "family": line.family,
            "target": line.target,
            "isa": isa,
            "kind": line.kind,
            "bytes": bytes.len(),
        }));
    }
    let count = output::counted(images.len() as u64, "image");
    let total = output::bytes(total as u64);
    let said = match (options.check, changed) {
        (true, _) => format!("{folder} is what its sources give"),
        (false, true) => format!("{folder} was written"),
        (false, false) => format!("{folder} was up to date"),
    };
    let assembled = match &options.ptxas {
        Some(_) => format!(", assembled for {}", list(&options.architectures)),
        None => String::new(),
    };
    let families = if compiled == 1 { "1 family".to_owned() } else { format!("{compiled} families") };
    let compiled_now = if options.keep.is_some() { format!("; {families} compiled") } else { String::new() };
    let text = format!("{}\n{said}: {count}, {total}{assembled}{compiled_now}\n", table.render(style));
    let json = json!({
        "folder": folder,
        "changed": changed,
        "checked": options.check,
        "compiled": compiled,
        "assembled_for": options.architectures.iter().map(Target::to_string).collect::<Vec<_>>(),
        "images": rows,
    });
    Report { text, json }
}

fn list(targets: &[Target]) -> String {
    targets.iter().map(Target::to_string).collect::<Vec<_>>().join(", ")
}

/// Input that cannot work.
fn refused(found: impl Into<String>, wanted: impl Into<String>) -> Failure {
    Error::InvalidArgument { operation: "build-images", found: found.into(), wanted: wanted.into() }.into()
}
