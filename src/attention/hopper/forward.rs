//! The forward's launch.

use super::parameters::{ForwardProblem, WithMemory};
use super::{BLOCK_KEYS, Call, Tile, check_layout, check_lse};
use crate::attention::{Operands, Pass, Problem};
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::types::Layout;

/// Bytes of keys and values that the L2 cache holds at a time. Tiles of other heads wait. An H200's cache has 50 MB.
const CACHE: usize = 32 << 20;

/// Returns the smallest memory that holds the kernel's shared storage.
pub(super) fn shared_bytes(tile: &Tile) -> usize {
    let row = tile.dimension * size_of::<u16>();
    let barriers = 32 + 32 * tile.forward_stages;
    3 * 64 * tile.consumers * row + 2 * tile.forward_stages * BLOCK_KEYS * row + barriers + 32 + 1024
}

/// Writes the result and the LSE of a problem.
///
/// `operands` is the memory of the queries, keys and values, `result` that of the result in `layout`, which has the shape of
/// the queries. `lse` has an element for each batch, head and query: ln Σ exp(scale · score), and -∞ where a query reads no key.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the reason for a problem that [`unsupported`](crate::attention::unsupported) refuses, and for memory that
/// the layouts exceed or that is not aligned to 16 bytes; [`Error::LengthMismatch`] for an LSE of another length;
/// [`Error::OutOfMemory`]; the errors of loading an image and of a launch.
pub fn forward(
    stream: &Stream,
    problem: &Problem,
    operands: Operands<'_>,
    (result, layout): (DeviceSliceMut<'_, u8>, &Layout),
    lse: DeviceSliceMut<'_, f32>,
) -> Result<()> {
    const OPERATION: &str = "attention::forward";
    let call = Call::new(OPERATION, stream, problem, Pass::Forward)?;
    let Call { sizes, tile, kernels, .. } = call;
    check_layout(OPERATION, (result.address(), result.len()), layout, &problem.queries)?;
    check_lse(OPERATION, &call, lse.len())?;
    let rows = 64 * tile.consumers;
    let tiles_per_head = sizes.queries.div_ceil(rows);
    let tiles = tiles_per_head * call.all_heads();
    // Each launch counts its tiles in a workspace of its own, because launches of two streams may overlap.
    let mut counter = stream.uninitialized::<u32>(usize::from(tiles > call.multiprocessors))?;
    if !counter.is_empty() {
        stream.fill(&mut counter, 0)?;
    }
    let counter = counter.slice_mut(..)?;
    let keys_and_values = 2 * sizes.keys * sizes.dimension * size_of::<u16>();
    let parameters = ForwardProblem {
        lse: lse.address(),
        next_tile: if counter.is_empty() { 0 } else { counter.address() },
        band: call.band(),
        heads: sizes.heads as i32,
        queries_per_key: call.queries_per_key() as i32,
        tiles_per_head: tiles_per_head as i32,
        tiles: tiles as i32,
        heads_per_group: (CACHE / keys_and_values).clamp(1, call.all_heads()) as i32,
        all_heads: call.all_heads() as i32,
        scale: problem.scale as f32,
        padding: 0,
    };
    let Operands { queries, keys, values, .. } = operands;
    let map_q = call.map(queries, &problem.queries, rows)?;
    let map_k = call.map(keys, &problem.keys, BLOCK_KEYS)?;
    let map_v = call.map(values, &problem.values, BLOCK_KEYS)?;
    let mut map_o = call.map(DeviceSlice::from(&result), layout, 64)?;
    let entry = kernels.forward_entries[usize::from(!problem.band.is_full())];
    let function = call.function(kernels.forward, entry)?;
    let config =
        LaunchConfig::new(tiles.min(call.multiprocessors) as u32, (128 * (1 + tile.consumers)) as u32)
            .shared(shared_bytes(tile) as u32);
    let parameters =
        WithMemory { parameters, reads: [], writes: [lse.reinterpret()?, counter.reinterpret()?] };
    // SAFETY: the kernel takes four maps and these parameters. It reads the memory of the first three maps, and writes that of the
    // last one, the LSE, whose length was checked, and the counter. All of it is entered.
    unsafe { function.launch(stream, config, (&map_q, &map_k, &map_v, &mut map_o, parameters)) }
}
