//! Values that a thread computes once for a row.

use crate::fuse::ir::program::Program;
use crate::fuse::ptx::Name;
use crate::fuse::ptx::reduction::KernelWriter;

/// Emits the wanted steps of a program of which each thread has one value for a row. Returns the registers of all steps.
pub(super) fn evaluate_once(
    kernel: &mut KernelWriter<'_>,
    program: &Program,
    known: &[Name],
    wanted: &[bool],
    load: &dyn Fn(u32, u32) -> Name,
) -> Vec<Name> {
    kernel.writer.set_once(true);
    let names = kernel.evaluate(program, known, wanted, 0, load);
    kernel.writer.set_once(false);
    names
}

/// Emits the number of segments of a row.
pub(super) fn segments_of_row(kernel: &mut KernelWriter<'_>) -> Name {
    kernel.bits32("ld.param.u32", &[&format!("[block+{}]", kernel.parameters.launch())])
}
