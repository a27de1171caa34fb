//! From the start of `selvedge run` of a `.cu` file to its result: beside the same computation in bare C.
//!
//! The program compiled the source before, so it is in its cache; in a figure's rounds NVRTC is not even loaded. The
//! program, from `cargo build --release --features cli`, stands beside this one or in the folder above.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Options;
use crate::first_result::{BLOCK, COUNT, DONE, baseline, in_turns, time};
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, figure};

const SOURCE: &str = include_str!("../../csrc/bench/vector_add.cu");
/// The beginning of the program's report. It is written as a whole, after the result was saved.
const REPORT: &[u8] = b"vector_add of ";

/// A folder for the source, the vectors and the cache; removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A temporary folder that stays is no failure of a measurement.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Both programs in turns, a process each.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "run_source",
        "Process start to a result of selvedge run",
        "`selvedge run vector_add.cu` reads a CUDA C++ source and two .npy files of 65536 floats, takes the compiled \
         kernel from its cache, adds, saves the sum and prints a report. The reference is the program in C of \
         \"Process start to a first result\", which has kernel and vectors in itself. The clock runs from the start of \
         the process to the report's first bytes, or the reference's line, and for the second figure to its end.",
    )?;
    let own = std::env::current_exe()?;
    let folder = Folder(std::env::temp_dir().join(format!("selvedge-bench-{}", std::process::id())));
    let ready = program(&own).and_then(|program| {
        let reference = baseline(options, &own)?;
        warmed(&program, &folder.0)?;
        Ok((program, reference))
    });
    let (program, reference) = match ready {
        Ok(ready) => ready,
        Err(why) => {
            recorder.skip(format!("selvedge run: {why}."));
            return recorder.finish(&options.out);
        }
    };
    let times = in_turns(
        options.turns(3, 30),
        &mut || {
            let times = time(&mut command(&program, &folder.0), REPORT)?;
            check(&folder.0.join("out.npy"))?;
            Ok(times)
        },
        &mut || time(&mut Command::new(&reference), DONE),
    )?;
    let subject = |name, goal| Subject {
        name,
        against: "bare C",
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Time,
        goal,
    };
    recorder.add(figure(&subject("start to result", Some(1.25)), &times.results)?);
    recorder.add(figure(&subject("start to end", None), &times.ends)?);
    recorder.finish(&options.out)
}

/// The program `selvedge`: beside this one in a bundle, in the folder above in a checkout.
fn program(own: &Path) -> Result<PathBuf, Failure> {
    let beside = own.with_file_name("selvedge");
    let above = own.parent().and_then(Path::parent).map(|folder| folder.join("selvedge"));
    let found = [Some(beside), above].into_iter().flatten().find(|path| path.is_file());
    found.ok_or_else(|| "the program is not there (cargo build --release --features cli)".into())
}

/// Writes the files and fills the cache. An error says what failed.
fn warmed(program: &Path, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("vector_add.cu"), SOURCE)?;
    let vectors = [("left.npy", left as fn(usize) -> f32), ("right.npy", right)];
    for (name, value) in vectors {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({COUNT},), }}");
        // Magic, version, the header's length, and blanks up to a multiple of 64 bytes.
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").into_bytes());
        bytes.extend((0..COUNT).flat_map(|index| value(index).to_le_bytes()));
        std::fs::write(folder.join(name), bytes)?;
    }
    for wanted in ["\"from_cache\": false", "\"from_cache\": true"] {
        let output = command(program, folder).arg("--json").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(errors.lines().next().unwrap_or("it failed without a word").to_owned().into());
        }
        if !text.contains(wanted) {
            return Err(format!("its report has no {wanted}").into());
        }
        check(&folder.join("out.npy"))?;
    }
    Ok(())
}

fn left(index: usize) -> f32 {
    index as f32 * 0.5
}

fn right(index: usize) -> f32 {
    (COUNT - index) as f32 * 0.25
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("SELVEDGE_CACHE", folder.join("cache"));
    command.args(["run", "vector_add.cu", "--entry", "vector_add"]);
    command.args(["--grid", &(COUNT as u32 / BLOCK).to_string(), "--block", &BLOCK.to_string()]);
    command.args(["--arg", "left.npy", "--arg", "right.npy", "--arg", &format!("out:f32[{COUNT}]")]);
    command.args(["--arg", &format!("{COUNT}:u32"), "--out", "out=out.npy"]);
    command
}

/// Holds the saved sum against the vectors, and removes it, so that the next one is new.
fn check(path: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(path)?;
    std::fs::remove_file(path)?;
    let values = bytes.len().checked_sub(4 * COUNT).and_then(|start| bytes.get(start..));
    let values = values.ok_or("the saved sum is too short")?.chunks_exact(4);
    for (index, value) in values.enumerate() {
        let wanted = left(index) + right(index);
        if value != wanted.to_le_bytes() {
            return Err(format!("element {index} is not {wanted}").into());
        }
    }
    Ok(())
}
