//! Products of few rows of A: each element of B is read from memory once, in the order of memory, and the speed is that of memory.
//!
//! B by rows: each row is added, times its factor, to the sums of the columns. B by columns: dot products, in lanes.
//!
//! Invariant: the bits of a row of C do not depend on the number of rows.

use super::sum::{Part, PartMut};
use crate::gemm::Product;

/// The most rows of A.
const MAX_ROWS: usize = 8;
/// The least columns of B by rows, and the least depth of dot products.
const MIN_LENGTH: usize = 16;
/// Rows of B that are added together, so that a sum is loaded and stored once for them.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 8;
/// Columns that are added for all rows of A while they are in the first cache.
#[cfg(target_arch = "x86_64")]
const COLUMNS: usize = 1024;
/// Elements of B that are worth a thread's start.
const ELEMENTS_OF_A_THREAD: usize = 1 << 17;
/// Elements of B in the work of one thread at a time.
const UNIT: usize = 1 << 16;

/// Returns the columns of a tile of a product of few rows, if B is stored by columns.
pub(super) fn columns_of_tile(product: &Product) -> Option<usize> {
    let is_few = product.m() <= MAX_ROWS && product.operation_b().transposes();
    let columns = (UNIT / product.k().max(1)).max(16).next_multiple_of(4);
    (is_few && product.k() >= MIN_LENGTH).then(|| columns.min(product.n()))
}

/// Returns the depth of the slices of k of a product of few rows, if B is stored by rows: a slice is contiguous.
pub(super) fn depth_of_slices(product: &Product) -> Option<usize> {
    let is_few = product.m() <= MAX_ROWS && !product.operation_b().transposes();
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
    ($($multiply:ident, $add_rows:ident, $add:ident, $dots:ident, $dot:ident, $float:ty, $lanes:literal;)*) => {$(
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
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                let mut sums: Vec<$float> = vec![0.0; m * n];
                // SAFETY: the caller vouches for the matrices, and the processor has the instructions.
                unsafe {
                    match is_by_rows {
                        true => $add_rows((n, k), a, b, &mut sums),
                        false => $dots((m, n, k), a, b, &mut sums),
                    }
                }
                for (index, sums) in sums.chunks_exact(n).enumerate() {
                    // SAFETY: C has so many rows of n columns, which nobody else uses.
                    let row = unsafe { std::slice::from_raw_parts_mut(c.start.add(index * c.row), n) };
                    for (place, sum) in row.iter_mut().zip(sums) {
                        let product = alpha * sum;
                        *place = if beta == 0.0 { product } else { product + beta * *place };
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
            let whole = k / ROWS * ROWS;
            for first in (0..whole).step_by(ROWS).chain(whole..k) {
                for left in (0..n).step_by(COLUMNS) {
                    let width = COLUMNS.min(n - left);
                    for (i, sums) in sums.chunks_exact_mut(n).enumerate() {
                        let sums = &mut sums[left..left + width];
                        // SAFETY: the indices are rows and columns of A and B, as the caller guarantees.
                        unsafe {
                            let factor = |index: usize| *a.start.add(i * a.row + index * a.column);
                            let row = |index: usize| {
                                std::slice::from_raw_parts(b.start.add(index * b.row + left), width)
                            };
                            if first < whole {
                                let factors = std::array::from_fn::<_, ROWS, _>(|index| factor(first + index));
                                $add(factors, std::array::from_fn(|index| row(first + index)), sums);
                            } else {
                                $add([factor(first)], [row(first)], sums);
                            }
                        }
                    }
                }
            }
        }

        /// Adds each row, times its factor, to the sums.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $add<const N: usize>(factors: [$float; N], rows: [&[$float]; N], sums: &mut [$float]) {
            let rows = rows.map(|row| &row[..sums.len()]);
            for (column, sum) in sums.iter_mut().enumerate() {
                let mut added = *sum;
                for (factor, row) in factors.iter().zip(rows) {
                    added = factor.mul_add(row[column], added);
                }
                *sum = added;
            }
        }

        /// Writes A · B to rows of n sums, with B by columns and A by rows.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $dots(
            (m, n, k): (usize, usize, usize),
            a: Part<$float>,
            b: Part<$float>,
            sums: &mut [$float],
        ) {
            for left in (0..n).step_by(4) {
                let columns = 4.min(n - left);
                for top in (0..m).step_by(2) {
                    let rows = 2.min(m - top);
                    // SAFETY: the indices are rows of A and columns of B, as the caller guarantees.
                    unsafe {
                        let of_a =
                            |i: usize| std::slice::from_raw_parts(a.start.add((top + i) * a.row), k);
                        let of_b =
                            |j: usize| std::slice::from_raw_parts(b.start.add((left + j) * b.column), k);
                        let mut write = |i: usize, j: usize, sum| sums[(top + i) * n + left + j] = sum;
                        match (rows, columns) {
                            (2, 4) => {
                                let found = $dot([of_a(0), of_a(1)], [of_b(0), of_b(1), of_b(2), of_b(3)]);
                                found.iter().enumerate().for_each(|(i, row)| {
                                    row.iter().enumerate().for_each(|(j, sum)| write(i, j, *sum));
                                });
                            }
                            (1, 4) => {
                                let [row] = $dot([of_a(0)], [of_b(0), of_b(1), of_b(2), of_b(3)]);
                                row.iter().enumerate().for_each(|(j, sum)| write(0, j, *sum));
                            }
                            _ => {
                                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                                    let [[sum]] = $dot([of_a(i)], [of_b(j)]);
                                    write(i, j, sum);
                                }
                            }
                        }
                    }
                }
            }
        }

        /// Returns the dot products of rows of A and columns of B. Each is added in lanes, whatever the numbers of both are.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $dot<const M: usize, const N: usize>(
            a: [&[$float]; M],
            b: [&[$float]; N],
        ) -> [[$float; N]; M] {
            const LANES: usize = $lanes;
            let mut lanes = [[[0.0; LANES]; N]; M];
            let depth = a[0].len();
            let (a, b) = (a.map(|row| &row[..depth]), b.map(|column| &column[..depth]));
            let whole = depth / LANES * LANES;
            for first in (0..whole).step_by(LANES) {
                for (lanes, a) in lanes.iter_mut().zip(a) {
                    let a = &a[first..first + LANES];
                    for (lanes, b) in lanes.iter_mut().zip(b) {
                        let b = &b[first..first + LANES];
                        for lane in 0..LANES {
                            lanes[lane] = a[lane].mul_add(b[lane], lanes[lane]);
                        }
                    }
                }
            }
            let mut sums = [[0.0; N]; M];
            for (i, lanes) in lanes.iter().enumerate() {
                for (j, lanes) in lanes.iter().enumerate() {
                    let mut sum = 0.0;
                    for index in whole..depth {
                        sum = a[i][index].mul_add(b[j][index], sum);
                    }
                    sums[i][j] = lanes.iter().sum::<$float>() + sum;
                }
            }
            sums
        }
    )*};
}

rows! {
    multiply_f32, add_rows_f32, add_f32, dots_f32, dot_f32, f32, 8;
    multiply_f64, add_rows_f64, add_f64, dots_f64, dot_f64, f64, 4;
}
