//! Runs of expressions on the CPU.

use super::expression::Expression;
use crate::error::Result;
use crate::fuse::cpu;
use crate::fuse::cpu::backend::CpuBackend;
#[cfg(target_arch = "x86_64")]
use crate::fuse::cpu::native;
use crate::fuse::cpu::{HostInput, HostOutput};
use crate::fuse::ir::number::Number;

impl Expression {
    /// Computes the outputs on the CPU, with the bits of [`run`](Self::run) except the sign and payload of a
    /// NaN.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run) about operands.
    pub fn run_host(
        &self,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<()> {
        cpu::run_host(&self.0.compiled, &self.0.cpu_code, inputs, scalars, outputs)
    }

    /// Computes the outputs like [`run_host`](Self::run_host) with one backend, for tests. Returns the number of blocks with
    /// an element that needed a rare body, or the reason why the backend cannot run the expression.
    ///
    /// # Errors
    ///
    /// As [`run_host`](Self::run_host).
    #[doc(hidden)]
    pub fn run_host_with(
        &self,
        backend: CpuBackend,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<std::result::Result<usize, String>> {
        cpu::run_host_with(&self.0.compiled, backend, inputs, scalars, outputs)
    }

    /// Computes the outputs of few contiguous elements by machine code that an earlier run has got. Returns false, and
    /// writes nothing, if there is none.
    ///
    /// # Safety
    ///
    /// The operands are the inputs and then the outputs. Each has `count` elements of its dtype; the outputs are writable,
    /// nobody else accesses them, and none is an input.
    pub(crate) unsafe fn run_few_on_host(&self, operands: &[*mut u8], count: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller guarantees it.
        return unsafe { native::run_few(&self.0.compiled, &self.0.cpu_code, operands, count) };
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (operands, count);
            false
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Expression {
    /// Computes the outputs like [`run_host_with`](Self::run_host_with), with streaming stores if the outputs have more than
    /// `least` bytes in all. Returns the number of blocks that had them.
    ///
    /// # Errors
    ///
    /// As [`run_host_with`](Self::run_host_with).
    #[doc(hidden)]
    pub fn run_host_streaming(
        &self,
        backend: CpuBackend,
        least: usize,
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<std::result::Result<usize, String>> {
        native::run_with_streaming(&self.0.compiled, backend, least, inputs, scalars, outputs)
    }

    /// Computes the outputs like [`run_host_with`](Self::run_host_with) with machine code of which `change` may change the
    /// bytes of each instruction of a loop.
    ///
    /// # Errors
    ///
    /// As [`run_host_with`](Self::run_host_with).
    ///
    /// # Safety
    ///
    /// The backend is available, and the changed instructions exist and access no memory that the right ones do not.
    #[doc(hidden)]
    pub unsafe fn run_host_with_fault(
        &self,
        backend: CpuBackend,
        change: &mut dyn FnMut(&mut [u8]),
        inputs: &[HostInput<'_>],
        scalars: &[Number],
        outputs: &mut [HostOutput<'_>],
    ) -> Result<std::result::Result<usize, String>> {
        // SAFETY: the caller guarantees it.
        unsafe { native::run_with_fault(&self.0.compiled, backend, change, inputs, scalars, outputs) }
    }
}
