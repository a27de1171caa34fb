//! The parameters of the kernels.

use bytemuck::{Pod, Zeroable};

use crate::attention::problem::{Operands, Problem, Sizes};
use crate::driver::DeviceSlice;
use crate::error::{Error, Result};

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
    pub(super) report: u64,
    pub(super) is_packed: i32,
    pub(super) array_queries: i32,
    pub(super) max_queries: i32,
    pub(super) max_keys: i32,
    pub(super) soft_cap: f32,
    pub(super) threshold: u32,
    pub(super) dropout_scale: f32,
    pub(super) report_code: u32,
}

impl Variations {
    /// Returns the options of a problem, without an address of reports, or `None` if it has none of them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where the problem has sequences and the operands have not, or the other way round, and for memory of
    /// another length or alignment than the kernels read.
    pub(super) fn new(
        operation: &'static str,
        problem: &Problem,
        sizes: &Sizes,
        operands: &Operands<'_>,
    ) -> Result<Option<Variations>> {
        let Problem { soft_cap, dropout, sequences, .. } = *problem;
        let memory = operands.sequences.as_ref().map(|memory| (memory.len(), memory.address()));
        let wanted = sequences.map(|sequences| 4 * sequences.count);
        // A kernel reads the four numbers of a sequence at once.
        if memory.map(|(length, _)| length) != wanted
            || memory.is_some_and(|(_, address)| !address.is_multiple_of(16))
        {
            let found = memory.map_or("no memory of sequences".to_owned(), |(length, address)| {
                format!("{length} numbers of sequences at address {address:#x}")
            });
            let wanted = wanted.map_or("none without sequences".to_owned(), |wanted| {
                format!("{wanted} numbers at a multiple of 16 bytes, four for each sequence")
            });
            return Err(Error::invalid(operation, found, wanted));
        }
        if let Some(generator) = operands.generator.as_ref().filter(|memory| memory.len() != 2) {
            let found = format!("a generator of {} numbers", generator.len());
            return Err(Error::invalid(operation, found, "two: a seed and the first block"));
        }
        if !problem.has_options() {
            return Ok(None);
        }
        Ok(Some(Variations {
            sequences: operands.sequences.as_ref().map_or(0, |memory| memory.address()),
            generator: operands.generator.as_ref().map_or(0, |memory| memory.address()),
            seed: dropout.map_or(0, |dropout| dropout.seed),
            offset: dropout.map_or(0, |dropout| dropout.offset),
            report: 0,
            is_packed: i32::from(sequences.is_some_and(|sequences| sequences.is_packed)),
            array_queries: sizes.queries as i32,
            max_queries: sequences.map_or(sizes.queries, |sequences| sequences.max_queries) as i32,
            max_keys: sequences.map_or(sizes.keys, |sequences| sequences.max_keys) as i32,
            soft_cap: soft_cap.unwrap_or(0.0) as f32,
            threshold: dropout.map_or(0, |dropout| dropout.threshold),
            dropout_scale: dropout.map_or(1.0, |dropout| dropout.scale()) as f32,
            report_code: 0,
        }))
    }

    /// Returns the memory that the kernels read by these options: of the sequences and of the generator, empty if there is none.
    pub(super) fn memory<'a>(operands: &Operands<'a>) -> Result<[DeviceSlice<'a, u8>; 2]> {
        let none = operands.queries.slice(..0)?;
        let sequences = operands.sequences.as_ref().map(DeviceSlice::reinterpret).transpose()?;
        let generator = operands.generator.as_ref().map(DeviceSlice::reinterpret).transpose()?;
        Ok([sequences.unwrap_or(none), generator.unwrap_or(none)])
    }
}

/// Exactly `ForwardProblem` of attention_forward.cuh.
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

/// Exactly `VariedProblem` of attention_forward.cuh.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct VariedForwardProblem {
    pub(super) problem: ForwardProblem,
    pub(super) options: Variations,
    pub(super) o: u64,
    pub(super) o_strides: [i64; 3],
    pub(super) dimension: i32,
    pub(super) padding: u32,
}

/// Exactly `BackwardProblem` of attention_backward.cuh.
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

/// Exactly `KeyGradients` of attention_backward.cuh.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct KeyGradients {
    pub(super) variations: Variations,
    pub(super) dk: u64,
    pub(super) dv: u64,
    pub(super) dk_strides: [i64; 2],
    pub(super) dv_strides: [i64; 2],
}

/// Exactly `RowsProblem` of attention_rows.cuh.
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
    pub(super) band: BandParameters,
    pub(super) variations: Variations,
    pub(super) heads: i32,
    pub(super) padded: i32,
    pub(super) dimension: i32,
    pub(super) padding: u32,
}
