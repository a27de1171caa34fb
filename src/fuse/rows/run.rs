//! Runs of row programs, on slices and on device memory: each reduction into temporary memory, then the outputs.

use super::super::device::{DeviceInput, DeviceOutput};
use super::super::host::{HostInput, HostOutput};
use super::super::number::Number;
use super::in_place::{with_device_copies, with_host_copies};
use super::index::{check_device, check_host};
use super::shape::RowShape;
use super::split::PhaseInput;
use super::stored::StoredKind;
use super::{OPERATION, PhaseOperands, RowProgram};
use crate::driver::{DeviceBuffer, Stream};
use crate::error::{Error, Result};
use crate::types::{DType, Layout, Shape};

/// The values of a reduction, or stored values, in memory of type `M`.
struct PhaseValues<M> {
    dtype: DType,
    /// One value for each group, or one for each element.
    is_per_group: bool,
    memory: M,
}

/// Returns the shape to which the inputs of a finishing expression broadcast.
fn finish_shape(shape: &RowShape, is_per_group: bool) -> &Shape {
    if is_per_group { &shape.groups } else { &shape.elements }
}

pub(super) fn missing(what: &str) -> Error {
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
        let (state, given) = (&*self.0, inputs);
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
        let copies = state.host_copies(given, inputs)?;
        let copied = with_host_copies(&copies, inputs)?;
        let inputs = copied.as_deref().unwrap_or(inputs);
        let mut stored: Vec<PhaseValues<Vec<u64>>> = Vec::new();
        let mut values: Vec<PhaseValues<Vec<u64>>> = Vec::with_capacity(state.reductions.len());
        for number in 0..=state.reductions.len() {
            for of in state.stored.iter().filter(|of| of.after == number) {
                let is_per_group = of.kind == StoredKind::Groups;
                let layout = if is_per_group { groups } else { elements };
                let of_phase = match of.kind {
                    StoredKind::Words => {
                        of.operands.word_inputs(inputs, |input| input.expand(input.layout().shape()))?
                    }
                    _ => of.operands.host_inputs(
                        inputs,
                        [&values, &stored],
                        &places,
                        groups,
                        layout.shape(),
                    )?,
                };
                let mut found = Vec::new();
                for &dtype in of.expression.outputs() {
                    let memory = vec![0u64; (layout.count() * dtype.size()).div_ceil(8)];
                    found.push(PhaseValues { dtype, is_per_group, memory });
                }
                let mut targets = Vec::with_capacity(found.len());
                for PhaseValues { dtype, memory, .. } in &mut found {
                    targets.push(HostOutput::of_bytes(*dtype, bytemuck::cast_slice_mut(memory), layout)?);
                }
                of.expression.run_host(&of_phase, &of.operands.scalars(scalars, &shape), &mut targets)?;
                drop((targets, of_phase));
                stored.extend(found);
            }
            let Some(reduction) = state.reductions.get(number) else { break };
            let dtype = reduction.reduction.output();
            // Words, so that the address is aligned for any element.
            let mut memory = vec![0u64; (groups.count() * dtype.size()).div_ceil(8)];
            let of_phase = reduction.operands.host_inputs(
                inputs,
                [&values, &stored],
                &places,
                groups,
                &shape.elements,
            )?;
            let scalars = reduction.operands.scalars(scalars, &shape);
            let mut output = HostOutput::of_bytes(dtype, bytemuck::cast_slice_mut(&mut memory), groups)?;
            reduction.reduction.run_host(&of_phase, &scalars, &mut output)?;
            drop(of_phase);
            values.push(PhaseValues { dtype, is_per_group: true, memory });
        }
        for index in &state.indices {
            let mut found = vec![0i64; groups.count()];
            let of_phase =
                index.operands.host_inputs(inputs, [&values, &stored], &places, groups, &shape.groups)?;
            let scalars = index.operands.scalars(scalars, &shape);
            index.expression.run_host(&of_phase, &scalars, &mut [HostOutput::new(&mut found, groups)?])?;
            check_host(index.error, &found, shape.size)?;
        }
        for finish in &state.finishes {
            let within = finish_shape(&shape, finish.is_per_group);
            let of_phase =
                finish.operands.host_inputs(inputs, [&values, &stored], &places, groups, within)?;
            let scalars = finish.operands.scalars(scalars, &shape);
            let chosen = outputs.iter_mut().enumerate().filter(|(number, _)| finish.outputs.contains(number));
            let mut chosen: Vec<HostOutput<'_>> = chosen.map(|(_, output)| output.reborrow()).collect();
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
        let copies = state.device_copies(stream, given, inputs)?;
        let copied = with_device_copies(&copies, inputs)?;
        let (given, inputs) = copied.as_deref().map_or((given, inputs), |copied| (copied, copied));
        let mut stored: Vec<PhaseValues<DeviceBuffer<u8>>> = Vec::new();
        let mut values: Vec<PhaseValues<DeviceBuffer<u8>>> = Vec::with_capacity(state.reductions.len());
        for number in 0..=state.reductions.len() {
            for of in state.stored.iter().filter(|of| of.after == number) {
                let is_per_group = of.kind == StoredKind::Groups;
                let layout = if is_per_group { groups } else { elements };
                let of_phase = match of.kind {
                    StoredKind::Words => {
                        of.operands.word_inputs(inputs, |input| input.expand(input.layout().shape()))?
                    }
                    _ => of.operands.device_inputs(
                        inputs,
                        [&values, &stored],
                        &places,
                        groups,
                        layout.shape(),
                    )?,
                };
                let mut found = Vec::new();
                for &dtype in of.expression.outputs() {
                    let memory = stream.uninitialized::<u8>(layout.count() * dtype.size())?;
                    found.push(PhaseValues { dtype, is_per_group, memory });
                }
                let mut targets = Vec::with_capacity(found.len());
                for PhaseValues { dtype, memory, .. } in &mut found {
                    targets.push(DeviceOutput::of_bytes(*dtype, memory, layout)?);
                }
                of.expression.run(stream, &of_phase, &of.operands.scalars(scalars, &shape), &mut targets)?;
                drop((targets, of_phase));
                stored.extend(found);
            }
            let Some(reduction) = state.reductions.get(number) else { break };
            let dtype = reduction.reduction.output();
            let mut memory = stream.uninitialized::<u8>(groups.count() * dtype.size())?;
            let of_phase = reduction.operands.device_inputs(
                inputs,
                [&values, &stored],
                &places,
                groups,
                &shape.elements,
            )?;
            let scalars = reduction.operands.scalars(scalars, &shape);
            let mut output = DeviceOutput::of_bytes(dtype, &mut memory, groups)?;
            reduction.reduction.run(stream, &of_phase, &scalars, &mut output)?;
            drop(of_phase);
            values.push(PhaseValues { dtype, is_per_group: true, memory });
        }
        for index in &state.indices {
            let mut found = stream.uninitialized::<u8>(8 * groups.count())?;
            let of_phase =
                index.operands.device_inputs(inputs, [&values, &stored], &places, groups, &shape.groups)?;
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
                finish.operands.device_inputs(&of_finish, [&values, &stored], &places, groups, within)?;
            let scalars = finish.operands.scalars(scalars, &shape);
            let chosen = outputs.iter_mut().enumerate().filter(|(number, _)| finish.outputs.contains(number));
            let mut chosen: Vec<DeviceOutput<'_>> = chosen.map(|(_, output)| output.reborrow()).collect();
            finish.expression.run(stream, &of_phase, &scalars, &mut chosen)?;
        }
        Ok(())
    }
}

impl PhaseOperands {
    /// Returns the numbers of the program's inputs that the phase reads.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().filter_map(|input| match *input {
            PhaseInput::Input(number) => Some(number),
            PhaseInput::Group(_) | PhaseInput::Index | PhaseInput::Stored(_) => None,
        })
    }

    /// Returns the inputs of random words, which have one element each.
    fn word_inputs<I>(&self, inputs: &[I], unchanged: impl Fn(&I) -> Result<I>) -> Result<Vec<I>> {
        self.numbers().map(|number| unchanged(inputs.get(number).ok_or_else(|| missing("input"))?)).collect()
    }

    /// Returns the inputs of a phase: those of the program by `expand`, and values of reductions and stored values by `of_values`.
    fn list<'v, I, M>(
        &self,
        inputs: &[I],
        [values, stored]: [&'v [PhaseValues<M>]; 2],
        places: impl Fn() -> Result<I>,
        expand: impl Fn(&I) -> Result<I>,
        of_values: impl Fn(&'v PhaseValues<M>) -> Result<I>,
    ) -> Result<Vec<I>> {
        let input = |input: &PhaseInput| match *input {
            PhaseInput::Input(index) => expand(inputs.get(index).ok_or_else(|| missing("input"))?),
            PhaseInput::Index => places(),
            PhaseInput::Group(index) => {
                of_values(values.get(index).ok_or_else(|| missing("value of a group"))?)
            }
            PhaseInput::Stored(index) => of_values(stored.get(index).ok_or_else(|| missing("stored value"))?),
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
            |value| {
                let layout =
                    if value.is_per_group { groups.expand(shape)? } else { Layout::from_shape(*shape) };
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
            |value| {
                let layout =
                    if value.is_per_group { groups.expand(shape)? } else { Layout::from_shape(*shape) };
                DeviceInput::of_bytes(value.dtype, &value.memory, layout)
            },
        )
    }
}
