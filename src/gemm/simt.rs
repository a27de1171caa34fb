//! Products by ordinary arithmetic: `csrc/kernels/gemm_simt.cu`.

use super::element::of_dtype;
use super::engine::Lack;
use super::epilogue::{Epilogue, Raw, WithEpilogue};
use super::kernels::{self, Key, missing_image};
use super::plan::{Geometry, Situation};
use crate::driver::{DeviceSlice, DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::types::{DType, Element};

const THREADS: u32 = 256;

/// The kernels' parameter: exactly the `Shape` of gemm_simt.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
    m: i32,
    n: i32,
    k: i32,
    padding: i32,
    leading: [i64; 3],
    matrix: [i64; 3],
    alpha: [u64; 2],
    beta: [u64; 2],
    conjugate: [i32; 2],
    vector: [i32; 3],
    reads_c: i32,
    scales: i32,
    more_padding: i32,
    epilogue: Raw,
}

/// Alpha and beta as the kernels take them.
#[derive(Clone, Copy)]
pub(super) struct Scalars {
    pub alpha: [u64; 2],
    pub beta: [u64; 2],
    /// Whether alpha is another number than 1.
    pub scales: bool,
    /// Whether beta is another number than 0.
    pub reads_c: bool,
}

fn family(dtype: DType) -> Option<(&'static str, usize)> {
    of_dtype(dtype)
}

/// Rows, and columns, of a tile.
fn span(sum_bytes: usize) -> u64 {
    if sum_bytes <= 4 { 128 } else { 64 }
}

/// Elements that a load takes together.
fn vector(sum_bytes: usize) -> usize {
    if sum_bytes <= 4 { 4 } else { 16 / sum_bytes }
}

/// Of C, elements that a store takes together.
fn run(sum_bytes: usize) -> usize {
    16 / sum_bytes
}

fn tiles(situation: &Situation<'_>, sum_bytes: usize) -> u64 {
    let (product, span) = (situation.product, span(sum_bytes));
    let tiles = (product.m() as u64).div_ceil(span) * (product.n() as u64).div_ceil(span);
    tiles.saturating_mul(product.count() as u64)
}

/// What keeps it from running.
pub(super) fn lacks(situation: &Situation<'_>) -> Option<Lack> {
    let (operand, result) = (situation.operand, situation.result);
    let wide = matches!(operand, DType::F16 | DType::BF16) && result == DType::F32;
    let Some((family, sum_bytes)) = family(operand).filter(|_| wide || operand == result) else {
        return Some(Lack::Types(operand, result));
    };
    if tiles(situation, sum_bytes) > i32::MAX as u64 {
        return Some(Lack::TooMany("tiles"));
    }
    missing_image(situation.machine, family).map(Lack::Image)
}

fn kernel_name(situation: &Situation<'_>, family: &str) -> String {
    let wide = if situation.operand == situation.result { "" } else { "_f32" };
    format!("{family}{wide}_{}", situation.product.layout())
}

/// What would run.
pub(super) fn geometry(situation: &Situation<'_>) -> Geometry {
    let (family, sum_bytes) = family(situation.operand).unwrap_or(("", 16));
    Geometry {
        family,
        kernel: kernel_name(situation, family),
        tile: (span(sum_bytes) as u32, span(sum_bytes) as u32),
        tiles: tiles(situation, sum_bytes),
        blocks: tiles(situation, sum_bytes).min(i32::MAX as u64) as u32,
        copied: Vec::new(),
        splits: 1,
    }
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
    let (family, sum_bytes) = family(T::DTYPE).unwrap_or(("", 16));
    let wide = T::DTYPE != C::DTYPE;
    let (a_transposed, b_transposed) =
        (product.operation_a().transposes(), product.operation_b().transposes());
    let key: Key = (family, u64::from(wide) | u64::from(a_transposed) << 1 | u64::from(b_transposed) << 2);
    let function = kernels::function(&stream.device(), key, || kernel_name(situation, family))?;

    let stored = [product.stored_a(), product.stored_b(), product.stored_c()];
    let together = [vector(sum_bytes), vector(sum_bytes), run(sum_bytes)];
    let sizes = [size_of::<T>(), size_of::<T>(), size_of::<C>()];
    let vectors = std::array::from_fn(|which| {
        let bytes = together[which] * sizes[which];
        let aligned = situation.addresses[which] % bytes as u64 == 0;
        i32::from(aligned && stored[which].keeps_alignment(bytes, sizes[which]))
    });
    let shape = Shape {
        m: product.m() as i32,
        n: product.n() as i32,
        k: product.k() as i32,
        padding: 0,
        leading: stored.map(|stored| stored.leading as i64),
        matrix: stored.map(|stored| stored.stride as i64),
        alpha: scalars.alpha,
        beta: scalars.beta,
        conjugate: [product.operation_a(), product.operation_b()]
            .map(|operation| operation.conjugates().into()),
        vector: vectors,
        reads_c: scalars.reads_c.into(),
        scales: scalars.scales.into(),
        more_padding: 0,
        epilogue: epilogue.raw(),
    };
    let config = LaunchConfig::new(tiles(situation, sum_bytes) as u32, THREADS);
    // SAFETY: the kernel takes three addresses and this Shape, and stays inside the matrices that it describes, which lie
    // inside the buffers, and the epilogue's buffers, which were checked.
    unsafe { function.launch(stream, config, (a, b, c, WithEpilogue { shape, epilogue })) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 16 + 24 + 24 + 32 + 32 + 32);
        assert_eq!(std::mem::offset_of!(Shape, alpha), 64);
        assert_eq!(std::mem::offset_of!(Shape, conjugate), 96);
        assert_eq!(std::mem::offset_of!(Shape, reads_c), 116);
        assert_eq!(std::mem::offset_of!(Shape, epilogue), 128);
    }
}
