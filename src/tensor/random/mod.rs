//! Random tensors: [`Generator`], and what is drawn from one.
//!
//! Every draw is one expression of the words of its part of the stream, so it is one kernel, and the same bits on every
//! device.

#[cfg_attr(not(feature = "nn"), allow(dead_code, reason = "only nn captures steps"))]
mod captured;
mod distributions;
mod generator;
#[cfg_attr(not(feature = "nn"), allow(dead_code, reason = "only nn repeats draws"))]
mod replay;
mod sampling;

#[cfg(feature = "nn")]
pub(crate) use captured::CapturedGenerators;
pub(in crate::tensor) use captured::{StreamPlace, refuse_draw_on_host};
pub use generator::{Generator, GeneratorState};
#[cfg(feature = "nn")]
pub(crate) use replay::RecordedDraws;
pub(in crate::tensor) use replay::{memory_of_draw, numbers_of_draw};
