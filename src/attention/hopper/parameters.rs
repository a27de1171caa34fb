//! The parameters of the kernels, with the memory at their addresses.

use bytemuck::{Pod, Zeroable};

use crate::driver::image::ArgumentKind;
use crate::driver::{DeviceSlice, DeviceSliceMut, KernelArgument, LaunchTarget};
use crate::error::Result;

/// The band in the kernels: exactly `Band` of attention.cuh.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct BandParameters {
    pub(super) queries: i32,
    pub(super) keys: i32,
    pub(super) before: i32,
    pub(super) after: i32,
}

/// Exactly `Variations` of attention.cuh.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct Variations {
    pub(super) sequences: u64,
    pub(super) generator: u64,
    pub(super) seed: u64,
    pub(super) offset: u64,
    pub(super) is_packed: i32,
    pub(super) array_queries: i32,
    pub(super) max_queries: i32,
    pub(super) max_keys: i32,
    pub(super) soft_cap: f32,
    pub(super) threshold: u32,
    pub(super) kept_scale: f32,
    pub(super) padding: u32,
}

/// Exactly `ForwardProblem` of attention_forward.cu.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct ForwardProblem {
    pub(super) lse: u64,
    pub(super) next_tile: u64,
    pub(super) band: BandParameters,
    pub(super) heads: i32,
    pub(super) queries_per_key: i32,
    pub(super) tiles_per_head: i32,
    pub(super) tiles: i32,
    pub(super) heads_per_group: i32,
    pub(super) all_heads: i32,
    pub(super) scale: f32,
    pub(super) padding: u32,
}

/// Exactly `BackwardProblem` of attention_backward.cu.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct BackwardProblem {
    pub(super) lse: u64,
    pub(super) delta: u64,
    pub(super) dq_sums: u64,
    pub(super) progress: u64,
    pub(super) dq: u64,
    pub(super) dq_strides: [i64; 3],
    pub(super) band: BandParameters,
    pub(super) heads: i32,
    pub(super) queries_per_key: i32,
    pub(super) padded: i32,
    pub(super) dimension: i32,
    pub(super) heads_per_group: i32,
    pub(super) all_kv_heads: i32,
    pub(super) scale: f32,
    pub(super) padding: u32,
}

/// Exactly `RowsProblem` of attention_backward.cu.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct RowsProblem {
    pub(super) o: u64,
    pub(super) d_o: u64,
    pub(super) dq: u64,
    pub(super) forward_lse: u64,
    pub(super) lse: u64,
    pub(super) delta: u64,
    pub(super) progress: u64,
    pub(super) o_strides: [i64; 3],
    pub(super) do_strides: [i64; 3],
    pub(super) dq_strides: [i64; 3],
    pub(super) heads: i32,
    pub(super) queries: i32,
    pub(super) padded: i32,
    pub(super) dimension: i32,
    pub(super) rows_without_keys: i32,
    pub(super) padding: u32,
}

/// A kernel's parameters, with the memory at their addresses.
pub(super) struct WithMemory<'a, P, const READS: usize, const WRITES: usize> {
    pub(super) parameters: P,
    pub(super) reads: [DeviceSlice<'a, u8>; READS],
    pub(super) writes: [DeviceSliceMut<'a, u8>; WRITES],
}

// SAFETY: the pointer is that of the parameters, and their memory is entered.
unsafe impl<P: Pod, const READS: usize, const WRITES: usize> KernelArgument
    for WithMemory<'_, P, READS, WRITES>
{
    const KIND: ArgumentKind = ArgumentKind::Bytes;
    const SIZE: usize = size_of::<P>();

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        for read in &self.reads {
            <DeviceSlice<'_, u8> as KernelArgument>::enter(read, target)?;
        }
        for written in &self.writes {
            <DeviceSliceMut<'_, u8> as KernelArgument>::enter(written, target)?;
        }
        Ok(())
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(&self.parameters).cast_mut().cast()
    }
}
