//! [`GemmParameters`], the parameter of the kernels that give each tile of C to one block: `csrc/kernels/gemm_blocks.cuh`.

use super::element::SealedScalar;
use super::epilogue::{DeviceEpilogue, EpilogueParameters};
use super::problem::GemmProblem;

/// Alpha and beta as the kernels take them.
#[derive(Clone, Copy)]
pub(crate) struct Scalars {
    pub alpha: [u64; 2],
    pub beta: [u64; 2],
    /// The number 1.
    pub one: [u64; 2],
    /// True where alpha is not 0.
    pub reads_factors: bool,
    /// True where alpha is not 1.
    pub scales: bool,
    /// True where beta is not 0.
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

    /// Returns an alpha of 1 and a beta of 0 in the same type.
    pub fn neutral(&self) -> Scalars {
        let (alpha, one) = (self.one, self.one);
        Scalars { alpha, beta: [0; 2], one, reads_factors: true, scales: false, reads_c: false }
    }
}

/// Exactly the `GemmParameters` of gemm_blocks.cuh.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct GemmParameters {
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
    f32_output: i32,
    epilogue: EpilogueParameters,
}

impl GemmParameters {
    /// Returns the parameters for these vector widths of A, B and C, in elements. A vector is used where all rows begin at multiples
    /// of it; of A and B with `whole` only where rows end at multiples, too.
    pub fn new(
        problem: &GemmProblem<'_>,
        scalars: Scalars,
        epilogue: &DeviceEpilogue<'_>,
        vector_widths: [usize; 3],
        whole: bool,
    ) -> GemmParameters {
        let product = problem.product;
        let stored = [product.stored_a(), product.stored_b(), product.stored_c()];
        let (operand, result) = (problem.operand, problem.result);
        let sizes = [operand.size(), operand.size(), result.size()];
        let vector = std::array::from_fn(|which| {
            let bytes = vector_widths[which] * sizes[which];
            let aligned = problem.addresses[which].is_multiple_of(bytes as u64);
            let fits = match whole && which < 2 {
                true => stored[which].is_whole(bytes, sizes[which]),
                false => stored[which].keeps_alignment(bytes, sizes[which]),
            };
            i32::from(aligned && fits)
        });
        GemmParameters {
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
            f32_output: i32::from(operand != result),
            epilogue: epilogue.raw(),
        }
    }

    /// Returns the parameter of gemm_reduce.cu for `count` partials with `row` elements from a row to the next and `partial` elements
    /// from a partial to the next.
    pub fn of_partials(self, count: usize, row: usize, partial: usize) -> GemmParameters {
        let ([_, b_row, c_row], [_, b_matrix, c_matrix]) = (self.leading, self.matrix);
        GemmParameters {
            k: count as i32,
            leading: [row as i64, b_row, c_row],
            matrix: [partial as i64, b_matrix, c_matrix],
            ..self
        }
    }
}

/// Returns the number of tiles of this many rows and columns in the problem's product.
pub(super) fn tiles(problem: &GemmProblem<'_>, rows: u32, columns: u32) -> u64 {
    let product = problem.product;
    let tiles = (product.m() as u64)
        .div_ceil(rows.into())
        .saturating_mul((product.n() as u64).div_ceil(columns.into()));
    tiles.saturating_mul(product.count() as u64)
}

/// Returns the estimated time of the product in tiles of this many rows and columns. A multiprocessor takes `alone` for an element
/// where it has one tile at a time, and `beside` where it has several.
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
    fn the_parameters_are_the_kernels() {
        assert_eq!(size_of::<GemmParameters>(), 16 + 24 + 24 + 32 + 32 + 32);
        assert_eq!(std::mem::offset_of!(GemmParameters, alpha), 64);
        assert_eq!(std::mem::offset_of!(GemmParameters, conjugate), 96);
        assert_eq!(std::mem::offset_of!(GemmParameters, reads_c), 116);
        assert_eq!(std::mem::offset_of!(GemmParameters, epilogue), 128);
    }
}
