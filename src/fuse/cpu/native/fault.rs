//! Runs of machine code with an injected fault, for the tests of the comparison with the interpreter.

use super::super::backend::{CpuBackend, targets};
use super::super::{HostInput, HostOutput, Run};
use super::run::run;
use super::{Draft, Drafts};
use crate::error::Result;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_expression::CompiledExpression;

impl Draft {
    /// Calls `change` with the bytes of each instruction of the loop.
    fn change(&mut self, change: &mut dyn FnMut(&mut [u8])) {
        let starts = self.code.starts.iter().map(|&start| start as usize);
        let starts: Vec<usize> = starts.filter(|start| self.body.contains(start)).collect();
        for (at, &start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(self.body.end);
            change(&mut self.code.bytes[start..end]);
        }
    }
}

/// As [`Expression::run_host_with_fault`](crate::fuse::Expression::run_host_with_fault).
///
/// # Safety
///
/// As there.
pub(in crate::fuse) unsafe fn run_with_fault(
    compiled: &CompiledExpression,
    backend: CpuBackend,
    change: &mut dyn FnMut(&mut [u8]),
    inputs: &[HostInput<'_>],
    scalars: &[Number],
    outputs: &mut [HostOutput<'_>],
) -> Result<std::result::Result<usize, String>> {
    let run_of = Run::new(compiled, inputs, scalars, outputs)?;
    let native = Drafts::new(compiled, &targets(&[backend])).and_then(|mut drafts| {
        drafts.first.change(change);
        if let Some(second) = &mut drafts.second {
            second.change(change);
        }
        for group in &mut drafts.groups {
            group.counters.change(change);
            group.cipher.change(change);
        }
        drafts.finish()
    });
    Ok(native.map(|native| run(&run_of, &native)).map_err(|reason| reason.to_string()))
}
