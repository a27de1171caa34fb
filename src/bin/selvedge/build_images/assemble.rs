//! PTX assembled for every architecture that it is meant for, which a driver would do later and elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use selvedge::driver::image::{ArchitectureSuffix, ImageInfo, ImageKind, check as check_image};
use selvedge::nvrtc::Target;

use super::Image;
use crate::failure::{BAD_INPUT, Failure};
use crate::output::Progress;

/// A driver that is newer than any image: what is asked is whether an architecture runs it.
const ANY_DRIVER: i32 = i32::MAX;

/// A folder for the texts, which an assembler reads only from files.
struct Folder(PathBuf);

impl Folder {
    fn new(purpose: &str) -> Result<Folder, Failure> {
        let name = format!("selvedge-build-images-{}-{purpose}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.0.display()));
        std::fs::create_dir_all(&folder.0).map_err(failed)?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left in the temporary one is no failure.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Assembles each PTX image for each architecture that it may run on, several at once.
pub fn check(
    ptxas: &Path,
    architectures: &[Target],
    forbid_local_memory: bool,
    images: &[Image],
) -> Result<(), Failure> {
    let folder = Folder::new("check")?;
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.0.display()));
    let mut jobs = Vec::new();
    for image in images {
        let info = ImageInfo::parse(&image.bytes)?;
        if info.kind != ImageKind::Ptx {
            continue;
        }
        let path = folder.0.join(image.line.file());
        std::fs::write(&path, &image.bytes).map_err(failed)?;
        for architecture in architectures.iter().filter(|architecture| runs_on(&info, **architecture)) {
            jobs.push((path.clone(), *architecture));
        }
    }

    let progress = Progress::of_steps("assembling", jobs.len() as u64);
    let done = AtomicU64::new(0);
    let waiting = Mutex::new(jobs.into_iter());
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    // A thread that panicked left the list as it was.
                    let job = waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
                    let Some((path, architecture)) = job else { return };
                    if let Err(problem) = assemble(ptxas, &path, architecture, forbid_local_memory) {
                        problems.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(problem);
                    }
                    progress.set(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let mut problems = problems.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    problems.sort();
    problems.dedup();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure { code: BAD_INPUT, message: problems.join("\n") })
}

/// Assembles an image for its own architecture. A warning that wgmma instructions are serialized is an error.
pub fn keep(ptxas: &Path, image: &Image, target: Target) -> Result<Vec<u8>, Failure> {
    let folder = Folder::new("keep")?;
    let path = folder.0.join(image.line.file());
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    std::fs::write(&path, &image.bytes).map_err(failed)?;
    let made = path.with_extension("cubin");
    let said = run(ptxas, &path, target, &made).map_err(|message| Failure { code: BAD_INPUT, message })?;
    if let Some(line) = said.lines().find(|line| line.contains("Potential Performance Loss")) {
        let message = format!("ptxas for {target}, {}: {}", image.line.file(), line.trim());
        return Err(Failure { code: BAD_INPUT, message });
    }
    std::fs::read(&made).map_err(failed)
}

/// The assembler and its version as the manifest has it, such as `ptxas-12.9.86`.
pub fn version(ptxas: &Path) -> Result<String, Failure> {
    let output = Command::new(ptxas).arg("--version").output();
    let output =
        output.map_err(|error| Failure::failed(format!("{} cannot be run: {error}", ptxas.display())))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.split(", V").nth(1).and_then(|rest| rest.split_whitespace().next());
    version.map(|version| format!("ptxas-{version}")).ok_or_else(|| {
        Failure::failed(format!("{} --version says no version: {}", ptxas.display(), said.trim()))
    })
}

/// Returns `true` if the PTX can be assembled for `architecture`. An architecture with a letter takes only PTX with that letter.
fn runs_on(info: &ImageInfo, architecture: Target) -> bool {
    let named = architecture.to_string().replace("compute_", "sm_");
    let exact = named.ends_with(|last: char| last.is_ascii_alphabetic());
    info.targets.first().is_some_and(|made_for| match made_for.suffix {
        ArchitectureSuffix::None if !exact => {
            check_image(info, architecture.capability(), ANY_DRIVER).is_ok()
        }
        _ => made_for.to_string() == named,
    })
}

/// `Err` with what is wrong.
fn assemble(ptxas: &Path, path: &Path, target: Target, forbid_local_memory: bool) -> Result<(), String> {
    let said = run(ptxas, path, target, &path.with_extension(format!("{target}.out")))?;
    match local_memory(&said).filter(|_| forbid_local_memory) {
        Some((kernel, bytes)) => {
            let name = name_of(path);
            Err(format!("ptxas for {target}: {kernel} of {name} uses {bytes} bytes of local memory"))
        }
        None => Ok(()),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Runs the assembler and returns its messages; `Err` has the messages for a file that it refuses.
fn run(ptxas: &Path, path: &Path, target: Target, made: &Path) -> Result<String, String> {
    let output = Command::new(ptxas)
        .arg("-v")
        .arg(format!("-arch={target}"))
        .arg("-o")
        .arg(made)
        .arg(path)
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", ptxas.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let (path_text, name) = (path.display().to_string(), name_of(path));
        return Err(format!(
            "ptxas for {target} refused {name}:\n{}",
            said.replace(&path_text, &name).trim_end()
        ));
    }
    Ok(said.into_owned())
}

/// The first function with local memory, and how many bytes, by what `ptxas -v` says.
fn local_memory(said: &str) -> Option<(&str, u64)> {
    let mut function = "";
    for line in said.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            function = name.trim();
        } else if let Some((before, _)) = line.split_once(" bytes stack frame") {
            let bytes = before.split_whitespace().last().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
            if bytes > 0 {
                return Some((function, bytes));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_memory_is_seen() {
        let said = |first: u64, second: u64| {
            format!(
                "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'a' for 'sm_60'\n\
                 ptxas info    : Function properties for a\n    {first} bytes stack frame, 0 bytes spill stores\n\
                 ptxas info    : Function properties for b\n    {second} bytes stack frame, 0 bytes spill stores\n"
            )
        };
        assert_eq!(local_memory(&said(0, 0)), None);
        assert_eq!(local_memory(&said(0, 16)), Some(("b", 16)));
        assert_eq!(local_memory(&said(8, 16)), Some(("a", 8)));
    }

    #[test]
    fn ptx_is_assembled_for_what_may_run_it() {
        let runs = |target: &str, architecture: &str| {
            let text = format!(".version 8.0\n.target {target}\n.address_size 64\n");
            runs_on(&ImageInfo::parse(text.as_bytes()).unwrap(), architecture.parse().unwrap())
        };
        assert!(runs("sm_60", "sm_60") && runs("sm_60", "sm_90") && runs("sm_60", "sm_120"));
        assert!(!runs("sm_80", "sm_75") && !runs("sm_60", "sm_90a"));
        assert!(runs("sm_90a", "sm_90a") && !runs("sm_90a", "sm_90") && !runs("sm_90a", "sm_100"));
    }
}
