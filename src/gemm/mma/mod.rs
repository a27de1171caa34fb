//! Products on the tensor cores of compute capability 8.0 and up, and 7.5: `csrc/kernels/gemm_mma.cu` for f16 and bf16
//! ([`half`]), `csrc/kernels/gemm_mma_double.cu` for f64 and c128 ([`double`]).

mod double;
mod half;

use super::blocks::{self, GemmParameters, Scalars};
use super::engine::Unsupported;
use super::epilogue::{DeviceEpilogue, WithEpilogue};
use super::geometry::Geometry;
use super::problem::GemmProblem;
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::{self, Entry, missing_image};

/// A `Tile` of the source, with the time of a multiprocessor for an element where it has one tile at a time (`alone`) and where it has
/// several (`beside`). Only the ratios count.
struct Tile {
    size: &'static str,
    rows: u32,
    columns: u32,
    warps: u32,
    /// k of a step, and stages in flight.
    depth: u32,
    stages: u32,
    alone: u64,
    beside: u64,
}

impl Tile {
    /// Returns the dynamic shared memory: the stages of both operands.
    fn shared_bytes(&self, element: usize) -> u32 {
        self.stages * self.depth * (self.rows + self.columns) * element as u32
    }
}

/// A kernel configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    family: &'static str,
    /// The tile's name, and its rows and columns.
    size: &'static str,
    tile: (u32, u32),
    threads: u32,
    /// Dynamic shared memory.
    shared: u32,
    /// Vector widths of A, B and C in elements. With `whole` A and B use them only where rows are multiples of them.
    vector_widths: [usize; 3],
    whole: bool,
}

impl Configuration {
    /// Returns the configuration, or `None` where the types are not multiplied.
    fn of(problem: &GemmProblem<'_>) -> Option<Configuration> {
        half::configuration(problem).or_else(|| double::configuration(problem))
    }

    /// Returns the configuration with the tiles that take the least time.
    fn quickest<'t>(
        problem: &GemmProblem<'_>,
        family: &'static str,
        tiles: impl Iterator<Item = &'t Tile>,
        vector_widths: [usize; 3],
        whole: bool,
    ) -> Option<Configuration> {
        let time = |tile: &&Tile| blocks::time(problem, (tile.rows, tile.columns), (tile.alone, tile.beside));
        let tile = tiles.min_by_key(time)?;
        Some(Configuration {
            family,
            size: tile.size,
            tile: (tile.rows, tile.columns),
            threads: tile.warps * 32,
            shared: tile.shared_bytes(problem.operand.size()),
            vector_widths,
            whole,
        })
    }

    fn tiles(&self, problem: &GemmProblem<'_>) -> u64 {
        blocks::tiles(problem, self.tile.0, self.tile.1)
    }

    fn kernel(&self, problem: &GemmProblem<'_>) -> String {
        format!("{}_{}_{}", self.family, problem.product.layout(), self.size)
    }
}

fn unsupported_types(problem: &GemmProblem<'_>) -> Unsupported {
    Unsupported::Types(problem.operand, problem.result)
}

/// Returns the configuration with the fastest tiles, or the reason why the engine does not compute the problem.
pub(super) fn select(problem: &GemmProblem<'_>) -> std::result::Result<Configuration, Unsupported> {
    let configuration = Configuration::of(problem).ok_or_else(|| unsupported_types(problem))?;
    if configuration.tiles(problem) > i32::MAX as u64 {
        return Err(Unsupported::TooMany("tiles"));
    }
    missing_image(problem.properties, configuration.family)
        .map_or(Ok(configuration), |error| Err(Unsupported::Image(error)))
}

/// Returns the kernel and its grid.
pub(super) fn geometry(problem: &GemmProblem<'_>, configuration: &Configuration) -> Geometry {
    let (kernel, tiles) = (configuration.kernel(problem), configuration.tiles(problem));
    Geometry::of_tiles(configuration.family, kernel, configuration.tile, tiles)
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
    let (a_transposed, b_transposed) =
        (product.operation_a().transposes(), product.operation_b().transposes());
    // Tiles of a family differ in their columns.
    let entry_key =
        u64::from(a_transposed) | u64::from(b_transposed) << 1 | u64::from(configuration.tile.1) << 2;
    let name = || configuration.kernel(problem);
    let entry = Entry::Number(entry_key, &name);
    let function = images::kernel(&stream.device(), configuration.family, entry)?;
    let parameters =
        GemmParameters::new(problem, scalars, epilogue, configuration.vector_widths, configuration.whole);
    let config = LaunchConfig::new(configuration.tiles(problem) as u32, configuration.threads)
        .shared(configuration.shared);
    // SAFETY: the kernel takes three addresses and these parameters, and stays inside the matrices that they describe, which are
    // inside the buffers, and the epilogue's buffers, which were checked.
    unsafe { function.launch(stream, config, (a, b, c, WithEpilogue { parameters, epilogue })) }
}

#[cfg(test)]
mod tests {
    use super::Tile;
    use crate::gemm::{Choice, DeviceProperties, Engine, Operation, Plan, Product};
    use crate::types::DType;

    fn plan(product: Product, dtype: DType, capability: (i32, i32)) -> Plan {
        Plan::explain(&product, dtype, dtype, DeviceProperties::reference(capability)).unwrap()
    }

    fn square(size: usize) -> Product {
        Product::new(size, size, size)
    }

    /// Each tile of the source, `struct Tile<PARAMETERS, SIZE>`, is one of these, and no other is there.
    pub(super) fn assert_tiles(source: &str, parameters: &str, tiles: &[Tile]) {
        assert_eq!(source.matches(&format!("struct Tile<{parameters}")).count(), tiles.len());
        for Tile { size, rows, columns, warps, depth, stages, .. } in tiles {
            let line = format!("struct Tile<{parameters}{size}> : TileOf<");
            let (_, sizes) = source.split_once(&line).unwrap();
            let sizes: Vec<u32> =
                sizes.split_once('>').unwrap().0.split(", ").map(|n| n.parse().unwrap()).collect();
            let &[down, across, warp_rows, warp_columns, of_depth, of_stages, _] = &sizes[..] else {
                panic!("{sizes:?}");
            };
            assert_eq!(
                (*rows, *columns, *warps, *depth, *stages),
                (down * warp_rows, across * warp_columns, down * across, of_depth, of_stages)
            );
        }
    }

    #[test]
    fn tensor_cores_of_every_age_are_used() {
        let kernel = |size, dtype, capability| plan(square(size), dtype, capability).kernel().to_owned();
        assert_eq!(kernel(4096, DType::BF16, (8, 0)), "gemm_mma_bf16_nn_large");
        assert_eq!(kernel(1024, DType::F16, (10, 0)), "gemm_mma_f16_nn_small");
        // Large tiles are of more shared memory than some devices give a block.
        assert_eq!(kernel(4096, DType::F16, (7, 5)), "gemm_mma_f16_nn_medium");
        assert_eq!(kernel(4096, DType::BF16, (8, 6)), "gemm_mma_bf16_nn_medium");
        assert_eq!(kernel(4096, DType::BF16, (12, 0)), "gemm_mma_bf16_nn_medium");
        assert_eq!(kernel(4097, DType::F16, (7, 5)), "gemm_mma_f16_nn_small");
        // Rows that begin at multiples of 16 bytes and end elsewhere: small tiles take the ends by themselves.
        let padded = Product::new(4096, 4097, 4096).leading(4096, 4104, 4104);
        assert_eq!(plan(padded, DType::F16, (8, 0)).kernel(), "gemm_mma_f16_nn_small");
        // Tensor cores of 7.5 multiply f16 alone.
        for dtype in [DType::BF16, DType::F64, DType::C128] {
            assert_eq!(plan(square(1024), dtype, (7, 5)).engine(), Engine::Simt);
        }
        assert_eq!(plan(square(1024), DType::F16, (7, 0)).engine(), Engine::Simt);
        for dtype in [DType::F64, DType::C128] {
            for capability in [(8, 0), (8, 6), (9, 0), (10, 0), (12, 0)] {
                assert_eq!(plan(square(1024), dtype, capability).engine(), Engine::Mma);
            }
        }
        let product = square(64).by(Choice::Only(Engine::Mma));
        for (operand, result) in
            [(DType::F32, DType::F32), (DType::F64, DType::F32), (DType::C64, DType::C64)]
        {
            let error =
                Plan::explain(&product, operand, result, DeviceProperties::reference((9, 0))).unwrap_err();
            let wanted = format!("mma: it does not multiply {operand} into {result}");
            assert!(error.to_string().contains(&wanted), "{error}");
        }
    }

    #[test]
    fn tiles_of_doubles_fill_the_device() {
        let kernel = |product, dtype| plan(product, dtype, (9, 0)).kernel().to_owned();
        for (size, tile) in
            [(256, "small"), (512, "small"), (1024, "medium"), (2048, "large"), (8192, "large")]
        {
            assert_eq!(kernel(square(size), DType::F64), format!("gemm_mma_f64_nn_{tile}"));
        }
        for (size, tile) in [(256, "small"), (512, "small"), (1024, "large"), (4096, "large")] {
            assert_eq!(kernel(square(size), DType::C128), format!("gemm_mma_c128_nn_{tile}"));
        }
        // No operation and no alignment has another kernel than its layout's.
        let product = square(4097).a(Operation::Adjoint).b(Operation::Conjugate);
        assert_eq!(kernel(product, DType::C128), "gemm_mma_c128_tn_large");
        assert_eq!(kernel(product, DType::F64), "gemm_mma_f64_tn_large");
        assert_eq!(kernel(Product::new(64, 64, 0), DType::F64), "gemm_mma_f64_nn_small");
    }
}
