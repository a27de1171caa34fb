//! [`CapturedGenerators`], the generators of captured work, whose offsets in their streams are in device memory.
//!
//! A captured kernel repeats its parameters, so a draw whose offset is a parameter repeats its numbers. A draw within
//! [`CapturedGenerators::capture`] reads the generator's seed and offset from memory instead and adds the blocks that
//! earlier draws of the same work took. [`CapturedGenerators::write`] copies the generators' states there before a
//! launch, and [`CapturedGenerators::advance`] moves the generators past the blocks of the launch behind it. A launch
//! therefore draws the numbers of the same work without a capture.
//!
//! Invariants: a draw reads memory only in a capture that has seen its generator before; the memory of a generator stays
//! at its address.
//!
//! Tests: `tests/nn/step.rs`, `tests/fake/training.rs`, `tests/gpu/steps.rs`.

use std::cell::RefCell;
use std::sync::OnceLock;

use super::super::device::Device;
use super::super::evaluate::evaluate_named;
use super::super::tensor::Tensor;
use super::Generator;
use super::generator::GeneratorState;
use crate::error::{Error, Result};
use crate::fuse::{Expression, Graph, Number};
use crate::types::DType;

const OPERATION: &str = "the state of a generator";

thread_local! {
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// The draws of this thread's work.
struct Recording {
    device: Device,
    streams: Vec<CapturedStream>,
    /// False while the work runs for the first time, without a capture.
    is_capture: bool,
}

/// A generator whose state is in device memory.
struct CapturedStream {
    generator: Generator,
    /// The seed and the offset.
    state: Tensor,
    /// The blocks that a launch takes.
    blocks: u64,
}

/// The generators that some work draws from on a device.
pub(crate) struct CapturedGenerators {
    device: Device,
    streams: Vec<CapturedStream>,
}

/// The state of a captured draw: tensors without dimensions that hold the generator's seed and offset, and the blocks of
/// the launch before the draw.
#[derive(Clone)]
pub(in crate::tensor) struct CapturedPhiloxState {
    pub(in crate::tensor) seed: Tensor,
    pub(in crate::tensor) base: Tensor,
    pub(in crate::tensor) before: u64,
}

/// Ends a recording, also if the work panics.
struct Restore(Option<Recording>);

impl Drop for Restore {
    fn drop(&mut self) {
        let outer = self.0.take();
        // The thread-local can be gone at the end of a thread.
        let _ = CURRENT.try_with(|current| current.replace(outer));
    }
}

/// Runs work and returns the draws that it made on the device.
fn record<R>(recording: Recording, work: impl FnOnce() -> Result<R>) -> (Vec<CapturedStream>, Result<R>) {
    let restore = Restore(CURRENT.with(|current| current.replace(Some(recording))));
    let result = work();
    let recorded = CURRENT.with(RefCell::take);
    drop(restore);
    (recorded.map(|recorded| recorded.streams).unwrap_or_default(), result)
}

impl CapturedGenerators {
    /// Runs work without a capture, and returns the generators that it draws from on the device.
    ///
    /// # Errors
    ///
    /// The errors of `work`, and [`Error::OutOfMemory`].
    pub(crate) fn observe<R>(
        device: &Device,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<(CapturedGenerators, R)> {
        let recording = Recording { device: *device, streams: Vec::new(), is_capture: false };
        let (streams, result) = record(recording, work);
        Ok((CapturedGenerators { device: *device, streams }, result?))
    }

    /// Runs work whose draws read the generators' states from memory. The generators stay where they are.
    ///
    /// # Errors
    ///
    /// The errors of `work`; [`Error::NotCapturable`] for a draw of a generator that was not observed.
    pub(crate) fn capture<R>(&mut self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let mut streams = std::mem::take(&mut self.streams);
        streams.iter_mut().for_each(|stream| stream.blocks = 0);
        let (streams, result) = record(Recording { device: self.device, streams, is_capture: true }, work);
        self.streams = streams;
        result
    }

    /// Writes the generators' states to their memory.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub(crate) fn write(&mut self) -> Result<()> {
        for CapturedStream { generator, state, .. } in &mut self.streams {
            let GeneratorState { seed, offset } = generator.state();
            let numbers = [seed, offset].map(|number| Number::Integer(number.into()));
            let pair = pair()?;
            state.in_place().write(|target| evaluate_named(OPERATION, pair, &[], &numbers, &mut [target]))?;
        }
        Ok(())
    }

    /// Moves each generator past the blocks that a launch takes.
    pub(crate) fn advance(&self) {
        for stream in &self.streams {
            stream.generator.take(stream.blocks);
        }
    }
}

/// Returns the expression of two scalars at the indices 0 and 1.
fn pair() -> Result<&'static Expression> {
    static PAIR: OnceLock<Expression> = OnceLock::new();
    if let Some(pair) = PAIR.get() {
        return Ok(pair);
    }
    let graph = Graph::new();
    let [first, second] = [(); 2].map(|()| graph.scalar(DType::U64));
    let pair = graph.expression(&[graph.index(0).eq(0).choose(first, second)])?;
    Ok(PAIR.get_or_init(|| pair))
}

/// Returns the memory that a draw of some blocks reads its state from, if this thread captures it.
///
/// # Errors
///
/// [`Error::NotCapturable`] for a generator that the work before the capture did not draw from; [`Error::OutOfMemory`].
pub(super) fn state_of_draw(
    operation: &'static str,
    generator: &Generator,
    blocks: u64,
    device: &Device,
) -> Result<Option<CapturedPhiloxState>> {
    CURRENT.with(|current| {
        let mut current = current.borrow_mut();
        let Some(recording) = current.as_mut().filter(|recording| recording.device == *device) else {
            return Ok(None);
        };
        let known = recording.streams.iter_mut().find(|stream| stream.generator.is_same(generator));
        match (known, recording.is_capture) {
            (Some(stream), true) => {
                let before = stream.blocks;
                stream.blocks = before.wrapping_add(blocks);
                let part = |index| stream.state.select(0, index);
                Ok(Some(CapturedPhiloxState { seed: part(0)?, base: part(1)?, before }))
            }
            (None, true) => Err(refused(operation, "a generator that the uncaptured work did not draw from")),
            (Some(_), false) => Ok(None),
            (None, false) => {
                let state = Tensor::zeros(&[2], DType::U64, device)?;
                recording.streams.push(CapturedStream { generator: generator.clone(), state, blocks: 0 });
                Ok(None)
            }
        }
    })
}

/// Refuses a draw that the host makes for the device, if this thread captures the work.
///
/// # Errors
///
/// [`Error::NotCapturable`].
pub(in crate::tensor) fn refuse_draw_on_host(operation: &'static str, device: &Device) -> Result<()> {
    CURRENT.with(|current| match &*current.borrow() {
        Some(recording) if recording.is_capture && recording.device == *device => {
            Err(refused(operation, "the host computes a part of it from the generator's state"))
        }
        _ => Ok(()),
    })
}

fn refused(operation: &'static str, reason: &str) -> Error {
    Error::NotCapturable { operation, buffer: reason.to_owned() }
}
