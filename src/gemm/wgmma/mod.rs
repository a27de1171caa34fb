//! Products on the tensor cores of compute capability 9.0, by one of two algorithms.
//!
//! Pairs of blocks that stay for many tiles of 256 rows make large products ([`pairs`]); where there are fewer tiles than
//! pairs, all may share them. Where there are too few such tiles to keep all multiprocessors busy, clusters of blocks divide k
//! ([`split`]). The way that takes fewer clocks, as estimated from the rates of the instructions and of the copies, is taken;
//! it is a function of the sizes and the device alone.

mod pairs;
mod split;

use super::algorithm::GemmAlgorithm;
use super::blocks::{self, Scalars};
use super::engine::Unsupported;
use super::epilogue::DeviceParts;
use super::geometry::Geometry;
use super::maps::{Operands, unmapped};
use super::packed;
use super::problem::GemmProblem;
use super::product::Product;
use crate::driver::{DeviceSlice, DeviceSliceMut, Stream};
use crate::error::Result;
use crate::images::{DeviceProperties, MAP_ALIGNMENT, missing_image};
use crate::types::DType;

/// What products take elsewhere whose operands no tensor map describes, in clocks, roughly (from the times of 300 random shapes on
/// an H200): a step of 32 k of that engine, whose elements come one by one, and a tile beside its steps. And what copies take: to
/// be launched, and the bytes of operands that they copy in a clock. And 64 x 64 elements of C that a warpgroup's threads store two
/// bytes at a time, because no map can.
const STEP_ELSEWHERE: u64 = 1800;
const TILE_ELSEWHERE: u64 = 5000;
const COPIES_BEGIN: u64 = 3500;
const COPIED_BYTES: u64 = 1000;
const STORED_BY_TWO: u64 = 1500;

/// Bytes of C that are stored together, where its rows consist of so many: by maps, or by threads.
const STORED: [usize; 3] = [MAP_ALIGNMENT, 8, 4];

/// Elements in the 128 bytes of a box's row, and k of a stage.
const PANEL: u32 = 64;

/// How a product is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    Pairs(pairs::Pairs),
    Split(split::Split),
}

fn divisions(product: &Product, properties: DeviceProperties) -> impl Iterator<Item = (Division, u64)> {
    let pairs = pairs::divisions(product, properties).map(|(pairs, clocks)| (Division::Pairs(pairs), clocks));
    let split = split::divisions(product, properties).map(|(split, clocks)| (Division::Split(split), clocks));
    pairs.chain(split)
}

impl Division {
    fn algorithm(&self) -> GemmAlgorithm {
        match *self {
            Division::Pairs(pairs::Pairs { columns, divided, .. }) => {
                GemmAlgorithm::Persistent { columns, stream_k: divided }
            }
            Division::Split(split::Split { rows, columns, splits, swapped, .. }) => {
                GemmAlgorithm::SplitK { rows, columns, splits, swapped }
            }
        }
    }
}

/// The configurations that a caller can force.
#[cfg(test)]
pub(super) fn algorithms(product: &Product, properties: DeviceProperties) -> Vec<GemmAlgorithm> {
    divisions(product, properties).map(|(division, _)| division.algorithm()).collect()
}

/// The configuration that the caller forces, else the one with the fewest estimated clock cycles. `None` where the product
/// does not have the forced one.
fn division(problem: &GemmProblem<'_>) -> Option<Division> {
    let all = divisions(problem.product, problem.properties);
    match problem.product.algorithm() {
        Some(algorithm) => {
            all.map(|(division, _)| division).find(|division| division.algorithm() == algorithm)
        }
        None => all.min_by_key(|(_, clocks)| *clocks).map(|(division, _)| division),
    }
}

/// Bytes of the operands that no tensor map describes.
fn unmapped_bytes(problem: &GemmProblem<'_>) -> u64 {
    let product = problem.product;
    let bytes = |operand| {
        let stored = if operand == 'A' { product.stored_a() } else { product.stored_b() };
        (stored.elements() as u64).saturating_mul(problem.operand.size() as u64)
    };
    unmapped(problem).map(bytes).fold(0, u64::saturating_add)
}

/// Whether it is worth its time to copy the operands that no tensor map describes: by a third, since both estimates are rough.
fn copies_pay(problem: &GemmProblem<'_>) -> bool {
    let (product, properties) = (problem.product, problem.properties);
    let at_once = 2 * u64::from(properties.multiprocessors);
    let squares = blocks::tiles(problem, 64, 64);
    let together = product.stored_c().whole_blocks(&STORED, problem.result.size());
    let stores = if together == MAP_ALIGNMENT { 0 } else { STORED_BY_TWO * 2 / together as u64 };
    let clocks = divisions(product, properties).map(|(_, clocks)| clocks).min().unwrap_or(u64::MAX);
    let here = COPIES_BEGIN
        .saturating_add(unmapped_bytes(problem) / COPIED_BYTES)
        .saturating_add(clocks)
        .saturating_add(squares.saturating_mul(stores) / at_once);
    let steps = (product.k() as u64).div_ceil(32);
    let elsewhere = squares.max(at_once).saturating_mul(steps * STEP_ELSEWHERE + TILE_ELSEWHERE) / at_once;
    elsewhere > here.saturating_add(here / 3)
}

/// Returns the division, or the reason why the engine does not compute the problem.
pub(super) fn select(problem: &GemmProblem<'_>) -> std::result::Result<Division, Unsupported> {
    let (operand, result, product) = (problem.operand, problem.result, problem.product);
    if !matches!(operand, DType::F16 | DType::BF16) || (result != operand && result != DType::F32) {
        return Err(Unsupported::Types(operand, result));
    }
    // Every family of theirs is for the same devices.
    for family in [pairs::family(operand, product), packed::FAMILY] {
        if let Some(error) = missing_image(problem.properties, family) {
            return Err(Unsupported::Image(error));
        }
    }
    if product.k() == 0 {
        return Err(Unsupported::NoDepth);
    }
    if let Some(operand) = unmapped(problem).next().filter(|_| !copies_pay(problem)) {
        return Err(Unsupported::Alignment(operand, MAP_ALIGNMENT as u64));
    }
    // The copies' pieces are counted in 32 bits, and the ends of rows are filled up.
    if unmapped_bytes(problem) > u64::from(u32::MAX) * MAP_ALIGNMENT as u64 / 8 {
        return Err(Unsupported::TooMany("bytes to copy"));
    }
    let Some(division) = division(problem) else {
        return Err(product.algorithm().map_or(Unsupported::TooMany("tiles"), Unsupported::Algorithm));
    };
    let tiles = match division {
        Division::Pairs(pairs) => pairs.tiles,
        Division::Split(split) => split.blocks(),
    };
    // The kernels count in 32 bits, and one round past the end.
    if tiles > (i32::MAX / 2) as u64 { Err(Unsupported::TooMany("tiles")) } else { Ok(division) }
}

/// Returns the kernel and its grid.
pub(super) fn geometry(problem: &GemmProblem<'_>, division: &Division) -> Geometry {
    let copied = unmapped(problem).collect();
    let (operand, product) = (problem.operand, problem.product);
    match division {
        Division::Pairs(pairs) => Geometry {
            family: pairs::family(operand, product),
            kernel: pairs.kernel(operand, product),
            tile: (pairs::TILE_ROWS as u32, pairs.columns),
            tiles: pairs.tiles,
            blocks: pairs.blocks(),
            copied,
            splits: 1,
            divided: pairs.divided_tiles(),
        },
        Division::Split(split) => Geometry {
            family: split.family(operand, product),
            kernel: split.kernel(operand, product),
            tile: split.tile(),
            tiles: split.tiles,
            blocks: split.blocks() as u32,
            copied,
            splits: split.splits,
            divided: 0,
        },
    }
}

/// What the kernels are given beside the operands.
struct Work<'a> {
    problem: &'a GemmProblem<'a>,
    alpha: f32,
    beta: f32,
    epilogue: &'a DeviceParts<'a>,
}

/// Runs it. The product was checked against the buffers, and nothing is lacking.
pub(super) fn run_on(
    stream: &Stream,
    problem: &GemmProblem<'_>,
    division: &Division,
    scalars: Scalars,
    (a, b, c): (DeviceSlice<'_, u8>, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>),
    epilogue: &DeviceParts<'_>,
) -> Result<()> {
    // Copies live until the product is launched, which orders their memory's next use behind it.
    let operands = Operands::new(stream, problem, [a, b])?;
    let (a, b) = (operands.a(), operands.b());
    let number = |sum: [u64; 2]| f32::from_bits(sum[0] as u32);
    let work = Work { problem, alpha: number(scalars.alpha), beta: number(scalars.beta), epilogue };
    match division {
        Division::Pairs(pairs) => pairs.run(stream, &work, &a, &b, c),
        Division::Split(split) => split.run(stream, &work, &a, &b, c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: DeviceProperties =
        DeviceProperties { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    fn best(product: &Product) -> Division {
        division(&GemmProblem::from_types(product, DType::BF16, DType::BF16, H200)).unwrap()
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
    fn few_tiles_are_split_and_many_are_not() {
        let splits = |m, n, k| match best(&Product::new(m, n, k)) {
            Division::Pairs(_) => 0,
            Division::Split(split) => split.splits,
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
