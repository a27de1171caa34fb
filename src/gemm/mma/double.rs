//! The tiles of `csrc/kernels/gemm_mma_double.cu`: f64 and c128, added in their own type.

use super::Division;
use crate::gemm::blocks;
use crate::gemm::plan::Situation;
use crate::types::DType;

/// A `Tile` of the source, with how long a multiprocessor takes for a number where it has one tile at a time, and where it
/// has several; only their ratios count.
struct Tile {
    size: &'static str,
    rows: u32,
    columns: u32,
    warps: u32,
    /// k of a step, and steps on their way.
    depth: u32,
    stages: u32,
    alone: u64,
    beside: u64,
}

/// Times by the tensor cores' rate, and where that is more by what is read: small tiles read each operand more often, from
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

/// Dynamic shared memory: the steps of both operands.
fn shared_bytes(tile: &Tile, element: u32) -> u32 {
    tile.stages * tile.depth * (tile.rows + tile.columns) * element
}

/// None for other types.
pub(super) fn division(situation: &Situation<'_>) -> Option<Division> {
    let (family, tiles) = match situation.operand {
        DType::F64 => ("gemm_mma_f64", &F64[..]),
        DType::C128 => ("gemm_mma_c128", &C128[..]),
        _ => return None,
    };
    if situation.result != situation.operand {
        return None;
    }
    let time = |tile: &Tile| blocks::time(situation, (tile.rows, tile.columns), (tile.alone, tile.beside));
    let tile = tiles.iter().min_by_key(|tile| time(tile))?;
    let element = situation.operand.size();
    Some(Division {
        family,
        size: tile.size,
        tile: (tile.rows, tile.columns),
        threads: tile.warps * 32,
        shared: shared_bytes(tile, element as u32),
        together: [16 / element; 3],
        whole: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_fit_every_device() {
        // What the least of the devices from 8.0 on gives a block.
        let fits = |tile: &Tile, element| shared_bytes(tile, element) <= 99 << 10;
        assert!(F64.iter().all(|tile| fits(tile, 8)) && C128.iter().all(|tile| fits(tile, 16)));
    }

    #[test]
    fn tiles_are_the_kernels() {
        let source = include_str!("../../../csrc/kernels/gemm_mma_double.cu");
        for (element, tiles) in [("f64", &F64[..]), ("c128", &C128[..])] {
            assert_eq!(source.matches(&format!("struct Tile<{element}, ")).count(), tiles.len());
            for Tile { size, rows, columns, warps, depth, stages, .. } in tiles {
                let line = format!("struct Tile<{element}, {size}> : TileOf<");
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
    }
}
