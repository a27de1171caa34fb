//! The backward's launches.

use bytemuck::Zeroable;

use super::parameters::{BackwardProblem, KeyGradients, RowsProblem, Variations};
use super::{BLOCK_KEYS, Call, Sizes, Tile, check_layout, check_lse, entry, rows_of_head, sequences_of};
use crate::attention::problem::address_and_strides;
use crate::attention::{Operands, Pass, Problem};
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, WithMemory};
use crate::error::Result;
use crate::types::Layout;

/// Bytes of what a head's blocks read that the L2 cache holds at a time. Blocks of other heads wait. From measurements on an H200,
/// whose cache has 50 MB: causal backward of 2048 keys rose from 0.83 to 1.08 of cuDNN's speed.
const CACHE: usize = 24 << 20;
/// The fewest heads that alternate in the order of the blocks, so that a block seldom waits for the one before it.
const MIN_ALTERNATING_HEADS: usize = 16;
/// The same where every query reads all keys, and there are [`LONG`] queries or more: a block then waits for a smaller share of its time,
/// and the L2 cache holds more of fewer heads. On an H200, 16384 queries and a head dimension of 128 reach 618 TFLOP/s with 4 heads, 592
/// with 8 and 428 with 16; with a causal mask 595, 611 and 601.
const MIN_ALTERNATING_LONG_HEADS: usize = 4;
const LONG: usize = 4096;
/// Words before the counts of additions: the counter of blocks.
const PROGRESS_START: usize = 4;

/// Returns the smallest memory that holds the kernel's shared storage.
pub(super) fn shared_bytes(tile: &Tile) -> usize {
    let (row, stages) = (tile.dimension * size_of::<u16>(), tile.backward_stages);
    let queries = 2 * stages * tile.rows * (row + size_of::<f32>());
    let scores = 3 * BLOCK_KEYS * tile.rows * size_of::<u16>();
    let barriers = 8 + 32 * stages + 8 + 64;
    2 * BLOCK_KEYS * row + queries + scores + barriers + 16 + 16 + 16 + 1024
}

/// The memory of the gradients of queries, keys and values, and their layouts in it, which have the shapes of the operands and share
/// no element.
pub struct Gradients<'a> {
    /// The memory, in bytes.
    pub memory: DeviceSliceMut<'a, u8>,
    /// The layouts of the gradients of queries, keys and values.
    pub layouts: [Layout; 3],
}

/// Returns the number of blocks of keys of all sequences and heads.
pub(super) fn key_blocks(problem: &Problem, sizes: &Sizes) -> usize {
    rows_of_head(problem, sizes).1.div_ceil(BLOCK_KEYS) * sequences_of(problem, sizes) * sizes.key_heads
}

/// Writes the gradients of a problem, by the result and the LSE of [`forward`](crate::attention::forward) and the gradient of the result.
///
/// `result` and `gradient` are in layouts of the shape of the queries. Gradients at positions of no packed sequence are not written.
///
/// # Errors
///
/// As [`forward`](crate::attention::forward).
pub fn backward(
    stream: &Stream,
    problem: &Problem,
    operands: Operands<'_>,
    result: (DeviceSlice<'_, u8>, &Layout),
    lse: DeviceSlice<'_, f32>,
    gradient: (DeviceSlice<'_, u8>, &Layout),
    gradients: Gradients<'_>,
) -> Result<()> {
    const OPERATION: &str = "attention::backward";
    let call = Call::new(OPERATION, stream, problem, Pass::Backward)?;
    let _traced = call.traced();
    let Call { sizes, tile, kernels, .. } = call;
    let address_and_bytes = |memory: &DeviceSlice<'_, u8>| (memory.address(), memory.len());
    check_layout(OPERATION, address_and_bytes(&result.0), result.1, &problem.queries)?;
    check_layout(OPERATION, address_and_bytes(&gradient.0), gradient.1, &problem.queries)?;
    let written = (gradients.memory.address(), gradients.memory.len());
    for (layout, operand) in gradients.layouts.iter().zip([&problem.queries, &problem.keys, &problem.values])
    {
        check_layout(OPERATION, written, layout, operand)?;
    }
    check_lse(OPERATION, &call, lse.len())?;
    let options = call.variations(&operands)?;
    let (all_heads, padded) = (call.sequences() * sizes.heads, call.padded());
    let rows = all_heads * padded;
    // Sums of dQ, LSE in powers of 2, delta, and the counts of additions.
    let mut workspace =
        stream.uninitialized::<u32>(rows * tile.dimension + 2 * rows + PROGRESS_START + rows / 32)?;
    let mut workspace = workspace.slice_mut(..)?;
    let dq_sums = workspace.address();
    let own_lse = dq_sums + (rows * tile.dimension * size_of::<f32>()) as u64;
    let delta = own_lse + (rows * size_of::<f32>()) as u64;
    let progress = delta + (rows * size_of::<f32>()) as u64;
    let Gradients { memory: mut written, layouts } = gradients;
    let (dq, dq_strides) = address_and_strides(written.address(), &layouts[0]);
    let (dk, [_, dk_strides @ ..]) = address_and_strides(written.address(), &layouts[1]);
    let (dv, [_, dv_strides @ ..]) = address_and_strides(written.address(), &layouts[2]);
    let (o, o_strides) = address_and_strides(result.0.address(), result.1);
    let (d_o, do_strides) = address_and_strides(gradient.0.address(), gradient.1);
    let band = call.band();
    let prepare = RowsProblem {
        o,
        d_o,
        dq,
        forward_lse: lse.address(),
        lse: own_lse,
        delta,
        progress,
        o_strides,
        do_strides,
        dq_strides,
        band,
        variations: options.unwrap_or(Variations::zeroed()),
        heads: sizes.heads as i32,
        padded: padded as i32,
        dimension: sizes.dimension as i32,
        padding: 0,
    };
    let blocks = all_heads * padded * tile.dimension / 2048;
    let [sequences, generator] = Variations::memory(&operands)?;
    let parameters = WithMemory {
        parameters: prepare,
        reads: [result.0, gradient.0, lse.reinterpret()?, sequences],
        writes: [written.reborrow(), workspace.reborrow().reinterpret()?],
    };
    let function = call.function(kernels.backward, kernels.prepare)?;
    // SAFETY: the kernel reads the result and its gradient, whose layouts were checked against their memory by the maps below or
    // here, and the sequences, which it limits to the arrays. It writes the workspace and rows of the gradient of the queries.
    unsafe { function.launch(stream, LaunchConfig::new(blocks as u32, 256), (parameters,))? };

    let all_kv_heads = call.sequences() * sizes.key_heads;
    let key_blocks = key_blocks(problem, &sizes);
    if key_blocks == 0 {
        return Ok(());
    }
    let of_head = padded * tile.dimension * 8 * call.queries_per_key();
    let is_long = problem.band.is_full() && padded >= LONG;
    let least = if is_long { MIN_ALTERNATING_LONG_HEADS } else { MIN_ALTERNATING_HEADS };
    let heads_per_group = (CACHE / of_head).max(least).min(all_kv_heads);
    let parameters = BackwardProblem {
        lse: own_lse,
        delta,
        dq_sums,
        progress,
        dq,
        dq_strides,
        band,
        heads: sizes.heads as i32,
        queries_per_key: call.queries_per_key() as i32,
        padded: padded as i32,
        dimension: sizes.dimension as i32,
        heads_per_group: heads_per_group as i32,
        all_kv_heads: all_kv_heads as i32,
        scale: problem.scale as f32,
        padding: 0,
    };
    let Operands { queries, keys, values, .. } = operands;
    let map_q = call.map(queries, &problem.queries, tile.rows)?;
    let map_k = call.map(keys, &problem.keys, BLOCK_KEYS)?;
    let map_v = call.map(values, &problem.values, BLOCK_KEYS)?;
    let map_do = call.map(gradient.0, gradient.1, tile.rows)?;
    let mut map_dk = call.map(DeviceSlice::from(&written), &layouts[1], 64)?;
    let mut map_dv = call.map(DeviceSlice::from(&written), &layouts[2], 64)?;
    let function = call.function(kernels.backward, entry(&kernels.backward_entries, problem))?;
    let config = LaunchConfig::new(key_blocks as u32, 384).shared(shared_bytes(tile) as u32);
    let parameters =
        WithMemory { parameters, reads: [], writes: [written.reborrow(), workspace.reinterpret()?] };
    let Some(variations) = options else {
        // SAFETY: the kernel takes six maps and these parameters. It reads the memory of the first four maps, and writes that of the
        // last two, the gradient of the queries, whose layout was checked, and the workspace. All of it is entered.
        return unsafe {
            function.launch(
                stream,
                config,
                (&map_q, &map_k, &map_v, &map_do, &mut map_dk, &mut map_dv, parameters),
            )
        };
    };
    let options = WithMemory {
        parameters: KeyGradients { variations, dk, dv, dk_strides, dv_strides },
        reads: [sequences, generator],
        writes: [],
    };
    // SAFETY: as above. It also reads the sequences, which it limits to the arrays, and the generator, whose lengths were checked, and
    // writes the gradients of keys and values without their maps, in layouts that were checked.
    unsafe {
        function.launch(
            stream,
            config,
            (&map_q, &map_k, &map_v, &map_do, &mut map_dk, &mut map_dv, parameters, options),
        )
    }
}
