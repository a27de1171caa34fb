//! Products by ordinary arithmetic: `csrc/kernels/gemm_simt.cu` for every type and device, and from compute capability 8.0
//! on `csrc/kernels/gemm_async.cu` for f32, f64 and complex numbers.

use super::blocks::{self, Scalars, Shape};
use super::element::of_dtype;
use super::engine::Lack;
use super::epilogue::{Epilogue, WithEpilogue};
use super::kernels::{self, Key, missing_image};
use super::plan::{Geometry, Situation};
use super::product::OPERATION;
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// What a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    rows: u32,
    columns: u32,
    threads: u32,
    /// Dynamic shared memory.
    shared: u32,
    /// How long a multiprocessor takes for an element where it has one tile at a time, and where it has several; only
    /// their ratios count.
    alone: u64,
    beside: u64,
}

/// The `Tile`s of gemm_async.cu: rows, columns, numbers of a thread times slices, depth, stages, and the two times.
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

/// The family for the type from 8.0 on, its large and its small tile.
fn asynchronous(operand: DType) -> Option<(&'static str, [Tile; 2])> {
    const LARGE: (u64, u64) = (150, 100);
    const SMALL: (u64, u64) = (130, 115);
    Some(match operand {
        DType::F32 => (
            "gemm_async_f32",
            // Two slices of a block divide the depth of a small tile, so two warps share each scheduler.
            [tile((128, 128), 128, (16, 3), 4, LARGE), tile((128, 64), 32, (16, 4), 4, (115, 110))],
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

/// How a product is made.
struct Way {
    family: &'static str,
    tile: Tile,
    /// Of an asynchronous family: whether the tile is its large one.
    large: Option<bool>,
    /// Elements of A, B and C that are read or written together.
    together: [usize; 3],
}

fn way(situation: &Situation<'_>) -> Option<Way> {
    let (family, sum_bytes) = of_dtype(situation.operand)?;
    let run = 16 / sum_bytes;
    let product = situation.product;
    let known = asynchronous(situation.operand);
    if let Some((family, [large, small])) =
        known.filter(|(family, _)| missing_image(situation.machine, family).is_none())
    {
        let time = |tile: Tile| blocks::time(situation, (tile.rows, tile.columns), (tile.alone, tile.beside));
        // Only small tiles change signs.
        let conjugates = product.operation_a().conjugates() || product.operation_b().conjugates();
        let is_large = !conjugates && time(large) <= time(small);
        let tile = if is_large { large } else { small };
        return Some(Way { family, tile, large: Some(is_large), together: [run; 3] });
    }
    let vector = if sum_bytes <= 4 { 4 } else { run };
    Some(Way { family, tile: plain(sum_bytes), large: None, together: [vector, vector, run] })
}

impl Way {
    fn tiles(&self, situation: &Situation<'_>) -> u64 {
        blocks::tiles(situation, self.tile.rows, self.tile.columns)
    }

    fn kernel(&self, situation: &Situation<'_>) -> String {
        let layout = situation.product.layout();
        match self.large {
            Some(large) => format!("{}_{layout}_{}", self.family, if large { "large" } else { "small" }),
            None if situation.operand == situation.result => format!("{}_{layout}", self.family),
            None => format!("{}_f32_{layout}", self.family),
        }
    }
}

/// What keeps it from running.
pub(super) fn lacks(situation: &Situation<'_>) -> Option<Lack> {
    let (operand, result) = (situation.operand, situation.result);
    let wide = matches!(operand, DType::F16 | DType::BF16) && result == DType::F32;
    let Some(way) = way(situation).filter(|_| wide || operand == result) else {
        return Some(Lack::Types(operand, result));
    };
    if way.tiles(situation) > i32::MAX as u64 {
        return Some(Lack::TooMany("tiles"));
    }
    missing_image(situation.machine, way.family).map(Lack::Image)
}

/// What `lacks` has said before.
fn no_way(situation: &Situation<'_>) -> Error {
    let lack = Lack::Types(situation.operand, situation.result);
    Error::invalid(OPERATION, lack.to_string(), "types that are multiplied")
}

/// What would run.
pub(super) fn geometry(situation: &Situation<'_>) -> Result<Geometry> {
    let way = way(situation).ok_or_else(|| no_way(situation))?;
    let tiles = way.tiles(situation);
    Ok(Geometry {
        family: way.family,
        kernel: way.kernel(situation),
        tile: (way.tile.rows, way.tile.columns),
        tiles,
        blocks: tiles.min(i32::MAX as u64) as u32,
        copied: Vec::new(),
        splits: 1,
        divided: 0,
    })
}

/// Runs it. The product was checked against the buffers, and nothing is lacking.
pub(super) fn run_on<T: Element, C: Element>(
    stream: &Stream,
    situation: &Situation<'_>,
    scalars: Scalars,
    a: DeviceSlice<'_, T>,
    b: DeviceSlice<'_, T>,
    c: DeviceSliceMut<'_, C>,
    epilogue: &Epilogue<'_, C>,
) -> Result<()> {
    let product = situation.product;
    let way = way(situation).ok_or_else(|| no_way(situation))?;
    let (a_transposed, b_transposed) =
        (product.operation_a().transposes(), product.operation_b().transposes());
    let key: Key = (
        way.family,
        u64::from(T::DTYPE != C::DTYPE)
            | u64::from(a_transposed) << 1
            | u64::from(b_transposed) << 2
            | u64::from(way.large == Some(true)) << 3,
    );
    let function = kernels::function(&stream.device(), key, || way.kernel(situation))?;
    // Asynchronous copies are of 16 bytes or of one element.
    let shape = Shape::new::<T, C>(situation, scalars, epilogue, way.together, way.large.is_some());
    let config = LaunchConfig::new(way.tiles(situation) as u32, way.tile.threads).shared(way.tile.shared);
    // SAFETY: the kernel takes three addresses and this Shape, and stays inside the matrices that it describes, which lie
    // inside the buffers, and the epilogue's buffers, which were checked.
    unsafe { function.launch(stream, config, (a, b, c, WithEpilogue { shape, epilogue })) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Choice, Engine, Machine, Operation, Plan, Product};

    #[test]
    fn tiles_fill_the_device() {
        let kernel = |product: Product, dtype, capability| {
            Plan::explain(&product, dtype, dtype, Machine::typical(capability)).unwrap().kernel().to_owned()
        };
        let square = |size| Product::new(size, size, size);
        for (size, tile) in [(64, "small"), (1024, "small"), (2048, "large"), (4096, "large")] {
            assert_eq!(kernel(square(size), DType::F32, (9, 0)), format!("gemm_async_f32_nn_{tile}"));
        }
        let asked = square(4096).by(Choice::Only(Engine::Simt));
        assert_eq!(kernel(asked, DType::C128, (8, 0)), "gemm_async_c128_nn_large");
        let adjoint = square(4096).a(Operation::Adjoint);
        assert_eq!(kernel(adjoint, DType::C64, (9, 0)), "gemm_async_c64_tn_small");
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
            // What the least of the devices from 8.0 on gives a block.
            assert!(tiles.iter().all(|tile| tile.shared <= 99 << 10));
        }
    }
}
