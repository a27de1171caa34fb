//! From the start of a process to the first kernel's result: the crate beside the same steps in bare C.
//!
//! This program starts itself with [`ARGUMENT`] for our side, and `csrc/bench/first_result.c` for the other; each
//! writes a line once its result is checked, which is where the clock stops.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use selvedge::driver::{Device, LaunchConfig};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, figure};

/// Makes this program our side's process.
pub const ARGUMENT: &str = "first-result";

const VECTOR_ADD: &str = include_str!("../../csrc/bench/vector_add.ptx");
const COUNT: usize = 1 << 16;
const BLOCK: u32 = 256;

/// The steps, as the C program has them.
pub fn run_own() -> Result<(), Failure> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(VECTOR_ADD.as_bytes())?;
    let function = module.function("vector_add")?;
    let left: Vec<f32> = (0..COUNT).map(|index| index as f32 * 0.5).collect();
    let right: Vec<f32> = (0..COUNT).map(|index| (COUNT - index) as f32 * 0.25).collect();
    let (a, b) = (stream.upload(&left)?, stream.upload(&right)?);
    let mut c = stream.uninitialized::<f32>(COUNT)?;
    let config = LaunchConfig::new(COUNT as u32 / BLOCK, BLOCK);
    // SAFETY: the three buffers have COUNT elements, which is what the kernel reads and writes.
    unsafe { function.launch(&stream, config, (&a, &b, &mut c, COUNT as u32)) }?;
    let result = stream.download(&c)?;
    if let Some(index) = (0..COUNT).find(|&index| result[index] != left[index] + right[index]) {
        return Err(format!("element {index} is {}", result[index]).into());
    }
    std::io::stdout().write_all(b"ok\n")?;
    std::io::stdout().flush()?;
    Ok(())
}

/// Both programs in turns, a process each.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "first_result",
        "Process start to a first result",
        "A process is started that loads the driver, makes a context, loads a kernel from PTX, sends two vectors of \
         65536 floats, adds them, fetches and checks the sum. The clock runs from the start of the process to the \
         line that it writes then, and for the second figure to its end. The driver's cache of assembled kernels is \
         warm on both sides.",
    )?;
    let own = std::env::current_exe()?;
    let baseline = match baseline(options, &own) {
        Ok(path) => path,
        Err(why) => {
            recorder.skip(format!("the start of a process: {why}."));
            return recorder.finish(&options.out);
        }
    };

    let turns = options.turns(3, 30);
    let (mut results, mut ends) = (Vec::new(), Vec::new());
    for round in 0..turns.warm_up + turns.rounds {
        let (mine, other) = if round % 2 == 0 {
            let mine = time(&own, Some(ARGUMENT))?;
            (mine, time(&baseline, None)?)
        } else {
            let other = time(&baseline, None)?;
            (time(&own, Some(ARGUMENT))?, other)
        };
        if round >= turns.warm_up {
            results.push((mine.0, other.0));
            ends.push((mine.1, other.1));
        }
    }
    let subject = |name, goal| Subject {
        name,
        against: "bare C",
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Time,
        goal,
    };
    recorder.add(figure(&subject("start to result", Some(1.15)), &results)?);
    recorder.add(figure(&subject("start to end", None), &ends)?);
    recorder.finish(&options.out)
}

/// Milliseconds from the start of a process to its line, and to its end.
fn time(program: &Path, argument: Option<&str>) -> Result<(f64, f64), Failure> {
    let start = Instant::now();
    let mut child =
        Command::new(program).args(argument).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = [0u8; 3];
    let read = child.stdout.take().ok_or("no pipe")?.read_exact(&mut line);
    let result = start.elapsed();
    let status = child.wait()?;
    let end = start.elapsed();
    if !status.success() || read.is_err() || &line != b"ok\n" {
        return Err(format!("{} gave no result ({status})", program.display()).into());
    }
    Ok((result.as_secs_f64() * 1e3, end.as_secs_f64() * 1e3))
}

/// The C program: named, or beside this one (in a bundle), or built now from its source (in a checkout).
fn baseline(options: &Options, own: &Path) -> Result<PathBuf, Failure> {
    if let Some(path) = &options.file {
        return Ok(path.clone());
    }
    let path = own.with_file_name("first_result_c");
    let source = Path::new("csrc/bench/first_result.c");
    if !source.exists() {
        return if path.exists() { Ok(path) } else { Err("the program in C is not there".into()) };
    }
    let built = Command::new("cc")
        .args(["-O2", "-Wa,-Icsrc/bench", "-o"])
        .arg(&path)
        .arg(source)
        .arg("-ldl")
        .status()
        .map_err(|error| format!("cc did not run ({error})"))?;
    if built.success() { Ok(path) } else { Err(format!("cc failed ({built})").into()) }
}
