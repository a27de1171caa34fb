//! The engine of compute capability 9.0: `csrc/kernels/attention_forward.cu` and `attention_backward.cu`.

mod backward;
mod forward;
mod parameters;
mod sequences;

pub use backward::{Gradients, backward};
pub use forward::forward;
use parameters::{BandParameters, Variations};

use super::problem::{Band, Operands, Problem, Sequences, Sizes};
use super::{Pass, PlannedKernel, Unsupported};
use crate::driver::{DeviceSlice, Stream, TensorMap, TensorMapLayout, TensorPromotion, TensorSwizzle};
use crate::error::{Error, Result};
use crate::images::{
    self, DeviceProperties, Entry, MAP_ALIGNMENT, MAP_STRIDE, missing_image, tensor_element,
};
use crate::trace;
use crate::types::{DType, Layout};

/// The kernels of an element type and head dimension. Entries are for problems without a band, for those with one, and for those with
/// the options of [`Variations`].
struct Kernels {
    forward: &'static str,
    forward_entries: [&'static str; 3],
    backward: &'static str,
    prepare: &'static str,
    backward_entries: [&'static str; 3],
}

macro_rules! kernels {
    ($element:literal, $dimension:literal) => {
        Kernels {
            forward: concat!("attention_forward_", $element, "_", $dimension),
            forward_entries: [
                concat!("attention_forward_", $element, "_", $dimension, "_full"),
                concat!("attention_forward_", $element, "_", $dimension, "_band"),
                concat!("attention_forward_", $element, "_", $dimension, "_varied"),
            ],
            backward: concat!("attention_backward_", $element, "_", $dimension),
            prepare: concat!("attention_backward_", $element, "_", $dimension, "_prepare"),
            backward_entries: [
                concat!("attention_backward_", $element, "_", $dimension, "_full"),
                concat!("attention_backward_", $element, "_", $dimension, "_band"),
                concat!("attention_backward_", $element, "_", $dimension, "_varied"),
            ],
        }
    };
}

macro_rules! kernels_of {
    ($element:literal) => {
        [
            kernels!($element, "64"),
            kernels!($element, "128"),
            kernels!($element, "192"),
            kernels!($element, "256"),
        ]
    };
}

/// By element type, f16 and bf16, and the head dimensions of [`TILES`]. The backward's exist up to [`BACKWARD_DIMENSION`].
static KERNELS: [[Kernels; 4]; 2] = [kernels_of!("f16"), kernels_of!("bf16")];

/// The tile of a head dimension: exactly the `CONFIGURATION_` macros of the kernels.
struct Tile {
    /// The largest head dimension.
    dimension: usize,
    /// Consumer warpgroups of the forward, of 64 queries each, its keys of a block, and its stages of keys and values.
    consumers: usize,
    forward_keys: usize,
    forward_stages: usize,
    /// Queries of a step of the backward, and its stages of them; 0 above [`BACKWARD_DIMENSION`].
    rows: usize,
    backward_stages: usize,
}

/// Returns the tile of a head dimension above [`BACKWARD_DIMENSION`].
const fn wide_tile(dimension: usize, forward_keys: usize) -> Tile {
    Tile { dimension, consumers: 2, forward_keys, forward_stages: 2, rows: 0, backward_stages: 0 }
}

static TILES: [Tile; 4] = [
    Tile { dimension: 64, consumers: 3, forward_keys: 128, forward_stages: 3, rows: 128, backward_stages: 2 },
    Tile { dimension: 128, consumers: 2, forward_keys: 128, forward_stages: 2, rows: 64, backward_stages: 3 },
    wide_tile(192, 112),
    wide_tile(256, 80),
];

/// The largest head dimension of the backward.
const BACKWARD_DIMENSION: usize = 128;
/// Keys of a block of the backward, and the most of the forward.
const BLOCK_KEYS: usize = 128;
/// The multiple that rows of the backward's workspace are rounded up to.
const PADDING: usize = 128;
/// Elements in a row of a tensor map's box: 128 bytes.
const PANEL: u32 = 64;
/// The limits of a band that limits nothing, and the most queries and keys.
const UNLIMITED: usize = 1 << 30;
/// Returns the index of the smallest tile that holds a head dimension.
fn tile_index(dimension: usize) -> Option<usize> {
    TILES.iter().position(|tile| dimension <= tile.dimension)
}

/// Returns the tile and the kernels of a dtype and a head dimension that [`check`] has passed.
fn tile_and_kernels(dtype: DType, dimension: usize) -> (&'static Tile, &'static Kernels) {
    let tile = tile_index(dimension).unwrap_or(TILES.len() - 1);
    (&TILES[tile], &KERNELS[usize::from(dtype == DType::BF16)][tile])
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

/// Returns the kernels that compute the problem, or the reason why none do.
pub(super) fn plan(
    problem: &Problem,
    pass: Pass,
    properties: DeviceProperties,
) -> std::result::Result<Vec<PlannedKernel>, Unsupported> {
    let sizes = check(problem, pass, properties)?;
    let (tile, kernels) = tile_and_kernels(problem.dtype, sizes.dimension);
    let tiles = forward::tiles(problem, &sizes, tile);
    let mut planned = vec![PlannedKernel {
        name: entry(&kernels.forward_entries, problem),
        tile: (64 * tile.consumers, tile.forward_keys),
        blocks: tiles.min(properties.multiprocessors as usize),
    }];
    if pass == Pass::Backward {
        let name = entry(&kernels.backward_entries, problem);
        let blocks = backward::key_blocks(problem, &sizes);
        planned.push(PlannedKernel { name, tile: (tile.rows, BLOCK_KEYS), blocks });
    }
    Ok(planned)
}

/// Returns the entry for a problem without a band, for one with a band, or for one with options.
fn entry(entries: &[&'static str; 3], problem: &Problem) -> &'static str {
    let [full, band, varied] = entries;
    match (problem.has_options(), problem.band.is_full()) {
        (true, _) => varied,
        (false, true) => full,
        (false, false) => band,
    }
}

/// Returns the queries and the keys of a head of a sequence: the most of packed ones, else those of the arrays, because positions behind
/// padded sequences have results too, which are 0.
fn rows_of_head(problem: &Problem, sizes: &Sizes) -> (usize, usize) {
    let packed = problem.sequences.filter(|sequences| sequences.is_packed);
    packed.map_or((sizes.queries, sizes.keys), |sequences| (sequences.max_queries, sequences.max_keys))
}

/// Returns the number of sequences; without any that is the batch.
fn sequences_of(problem: &Problem, sizes: &Sizes) -> usize {
    problem.sequences.map_or(sizes.batch, |sequences| sequences.count)
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
    if !is_multiple || dimension != value_dimension || tile_index(dimension).is_none() {
        return Err(Unsupported::Dimension(dimension, value_dimension));
    }
    if pass == Pass::Backward && dimension > BACKWARD_DIMENSION {
        return Err(Unsupported::Backward(dimension));
    }
    if !((scale as f32).is_normal() && scale > 0.0) {
        return Err(Unsupported::Scale(scale));
    }
    check_options(problem, &sizes)?;
    let sequences = sequences_of(problem, &sizes);
    for (count, name) in
        [(batch, "batch"), (heads, "heads"), (queries, "queries"), (keys, "keys"), (sequences, "sequences")]
    {
        if count == 0 {
            return Err(Unsupported::Empty(name));
        }
    }
    if queries.max(keys) >= UNLIMITED {
        return Err(Unsupported::TooMany("queries or keys"));
    }
    // The kernels count rows of all heads, and blocks of keys, in 32 bits.
    let longest = problem.sequences.map_or((queries, keys), |of| (of.max_queries, of.max_keys));
    for (count, (queries, keys)) in [(batch, (queries, keys)), (sequences, longest)] {
        let rows = count.saturating_mul(heads).saturating_mul(queries.next_multiple_of(PADDING));
        let blocks = count.saturating_mul(key_heads).saturating_mul(keys.next_multiple_of(BLOCK_KEYS));
        if rows.max(blocks) > i32::MAX as usize / 2 {
            return Err(Unsupported::TooMany("rows of all heads"));
        }
    }
    for (layout, name) in
        [(&problem.queries, "queries"), (&problem.keys, "keys"), (&problem.values, "values")]
    {
        if !is_mapped(layout) {
            return Err(Unsupported::Layout(name));
        }
    }
    let (_, kernels) = tile_and_kernels(dtype, dimension);
    let families = [Some(kernels.forward), (pass == Pass::Backward).then_some(kernels.backward)];
    match families.into_iter().flatten().find_map(|family| missing_image(properties, family)) {
        Some(error) => Err(Unsupported::Image(error)),
        None => Ok(sizes),
    }
}

/// Checks the options that only the kernels `varied` read.
fn check_options(problem: &Problem, sizes: &Sizes) -> std::result::Result<(), Unsupported> {
    if let Some(cap) = problem.soft_cap.filter(|&cap| !((cap as f32).is_normal() && cap > 0.0)) {
        return Err(Unsupported::SoftCap(cap));
    }
    if let Some(dropout) = problem.dropout.filter(|dropout| dropout.threshold > 1 << 16) {
        return Err(Unsupported::Threshold(dropout.threshold));
    }
    let Sizes { batch, queries, keys, .. } = *sizes;
    let exceed = |sequences: &Sequences| {
        let batches = if sequences.is_packed { 1 } else { sequences.count };
        batch != batches || sequences.max_queries > queries || sequences.max_keys > keys
    };
    match problem.sequences.filter(exceed) {
        Some(sequences) => Err(Unsupported::Sequences(sequences, [batch, queries, keys])),
        None => Ok(()),
    }
}

/// A problem that the engine computes, on a stream.
struct Call<'a> {
    operation: &'static str,
    stream: &'a Stream,
    problem: &'a Problem,
    pass: Pass,
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
        let multiprocessors = properties.multiprocessors as usize;
        let (tile, kernels) = tile_and_kernels(problem.dtype, sizes.dimension);
        Ok(Call { operation, stream, problem, pass, sizes, tile, kernels, multiprocessors })
    }

    /// Returns the range of the call in a trace.
    fn traced(&self) -> trace::Range {
        trace::span("engine", || {
            let Call { problem, tile, kernels, .. } = *self;
            let Sizes { batch, heads, key_heads, queries, keys, dimension, .. } = self.sizes;
            let (name, kernel, (rows, columns)) = match self.pass {
                Pass::Forward => {
                    let tile = (64 * tile.consumers, tile.forward_keys);
                    ("attention forward", entry(&kernels.forward_entries, problem), tile)
                }
                Pass::Backward => {
                    let tile = (tile.rows, BLOCK_KEYS);
                    ("attention backward", entry(&kernels.backward_entries, problem), tile)
                }
            };
            let shapes = format!("{batch} x {heads} heads of {queries} x {keys}, {dimension} wide");
            let mut arguments: trace::Arguments = vec![
                ("shapes", shapes.into()),
                ("dtype", problem.dtype.name().into()),
                ("engine", "wgmma".into()),
                ("kernel", kernel.into()),
                ("tile", format!("{rows}x{columns}").into()),
            ];
            // The lengths of sequences are in the device's memory.
            if problem.sequences.is_none() {
                // Two products of a forward and five of a backward; Q, K, V and the result, and in a backward the gradients of all four.
                let (products, arrays) = if self.pass == Pass::Forward { (2.0, 2.0) } else { (5.0, 4.0) };
                let pairs = problem.band.pairs(queries, keys) * (batch * heads) as f64;
                arguments.push(("operations", (products * 2.0 * pairs * dimension as f64).into()));
                let (query_rows, key_rows) = (batch * heads * queries, batch * key_heads * keys);
                let elements = arrays * ((query_rows + key_rows) * dimension) as f64;
                let lse = (query_rows * size_of::<f32>()) as f64;
                arguments.push(("bytes", (elements * size_of::<u16>() as f64 + lse).into()));
            }
            (name.into(), arguments)
        })
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

    /// Returns the number of sequences; without any that is the batch.
    fn sequences(&self) -> usize {
        sequences_of(self.problem, &self.sizes)
    }

    /// Returns the options of the kernels `varied`, or `None` if the problem has none of them.
    fn variations(&self, operands: &Operands<'_>) -> Result<Option<Variations>> {
        let variations = Variations::new(self.operation, self.problem, &self.sizes, operands)?;
        if self.problem.sequences.is_none() {
            return Ok(variations);
        }
        let report = self.stream.device().report_address()?.0;
        let report_code = sequences::unfit_sequence(self.pass).code();
        Ok(variations.map(|variations| Variations { report, report_code, ..variations }))
    }

    fn all_heads(&self) -> usize {
        self.sizes.batch * self.sizes.heads
    }

    fn queries_per_key(&self) -> usize {
        self.sizes.heads / self.sizes.key_heads
    }

    /// Returns the queries of each head of a sequence, rounded up for the backward's workspace.
    fn padded(&self) -> usize {
        rows_of_head(self.problem, &self.sizes).0.max(1).next_multiple_of(PADDING)
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
    use super::parameters::{
        BackwardProblem, ForwardProblem, KeyGradients, RowsProblem, VariedForwardProblem,
    };
    use super::*;
    use crate::attention::Dropout;
    use crate::images::entries;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    fn problem(dtype: DType, sizes: [usize; 4]) -> Problem {
        let layout = Layout::contiguous(&sizes).unwrap();
        Problem { band: Band::causal(), scale: 0.125, ..Problem::new(dtype, layout, layout, layout) }
    }

    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        for (kernels, tile) in KERNELS.iter().flat_map(|kernels| kernels.iter().zip(&TILES)) {
            let mut forward = kernels.forward_entries;
            forward.sort_unstable();
            assert_eq!(entries::declared(kernels.forward, "sm_90a"), forward);
            let [full, band, varied] = kernels.backward_entries;
            let mut backward = vec![kernels.prepare, full, band, varied];
            backward.sort_unstable();
            backward.retain(|_| tile.dimension <= BACKWARD_DIMENSION);
            assert_eq!(entries::declared(kernels.backward, "sm_90a"), backward);
        }
    }

    #[test]
    fn parameters_have_the_kernels_sizes() {
        assert_eq!(size_of::<ForwardProblem>(), 64);
        assert_eq!(size_of::<Variations>(), 72);
        assert_eq!(size_of::<VariedForwardProblem>(), 176);
        assert_eq!(size_of::<BackwardProblem>(), 112);
        assert_eq!(size_of::<KeyGradients>(), 120);
        assert_eq!(size_of::<RowsProblem>(), 232);
    }

    #[test]
    fn shared_storage_fits_a_block() {
        for tile in &TILES {
            assert!((160 << 10..=227 << 10).contains(&forward::shared_bytes(tile, true)));
            let has_backward = tile.dimension <= BACKWARD_DIMENSION;
            assert!(!has_backward || (160 << 10..=227 << 10).contains(&backward::shared_bytes(tile)));
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
        let dropout = Dropout { seed: 0, offset: 0, threshold: 65_537 };
        let sequences = Sequences { count: 3, is_packed: false, max_queries: 9, max_keys: 8 };
        let packed = Sequences { count: 2, is_packed: true, ..sequences };
        let longer = Sequences { count: 2, max_keys: 1001, ..sequences };
        for (changed, wanted) in [
            (problem(DType::F32, [2, 3, 1000, 64]), "attention of f32"),
            (problem(DType::BF16, [2, 3, 1000, 68]), "dimension of 68"),
            (
                problem(DType::BF16, [2, 3, 1000, 136]),
                "head dimension of 136 has an engine for the result alone",
            ),
            (problem(DType::BF16, [2, 3, 1000, 256]), "gradients take multiples of 8 up to 128"),
            (problem(DType::BF16, [2, 3, 1000, 264]), "dimension of 264"),
            (problem(DType::BF16, [0, 3, 1000, 64]), "no batch"),
            (problem(DType::BF16, [2, 3, 0, 64]), "no queries"),
            (Problem { scale: 0.0, ..good }, "a scale of 0"),
            (Problem { scale: f64::NAN, ..good }, "a scale of NaN"),
            (Problem { scale: -1.0, ..good }, "a scale of -1"),
            (Problem { soft_cap: Some(0.0), ..good }, "a soft cap of 0"),
            (Problem { soft_cap: Some(f64::INFINITY), ..good }, "a soft cap of inf"),
            (Problem { dropout: Some(dropout), ..good }, "a dropout threshold of 65537"),
            (Problem { sequences: Some(sequences), ..good }, "3 sequences of at most 9 queries and 8 keys"),
            (Problem { sequences: Some(packed), ..good }, "2 packed sequences"),
            (Problem { sequences: Some(longer), ..good }, "1001 keys in a batch of 2 with"),
            (Problem { keys: strided([192_000, 64, 192, 1], 4), ..good }, "keys whose head dimension"),
            (Problem { values: strided([1, 128_000, 128, 2], 0), ..good }, "values whose head dimension"),
            (Problem { keys: strided([192_000, 0, 64, 1], 0), ..good }, "keys whose head dimension"),
            (Problem { keys: Layout::contiguous(&[2, 2, 9, 64]).unwrap(), ..good }, "equal heads"),
        ] {
            let found = reason(&changed, H200);
            assert!(found.contains(wanted), "{wanted}: {found}");
        }
        for dimension in [136, 192, 200, 256] {
            let wide = problem(DType::F16, [2, 3, 1000, dimension]);
            let sequences = Some(Sequences { count: 2, ..sequences });
            for wide in [wide, Problem { soft_cap: Some(9.0), sequences, ..wide }] {
                let found = unsupported(&wide, Pass::Forward, H200);
                assert!(found.is_none(), "{dimension}: {found:?}");
            }
        }
        for dimension in [252, 264] {
            let found = unsupported(&problem(DType::F16, [2, 3, 1000, dimension]), Pass::Forward, H200);
            assert!(matches!(found, Some(Unsupported::Dimension(..))), "{dimension}: {found:?}");
        }
        let older = DeviceProperties { capability: (8, 0), ..H200 };
        assert!(!reason(&good, older).is_empty());
    }
}
