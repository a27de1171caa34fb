//! Products of few rows of A: each element of B is read from memory once, in the order of memory, and the speed is that of memory.
//!
//! B by rows: each row is added, times its factor, to the sums of the columns. B by columns: dot products, in lanes.
//!
//! Invariant: the bits of a row of C do not depend on the number of rows.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m256d, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_set1_pd,
    _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_storeu_pd, _mm256_storeu_ps,
};

use super::sum::{Part, PartMut};
use crate::gemm::Product;

/// The most rows of A.
const MAX_ROWS: usize = 8;
/// The least columns of B by rows, and the least depth of dot products.
const MIN_LENGTH: usize = 16;
/// Columns that are added for all rows of A while they are in the first cache.
#[cfg(target_arch = "x86_64")]
const COLUMNS: usize = 1024;
/// Elements of B that are worth a thread's start.
const ELEMENTS_OF_A_THREAD: usize = 1 << 17;
/// Elements of B in the work of one thread at a time.
const UNIT: usize = 1 << 16;

/// Returns whether the processor has the instructions of the loops here.
pub(super) fn has_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// The least columns of a tile of a batch-invariant product of more columns.
const MIN_INVARIANT_COLUMNS: usize = 1024;

/// Returns the tile of a batch-invariant product: its columns depend on those of the product alone, and its rows are those whose bits do not
/// depend on each other. Types that are widened take parts of k, which may be short.
pub(super) fn batch_invariant_tile(product: &Product, is_sum: bool) -> (usize, usize) {
    let (n, k) = (product.n(), product.k());
    let columns = n.div_ceil((n / MIN_INVARIANT_COLUMNS).max(1));
    let is_taken = is_sum && n >= MIN_LENGTH && k >= MIN_LENGTH && !product.operation_a().transposes();
    let rows = if has_instructions() && is_taken { MAX_ROWS } else { 1 };
    (rows, columns)
}

/// Returns the columns of a tile of a product of few rows, if B is stored by columns.
pub(super) fn columns_of_tile(product: &Product) -> Option<usize> {
    let is_few = product.m() <= MAX_ROWS && product.operation_b().transposes();
    let columns = (UNIT / product.k().max(1)).max(16).next_multiple_of(4);
    (is_few && product.k() >= MIN_LENGTH).then(|| columns.min(product.n()))
}

/// Returns the depth of the slices of k of a product of few rows, if B is stored by rows: a slice is contiguous.
pub(super) fn depth_of_slices(product: &Product) -> Option<usize> {
    let is_few = product.m() <= MAX_ROWS && product.count() == 1 && !product.operation_b().transposes();
    let slices = (product.k().saturating_mul(product.n()) / (2 * UNIT)).min(MAX_SLICES);
    (is_few && slices > 1 && product.n() <= MAX_COLUMNS)
        .then(|| product.k().div_ceil(slices).next_multiple_of(8))
}

/// Returns the number of threads that are worth their start, if B's memory is the work of a product: that of few rows and one matrix.
pub(super) fn threads(product: &Product) -> Option<usize> {
    let is_few = product.m() <= MAX_ROWS && product.count() == 1;
    is_few.then(|| product.k().saturating_mul(product.n()) / ELEMENTS_OF_A_THREAD)
}

/// The most slices of k, whose sums are added by one thread.
const MAX_SLICES: usize = 32;
/// The most columns of sums that stay in the second cache. More of them are cut into tiles.
const MAX_COLUMNS: usize = 1 << 14;

macro_rules! rows {
    ($($multiply:ident, $add_rows:ident, $add:ident, $dots:ident, $dot:ident, $float:ty, $vector:ty,
        $load:ident, $store:ident, $fma:ident, $set:ident, $zero:ident;)*) => {$(
        /// C = alpha · A · B + beta · C, if A has few rows, one axis of B is contiguous and the processor has the
        /// instructions. Returns whether it is done.
        ///
        /// # Safety
        ///
        /// As [`Sum::multiply`](super::sum::Sum::multiply).
        pub(super) unsafe fn $multiply(
            (m, n, k): (usize, usize, usize),
            alpha: $float,
            a: Part<$float>,
            b: Part<$float>,
            beta: $float,
            c: PartMut<$float>,
        ) -> bool {
            let is_by_rows = b.column == 1 && n >= MIN_LENGTH;
            let is_by_columns = b.row == 1 && a.column == 1 && k >= MIN_LENGTH;
            if m > MAX_ROWS || !(is_by_rows || is_by_columns) {
                return false;
            }
            #[cfg(target_arch = "x86_64")]
            if has_instructions() {
                let mut sums: Vec<$float> = vec![0.0; m * n];
                // SAFETY: the caller vouches for the matrices, and the processor has the instructions.
                unsafe {
                    match is_by_rows {
                        true => $add_rows((n, k), a, b, &mut sums),
                        false => $dots((n, k), a, b, &mut sums),
                    }
                }
                for (index, sums) in sums.chunks_exact(n).enumerate() {
                    // SAFETY: C has so many rows of n columns, which nobody else uses.
                    let row = unsafe { std::slice::from_raw_parts_mut(c.start.add(index * c.row), n) };
                    for (element, sum) in row.iter_mut().zip(sums) {
                        let product = alpha * sum;
                        *element = if beta == 0.0 { product } else { product + beta * *element };
                    }
                }
                return true;
            }
            let _ = (k, alpha, a, beta, c);
            false
        }

        /// Adds A · B to rows of n sums, with B by rows.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $add_rows((n, k): (usize, usize), a: Part<$float>, b: Part<$float>, sums: &mut [$float]) {
            // Rows of B that are added together, so that a sum is loaded and stored once for them.
            let group = if sums.len() == n { 8 } else { 4 };
            let mut first = 0;
            while first < k {
                let count = if k - first < group { 1 } else { group };
                for left in (0..n).step_by(COLUMNS) {
                    let width = COLUMNS.min(n - left);
                    for (pair, sums) in sums.chunks_mut(2 * n).enumerate() {
                        // SAFETY: the indices are rows and columns of A and B, as the caller guarantees.
                        unsafe {
                            let a = Part { start: a.start.add(2 * pair * a.row + first * a.column), ..a };
                            let b = Part { start: b.start.add(first * b.row + left), ..b };
                            let is_pair = sums.len() > n;
                            let start = sums.as_mut_ptr().add(left);
                            let rows = [start, start.add(sums.len() - n)];
                            match (is_pair, count) {
                                (false, 8) => $add::<1, 8>(width, a, b, [rows[0]]),
                                (false, 4) => $add::<1, 4>(width, a, b, [rows[0]]),
                                (false, _) => $add::<1, 1>(width, a, b, [rows[0]]),
                                (true, 4) => $add::<2, 4>(width, a, b, rows),
                                (true, _) => $add::<2, 1>(width, a, b, rows),
                            }
                        }
                    }
                }
                first += count;
            }
        }

        /// Adds N rows of B, times their factors, to M rows of sums: each sum in the order of the rows.
        ///
        /// # Safety
        ///
        /// All have so many columns, and A has as many elements.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $add<const M: usize, const N: usize>(
            width: usize,
            a: Part<$float>,
            b: Part<$float>,
            sums: [*mut $float; M],
        ) {
            const LANES: usize = size_of::<$vector>() / size_of::<$float>();
            // SAFETY: the caller guarantees it.
            unsafe {
                let factors: [[$float; N]; M] = std::array::from_fn(|i| {
                    std::array::from_fn(|index| *a.start.add(i * a.row + index * a.column))
                });
                let wide = factors.map(|row| row.map(|factor| $set(factor)));
                let rows: [*const $float; N] = std::array::from_fn(|index| b.start.add(index * b.row));
                let whole = width / LANES * LANES;
                for column in (0..whole).step_by(LANES) {
                    let mut added: [$vector; M] = std::array::from_fn(|i| $load(sums[i].add(column)));
                    for index in 0..N {
                        let of_b = $load(rows[index].add(column));
                        for i in 0..M {
                            added[i] = $fma(wide[i][index], of_b, added[i]);
                        }
                    }
                    for i in 0..M {
                        $store(sums[i].add(column), added[i]);
                    }
                }
                for column in whole..width {
                    for (sums, factors) in sums.iter().zip(&factors) {
                        let products = factors.iter().zip(&rows);
                        let sum = sums.add(column);
                        *sum = products.fold(*sum, |sum, (factor, row)| factor.mul_add(*row.add(column), sum));
                    }
                }
            }
        }

        /// Writes A · B to rows of n sums, with B by columns and A by rows.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $dots((n, k): (usize, usize), a: Part<$float>, b: Part<$float>, sums: &mut [$float]) {
            for left in (0..n).step_by(4) {
                let columns = 4.min(n - left);
                for (pair, sums) in sums.chunks_mut(2 * n).enumerate() {
                    // SAFETY: the indices are rows of A and columns of B, as the caller guarantees.
                    unsafe {
                        let a = Part { start: a.start.add(2 * pair * a.row), ..a };
                        let b = Part { start: b.start.add(left * b.column), ..b };
                        match (sums.len() > n, columns) {
                            (true, 4) => {
                                let [first, second] = $dot::<2, 4>(k, a, b);
                                sums[left..left + 4].copy_from_slice(&first);
                                sums[n + left..n + left + 4].copy_from_slice(&second);
                            }
                            (false, 4) => sums[left..left + 4].copy_from_slice(&$dot::<1, 4>(k, a, b)[0]),
                            _ => {
                                for (i, sums) in sums.chunks_exact_mut(n).enumerate() {
                                    let a = Part { start: a.start.add(i * a.row), ..a };
                                    for (j, sum) in sums[left..].iter_mut().enumerate() {
                                        let b = Part { start: b.start.add(j * b.column), ..b };
                                        *sum = $dot::<1, 1>(k, a, b)[0][0];
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }

        /// Returns the dot products of M rows of A and N columns of B. Each is added in lanes, whatever M and N are.
        ///
        /// # Safety
        ///
        /// The rows and columns have so many elements.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $dot<const M: usize, const N: usize>(
            depth: usize,
            a: Part<$float>,
            b: Part<$float>,
        ) -> [[$float; N]; M] {
            const LANES: usize = size_of::<$vector>() / size_of::<$float>();
            // SAFETY: the caller guarantees it.
            unsafe {
                let rows: [*const $float; M] = std::array::from_fn(|i| a.start.add(i * a.row));
                let columns: [*const $float; N] = std::array::from_fn(|j| b.start.add(j * b.column));
                let mut lanes = [[$zero(); N]; M];
                let whole = depth / LANES * LANES;
                for first in (0..whole).step_by(LANES) {
                    let of_a: [$vector; M] = std::array::from_fn(|i| $load(rows[i].add(first)));
                    for j in 0..N {
                        let of_b = $load(columns[j].add(first));
                        for i in 0..M {
                            lanes[i][j] = $fma(of_a[i], of_b, lanes[i][j]);
                        }
                    }
                }
                std::array::from_fn(|i| {
                    std::array::from_fn(|j| {
                        let mut stored: [$float; LANES] = [0.0; LANES];
                        $store(stored.as_mut_ptr(), lanes[i][j]);
                        let rest = (whole..depth)
                            .fold(0.0, |sum, at| (*rows[i].add(at)).mul_add(*columns[j].add(at), sum));
                        stored.iter().sum::<$float>() + rest
                    })
                })
            }
        }
    )*};
}

rows! {
    multiply_f32, add_rows_f32, add_f32, dots_f32, dot_f32, f32, __m256,
        _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_set1_ps, _mm256_setzero_ps;
    multiply_f64, add_rows_f64, add_f64, dots_f64, dot_f64, f64, __m256d,
        _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_set1_pd, _mm256_setzero_pd;
}
