//! Runs of reductions and scans on the CPU.

use super::reduction::Reduction;
use super::scan::Scan;
use crate::error::Result;
use crate::fuse::cpu::scan::Implementation;
use crate::fuse::cpu::{HostInput, HostOutput, reduction, scan};
use crate::fuse::ir::number::Number;

impl Reduction {
    /// Computes the reduction on the CPU; see [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about operands.
    pub fn run_host(
        &self,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        output: &mut HostOutput<'_>,
    ) -> Result<()> {
        let state = &*self.0;
        reduction::run_host((&state.compiled, &state.cpu_code), inputs, scalars, output, false)
    }
}

impl Scan {
    /// Computes the scan on the CPU; see [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about operands.
    pub fn run_host(
        &self,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        output: &mut HostOutput<'_>,
        axis: usize,
    ) -> Result<()> {
        let state = &*self.0.0;
        let scanned = (&*state.compiled, &state.cpu_code.prologue);
        scan::run_host(scanned, inputs, scalars, output, axis, Implementation::Vectors(None))
    }
}
