//! Programs that must not compile: each breaks one guarantee of the types, which its first line says. A run takes a third
//! of them (`common/sampling.rs`).
//!
//! A file beside each program holds the compiler's whole output, for the reader. The test compares its error lines only,
//! because the rest quotes other parts of the crate. With another release of the compiler, whose wording may differ, it
//! compares the error codes alone. To write the outputs anew:
//!
//! ```text
//! TRYBUILD=overwrite cargo test --test compile_fail
//! ```

#[path = "common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use common::sampling::{self, Share};

/// The compiler whose answers the `.stderr` files are.
const WRITTEN_BY: &str = "rustc 1.95.";

/// The folder of the programs, for the process that compiles them.
const FOLDER: &str = "SELVEDGE_COMPILE_FAIL";

#[test]
fn programs_that_break_a_guarantee_do_not_compile() {
    if common::is_left_out("programs_that_break_a_guarantee_do_not_compile", "cargo and rustc") {
        return;
    }
    let programs = common::repository().join("tests/compile_fail");
    if let Some(folder) = env::var_os(FOLDER) {
        trybuild::TestCases::new().compile_fail(Path::new(&folder).join("*.rs"));
        return;
    }
    if env::var_os("TRYBUILD").is_some() {
        trybuild::TestCases::new().compile_fail(programs.join("*.rs"));
        return;
    }
    // This compiler's output goes into a copy, by a process of its own whose messages are hidden.
    let copy = common::scratch().join("compile_fail");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).expect("the target folder is writable");
    let share = Share { one_in: 3, least: 6 };
    let sources = sampling::sample("compile_fail", share, sources(&programs), |(name, _)| name);
    let sources: Vec<PathBuf> = sources.into_iter().map(|(_, path)| path).collect();
    let copied = |source: &Path| copy.join(source.file_name().expect("a file"));
    for source in &sources {
        fs::copy(source, copied(source)).expect("the target folder is writable");
    }
    let this = env::current_exe().expect("a program has a path");
    let output = Command::new(this)
        .args(["--exact", "programs_that_break_a_guarantee_do_not_compile", "--nocapture"])
        .envs([("TRYBUILD", "overwrite".as_ref()), (FOLDER, copy.as_os_str())])
        .output()
        .expect("this program runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "a program compiles that must not, or none could be compiled:\n{words}");
    let known_words = version_of_rustc().starts_with(WRITTEN_BY);
    for source in &sources {
        let wanted = errors(&source.with_extension("stderr"), known_words);
        let found = errors(&copied(source).with_extension("stderr"), known_words);
        assert_eq!(found, wanted, "the errors of {}; {}", source.display(), sampling::instructions());
    }
}

fn version_of_rustc() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("cargo has just run rustc");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The programs, each with its name in samples.
fn sources(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).expect("the folder is part of the sources");
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    sources.sort();
    assert!(sources.len() > 15, "only {} programs found", sources.len());
    let named = |path: PathBuf| {
        let name = path.file_stem().expect("a file").to_string_lossy();
        (format!("compile_fail::programs::{name}"), path)
    };
    sources.into_iter().map(named).collect()
}

/// The error lines of a compiler's answer, or only their codes; each once and sorted, because releases differ in the order
/// and in what they repeat.
fn errors(answer: &Path, whole_lines: bool) -> Vec<String> {
    let text = fs::read_to_string(answer).unwrap_or_else(|error| panic!("{}: {error}", answer.display()));
    let mut errors: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let (code, _) = line.strip_prefix("error[")?.split_once(']')?;
            Some(if whole_lines { line.to_owned() } else { code.to_owned() })
        })
        .collect();
    errors.sort();
    errors.dedup();
    assert!(!errors.is_empty(), "{} names no error", answer.display());
    errors
}
