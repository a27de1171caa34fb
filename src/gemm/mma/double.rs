//! The tiles of `csrc/kernels/gemm_mma_double.cu`: f64 and c128, added in their own type.

use super::{Configuration, Tile};
use crate::gemm::problem::GemmProblem;
use crate::types::DType;

/// Times by the tensor cores' rate, and where that is more by the reads: small tiles read each operand more often, from
/// shared memory and from the L2 cache, and of four warps alone each has a scheduler that waits when it does. Estimated.
#[rustfmt::skip]
const F64: [Tile; 3] = [
    Tile { size: "large", rows: 128, columns: 128, warps: 8, depth: 16, stages: 3, alone: 100, beside: 100 },
    Tile { size: "medium", rows: 64, columns: 64, warps: 4, depth: 16, stages: 4, alone: 150, beside: 115 },
    Tile { size: "small", rows: 32, columns: 32, warps: 4, depth: 16, stages: 6, alone: 300, beside: 200 },
];
#[rustfmt::skip]
const C128: [Tile; 2] = [
    Tile { size: "large", rows: 64, columns: 64, warps: 4, depth: 8, stages: 3, alone: 130, beside: 100 },
    Tile { size: "small", rows: 32, columns: 32, warps: 4, depth: 8, stages: 6, alone: 200, beside: 130 },
];

/// Returns the configuration, or `None` for other types.
pub(super) fn configuration(problem: &GemmProblem<'_>) -> Option<Configuration> {
    let (family, tiles) = match problem.operand {
        DType::F64 => ("gemm_mma_f64", &F64[..]),
        DType::C128 => ("gemm_mma_c128", &C128[..]),
        _ => return None,
    };
    if problem.result != problem.operand {
        return None;
    }
    let vector_widths = [16 / problem.operand.size(); 3];
    Configuration::quickest(problem, family, tiles.iter(), vector_widths, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::mma::tests::assert_tiles;

    #[test]
    fn the_steps_fit_every_device() {
        // The least shared memory of a block on devices from 8.0 on.
        let fits = |tile: &Tile, element| tile.shared_bytes(element) <= 99 << 10;
        assert!(F64.iter().all(|tile| fits(tile, 8)) && C128.iter().all(|tile| fits(tile, 16)));
    }

    #[test]
    fn tiles_are_the_kernels() {
        let source = include_str!("../../../csrc/kernels/gemm_mma_double.cu");
        assert_tiles(source, "f64, ", &F64);
        assert_tiles(source, "c128, ", &C128);
    }
}
