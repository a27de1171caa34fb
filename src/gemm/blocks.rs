//! The parameter of the kernels that give each tile of C to a block of its own: `csrc/kernels/gemm_blocks.cuh`.

use super::element::SealedScalar;
use super::epilogue::{DeviceParts, Raw};
use super::problem::GemmProblem;

/// Alpha and beta as the kernels take them.
#[derive(Clone, Copy)]
pub(crate) struct Scalars {
    pub alpha: [u64; 2],
    pub beta: [u64; 2],
    /// The number 1.
    pub one: [u64; 2],
    /// Whether alpha is another number than 0.
    pub reads_factors: bool,
    /// Whether alpha is another number than 1.
    pub scales: bool,
    /// Whether beta is another number than 0.
    pub reads_c: bool,
}

impl Scalars {
    pub fn new<S: SealedScalar>(alpha: S, beta: S) -> Scalars {
        Scalars {
            alpha: alpha.sum(),
            beta: beta.sum(),
            one: S::ONE.sum(),
            reads_factors: alpha != S::ZERO,
            scales: alpha != S::ONE,
            reads_c: beta != S::ZERO,
        }
    }
}

/// Exactly the `Shape` of gemm_blocks.cuh.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Shape {
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
    wide: i32,
    epilogue: Raw,
}

impl Shape {
    /// With so many elements of A, B and C that are read or written together where all rows begin at multiples of them;
    /// `whole`: of A and B where rows end at multiples, too.
    pub fn new(
        problem: &GemmProblem<'_>,
        scalars: Scalars,
        epilogue: &DeviceParts<'_>,
        together: [usize; 3],
        whole: bool,
    ) -> Shape {
        let product = problem.product;
        let stored = [product.stored_a(), product.stored_b(), product.stored_c()];
        let (operand, result) = (problem.operand, problem.result);
        let sizes = [operand.size(), operand.size(), result.size()];
        let vector = std::array::from_fn(|which| {
            let bytes = together[which] * sizes[which];
            let aligned = problem.addresses[which].is_multiple_of(bytes as u64);
            let fits = match whole && which < 2 {
                true => stored[which].is_whole(bytes, sizes[which]),
                false => stored[which].keeps_alignment(bytes, sizes[which]),
            };
            i32::from(aligned && fits)
        });
        Shape {
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
            vector,
            reads_c: scalars.reads_c.into(),
            scales: scalars.scales.into(),
            wide: i32::from(operand != result),
            epilogue: epilogue.raw(),
        }
    }
}

/// Tiles of so many rows and columns that the problem's product has.
pub(super) fn tiles(problem: &GemmProblem<'_>, rows: u32, columns: u32) -> u64 {
    let product = problem.product;
    let tiles = (product.m() as u64)
        .div_ceil(rows.into())
        .saturating_mul((product.n() as u64).div_ceil(columns.into()));
    tiles.saturating_mul(product.count() as u64)
}

/// How long the product takes in tiles of so many rows and columns, of which a multiprocessor makes each number in the
/// first time where it has one tile at a time, and in the second one where it has several.
pub(super) fn time(
    problem: &GemmProblem<'_>,
    (rows, columns): (u32, u32),
    (alone, beside): (u64, u64),
) -> u64 {
    let each = tiles(problem, rows, columns).div_ceil(problem.properties.multiprocessors.into());
    let rate = if each == 1 { alone } else { beside };
    each.saturating_mul(u64::from(rows * columns) * rate)
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
