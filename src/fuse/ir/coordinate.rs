//! [`Coordinate`], the position of an element in the outputs' shape, as an operand without memory.
//!
//! A coordinate is the offset of the element in a layout that is chosen so that the offset is the wanted
//! number. Spaces, plans and iterations need no special case: they reorder, merge and split a coordinate's
//! strides like any operand's.

use std::fmt;

use crate::error::Result;
use crate::types::{Layout, Shape};

/// The number that a coordinate gives for an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coordinate {
    /// The index along an axis.
    Axis(isize),
    /// The position in row-major order.
    Position,
    /// The `Position` for groups of 2 or 4 neighbours, which begin at a multiple of that count.
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
    /// Returns the layout in which an element's offset is its number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the shape has no such axis.
    pub(crate) fn layout(self, shape: &Shape) -> Result<Layout> {
        let Coordinate::Axis(axis) = self else { return Ok(Layout::from_shape(*shape)) };
        let mut strides = vec![0; shape.rank()];
        strides[shape.axis("an index along an axis of the outputs", axis)?] = 1;
        Layout::strided(shape, &strides, 0)
    }

    /// Returns the number of neighbours in a group.
    pub(crate) fn group(self) -> u32 {
        match self {
            Coordinate::Group(count) => count,
            _ => 1,
        }
    }
}
