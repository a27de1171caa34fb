//! Sums over groups on a device.

use super::elementwise_device::{DeviceInput, DeviceOutput, assembled};
use super::expression::Expression;
use super::rows_device::{self, at_offsets};
use super::rows_sums::SumsOverGroups;
use crate::driver::{Device, DeviceBuffer, Function, Operand, OperandAccess, Stream, View};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::{CompiledRows, OPERATION};
use crate::fuse::plan::elementwise::WIDEST;
use crate::fuse::plan::rows_key::{RowKey, RowOperands};
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_stages::RowStages;
use crate::fuse::plan::rows_storage::RowDevice;
use crate::fuse::plan::rows_sums::{CHUNK, SumKey, SumLaunch, SumTerms};
use crate::types::{DType, Layout};

fn no_memory() -> Error {
    Error::invalid(OPERATION, "an in-place input", "an input with its own memory")
}

/// Returns the operands of a kernel: inputs and outputs at their offsets, then workspaces.
fn operands<'a>(
    read: impl Iterator<Item = View<'a>>,
    written: impl Iterator<Item = View<'a>>,
    offsets: &[usize],
    workspaces: impl Iterator<Item = View<'a>>,
) -> Vec<Operand<'a>> {
    let read = read.map(|view| (view, OperandAccess::Read));
    let written = written.map(|view| (view, OperandAccess::Write));
    let workspaces =
        workspaces.map(|view| Operand { view, address: view.address, access: OperandAccess::Write });
    at_offsets(read.chain(written), offsets).chain(workspaces).collect()
}

/// Returns the memory of workspaces.
fn as_views<'a>(workspaces: impl Iterator<Item = &'a mut DeviceBuffer<u8>>) -> Result<Vec<View<'a>>> {
    let view = |memory: &'a mut DeviceBuffer<u8>| {
        let bytes = Layout::contiguous(&[memory.len()])?;
        Ok(DeviceOutput::of_bytes(DType::U8, memory, bytes)?.memory())
    };
    workspaces.map(view).collect()
}

impl SumsOverGroups {
    /// Computes the outputs of checked operands.
    pub(in crate::fuse) fn run(
        &self,
        stream: &Stream,
        shape: &RowShape,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<()> {
        let chunks = shape.groups.count().div_ceil(CHUNK);
        let mut workspaces: Vec<DeviceBuffer<u8>> = Vec::with_capacity(self.compiled.outputs.len());
        for output in &self.compiled.outputs {
            workspaces.push(stream.uninitialized::<u8>(chunks * shape.size * output.dtype.size())?);
        }
        if shape.elements.count() == 0 {
            self.run_main(stream, shape, inputs, scalars, axes, outputs)?;
        } else if !self.run_fused(stream, shape, inputs, scalars, outputs, &mut workspaces)? {
            let values = self.run_main(stream, shape, inputs, scalars, axes, outputs)?;
            self.run_terms(stream, shape, inputs, &values, scalars, &mut workspaces)?;
        }
        let workspace = shape.workspace_of_sums()?;
        for ((fold, memory), &at) in self.folds.iter().zip(&workspaces).zip(&self.compiled.sums) {
            let input = DeviceInput::of_bytes(fold.inputs()[0], memory, workspace)?;
            fold.run(stream, &[input], &[], &mut outputs[at])?;
        }
        Ok(())
    }

    /// Runs the program without sums, and returns the values that terms read.
    fn run_main(
        &self,
        stream: &Stream,
        shape: &RowShape,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        axes: &[isize],
        outputs: &mut [DeviceOutput<'_>],
    ) -> Result<Vec<DeviceBuffer<u8>>> {
        let mut values = Vec::with_capacity(self.compiled.values.len());
        for value in &self.compiled.values {
            values.push(stream.uninitialized::<u8>(value.layout(shape).count() * value.dtype.size())?);
        }
        let Some(main) = &self.main else { return Ok(values) };
        let mut of_main: Vec<DeviceOutput<'_>> = Vec::with_capacity(outputs.len() + values.len());
        for (at, output) in outputs.iter_mut().enumerate() {
            if self.compiled.own.contains(&at) {
                of_main.push(output.reborrow());
            }
        }
        for (value, memory) in self.compiled.values.iter().zip(&mut values) {
            of_main.push(DeviceOutput::of_bytes(value.dtype, memory, value.layout(shape))?);
        }
        let mut given = Vec::with_capacity(inputs.len());
        for input in inputs {
            given.push(input.expand(input.layout().shape())?);
        }
        main.run(stream, &given, scalars, axes, &mut of_main)?;
        Ok(values)
    }

    /// Runs outputs and sums of chunks in one kernel and returns true, or returns false if they need several.
    fn run_fused(
        &self,
        stream: &Stream,
        shape: &RowShape,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        outputs: &[DeviceOutput<'_>],
        workspaces: &mut [DeviceBuffer<u8>],
    ) -> Result<bool> {
        let Some((fused, stages)) =
            self.compiled.fused.as_ref().and_then(|fused| Some((fused, fused.stages.as_ref().ok()?)))
        else {
            return Ok(false);
        };
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let of_outputs: Vec<(DType, Layout)> = outputs.iter().map(|output| output.described()).collect();
        let views: Vec<View<'_>> = inputs.iter().filter_map(DeviceInput::memory).collect();
        let of_results: Vec<View<'_>> = outputs.iter().map(|output| output.memory()).collect();
        let starts: Vec<u64> = views.iter().chain(&of_results).map(|view| view.address % WIDEST).collect();
        let device = stream.device();
        let given = RowOperands { inputs: &of_inputs, outputs: &of_outputs, starts: &starts };
        let Ok(launch) = self.compiled.plan_fused(shape, &given, RowDevice::of(&device)) else {
            return Ok(false);
        };
        let mut bits = stages.expression.scalar_bits(&stages.operands.scalars(scalars, shape))?;
        if let Some(index) = fused.indices.first() {
            bits.extend([[device.report_address()?.0, 0], [u64::from(index.error.code()), 0]]);
        }
        let numbers = CompiledRows::kernel_inputs(stages);
        let memory = operands(
            numbers.iter().map(|&number| views[number]),
            self.compiled.own.iter().map(|&at| of_results[at]),
            &launch.plan.offsets,
            as_views(workspaces.iter_mut())?.into_iter(),
        );
        self.launch(stream, launch, &bits, &memory)?;
        Ok(true)
    }

    /// Sums the terms of chunks.
    fn run_terms(
        &self,
        stream: &Stream,
        shape: &RowShape,
        inputs: &[DeviceInput<'_>],
        values: &[DeviceBuffer<u8>],
        scalars: &[Number],
        workspaces: &mut [DeviceBuffer<u8>],
    ) -> Result<()> {
        for (number, terms) in self.compiled.terms.iter().enumerate() {
            let of_terms = &mut workspaces[terms.sums()];
            let scalars = terms.operands.scalars(scalars, shape);
            if let Some(stages) = &terms.stages {
                let bits = stages.expression.scalar_bits(&scalars)?;
                // The kernel computes the indices of elements.
                let operands = self.operands_of(terms, shape, inputs, values, None)?;
                let key = |key| SumKey::Terms(number, key);
                if self.run_kernel(stream, shape, stages, &operands, &bits, of_terms.iter_mut(), key)? {
                    continue;
                }
            }
            self.run_stored_terms(
                stream,
                shape,
                (terms, &self.terms[number]),
                inputs,
                values,
                &scalars,
                of_terms,
            )?;
        }
        Ok(())
    }

    /// Returns the operands of terms, without indices of elements if `places` is `None`.
    fn operands_of<'a>(
        &self,
        terms: &SumTerms,
        shape: &RowShape,
        inputs: &[DeviceInput<'a>],
        values: &'a [DeviceBuffer<u8>],
        element_indices: Option<&'a DeviceBuffer<u8>>,
    ) -> Result<Vec<DeviceInput<'a>>> {
        let missing = || Error::invalid(OPERATION, "no input", "an operand of the program");
        let mut operands = Vec::with_capacity(terms.operands.inputs.len());
        for input in &terms.operands.inputs {
            let operand = match *input {
                PhaseInput::Stored(_) => return Err(missing()),
                PhaseInput::Index => match element_indices {
                    Some(element_indices) => {
                        DeviceInput::of_bytes(DType::I64, element_indices, shape.element_indices()?)?
                    }
                    None => continue,
                },
                PhaseInput::Input(index) | PhaseInput::Group(index) => {
                    match index.checked_sub(inputs.len()) {
                        None => inputs[index].expand(&shape.elements)?,
                        Some(value) => {
                            let memory = values.get(value).ok_or_else(missing)?;
                            let value = self.compiled.values[value];
                            DeviceInput::of_bytes(value.dtype, memory, value.layout(shape))?
                        }
                    }
                }
            };
            operands.push(operand.expand(&shape.elements)?);
        }
        Ok(operands)
    }

    /// Computes terms that do not fit a kernel with their sums into memory, and sums them.
    #[allow(clippy::too_many_arguments)]
    fn run_stored_terms(
        &self,
        stream: &Stream,
        shape: &RowShape,
        (terms, expression): (&SumTerms, &Expression),
        inputs: &[DeviceInput<'_>],
        values: &[DeviceBuffer<u8>],
        scalars: &[Number],
        workspaces: &mut [DeviceBuffer<u8>],
    ) -> Result<()> {
        let reads_element_indices = terms.operands.inputs.contains(&PhaseInput::Index);
        let element_indices = match self.element_indices.as_ref().filter(|_| reads_element_indices) {
            Some(of_element_indices) => {
                let mut element_indices = stream.uninitialized::<u8>(8 * shape.size)?;
                let output =
                    DeviceOutput::of_bytes(DType::I64, &mut element_indices, shape.element_indices()?)?;
                of_element_indices.run(stream, &[], &[], &mut [output])?;
                Some(element_indices)
            }
            None => None,
        };
        let operands = self.operands_of(terms, shape, inputs, values, element_indices.as_ref())?;
        let elements = shape.by_rows(&shape.elements)?;
        let dtypes = expression.outputs();
        let mut memory: Vec<DeviceBuffer<u8>> = Vec::with_capacity(dtypes.len());
        for dtype in dtypes {
            memory.push(stream.uninitialized::<u8>(shape.elements.count() * dtype.size())?);
        }
        let mut targets = Vec::with_capacity(memory.len());
        for (memory, &dtype) in memory.iter_mut().zip(dtypes) {
            targets.push(DeviceOutput::of_bytes(dtype, memory, elements)?);
        }
        expression.run(stream, &operands, scalars, &mut targets)?;
        for ((sum, memory), workspace) in terms.sums().zip(&memory).zip(workspaces) {
            let input = DeviceInput::of_bytes(self.compiled.outputs[sum].dtype, memory, elements)?;
            let (into, stages) = (std::iter::once(workspace), &self.compiled.copies[sum]);
            let is_run =
                self.run_kernel(stream, shape, stages, &[input], &[], into, |key| SumKey::Copy(sum, key))?;
            if !is_run {
                let found = format!("a sum over the groups of shape {}", shape.elements);
                return Err(Error::invalid(OPERATION, found, "a grid of fewer blocks"));
            }
        }
        Ok(())
    }

    /// Sums the terms of stages and returns true, or returns false if they do not fit the kernel.
    #[allow(clippy::too_many_arguments)]
    fn run_kernel<'w>(
        &self,
        stream: &Stream,
        shape: &RowShape,
        stages: &RowStages,
        inputs: &[DeviceInput<'_>],
        bits: &[[u64; 2]],
        workspaces: impl Iterator<Item = &'w mut DeviceBuffer<u8>>,
        key: impl FnOnce(RowKey) -> SumKey,
    ) -> Result<bool> {
        let described: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let mut views = Vec::with_capacity(inputs.len());
        for input in inputs {
            views.push(input.memory().ok_or_else(no_memory)?);
        }
        let starts: Vec<u64> = views.iter().map(|view| view.address % WIDEST).collect();
        let is_ampere = stream.device().compute_capability() >= (8, 0);
        let Ok(plan) = self.compiled.plan_terms(stages, shape, &described, &starts, is_ampere) else {
            return Ok(false);
        };
        let memory =
            operands(views.into_iter(), std::iter::empty(), &plan.offsets, as_views(workspaces)?.into_iter());
        let launch = SumLaunch { key: key(plan.key.clone()), plan };
        self.launch(stream, launch, bits, &memory)?;
        Ok(true)
    }

    fn launch(
        &self,
        stream: &Stream,
        launch: SumLaunch,
        bits: &[[u64; 2]],
        memory: &[Operand<'_>],
    ) -> Result<()> {
        let function = self.kernel(&stream.device(), &launch)?;
        // SAFETY: the kernel accesses elements that the layouts name, which have been checked against the memory, and
        // the workspaces, which have a row for each chunk. The arguments match its parameters.
        unsafe { rows_device::launch(&function, stream, launch.plan, bits, memory) }
    }

    fn kernel(&self, device: &Device, launch: &SumLaunch) -> Result<Function> {
        self.kernels.get_or_try_add(device, &launch.key, || {
            assembled(device, self.compiled.text(&launch.key, &launch.plan).into())
        })
    }
}
