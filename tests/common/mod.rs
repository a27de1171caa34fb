//! Paths and programs that tests use at run time, under cargo and in a bundle that runs without it.
//!
//! `scripts/bundle.sh` with `PARTS=all` moves test executables to a machine that has neither the source tree at its
//! path nor, perhaps, a compiler. Cargo's variables at run time therefore go before those of the build, and a test that
//! needs a compiler asks [`is_left_out`] first.

#![allow(dead_code, reason = "each test executable uses its own part")]

pub mod sampling;
pub mod suite;

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Names the file into which a bundle's tests write that they were left out. Set in a bundle alone.
const LEFT_OUT: &str = "SELVEDGE_TEST_LEFT_OUT";
/// Set while a bundle is made: tests only compile the libraries that they load.
const BUILD_ONLY: &str = "SELVEDGE_TEST_BUILD_ONLY";

fn path(variable: &str, built: Option<&str>) -> PathBuf {
    match (std::env::var_os(variable).filter(|value| !value.is_empty()), built) {
        (Some(value), _) => value.into(),
        (None, Some(built)) => built.into(),
        (None, None) => panic!("{variable} is not set: run this test by cargo or by a bundle's script"),
    }
}

/// The root of the source tree.
pub fn repository() -> PathBuf {
    path("CARGO_MANIFEST_DIR", Some(env!("CARGO_MANIFEST_DIR")))
}

/// A folder for what tests build, which outlives them.
pub fn scratch() -> PathBuf {
    path("CARGO_TARGET_TMPDIR", option_env!("CARGO_TARGET_TMPDIR"))
}

/// The program `selvedge`.
pub fn program() -> PathBuf {
    path("CARGO_BIN_EXE_selvedge", option_env!("CARGO_BIN_EXE_selvedge"))
}

/// Returns whether this test cannot run here, because it runs in a bundle and needs a compiler at run time. The bundle's
/// table counts it by its name.
pub fn is_left_out(test: &str, needs: &str) -> bool {
    let Some(file) = std::env::var_os(LEFT_OUT).filter(|value| !value.is_empty()) else { return false };
    let mut file =
        OpenOptions::new().create(true).append(true).open(file).expect("the bundle's folder is writable");
    file.write_all(format!("{test}: needs {needs}\n").as_bytes()).expect("the bundle's folder is writable");
    true
}

/// Returns the blocks of one language in a Markdown text.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(opening) = line.trim_start().strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        if opening.split(',').next() == Some(language) {
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

/// Returns whether libraries are only built, for a bundle.
pub fn builds_only() -> bool {
    std::env::var_os(BUILD_ONLY).is_some_and(|value| !value.is_empty())
}

/// Hides the machine's devices from a child process, for tests of a machine that has none.
pub fn hide_devices(command: &mut Command) -> &mut Command {
    hide(command, &["SELVEDGE_LIBCUDA"])
}

/// Hides the driver and every optional library from a child process.
pub fn hide_libraries(command: &mut Command) -> &mut Command {
    hide(
        command,
        &[
            "SELVEDGE_LIBCUDA",
            "SELVEDGE_LIBNVRTC",
            "SELVEDGE_LIBCUBLAS",
            "SELVEDGE_LIBNCCL",
            "SELVEDGE_LIBCUPTI",
        ],
    )
}

fn hide<'a>(command: &'a mut Command, variables: &[&str]) -> &'a mut Command {
    command.envs(variables.iter().map(|variable| (variable, OsStr::new("none"))))
}
