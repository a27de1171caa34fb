//! The tiles of `csrc/kernels/gemm_mma.cu`: f16 and bf16, added in f32.

use super::Division;
use crate::gemm::blocks;
use crate::gemm::plan::Situation;
use crate::gemm::product::Stored;
use crate::types::DType;

const THREADS: u32 = 128;
/// k of a step, and steps on their way.
const STEP: u32 = 32;
const STAGES: u32 = 4;
/// Elements of A, B and C that are read or written together.
const TOGETHER: [usize; 3] = [8, 8, 4];

/// Rows, and columns, of a tile: the large one where there are enough of them to give each multiprocessor one, and the
/// operands' rows are whole numbers of 16 bytes, which it needs.
fn span(situation: &Situation<'_>) -> u32 {
    let (product, size) = (situation.product, situation.operand.size());
    let aligned = |stored: Stored, address: u64| {
        let bytes = TOGETHER[0] * size;
        address % bytes as u64 == 0 && stored.is_whole(bytes, size)
    };
    let aligned = aligned(product.stored_a(), situation.addresses[0])
        && aligned(product.stored_b(), situation.addresses[1]);
    let filled = blocks::tiles(situation, 128, 128) >= u64::from(situation.machine.multiprocessors);
    if filled && aligned { 128 } else { 64 }
}

/// Dynamic shared memory: the steps of both operands, 16 bits an element.
fn shared_bytes(span: u32) -> u32 {
    STAGES * 2 * span * STEP * 2
}

/// None for other types.
pub(super) fn division(situation: &Situation<'_>) -> Option<Division> {
    let family = match situation.operand {
        DType::F16 => "gemm_mma_f16",
        DType::BF16 => "gemm_mma_bf16",
        _ => return None,
    };
    if situation.result != situation.operand && situation.result != DType::F32 {
        return None;
    }
    let span = span(situation);
    Some(Division {
        family,
        size: if span == 128 { "large" } else { "small" },
        tile: (span, span),
        threads: THREADS,
        shared: shared_bytes(span),
        together: TOGETHER,
        whole: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_fit_two_blocks() {
        // The result goes through the same place, half of it at a time.
        for span in [64, 128] {
            assert!(span / 2 * (span + 8) * 4 <= shared_bytes(span) && shared_bytes(span) <= 64 << 10);
        }
    }
}
