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
use crate::harness::turns::{Subject, Turns, figure};

/// Makes this program our side's process.
pub const ARGUMENT: &str = "first-result";

const VECTOR_ADD: &str = include_str!("../../csrc/bench/vector_add.ptx");
/// The text that both programs write when the result is checked.
pub const DONE: &[u8] = b"ok\n";
/// Elements of each vector.
pub const COUNT: usize = 1 << 16;
/// Threads of a block.
pub const BLOCK: u32 = 256;

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
    std::io::stdout().write_all(DONE)?;
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

    let times =
        in_turns(options.turns(3, 30), &mut || time(Command::new(&own).arg(ARGUMENT), DONE), &mut || {
            time(&mut Command::new(&baseline), DONE)
        })?;
    let subject = |name, goal| Subject {
        name,
        against: "bare C",
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Time,
        goal,
    };
    recorder.add(figure(&subject("start to result", Some(1.15)), &times.results)?);
    recorder.add(figure(&subject("start to end", None), &times.ends)?);
    recorder.finish(&options.out)
}

/// Milliseconds of two programs, round by round, ours first.
pub struct Times {
    /// To the first bytes that each writes.
    pub results: Vec<(f64, f64)>,
    /// To its end.
    pub ends: Vec<(f64, f64)>,
}

/// A program started and timed: milliseconds to its result and to its end.
pub type Run<'a> = &'a mut dyn FnMut() -> Result<(f64, f64), Failure>;

/// Both programs in turns, the one and then the other first.
pub fn in_turns(turns: Turns, own: Run<'_>, other: Run<'_>) -> Result<Times, Failure> {
    let mut times = Times { results: Vec::new(), ends: Vec::new() };
    for round in 0..turns.warm_up + turns.rounds {
        let (mine, other) = if round % 2 == 0 {
            let mine = own()?;
            (mine, other()?)
        } else {
            let other = other()?;
            (own()?, other)
        };
        if round >= turns.warm_up {
            times.results.push((mine.0, other.0));
            times.ends.push((mine.1, other.1));
        }
    }
    Ok(times)
}

/// Milliseconds from the start of a process to the first bytes that it writes, which must be these, and to its end.
pub fn time(command: &mut Command, wanted: &[u8]) -> Result<(f64, f64), Failure> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut first = vec![0u8; wanted.len()];
    let mut stdout = child.stdout.take().ok_or("no pipe")?;
    let read = stdout.read_exact(&mut first);
    let result = start.elapsed();
    let status = child.wait()?;
    let end = start.elapsed();
    if !status.success() || read.is_err() || first != wanted {
        let program = Path::new(command.get_program()).display();
        return Err(format!("{program} gave no result ({status})").into());
    }
    Ok((result.as_secs_f64() * 1e3, end.as_secs_f64() * 1e3))
}

/// The C program: named, or beside this one (in a bundle), or built now from its source (in a checkout).
pub fn baseline(options: &Options, own: &Path) -> Result<PathBuf, Failure> {
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
