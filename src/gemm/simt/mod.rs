//! Products on CUDA cores: `csrc/kernels/gemm_simt.cu` for every type and device, from compute capability 8.0 on
//! `csrc/kernels/gemm_async.cu` for f32, f64 and complex numbers, and on 9.0 [`bulk`] for f32 and c64 where it can.

mod bulk;

use super::blocks::{self, GemmParameters, Scalars};
use super::element::of_dtype;
use super::engine::Unsupported;
use super::epilogue::{DeviceEpilogue, WithEpilogue};
use super::geometry::Geometry;
use super::problem::GemmProblem;
use super::product::Operation;
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::{self, Entry, missing_image};
use crate::types::DType;

/// The tile of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    rows: u32,
    columns: u32,
    threads: u32,
    /// Dynamic shared memory.
    shared: u32,
    /// The time of a multiprocessor for an element where it has one tile at a time, and where it has several. Only the ratios count.
    alone: u64,
    beside: u64,
}

/// The `Tile`s of gemm_async.cu: rows, columns, elements of a thread times slices, depth, stages, and the two times.
const fn tile(
    (rows, columns): (u32, u32),
    each: u32,
    (depth, stages): (u32, u32),
    element: u32,
    (alone, beside): (u64, u64),
) -> Tile {
    let shared = stages * depth * ((rows + columns) * element + 32);
    Tile { rows, columns, threads: rows * columns / each, shared, alone, beside }
}

/// The two times of a large tile, of a small one, and of a small one whose depth two slices of the block divide, so that
/// two warps share each scheduler.
const LARGE: (u64, u64) = (150, 100);
const SMALL: (u64, u64) = (130, 115);
const SLICED: (u64, u64) = (115, 110);

/// The family for the type from 8.0 on, its large and its small tile.
fn asynchronous(operand: DType) -> Option<(&'static str, [Tile; 2])> {
    Some(match operand {
        DType::F32 => (
            "gemm_async_f32",
            [tile((128, 128), 128, (16, 3), 4, LARGE), tile((128, 64), 32, (16, 4), 4, SLICED)],
        ),
        DType::F64 => {
            ("gemm_async_f64", [tile((128, 64), 64, (8, 4), 8, LARGE), tile((64, 32), 32, (8, 4), 8, SMALL)])
        }
        DType::C64 => {
            ("gemm_async_c64", [tile((128, 64), 64, (8, 4), 8, LARGE), tile((64, 32), 32, (8, 4), 8, SMALL)])
        }
        DType::C128 => (
            "gemm_async_c128",
            [tile((64, 64), 32, (8, 3), 16, LARGE), tile((32, 32), 16, (8, 4), 16, SMALL)],
        ),
        _ => return None,
    })
}

/// The tile of gemm_simt.cu.
fn plain(sum_bytes: usize) -> Tile {
    let span = if sum_bytes <= 4 { 128 } else { 64 };
    Tile { rows: span, columns: span, threads: 256, shared: 0, alone: 1, beside: 1 }
}

/// The kernels of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernels {
    /// Kernels for every device.
    Plain,
    /// Kernels with cp.async pipelines, with a large tile or a small one.
    Asynchronous { large: bool },
    /// Kernels with TMA loads, with a large tile or a small one.
    Bulk { large: bool },
}

/// A kernel configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    family: &'static str,
    kernels: Kernels,
    tile: Tile,
    /// Vector widths of A, B and C in elements.
    vector_widths: [usize; 3],
}

/// Returns true where the first of two tiles takes no longer than the second.
fn larger_is_faster(problem: &GemmProblem<'_>, [large, small]: [Tile; 2]) -> bool {
    let time = |tile: Tile| blocks::time(problem, (tile.rows, tile.columns), (tile.alone, tile.beside));
    time(large) <= time(small)
}

fn configuration(problem: &GemmProblem<'_>) -> Option<Configuration> {
    let (family, sum_bytes) = of_dtype(problem.operand)?;
    let run = 16 / sum_bytes;
    let product = problem.product;
    let chosen = |large, tiles: [Tile; 2]| if large { tiles[0] } else { tiles[1] };
    let known = asynchronous(problem.operand);
    if let Some((family, tiles)) = bulk::tiles_for(problem) {
        // The size of a tile of f32 decides its bits, so it is chosen as where threads copy.
        let compared = known.filter(|_| problem.operand == DType::F32).map_or(tiles, |(_, tiles)| tiles);
        let large = larger_is_faster(problem, compared);
        let (kernels, tile) = (Kernels::Bulk { large }, chosen(large, tiles));
        return Some(Configuration { family, kernels, tile, vector_widths: [run; 3] });
    }
    if let Some((family, tiles)) =
        known.filter(|(family, _)| missing_image(problem.properties, family).is_none())
    {
        // Only small tiles conjugate.
        let changes = |operation: Operation| operation.conjugates() && problem.operand.is_complex();
        let conjugates = changes(product.operation_a()) || changes(product.operation_b());
        let large = !conjugates && larger_is_faster(problem, tiles);
        let tile = chosen(large, tiles);
        let kernels = Kernels::Asynchronous { large };
        return Some(Configuration { family, kernels, tile, vector_widths: [run; 3] });
    }
    let vector = if sum_bytes <= 4 { 4 } else { run };
    let tile = plain(sum_bytes);
    Some(Configuration { family, kernels: Kernels::Plain, tile, vector_widths: [vector, vector, run] })
}

fn size(large: bool) -> &'static str {
    if large { "large" } else { "small" }
}

impl Configuration {
    fn tiles(&self, problem: &GemmProblem<'_>) -> u64 {
        blocks::tiles(problem, self.tile.rows, self.tile.columns)
    }

    fn kernel(&self, problem: &GemmProblem<'_>) -> String {
        let layout = problem.product.layout();
        match self.kernels {
            Kernels::Bulk { large } => {
                format!("{}_{}_{}", self.family, bulk::layout(problem), size(large))
            }
            Kernels::Asynchronous { large } => format!("{}_{layout}_{}", self.family, size(large)),
            Kernels::Plain if problem.operand == problem.result => format!("{}_{layout}", self.family),
            Kernels::Plain => format!("{}_f32_{layout}", self.family),
        }
    }
}

/// Returns the fastest configuration, or the reason why the engine does not compute the problem.
pub(super) fn select(problem: &GemmProblem<'_>) -> std::result::Result<Configuration, Unsupported> {
    let (operand, result) = (problem.operand, problem.result);
    let wide = matches!(operand, DType::F16 | DType::BF16) && result == DType::F32;
    let configuration = configuration(problem)
        .filter(|_| wide || operand == result)
        .ok_or(Unsupported::Types(operand, result))?;
    if configuration.tiles(problem) > i32::MAX as u64 {
        return Err(Unsupported::TooMany("tiles"));
    }
    missing_image(problem.properties, configuration.family)
        .map_or(Ok(configuration), |error| Err(Unsupported::Image(error)))
}

/// Returns the kernel and its grid.
pub(super) fn geometry(problem: &GemmProblem<'_>, configuration: &Configuration) -> Geometry {
    let (kernel, tiles) = (configuration.kernel(problem), configuration.tiles(problem));
    let tile = (configuration.tile.rows, configuration.tile.columns);
    Geometry::of_tiles(configuration.family, kernel, tile, tiles)
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
    let product = problem.product;
    let operations = [product.operation_a(), product.operation_b()];
    let [a_operation, b_operation] = operations
        .map(|operation| u64::from(operation.transposes()) | u64::from(operation.conjugates()) << 1);
    let large = matches!(
        configuration.kernels,
        Kernels::Asynchronous { large: true } | Kernels::Bulk { large: true }
    );
    let entry_key = u64::from(problem.operand != problem.result)
        | u64::from(large) << 1
        | a_operation << 2
        | b_operation << 4;
    let name = || configuration.kernel(problem);
    let entry = Entry::Number(entry_key, &name);
    let function = images::kernel(&stream.device(), configuration.family, entry)?;
    // Asynchronous copies are of 16 bytes or of one element.
    let whole = matches!(configuration.kernels, Kernels::Asynchronous { .. });
    let parameters = GemmParameters::new(problem, scalars, epilogue, configuration.vector_widths, whole);
    let config = LaunchConfig::new(configuration.tiles(problem) as u32, configuration.tile.threads)
        .shared(configuration.tile.shared);
    let parameters = WithEpilogue { parameters, epilogue };
    if matches!(configuration.kernels, Kernels::Bulk { .. }) {
        let config = product.overlapped(config);
        let [map_a, map_b] = bulk::maps(problem, &configuration.tile, a, b)?;
        // SAFETY: the kernel takes two maps, an address and these parameters. It reads the memory of the maps, which is inside the
        // buffers, and stays inside the matrices of C and the epilogue's buffers, which were checked.
        return unsafe { function.launch(stream, config, (&map_a, &map_b, c, parameters)) };
    }
    // SAFETY: the kernel takes three addresses and these parameters, and stays inside the matrices that they describe, which are
    // inside the buffers, and the epilogue's buffers, which were checked.
    unsafe { function.launch(stream, config, (a, b, c, parameters)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Choice, DeviceProperties, Engine, Plan, Product};

    #[test]
    fn tiles_fill_the_device() {
        let kernel = |product: Product, dtype, capability| {
            Plan::explain(&product, dtype, dtype, DeviceProperties::reference(capability))
                .unwrap()
                .kernel()
                .to_owned()
        };
        let square = |size| Product::new(size, size, size);
        for (size, layout, tile) in [(64, "nn", "small"), (1024, "nn", "small"), (2048, "nn", "large")] {
            assert_eq!(kernel(square(size), DType::F32, (9, 0)), format!("gemm_bulk_f32_{layout}_{tile}"));
            assert_eq!(kernel(square(size), DType::F32, (8, 0)), format!("gemm_async_f32_nn_{tile}"));
        }
        assert_eq!(kernel(square(4096), DType::F32, (8, 0)), "gemm_async_f32_nn_large");
        let asked = square(4096).by(Choice::Only(Engine::Simt));
        assert_eq!(kernel(asked, DType::C128, (8, 0)), "gemm_async_c128_nn_large");
        let adjoint = square(4096).a(Operation::Adjoint);
        assert_eq!(kernel(adjoint, DType::C64, (9, 0)), "gemm_bulk_c64_cn_large");
        assert_eq!(kernel(adjoint, DType::C64, (8, 0)), "gemm_async_c64_tn_small");
        // TMA loads change neither the tile nor, with it, the bits.
        for (m, n) in [(100, 100), (1000, 1500), (1400, 1400), (1900, 2100), (300, 9000), (5000, 5000)] {
            let size = |product, capability| {
                let name = kernel(product, DType::F32, capability);
                name.rsplit_once('_').map(|(_, size)| size.to_owned())
            };
            let [aligned, odd] = [40, 41].map(|k| Product::new(m, n, k));
            assert_eq!(size(aligned, (9, 0)), size(odd, (9, 0)), "{aligned}");
            let adjoint = aligned.a(Operation::Adjoint);
            assert_eq!(size(adjoint, (9, 0)), size(adjoint, (8, 0)), "{adjoint}");
        }
        // Older devices, and types without such kernels.
        assert_eq!(kernel(square(4096), DType::F32, (7, 5)), "gemm_simt_f32_nn");
        assert_eq!(kernel(square(4096), DType::I32, (9, 0)), "gemm_simt_u32_nn");
    }

    #[test]
    fn tiles_are_the_kernels() {
        for (dtype, large, small) in [
            (DType::F32, (128, 3 * 16 * (256 * 4 + 32)), (256, 4 * 16 * (192 * 4 + 32))),
            (DType::F64, (128, 4 * 8 * (192 * 8 + 32)), (64, 4 * 8 * (96 * 8 + 32))),
            (DType::C64, (128, 4 * 8 * (192 * 8 + 32)), (64, 4 * 8 * (96 * 8 + 32))),
            (DType::C128, (128, 3 * 8 * (128 * 16 + 32)), (64, 4 * 8 * (64 * 16 + 32))),
        ] {
            let (_, tiles) = asynchronous(dtype).unwrap();
            assert_eq!(tiles.map(|tile| (tile.threads, tile.shared)), [large, small], "{dtype}");
            // The least shared memory of a block on devices from 8.0 on.
            assert!(tiles.iter().all(|tile| tile.shared <= 99 << 10));
        }
    }
}
