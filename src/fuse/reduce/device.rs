//! Runs on device memory, and what they would be.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::super::device::{DeviceInput, DeviceOutput, assembled};
use super::super::number::Number;
use super::dimensions::Dimensions;
use super::plan::{Key, Launch, Place, Plan, Work};
use super::{Reduction, State, ptx};
use crate::driver::{Device, Function, LaunchConfig, Operand, OperandAccess};
use crate::driver::{Operands, Stream, View};
use crate::error::{Error, Result};
use crate::types::{DType, Layout};

/// Memory that a kernel of a reduction is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchMemory {
    /// An input's.
    Input(usize),
    /// The output's.
    Output,
    /// Scratch memory for partial values.
    Scratch,
}

/// One launch of a reduction, as [`Reduction::explain`] found it.
#[derive(Debug, Clone)]
pub struct ReductionLaunch {
    /// The kernel's text.
    pub ptx: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Where the kernel's addresses lead: the memory, and bytes into it.
    pub operands: Vec<(LaunchMemory, usize)>,
    /// The kernel's last parameter, behind the addresses; scalars that a run is given are 0.
    pub parameters: Vec<u8>,
}

/// What a reduction would do on a device.
#[derive(Debug, Clone)]
pub struct ReductionExplanation {
    /// None where there are no elements.
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

impl State {
    /// What the elements' formula and the fold come to for one element.
    pub(super) fn steps(&self) -> usize {
        let program = &self.prologue.program;
        let live = program.live(program.outputs[0].into_iter());
        live.iter().filter(|live| **live).count() + self.rules.append.steps.len()
    }

    fn plan(&self, dimensions: &Dimensions, starts: &[u64], converts_brain: bool) -> Result<Plan> {
        let dtypes = self.prologue.inputs.iter().chain(&self.epilogue.outputs);
        let bytes: Vec<usize> = dtypes.map(|dtype| dtype.size()).collect();
        let work = Work {
            dimensions,
            rules: &self.rules,
            bytes: &bytes,
            starts,
            scalars: self.scalars(),
            steps: self.steps(),
            converts_brain,
        };
        work.plan()
    }

    /// A plan with its texts; scalars that a run is given are 0.
    pub(super) fn explained(&self, plan: Plan) -> ReductionExplanation {
        let all = self.prologue.scalars.iter().chain(&self.epilogue.scalars);
        let scalars: Vec<[u64; 2]> =
            all.map(|&(dtype, literal)| literal.map_or([0; 2], |number| number.parts(dtype))).collect();
        let launches = plan
            .launches
            .into_iter()
            .map(|launch| {
                let ptx = ptx::write(self, &launch.key, launch.parameters, launch.threads);
                let memory = |place: &Place| match place {
                    Place::Input(input) => LaunchMemory::Input(*input),
                    Place::Output => LaunchMemory::Output,
                    Place::Scratch => LaunchMemory::Scratch,
                };
                let operands =
                    launch.operands.iter().map(|(place, offset)| (memory(place), *offset)).collect();
                let (blocks, threads, mut parameters) = (launch.blocks, launch.threads, launch.block);
                write_scalars(&mut parameters, &scalars);
                ReductionLaunch { ptx, blocks, threads, operands, parameters }
            })
            .collect();
        ReductionExplanation { launches, scratch: plan.scratch }
    }

    pub(super) fn kernel(&self, device: &Device, launch: &Launch) -> Result<Function> {
        let place = (device.ordinal(), launch.key.clone());
        let known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(function) = known.filter(|function| !function.module().device().is_lost()) {
            return Ok(function);
        }
        let text: Arc<str> = ptx::write(self, &launch.key, launch.parameters, launch.threads).into();
        let function = assembled(device, text)?;
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).insert(place, function.clone());
        Ok(function)
    }
}

/// Puts the bits of all scalars into a block of parameters.
pub(super) fn write_scalars(block: &mut [u8], scalars: &[[u64; 2]]) {
    for (room, bits) in block.chunks_exact_mut(8).zip(scalars.iter().flatten()) {
        room.copy_from_slice(&bits.to_le_bytes());
    }
}

impl Reduction {
    /// Folds the inputs, which are broadcast to one shape, along the axes in which the output has size 1. Two equal runs
    /// give equal bits, which are those of [`run_host`](Self::run_host) too, but for the sign and payload of a NaN. `scalars`
    /// are those of the elements' expression, then those of [`then`](Self::then).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DTypeMismatch`] for operands or scalars that are not the reduction's,
    /// [`Error::InvalidArgument`] for shapes that do not fit, an extreme of no elements, or an input that is an output;
    /// errors of allocating scratch memory, of [`Device::load`] and of a launch.
    pub fn run(
        &self,
        stream: &Stream,
        inputs: &[DeviceInput<'_>],
        scalars: &[Number],
        output: &mut DeviceOutput<'_>,
    ) -> Result<()> {
        let state = &*self.0;
        let bits = state.scalar_bits(scalars)?;
        let of_inputs: Vec<(DType, Layout)> = inputs.iter().map(DeviceInput::described).collect();
        let dimensions = state.dimensions(&of_inputs, output.described())?;
        if dimensions.rows == 0 {
            return Ok(());
        }
        if dimensions.row == 0 {
            return self.run_empty(stream, scalars, output);
        }
        let mut views: Vec<View<'_>> = Vec::with_capacity(inputs.len() + 1);
        for input in inputs {
            let found = "an input in place";
            views.push(
                input
                    .memory()
                    .ok_or_else(|| Error::invalid(state.fold.name(), found, "memory of its own"))?,
            );
        }
        views.push(output.memory());
        let starts: Vec<u64> = views.iter().map(|view| view.address % super::super::plan::WIDEST).collect();
        let device = stream.device();
        let plan = state.plan(&dimensions, &starts, device.compute_capability() >= (8, 0))?;
        let scratch = match plan.scratch {
            0 => None,
            bytes => Some(stream.uninitialized::<u8>(bytes)?),
        };
        let scratch = match &scratch {
            None => None,
            Some(memory) => {
                DeviceInput::of_bytes(DType::U8, memory, Layout::contiguous(&[plan.scratch])?)?.memory()
            }
        };
        for launch in plan.launches {
            let function = state.kernel(&device, &launch)?;
            let mut block = launch.block;
            write_scalars(&mut block, &bits);
            let reads = match launch.key {
                Key::Fold(_) => inputs.len(),
                Key::Merge(_) | Key::Scan(_) => state.rules.kinds.len(),
            };
            let writes_scratch = launch.operands[reads..].iter().any(|(place, _)| *place == Place::Scratch);
            let mut memory: Vec<Operand<'_>> = Vec::with_capacity(launch.operands.len());
            for (index, &(place, offset)) in launch.operands.iter().enumerate() {
                let view = match (place, scratch) {
                    (Place::Input(input), _) => views[input],
                    (Place::Scratch, Some(view)) => view,
                    _ => views[inputs.len()],
                };
                let access = match place {
                    // All of scratch memory is one operand: written where one of its planes is.
                    Place::Scratch if writes_scratch && index == reads => OperandAccess::Write,
                    Place::Scratch if writes_scratch => OperandAccess::Shared,
                    Place::Input(_) | Place::Scratch => OperandAccess::Read,
                    Place::Output => OperandAccess::Write,
                };
                memory.push(Operand { view, address: view.address + offset as u64, access });
            }
            let config = LaunchConfig::new(launch.blocks, launch.threads);
            // SAFETY: the kernel touches elements that the layouts name, which were held against the memory, and planes of the
            // scratch memory that were made for them; the arguments are made after its parameters.
            unsafe { function.launch(stream, config, &Operands { memory: &memory, block: &block })? };
        }
        Ok(())
    }

    /// The value of no elements for every element of the output.
    fn run_empty(&self, stream: &Stream, scalars: &[Number], output: &mut DeviceOutput<'_>) -> Result<()> {
        let (bytes, layout) = self.empty_value(output.described().1)?;
        let memory = stream.upload(&bytes)?;
        let input = DeviceInput::of_bytes(self.accumulator(), &memory, layout)?;
        self.last().run(stream, &[input], self.scalars_of_last(scalars), std::slice::from_mut(output))
    }

    /// The kernels that a run on layouts like these would launch, on a device of this compute capability, with memory that
    /// starts at multiples of 256 bytes. Needs no device.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run) has for layouts.
    pub fn explain(
        &self,
        inputs: &[Layout],
        output: &Layout,
        capability: (i32, i32),
    ) -> Result<ReductionExplanation> {
        let state = &*self.0;
        // Inputs past the reduction's have no dtype; any will do for the error.
        let dtypes = self.inputs().iter().copied().chain(std::iter::repeat(self.output()));
        let of_inputs: Vec<(DType, Layout)> = dtypes.zip(inputs.iter().copied()).collect();
        let dimensions = state.dimensions(&of_inputs, (self.output(), *output))?;
        if dimensions.rows == 0 || dimensions.row == 0 {
            return Ok(ReductionExplanation { launches: Vec::new(), scratch: 0 });
        }
        let plan = state.plan(&dimensions, &vec![0; inputs.len() + 1], capability >= (8, 0))?;
        Ok(state.explained(plan))
    }
}
