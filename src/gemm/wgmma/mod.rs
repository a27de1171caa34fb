//! Products on the tensor cores of compute capability 9.0, by one of two algorithms.
//!
//! Persistent two-CTA clusters compute large products in tiles of 256 rows ([`persistent`]), optionally with stream-K for the last
//! wave. Split-K computes products with too few such tiles to fill the device ([`split_k`]). The configuration with the fewest
//! estimated clock cycles is used, a function of the sizes and the device alone.

mod persistent;
mod split_k;

use super::activation::Activation;
use super::algorithm::GemmAlgorithm;
use super::blocks::{self, Scalars};
use super::engine::Unsupported;
use super::epilogue::DeviceEpilogue;
use super::geometry::Geometry;
use super::maps::{Operands, maps, unmapped};
use super::packed;
use super::problem::GemmProblem;
use super::product::Product;
use crate::driver::{DeviceSlice, DeviceSliceMut, Stream};
use crate::error::Result;
use crate::images::{DeviceProperties, MAP_ALIGNMENT, missing_image};
use crate::types::DType;

/// Approximate costs, in clock cycles, from the times of 300 random shapes on an H200. On the `mma` engine, for operands that TMA cannot
/// describe: a step of 32 k and a tile beside its steps. For copies of the operands: the launch, and the bytes copied in a clock
/// cycle. For a result that TMA cannot store: 64 x 64 elements stored by threads, two bytes at a time.
const MMA_STEP_CYCLES: u64 = 1800;
const MMA_TILE_CYCLES: u64 = 5000;
const PACK_CYCLES: u64 = 3500;
const PACK_BYTES_PER_CYCLE: u64 = 1000;
const STORE_BY_TWO_CYCLES: u64 = 1500;

/// Bytes of a store to C, by TMA and by threads, where the bytes of its rows are a multiple.
const STORE_BYTES: [usize; 3] = [MAP_ALIGNMENT, 8, 4];

/// The rows that the algorithm of a batch-invariant product is chosen for.
const BATCH_INVARIANT_ROWS: usize = 64;

/// Elements in the 128 bytes of a box's row: the k of a stage.
const PANEL: u32 = 64;

/// A kernel configuration of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Configuration {
    Persistent(persistent::Persistent),
    SplitK(split_k::SplitK),
}

fn configurations(
    product: &Product,
    properties: DeviceProperties,
) -> impl Iterator<Item = (Configuration, u64)> {
    let persistent = persistent::configurations(product, properties)
        .map(|(persistent, clocks)| (Configuration::Persistent(persistent), clocks));
    let split_k = split_k::configurations(product, properties)
        .map(|(split_k, clocks)| (Configuration::SplitK(split_k), clocks));
    persistent.chain(split_k)
}

impl Configuration {
    fn algorithm(&self) -> GemmAlgorithm {
        match *self {
            Configuration::Persistent(persistent::Persistent { columns, stream_k, .. }) => {
                GemmAlgorithm::Persistent { columns, stream_k }
            }
            Configuration::SplitK(split_k::SplitK { rows, columns, splits, swapped, .. }) => {
                GemmAlgorithm::SplitK { rows, columns, splits, swapped }
            }
        }
    }

    /// Returns the slices of k whose sums are added in their order; `None` where they depend on the number of tiles.
    fn slices_of_k(&self) -> Option<u32> {
        match *self {
            Configuration::Persistent(persistent) => (!persistent.stream_k).then_some(1),
            Configuration::SplitK(split_k) => Some(split_k.splits),
        }
    }
}

/// Returns the slices of k that are fastest for the reference product. The bits of an element depend on them alone: every configuration
/// adds the k of a slice in order.
fn batch_invariant_slices(problem: &GemmProblem<'_>) -> Option<u32> {
    let reference = problem.product.deciding(BATCH_INVARIANT_ROWS);
    let all = configurations(&reference, problem.properties);
    let known = all.filter_map(|(configuration, clocks)| Some((configuration.slices_of_k()?, clocks)));
    known.min_by_key(|(_, clocks)| *clocks).map(|(slices, _)| slices)
}

/// The configurations that a caller can force.
#[cfg(test)]
pub(super) fn algorithms(product: &Product, properties: DeviceProperties) -> Vec<GemmAlgorithm> {
    configurations(product, properties).map(|(configuration, _)| configuration.algorithm()).collect()
}

/// Returns the configurations that have the epilogue. Only the persistent kernel multiplies by derivatives, in tiles whose columns
/// are all inside C.
fn configurations_of<'a>(problem: &'a GemmProblem<'_>) -> impl Iterator<Item = (Configuration, u64)> + 'a {
    let all = configurations(problem.product, problem.properties);
    all.filter(|(configuration, _)| match configuration {
        _ if !problem.epilogue.is_derivative => true,
        Configuration::Persistent(persistent) => {
            problem.product.n().is_multiple_of(persistent.columns as usize)
        }
        Configuration::SplitK(_) => false,
    })
}

/// The configuration that the caller forces, else the one with the fewest estimated clock cycles. `None` where the product
/// does not have the forced one.
fn configuration(problem: &GemmProblem<'_>) -> Option<Configuration> {
    let all = configurations_of(problem);
    match problem.product.algorithm() {
        Some(algorithm) => all
            .map(|(configuration, _)| configuration)
            .find(|configuration| configuration.algorithm() == algorithm),
        None if problem.product.is_batch_invariant() => {
            let slices = batch_invariant_slices(problem)?;
            // The persistent kernels have faster approximations of gelu and silu.
            let is_exact = matches!(problem.epilogue.activation, Activation::None | Activation::Relu);
            all.filter(|(configuration, _)| configuration.slices_of_k() == Some(slices))
                .filter(|(configuration, _)| is_exact || matches!(configuration, Configuration::SplitK(_)))
                .min_by_key(|(_, clocks)| *clocks)
                .map(|(configuration, _)| configuration)
        }
        None => all.min_by_key(|(_, clocks)| *clocks).map(|(configuration, _)| configuration),
    }
}

/// Returns the bytes of the operands that no tensor map describes.
fn unmapped_bytes(problem: &GemmProblem<'_>) -> u64 {
    let product = problem.product;
    let bytes = |operand| {
        let stored = if operand == 'A' { product.stored_a() } else { product.stored_b() };
        (stored.elements() as u64).saturating_mul(problem.operand.size() as u64)
    };
    unmapped(problem).map(bytes).fold(0, u64::saturating_add)
}

/// Returns true where copying the operands that no tensor map describes saves at least a third; both estimates are rough.
fn packing_pays(problem: &GemmProblem<'_>) -> bool {
    let product = &problem.product.deciding(BATCH_INVARIANT_ROWS);
    let problem = &GemmProblem { product, ..*problem };
    let properties = problem.properties;
    let at_once = 2 * u64::from(properties.multiprocessors);
    let squares = blocks::tiles(problem, 64, 64);
    let store_bytes = product.stored_c().whole_blocks(&STORE_BYTES, problem.result.size());
    let stores = if store_bytes == MAP_ALIGNMENT { 0 } else { STORE_BY_TWO_CYCLES * 2 / store_bytes as u64 };
    let clocks = configurations(product, properties).map(|(_, clocks)| clocks).min().unwrap_or(u64::MAX);
    let here = PACK_CYCLES
        .saturating_add(unmapped_bytes(problem) / PACK_BYTES_PER_CYCLE)
        .saturating_add(clocks)
        .saturating_add(squares.saturating_mul(stores) / at_once);
    let steps = (product.k() as u64).div_ceil(32);
    let elsewhere = squares.max(at_once).saturating_mul(steps * MMA_STEP_CYCLES + MMA_TILE_CYCLES) / at_once;
    elsewhere > here.saturating_add(here / 3)
}

/// Returns the reason why the engine does not multiply the product by a derivative.
fn lacks_derivative(problem: &GemmProblem<'_>) -> Option<Unsupported> {
    let (parts, product, result) = (&problem.epilogue, problem.product, problem.result);
    if parts.bias.is_some() || parts.aux.is_some() || problem.reads_c || result != problem.operand {
        return Some(Unsupported::EpiloguePart("derivative beside a bias, aux, a C that is read or f32"));
    }
    let c = product.stored_c();
    let is_aligned = parts.aux_in.is_some_and(|address| address % MAP_ALIGNMENT as u64 == 0);
    if !(is_aligned
        && c.is_whole(MAP_ALIGNMENT, result.size())
        && maps(c, problem.addresses[2], result.size()))
    {
        return Some(Unsupported::EpiloguePart(
            "derivative for a C or a pre-activation that TMA cannot describe",
        ));
    }
    let least = |clocks: Option<u64>| clocks.unwrap_or(u64::MAX);
    let here = least(configurations_of(problem).map(|(_, clocks)| clocks).min());
    if here == u64::MAX {
        return Some(Unsupported::EpiloguePart("derivative for columns that 64 does not divide"));
    }
    // Another configuration and a pass that reads two matrices and writes one; a copy reads one.
    let bytes = (c.elements() as u64).saturating_mul(result.size() as u64);
    let other = least(configurations(product, problem.properties).map(|(_, clocks)| clocks).min());
    let pass = PACK_CYCLES.saturating_add(bytes.saturating_mul(3) / 2 / PACK_BYTES_PER_CYCLE);
    let is_slower = product.algorithm().is_none() && here > other.saturating_add(pass);
    is_slower.then_some(Unsupported::EpiloguePart("derivative for few tiles: split-K and a pass are faster"))
}

/// Returns the configuration, or the reason why the engine does not compute the problem.
pub(super) fn select(problem: &GemmProblem<'_>) -> std::result::Result<Configuration, Unsupported> {
    let (operand, result, product) = (problem.operand, problem.result, problem.product);
    if !matches!(operand, DType::F16 | DType::BF16) || (result != operand && result != DType::F32) {
        return Err(Unsupported::Types(operand, result));
    }
    // All families of the engine are for the same devices.
    for family in [persistent::family(operand, product), packed::FAMILY] {
        if let Some(error) = missing_image(problem.properties, family) {
            return Err(Unsupported::Image(error));
        }
    }
    if product.k() == 0 {
        return Err(Unsupported::NoDepth);
    }
    if problem.epilogue.is_derivative
        && let Some(reason) = lacks_derivative(problem)
    {
        return Err(reason);
    }
    if let Some(operand) = unmapped(problem).next().filter(|_| !packing_pays(problem)) {
        return Err(Unsupported::Alignment(operand, MAP_ALIGNMENT as u64));
    }
    // The kernel counts chunks of 16 bytes in 32 bits, with rows filled up.
    if unmapped_bytes(problem) > u64::from(u32::MAX) * MAP_ALIGNMENT as u64 / 8 {
        return Err(Unsupported::TooMany("bytes to copy"));
    }
    let Some(configuration) = configuration(problem) else {
        return Err(product.algorithm().map_or(Unsupported::TooMany("tiles"), Unsupported::Algorithm));
    };
    let tiles = match configuration {
        Configuration::Persistent(persistent) => persistent.tiles,
        Configuration::SplitK(split_k) => split_k.blocks(),
    };
    // The kernels count in 32 bits, and one wave past the end.
    if tiles > (i32::MAX / 2) as u64 { Err(Unsupported::TooMany("tiles")) } else { Ok(configuration) }
}

/// Returns the kernel and its grid.
pub(super) fn geometry(problem: &GemmProblem<'_>, configuration: &Configuration) -> Geometry {
    let copied = unmapped(problem).collect();
    let (operand, product) = (problem.operand, problem.product);
    match configuration {
        Configuration::Persistent(persistent) => Geometry {
            family: persistent::family(operand, product),
            kernel: persistent.kernel(operand, product),
            tile: (persistent::TILE_ROWS as u32, persistent.columns),
            tiles: persistent.tiles,
            blocks: persistent.blocks(),
            copied,
            splits: 1,
            stream_k_tiles: persistent.stream_k_tiles(),
            slices: None,
        },
        Configuration::SplitK(split_k) => Geometry {
            family: split_k.family(operand, product),
            kernel: split_k.kernel(operand, product),
            tile: split_k.tile(),
            tiles: split_k.tiles,
            blocks: split_k.blocks() as u32,
            copied,
            splits: split_k.splits,
            stream_k_tiles: 0,
            slices: None,
        },
    }
}

/// The kernels' arguments beside the operands.
struct LaunchArguments<'a> {
    problem: &'a GemmProblem<'a>,
    alpha: f32,
    beta: f32,
    epilogue: &'a DeviceEpilogue<'a>,
}

/// Launches the product, which was checked against the buffers and selected.
pub(super) fn run_on(
    stream: &Stream,
    problem: &GemmProblem<'_>,
    configuration: &Configuration,
    scalars: Scalars,
    (a, b, c): (DeviceSlice<'_, u8>, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>),
    epilogue: &DeviceEpilogue<'_>,
) -> Result<()> {
    // The copies are freed on the stream, after the launch.
    let operands = Operands::new(stream, problem, [a, b])?;
    let (a, b) = (operands.a(), operands.b());
    let scalar = |sum: [u64; 2]| f32::from_bits(sum[0] as u32);
    let arguments =
        LaunchArguments { problem, alpha: scalar(scalars.alpha), beta: scalar(scalars.beta), epilogue };
    match configuration {
        Configuration::Persistent(persistent) => persistent.run(stream, &arguments, &a, &b, c),
        Configuration::SplitK(split_k) => split_k.run(stream, &arguments, &a, &b, c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    fn best(product: &Product) -> Configuration {
        configuration(&GemmProblem::from_types(product, DType::BF16, DType::BF16, H200)).unwrap()
    }

    #[test]
    fn every_configuration_can_be_forced() {
        let product = Product::new(1024, 1024, 1024);
        let all = algorithms(&product, H200);
        assert!(all.len() > 50 && all.contains(&best(&product).algorithm()));
        for algorithm in all {
            assert_eq!(best(&product.with_algorithm(algorithm)).algorithm(), algorithm);
        }
    }

    #[test]
    fn derivatives_are_multiplied_in_whole_tiles_unless_split_k_saves_more() {
        let select = |m, n, k, change: fn(&mut GemmProblem<'_>)| {
            let product = Product::new(m, n, k);
            let mut problem = GemmProblem::from_types(&product, DType::BF16, DType::BF16, H200);
            problem.epilogue.activation = Activation::GeluTanh;
            problem.epilogue.is_derivative = true;
            problem.epilogue.aux_in = Some(0);
            change(&mut problem);
            select(&problem).map_err(|reason| reason.to_string())
        };
        for (m, n, k) in [(65536, 3072, 768), (512, 192, 64), (4096, 64, 64)] {
            let Ok(Configuration::Persistent(found)) = select(m, n, k, |_| {}) else {
                panic!("{m}x{n}x{k} has no derivative");
            };
            assert_eq!(n % found.columns as usize, 0, "{m}x{n}x{k}");
        }
        for (size, change, reason) in [
            ((512, 200, 64), (|_| {}) as fn(&mut GemmProblem<'_>), "columns that 64 does not divide"),
            ((16, 4096, 4096), |_| {}, "split-K and a pass are faster"),
            ((512, 192, 64), |problem| problem.reads_c = true, "beside a bias"),
            ((512, 192, 64), |problem| problem.epilogue.bias = Some(0), "beside a bias"),
            ((512, 192, 64), |problem| problem.epilogue.aux = Some(0), "beside a bias"),
            ((512, 192, 64), |problem| problem.result = DType::F32, "beside a bias"),
            ((512, 192, 64), |problem| problem.epilogue.aux_in = Some(8), "TMA cannot describe"),
        ] {
            let found = select(size.0, size.1, size.2, change).err().unwrap_or_default();
            assert!(found.contains(reason), "{size:?}: {found}");
        }
    }

    #[test]
    fn few_tiles_are_split_and_many_are_not() {
        let splits = |m, n, k| match best(&Product::new(m, n, k)) {
            Configuration::Persistent(_) => 0,
            Configuration::SplitK(split_k) => split_k.splits,
        };
        for (m, n, k) in [(4096, 4096, 4096), (8192, 8192, 8192), (65536, 768, 768), (65536, 50304, 768)] {
            assert_eq!(splits(m, n, k), 0, "{m}x{n}x{k}");
        }
        // 64 tiles by two blocks each, and 128 by one.
        for (m, blocks) in [(1, 2), (16, 2), (64, 2), (128, 1)] {
            assert_eq!(splits(m, 4096, 4096), blocks, "{m}");
            assert_eq!(splits(4096, m, 4096), blocks, "{m}");
        }
        for m in [1, 16, 64] {
            assert_eq!(splits(m, 16384, 16384), 1, "{m}");
        }
    }
}
