//! The engine of compute capability 9.0: `csrc/kernels/attention_forward.cu` and `attention_backward.cu`.

mod parameters;

use parameters::{BackwardProblem, BandParameters, ForwardProblem, RowsProblem, WithMemory};

use super::problem::{Band, Operands, Problem, Sizes};
use super::{Pass, Unsupported};
use crate::driver::{
    DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, TensorMap, TensorMapLayout, TensorPromotion,
    TensorSwizzle,
};
use crate::error::{Error, Result};
use crate::images::{
    self, DeviceProperties, Entry, MAP_ALIGNMENT, MAP_STRIDE, missing_image, tensor_element,
};
use crate::types::{DType, Layout};

/// The kernels of an element type and head dimension. The first entry of a pair is for problems without a band, the second one for those with one.
struct Kernels {
    forward: &'static str,
    forward_entries: [&'static str; 2],
    backward: &'static str,
    prepare: &'static str,
    backward_entries: [&'static str; 2],
}

macro_rules! kernels {
    ($element:literal, $dimension:literal) => {
        Kernels {
            forward: concat!("attention_forward_", $element, "_", $dimension),
            forward_entries: [
                concat!("attention_forward_", $element, "_", $dimension, "_full"),
                concat!("attention_forward_", $element, "_", $dimension, "_band"),
            ],
            backward: concat!("attention_backward_", $element, "_", $dimension),
            prepare: concat!("attention_backward_", $element, "_", $dimension, "_prepare"),
            backward_entries: [
                concat!("attention_backward_", $element, "_", $dimension, "_full"),
                concat!("attention_backward_", $element, "_", $dimension, "_band"),
            ],
        }
    };
}

/// By element type, f16 and bf16, and head dimension, 64 and 128.
static KERNELS: [[Kernels; 2]; 2] =
    [[kernels!("f16", "64"), kernels!("f16", "128")], [kernels!("bf16", "64"), kernels!("bf16", "128")]];

/// The tile of a head dimension: exactly the `CONFIGURATION_` macros of the kernels.
struct Tile {
    /// The largest head dimension.
    dimension: usize,
    /// Consumer warpgroups of the forward, of 64 queries each, and its stages of keys and values.
    consumers: usize,
    forward_stages: usize,
    /// Queries of a step of the backward, and its stages of them.
    rows: usize,
    backward_stages: usize,
}

static TILES: [Tile; 2] = [
    Tile { dimension: 64, consumers: 3, forward_stages: 3, rows: 128, backward_stages: 2 },
    Tile { dimension: 128, consumers: 2, forward_stages: 2, rows: 64, backward_stages: 3 },
];

/// Keys of a block, forward and backward.
const BLOCK_KEYS: usize = 128;
/// The multiple that rows of the backward's workspace are rounded up to.
const PADDING: usize = 128;
/// Elements in a row of a tensor map's box: 128 bytes.
const PANEL: u32 = 64;
/// The limits of a band that limits nothing, and the most queries and keys.
const UNLIMITED: usize = 1 << 30;
/// Bytes of keys and values, and of what a head's backward reads, that the L2 cache holds at a time. Tiles of other heads wait.
/// From measurements on an H200, whose cache has 50 MB: causal backward of 2048 keys rose from 0.83 to 1.08 of cuDNN's speed.
const FORWARD_CACHE: usize = 32 << 20;
const BACKWARD_CACHE: usize = 24 << 20;
/// The fewest heads that alternate in the order of the backward's blocks, so that a block seldom waits for the one before it.
const MIN_ALTERNATING_HEADS: usize = 16;
/// Words before the counts of additions: the counter of blocks.
const PROGRESS_START: usize = 4;

/// Returns the index of the smallest tile that holds a head dimension.
fn tile_index(dimension: usize) -> Option<usize> {
    TILES.iter().position(|tile| dimension <= tile.dimension)
}

fn kernels(dtype: DType, tile: usize) -> &'static Kernels {
    &KERNELS[usize::from(dtype == DType::BF16)][tile]
}

/// Returns whether tensor maps can describe elements of 16 bits in this layout, in memory whose first byte is aligned to 16 bytes.
pub(crate) fn is_mapped(layout: &Layout) -> bool {
    let size = size_of::<u16>();
    let dimensions: Vec<(usize, isize)> = layout.dimensions().collect();
    let Some(((_, last), rest)) = dimensions.split_last() else { return false };
    let fits = |&(size_of_axis, stride): &(usize, isize)| {
        let bytes = stride.unsigned_abs().saturating_mul(size);
        size_of_axis <= 1 || (stride > 0 && bytes.is_multiple_of(MAP_ALIGNMENT) && bytes as u64 <= MAP_STRIDE)
    };
    *last == 1 && rest.iter().all(fits) && (layout.offset() * size).is_multiple_of(MAP_ALIGNMENT)
}

/// Returns the reason why the engine does not compute the problem.
pub(super) fn unsupported(
    problem: &Problem,
    pass: Pass,
    properties: DeviceProperties,
) -> Option<Unsupported> {
    check(problem, pass, properties).err()
}

fn check(
    problem: &Problem,
    pass: Pass,
    properties: DeviceProperties,
) -> std::result::Result<Sizes, Unsupported> {
    let sizes = problem.sizes().map_err(Unsupported::Shapes)?;
    let Problem { dtype, scale, .. } = *problem;
    if !matches!(dtype, DType::F16 | DType::BF16) {
        return Err(Unsupported::Type(dtype));
    }
    let Sizes { batch, heads, key_heads, queries, keys, dimension, value_dimension } = sizes;
    let is_multiple = dimension > 0 && dimension.is_multiple_of(MAP_ALIGNMENT / size_of::<u16>());
    let Some(tile) = tile_index(dimension).filter(|_| is_multiple && dimension == value_dimension) else {
        return Err(Unsupported::Dimension(dimension, value_dimension));
    };
    if !((scale as f32).is_normal() && scale > 0.0) {
        return Err(Unsupported::Scale(scale));
    }
    for (count, name) in [(batch, "batch"), (heads, "heads"), (queries, "queries"), (keys, "keys")] {
        if count == 0 {
            return Err(Unsupported::Empty(name));
        }
    }
    if queries.max(keys) >= UNLIMITED {
        return Err(Unsupported::TooMany("queries or keys"));
    }
    // The kernels count rows of all heads, and blocks of keys, in 32 bits.
    let rows = batch.saturating_mul(heads).saturating_mul(queries.next_multiple_of(PADDING));
    let blocks = batch.saturating_mul(key_heads).saturating_mul(keys.next_multiple_of(BLOCK_KEYS));
    if rows.max(blocks) > i32::MAX as usize / 2 {
        return Err(Unsupported::TooMany("rows of all heads"));
    }
    for (layout, name) in
        [(&problem.queries, "queries"), (&problem.keys, "keys"), (&problem.values, "values")]
    {
        if !is_mapped(layout) {
            return Err(Unsupported::Layout(name));
        }
    }
    let kernels = kernels(dtype, tile);
    let families = [Some(kernels.forward), (pass == Pass::Backward).then_some(kernels.backward)];
    match families.into_iter().flatten().find_map(|family| missing_image(properties, family)) {
        Some(error) => Err(Unsupported::Image(error)),
        None => Ok(sizes),
    }
}

/// A problem that the engine computes, on a stream.
struct Call<'a> {
    stream: &'a Stream,
    problem: &'a Problem,
    sizes: Sizes,
    tile: &'static Tile,
    kernels: &'static Kernels,
    multiprocessors: usize,
}

impl<'a> Call<'a> {
    fn new(
        operation: &'static str,
        stream: &'a Stream,
        problem: &'a Problem,
        pass: Pass,
    ) -> Result<Call<'a>> {
        let properties = DeviceProperties::from_device(&stream.device())?;
        let sizes = check(problem, pass, properties).map_err(|reason| match reason {
            Unsupported::Image(error) | Unsupported::Shapes(error) => error,
            reason => Error::invalid(operation, reason.to_string(), "a problem that an engine computes"),
        })?;
        let tile = tile_index(sizes.dimension).unwrap_or(TILES.len() - 1);
        let multiprocessors = properties.multiprocessors as usize;
        let (tile, kernels) = (&TILES[tile], kernels(problem.dtype, tile));
        Ok(Call { stream, problem, sizes, tile, kernels, multiprocessors })
    }

    fn function(&self, family: &'static str, entry: &'static str) -> Result<crate::driver::Function> {
        images::kernel(&self.stream.device(), family, Entry::Name(entry))
    }

    /// Returns the tensor map of an operand, with boxes of so many rows.
    fn map(&self, memory: DeviceSlice<'_, u8>, layout: &Layout, rows: usize) -> Result<TensorMap> {
        let size = size_of::<u16>();
        let axes: Vec<(usize, isize)> = layout.dimensions().rev().collect();
        let mut strides: Vec<u64> = Vec::with_capacity(axes.len());
        // The distance to the next of a single row, head or matrix is any that a map takes.
        let mut unused = MAP_ALIGNMENT as u64;
        for (extent, stride) in &axes[1..] {
            let stride = if *extent > 1 { stride.unsigned_abs() as u64 * size as u64 } else { unused };
            unused = stride;
            strides.push(stride);
        }
        let element = tensor_element(self.problem.dtype)?;
        TensorMap::tiled(
            &memory.slice(layout.offset() * size..)?,
            &TensorMapLayout {
                shape: axes.iter().map(|(extent, _)| *extent as u64).collect(),
                strides,
                swizzle: TensorSwizzle::Bytes128,
                promotion: TensorPromotion::Bytes256,
                ..TensorMapLayout::contiguous(element, &[], &[PANEL, rows as u32, 1, 1])
            },
        )
    }

    fn band(&self) -> BandParameters {
        let limit = |limit: Option<usize>| limit.unwrap_or(UNLIMITED).min(UNLIMITED) as i32;
        let Band { before, after } = self.problem.band;
        BandParameters {
            queries: self.sizes.queries as i32,
            keys: self.sizes.keys as i32,
            before: limit(before),
            after: limit(after),
        }
    }

    fn all_heads(&self) -> usize {
        self.sizes.batch * self.sizes.heads
    }

    fn queries_per_key(&self) -> usize {
        self.sizes.heads / self.sizes.key_heads
    }

    /// Returns the queries of each head, rounded up for the backward's workspace.
    fn padded(&self) -> usize {
        self.sizes.queries.next_multiple_of(PADDING)
    }
}

/// Returns the address of a layout's first element, and its strides between batches, heads and positions.
fn place(address: u64, layout: &Layout) -> (u64, [i64; 3]) {
    let strides = layout.strides();
    let stride = |axis: usize| strides.get(axis).copied().unwrap_or(0) as i64;
    (address + (layout.offset() * size_of::<u16>()) as u64, [stride(0), stride(1), stride(2)])
}

/// Returns the smallest memory that holds the kernel's shared storage.
fn forward_shared_bytes(tile: &Tile) -> usize {
    let row = tile.dimension * size_of::<u16>();
    let barriers = 32 + 32 * tile.forward_stages;
    3 * 64 * tile.consumers * row + 2 * tile.forward_stages * BLOCK_KEYS * row + barriers + 32 + 1024
}

fn backward_shared_bytes(tile: &Tile) -> usize {
    let (row, stages) = (tile.dimension * size_of::<u16>(), tile.backward_stages);
    let queries = 2 * stages * tile.rows * (row + size_of::<f32>());
    let scores = 3 * BLOCK_KEYS * tile.rows * size_of::<u16>();
    let barriers = 8 + 32 * stages + 8 + 64;
    2 * BLOCK_KEYS * row + queries + scores + barriers + 16 + 16 + 1024
}

/// Writes the result and the LSE of a problem.
///
/// `operands` is the memory of the queries, keys and values, `result` that of the result in `layout`, which has the shape of
/// the queries. `lse` has an element for each batch, head and query: ln Σ exp(scale · score), and -∞ where a query reads no key.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with the reason for a problem that [`unsupported`](super::unsupported) refuses, and for memory that
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
        heads_per_group: (FORWARD_CACHE / keys_and_values).clamp(1, call.all_heads()) as i32,
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
            .shared(forward_shared_bytes(tile) as u32);
    let parameters =
        WithMemory { parameters, reads: [], writes: [lse.reinterpret()?, counter.reinterpret()?] };
    // SAFETY: the kernel takes four maps and these parameters. It reads the memory of the first three maps, and writes that of the
    // last one, the LSE, whose length was checked, and the counter. All of it is entered.
    unsafe { function.launch(stream, config, (&map_q, &map_k, &map_v, &mut map_o, parameters)) }
}

/// The memory of the gradients of queries, keys and values, and their layouts in it, which have the shapes of the operands and share
/// no element.
pub struct Gradients<'a> {
    /// The memory, in bytes.
    pub memory: DeviceSliceMut<'a, u8>,
    /// The layouts of the gradients of queries, keys and values.
    pub layouts: [Layout; 3],
}

/// Writes the gradients of a problem, by the result and the LSE of [`forward`] and the gradient of the result.
///
/// `result` and `gradient` are in layouts of the shape of the queries.
///
/// # Errors
///
/// As [`forward`].
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
    let Call { sizes, tile, kernels, .. } = call;
    let place_of = |memory: &DeviceSlice<'_, u8>| (memory.address(), memory.len());
    check_layout(OPERATION, place_of(&result.0), result.1, &problem.queries)?;
    check_layout(OPERATION, place_of(&gradient.0), gradient.1, &problem.queries)?;
    let written = (gradients.memory.address(), gradients.memory.len());
    for (layout, operand) in gradients.layouts.iter().zip([&problem.queries, &problem.keys, &problem.values])
    {
        check_layout(OPERATION, written, layout, operand)?;
    }
    check_lse(OPERATION, &call, lse.len())?;
    let (all_heads, padded) = (call.all_heads(), call.padded());
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
    let (dq, dq_strides) = place(written.address(), &layouts[0]);
    let (o, o_strides) = place(result.0.address(), result.1);
    let (d_o, do_strides) = place(gradient.0.address(), gradient.1);
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
        heads: sizes.heads as i32,
        queries: sizes.queries as i32,
        padded: padded as i32,
        dimension: sizes.dimension as i32,
        rows_without_keys: (sizes.queries as i64 - sizes.keys as i64 - i64::from(band.after)).max(0) as i32,
        padding: 0,
    };
    let blocks = all_heads * padded * tile.dimension / 2048;
    let parameters = WithMemory {
        parameters: prepare,
        reads: [result.0, gradient.0, lse.reinterpret()?],
        writes: [written.reborrow(), workspace.reborrow().reinterpret()?],
    };
    let function = call.function(kernels.backward, kernels.prepare)?;
    // SAFETY: the kernel reads the result and its gradient, whose layouts were checked against their memory by the maps below or
    // here, and writes the workspace and the first rows of the gradient of the queries.
    unsafe { function.launch(stream, LaunchConfig::new(blocks as u32, 256), (parameters,))? };

    let all_kv_heads = sizes.batch * sizes.key_heads;
    let of_head = sizes.queries * tile.dimension * 8 * call.queries_per_key();
    let heads_per_group = (BACKWARD_CACHE / of_head).max(MIN_ALTERNATING_HEADS).min(all_kv_heads);
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
    let blocks = sizes.keys.div_ceil(BLOCK_KEYS) * all_kv_heads;
    let entry = kernels.backward_entries[usize::from(!problem.band.is_full())];
    let function = call.function(kernels.backward, entry)?;
    let config = LaunchConfig::new(blocks as u32, 384).shared(backward_shared_bytes(tile) as u32);
    let parameters =
        WithMemory { parameters, reads: [], writes: [written.reborrow(), workspace.reinterpret()?] };
    // SAFETY: the kernel takes six maps and these parameters. It reads the memory of the first four maps, and writes that of the last
    // two, the gradient of the queries, whose layout was checked, and the workspace. All of it is entered.
    unsafe {
        function.launch(
            stream,
            config,
            (&map_q, &map_k, &map_v, &map_do, &mut map_dk, &mut map_dv, parameters),
        )
    }
}

/// Checks the layout of a result or of a gradient, which has the shape of an operand, in memory of an address and length in bytes.
fn check_layout(
    operation: &'static str,
    (address, length): (u64, usize),
    layout: &Layout,
    operand: &Layout,
) -> Result<()> {
    let is_aligned = address.is_multiple_of(MAP_ALIGNMENT as u64) && is_mapped(layout);
    if layout.shape() != operand.shape() || !is_aligned || layout.end() * size_of::<u16>() > length {
        let found = format!("{layout:?} in {length} bytes at address {address:#x}");
        let wanted = format!("shape {} inside of the memory, rows at multiples of 16 bytes", operand.shape());
        return Err(Error::invalid(operation, found, wanted));
    }
    Ok(())
}

fn check_lse(operation: &'static str, call: &Call<'_>, found: usize) -> Result<()> {
    let wanted = call.all_heads() * call.sizes.queries;
    if found == wanted { Ok(()) } else { Err(Error::LengthMismatch { operation, wanted, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    fn problem(dtype: DType, sizes: [usize; 4]) -> Problem {
        let layout = Layout::contiguous(&sizes).unwrap();
        Problem { band: Band::causal(), scale: 0.125, ..Problem::new(dtype, layout, layout, layout) }
    }

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        for kernels in KERNELS.iter().flatten() {
            let mut forward = kernels.forward_entries;
            forward.sort_unstable();
            assert_eq!(entries::declared(kernels.forward, "sm_90a"), forward);
            let mut backward = [kernels.prepare, kernels.backward_entries[0], kernels.backward_entries[1]];
            backward.sort_unstable();
            assert_eq!(entries::declared(kernels.backward, "sm_90a"), backward);
        }
    }

    #[test]
    fn parameters_have_the_kernels_sizes() {
        assert_eq!(size_of::<ForwardProblem>(), 64);
        assert_eq!(size_of::<BackwardProblem>(), 112);
        assert_eq!(size_of::<RowsProblem>(), 152);
    }

    #[test]
    fn shared_storage_fits_a_block() {
        for tile in &TILES {
            assert!((160 << 10..=227 << 10).contains(&forward_shared_bytes(tile)));
            assert!((160 << 10..=227 << 10).contains(&backward_shared_bytes(tile)));
        }
    }

    #[test]
    fn problems_without_an_engine_say_why() {
        let reason = |problem: &Problem, properties| {
            unsupported(problem, Pass::Backward, properties)
                .map(|reason| reason.to_string())
                .unwrap_or_default()
        };
        let good = problem(DType::BF16, [2, 3, 1000, 64]);
        assert_eq!(reason(&good, H200), "");
        assert_eq!(reason(&problem(DType::F16, [2, 3, 1000, 128]), H200), "");
        let strided =
            |strides: [isize; 4], offset| Layout::strided(&[2, 3, 1000, 64], &strides, offset).unwrap();
        let packed = strided([576_000, 64, 576, 1], 192);
        assert_eq!(reason(&Problem { queries: packed, ..good }, H200), "");
        for (changed, wanted) in [
            (problem(DType::F32, [2, 3, 1000, 64]), "attention of f32"),
            (problem(DType::BF16, [2, 3, 1000, 68]), "dimension of 68"),
            (problem(DType::BF16, [2, 3, 1000, 136]), "dimension of 136"),
            (problem(DType::BF16, [0, 3, 1000, 64]), "no batch"),
            (problem(DType::BF16, [2, 3, 0, 64]), "no queries"),
            (Problem { scale: 0.0, ..good }, "a scale of 0"),
            (Problem { scale: f64::NAN, ..good }, "a scale of NaN"),
            (Problem { scale: -1.0, ..good }, "a scale of -1"),
            (Problem { keys: strided([192_000, 64, 192, 1], 4), ..good }, "keys whose head dimension"),
            (Problem { values: strided([1, 128_000, 128, 2], 0), ..good }, "values whose head dimension"),
            (Problem { keys: strided([192_000, 0, 64, 1], 0), ..good }, "keys whose head dimension"),
            (Problem { keys: Layout::contiguous(&[2, 2, 9, 64]).unwrap(), ..good }, "equal heads"),
        ] {
            let found = reason(&changed, H200);
            assert!(found.contains(wanted), "{wanted}: {found}");
        }
        let older = DeviceProperties { capability: (8, 0), ..H200 };
        assert!(!reason(&good, older).is_empty());
    }
}
