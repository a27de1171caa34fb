//! A figure of work on device memory beside the driver's copy of as many bytes.

use std::ffi::c_void;

use super::bare::{Address, Bare};
use super::report::{Failure, Figure, Rule, Unit};
use super::turns::{Subject, Turns, measure};

/// Runs, and copies, between two events.
pub const BATCH: usize = 4;

/// What is copied, by the driver's own copy.
#[derive(Clone, Copy)]
pub struct Copies<'a> {
    pub bare: &'a Bare,
    pub source: Address,
    pub target: Address,
}

impl Copies<'_> {
    /// `work`, which is [`BATCH`] runs that each move so many bytes, in turns with as many copies that do.
    ///
    /// # Safety
    ///
    /// The stream that the work goes to is there until this returns.
    pub unsafe fn beside(
        self,
        turns: Turns,
        (name, moved, goal): (&str, usize, Option<f64>),
        stream: *mut c_void,
        mut work: impl FnMut() -> Result<(), Failure>,
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
            || {
                // SAFETY: the caller's.
                let taken = unsafe { bare.device_time(stream, &mut work) }?;
                Ok(taken * 1e3 / BATCH as f64)
            },
            || {
                let copies = || (0..BATCH).try_for_each(|_| bare.copy(target, source, moved / 2));
                // SAFETY: the stream lives as long as the process.
                let taken = unsafe { bare.device_time(bare.stream, copies) }?;
                Ok(taken * 1e3 / BATCH as f64)
            },
        )
    }
}
