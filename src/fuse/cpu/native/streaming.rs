//! Streaming stores: outputs that the last-level cache does not hold go to memory past the caches, so that their lines are
//! not read first.
//!
//! Such a store differs from the plain one in its opcode alone, so the code is a copy of the plain kernel's. Only stores
//! that fill whole lines in one iteration take part: a line that is left half full for long is written in two halves.
//!
//! Invariants: the addresses are multiples of 64, since the instruction faults otherwise; and a thread that has streamed
//! ends with a fence, so that its outputs are seen by whoever sees that it has ended.

use std::arch::x86_64::{__cpuid, __cpuid_count, _mm_sfence};
use std::sync::OnceLock;

use super::super::backend::{CpuBackend, generate_for};
use super::super::{HostInput, HostOutput, Run};
use super::generate::Kernel;
use super::memory::Executable;
use super::pool::SLOT;
use super::run::run_streaming;
use crate::error::Result;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::compiled_expression::CompiledExpression;

/// The opcode of `vmovups` to memory.
const PLAIN: u8 = 0x11;
/// The opcode of `vmovntps`.
const STREAMING: u8 = 0x2b;

/// The bytes of a cache line.
pub(super) const LINE: usize = SLOT;

impl Kernel {
    /// Returns the code with streaming stores, which the first call makes. There is none if no store fills lines, or if the
    /// system gives no executable memory.
    pub(super) fn streaming(&self) -> Option<&Executable> {
        let make = || {
            if self.stores.is_empty() {
                return None;
            }
            // SAFETY: the code has this many bytes, which are readable.
            let code = unsafe { std::slice::from_raw_parts(self.code.start().cast::<u8>(), self.bytes) };
            let mut code = code.to_vec();
            for &store in &self.stores {
                let opcode = code.get_mut(store).filter(|opcode| **opcode == PLAIN)?;
                *opcode = STREAMING;
            }
            Executable::new(&code).ok()
        };
        self.streaming.get_or_init(make).as_ref()
    }
}

/// Orders this thread's streaming stores before its later stores.
pub(in crate::fuse) fn fence() {
    // SAFETY: every x86-64 processor has the instruction.
    #[allow(unused_unsafe, reason = "it is unsafe in older versions of Rust")]
    unsafe {
        _mm_sfence()
    };
}

/// Returns the bytes of the last-level cache, or the largest number if the processor does not say.
pub(in crate::fuse) fn last_level_cache() -> usize {
    const OF_AMD: u32 = 0x8000_001d;
    const OF_INTEL: u32 = 4;
    /// The levels of caches, of instructions and data.
    const MAX_CACHES: u32 = 8;
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: every x86-64 processor has the instruction.
        #[allow(unused_unsafe, reason = "it is unsafe in older versions of Rust")]
        let (basic, extended) = unsafe { (__cpuid(0).eax, __cpuid(0x8000_0000).eax) };
        let leaf = match (extended >= OF_AMD, basic >= OF_INTEL) {
            (true, _) => OF_AMD,
            (false, true) => OF_INTEL,
            (false, false) => return usize::MAX,
        };
        let sizes = (0..MAX_CACHES).filter_map(|cache| {
            // SAFETY: as above, and the processor has the leaf.
            #[allow(unused_unsafe, reason = "it is unsafe in older versions of Rust")]
            let found = unsafe { __cpuid_count(leaf, cache) };
            let bits = |shift: u32, mask: u32| (found.ebx >> shift & mask) as usize + 1;
            // Ways, partitions, bytes of a line, and sets.
            let size = bits(22, 0x3ff) * bits(12, 0x3ff) * bits(0, 0xfff) * (found.ecx as usize + 1);
            (found.eax & 31 != 0).then_some(size)
        });
        sizes.max().unwrap_or(usize::MAX)
    })
}

/// As [`Expression::run_host_streaming`](crate::fuse::Expression::run_host_streaming).
pub(in crate::fuse) fn run_with_streaming(
    compiled: &CompiledExpression,
    backend: CpuBackend,
    least: usize,
    inputs: &[HostInput<'_>],
    scalars: &[Number],
    outputs: &mut [HostOutput<'_>],
) -> Result<std::result::Result<usize, String>> {
    let run = Run::new(compiled, inputs, scalars, outputs)?;
    Ok(generate_for(compiled, backend).map(|native| run_streaming(&run, &native, least).streamed))
}
