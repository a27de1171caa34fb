//! [`Coordinate`], where an element is in the outputs' shape: an operand without memory.
//!
//! What an operand's layout gives is where an element lies, counted from the first; a coordinate is that number itself,
//! in a layout that is made so that it is the one wanted. So spaces, plans and walks know nothing new: they reorder,
//! merge and cut a coordinate's strides as any operand's, and the value follows.

use std::fmt;

use crate::error::Result;
use crate::types::{Layout, Shape};

/// What an element's number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coordinate {
    /// The index along an axis.
    Axis(isize),
    /// The place in row-major order.
    Position,
    /// As `Position`, asked for so many neighbours (2 or 4) at once, that begin at a multiple of their count.
    Group(u32),
}

impl fmt::Display for Coordinate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coordinate::Axis(axis) => write!(formatter, "index along axis {axis}"),
            Coordinate::Position => formatter.write_str("position in row-major order"),
            Coordinate::Group(count) => write!(formatter, "position in groups of {count}"),
        }
    }
}

impl Coordinate {
    /// The layout in which an element's offset is its number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) where the shape has no such axis.
    pub(crate) fn layout(self, shape: &Shape) -> Result<Layout> {
        let Coordinate::Axis(axis) = self else { return Ok(Layout::from_shape(*shape)) };
        let mut strides = vec![0; shape.rank()];
        strides[shape.axis("an index along an axis of the outputs", axis)?] = 1;
        Layout::strided(shape, &strides, 0)
    }

    /// Neighbours that are asked for at once.
    pub(crate) fn group(self) -> u32 {
        match self {
            Coordinate::Group(count) => count,
            _ => 1,
        }
    }
}
