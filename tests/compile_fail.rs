//! Programs that must not compile: each breaks one promise of the types, which its first line says.
//!
//! The compiler's whole answer is compared with the `.stderr` file beside the program. Its wording changes from release to
//! release, so that is done with the release that the files were written by; with any other the error codes are compared.
//! After a change of the types, or of `WRITTEN_BY`, write the files again with:
//!
//! ```text
//! TRYBUILD=overwrite cargo test --test compile_fail
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The compiler whose answers the `.stderr` files are.
const WRITTEN_BY: &str = "rustc 1.95.";

#[test]
fn what_breaks_a_promise_does_not_compile() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    if version_of_rustc().starts_with(WRITTEN_BY) || env::var_os("TRYBUILD").is_some() {
        trybuild::TestCases::new().compile_fail(pattern(&programs));
        return;
    }
    // A copy takes this compiler's answers, and only their codes are held against what is committed.
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).expect("the target folder is writable");
    let sources = sources(&programs);
    for source in &sources {
        fs::copy(source, copy.join(source.file_name().expect("a file")))
            .expect("the target folder is writable");
    }
    // SAFETY: this test is the only one of its program, so no other thread reads the environment.
    unsafe { env::set_var("TRYBUILD", "overwrite") };
    let cases = trybuild::TestCases::new();
    cases.compile_fail(pattern(&copy));
    // The cases run when they are dropped.
    drop(cases);
    for source in &sources {
        let wanted = codes(&source.with_extension("stderr"));
        let found = codes(&copy.join(source.file_name().expect("a file")).with_extension("stderr"));
        assert_eq!(found, wanted, "the errors of {}", source.display());
    }
}

fn pattern(folder: &Path) -> String {
    folder.join("*.rs").to_string_lossy().into_owned()
}

fn version_of_rustc() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("cargo has just run rustc");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of the sources");
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    sources.sort();
    assert!(sources.len() > 15, "only {} programs found", sources.len());
    sources
}

/// The error codes of a compiler's answer, each once, sorted: releases differ in the order and in what they repeat.
fn codes(answer: &Path) -> Vec<String> {
    let text = fs::read_to_string(answer).unwrap_or_else(|error| panic!("{}: {error}", answer.display()));
    let mut codes: Vec<String> = text
        .lines()
        .filter_map(|line| Some(line.strip_prefix("error[")?.split_once(']')?.0.to_owned()))
        .collect();
    codes.sort();
    codes.dedup();
    assert!(!codes.is_empty(), "{} names no error", answer.display());
    codes
}
