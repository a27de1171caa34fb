//! Benchmarks of operations on tensors, each in turns with the driver's copy and with PyTorch.

use selvedge::tensor::{Device, Tensor};

use super::bare::{Address, Bare};
use super::beside_copy::{Copies, time_of_one};
use super::machine::Recorder;
use super::program::{Options, is_wanted};
use super::pytorch::Work;
use super::report::{Failure, Rule, Unit};
use super::turns::{Subject, measure as turns};

/// A report of operations, and the memory that the driver's copies copy.
pub struct TensorBench<'a> {
    bare: &'a Bare,
    options: &'a Options,
    /// The report.
    pub recorder: Recorder,
    /// The device of the tensors.
    pub device: Device,
    source: Address,
    target: Address,
}

/// Runs `body` with `bytes` of memory for copies, filled with these words, and writes the report that it returns.
pub fn measure(
    bare: &Bare,
    options: &Options,
    recorder: Recorder,
    (bytes, words): (usize, &[u64]),
    body: impl FnOnce(&mut TensorBench) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (source, target) = (bare.allocate(bytes)?, bare.allocate(bytes)?);
    for at in (0..bytes).step_by((words.len() * 8).max(1)) {
        let count = words.len().min((bytes - at) / 8);
        bare.upload_plain(source + at as u64, &words[..count])?;
    }
    let mut bench = TensorBench { bare, options, recorder, device: Device::cuda(0)?, source, target };
    let figures = body(&mut bench);
    let recorder = bench.recorder;
    bare.free(source)?;
    bare.free(target)?;
    options.pytorch().drop_operands();
    figures.and_then(|()| recorder.finish(&options.out))
}

impl TensorBench<'_> {
    /// Measures one operation in turns with the copy, and with PyTorch's. The subject is its name, the bytes that it reads
    /// and writes, and its goal. Rows that SELVEDGE_BENCH_ROWS does not name are left out.
    pub fn figure(
        &mut self,
        subject: (&str, usize, Option<f64>),
        theirs: &Work,
        mut operation: impl FnMut() -> selvedge::Result<()>,
    ) -> Result<(), Failure> {
        if !is_wanted(subject.0) {
            return Ok(());
        }
        let copies = Copies { bare: self.bare, source: self.source, target: self.target };
        let stream = self.device.stream()?;
        let (turns, stream) = (self.options.turns(3, 30), stream.as_raw());
        let mut run = || operation().map_err(Failure::from);
        // SAFETY: the stream lives as long as the process.
        let mut figure = unsafe { copies.beside(turns, subject, stream, &mut run)? };
        let (mut pytorch, recorder) = (self.options.pytorch(), &mut self.recorder);
        // SAFETY: as above.
        unsafe { copies.pytorch_beside(&mut pytorch, recorder, (&mut figure, theirs), stream, run)? };
        drop(pytorch);
        self.recorder.add(figure);
        Ok(())
    }

    /// Measures one operation beside a time that it cannot go below. The subject is its name and its goal, the bound its name
    /// and its microseconds. Rows that SELVEDGE_BENCH_ROWS does not name are left out.
    pub fn bounded(
        &mut self,
        (name, goal): (&str, f64),
        (against, microseconds): (&str, f64),
        mut operation: impl FnMut() -> selvedge::Result<()>,
    ) -> Result<(), Failure> {
        if !is_wanted(name) {
            return Ok(());
        }
        let subject = Subject {
            name,
            against,
            unit: Unit::Microseconds,
            bytes: None,
            rule: Rule::Speed,
            goal: Some(goal),
        };
        let stream = self.device.stream()?.as_raw();
        let mut run = || operation().map_err(Failure::from);
        // SAFETY: the stream lives as long as the process.
        let own = || unsafe { time_of_one(self.bare, stream, &mut run) };
        self.recorder.add(turns(self.options.turns(3, 30), &subject, own, || Ok(microseconds))?);
        Ok(())
    }
}

/// An error unless both tensors have the same bits.
pub fn same_bits(name: &str, here: &Tensor, there: &Tensor) -> Result<(), Failure> {
    match here.to_bytes()? == there.to_bytes()? {
        true => Ok(()),
        false => Err(format!("{name}: the result is not the CPU's").into()),
    }
}
