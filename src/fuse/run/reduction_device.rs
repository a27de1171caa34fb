//! Runs of reductions on device memory, and their explanations.

use std::fmt;

use super::elementwise_device::{DeviceInput, DeviceOutput, assembled};
use super::reduction::{Reduction, ReductionState};
use crate::driver::{Device, DeviceBuffer, DeviceRead, Function, LaunchConfig, Operand, OperandAccess};
use crate::driver::{Operands, Stream, View};
use crate::error::{Error, Result};
use crate::fuse::ir::number::Number;
use crate::fuse::plan::elementwise::WIDEST;
use crate::fuse::plan::reduction::{KernelMemory, PlannedLaunch, ReductionKey, ReductionPlan};
use crate::fuse::ptx;
use crate::types::{DType, Layout};

/// The memory behind an address parameter of a reduction kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchMemory {
    /// The memory of an input.
    Input(usize),
    /// The memory of the output.
    Output,
    /// Scratch memory for partial values.
    Scratch,
}

/// One launch of a reduction, from [`Reduction::explain`].
#[derive(Debug, Clone)]
pub struct ReductionLaunch {
    /// The text of the kernel.
    pub ptx: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// The memory behind each address parameter, with an offset in bytes.
    pub operands: Vec<(LaunchMemory, usize)>,
    /// The kernel's last parameter, which follows the addresses. Scalars of a run are 0 in it.
    pub parameters: Vec<u8>,
}

/// The launches of a reduction on a device.
#[derive(Debug, Clone)]
pub struct ReductionExplanation {
    /// The launches; none for an empty array.
    pub launches: Vec<ReductionLaunch>,
    /// Bytes of scratch memory.
    pub scratch: usize,
}

impl fmt::Display for ReductionExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} launches, {} bytes of scratch memory", self.launches.len(), self.scratch)?;
        for (index, launch) in self.launches.iter().enumerate() {
            let ReductionLaunch { blocks, threads, operands, ptx, .. } = launch;
            writeln!(
                formatter,
                "launch {index}: {blocks} blocks of {threads} threads on {operands:?}\n{ptx}"
            )?;
        }
        Ok(())
    }
}

impl ReductionState {
    /// Adds the kernel texts and the bits of all scalars to a plan.
    pub(super) fn explained(&self, plan: ReductionPlan, scalars: &[[u64; 2]]) -> ReductionExplanation {
        let launches = plan
            .launches
            .into_iter()
            .map(|launch| {
                let ptx = ptx::reduction::write(&self.compiled, &launch);
                let memory = |kind: &KernelMemory| match kind {
                    KernelMemory::Input(input) => LaunchMemory::Input(*input),
                    KernelMemory::Output => LaunchMemory::Output,
                    KernelMemory::Scratch => LaunchMemory::Scratch,
                };
                let operands = launch.operands.iter().map(|(kind, offset)| (memory(kind), *offset)).collect();
                let (blocks, threads, mut parameters) = (launch.blocks, launch.threads, launch.block);
                write_scalars(&mut parameters, scalars);
                ReductionLaunch { ptx, blocks, threads, operands, parameters }
            })
            .collect();
        ReductionExplanation { launches, scratch: plan.scratch }
    }

    fn kernel(&self, device: &Device, launch: &PlannedLaunch) -> Result<Function> {
        self.kernels.get_or_try_add(device, &launch.key, || {
            assembled(device, ptx::reduction::write(&self.compiled, launch).into())
        })
    }

    /// Launches the kernels of a plan, with the bits of all scalars, on the memory of [`operand_views`] and [`scratch`].
    pub(super) fn launch(
        &self,
        stream: &Stream,
        plan: ReductionPlan,
        scalars: &[[u64; 2]],
        views: &[View<'_>],
        scratch: Option<&impl DeviceRead<u8>>,
    ) -> Result<()> {
        let (device, scratch) = (stream.device(), scratch.map(|memory| memory.view()));
        let inputs = views.len() - 1;
        for launch in plan.launches {
            let function = self.kernel(&device, &launch)?;
            let mut block = launch.block;
            write_scalars(&mut block, scalars);
            let reads = match launch.key {
                ReductionKey::Fold(_) | ReductionKey::Scan(_) => inputs,
                ReductionKey::Merge(_) => self.compiled.rules.kinds.len(),
            };
            let writes_scratch =
                launch.operands[reads..].iter().any(|(kind, _)| *kind == KernelMemory::Scratch);
            let in_scratch = |(kind, _): &(KernelMemory, usize)| *kind == KernelMemory::Scratch;
            let first_scratch = launch.operands.iter().position(in_scratch);
            let mut memory: Vec<Operand<'_>> = Vec::with_capacity(launch.operands.len());
            for (index, &(kind, offset)) in launch.operands.iter().enumerate() {
                let view = match (kind, scratch) {
                    (KernelMemory::Input(input), _) => views[input],
                    (KernelMemory::Scratch, Some(view)) => view,
                    _ => views[inputs],
                };
                let access = match kind {
                    // All of scratch memory is one operand, with write access if the launch writes one of its
                    // planes.
                    KernelMemory::Scratch if writes_scratch && first_scratch == Some(index) => {
                        OperandAccess::Write
                    }
                    KernelMemory::Scratch if writes_scratch => OperandAccess::Shared,
                    KernelMemory::Input(_) | KernelMemory::Scratch => OperandAccess::Read,
                    KernelMemory::Output => OperandAccess::Write,
                };
                memory.push(Operand { view, address: view.address + offset as u64, access });
            }
            let config = LaunchConfig::new(launch.blocks, launch.threads);
            // SAFETY: the kernel accesses elements that the layouts name, which have been checked against the
            // memory, and planes of scratch memory with enough space. The arguments match its parameters. A block of
            // a scan waits only for tiles with lower tickets, which other blocks have begun.
            unsafe { function.launch(stream, config, &Operands { memory: &memory, block: &block })? };
        }
        Ok(())
    }
}

/// Returns the memory of the inputs and then of the output.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for an in-place input.
pub(super) fn operand_views<'a>(
    operation: &'static str,
    inputs: &[DeviceInput<'a>],
    output: &DeviceOutput<'a>,
) -> Result<Vec<View<'a>>> {
    let view = |input: &DeviceInput<'a>| {
        let wanted = "an input with its own memory";
        input.memory().ok_or_else(|| Error::invalid(operation, "an in-place input", wanted))
    };
    inputs.iter().map(view).chain([Ok(output.memory())]).collect()
}

/// Allocates the scratch memory of a plan, if it has any.
pub(super) fn scratch(stream: &Stream, plan: &ReductionPlan) -> Result<Option<DeviceBuffer<u8>>> {
    match plan.scratch {
        0 => Ok(None),
        bytes => Ok(Some(stream.uninitialized(bytes)?)),
    }
}

/// Writes the bits of all scalars into a parameter block.
pub(in crate::fuse) fn write_scalars(block: &mut [u8], scalars: &[[u64; 2]]) {
    for (slot, bits) in block.chunks_exact_mut(8).zip(scalars.iter().flatten()) {
        slot.copy_from_slice(&bits.to_le_bytes());
    }
}

impl Reduction {
    /// Reduces the inputs, which are broadcast to one shape, along the axes in which the output has size 1.
    ///
    /// Two equal runs give equal bits, which [`run_host`](Self::run_host) gives too, except the sign and
    /// payload of a NaN. `scalars` holds those of the elements' expression, followed by those of
    /// [`then`](Self::then).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands or scalars that differ from the
    /// reduction's; [`Error::InvalidArgument`] for shapes that do not match, a minimum or maximum of no
    /// elements, or an in-place input; errors of allocating scratch memory, of [`Device::load`] and of a
    /// launch.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        output: &mut DeviceOutput<'_>,
    ) -> Result<()> {
        let (state, compiled) = (&*self.0, &*self.0.compiled);
        let bits = compiled.scalar_bits(scalars)?;
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let dimensions = compiled.dimensions(&of_inputs, output.described())?;
        if dimensions.rows == 0 {
            return Ok(());
        }
        if dimensions.row == 0 {
            return self.run_empty(stream, scalars, output);
        }
        let views = operand_views(compiled.fold.name(), inputs, output)?;
        let starts: Vec<u64> = views.iter().map(|view| view.address % WIDEST).collect();
        let plan = compiled.plan(&dimensions, &starts, stream.device().compute_capability() >= (8, 0))?;
        let scratch = scratch(stream, &plan)?;
        state.launch(stream, plan, &bits, &views, scratch.as_ref())
    }

    /// Fills the output with the value of an empty reduction.
    fn run_empty(&self, stream: &Stream, scalars: &[Number], output: &mut DeviceOutput<'_>) -> Result<()> {
        let (bytes, layout) = self.0.compiled.empty_value(output.described().1)?;
        let memory = stream.upload(&bytes)?;
        let input = DeviceInput::of_bytes(self.accumulator(), &memory, layout)?;
        self.last().run(
            stream,
            &[input],
            self.0.compiled.scalars_of_last(scalars),
            std::slice::from_mut(output),
        )
    }

    /// Returns the kernels that a run on these layouts would launch on a device of this compute capability,
    /// for memory aligned to 256 bytes. It needs no device.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about layouts.
    pub fn explain(
        &self,
        inputs: &[Layout],
        output: &Layout,
        capability: (i32, i32),
    ) -> Result<ReductionExplanation> {
        self.explain_with(inputs, output, &self.0.compiled.zero_scalars(), capability)
    }

    /// As [`explain`](Self::explain), with the scalars of the run.
    pub(in crate::fuse) fn explain_with(
        &self,
        inputs: &[Layout],
        output: &Layout,
        scalars: &[Number],
        capability: (i32, i32),
    ) -> Result<ReductionExplanation> {
        let (state, compiled) = (&*self.0, &*self.0.compiled);
        let bits = compiled.scalar_bits(scalars)?;
        // Extra inputs have no dtype; any dtype leads to the error.
        let dtypes = self.inputs().iter().copied().chain(std::iter::repeat(self.output()));
        let of_inputs: Vec<(DType, Layout)> = dtypes.zip(inputs.iter().copied()).collect();
        let dimensions = compiled.dimensions(&of_inputs, (self.output(), *output))?;
        if dimensions.rows == 0 || dimensions.row == 0 {
            return Ok(ReductionExplanation { launches: Vec::new(), scratch: 0 });
        }
        let plan = compiled.plan(&dimensions, &vec![0; inputs.len() + 1], capability >= (8, 0))?;
        Ok(state.explained(plan, &bits))
    }
}
