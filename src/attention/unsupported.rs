//! [`Unsupported`], the reason why no engine computes a problem.

use std::fmt;

use crate::error::Error;
use crate::types::DType;

/// The reason why no engine computes a problem.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Unsupported {
    /// The operands are not on a CUDA device.
    NoDevice,
    /// The operands differ in dtype or device.
    Different,
    /// No engine has kernels for this dtype.
    Type(DType),
    /// The head dimension of queries and keys, and that of the values.
    Dimension(usize, usize),
    /// The scale is not a positive number that f32 holds.
    Scale(f64),
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
            Unsupported::NoDevice => write!(formatter, "operands on no CUDA device"),
            Unsupported::Different => write!(formatter, "operands of several dtypes or devices"),
            Unsupported::Type(dtype) => {
                write!(formatter, "no engine computes attention of {dtype}; f16 and bf16 have one")
            }
            Unsupported::Dimension(dimension, of_values) => write!(
                formatter,
                "a head dimension of {dimension} with values of {of_values} has no engine; equal multiples of 8 up to 128 have one"
            ),
            Unsupported::Scale(scale) => {
                write!(formatter, "a scale of {scale} has no engine; positive numbers have one")
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
