//! Random tensors: [`Generator`], and what is drawn from one.
//!
//! Every draw is one expression of the words of its part of the stream, so it is one kernel, and the same bits on every
//! device.

mod captured;
mod distributions;
mod generator;
mod replay;
mod sampling;

pub(crate) use captured::CapturedGenerators;
pub(in crate::tensor) use captured::{CapturedPhiloxState, refuse_draw_on_host};
pub use generator::{Generator, GeneratorState};
pub(crate) use replay::RecordedDraws;
pub(in crate::tensor) use replay::{memory_of_draw, seed_and_offset_of_draw};
