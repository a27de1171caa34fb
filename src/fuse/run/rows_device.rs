//! Runs of row programs in one kernel on a device.

use super::elementwise_device::{DeviceInput, DeviceOutput, assembled};
use super::reduction_device::write_scalars;
use super::row_program::RowProgramState;
use crate::driver::{Device, Function, LaunchConfig, Operand, OperandAccess, Operands, Stream, View};
use crate::error::Result;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_rows::CompiledRows;
use crate::fuse::plan::elementwise::WIDEST;
use crate::fuse::plan::rows_key::{RowOperands, RowPlan};
use crate::fuse::plan::rows_shape::RowShape;
use crate::fuse::plan::rows_stages::RowStages;
use crate::fuse::plan::rows_storage::RowDevice;
use crate::fuse::ptx;
use crate::types::{DType, Layout};

/// Returns operands at their offsets, in bytes.
pub(super) fn at_offsets<'a>(
    views: impl Iterator<Item = (View<'a>, OperandAccess)>,
    offsets: &[usize],
) -> impl Iterator<Item = Operand<'a>> {
    let at = |((view, access), offset): ((View<'a>, _), &usize)| Operand {
        view,
        address: view.address + *offset as u64,
        access,
    };
    views.zip(offsets).map(at)
}

/// Launches the kernel of a plan with the bits of all scalars.
///
/// # Errors
///
/// Errors of the launch.
///
/// # Safety
///
/// The function is the plan's kernel, and the memory holds the elements that the layouts of the plan name.
pub(super) unsafe fn launch(
    function: &Function,
    stream: &Stream,
    plan: RowPlan,
    bits: &[[u64; 2]],
    memory: &[Operand<'_>],
) -> Result<()> {
    let RowPlan { key, blocks, threads, shared, mut block, .. } = plan;
    write_scalars(&mut block, bits);
    let mut config = LaunchConfig::new(blocks, threads).shared(shared);
    if key.cluster > 1 {
        config = config.cluster(key.cluster as u32);
    }
    // SAFETY: by the caller's contract.
    unsafe { function.launch(stream, config, &Operands { memory, block: &block }) }
}

impl RowProgramState {
    /// Runs the program in one kernel and returns true, or returns false if it needs several. `inputs` are the given ones with
    /// the memory of their output if they are in place.
    ///
    /// # Errors
    ///
    /// Errors of [`Device::load`] and of the launch, and of scalars that their dtypes do not hold.
    pub(super) fn run_fused(
        &self,
        stream: &Stream,
        shape: &RowShape,
        [given, inputs]: [&[DeviceInput<'_>]; 2],
        scalars: &[Number],
        outputs: &[DeviceOutput<'_>],
    ) -> Result<bool> {
        let Ok(stages) = &self.compiled.stages else { return Ok(false) };
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let of_outputs: Vec<(DType, Layout)> = outputs.iter().map(|output| output.described()).collect();
        let mut views: Vec<View<'_>> = inputs.iter().filter_map(DeviceInput::memory).collect();
        views.extend(outputs.iter().map(|output| output.memory()));
        let starts: Vec<u64> = views.iter().map(|view| view.address % WIDEST).collect();
        let device = stream.device();
        let operands = RowOperands { inputs: &of_inputs, outputs: &of_outputs, starts: &starts };
        let Ok(plan) = self.compiled.plan(shape, &operands, RowDevice::of(&device)) else { return Ok(false) };
        let mut bits = stages.expression.scalar_bits(&stages.operands.scalars(scalars, shape))?;
        if let Some(index) = self.compiled.indices.first() {
            bits.extend([[device.report_address()?.0, 0], [u64::from(index.error.code()), 0]]);
        }
        let function = self.kernel(stages, &device, &plan)?;
        let numbers = CompiledRows::kernel_inputs(stages);
        let access = |number: usize| match given[number].in_place_of() {
            Some(_) => OperandAccess::Shared,
            None => OperandAccess::Read,
        };
        let read = numbers.iter().map(|&number| (views[number], access(number)));
        let written = views[inputs.len()..].iter().map(|&view| (view, OperandAccess::Write));
        let memory: Vec<Operand<'_>> = at_offsets(read.chain(written), &plan.offsets).collect();
        // SAFETY: the kernel accesses elements that the layouts name, which have been checked against the memory.
        // The arguments match its parameters.
        unsafe { launch(&function, stream, plan, &bits, &memory)? };
        Ok(true)
    }

    fn kernel(&self, stages: &RowStages, device: &Device, plan: &RowPlan) -> Result<Function> {
        self.kernels.get_or_try_add(device, &plan.key, || {
            assembled(device, ptx::rows::write(&self.compiled, stages, plan).into())
        })
    }
}
