//! Cases that need a process of their own.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode};

use selvedge::nvrtc::{Cache, Program, Target};

const CASE: &str = "SELVEDGE_TEST_CHILD";

/// This executable again, for a case.
pub fn child(case: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of a running program"));
    command.env(CASE, case);
    command
}

/// What a case prints, with these variables set.
pub fn run(case: &str, variables: &[(&str, &OsStr)]) -> String {
    let output = child(case).envs(variables.iter().copied()).output().expect("this executable runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {}\n{text}{errors}", output.status);
    text
}

/// Runs the case that this process was started for.
pub fn dispatch() -> Option<ExitCode> {
    let case = std::env::var(CASE).ok()?;
    match case.as_str() {
        "absent" => absent(),
        other => panic!("no case '{other}'"),
    }
    Some(ExitCode::SUCCESS)
}

/// Every entry point, with its error.
fn absent() {
    let target: Target = "sm_80".parse().expect("a target");
    let program = Program::new("a.cu", "extern \"C\" __global__ void f() {}");
    for (name, result) in [
        ("version", selvedge::nvrtc::version().map(drop)),
        ("isa", selvedge::nvrtc::isa().map(drop)),
        ("architectures", selvedge::nvrtc::architectures().map(drop)),
        ("for_device", Target::for_device((8, 0), (8, 0)).map(drop)),
        ("ptx_for_device", Target::ptx_for_device((8, 0), (8, 0)).map(drop)),
        ("compile", program.compile(target, &Cache::none()).map(drop)),
        (
            "cached",
            program.compile(target, &Cache::at(Path::new(&std::env::var_os("FOLDER").unwrap()))).map(drop),
        ),
    ] {
        let error = result.expect_err(name).to_string().replace('\n', " ");
        println!("{name}: {error}");
    }
}
