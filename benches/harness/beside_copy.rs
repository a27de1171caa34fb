//! A figure of work on device memory beside the driver's copy of as many bytes, and beside PyTorch.

use std::ffi::c_void;

use super::bare::{Address, Bare};
use super::machine::Recorder;
use super::pytorch::{Clock, PyTorch, Work};
use super::report::{Failure, Figure, Rule, Unit};
use super::turns::{Subject, Turns, measure};

/// Runs, and copies, between two events.
pub const BATCH: usize = 4;

/// The memory that the driver's own copy copies.
#[derive(Clone, Copy)]
pub struct Copies<'a> {
    pub bare: &'a Bare,
    pub source: Address,
    pub target: Address,
}

impl Copies<'_> {
    /// `run`, which moves so many bytes, [`BATCH`] times in turns with as many copies that do.
    ///
    /// # Safety
    ///
    /// The stream that the work goes to is there until this returns.
    pub unsafe fn beside(
        self,
        turns: Turns,
        (name, moved, goal): (&str, usize, Option<f64>),
        stream: *mut c_void,
        mut run: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Figure, Failure> {
        let Copies { bare, source, target } = self;
        measure(
            turns,
            &Subject {
                name,
                against: "cuMemcpyDtoDAsync of as many bytes",
                unit: Unit::Microseconds,
                bytes: Some((moved as u64, (moved / 2 * 2) as u64)),
                rule: Rule::Speed,
                goal,
            },
            // SAFETY: the caller's.
            || unsafe { time_of_one(bare, stream, &mut run) },
            // SAFETY: the stream lives as long as the process.
            || unsafe { time_of_one(bare, bare.stream, &mut || bare.copy(target, source, moved / 2)) },
        )
    }

    /// `run` in turns with PyTorch doing the same work, put beside the figure that it has beside the copy.
    ///
    /// # Safety
    ///
    /// As for [`beside`](Copies::beside).
    pub unsafe fn pytorch_beside(
        self,
        pytorch: &mut PyTorch,
        recorder: &mut Recorder,
        (figure, work): (&mut Figure, &Work),
        stream: *mut c_void,
        mut run: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        pytorch.beside(recorder, figure, work, Clock::Device, || {
            // As there, so that neither side's first run is in its time.
            run()?;
            // SAFETY: the caller's.
            unsafe { time_of_one(self.bare, stream, &mut run) }
        })
    }
}

/// Microseconds of one of [`BATCH`] runs between two events.
///
/// # Safety
///
/// The stream is there, and of this context.
pub(super) unsafe fn time_of_one(
    bare: &Bare,
    stream: *mut c_void,
    run: &mut impl FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    // SAFETY: the caller's.
    let taken = unsafe { bare.device_time(stream, || (0..BATCH).try_for_each(|_| run())) }?;
    Ok(taken * 1e3 / BATCH as f64)
}
