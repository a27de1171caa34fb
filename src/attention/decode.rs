//! [`decode`], attention of a few queries against a long cache: `csrc/kernels/attention_decode.cu`.

use bytemuck::{Pod, Zeroable};

use super::planned_kernel::PlannedKernel;
use super::problem::{Band, MAX_DECODE_QUERIES, Problem, Sizes, address_and_strides};
use super::unsupported::Unsupported;
use crate::driver::{DeviceBuffer, DeviceSlice, DeviceSliceMut, LaunchConfig, Stream, WithMemory};
use crate::error::{Error, Result};
use crate::images::{self, DeviceProperties, Entry, MAP_ALIGNMENT, missing_image};
use crate::trace;
use crate::types::{DType, Layout};

const OPERATION: &str = "attention::decode";

/// Threads of a block.
const THREADS: u32 = 256;
/// Keys of a chunk, which has one softmax, and chunks of a group.
const CHUNK_KEYS: usize = 256;
const GROUP_CHUNKS: usize = 8;
const WARPS: usize = 8;
/// The limits of a band that limits nothing, and the most keys.
const UNLIMITED: usize = 1 << 30;

/// A kernel: exactly the enumerators of attention_decode.cu for its head dimension.
struct Kernel {
    dimension: usize,
    names: [&'static str; 2],
    /// Rows of a block.
    rows: usize,
    /// Keys of a stage of the ring.
    stage_keys: usize,
    stages: usize,
}

macro_rules! kernel {
    ($dimension:literal, $rows:literal, $stage_keys:literal, $stages:literal) => {
        Kernel {
            dimension: $dimension,
            names: [
                concat!("attention_decode_f16_", $dimension),
                concat!("attention_decode_bf16_", $dimension),
            ],
            rows: $rows,
            stage_keys: $stage_keys,
            stages: $stages,
        }
    };
}

static KERNELS: [Kernel; 3] = [kernel!(64, 32, 128, 5), kernel!(128, 32, 128, 3), kernel!(256, 16, 64, 3)];

impl Kernel {
    fn name(&self, dtype: DType) -> &'static str {
        self.names[usize::from(dtype == DType::BF16)]
    }

    /// Returns the shared memory of a block with so many rows, in bytes.
    fn shared_bytes(&self, rows: usize) -> usize {
        let rows = rows.min(self.rows).next_multiple_of(16);
        let row = self.dimension * size_of::<u16>();
        let ring = self.stages * self.stage_keys * row;
        ring + rows * (row + CHUNK_KEYS * size_of::<u16>()) + 2 * WARPS * self.rows * size_of::<f32>() + 16
    }
}

/// Exactly `DecodeProblem` of attention_decode.cu.
#[repr(C, align(16))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct DecodeParameters {
    queries: u64,
    new_keys: u64,
    new_values: u64,
    keys: u64,
    values: u64,
    result: u64,
    cosines: u64,
    sines: u64,
    lengths: u64,
    partials: u64,
    arrivals: u64,
    query_strides: [i64; 3],
    new_key_strides: [i64; 3],
    new_value_strides: [i64; 3],
    key_strides: [i64; 3],
    value_strides: [i64; 3],
    result_strides: [i64; 3],
    heads_per_key: i32,
    queries_per_head: i32,
    rows: i32,
    capacity: i32,
    dimension: i32,
    half: i32,
    before: i32,
    after: i32,
    chunks_of_split: i32,
    scale: f32,
    soft_cap: f32,
    padding: [u32; 3],
}

/// Keys and values of positions that the cache does not have yet, one for each query.
#[derive(Clone, Copy)]
pub struct NewPositions<'a> {
    /// The keys, of (batch, key heads, queries, head dimension), in bytes.
    pub keys: (DeviceSlice<'a, u8>, &'a Layout),
    /// The values, of the same shape.
    pub values: (DeviceSlice<'a, u8>, &'a Layout),
}

/// Rotary positions: pair i of a head, its elements i and i + `half`, turns by an angle of its position.
#[derive(Clone, Copy)]
pub struct RotaryAngles<'a> {
    /// The cosines, (positions, half), for all positions of the cache.
    pub cosines: DeviceSlice<'a, f32>,
    /// The sines, (positions, 2, half); those of the first half are negative.
    pub sines: DeviceSlice<'a, f32>,
    /// The number of pairs. Elements behind 2 · half are not rotated.
    pub half: usize,
}

/// The memory of a decoding, from the layouts' offsets of its [`Problem`] on.
pub struct DecodeOperands<'a> {
    /// The memory of the queries, in bytes.
    pub queries: DeviceSlice<'a, u8>,
    /// The cache of keys, in bytes. Its length is the capacity.
    pub keys: DeviceSliceMut<'a, u8>,
    /// The cache of values, in bytes.
    pub values: DeviceSliceMut<'a, u8>,
    /// For each sequence its number of keys, with the new ones; without them each has as many as the capacity. Numbers outside of 0 to
    /// the capacity are limited to it.
    pub lengths: Option<DeviceSlice<'a, i32>>,
    /// Keys and values that are written to the cache at the last positions of each sequence, and are read too.
    pub new: Option<NewPositions<'a>>,
    /// The rotation of queries and new keys by their positions. Keys of the cache are rotated already.
    pub angles: Option<RotaryAngles<'a>>,
}

/// Memory for the partial results of decodings. One serves all problems that it is large enough for, one after the other.
#[derive(Debug)]
pub struct DecodeWorkspace {
    memory: DeviceBuffer<u32>,
}

/// The division of a problem among blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Division {
    rows: usize,
    row_blocks: usize,
    chunks_of_split: usize,
    splits: usize,
}

impl Division {
    fn new(sizes: &Sizes, kernel: &Kernel, multiprocessors: usize) -> Division {
        let rows = sizes.heads / sizes.key_heads * sizes.queries;
        let row_blocks = rows.div_ceil(kernel.rows);
        let groups = sizes.keys.div_ceil(GROUP_CHUNKS * CHUNK_KEYS);
        let all = groups * sizes.key_heads * row_blocks * sizes.batch;
        // One block has so many copies in flight that it takes a multiprocessor's share of the bandwidth. Both divisions have the same bits:
        // see the kernel's invariants.
        let chunks_of_split = match 4 * all >= 3 * multiprocessors {
            true => GROUP_CHUNKS,
            false => 1,
        };
        let splits = sizes.keys.div_ceil(chunks_of_split * CHUNK_KEYS);
        Division { rows, row_blocks, chunks_of_split, splits }
    }

    /// Returns the words of arrivals, rounded up, and of partials.
    fn workspace(&self, sizes: &Sizes, kernel: &Kernel) -> (usize, usize) {
        let blocks = sizes.batch * sizes.key_heads * self.row_blocks;
        let partials = match self.splits {
            1 => 0,
            splits => blocks * splits * kernel.rows * (kernel.dimension + 2),
        };
        (blocks.next_multiple_of(4), partials)
    }
}

impl DecodeWorkspace {
    /// Creates the memory for a problem, and for smaller ones.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a problem that [`decode`] does not compute; [`Error::OutOfMemory`].
    pub fn new(stream: &Stream, problem: &Problem) -> Result<DecodeWorkspace> {
        let (sizes, kernel, multiprocessors) = checked(stream, problem)?;
        let division = Division::new(&sizes, kernel, multiprocessors);
        let (arrivals, partials) = division.workspace(&sizes, kernel);
        let mut memory = stream.uninitialized::<u32>(arrivals + partials)?;
        stream.fill(&mut memory.slice_mut(..arrivals)?, 0)?;
        Ok(DecodeWorkspace { memory })
    }
}

fn kernel_of(dimension: usize) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| dimension <= kernel.dimension)
}

/// Returns whether the last axis of a layout is contiguous.
fn has_contiguous_rows(layout: &Layout) -> bool {
    layout.dimensions().last().is_some_and(|(size, stride)| size <= 1 || stride == 1)
}

/// Returns whether all rows of a layout begin at multiples of 16 bytes, in memory that does.
fn has_aligned_rows(layout: &Layout) -> bool {
    let is_multiple = |elements: usize| (elements * size_of::<u16>()).is_multiple_of(MAP_ALIGNMENT);
    let mut outer = layout.dimensions().rev().skip(1);
    is_multiple(layout.offset())
        && outer.all(|(size, stride)| size <= 1 || stride > 0 && is_multiple(stride.unsigned_abs()))
}

fn check(
    problem: &Problem,
    properties: DeviceProperties,
) -> std::result::Result<(Sizes, &'static Kernel), Unsupported> {
    let sizes = problem.sizes().map_err(Unsupported::Shapes)?;
    let Problem { dtype, scale, soft_cap, .. } = *problem;
    if !matches!(dtype, DType::F16 | DType::BF16) {
        return Err(Unsupported::Type(dtype));
    }
    let Sizes { batch, heads, key_heads, queries, keys, dimension, value_dimension } = sizes;
    let kernel = kernel_of(dimension).filter(|_| {
        dimension > 0
            && dimension.is_multiple_of(MAP_ALIGNMENT / size_of::<u16>())
            && dimension == value_dimension
    });
    let Some(kernel) = kernel else { return Err(Unsupported::Dimension(dimension, value_dimension)) };
    if queries > MAX_DECODE_QUERIES {
        return Err(Unsupported::Queries(queries));
    }
    if !((scale as f32).is_normal() && scale > 0.0) {
        return Err(Unsupported::Scale(scale));
    }
    if let Some(cap) = soft_cap.filter(|&cap| !((cap as f32).is_normal() && cap > 0.0)) {
        return Err(Unsupported::SoftCap(cap));
    }
    if problem.dropout.is_some() || problem.sequences.is_some() {
        return Err(Unsupported::Training);
    }
    for (count, name) in [(batch, "batch"), (heads, "heads"), (queries, "queries"), (keys, "keys")] {
        if count == 0 {
            return Err(Unsupported::Empty(name));
        }
    }
    // Grids have at most 65535 blocks in their second and third dimension.
    let row_blocks = (heads / key_heads * queries).div_ceil(kernel.rows);
    for (count, most, name) in [
        (keys, UNLIMITED, "keys"),
        (batch, 65536, "sequences"),
        (key_heads.saturating_mul(row_blocks), 65536, "heads"),
    ] {
        if count >= most {
            return Err(Unsupported::TooMany(name));
        }
    }
    for (layout, name) in [(&problem.keys, "keys"), (&problem.values, "values")] {
        if !has_contiguous_rows(layout) || !has_aligned_rows(layout) {
            return Err(Unsupported::Layout(name));
        }
    }
    if !has_contiguous_rows(&problem.queries) {
        return Err(Unsupported::Layout("queries"));
    }
    match missing_image(properties, kernel.name(dtype)) {
        Some(error) => Err(Unsupported::Image(error)),
        None => Ok((sizes, kernel)),
    }
}

/// Returns the reason why [`decode`] does not compute a problem on such a device, and `None` if it does.
pub fn decode_unsupported(problem: &Problem, properties: DeviceProperties) -> Option<Unsupported> {
    check(problem, properties).err()
}

/// Returns the kernel that computes a problem, or the reason why none does.
pub(super) fn plan(
    problem: &Problem,
    properties: DeviceProperties,
) -> std::result::Result<PlannedKernel, Unsupported> {
    let (sizes, kernel) = check(problem, properties)?;
    let division = Division::new(&sizes, kernel, properties.multiprocessors as usize);
    Ok(PlannedKernel {
        name: kernel.name(problem.dtype),
        tile: (division.rows.min(kernel.rows), division.chunks_of_split * CHUNK_KEYS),
        blocks: division.splits * sizes.key_heads * division.row_blocks * sizes.batch,
    })
}

fn checked(stream: &Stream, problem: &Problem) -> Result<(Sizes, &'static Kernel, usize)> {
    let properties = DeviceProperties::from_device(&stream.device())?;
    match check(problem, properties) {
        Ok((sizes, kernel)) => Ok((sizes, kernel, properties.multiprocessors as usize)),
        Err(Unsupported::Image(error) | Unsupported::Shapes(error)) => Err(error),
        Err(reason) => {
            Err(Error::invalid(OPERATION, reason.to_string(), "a problem that the kernels compute"))
        }
    }
}

/// Checks that a layout of a shape is inside of memory.
fn check_inside(
    name: &str,
    (address, length): (u64, usize),
    layout: &Layout,
    wanted: [usize; 4],
    is_aligned: bool,
) -> Result<()> {
    let is_placed = !is_aligned || (address.is_multiple_of(MAP_ALIGNMENT as u64) && has_aligned_rows(layout));
    let is_inside = layout.end().saturating_mul(size_of::<u16>()) <= length;
    if layout.shape()[..] == wanted && has_contiguous_rows(layout) && is_placed && is_inside {
        return Ok(());
    }
    let found = format!("{name} of {layout:?} in {length} bytes at address {address:#x}");
    let rows = if is_aligned { "rows at multiples of 16 bytes" } else { "contiguous rows" };
    Err(Error::invalid(OPERATION, found, format!("shape {wanted:?} inside of the memory, {rows}")))
}

/// Computes softmax(scale · Q Kᵀ) V for one to eight queries of each sequence against a cache, in a layout of (batch, heads, queries, head
/// dimension). The keys of the problem are the cache, with its capacity as their length. The last query and the last key of a sequence
/// are at the same position.
///
/// With [`DecodeOperands::new`] the kernel first writes keys and values of the last positions to the cache, and with
/// [`DecodeOperands::angles`] it rotates them and the queries.
///
/// The result of a sequence has the same bits whatever the other sequences, the capacity and the device's size are.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for a problem that the kernels do not compute ([`decode_unsupported`]), for operands outside of their
/// memory, for angles of fewer positions than the cache, and for a workspace that is too small; driver errors.
pub fn decode(
    stream: &Stream,
    problem: &Problem,
    operands: DecodeOperands<'_>,
    result: (DeviceSliceMut<'_, u8>, &Layout),
    workspace: &mut DecodeWorkspace,
) -> Result<()> {
    let (sizes, kernel, multiprocessors) = checked(stream, problem)?;
    let division = Division::new(&sizes, kernel, multiprocessors);
    let _traced = traced(problem, &sizes, kernel);
    let Sizes { batch, heads, key_heads, queries: count, keys: capacity, dimension, .. } = sizes;
    let DecodeOperands { queries, keys, values, lengths, new, angles } = operands;
    let of_queries = [batch, heads, count, dimension];
    let of_cache = [batch, key_heads, capacity, dimension];
    let of_new = [batch, key_heads, count, dimension];
    check_inside("queries", (queries.address(), queries.len()), &problem.queries, of_queries, false)?;
    check_inside("keys", (keys.address(), keys.len()), &problem.keys, of_cache, true)?;
    check_inside("values", (values.address(), values.len()), &problem.values, of_cache, true)?;
    check_inside("a result", (result.0.address(), result.0.len()), result.1, of_queries, false)?;
    if let Some(NewPositions { keys, values }) = &new {
        check_inside("new keys", (keys.0.address(), keys.0.len()), keys.1, of_new, false)?;
        check_inside("new values", (values.0.address(), values.0.len()), values.1, of_new, false)?;
    }
    if let Some(lengths) = lengths.as_ref().filter(|lengths| lengths.len() != batch) {
        return Err(Error::LengthMismatch { operation: OPERATION, wanted: batch, found: lengths.len() });
    }
    if let Some(angles) = &angles {
        let wanted = capacity * angles.half;
        if 2 * angles.half > dimension || angles.cosines.len() < wanted || angles.sines.len() < 2 * wanted {
            let RotaryAngles { cosines, sines, half } = angles;
            let found = format!("{} cosines and {} sines of {half} pairs", cosines.len(), sines.len());
            let wanted = format!("angles of {capacity} positions, and at most {} pairs", dimension / 2);
            return Err(Error::invalid(OPERATION, found, wanted));
        }
    }
    let (arrivals, partials) = division.workspace(&sizes, kernel);
    let words = workspace.memory.len();
    if words < arrivals + partials {
        let found = format!("a workspace of {words} words");
        return Err(Error::invalid(OPERATION, found, format!("at least {}", arrivals + partials)));
    }
    let workspace = workspace.memory.slice_mut(..)?;

    let limit = |limit: Option<usize>| limit.unwrap_or(UNLIMITED).min(UNLIMITED) as i32;
    let Band { before, after } = problem.band;
    let new_address_and_strides = |part: Option<&(DeviceSlice<'_, u8>, &Layout)>| {
        part.map_or((0, [0; 3]), |(memory, layout)| address_and_strides(memory.address(), layout))
    };
    let (new_keys, new_key_strides) = new_address_and_strides(new.as_ref().map(|new| &new.keys));
    let (new_values, new_value_strides) = new_address_and_strides(new.as_ref().map(|new| &new.values));
    let (query_address, query_strides) = address_and_strides(queries.address(), &problem.queries);
    let (key_address, key_strides) = address_and_strides(keys.address(), &problem.keys);
    let (value_address, value_strides) = address_and_strides(values.address(), &problem.values);
    let (result_address, result_strides) = address_and_strides(result.0.address(), result.1);
    let parameters = DecodeParameters {
        queries: query_address,
        new_keys,
        new_values,
        keys: key_address,
        values: value_address,
        result: result_address,
        cosines: angles.as_ref().map_or(0, |angles| angles.cosines.address()),
        sines: angles.as_ref().map_or(0, |angles| angles.sines.address()),
        lengths: lengths.as_ref().map_or(0, DeviceSlice::address),
        partials: workspace.address() + (arrivals * size_of::<u32>()) as u64,
        arrivals: workspace.address(),
        query_strides,
        new_key_strides,
        new_value_strides,
        key_strides,
        value_strides,
        result_strides,
        heads_per_key: (heads / key_heads) as i32,
        queries_per_head: count as i32,
        rows: division.rows as i32,
        capacity: capacity as i32,
        dimension: dimension as i32,
        half: angles.as_ref().map_or(0, |angles| angles.half) as i32,
        before: limit(before),
        after: limit(after),
        chunks_of_split: division.chunks_of_split as i32,
        scale: problem.scale as f32,
        soft_cap: problem.soft_cap.unwrap_or(0.0) as f32,
        padding: [0; 3],
    };
    let none = queries.slice(..0)?;
    let (of_new_keys, of_new_values) = new.map_or((none, none), |new| (new.keys.0, new.values.0));
    let (cosines, sines) = match angles {
        Some(angles) => (angles.cosines.reinterpret()?, angles.sines.reinterpret()?),
        None => (none, none),
    };
    let lengths = lengths.as_ref().map(DeviceSlice::reinterpret).transpose()?.unwrap_or(none);
    let parameters = WithMemory {
        parameters,
        reads: [queries, of_new_keys, of_new_values, cosines, sines, lengths],
        writes: [keys, values, result.0, workspace.reinterpret()?],
    };
    let name = kernel.name(problem.dtype);
    let function = images::kernel(&stream.device(), name, Entry::Name(name))?;
    let grid = (division.splits as u32, (key_heads * division.row_blocks) as u32, batch as u32);
    let config = LaunchConfig::new(grid, THREADS).shared(kernel.shared_bytes(division.rows) as u32);
    // SAFETY: the kernel takes these parameters. It reads and writes memory of layouts that were checked, and of positions below the
    // lengths, which it limits to the capacity. All of it is entered.
    unsafe { function.launch(stream, config, (parameters,)) }
}

/// Returns the range of a decoding in a trace.
fn traced(problem: &Problem, sizes: &Sizes, kernel: &'static Kernel) -> trace::Range {
    trace::span("engine", || {
        let Sizes { batch, heads, key_heads, queries, keys, dimension, .. } = *sizes;
        let shapes = format!("{batch} x {heads}/{key_heads} heads of {queries} x {keys}, {dimension} wide");
        let arguments: trace::Arguments = vec![
            ("shapes", shapes.into()),
            ("dtype", problem.dtype.name().into()),
            ("engine", "mma".into()),
            ("kernel", kernel.name(problem.dtype).into()),
        ];
        ("attention decode".into(), arguments)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::entries;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    fn problem(batch: usize, [heads, key_heads]: [usize; 2], capacity: usize, dimension: usize) -> Problem {
        let queries = Layout::contiguous(&[batch, heads, 1, dimension]).unwrap();
        let keys = Layout::contiguous(&[batch, key_heads, capacity, dimension]).unwrap();
        Problem::new(DType::BF16, queries, keys, keys)
    }

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        for name in KERNELS.iter().flat_map(|kernel| kernel.names) {
            for target in ["sm_80", "sm_90a"] {
                assert_eq!(entries::declared(name, target), [name]);
            }
        }
    }

    #[test]
    fn two_blocks_of_few_rows_fit_on_a_multiprocessor() {
        // Shared memory of a multiprocessor of 9.0, with the 1 KiB that each block needs beside its own. Of 256 columns one block fits.
        for kernel in &KERNELS {
            let of_few = if kernel.dimension < 256 { 2 } else { 1 };
            for (rows, blocks) in [(1, of_few), (16, of_few), (64, 1)] {
                let bytes = kernel.shared_bytes(rows) + 1024;
                assert!(blocks * bytes <= 228 << 10, "{} {rows}: {bytes}", kernel.dimension);
            }
        }
    }

    #[test]
    fn splits_are_groups_where_there_are_enough_of_them() {
        for (batch, heads, capacity, wanted) in [
            (1, [32, 8], 8192, ("attention_decode_bf16_128", (4, 256), 256)),
            (64, [32, 8], 8192, ("attention_decode_bf16_128", (4, 2048), 2048)),
            (1, [12, 12], 1024, ("attention_decode_bf16_128", (1, 256), 48)),
        ] {
            let planned = plan(&problem(batch, heads, capacity, 128), H200).unwrap();
            assert_eq!((planned.name, planned.tile, planned.blocks), wanted);
        }
        assert_eq!(plan(&problem(1, [64, 1], 256, 256), H200).unwrap().blocks, 4);
    }

    #[test]
    fn problems_outside_of_the_kernels_are_refused_with_a_reason() {
        let refused = |problem: &Problem| decode_unsupported(problem, H200).unwrap().to_string();
        let fits = problem(2, [4, 2], 300, 64);
        assert!(decode_unsupported(&fits, H200).is_none());
        let f32 = Problem { dtype: DType::F32, ..fits };
        assert!(refused(&f32).contains("f32"));
        assert!(refused(&problem(2, [4, 2], 300, 36)).contains("36"));
        assert!(refused(&problem(2, [4, 2], 0, 64)).contains("keys"));
        let nine = Layout::contiguous(&[2, 4, 9, 64]).unwrap();
        assert!(refused(&Problem { queries: nine, ..fits }).contains("9 queries"));
        let odd = Layout::strided(&[2, 2, 300, 64], &[40_000, 20_000, 66, 1], 0).unwrap();
        assert!(refused(&Problem { values: odd, ..fits }).contains("values"));
    }
}
