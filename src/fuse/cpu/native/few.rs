//! Runs of few contiguous elements, whose time is that of their preparation: no space, no worker, and no allocation.

use std::cell::RefCell;

use super::super::backend::CpuCode;
use super::CallBuffers;
use crate::fuse::plan::compiled_expression::CompiledExpression;

/// The memory that the runs of a thread reuse.
#[derive(Default)]
struct Buffers {
    calls: CallBuffers,
    sizes: Vec<usize>,
    pointers: Vec<*mut u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Runs an expression without scalars of a run on contiguous elements, if it has machine code by now. Returns whether it
/// ran. The operands are the inputs and then the outputs.
///
/// # Safety
///
/// Each operand has `count` elements of its dtype; the outputs are writable, nobody else accesses them, and none is an input.
pub(in crate::fuse) unsafe fn run_few(
    compiled: &CompiledExpression,
    code: &CpuCode,
    operands: &[*mut u8],
    count: usize,
) -> bool {
    let native = code.ready().filter(|native| !native.reads_coordinates());
    let Some(native) = native.filter(|_| compiled.run_scalars.is_empty()) else { return false };
    let constants = match native.constants.get() {
        Some(constants) => constants,
        None => {
            let Ok(scalars) = compiled.scalar_bits(&[]) else { return false };
            native
                .constants
                .get_or_init(|| native.constants(&compiled.program, &compiled.allocation, &scalars))
        }
    };
    let ran = BUFFERS.try_with(|buffers| {
        let Ok(mut buffers) = buffers.try_borrow_mut() else { return false };
        let Buffers { calls, sizes, pointers } = &mut *buffers;
        sizes.clear();
        sizes.extend(compiled.inputs.iter().chain(&compiled.outputs).map(|dtype| dtype.size()));
        if sizes.len() != operands.len() {
            return false;
        }
        pointers.clear();
        pointers.extend_from_slice(operands);
        // SAFETY: the caller guarantees it.
        unsafe { native.calls(constants).run(calls, sizes, compiled.inputs.len(), pointers, count) };
        true
    });
    ran.unwrap_or(false)
}
