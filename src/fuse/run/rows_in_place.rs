//! In-place inputs of row programs: their checks, their memory, and copies of them.
//!
//! One expression reads an element before it writes it. If several expressions write outputs per element, a later one
//! would read elements that an earlier one has written, so the run copies in-place inputs first.

use super::elementwise_device::{DeviceInput, DeviceOutput};
use super::expression::Expression;
use super::row_program::RowProgramState;
use super::rows_run_memory::RunMemory;
use crate::error::{Error, Result};
use crate::fuse::language::graph::Graph;
use crate::fuse::plan::compiled_rows::{Finish, OPERATION};
use crate::types::{DType, Layout};

/// The error of an in-place input beside sums over groups, whose kernels read elements after the outputs are written.
fn in_place_beside_sums() -> Error {
    Error::invalid(OPERATION, "an in-place input beside a sum over groups", "an input with its own memory")
}

/// The error of an in-place input without a suitable output.
#[cold]
fn in_place_error(index: usize) -> Error {
    let found = format!("an in-place input for output {index}");
    let wanted = "an output of the run with a value per element, in the input's layout and dtype, whose elements do not overlap";
    Error::invalid(OPERATION, found, wanted)
}

/// Returns an expression that copies elements.
fn copy_of(dtype: DType) -> Result<Expression> {
    let graph = Graph::new();
    graph.expression(&[graph.input(dtype)])
}

/// Returns inputs with the memory of their copies; `None` without copies.
pub(super) fn with_copies<'b, 'a: 'b, M: RunMemory>(
    copies: &'b [Option<M::Memory>],
    inputs: &[M::Input<'a>],
) -> Result<Option<Vec<M::Input<'b>>>> {
    if copies.is_empty() {
        return Ok(None);
    }
    let with_copy = inputs.iter().zip(copies).map(|(input, copy)| {
        let (dtype, layout) = M::described(input);
        match copy {
            Some(copy) => M::input(dtype, copy, Layout::from_shape(*layout.shape())),
            None => M::expand(input, layout.shape()),
        }
    });
    with_copy.collect::<Result<Vec<_>>>().map(Some)
}

impl RowProgramState {
    /// Copies in-place inputs if several expressions write outputs. Returns the copies by input, or none at all.
    pub(in crate::fuse) fn copies<M: RunMemory>(
        &self,
        run: &M,
        given: &[M::Input<'_>],
        inputs: &[M::Input<'_>],
    ) -> Result<Vec<Option<M::Memory>>> {
        if !self.compiled.writes_in_turns() || given.iter().all(|input| M::in_place_of(input).is_none()) {
            return Ok(Vec::new());
        }
        let copy = |(given, input): (&M::Input<'_>, &M::Input<'_>)| {
            if M::in_place_of(given).is_none() {
                return Ok(None);
            }
            let (dtype, layout) = M::described(input);
            let layout = Layout::from_shape(*layout.shape());
            let mut memory = run.allocate(layout.count() * dtype.size())?;
            let to = M::output(dtype, &mut memory, layout)?;
            run.evaluate(&copy_of(dtype)?, &[M::expand(input, layout.shape())?], &[], &mut [to])?;
            Ok(Some(memory))
        };
        given.iter().zip(inputs).map(copy).collect()
    }

    /// Checks the output that an in-place input reads.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the program has sums over groups, and for an output that is missing, has a value per
    /// group, another dtype or layout, or elements that overlap.
    fn check_in_place(
        &self,
        index: usize,
        input: (DType, Layout),
        output: Option<(DType, Layout)>,
    ) -> Result<()> {
        if self.compiled.has_sums {
            return Err(in_place_beside_sums());
        }
        let is_per_element = self.compiled.outputs.get(index).is_some_and(|output| !output.is_per_group);
        match is_per_element && output == Some(input) && !input.1.may_overlap() {
            true => Ok(()),
            false => Err(in_place_error(index)),
        }
    }

    /// Returns the inputs, in-place ones with the memory of their output, which the run borrows; `None` if no input is in place.
    pub(super) fn inputs_in_place<'a, M: RunMemory>(
        &self,
        inputs: &[M::Input<'a>],
        outputs: &[M::Output<'a>],
    ) -> Result<Option<Vec<M::Input<'a>>>> {
        if inputs.iter().all(|input| M::in_place_of(input).is_none()) {
            return Ok(None);
        }
        let resolved = inputs.iter().map(|input| {
            let described = M::described(input);
            let Some(index) = M::in_place_of(input) else { return M::expand(input, described.1.shape()) };
            let output = outputs.get(index);
            self.check_in_place(index, described, output.map(M::described_output))?;
            output.map(M::before).ok_or_else(|| in_place_error(index))
        });
        resolved.collect::<Result<Vec<_>>>().map(Some)
    }
}

impl Finish {
    /// Returns the inputs of the expression, whose outputs are a part of the program's: in-place inputs for those that the run
    /// writes, and inputs with memory otherwise.
    pub(super) fn inputs_in_place<'a>(
        &self,
        given: &[DeviceInput<'a>],
        with_memory: &[DeviceInput<'a>],
        outputs: &[DeviceOutput<'_>],
    ) -> Result<Vec<DeviceInput<'a>>> {
        let own = given.iter().zip(with_memory).map(|(given, with_memory)| {
            let output = given.in_place_of().and_then(|output| {
                let position = self.outputs.iter().position(|of| *of == output)?;
                Some(DeviceInput::output(position, outputs.get(output)?))
            });
            output.map_or_else(|| with_memory.expand(with_memory.layout().shape()), Ok)
        });
        own.collect()
    }
}
