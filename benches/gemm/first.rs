//! The first product of a process, above the creation of its context: ours beside cuBLAS's, whose library and handle are
//! part of what its first product takes.
//!
//! This program starts itself with one of [`ARGUMENTS`] for each side; the child makes context, stream and operands, and
//! then the product by the clock, whose time it writes once the result is checked.

use std::process::{Command, Stdio};
use std::time::Instant;

use half::bf16;
use selvedge::driver::Device;
use selvedge::gemm::{Choice, Product, gemm};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::cublas::{Call, Cublas, Kind};
use crate::harness::machine::Recorder;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, figure, pairs};
use crate::pair::toolkit_in_memory;

/// Make this program the process of our side, and of cuBLAS's.
pub const ARGUMENTS: [&str; 2] = ["first-product", "first-product-of-cublas"];

/// Rows, columns and depth, of ones: every element of the result is this number, which is a bf16.
const SIZE: usize = 1024;

const METHOD: &str = "A process is started that makes a context, a stream and two bf16 matrices of 1024 x 1024 ones; then the clock \
     runs from the call of its first product until the result is there, and the result is checked. cuBLAS's side loads \
     its library and makes its handle in that time, as ours loads its kernels. The goal is our time alone.";

/// Runs a child; `None` where the argument names none.
pub fn child(argument: &str) -> Option<Result<(), Failure>> {
    let [own, reference] = ARGUMENTS;
    let milliseconds = match argument {
        argument if argument == own => first_own(),
        argument if argument == reference => first_of_cublas(),
        _ => return None,
    };
    Some(milliseconds.map(|milliseconds| println!("{milliseconds}")))
}

fn check(result: &[bf16]) -> Result<(), Failure> {
    match result.iter().find(|element| element.to_f32() != SIZE as f32) {
        None => Ok(()),
        Some(element) => Err(format!("an element is {element}, not {SIZE}").into()),
    }
}

fn first_own() -> Result<f64, Failure> {
    let stream = Device::new(0)?.stream()?;
    let ones = stream.upload(&vec![bf16::ONE; SIZE * SIZE])?;
    let mut c = stream.zeros::<bf16>(SIZE * SIZE)?;
    stream.synchronize()?;
    let start = Instant::now();
    let product = Product::new(SIZE, SIZE, SIZE).by(Choice::Own);
    gemm(&stream, &product, 1.0, &ones, &ones, 0.0, &mut c)?;
    stream.synchronize()?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    check(&stream.download(&c)?)?;
    let opened = toolkit_in_memory();
    if !opened.is_empty() {
        return Err(format!("the library under test opened {opened:?}").into());
    }
    Ok(milliseconds)
}

fn first_of_cublas() -> Result<f64, Failure> {
    let bare = Bare::open(0)?;
    bare.make_current()?;
    let bytes = SIZE * SIZE * size_of::<bf16>();
    let (ones, c) = (bare.allocate(bytes)?, bare.allocate(bytes)?);
    let four = bytemuck::cast([bf16::ONE; 4]);
    bare.upload_plain(ones, &vec![four; bytes / size_of::<u64>()])?;
    bare.synchronize()?;
    let start = Instant::now();
    let cublas = Cublas::open(&bare)?;
    let call = Call {
        m: SIZE,
        n: SIZE,
        k: SIZE,
        a_transposed: false,
        b_transposed: false,
        batch: 1,
        operand: Kind::BF16,
        result: Kind::BF16,
    };
    // SAFETY: both hold matrices of that shape.
    unsafe { cublas.multiply(&call, ones, ones, c) }?;
    bare.synchronize()?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let mut words = vec![0u64; bytes / size_of::<u64>()];
    bare.download_plain(&mut words, c)?;
    bare.synchronize()?;
    check(bytemuck::cast_slice(&words))?;
    Ok(milliseconds)
}

/// Both sides in turns, a process each.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let title = "The first product of a process, above the creation of its context";
    let mut recorder = Recorder::new(bare, "gemm_first", title, METHOD)?;
    let program = std::env::current_exe()?;
    let time = |argument: &str| -> Result<f64, Failure> {
        let mut command = Command::new(&program);
        if let Some(path) = &options.file {
            command.env("SELVEDGE_BENCH_CUBLAS", path);
        }
        let output = command.arg(argument).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{argument} gave no result ({})", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    let [own, reference] = ARGUMENTS;
    let times = pairs(options.turns(1, 20), || time(own), || time(reference))?;
    let subject = Subject {
        name: "bf16 1024, from the call to the result",
        against: "cuBLAS, its library and handle too",
        unit: Unit::Milliseconds,
        bytes: None,
        rule: Rule::Own,
        goal: Some(5.0),
    };
    let mut figure = figure(&subject, &times)?;
    figure.resolve_at = Some(30.0);
    recorder.add(figure);
    recorder.finish(&options.out)
}
