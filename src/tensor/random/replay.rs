//! [`RecordedDraws`], the draws of some work, from which the same work draws the same numbers again.
//!
//! A draw has an offset in a generator's stream. [`RecordedDraws::of`] records the offset of each draw of this thread's work,
//! and [`RecordedDraws::replay`] gives these offsets to the draws of the same work, in order, and leaves the generators where
//! they are. A draw that a graph captures has its offset in memory, and is repeated from there.
//!
//! Invariant: recordings and replays nest. A draw takes its offset from the innermost replay, or from its generator without
//! one, and is noted by each recording within that replay.
//!
//! Tests: `tests/nn/checkpointing.rs`.

use std::cell::RefCell;

use super::Generator;
use super::captured::{CapturedPhiloxState, state_of_draw};
use crate::error::{Error, Result};
use crate::tensor::device::Device;

const OPERATION: &str = "a recomputation";

thread_local! {
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
}

/// The Philox state of a draw: the seed and the offset in its generator's stream.
#[derive(Clone)]
enum PhiloxState {
    /// The seed, and the first block.
    Values([u64; 2]),
    Memory(Box<CapturedPhiloxState>),
}

#[derive(Clone)]
struct RecordedDraw {
    generator: Generator,
    blocks: u64,
    state: PhiloxState,
}

/// The draws of some work, in order.
#[derive(Clone, Default)]
pub(crate) struct RecordedDraws(Vec<RecordedDraw>);

enum Scope {
    Recording(RecordedDraws),
    Replay { draws: RecordedDraws, next: usize },
}

/// Ends a scope, also if its work panics.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // The thread-local can be gone at the end of a thread.
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().pop());
    }
}

/// Runs work in a scope, and returns the scope behind it.
fn within<R>(scope: Scope, work: impl FnOnce() -> R) -> (Option<Scope>, R) {
    SCOPES.with(|scopes| scopes.borrow_mut().push(scope));
    let end = End;
    let result = work();
    std::mem::forget(end);
    (SCOPES.with(|scopes| scopes.borrow_mut().pop()), result)
}

impl RecordedDraws {
    /// Runs work, and returns its draws on this thread.
    pub(crate) fn of<R>(work: impl FnOnce() -> R) -> (RecordedDraws, R) {
        match within(Scope::Recording(RecordedDraws::default()), work) {
            (Some(Scope::Recording(draws)), result) => (draws, result),
            (_, result) => (RecordedDraws::default(), result),
        }
    }

    /// Runs the same work, whose draws are these.
    ///
    /// # Errors
    ///
    /// The errors of `work`; [`Error::InvalidArgument`] for work that draws otherwise.
    pub(crate) fn replay<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let (scope, result) = within(Scope::Replay { draws: self.clone(), next: 0 }, work);
        let result = result?;
        match scope {
            Some(Scope::Replay { next, .. }) if next < self.0.len() => {
                let found = format!("{next} random draws");
                Err(Error::invalid(
                    OPERATION,
                    found,
                    format!("the {} of the first computation", self.0.len()),
                ))
            }
            _ => Ok(result),
        }
    }
}

/// Returns the memory that a draw reads its state from: that of the repeated draw, or that of a capture.
///
/// # Errors
///
/// As [`state_of_draw`]; [`Error::InvalidArgument`] for a draw that the recorded work did not make.
pub(in crate::tensor) fn memory_of_draw(
    operation: &'static str,
    generator: &Generator,
    blocks: u64,
    device: &Device,
) -> Result<Option<CapturedPhiloxState>> {
    match repeated_draw(operation, generator, blocks, |state| matches!(state, PhiloxState::Memory(_)))? {
        RepeatedDraw::Found(PhiloxState::Memory(state)) => Ok(Some(*state)),
        RepeatedDraw::Found(PhiloxState::Values(_)) | RepeatedDraw::Other => Ok(None),
        RepeatedDraw::NoReplay => {
            let state = state_of_draw(operation, generator, blocks, device)?;
            if let Some(state) = &state {
                record(generator, blocks, PhiloxState::Memory(Box::new(state.clone())));
            }
            Ok(state)
        }
    }
}

/// Returns the seed and the first block of a draw: those of the repeated draw, or the next of the generator.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a draw that the recorded work did not make.
pub(in crate::tensor) fn seed_and_offset_of_draw(
    operation: &'static str,
    generator: &Generator,
    blocks: u64,
) -> Result<[u64; 2]> {
    match repeated_draw(operation, generator, blocks, |state| matches!(state, PhiloxState::Values(_)))? {
        RepeatedDraw::Found(PhiloxState::Values(values)) => Ok(values),
        RepeatedDraw::Found(PhiloxState::Memory(_)) | RepeatedDraw::Other => {
            Err(other_draw(format!("{operation} on the host in place of a captured draw")))
        }
        RepeatedDraw::NoReplay => {
            let values = generator.take(blocks);
            record(generator, blocks, PhiloxState::Values(values));
            Ok(values)
        }
    }
}

enum RepeatedDraw {
    NoReplay,
    /// The next draw has another offset than the wanted one, and stays the next.
    Other,
    Found(PhiloxState),
}

/// Returns the next draw of the innermost replay, if its offset is a wanted one.
fn repeated_draw(
    operation: &'static str,
    generator: &Generator,
    blocks: u64,
    is_wanted: impl Fn(&PhiloxState) -> bool,
) -> Result<RepeatedDraw> {
    SCOPES.with(|scopes| {
        let mut scopes = scopes.borrow_mut();
        let replay = scopes.iter_mut().rev().find_map(|scope| match scope {
            Scope::Recording(_) => None,
            Scope::Replay { draws, next } => Some((draws, next)),
        });
        let Some((draws, next)) = replay else { return Ok(RepeatedDraw::NoReplay) };
        let same = |draw: &&RecordedDraw| draw.generator.is_same(generator) && draw.blocks == blocks;
        let Some(draw) = draws.0.get(*next).filter(same) else {
            return Err(other_draw(format!("{operation} of {blocks} blocks as random draw {}", *next + 1)));
        };
        if !is_wanted(&draw.state) {
            return Ok(RepeatedDraw::Other);
        }
        let draw = draw.clone();
        *next += 1;
        note(&mut scopes, &draw);
        Ok(RepeatedDraw::Found(draw.state))
    })
}

fn other_draw(found: String) -> Error {
    Error::invalid(OPERATION, found, "the draws of the first computation in their order")
}

/// Records a draw of this thread.
fn record(generator: &Generator, blocks: u64, state: PhiloxState) {
    SCOPES.with(|scopes| {
        let mut scopes = scopes.borrow_mut();
        if !scopes.is_empty() {
            note(&mut scopes, &RecordedDraw { generator: generator.clone(), blocks, state });
        }
    });
}

/// Records a draw in the recordings within the innermost replay.
fn note(scopes: &mut [Scope], draw: &RecordedDraw) {
    for scope in scopes.iter_mut().rev() {
        match scope {
            Scope::Recording(draws) => draws.0.push(draw.clone()),
            Scope::Replay { .. } => return,
        }
    }
}
