//! The index space of a reduction: kept dimensions and folded dimensions.
//!
//! Invariant: folded dimensions keep the order of the axes, because a row's elements are folded by their
//! row-major index. Only neighbouring dimensions that are contiguous in every input merge. Kept dimensions
//! are sorted by stride, which affects no result.

use super::space::Space;
use crate::error::{Error, Result};
use crate::types::{Layout, MAX_RANK, Shape};

/// A dimension: its size, and the stride of every operand (inputs before the output) in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::fuse) struct Dimension {
    pub(in crate::fuse) size: usize,
    pub(in crate::fuse) strides: Vec<isize>,
}

/// The dimensions, innermost first. The output has stride 0 in folded ones.
#[derive(Debug, Clone)]
pub(in crate::fuse) struct Dimensions {
    pub(in crate::fuse) kept: Vec<Dimension>,
    pub(in crate::fuse) folded: Vec<Dimension>,
    /// By operand.
    pub(in crate::fuse) offsets: Vec<usize>,
    /// The input that determines the iteration order.
    pub(in crate::fuse) leader: usize,
    /// Elements of a row, and the number of rows.
    pub(in crate::fuse) row: usize,
    pub(in crate::fuse) rows: usize,
}

/// Adds the next outer dimension, or merges it into the last one.
fn push(dimensions: &mut Vec<Dimension>, next: Dimension) {
    if let Some(last) = dimensions.last_mut() {
        let run = last.size as isize;
        let follows =
            last.strides.iter().zip(&next.strides).all(|(last, next)| last.checked_mul(run) == Some(*next));
        if follows {
            last.size *= next.size;
            return;
        }
    }
    dimensions.push(next);
}

/// Returns the common shape of the inputs.
fn common(operation: &'static str, inputs: &[Layout]) -> Result<Shape> {
    let Some(first) = inputs.first() else {
        return Err(Error::invalid(operation, "no inputs", "at least one"));
    };
    inputs[1..].iter().try_fold(*first.shape(), |shape, input| shape.broadcast_in(operation, input.shape()))
}

impl Dimensions {
    /// Returns the size and the strides of each dimension, as a kernel's parameters have them: kept ones, then folded ones.
    pub(in crate::fuse) fn sizes(&self) -> Vec<(usize, Vec<isize>)> {
        let all = self.kept.iter().chain(&self.folded);
        all.map(|dimension| (dimension.size, dimension.strides.clone())).collect()
    }

    /// Creates the dimensions of inputs that are broadcast to one shape. Axes in which the output has size 1
    /// are folded.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for inputs without a common shape, and for an output whose shape differs
    /// otherwise than by sizes of 1 or whose elements overlap.
    pub(in crate::fuse) fn new(
        operation: &'static str,
        inputs: &[Layout],
        output: &Layout,
    ) -> Result<Dimensions> {
        let shape = common(operation, inputs)?;
        let fits = output.rank() == shape.rank()
            && output.shape().iter().zip(shape.iter()).all(|(&result, &size)| result == size || result == 1);
        if !fits {
            let found = format!("an output of shape {} for elements of shape {shape}", output.shape());
            let wanted = "the same shape, with size 1 in the reduced axes";
            return Err(Error::invalid(operation, found, wanted));
        }
        let is_folded = |axis: usize| output.shape()[axis] != shape[axis];
        Dimensions::with(operation, &shape, inputs, output, is_folded)
    }

    /// Creates the dimensions of a scan along one axis, with an output of the inputs' shape.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and for an axis that does not exist.
    pub(in crate::fuse) fn along(
        operation: &'static str,
        inputs: &[Layout],
        output: &Layout,
        axis: usize,
    ) -> Result<Dimensions> {
        let shape = common(operation, inputs)?;
        if *output.shape() != shape || axis >= shape.rank() {
            let found = format!("axis {axis} and an output of shape {} for {shape}", output.shape());
            return Err(Error::invalid(operation, found, "an output of the same shape and one of its axes"));
        }
        Dimensions::with(operation, &shape, inputs, output, |other| other == axis)
    }

    fn with(
        operation: &'static str,
        shape: &Shape,
        inputs: &[Layout],
        output: &Layout,
        is_folded: impl Fn(usize) -> bool,
    ) -> Result<Dimensions> {
        if output.may_overlap() {
            let wanted = "an output without overlapping elements";
            return Err(Error::invalid(operation, format!("an output of {output:?}"), wanted));
        }
        let mut layouts = inputs.iter().map(|input| input.expand(shape)).collect::<Result<Vec<_>>>()?;
        layouts.push(*output);
        Ok(Dimensions::of_operands(shape, &layouts, layouts.len() - 1, is_folded))
    }

    /// Creates the dimensions of operands with layouts of this shape, of which the first `inputs` are inputs.
    pub(in crate::fuse) fn of_operands(
        shape: &Shape,
        layouts: &[Layout],
        inputs: usize,
        is_folded: impl Fn(usize) -> bool,
    ) -> Dimensions {
        Dimensions::ordered(shape, layouts, inputs, is_folded, false)
    }

    /// As [`of_operands`](Self::of_operands); with `is_in_order`, rows keep the order of the axes.
    pub(in crate::fuse) fn ordered(
        shape: &Shape,
        layouts: &[Layout],
        inputs: usize,
        is_folded: impl Fn(usize) -> bool,
        is_in_order: bool,
    ) -> Dimensions {
        let spread = |layout: &Layout| -> usize {
            let axes = layout.strides().iter().zip(shape.iter());
            axes.filter(|(stride, _)| **stride != 0).map(|(_, size)| *size).product()
        };
        let most = layouts[..inputs].iter().map(spread).max();
        let leader = layouts[..inputs].iter().position(|layout| Some(spread(layout)) == most).unwrap_or(0);
        let product = |folded: bool| {
            (0..shape.rank()).filter(|&axis| is_folded(axis) == folded).map(|axis| shape[axis]).product()
        };
        let (row, rows) = (product(true), product(false));
        let mut dimensions = Dimensions {
            kept: Vec::new(),
            folded: Vec::new(),
            offsets: layouts.iter().map(Layout::offset).collect(),
            leader,
            row,
            rows,
        };
        if row == 0 || rows == 0 {
            return dimensions;
        }
        let mut axes: Vec<usize> = (0..shape.rank()).rev().filter(|&axis| shape[axis] > 1).collect();
        let of = |axis: usize| {
            let stride = |layout: &Layout| match layout.shape()[axis] {
                1 => 0,
                _ => layout.strides()[axis],
            };
            Dimension { size: shape[axis], strides: layouts.iter().map(stride).collect() }
        };
        axes.iter().filter(|&&axis| is_folded(axis)).for_each(|&axis| push(&mut dimensions.folded, of(axis)));
        axes.retain(|&axis| !is_folded(axis));
        // The sort is stable, so equal strides keep the order of the axes. Strides of 0 are outermost.
        if !is_in_order {
            axes.sort_by_key(|&axis| match layouts[leader].strides()[axis].unsigned_abs() {
                0 => usize::MAX,
                stride => stride,
            });
        }
        axes.into_iter().for_each(|axis| push(&mut dimensions.kept, of(axis)));
        dimensions
    }

    /// Adds an input after the others, with one value for each row in the order of the kept dimensions.
    pub(in crate::fuse) fn with_row_values(mut self) -> Dimensions {
        let slot = self.inputs();
        let mut stride = 1;
        for dimension in &mut self.kept {
            dimension.strides.insert(slot, stride);
            stride *= dimension.size as isize;
        }
        self.folded.iter_mut().for_each(|dimension| dimension.strides.insert(slot, 0));
        self.offsets.insert(slot, 0);
        self
    }

    pub(in crate::fuse) fn inputs(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether an index or offset exceeds 31 bits.
    pub(in crate::fuse) fn is_wide(&self) -> bool {
        const LIMIT: usize = 1 << 31;
        let reach = |operand: usize| -> usize {
            let all = self.kept.iter().chain(&self.folded);
            all.map(|dimension| (dimension.size - 1) * dimension.strides[operand].unsigned_abs()).sum()
        };
        // Reserve the elements by which a block may exceed the end.
        let limit = LIMIT - (1 << 20);
        self.row >= limit
            || self.rows >= limit
            || (0..self.offsets.len()).any(|operand| reach(operand) >= limit)
    }

    /// Returns one space of all dimensions, with the folded ones innermost or outermost.
    pub(in crate::fuse) fn space(&self, folded_inside: bool) -> Space {
        let unit = Dimension { size: 1, strides: vec![0; self.offsets.len()] };
        let all: Vec<&Dimension> = match folded_inside {
            true => self.folded.iter().chain(&self.kept).collect(),
            false => self.kept.iter().chain(&self.folded).collect(),
        };
        let all = if all.is_empty() { vec![&unit] } else { all };
        let mut strides = vec![[0; MAX_RANK]; self.offsets.len()];
        for (index, dimension) in all.iter().enumerate() {
            for (strides, &stride) in strides.iter_mut().zip(&dimension.strides) {
                strides[index] = stride;
            }
        }
        let sizes = all.iter().map(|dimension| dimension.size).collect();
        Space {
            sizes,
            strides,
            offsets: self.offsets.clone(),
            inputs: self.inputs(),
            coordinates: Vec::new(),
        }
    }
}
