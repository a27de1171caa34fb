//! Runs of row programs, on slices and on device memory: each reduction into temporary memory, then the outputs.

use super::elementwise_device::{DeviceInput, DeviceOutput};
use super::row_program::{RowProgram, RowProgramState};
use super::rows_in_place::with_copies;
use super::rows_run_memory::{HostRun, RunMemory};
use crate::driver::Stream;
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu::native::last_level_cache;
use crate::fuse::cpu::{HostInput, HostOutput};
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::{OPERATION, PhaseOperands};
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_stored::StoredKind;
use crate::types::{DType, Layout, Shape};

/// The values of a reduction, or stored values, in memory of type `M`.
struct PhaseValues<M> {
    dtype: DType,
    /// One value for each group, or one for each element.
    is_per_group: bool,
    memory: M,
}

pub(in crate::fuse) fn missing(what: &str) -> Error {
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
        let with_memory = state.inputs_in_place::<HostRun>(inputs, outputs)?;
        let inputs = with_memory.as_deref().unwrap_or(given);
        #[cfg(target_arch = "x86_64")]
        if state.blocks.run_last_plan(&state.compiled, inputs, scalars, axes, outputs) {
            return Ok(());
        }
        let shape = state.shape_of::<HostRun>(inputs, scalars, axes, outputs)?;
        if let Some(sums) = &state.sums {
            return sums.run_host(&shape, inputs, scalars, axes, outputs);
        }
        #[cfg(target_arch = "x86_64")]
        {
            let (compiled, least) = (&state.compiled, last_level_cache());
            let run = state.blocks.run(compiled, least, &shape, inputs, scalars, axes, outputs);
            if run.is_some() {
                return Ok(());
            }
        }
        state.run_phases(&HostRun, &shape, [given, inputs], scalars, outputs)
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
    /// [sum over groups](crate::fuse::Expr::sum_over_groups) or without a suitable output, and a minimum or maximum of empty groups;
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
        let shape = state.shape_of::<Stream>(inputs, scalars, axes, outputs)?;
        let (given, with_memory) = (inputs, state.inputs_in_place::<Stream>(inputs, outputs)?);
        let inputs = with_memory.as_deref().unwrap_or(given);
        if let Some(sums) = &state.sums {
            return sums.run(stream, &shape, inputs, scalars, axes, outputs);
        }
        if state.run_fused(stream, &shape, [given, inputs], scalars, outputs)? {
            return Ok(());
        }
        state.run_phases(stream, &shape, [given, inputs], scalars, outputs)
    }

    /// Computes the outputs like [`run_host`](Self::run_host) by blocks of rows, with streaming stores if the outputs have more
    /// than `least` bytes in all. Returns the number of calls that had them; `None` if there is no plan.
    ///
    /// # Errors
    ///
    /// As [`run_host`](Self::run_host).
    #[doc(hidden)]
    #[cfg(target_arch = "x86_64")]
    pub fn run_host_streaming(
        &self,
        least: usize,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<Option<usize>> {
        let shape = self.0.shape_of::<HostRun>(inputs, scalars, axes, outputs)?;
        let (state, compiled) = (&self.0, &self.0.compiled);
        Ok(state.blocks.run(compiled, least, &shape, inputs, scalars, axes, outputs))
    }
}

impl RowProgramState {
    /// Checks the operands of a run, and returns its shape.
    ///
    /// # Errors
    ///
    /// As `CompiledRows::row_shape`.
    pub(in crate::fuse) fn shape_of<M: RunMemory>(
        &self,
        inputs: &[M::Input<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &[M::Output<'_>],
    ) -> Result<RowShape> {
        let inputs: Vec<(DType, Layout)> = inputs.iter().map(|input| M::described(input)).collect();
        let outputs: Vec<(DType, Layout)> =
            outputs.iter().map(|output| M::described_output(output)).collect();
        self.compiled.row_shape(&inputs, scalars.len(), axes, &outputs)
    }

    /// Computes the outputs by phases: each reduction into temporary memory, then the outputs. `given` has in-place inputs as
    /// such, and `inputs` has them with their memory.
    fn run_phases<M: RunMemory>(
        &self,
        run: &M,
        shape: &RowShape,
        [given, inputs]: [&[M::Input<'_>]; 2],
        scalars: &[Number],
        outputs: &mut [M::Output<'_>],
    ) -> Result<()> {
        let copies = self.copies(run, given, inputs)?;
        match with_copies::<M>(&copies, inputs)? {
            Some(copied) => self.run_all(run, shape, [&copied, &copied], scalars, outputs),
            None => self.run_all(run, shape, [given, inputs], scalars, outputs),
        }
    }

    /// As [`run_phases`](Self::run_phases), on in-place inputs whose memory may be written.
    fn run_all<M: RunMemory>(
        &self,
        run: &M,
        shape: &RowShape,
        [given, inputs]: [&[M::Input<'_>]; 2],
        scalars: &[Number],
        outputs: &mut [M::Output<'_>],
    ) -> Result<()> {
        let compiled = &*self.compiled;
        let [groups, elements] = [shape.groups, shape.elements].map(Layout::from_shape);
        let of_element_indices = shape.element_indices()?;
        let mut element_indices =
            run.allocate(if self.element_indices.is_some() { 8 * shape.size } else { 0 })?;
        if let Some(expression) = &self.element_indices {
            run.evaluate(
                expression,
                &[],
                &[],
                &mut [M::output(DType::I64, &mut element_indices, of_element_indices)?],
            )?;
        }
        let (values, stored) = (Vec::new(), Vec::new());
        let mut of_run =
            PhaseSources::<'_, '_, M> { inputs, values, stored, element_indices, of_element_indices, groups };
        for reduction_index in 0..=self.reductions.len() {
            let stored = compiled.stored.iter().zip(&self.stored);
            for (of, expression) in stored.filter(|(of, _)| of.after == reduction_index) {
                let is_per_group = of.kind == StoredKind::Groups;
                let layout = if is_per_group { groups } else { elements };
                let of_phase = match of.kind {
                    StoredKind::Words => of_run.words(&of.operands)?,
                    StoredKind::Elements | StoredKind::Groups => of_run.of(&of.operands, layout.shape())?,
                };
                let mut found = Vec::new();
                for &dtype in expression.outputs() {
                    let memory = run.allocate(layout.count() * dtype.size())?;
                    found.push(PhaseValues { dtype, is_per_group, memory });
                }
                let mut targets = Vec::with_capacity(found.len());
                for PhaseValues { dtype, memory, .. } in &mut found {
                    targets.push(M::output(*dtype, memory, layout)?);
                }
                run.evaluate(expression, &of_phase, &of.operands.scalars(scalars, shape), &mut targets)?;
                drop((targets, of_phase));
                of_run.stored.extend(found);
            }
            let Some(reduction) = self.reductions.get(reduction_index) else { break };
            let operands = &compiled.reductions[reduction_index].operands;
            let dtype = reduction.output();
            let mut memory = run.allocate(groups.count() * dtype.size())?;
            let of_phase = of_run.of(operands, &shape.elements)?;
            let mut output = M::output(dtype, &mut memory, groups)?;
            run.reduce(reduction, &of_phase, &operands.scalars(scalars, shape), &mut output)?;
            drop((output, of_phase));
            of_run.values.push(PhaseValues { dtype, is_per_group: true, memory });
        }
        for (index, expression) in compiled.indices.iter().zip(&self.indices) {
            let mut found = run.allocate(8 * groups.count())?;
            let of_phase = of_run.of(&index.operands, &shape.groups)?;
            let scalars = index.operands.scalars(scalars, shape);
            let output = M::output(DType::I64, &mut found, groups)?;
            run.evaluate(expression, &of_phase, &scalars, &mut [output])?;
            run.check(index.error, &found, groups, shape.size)?;
        }
        for (finish, expression) in compiled.finishes.iter().zip(&self.finishes) {
            let within = if finish.is_per_group { &shape.groups } else { &shape.elements };
            let of_finish = M::inputs_of(finish, given, of_run.inputs, outputs)?;
            let of_phase = of_run.with(&of_finish, &finish.operands, within)?;
            let scalars = finish.operands.scalars(scalars, shape);
            let chosen = outputs.iter_mut().enumerate().filter(|(output, _)| finish.outputs.contains(output));
            let mut chosen: Vec<M::Output<'_>> = chosen.map(|(_, output)| M::reborrow(output)).collect();
            run.evaluate(expression, &of_phase, &scalars, &mut chosen)?;
        }
        Ok(())
    }
}

/// The operands of phases: inputs, and the values that the phases before computed.
struct PhaseSources<'r, 'i, M: RunMemory> {
    inputs: &'r [M::Input<'i>],
    values: Vec<PhaseValues<M::Memory>>,
    stored: Vec<PhaseValues<M::Memory>>,
    element_indices: M::Memory,
    of_element_indices: Layout,
    groups: Layout,
}

impl<'i, M: RunMemory> PhaseSources<'_, 'i, M> {
    /// Returns the inputs of random words, which have one element each.
    fn words<'a>(&'a self, phase: &PhaseOperands) -> Result<Vec<M::Input<'a>>>
    where
        'i: 'a,
    {
        let unchanged = |input_index: usize| {
            let input = self.inputs.get(input_index).ok_or_else(|| missing("input"))?;
            M::expand(input, M::described(input).1.shape())
        };
        phase.numbers().map(unchanged).collect()
    }

    /// Returns the inputs of a phase, broadcast to a shape.
    fn of<'a>(&'a self, phase: &PhaseOperands, shape: &Shape) -> Result<Vec<M::Input<'a>>>
    where
        'i: 'a,
    {
        self.with(self.inputs, phase, shape)
    }

    /// As [`of`](Self::of), with other inputs of the program.
    fn with<'a>(
        &'a self,
        inputs: &[M::Input<'i>],
        phase: &PhaseOperands,
        shape: &Shape,
    ) -> Result<Vec<M::Input<'a>>>
    where
        'i: 'a,
    {
        let value = |value: &'a PhaseValues<M::Memory>| {
            let layout =
                if value.is_per_group { self.groups.expand(shape)? } else { Layout::from_shape(*shape) };
            M::input(value.dtype, &value.memory, layout)
        };
        let input = |input: &PhaseInput| match *input {
            PhaseInput::Input(index) => M::expand(inputs.get(index).ok_or_else(|| missing("input"))?, shape),
            PhaseInput::Index => {
                M::input(DType::I64, &self.element_indices, self.of_element_indices.expand(shape)?)
            }
            PhaseInput::Group(index) => {
                value(self.values.get(index).ok_or_else(|| missing("value of a group"))?)
            }
            PhaseInput::Stored(index) => {
                value(self.stored.get(index).ok_or_else(|| missing("stored value"))?)
            }
        };
        phase.inputs.iter().map(input).collect()
    }
}
