//! The engine of compute capability 9.0: `csrc/kernels/attention_forward.cu` and `attention_backward.cu`.

mod backward;
mod forward;
mod parameters;

pub use backward::{Gradients, backward};
pub use forward::forward;
use parameters::BandParameters;

use super::problem::{Band, Problem, Sizes};
use super::{Pass, Unsupported};
use crate::driver::{DeviceSlice, Stream, TensorMap, TensorMapLayout, TensorPromotion, TensorSwizzle};
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
    use super::parameters::{BackwardProblem, ForwardProblem, RowsProblem};
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
            assert!((160 << 10..=227 << 10).contains(&forward::shared_bytes(tile)));
            assert!((160 << 10..=227 << 10).contains(&backward::shared_bytes(tile)));
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
