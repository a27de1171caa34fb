//! The values of an expression in scratch memory, for a fold that reads them there.

use super::super::Run;
use super::super::backend::CpuCode;
use super::super::memory::HostOperand;
use super::run::Worker;
use super::{Constants, Native};
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::space::Space;
use crate::types::DType;

/// A run of machine code whose output is memory of its caller.
pub(in crate::fuse) struct NativeValues<'a> {
    run: Run<'a>,
    native: &'a Native,
    /// The constants, if the run passes scalars.
    constants: Option<Constants>,
}

/// The state of a thread that computes values.
pub(in crate::fuse) struct ValuesWorker<'a>(Worker<'a>);

/// Returns whether an element of a dtype has the bits of its lane in a register.
fn is_lane(dtype: DType) -> bool {
    use DType::{F32, F64, I32, I64, U32, U64};
    matches!(dtype, F32 | F64 | I32 | I64 | U32 | U64)
}

impl<'a> NativeValues<'a> {
    /// Creates the run of an expression of the first operands of a space, or none if the interpreter should run it:
    /// because the run is not worth machine code, or because elements of the output are not lanes.
    pub(in crate::fuse) fn new(
        (compiled, code): (&'a CompiledExpression, &'a CpuCode),
        space: &Space,
        operands: &[HostOperand],
        scalars: &[[u64; 2]],
    ) -> Option<NativeValues<'a>> {
        let &[dtype] = &compiled.outputs[..] else { return None };
        if !is_lane(dtype) {
            return None;
        }
        let native = code.for_run(compiled, space.count())?;
        if native.reads_coordinates() {
            return None;
        }
        let mut space = space.clone();
        let output = space.inputs;
        space.strides.truncate(output + 1);
        let mut next = 1;
        for (stride, size) in space.strides.get_mut(output)?.iter_mut().zip(&space.sizes) {
            *stride = next;
            next *= *size as isize;
        }
        *space.offsets.get_mut(output)? = 0;
        let inputs = operands.iter().take(output);
        let inputs = inputs.map(|operand| HostOperand { memory: operand.memory, dtype: operand.dtype });
        let run = Run {
            program: &compiled.program,
            allocation: &compiled.allocation,
            space,
            // The output is the caller's memory of each call.
            operands: inputs.chain([HostOperand { memory: std::ptr::null_mut(), dtype }]).collect(),
            scalars: scalars.to_vec(),
            scalars_are_fixed: compiled.run_scalars.is_empty(),
        };
        let constants =
            (!run.scalars_are_fixed).then(|| native.constants(run.program, run.allocation, &run.scalars));
        Some(NativeValues { run, native, constants })
    }

    /// Returns the state of a thread.
    pub(in crate::fuse) fn worker(&self) -> ValuesWorker<'_> {
        let constants = match &self.constants {
            Some(constants) => constants,
            None => self.native.constants.get_or_init(|| {
                self.native.constants(self.run.program, self.run.allocation, &self.run.scalars)
            }),
        };
        ValuesWorker(Worker::new(&self.run, self.native, constants, usize::MAX))
    }
}

impl ValuesWorker<'_> {
    /// Writes the values of `count` elements from `start` on.
    ///
    /// # Safety
    ///
    /// The space has these elements, its operands are within the memory, and `to` has `count` elements.
    pub(in crate::fuse) unsafe fn write(&mut self, start: usize, count: usize, to: *mut u8) {
        // SAFETY: the caller guarantees it.
        unsafe { self.0.values(start, count, to) };
    }
}
