//! The tiles of `csrc/kernels/gemm_mma.cu`: f16 and bf16, added in f32.

use super::{Configuration, Tile};
use crate::gemm::problem::GemmProblem;
use crate::images::MatrixLayout;
use crate::types::DType;

/// Times by the tensor cores' rate, and where that is more by the reads: the source's header states the reads of a tile from
/// shared memory and of the L2 cache. Of four warps alone each has a scheduler that waits when it does. Estimated.
#[rustfmt::skip]
const TILES: [Tile; 3] = [
    Tile { size: "large", rows: 128, columns: 256, warps: 8, depth: 64, stages: 3, alone: 100, beside: 100 },
    Tile { size: "medium", rows: 128, columns: 128, warps: 4, depth: 32, stages: 4, alone: 160, beside: 120 },
    Tile { size: "small", rows: 64, columns: 64, warps: 4, depth: 32, stages: 4, alone: 350, beside: 230 },
];
/// Vector widths of A, B and C in elements.
const VECTOR_WIDTHS: [usize; 3] = [8, 8, 4];

/// Returns the shared memory that a block can have, by the table "Technical Specifications per Compute Capability" of the CUDA C++
/// Programming Guide; of devices that are not in it, the least of those from 8.0 on.
fn shared_limit(capability: (i32, i32)) -> u32 {
    let kilobytes = match capability {
        (7, _) => 64,
        (8, 0 | 7) => 163,
        (9..=11, _) => 227,
        _ => 99,
    };
    kilobytes << 10
}

/// Returns true where the kernel of this tile computes the product. All but small ones lie inside the matrix, and need operands whose rows are
/// whole numbers of 16 bytes.
fn takes(tile: &Tile, problem: &GemmProblem<'_>) -> bool {
    let (product, size) = (problem.product, problem.operand.size());
    let aligned = |stored: MatrixLayout, address: u64| {
        let bytes = VECTOR_WIDTHS[0] * size;
        address.is_multiple_of(bytes as u64) && stored.is_whole(bytes, size)
    };
    tile.size == "small"
        || tile.shared_bytes(size) <= shared_limit(problem.properties.capability)
            && product.m() >= tile.rows as usize
            && product.n() >= tile.columns as usize
            && aligned(product.stored_a(), problem.addresses[0])
            && aligned(product.stored_b(), problem.addresses[1])
}

/// Returns the configuration, or `None` for other types.
pub(super) fn configuration(problem: &GemmProblem<'_>) -> Option<Configuration> {
    let family = match problem.operand {
        DType::F16 => "gemm_mma_f16",
        DType::BF16 => "gemm_mma_bf16",
        _ => return None,
    };
    if problem.result != problem.operand && problem.result != DType::F32 {
        return None;
    }
    let tiles = TILES.iter().filter(|tile| takes(tile, problem));
    Configuration::quickest(problem, family, tiles, VECTOR_WIDTHS, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::mma::tests::assert_tiles;
    use crate::gemm::{DeviceProperties, Operation, Product};

    #[test]
    fn tiles_are_the_kernels() {
        assert_tiles(include_str!("../../../csrc/kernels/gemm_mma.cu"), "", &TILES);
    }

    #[test]
    fn the_steps_fit() {
        // A warp's rows of the result go through the same place, and all but the large ones fit every device.
        for tile in &TILES {
            let rows = if tile.size == "small" { 32 } else { 64 };
            let shared = tile.shared_bytes(2);
            assert!(rows * (tile.columns + 8) * 4 <= shared);
            assert!(shared <= if tile.size == "large" { 163 << 10 } else { 64 << 10 });
        }
    }

    #[test]
    fn tiles_fill_the_device_and_lie_inside() {
        let kernel = |product: Product| {
            let properties = DeviceProperties::reference((9, 0));
            configuration(&GemmProblem::from_types(&product, DType::BF16, DType::BF16, properties))
                .unwrap()
                .size
        };
        let square = |size| kernel(Product::new(size, size, size));
        assert_eq!([256, 1024, 1408, 2048, 8192].map(square), ["small", "small", "medium", "large", "large"]);
        // Of fewer rows or columns than a tile has.
        assert_eq!(kernel(Product::new(64, 1 << 16, 4096)), "small");
        assert_eq!(kernel(Product::new(1 << 16, 128, 4096)), "medium");
        // Of k that is no whole number of 16 bytes, where k runs along the rows.
        assert_eq!(kernel(Product::new(4096, 4096, 4095)), "small");
        assert_eq!(kernel(Product::new(4096, 4096, 4095).a(Operation::Transpose)), "large");
    }
}
