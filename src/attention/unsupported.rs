//! [`Unsupported`], the reason why no engine computes a problem.

use std::fmt;

use super::problem::{MAX_DECODE_QUERIES, Sequences};
use crate::error::Error;
use crate::types::DType;

/// The reason why no engine computes a problem.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Unsupported {
    /// The operands differ in dtype or device.
    Different,
    /// No engine has kernels for this dtype.
    Type(DType),
    /// The head dimension of queries and keys, and that of the values.
    Dimension(usize, usize),
    /// The engine computes results of this head dimension, but no gradients.
    Backward(usize),
    /// More queries than decoding takes.
    Queries(usize),
    /// Decoding has neither dropout nor a table of sequences.
    Training,
    /// The scale is not a positive number that f32 holds.
    Scale(f64),
    /// The soft cap is not a positive number that f32 holds.
    SoftCap(f64),
    /// The threshold of the dropout is above 65536.
    Threshold(u32),
    /// The sequences do not fit batch, queries and keys.
    Sequences(Sequences, [usize; 3]),
    /// This operand's last axis is not contiguous, or its other axes do not begin at multiples of 16 bytes.
    Layout(&'static str),
    /// There are no elements of these.
    Empty(&'static str),
    /// The engine cannot count this many.
    TooMany(&'static str),
    /// There is no image of the kernels for the device, its driver, or the overrides of the environment.
    Image(Error),
    /// The shapes do not meet.
    Shapes(Error),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Different => write!(formatter, "operands of several dtypes or devices"),
            Unsupported::Type(dtype) => {
                write!(formatter, "no engine computes attention of {dtype}; f16 and bf16 have one")
            }
            Unsupported::Dimension(dimension, of_values) => write!(
                formatter,
                "a head dimension of {dimension} with values of {of_values} has no engine; equal multiples of 8 up to 256 have one"
            ),
            Unsupported::Backward(dimension) => write!(
                formatter,
                "a head dimension of {dimension} has an engine for the result alone; gradients take multiples of 8 up to 128"
            ),
            Unsupported::Queries(queries) => write!(
                formatter,
                "{queries} queries of a sequence; decoding takes at most {MAX_DECODE_QUERIES}"
            ),
            Unsupported::Training => {
                write!(formatter, "dropout or a table of sequences; decoding takes lengths in its operands")
            }
            Unsupported::Scale(scale) => {
                write!(formatter, "a scale of {scale} has no engine; positive numbers have one")
            }
            Unsupported::SoftCap(cap) => {
                write!(formatter, "a soft cap of {cap} has no engine; positive numbers have one")
            }
            Unsupported::Threshold(threshold) => {
                write!(formatter, "a dropout threshold of {threshold} of 65536; give at most 65536")
            }
            Unsupported::Sequences(sequences, [batch, queries, keys]) => {
                let Sequences { count, is_packed, max_queries, max_keys } = sequences;
                let packed = if *is_packed { " packed" } else { "" };
                write!(
                    formatter,
                    "{count}{packed} sequences of at most {max_queries} queries and {max_keys} keys in a batch of {batch} with \
                     {queries} queries and {keys} keys; give packed sequences a batch of 1, others one for each, and none \
                     that is longer"
                )
            }
            Unsupported::Layout(operand) => write!(
                formatter,
                "{operand} whose head dimension is not contiguous, or whose rows do not begin at multiples of 16 bytes"
            ),
            Unsupported::Empty(name) => write!(formatter, "no {name}"),
            Unsupported::TooMany(name) => write!(formatter, "more {name} than the engine counts"),
            Unsupported::Image(error) | Unsupported::Shapes(error) => error.fmt(formatter),
        }
    }
}
