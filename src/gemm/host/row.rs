//! Products of one row of A with rows of B: each row of B is read once, in the order of memory.

use super::sum::{Part, PartMut};

/// The least columns of B.
const MIN_COLUMNS: usize = 16;
/// Rows of B that are added together, so that a sum is loaded and stored once for them.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 8;

macro_rules! rows {
    ($($multiply:ident, $add:ident, $float:ty;)*) => {$(
        /// C = alpha · A · B + beta · C, if A has one row, the rows of B are contiguous and the processor has the
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
            if m != 1 || b.column != 1 || n < MIN_COLUMNS {
                return false;
            }
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                let mut sums: Vec<$float> = vec![0.0; n];
                // SAFETY: the indices are columns of A and rows of B, as the caller guarantees, and the processor has the
                // instructions.
                unsafe {
                    let factor = |index: usize| *a.start.add(index * a.column);
                    let row = |index: usize| std::slice::from_raw_parts(b.start.add(index * b.row), n);
                    let whole = k / ROWS * ROWS;
                    for first in (0..whole).step_by(ROWS) {
                        let factors = std::array::from_fn::<_, ROWS, _>(|index| factor(first + index));
                        $add(factors, std::array::from_fn(|index| row(first + index)), &mut sums);
                    }
                    for index in whole..k {
                        $add([factor(index)], [row(index)], &mut sums);
                    }
                }
                // SAFETY: C has n columns, which nobody else uses.
                let row = unsafe { std::slice::from_raw_parts_mut(c.start, n) };
                for (place, sum) in row.iter_mut().zip(sums) {
                    let product = alpha * sum;
                    *place = if beta == 0.0 { product } else { product + beta * *place };
                }
                return true;
            }
            let _ = (k, alpha, a, beta, c);
            false
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
    )*};
}

rows! {
    multiply_f32, add_f32, f32;
    multiply_f64, add_f64, f64;
}
