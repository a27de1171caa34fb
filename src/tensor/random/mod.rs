//! Random tensors: [`Generator`], and what is drawn from one.
//!
//! Every draw is one expression of the words of its part of the stream, so it is one kernel, and the same bits on every
//! device.

mod distributions;
mod generator;
mod sampling;

pub use generator::{Generator, GeneratorState};
