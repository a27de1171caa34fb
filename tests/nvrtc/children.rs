//! Cases that need a process of their own.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use selvedge::nvrtc::{Cache, Program, Target};

use crate::cache::numbered;
use crate::logged;

pub const CASE: &str = "SELVEDGE_TEST_CHILD";

/// This executable again, for a case.
pub fn child(case: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of a running program"));
    command.env(CASE, case);
    command
}

/// Returns the output of a case, with these variables set.
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
    let result = match case.as_str() {
        "absent" => absent(),
        "compile" => compile(),
        "standard" => standard(),
        "share" => share(),
        "clear" => clear(),
        "large" => large_is_right(),
        "twice" => twice(),
        "read-only" => read_only(),
        other => panic!("no case '{other}'"),
    };
    result.unwrap_or_else(|error| panic!("{case}: {error}"));
    for line in logged("") {
        println!("warned {line}");
    }
    Some(ExitCode::SUCCESS)
}

fn folder() -> PathBuf {
    std::env::var_os("FOLDER").expect("FOLDER is set").into()
}

fn cache() -> Cache {
    Cache::at(folder())
}

/// As a program does at its start: selects a target for the device, then compiles.
fn compile() -> selvedge::Result<()> {
    let begin = std::time::Instant::now();
    let target = Target::for_device_in((8, 0), (8, 0), &cache())?;
    let ptx = Target::ptx_for_device_in((8, 0), (99, 0), &cache())?;
    let compiled = numbered(0).compile(target, &cache())?;
    let time = begin.elapsed();
    println!("cached: {}", compiled.is_from_cache());
    println!("{target} {ptx} in {time:?}");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    println!("NVRTC is loaded: {}", maps.contains("libnvrtc.so"));
    Ok(())
}

fn standard() -> selvedge::Result<()> {
    let cache = Cache::standard();
    numbered(0).compile("sm_80".parse()?, &cache)?;
    println!("compiled");
    println!("folder {}", cache.folder().map_or("-".to_owned(), |folder| folder.display().to_string()));
    match cache.statistics() {
        Ok(held) => println!("{held:?}"),
        Err(error) => println!("error {error}"),
    }
    Ok(())
}

/// Compiles eight programs again and again, beginning with another than the others do.
fn share() -> selvedge::Result<()> {
    let first: u32 =
        std::env::var("FIRST").ok().and_then(|text| text.parse().ok()).expect("FIRST is a number");
    for round in 0..40 {
        let number = (first + round) % 8;
        let compiled = numbered(number).compile("sm_80".parse()?, &cache())?;
        let name = format!("kernel_{number}");
        assert!(compiled.image().windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
        assert!(compiled.image().starts_with(b"\x7fELF"));
    }
    println!("all are right");
    Ok(())
}

fn clear() -> selvedge::Result<()> {
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        cache().clear()?;
        cache().statistics()?;
    }
    println!("all are right");
    Ok(())
}

/// A program whose entry has 4 MB, so that writing takes its time: the most of them blanks in an expression, which cost NVRTC none.
fn large() -> (Program, String) {
    let expression = format!("large<int{}>", " ".repeat(4_000_000));
    let source = "template <typename T> __global__ void large(T *x) { *x = 1; }";
    (Program::new("large.cu", source).expression(expression.as_str()), expression)
}

fn large_is_right() -> selvedge::Result<()> {
    let (program, expression) = large();
    let compiled = program.compile("sm_80".parse()?, &cache())?;
    assert_eq!(compiled.lowered_name(&expression), Some("_Z5largeIiEvPT_"));
    assert!(compiled.image().starts_with(b"\x7fELF"));
    println!("right, cached: {}", compiled.is_from_cache());
    Ok(())
}

fn twice() -> selvedge::Result<()> {
    for _ in 0..2 {
        println!("cached: {}", large().0.compile("sm_80".parse()?, &cache())?.is_from_cache());
    }
    println!("files: {}", std::fs::read_dir(folder()).expect("a folder").count());
    Ok(())
}

fn read_only() -> selvedge::Result<()> {
    for number in 0..2 {
        let compiled = numbered(number).compile("sm_80".parse()?, &cache())?;
        println!("{number} cached: {}", compiled.is_from_cache());
    }
    Ok(())
}

/// Every entry point, with its error.
fn absent() -> selvedge::Result<()> {
    let target: Target = "sm_80".parse().expect("a target");
    let program = Program::new("a.cu", "extern \"C\" __global__ void f() {}");
    for (name, result) in [
        ("version", selvedge::nvrtc::version().map(drop)),
        ("isa", selvedge::nvrtc::isa().map(drop)),
        ("architectures", selvedge::nvrtc::architectures().map(drop)),
        ("for_device", Target::for_device((8, 0), (8, 0)).map(drop)),
        ("ptx_for_device", Target::ptx_for_device((8, 0), (8, 0)).map(drop)),
        ("compile", program.compile(target, &Cache::none()).map(drop)),
        ("cached", program.compile(target, &cache()).map(drop)),
    ] {
        let error = result.expect_err(name).to_string().replace('\n', " ");
        println!("{name}: {error}");
    }
    Ok(())
}
