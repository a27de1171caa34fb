//! Programs that must not compile: each breaks one guarantee of the types, which its first line says.
//!
//! A file beside each program holds the compiler's whole output, for the reader. The test compares its error lines only,
//! because the rest quotes other parts of the crate. With another release of the compiler, whose wording may differ, it
//! compares the error codes alone. To write the outputs anew:
//!
//! ```text
//! SELVEDGE_UPDATE_DOCS=1 cargo test --test compile_fail
//! ```
//!
//! The compiler gets the library that `cargo test` has just built, so that nothing is built for this test alone.

#[path = "common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

/// The compiler whose answers the `.stderr` files are.
const WRITTEN_BY: &str = "rustc 1.95.";

#[test]
fn programs_that_break_a_guarantee_do_not_compile() {
    if common::is_left_out("programs_that_break_a_guarantee_do_not_compile", "cargo and rustc") {
        return;
    }
    let programs = sources(&common::repository().join("tests/compile_fail"));
    let writes = env::var_os("SELVEDGE_UPDATE_DOCS").is_some();
    let (library, known_words) = (library(), version_of_rustc().starts_with(WRITTEN_BY));
    let (queue, failures) = (Mutex::new(programs.into_iter()), Mutex::new(Vec::new()));
    let check = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(program) = next else { return };
            let failure = match refusal(&program, &library) {
                Err(failure) => failure,
                Ok(output) if writes => {
                    fs::write(program.with_extension("stderr"), output).expect("the sources are writable");
                    continue;
                }
                Ok(output) => {
                    let wanted = fs::read_to_string(program.with_extension("stderr")).unwrap_or_default();
                    let (wanted, found) = (errors(&wanted, known_words), errors(&output, known_words));
                    if !found.is_empty() && found == wanted {
                        continue;
                    }
                    format!("{}: wanted {wanted:#?}, found\n{output}", program.display())
                }
            };
            failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(check);
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns the library that this executable is linked with, which cargo names without building it again.
fn library() -> PathBuf {
    let this = env::current_exe().expect("a program has a path");
    // The folder of a target is where this executable is: <target>/<profile>/deps.
    let target = this.ancestors().nth(3).expect("cargo's folder of test executables");
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(common::repository())
        .args(["test", "--no-run", "--test", "compile_fail", "--message-format=json"])
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo has just run this test");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the library cannot be built:\n{words}");
    let messages = String::from_utf8_lossy(&output.stdout);
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut files = artifacts
        .filter(|message| message["target"]["name"] == "selvedge")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from));
    files
        .find(|file| file.extension().is_some_and(|ending| ending == "rlib"))
        .expect("cargo names the library")
}

/// Returns the compiler's output for a program that it refuses; an error where it does not.
fn refusal(program: &Path, library: &Path) -> Result<String, String> {
    let root = common::repository();
    let output = Command::new(rustc())
        .current_dir(&root)
        .arg(program.strip_prefix(&root).unwrap_or(program))
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--color=never", "--extern"])
        .arg(format!("selvedge={}", library.display()))
        .arg(format!("-Ldependency={}", library.with_file_name("").display()))
        .arg("--out-dir")
        .arg(common::scratch())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Err(format!("{}: it compiles, and must not", program.display()));
    }
    Ok(String::from_utf8_lossy(&output.stderr).lines().map(|line| portable(line) + "\n").collect())
}

/// Returns a line of output without the folders of one machine.
fn portable(line: &str) -> String {
    for (folder, name) in [("/registry/src/", "$CARGO/"), ("/library/", "$RUST/")] {
        if let (Some((head, path)), Some((_, end))) = (line.split_once(" /"), line.split_once(folder))
            && path.contains(folder)
        {
            return format!("{head} {name}{end}");
        }
    }
    line.to_owned()
}

fn rustc() -> std::ffi::OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn version_of_rustc() -> String {
    let output = Command::new(rustc()).arg("--version").output().expect("cargo has just run rustc");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The programs of a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of the sources");
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    sources.sort();
    assert!(sources.len() > 15, "only {} programs found", sources.len());
    sources
}

/// The error lines of a compiler's answer, or only their codes; each once and sorted, because releases differ in the order
/// and in what they repeat.
fn errors(answer: &str, whole_lines: bool) -> Vec<String> {
    let mut errors: Vec<String> = answer
        .lines()
        .filter_map(|line| {
            let (code, _) = line.strip_prefix("error[")?.split_once(']')?;
            Some(if whole_lines { line.to_owned() } else { code.to_owned() })
        })
        .collect();
    errors.sort();
    errors.dedup();
    errors
}
