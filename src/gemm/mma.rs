//! Products on the tensor cores of compute capability 8.0 and up, and 7.5: `csrc/kernels/gemm_mma.cu`.

use super::blocks::{self, Scalars, Shape};
use super::engine::Lack;
use super::epilogue::{Epilogue, WithEpilogue};
use super::kernels::{self, Key, missing_image};
use super::plan::{Geometry, Situation};
use super::product::Stored;
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::types::{DType, Element};

const THREADS: u32 = 128;
/// k of a step, and steps on their way.
const STEP: u32 = 32;
const STAGES: u32 = 4;
/// Elements of A, B and C that are read or written together.
const TOGETHER: [usize; 3] = [8, 8, 4];

fn family(operand: DType) -> Option<&'static str> {
    match operand {
        DType::F16 => Some("gemm_mma_f16"),
        DType::BF16 => Some("gemm_mma_bf16"),
        _ => None,
    }
}

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

fn tiles(situation: &Situation<'_>) -> u64 {
    let span = span(situation);
    blocks::tiles(situation, span, span)
}

fn kernel_name(situation: &Situation<'_>) -> String {
    let size = if span(situation) == 128 { "large" } else { "small" };
    format!("gemm_mma_{}_{}_{size}", situation.operand, situation.product.layout())
}

/// What keeps it from running.
pub(super) fn lacks(situation: &Situation<'_>) -> Option<Lack> {
    let (operand, result) = (situation.operand, situation.result);
    let Some(family) = family(operand).filter(|_| result == operand || result == DType::F32) else {
        return Some(Lack::Types(operand, result));
    };
    if tiles(situation) > i32::MAX as u64 {
        return Some(Lack::TooMany("tiles"));
    }
    missing_image(situation.machine, family).map(Lack::Image)
}

/// What would run.
pub(super) fn geometry(situation: &Situation<'_>) -> Geometry {
    let tiles = tiles(situation);
    Geometry {
        family: family(situation.operand).unwrap_or(""),
        kernel: kernel_name(situation),
        tile: (span(situation), span(situation)),
        tiles,
        blocks: tiles.min(i32::MAX as u64) as u32,
        copied: Vec::new(),
        splits: 1,
        divided: 0,
    }
}

/// Dynamic shared memory: the steps of both operands, 16 bits an element.
fn shared_bytes(span: u32) -> u32 {
    STAGES * 2 * span * STEP * 2
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
    let (product, span) = (situation.product, span(situation));
    let (a_transposed, b_transposed) =
        (product.operation_a().transposes(), product.operation_b().transposes());
    let key: Key = (
        family(T::DTYPE).unwrap_or(""),
        u64::from(a_transposed) | u64::from(b_transposed) << 1 | u64::from(span) << 2,
    );
    let function = kernels::function(&stream.device(), key, || kernel_name(situation))?;
    let shape = Shape::new::<T, C>(situation, scalars, epilogue, TOGETHER, false);
    let config = LaunchConfig::new(tiles(situation) as u32, THREADS).shared(shared_bytes(span));
    // SAFETY: the kernel takes three addresses and this Shape, and stays inside the matrices that it describes, which lie
    // inside the buffers, and the epilogue's buffers, which were checked.
    unsafe { function.launch(stream, config, (a, b, c, WithEpilogue { shape, epilogue })) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Choice, Engine, Machine, Plan, Product};

    #[test]
    fn tensor_cores_of_every_age_are_used() {
        let plan = |size, dtype, capability| {
            let product = Product::new(size, size, size);
            Plan::explain(&product, dtype, dtype, Machine::typical(capability)).unwrap()
        };
        assert_eq!(plan(4096, DType::BF16, (8, 0)).kernel(), "gemm_mma_bf16_nn_large");
        assert_eq!(plan(1024, DType::F16, (10, 0)).kernel(), "gemm_mma_f16_nn_small");
        assert_eq!(plan(4096, DType::F16, (7, 5)).kernel(), "gemm_mma_f16_nn_large");
        assert_eq!(plan(4097, DType::F16, (7, 5)).kernel(), "gemm_mma_f16_nn_small");
        // Rows that begin at multiples of 16 bytes and end elsewhere: small tiles take the ends by themselves.
        let padded = Product::new(4096, 4097, 4096).leading(4096, 4104, 4104);
        let found = Plan::explain(&padded, DType::F16, DType::F16, Machine::typical((8, 0))).unwrap();
        assert_eq!(found.kernel(), "gemm_mma_f16_nn_small");
        // Those of 7.5 multiply f16 alone.
        assert_eq!(plan(1024, DType::BF16, (7, 5)).engine(), Engine::Simt);
        assert_eq!(plan(1024, DType::F16, (7, 0)).engine(), Engine::Simt);
        let product = Product::new(64, 64, 64).by(Choice::Only(Engine::Mma));
        let error = Plan::explain(&product, DType::F32, DType::F32, Machine::typical((9, 0))).unwrap_err();
        assert!(error.to_string().contains("mma: it does not multiply f32 into f32"), "{error}");
    }

    #[test]
    fn the_steps_fit_two_blocks() {
        // The result goes through the same place, half of it at a time.
        for span in [64, 128] {
            assert!(span / 2 * (span + 8) * 4 <= shared_bytes(span) && shared_bytes(span) <= 64 << 10);
        }
    }
}
