//! Padding: `pad`.

use super::{Output, Shape, Tensor, copy_into};
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::types::Slice;

/// The elements that [`Tensor::pad`] puts around a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Padding {
    /// One number, which becomes the tensor's dtype as by a cast.
    Constant(Number),
    /// The elements mirrored at the first and last ones, which are not repeated: `c b | a b c | b a`. At most one less than
    /// there are.
    Reflect,
    /// The first and last elements repeated: `a a | a b c | c c`.
    Replicate,
    /// The elements from the other end: `b c | a b c | a b`. At most as many as there are.
    Circular,
}

impl Padding {
    /// Zeros.
    pub const ZEROS: Padding = Padding::Constant(Number::Integer(0));

    /// The most elements that it can put before or behind `size`.
    fn most(self, size: usize) -> usize {
        match self {
            Padding::Constant(_) => usize::MAX,
            Padding::Reflect => size.saturating_sub(1),
            Padding::Replicate if size > 0 => usize::MAX,
            Padding::Circular => size,
            Padding::Replicate => 0,
        }
    }
}

impl Tensor {
    /// Returns the tensor with padding: `widths[i]` has the numbers of elements before and after axis `i`. Axes without an entry
    /// have no padding.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Padding, Tensor};
    /// let x = Tensor::new([[1, 2, 3]], &Device::cpu())?;
    /// let zeros = x.pad(&[(1, 0), (0, 1)], Padding::ZEROS)?;
    /// assert_eq!(zeros.to_vec::<i32>()?, [0, 0, 0, 0, 1, 2, 3, 0]);
    /// let mirrored = x.pad(&[(0, 0), (2, 1)], Padding::Reflect)?;
    /// assert_eq!(mirrored.to_vec::<i32>()?, [3, 2, 1, 2, 3, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for more widths than axes, or wider ones than the padding can have; those of
    /// memory.
    pub fn pad(&self, widths: &[(usize, usize)], padding: Padding) -> Result<Tensor> {
        const OPERATION: &str = "pad";
        if widths.len() > self.rank() {
            let found = format!("widths for {} axes", widths.len());
            return Err(Error::invalid(OPERATION, found, format!("at most those of shape {}", self.shape())));
        }
        for (axis, (&(before, behind), &size)) in widths.iter().zip(self.shape().iter()).enumerate() {
            if before.max(behind) > padding.most(size) {
                let found = format!("widths of {before} and {behind} at axis {axis} of size {size}");
                let wanted = format!("at most {} with {padding:?}", padding.most(size));
                return Err(Error::invalid(OPERATION, found, wanted));
            }
        }
        if let Padding::Constant(value) = padding {
            return self.padded_with(widths, value);
        }
        let mut padded = self.clone();
        for (axis, &(before, behind)) in widths.iter().enumerate().filter(|(_, width)| **width != (0, 0)) {
            let parts = padded.borders(axis as isize, (before, behind), padding)?;
            padded = Tensor::cat(&[&parts[0], &padded, &parts[1]], axis as isize)?;
        }
        if widths.iter().all(|width| *width == (0, 0)) { self.copy() } else { Ok(padded) }
    }

    /// The elements of the tensor that stand before and behind it along an axis.
    fn borders(
        &self,
        axis: isize,
        (before, behind): (usize, usize),
        padding: Padding,
    ) -> Result<[Tensor; 2]> {
        let layout = self.layout();
        let size = self.shape().get(axis as usize).copied().unwrap_or(0);
        let part = |start: usize, length: usize| layout.narrow(axis, start, length);
        let repeated = |start: usize, length: usize| {
            if length == 0 {
                return part(0, 0);
            }
            part(start, 1)?.expand(&super::resized(self.shape(), axis as usize, length)?)
        };
        let backwards =
            |start: usize, length: usize| part(start, length)?.slice(axis, Slice::from(..).step(-1));
        let [before, behind] = match padding {
            Padding::Reflect => {
                [backwards(1.min(size), before)?, backwards(size.saturating_sub(behind + 1), behind)?]
            }
            Padding::Circular => [part(size - before, before)?, part(0, behind)?],
            _ => [repeated(0, before)?, repeated(size.saturating_sub(1), behind)?],
        };
        Ok([self.view_as(before), self.view_as(behind)])
    }

    fn padded_with(&self, widths: &[(usize, usize)], value: Number) -> Result<Tensor> {
        let mut sizes = self.shape().to_vec();
        for (size, (before, behind)) in sizes.iter_mut().zip(widths) {
            *size = size.saturating_add(before.saturating_add(*behind));
        }
        let mut fresh = Output::of_shape(&self.device(), self.dtype(), &Shape::new(&sizes)?)?;
        let value = Tensor::full(&[], value, self.dtype(), &self.device())?;
        // The border of each axis is that of what is inside of the axes before it, so every element is written once.
        let mut inside = *fresh.layout();
        for (axis, &(before, behind)) in widths.iter().enumerate() {
            let (at, size) = (axis as isize, self.shape()[axis]);
            copy_into(&value, &mut fresh, inside.narrow(at, 0, before)?)?;
            copy_into(&value, &mut fresh, inside.narrow(at, before + size, behind)?)?;
            inside = inside.narrow(at, before, size)?;
        }
        copy_into(self, &mut fresh, inside)?;
        Ok(fresh.into_tensor())
    }
}
