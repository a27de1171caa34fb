//! [`RowShape`], the elements and groups of a run, and the checks of its operands.

use super::compiled_expression::check_stream_inputs;
use super::compiled_rows::{CompiledRows, OPERATION, PhaseOperands};
use super::rows_split::PhaseScalar;
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::types::{DType, Layout, Shape};

/// The shapes of a run.
pub(in crate::fuse) struct RowShape {
    /// The shape to which the inputs broadcast.
    pub(in crate::fuse) elements: Shape,
    /// The same with size 1 in the axes of a group.
    pub(in crate::fuse) groups: Shape,
    /// The number of elements of a group.
    pub(in crate::fuse) size: usize,
}

impl RowShape {
    /// Returns the layout of one value for each index within a group.
    pub(in crate::fuse) fn element_indices(&self) -> Result<Layout> {
        let axes = self.groups.iter().zip(self.elements.iter());
        let sizes = axes.map(|(&group, &size)| if group == 1 { size } else { 1 });
        Layout::contiguous(&sizes.collect::<Vec<_>>())
    }

    /// Returns whether the elements of a group are neighbours in row-major order.
    pub(super) fn has_trailing_groups(&self) -> bool {
        let mut axes = (0..self.elements.rank()).rev().filter(|&axis| self.elements[axis] != 1);
        axes.by_ref().skip_while(|&axis| self.groups[axis] == 1).all(|axis| self.groups[axis] != 1)
    }
}

impl CompiledRows {
    /// Checks the operands of a run and returns its shapes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands or scalars that differ from the
    /// program's; [`Error::InvalidArgument`] for inputs without a common shape, an axis that does not exist or is
    /// listed twice, an output of another shape, and a minimum or maximum of empty groups.
    pub(in crate::fuse) fn row_shape(
        &self,
        inputs: &[(DType, Layout)],
        scalars: usize,
        axes: &[isize],
        outputs: &[(DType, Layout)],
    ) -> Result<RowShape> {
        let count = |operation, wanted: usize, found: usize| match wanted == found {
            true => Ok(()),
            false => Err(Error::LengthMismatch { operation, wanted, found }),
        };
        count("a row program's inputs", self.inputs.len(), inputs.len())?;
        count("a row program's outputs", self.outputs.len(), outputs.len())?;
        count("a row program's scalars", self.scalars.len(), scalars)?;
        let wanted = self.inputs.iter().copied().chain(self.outputs.iter().map(|output| output.dtype));
        for (wanted, (found, _)) in wanted.zip(inputs.iter().chain(outputs)) {
            if wanted != *found {
                let (wanted, found) = (wanted.to_string(), found.to_string());
                return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
            }
        }
        check_stream_inputs(&self.stream_inputs, |input| inputs.get(input).map(|(_, layout)| layout))?;
        let mut elements = Shape::SCALAR;
        for (_, layout) in inputs {
            elements = elements.broadcast_in(OPERATION, layout.shape())?;
        }
        let mut sizes = elements.to_vec();
        let mut is_folded = vec![false; elements.rank()];
        for &axis in axes {
            let index = elements.axis(OPERATION, axis)?;
            if std::mem::replace(&mut is_folded[index], true) {
                let found = format!("axes {axes:?} of {} dimensions", elements.rank());
                return Err(Error::invalid(OPERATION, found, "each axis once"));
            }
            sizes[index] = 1;
        }
        let folded = || (0..elements.rank()).filter(|&axis| is_folded[axis]);
        let size = folded().map(|axis| elements[axis]).product();
        let shape = RowShape { groups: Shape::new(&sizes)?, size, elements };
        let element_indices = shape.element_indices()?;
        for (output, (_, layout)) in self.outputs.iter().zip(outputs) {
            let (wanted, kind) = match (output.is_per_group, output.is_over_groups) {
                (_, true) => (*element_indices.shape(), "index in a group"),
                (true, _) => (shape.groups, "group"),
                (false, _) => (shape.elements, "element"),
            };
            if *layout.shape() != wanted {
                let found = format!("an output of shape {} with a value per {kind}", layout.shape());
                return Err(Error::invalid(OPERATION, found, format!("shape {wanted}")));
            }
        }
        let empty = folded().find(|&axis| elements[axis] == 0);
        if let (Some(axis), true) = (empty, shape.groups.count() > 0) {
            let folds = self.reductions.iter().map(|reduction| reduction.reduction.fold);
            if let Some(fold) = folds.into_iter().find(|fold| !fold.has_empty()) {
                let found = format!("axis {axis} of size 0 in elements of shape {elements}");
                return Err(Error::invalid(fold.name(), found, "groups of at least one element"));
            }
        }
        Ok(shape)
    }
}

impl PhaseOperands {
    /// Returns the scalars of a phase. The number of the program's scalars has been checked.
    pub(in crate::fuse) fn scalars(&self, given: &[Number], shape: &RowShape) -> Vec<Number> {
        let number = |scalar: &PhaseScalar| match *scalar {
            PhaseScalar::Given(index) => given.get(index).copied(),
            PhaseScalar::GroupSize => Some(Number::Integer(shape.size as i128)),
        };
        self.scalars.iter().filter_map(number).collect()
    }
}
