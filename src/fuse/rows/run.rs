//! Runs of row programs, on slices and on device memory: each reduction into temporary memory, then the outputs.

use super::super::device::{DeviceInput, DeviceOutput};
use super::super::host::{HostInput, HostOutput};
use super::super::number::Number;
use super::drawn::Draw;
use super::index::{check_device, check_host};
use super::shape::RowShape;
use super::split::PhaseInput;
use super::{Finish, OPERATION, PhaseOperands, RowProgram, RowProgramState};
use crate::driver::{DeviceBuffer, Stream};
use crate::error::{Error, Result};
use crate::types::{DType, Layout, Shape};

/// The values of a reduction for all groups, or drawn values of all elements, in memory of type `M`.
struct PhaseValues<M> {
    dtype: DType,
    memory: M,
}

/// Returns the shape to which the inputs of a finishing expression broadcast.
fn finish_shape(shape: &RowShape, is_per_group: bool) -> &Shape {
    if is_per_group { &shape.groups } else { &shape.elements }
}

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

fn missing(what: &str) -> Error {
    Error::invalid(OPERATION, format!("no {what}"), "an operand of the program")
}

impl RowProgram {
    /// Computes the outputs on the CPU; see [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about operands.
    pub fn run_host(
        &self,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<()> {
        let state = &*self.0;
        let with_memory;
        let inputs = match inputs.iter().any(|input| input.memory().is_none()) {
            true => {
                with_memory = state.host_inputs_in_place(inputs, outputs)?;
                &with_memory[..]
            }
            false => inputs,
        };
        #[cfg(target_arch = "x86_64")]
        if state.run_last_plan(inputs, scalars, axes, outputs) {
            return Ok(());
        }
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(HostInput::described).collect();
        let of_outputs: Vec<(DType, Layout)> = outputs.iter().map(|output| output.described()).collect();
        let shape = state.row_shape(&of_inputs, scalars.len(), axes, &of_outputs)?;
        if let Some(sums) = &state.sums {
            return sums.run_host(&shape, inputs, scalars, axes, outputs);
        }
        #[cfg(target_arch = "x86_64")]
        if state.run_in_blocks(&shape, inputs, scalars, axes, outputs) {
            return Ok(());
        }
        let [groups, elements] = [shape.groups, shape.elements].map(Layout::from_shape);
        let of_places = shape.places()?;
        let mut places = vec![0i64; if state.places.is_some() { shape.size } else { 0 }];
        if let Some(expression) = &state.places {
            expression.run_host(&[], &[], &mut [HostOutput::new(&mut places, of_places)?])?;
        }
        let places = |within: &Shape| HostInput::new(&places, of_places)?.expand(within);
        let mut drawn: Vec<PhaseValues<Vec<u64>>> = Vec::with_capacity(state.draws.len());
        for Draw { expression, operands } in &state.draws {
            let dtype = expression.outputs()[0];
            let mut memory = vec![0u64; (elements.count() * dtype.size()).div_ceil(8)];
            let of_draw =
                operands.numbers().map(|number| inputs[number].expand(inputs[number].layout().shape()));
            let of_draw = of_draw.collect::<Result<Vec<_>>>()?;
            let output = HostOutput::of_bytes(dtype, bytemuck::cast_slice_mut(&mut memory), elements)?;
            expression.run_host(&of_draw, &operands.scalars(scalars, &shape), &mut [output])?;
            drawn.push(PhaseValues { dtype, memory });
        }
        let mut values: Vec<PhaseValues<Vec<u64>>> = Vec::with_capacity(state.reductions.len());
        for reduction in &state.reductions {
            let dtype = reduction.reduction.output();
            // Words, so that the address is aligned for any element.
            let mut memory = vec![0u64; (groups.count() * dtype.size()).div_ceil(8)];
            let of_phase = reduction.operands.host_inputs(
                inputs,
                [&values, &drawn],
                &places,
                groups,
                &shape.elements,
            )?;
            let scalars = reduction.operands.scalars(scalars, &shape);
            let mut output = HostOutput::of_bytes(dtype, bytemuck::cast_slice_mut(&mut memory), groups)?;
            reduction.reduction.run_host(&of_phase, &scalars, &mut output)?;
            values.push(PhaseValues { dtype, memory });
        }
        for index in &state.indices {
            let mut found = vec![0i64; groups.count()];
            let of_phase =
                index.operands.host_inputs(inputs, [&values, &drawn], &places, groups, &shape.groups)?;
            let scalars = index.operands.scalars(scalars, &shape);
            index.expression.run_host(&of_phase, &scalars, &mut [HostOutput::new(&mut found, groups)?])?;
            check_host(index.error, &found, shape.size)?;
        }
        for finish in &state.finishes {
            let within = finish_shape(&shape, finish.is_per_group);
            let of_phase = finish.operands.host_inputs(inputs, [&values, &drawn], &places, groups, within)?;
            let scalars = finish.operands.scalars(scalars, &shape);
            let chosen = outputs.iter_mut().zip(&state.outputs);
            let chosen = chosen.filter(|(_, output)| output.is_per_group == finish.is_per_group);
            let mut chosen: Vec<HostOutput<'_>> = chosen.map(|(output, _)| output.reborrow()).collect();
            finish.expression.run_host(&of_phase, &scalars, &mut chosen)?;
        }
        Ok(())
    }

    /// Computes the outputs of inputs, which are broadcast to one shape. `axes` are the axes of a group in this
    /// shape; a negative axis counts from the last. An output has the shape of the elements, or the same with
    /// size 1 in the axes of a group if it is [per group](Self::is_per_group).
    ///
    /// Two equal runs give equal bits, which [`run_host`](Self::run_host) gives too, except the sign and payload
    /// of a NaN. Sums of empty groups are 0, and means of them NaN.
    ///
    /// An output with a value per element may replace the elements of an [in-place input](DeviceInput::output). In one kernel
    /// each thread then writes an element after its last read of it.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands or scalars that differ from the
    /// program's; [`Error::InvalidArgument`] for inputs without a common shape, an axis that does not exist or is
    /// listed twice, an output of another shape, an in-place input beside a
    /// [sum over groups](super::super::Expr::sum_over_groups) or without a suitable output, and a minimum or maximum of empty groups;
    /// errors of allocating temporary memory, of [`Device::load`](crate::driver::Device::load) and of a launch.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<()> {
        let state = &*self.0;
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let of_outputs: Vec<(DType, Layout)> = outputs.iter().map(|output| output.described()).collect();
        let shape = state.row_shape(&of_inputs, scalars.len(), axes, &of_outputs)?;
        let (given, with_memory) = (inputs, state.device_inputs_in_place(inputs, outputs)?);
        let inputs = with_memory.as_deref().unwrap_or(given);
        if let Some(sums) = &state.sums {
            return sums.run(stream, &shape, inputs, scalars, axes, outputs);
        }
        if state.run_fused(stream, &shape, [given, inputs], scalars, outputs)? {
            return Ok(());
        }
        let [groups, elements] = [shape.groups, shape.elements].map(Layout::from_shape);
        let of_places = shape.places()?;
        let bytes = if state.places.is_some() { 8 * shape.size } else { 0 };
        let mut places = stream.uninitialized::<u8>(bytes)?;
        if let Some(expression) = &state.places {
            let output = DeviceOutput::of_bytes(DType::I64, &mut places, of_places)?;
            expression.run(stream, &[], &[], &mut [output])?;
        }
        let places = |within: &Shape| DeviceInput::of_bytes(DType::I64, &places, of_places)?.expand(within);
        let mut drawn: Vec<PhaseValues<DeviceBuffer<u8>>> = Vec::with_capacity(state.draws.len());
        for Draw { expression, operands } in &state.draws {
            let dtype = expression.outputs()[0];
            let mut memory = stream.uninitialized::<u8>(elements.count() * dtype.size())?;
            let of_draw =
                operands.numbers().map(|number| inputs[number].expand(inputs[number].layout().shape()));
            let of_draw = of_draw.collect::<Result<Vec<_>>>()?;
            let output = DeviceOutput::of_bytes(dtype, &mut memory, elements)?;
            expression.run(stream, &of_draw, &operands.scalars(scalars, &shape), &mut [output])?;
            drawn.push(PhaseValues { dtype, memory });
        }
        let mut values: Vec<PhaseValues<DeviceBuffer<u8>>> = Vec::with_capacity(state.reductions.len());
        for reduction in &state.reductions {
            let dtype = reduction.reduction.output();
            let mut memory = stream.uninitialized::<u8>(groups.count() * dtype.size())?;
            let of_phase = reduction.operands.device_inputs(
                inputs,
                [&values, &drawn],
                &places,
                groups,
                &shape.elements,
            )?;
            let scalars = reduction.operands.scalars(scalars, &shape);
            let mut output = DeviceOutput::of_bytes(dtype, &mut memory, groups)?;
            reduction.reduction.run(stream, &of_phase, &scalars, &mut output)?;
            values.push(PhaseValues { dtype, memory });
        }
        for index in &state.indices {
            let mut found = stream.uninitialized::<u8>(8 * groups.count())?;
            let of_phase =
                index.operands.device_inputs(inputs, [&values, &drawn], &places, groups, &shape.groups)?;
            let scalars = index.operands.scalars(scalars, &shape);
            let output = DeviceOutput::of_bytes(DType::I64, &mut found, groups)?;
            index.expression.run(stream, &of_phase, &scalars, &mut [output])?;
            let found = DeviceInput::of_bytes(DType::I64, &found, groups)?;
            let memory = found.memory().ok_or_else(|| missing("memory of an index"))?;
            check_device(index.error, stream, memory, groups.count(), shape.size)?;
        }
        for finish in &state.finishes {
            let within = finish_shape(&shape, finish.is_per_group);
            // The expression reads an element where it writes it, so it reads in-place inputs as such.
            let of_finish = finish.inputs_in_place(given, inputs, outputs)?;
            let of_phase =
                finish.operands.device_inputs(&of_finish, [&values, &drawn], &places, groups, within)?;
            let scalars = finish.operands.scalars(scalars, &shape);
            let chosen = outputs.iter_mut().zip(&state.outputs);
            let chosen = chosen.filter(|(_, output)| output.is_per_group == finish.is_per_group);
            let mut chosen: Vec<DeviceOutput<'_>> = chosen.map(|(output, _)| output.reborrow()).collect();
            finish.expression.run(stream, &of_phase, &scalars, &mut chosen)?;
        }
        Ok(())
    }
}

impl RowProgramState {
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
    fn host_inputs_in_place<'a>(
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
    fn device_inputs_in_place<'a>(
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
    fn inputs_in_place<'a>(
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

impl PhaseOperands {
    /// Returns the numbers of the program's inputs that the phase reads.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().filter_map(|input| match *input {
            PhaseInput::Input(number) => Some(number),
            PhaseInput::Group(_) | PhaseInput::Index | PhaseInput::Drawn(_) => None,
        })
    }

    /// Returns the inputs of a phase: those of the program by `expand`, and values of groups and elements by `of_values`,
    /// which gets true for the former.
    fn list<'v, I, M>(
        &self,
        inputs: &[I],
        [values, drawn]: [&'v [PhaseValues<M>]; 2],
        places: impl Fn() -> Result<I>,
        expand: impl Fn(&I) -> Result<I>,
        of_values: impl Fn(&'v PhaseValues<M>, bool) -> Result<I>,
    ) -> Result<Vec<I>> {
        let input = |input: &PhaseInput| match *input {
            PhaseInput::Input(index) => expand(inputs.get(index).ok_or_else(|| missing("input"))?),
            PhaseInput::Index => places(),
            PhaseInput::Group(index) => {
                of_values(values.get(index).ok_or_else(|| missing("value of a group"))?, true)
            }
            PhaseInput::Drawn(index) => {
                of_values(drawn.get(index).ok_or_else(|| missing("random words"))?, false)
            }
        };
        self.inputs.iter().map(input).collect()
    }

    /// Returns the inputs of a phase, broadcast to a shape.
    fn host_inputs<'a, 'p: 'a>(
        &self,
        inputs: &[HostInput<'a>],
        values: [&'a [PhaseValues<Vec<u64>>]; 2],
        places: &impl Fn(&Shape) -> Result<HostInput<'p>>,
        groups: Layout,
        shape: &Shape,
    ) -> Result<Vec<HostInput<'a>>> {
        self.list(
            inputs,
            values,
            || places(shape),
            |input| input.expand(shape),
            |value, is_per_group| {
                let layout = if is_per_group { groups.expand(shape)? } else { Layout::from_shape(*shape) };
                HostInput::of_bytes(value.dtype, bytemuck::cast_slice(&value.memory), layout)
            },
        )
    }

    /// As [`host_inputs`](Self::host_inputs), on a device.
    fn device_inputs<'a, 'p: 'a>(
        &self,
        inputs: &[DeviceInput<'a>],
        values: [&'a [PhaseValues<DeviceBuffer<u8>>]; 2],
        places: &impl Fn(&Shape) -> Result<DeviceInput<'p>>,
        groups: Layout,
        shape: &Shape,
    ) -> Result<Vec<DeviceInput<'a>>> {
        self.list(
            inputs,
            values,
            || places(shape),
            |input| input.expand(shape),
            |value, is_per_group| {
                let layout = if is_per_group { groups.expand(shape)? } else { Layout::from_shape(*shape) };
                DeviceInput::of_bytes(value.dtype, &value.memory, layout)
            },
        )
    }
}
