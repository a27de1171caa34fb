//! The index space of a run: the outputs' shape and every operand's strides, with as few dimensions as
//! possible.
//!
//! Construction drops dimensions of size 1, reverses dimensions that every output traverses backwards, orders
//! dimensions by the output's strides, and merges neighbouring dimensions that are contiguous in every
//! operand.
//!
//! Invariant: each element of an output is written once, and every operand's element is the one that its
//! layout has at that index.

use crate::error::{Error, Result};
use crate::fuse::ir::coordinate::Coordinate;
use crate::types::{Layout, MAX_RANK};

/// The limit of 32-bit arithmetic on the device, for elements and for distances within an operand.
const MAX_ELEMENTS: usize = 1 << 31;

/// Sizes, and the strides and offsets of every operand, in elements, with the innermost dimension first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Space {
    pub(crate) sizes: Vec<usize>,
    /// By operand: inputs, outputs, coordinates.
    pub(crate) strides: Vec<[isize; MAX_RANK]>,
    pub(crate) offsets: Vec<usize>,
    pub(crate) inputs: usize,
    pub(crate) coordinates: Vec<Coordinate>,
}

impl Space {
    /// Creates the space of the operands' layouts. Inputs are broadcast to the outputs' shape, and
    /// coordinates have that shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for outputs of several shapes, an output with overlapping elements, an
    /// input that does not broadcast, or an index along an axis that the shape does not have.
    pub(crate) fn new(inputs: &[&Layout], outputs: &[&Layout], coordinates: &[Coordinate]) -> Result<Space> {
        const OPERATION: &str = "an elementwise run";
        let Some(first) = outputs.first() else {
            return Err(Error::invalid(OPERATION, "no outputs", "at least one"));
        };
        for output in outputs {
            if output.shape() != first.shape() {
                let found = format!("outputs of shapes {} and {}", first.shape(), output.shape());
                return Err(Error::invalid(OPERATION, found, "outputs of the same shape"));
            }
            if output.may_overlap() {
                let wanted = "an output without overlapping elements";
                return Err(Error::invalid(OPERATION, format!("an output of {output:?}"), wanted));
            }
        }
        let mut expanded = Vec::new();
        for input in inputs.iter().filter(|input| input.shape() != first.shape()) {
            expanded.push(input.expand(first.shape())?);
        }
        let of_coordinates: Result<Vec<Layout>> =
            coordinates.iter().map(|coordinate| coordinate.layout(first.shape())).collect();
        let of_coordinates = of_coordinates?;
        let mut layouts: Vec<&Layout> = Vec::with_capacity(inputs.len() + outputs.len() + coordinates.len());
        let mut next = expanded.iter();
        for &input in inputs {
            let own = input.shape() == first.shape();
            layouts.push(if own { input } else { next.next().unwrap_or(input) });
        }
        layouts.extend_from_slice(outputs);
        layouts.extend(&of_coordinates);

        let mut space = Space {
            sizes: Vec::with_capacity(first.rank()),
            strides: vec![[0; MAX_RANK]; layouts.len()],
            offsets: layouts.iter().map(|layout| layout.offset()).collect(),
            inputs: inputs.len(),
            coordinates: coordinates.to_vec(),
        };
        if first.count() == 0 {
            space.sizes.push(0);
            return Ok(space);
        }
        let mut axes: Vec<usize> = (0..first.rank()).filter(|&axis| first.shape()[axis] > 1).collect();
        // The sort is stable, so equal strides keep their order: the last axis is innermost.
        axes.reverse();
        axes.sort_by_key(|&axis| first.strides()[axis].unsigned_abs());
        for axis in axes {
            space.push(
                first.shape()[axis],
                &layouts,
                axis,
                outputs.iter().all(|output| output.strides()[axis] < 0),
            );
        }
        if space.sizes.is_empty() {
            space.sizes.push(1);
        }
        Ok(space)
    }

    /// Adds the next outer dimension, or merges it into the last one.
    fn push(&mut self, size: usize, layouts: &[&Layout], axis: usize, backwards: bool) {
        let stride = |layout: &Layout| {
            let stride = layout.strides()[axis];
            if backwards { -stride } else { stride }
        };
        if backwards {
            for (offset, layout) in self.offsets.iter_mut().zip(layouts) {
                *offset = (*offset as isize + (size as isize - 1) * layout.strides()[axis]) as usize;
            }
        }
        if let Some(last) = self.sizes.len().checked_sub(1) {
            let run = self.sizes[last] as isize;
            let follows = self
                .strides
                .iter()
                .zip(layouts)
                .all(|(strides, layout)| strides[last].checked_mul(run) == Some(stride(layout)));
            if follows {
                self.sizes[last] *= size;
                return;
            }
        }
        let next = self.sizes.len();
        for (strides, layout) in self.strides.iter_mut().zip(layouts) {
            strides[next] = stride(layout);
        }
        self.sizes.push(size);
    }

    /// Returns the space with `dimension`, which is not the innermost, moved next to the innermost.
    pub(crate) fn with_second(&self, dimension: usize) -> Space {
        let mut space = self.clone();
        space.sizes[1..=dimension].rotate_right(1);
        for strides in &mut space.strides {
            strides[1..=dimension].rotate_right(1);
        }
        space
    }

    pub(crate) fn rank(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Returns the strides of operand `index`.
    pub(crate) fn strides(&self, index: usize) -> &[isize] {
        &self.strides[index][..self.rank()]
    }

    /// Returns whether operand `index` is contiguous in the order of the space.
    pub(crate) fn is_linear(&self, index: usize) -> bool {
        self.rank() == 1 && (self.strides[index][0] == 1 || self.sizes[0] == 1) || {
            let mut next = 1;
            self.sizes.iter().zip(self.strides(index)).all(|(&size, &stride)| {
                let fits = stride == next;
                next *= size as isize;
                fits
            })
        }
    }

    /// Returns whether operand `index` is one element for the whole space.
    pub(crate) fn is_constant(&self, index: usize) -> bool {
        self.strides(index).iter().all(|stride| *stride == 0)
    }

    /// Returns the distance between an operand's furthest elements.
    fn reach(&self, index: usize) -> usize {
        self.sizes
            .iter()
            .zip(self.strides(index))
            .map(|(size, stride)| (size - 1) * stride.unsigned_abs())
            .sum()
    }

    /// Returns whether 32-bit arithmetic suffices.
    fn is_small(&self) -> bool {
        self.count() < MAX_ELEMENTS && (0..self.strides.len()).all(|index| self.reach(index) < MAX_ELEMENTS)
    }

    /// Calls `each` with the space if 32-bit arithmetic suffices, or else with parts for which it does.
    pub(crate) fn try_for_each_small(&self, each: &mut impl FnMut(&Space) -> Result<()>) -> Result<()> {
        if self.count() == 0 || self.is_small() {
            return each(self);
        }
        let outermost = self.rank() - 1;
        let size = self.sizes[outermost];
        if size == 1 {
            // This dimension does not make the space large; the space without it is the same.
            let mut inner = self.clone();
            inner.sizes.pop();
            return inner.try_for_each_small(each);
        }
        let half = size / 2;
        let (mut low, mut high) = (self.clone(), self.clone());
        low.sizes[outermost] = half;
        high.sizes[outermost] = size - half;
        for (offset, strides) in high.offsets.iter_mut().zip(&self.strides) {
            *offset = (*offset as isize + half as isize * strides[outermost]) as usize;
        }
        low.try_for_each_small(each)?;
        high.try_for_each_small(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Slice;

    fn contiguous(sizes: &[usize]) -> Layout {
        Layout::contiguous(sizes).unwrap()
    }

    fn space_of(inputs: &[Layout], outputs: &[Layout], coordinates: &[Coordinate]) -> Result<Space> {
        let [inputs, outputs] = [inputs, outputs].map(|layouts| layouts.iter().collect::<Vec<&Layout>>());
        Space::new(&inputs, &outputs, coordinates)
    }

    #[test]
    fn dimensions_merge_where_every_operand_allows() {
        let whole = contiguous(&[2, 3, 4]);
        let space = space_of(&[whole, whole], &[whole], &[]).unwrap();
        assert_eq!((space.sizes.clone(), space.is_linear(0)), (vec![24], true));
        let space = space_of(&[contiguous(&[4])], &[whole], &[]).unwrap();
        assert_eq!((space.sizes.clone(), space.strides(0)), (vec![4, 6], &[1, 0][..]));
        let space = space_of(&[contiguous(&[])], &[whole], &[]).unwrap();
        assert_eq!((space.sizes.clone(), space.is_constant(0)), (vec![24], true));
        // A space that is reversed in every operand runs forwards.
        let back = whole.flip(&[0, 1, 2]).unwrap();
        let space = space_of(&[back], &[back], &[]).unwrap();
        assert_eq!(
            (space.sizes.clone(), space.offsets.clone(), space.strides(0)),
            (vec![24], vec![0, 0], &[1][..])
        );
        // The order of the output's strides.
        let permuted = whole.permute(&[2, 0, 1]).unwrap();
        let space = space_of(&[permuted], &[permuted], &[]).unwrap();
        assert_eq!((space.sizes, space.offsets), (vec![24], vec![0, 0]));
    }

    #[test]
    fn bad_operands_are_errors() {
        let (row, matrix) = (contiguous(&[3]), contiguous(&[2, 3]));
        for (inputs, outputs) in [
            (vec![matrix], vec![row]),
            (vec![contiguous(&[2])], vec![matrix]),
            (vec![], vec![matrix, row]),
            (vec![], vec![row.expand(matrix.shape()).unwrap()]),
            (vec![], vec![]),
        ] {
            assert!(space_of(&inputs, &outputs, &[]).is_err(), "{inputs:?} {outputs:?}");
        }
    }

    #[test]
    fn large_spaces_are_cut_into_small_ones() {
        let large = Layout::contiguous(&[3, 1 << 30, 2]).unwrap();
        let narrow = large.slice(2, Slice::from(..1)).unwrap();
        let scalar = contiguous(&[]);
        for (input, output) in [(large, large), (scalar, large), (narrow, narrow)] {
            let space = space_of(&[input], &[output], &[Coordinate::Position]).unwrap();
            let (mut count, mut next, mut parts) = (0, 0, 0);
            let mut each = |part: &Space| {
                assert!(part.is_small());
                assert_eq!((part.offsets[1], part.offsets[2]), (next, count));
                next += part.count() * part.strides(1)[0] as usize;
                count += part.count();
                parts += 1;
                Ok(())
            };
            space.try_for_each_small(&mut each).unwrap();
            assert_eq!(count, output.count());
            assert!(parts > 1 && parts <= 8, "{parts}");
        }
        // Far apart, but few.
        let apart = Layout::strided(&[2, 3], &[1 << 40, 1 << 33], 0).unwrap();
        let mut offsets = Vec::new();
        let space = space_of(&[], &[apart], &[]).unwrap();
        let mut each = |part: &Space| {
            offsets.push(part.offsets[0]);
            Ok(())
        };
        space.try_for_each_small(&mut each).unwrap();
        offsets.sort_unstable();
        let wanted: Vec<usize> = (0..2).flat_map(|i| (0..3).map(move |j| (i << 40) + (j << 33))).collect();
        assert_eq!(offsets, wanted);
    }
}
