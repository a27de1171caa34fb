//! The forward's launch.

use super::parameters::{ForwardProblem, Variations, VariedForwardProblem};
use super::{Call, Sizes, Tile, check_layout, check_lse, entry, rows_of_head, sequences_of};
use crate::attention::problem::address_and_strides;
use crate::attention::{Operands, Pass, Problem};
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, WithMemory};
use crate::error::Result;
use crate::types::Layout;

/// Bytes of keys and values that the L2 cache holds at a time. Tiles of other heads wait. An H200's cache has 50 MB.
const CACHE: usize = 32 << 20;

/// Returns the smallest memory that holds the kernel's shared storage.
pub(super) fn shared_bytes(tile: &Tile, is_varied: bool) -> usize {
    let row = tile.dimension * size_of::<u16>();
    let stages = tile.forward_stages;
    let barriers = 32 + 32 * stages;
    // Longer descriptors of tiles, and one more barrier of each stage.
    let of_options = if is_varied { 32 + 8 * stages } else { 0 };
    // Two tiles of queries and one of results; above 128 columns one buffer is both.
    let rows = if tile.dimension > 128 { 1 } else { 3 } * 64 * tile.consumers;
    (rows + 2 * stages * tile.forward_keys) * row + barriers + 32 + of_options + 1024
}

fn tiles_per_head(problem: &Problem, sizes: &Sizes, tile: &Tile) -> usize {
    rows_of_head(problem, sizes).0.div_ceil(64 * tile.consumers)
}

/// Returns the number of tiles of queries.
pub(super) fn tiles(problem: &Problem, sizes: &Sizes, tile: &Tile) -> usize {
    tiles_per_head(problem, sizes, tile) * sequences_of(problem, sizes) * sizes.heads
}

/// Writes the result and the LSE of a problem.
///
/// `operands` is the memory of the queries, keys and values, `result` that of the result in `layout`, which has the shape of
/// the queries. `lse` has an element for each batch, head and query: ln Σ exp(scale · score), and -∞ where a query reads no key.
/// Positions of no packed sequence get no result and no LSE.
///
/// # Errors
///
/// [`Error::InvalidArgument`](crate::Error::InvalidArgument) with the reason for a problem that
/// [`unsupported`](crate::attention::unsupported) refuses, for memory that the layouts exceed or that is not aligned to 16 bytes, and
/// for operands without the sequences of the problem or of another length;
/// [`Error::LengthMismatch`](crate::Error::LengthMismatch) for an LSE of another length;
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory); the errors of loading an image and of a launch.
/// The next wait for the device returns a [device-side error](crate::driver::KernelError) for sequences that do not fit
/// ([`Operands::sequences`]).
pub fn forward(
    stream: &Stream,
    problem: &Problem,
    operands: Operands<'_>,
    (result, layout): (DeviceSliceMut<'_, u8>, &Layout),
    lse: DeviceSliceMut<'_, f32>,
) -> Result<()> {
    const OPERATION: &str = "attention::forward";
    let call = Call::new(OPERATION, stream, problem, Pass::Forward)?;
    let _traced = call.traced();
    let Call { sizes, tile, kernels, .. } = call;
    check_layout(OPERATION, (result.address(), result.len()), layout, &problem.queries)?;
    check_lse(OPERATION, &call, lse.len())?;
    let options = call.variations(&operands)?;
    let rows = 64 * tile.consumers;
    let tiles_per_head = tiles_per_head(problem, &sizes, tile);
    let all_heads = call.sequences() * sizes.heads;
    let tiles = tiles_per_head * all_heads;
    if tiles == 0 {
        return Ok(());
    }
    // Each launch counts its tiles in a workspace of its own, because launches of two streams may overlap.
    let mut counter = stream.uninitialized::<u32>(usize::from(tiles > call.multiprocessors))?;
    if !counter.is_empty() {
        stream.fill(&mut counter, 0)?;
    }
    let counter = counter.slice_mut(..)?;
    let longest = problem.sequences.map_or(sizes.keys, |sequences| sequences.max_keys.max(1));
    let keys_and_values = 2 * longest * sizes.dimension * size_of::<u16>();
    let parameters = ForwardProblem {
        lse: lse.address(),
        next_tile: if counter.is_empty() { 0 } else { counter.address() },
        band: call.band(),
        heads: sizes.heads as i32,
        queries_per_key: call.queries_per_key() as i32,
        tiles_per_head: tiles_per_head as i32,
        tiles: tiles as i32,
        heads_per_group: (CACHE / keys_and_values).clamp(1, all_heads) as i32,
        all_heads: all_heads as i32,
        scale: problem.scale as f32,
        padding: 0,
    };
    let Operands { queries, keys, values, .. } = operands;
    let map_q = call.map(queries, &problem.queries, rows)?;
    let map_k = call.map(keys, &problem.keys, tile.forward_keys)?;
    let map_v = call.map(values, &problem.values, tile.forward_keys)?;
    let mut map_o = call.map(DeviceSlice::from(&result), layout, 64)?;
    let function = call.function(kernels.forward, entry(&kernels.forward_entries, problem))?;
    let config =
        LaunchConfig::new(tiles.min(call.multiprocessors) as u32, (128 * (1 + tile.consumers)) as u32)
            .shared(shared_bytes(tile, options.is_some()) as u32);
    let Some(options) = options else {
        let parameters =
            WithMemory { parameters, reads: [], writes: [lse.reinterpret()?, counter.reinterpret()?] };
        // SAFETY: the kernel takes four maps and these parameters. It reads the memory of the first three maps, and writes that of the
        // last one, the LSE, whose length was checked, and the counter. All of it is entered.
        return unsafe { function.launch(stream, config, (&map_q, &map_k, &map_v, &mut map_o, parameters)) };
    };
    let (o, o_strides) = address_and_strides(result.address(), layout);
    let dimension = sizes.dimension as i32;
    let parameters = WithMemory {
        parameters: VariedForwardProblem {
            problem: parameters,
            options,
            o,
            o_strides,
            dimension,
            padding: 0,
        },
        reads: Variations::memory(&operands)?,
        writes: [lse.reinterpret()?, counter.reinterpret()?],
    };
    // SAFETY: as above. It also reads the sequences and the generator, whose lengths were checked, and writes the result without its map,
    // in a layout that was checked. It limits sequences to the arrays.
    unsafe { function.launch(stream, config, (&map_q, &map_k, &map_v, &mut map_o, parameters)) }
}
