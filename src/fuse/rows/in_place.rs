//! In-place inputs of row programs: their checks, their memory, and copies of them.
//!
//! One expression reads an element before it writes it. If several expressions write outputs per element, a later one
//! would read elements that an earlier one has written, so the run copies in-place inputs first.

use super::super::device::{DeviceInput, DeviceOutput};
use super::super::expression::Expression;
use super::super::graph::Graph;
use super::super::host::{HostInput, HostOutput};
use super::{Finish, OPERATION, RowProgramState};
use crate::driver::{DeviceBuffer, Stream};
use crate::error::{Error, Result};
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
pub(super) fn with_host_copies<'a>(
    copies: &'a [Option<Vec<u64>>],
    inputs: &[HostInput<'a>],
) -> Result<Option<Vec<HostInput<'a>>>> {
    if copies.is_empty() {
        return Ok(None);
    }
    let with_copy = inputs.iter().zip(copies).map(|(input, copy)| match copy {
        Some(copy) => {
            let layout = Layout::from_shape(*input.layout().shape());
            HostInput::of_bytes(input.dtype(), bytemuck::cast_slice(copy), layout)
        }
        None => input.expand(input.layout().shape()),
    });
    with_copy.collect::<Result<Vec<_>>>().map(Some)
}

/// As [`with_host_copies`], on a device.
pub(super) fn with_device_copies<'a>(
    copies: &'a [Option<DeviceBuffer<u8>>],
    inputs: &[DeviceInput<'a>],
) -> Result<Option<Vec<DeviceInput<'a>>>> {
    if copies.is_empty() {
        return Ok(None);
    }
    let with_copy = inputs.iter().zip(copies).map(|(input, copy)| match copy {
        Some(copy) => DeviceInput::of_bytes(input.dtype(), copy, Layout::from_shape(*input.layout().shape())),
        None => input.expand(input.layout().shape()),
    });
    with_copy.collect::<Result<Vec<_>>>().map(Some)
}

impl RowProgramState {
    /// Returns whether several expressions write outputs per element.
    pub(super) fn writes_in_turns(&self) -> bool {
        self.finishes.iter().filter(|finish| !finish.is_per_group).count() > 1
    }

    /// Copies in-place inputs if several expressions write outputs. Returns the copies by input, or none at all.
    pub(super) fn host_copies(
        &self,
        given: &[HostInput<'_>],
        inputs: &[HostInput<'_>],
    ) -> Result<Vec<Option<Vec<u64>>>> {
        if !self.writes_in_turns() || given.iter().all(|input| input.in_place_of().is_none()) {
            return Ok(Vec::new());
        }
        let copy = |(given, input): (&HostInput<'_>, &HostInput<'_>)| {
            if given.in_place_of().is_none() {
                return Ok(None);
            }
            let layout = Layout::from_shape(*input.layout().shape());
            let mut memory = vec![0u64; (layout.count() * input.dtype().size()).div_ceil(8)];
            let to = HostOutput::of_bytes(input.dtype(), bytemuck::cast_slice_mut(&mut memory), layout)?;
            copy_of(input.dtype())?.run_host(&[input.expand(layout.shape())?], &[], &mut [to])?;
            Ok(Some(memory))
        };
        given.iter().zip(inputs).map(copy).collect()
    }

    /// As [`host_copies`](Self::host_copies), on a device.
    pub(super) fn device_copies(
        &self,
        stream: &Stream,
        given: &[DeviceInput<'_>],
        inputs: &[DeviceInput<'_>],
    ) -> Result<Vec<Option<DeviceBuffer<u8>>>> {
        if !self.writes_in_turns() || given.iter().all(|input| input.in_place_of().is_none()) {
            return Ok(Vec::new());
        }
        let copy = |(given, input): (&DeviceInput<'_>, &DeviceInput<'_>)| {
            if given.in_place_of().is_none() {
                return Ok(None);
            }
            let layout = Layout::from_shape(*input.layout().shape());
            let mut memory = stream.uninitialized::<u8>(layout.count() * input.dtype().size())?;
            let to = DeviceOutput::of_bytes(input.dtype(), &mut memory, layout)?;
            copy_of(input.dtype())?.run(stream, &[input.expand(layout.shape())?], &[], &mut [to])?;
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
        if self.sums.is_some() {
            return Err(in_place_beside_sums());
        }
        let is_per_element = self.outputs.get(index).is_some_and(|output| !output.is_per_group);
        match is_per_element && output == Some(input) && !input.1.may_overlap() {
            true => Ok(()),
            false => Err(in_place_error(index)),
        }
    }

    /// Returns the inputs, in-place ones with the address of their output. The outputs are borrowed by the run.
    pub(super) fn host_inputs_in_place<'a>(
        &self,
        inputs: &[HostInput<'a>],
        outputs: &[HostOutput<'a>],
    ) -> Result<Vec<HostInput<'a>>> {
        let resolved = inputs.iter().map(|input| {
            let Some(index) = input.in_place_of() else { return input.expand(input.layout().shape()) };
            let output = outputs.get(index);
            self.check_in_place(index, input.described(), output.map(HostOutput::described))?;
            output.map(HostInput::before).ok_or_else(|| in_place_error(index))
        });
        resolved.collect()
    }

    /// Returns the inputs, in-place ones with the memory of their output; `None` if no input is in place.
    pub(super) fn device_inputs_in_place<'a>(
        &self,
        inputs: &[DeviceInput<'a>],
        outputs: &[DeviceOutput<'a>],
    ) -> Result<Option<Vec<DeviceInput<'a>>>> {
        if inputs.iter().all(|input| input.in_place_of().is_none()) {
            return Ok(None);
        }
        let resolved = inputs.iter().map(|input| {
            let Some(index) = input.in_place_of() else { return input.expand(input.layout().shape()) };
            let output = outputs.get(index);
            self.check_in_place(index, input.described(), output.map(DeviceOutput::described))?;
            output.map(DeviceInput::before).ok_or_else(|| in_place_error(index))
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
                let place = self.outputs.iter().position(|of| *of == output)?;
                Some(DeviceInput::output(place, outputs.get(output)?))
            });
            output.map_or_else(|| with_memory.expand(with_memory.layout().shape()), Ok)
        });
        own.collect()
    }
}
