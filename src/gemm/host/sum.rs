//! Blocks of products in the types that are added in: floats by the kernels of the crate `gemm`, integers by a loop.

use num_complex::Complex;

use super::super::activation::{Activation, ActivationElement};
use super::row;

/// A matrix inside of memory: where its first element is, and how far its rows and columns are apart.
#[derive(Clone, Copy)]
pub struct Part<S> {
    pub start: *const S,
    pub row: usize,
    pub column: usize,
    pub conjugate: bool,
}

/// The matrix that is written.
#[derive(Clone, Copy)]
pub struct PartMut<S> {
    pub start: *mut S,
    pub row: usize,
}

/// Applies an activation to each number of a row.
pub type Activate<S> = fn(Activation, &mut [S]);

/// A number that products are added in.
pub trait Sum: bytemuck::Pod + PartialEq + Send + Sync {
    const ZERO: Self;
    const ONE: Self;

    /// The activations of numbers that have them.
    const ACTIVATE: Option<Activate<Self>>;

    fn plus(self, other: Self) -> Self;

    /// alpha · self + beta · old, the latter where there is one.
    fn finished(self, alpha: Self, beta: Self, old: Option<Self>) -> Self;

    /// C = alpha · A · B + beta · C, of m x n and depth k, all at least 1; C is not read where beta is 0.
    ///
    /// # Safety
    ///
    /// The matrices lie in memory that may be read, C in memory that may be written and that nobody else uses.
    unsafe fn multiply(
        sizes: (usize, usize, usize),
        alpha: Self,
        a: Part<Self>,
        b: Part<Self>,
        beta: Self,
        c: PartMut<Self>,
    );
}

macro_rules! floats {
    ($($float:ty, $zero:expr, $one:expr, $activate:expr $(, $one_row:path)?;)*) => {$(
        impl Sum for $float {
            const ZERO: $float = $zero;
            const ONE: $float = $one;
            const ACTIVATE: Option<Activate<$float>> = $activate;

            #[inline(always)]
            fn plus(self, other: $float) -> $float {
                self + other
            }

            #[inline(always)]
            fn finished(self, alpha: $float, beta: $float, old: Option<$float>) -> $float {
                let product = if alpha == $one { self } else { alpha * self };
                old.map_or(product, |old| product + beta * old)
            }

            unsafe fn multiply(
                (m, n, k): (usize, usize, usize),
                alpha: $float,
                a: Part<$float>,
                b: Part<$float>,
                beta: $float,
                c: PartMut<$float>,
            ) {
                $(
                    // SAFETY: the caller guarantees it.
                    if unsafe { $one_row((m, n, k), alpha, a, b, beta, c) } {
                        return;
                    }
                )?
                // SAFETY: the caller vouches for the matrices; distances inside of memory fit `isize`. The crate names the
                // factors of C and of the product alpha and beta.
                unsafe {
                    gemm_kernels::gemm(
                        m,
                        n,
                        k,
                        c.start,
                        1,
                        c.row as isize,
                        beta != $zero,
                        a.start,
                        a.column as isize,
                        a.row as isize,
                        b.start,
                        b.column as isize,
                        b.row as isize,
                        beta,
                        alpha,
                        false,
                        a.conjugate,
                        b.conjugate,
                        // The caller divides the work among threads, and the division changes no bits.
                        gemm_kernels::Parallelism::None,
                    );
                }
            }
        }
    )*};
}

floats! {
    f32, 0.0, 1.0, Some(<f32 as ActivationElement>::activate), row::multiply_f32;
    f64, 0.0, 1.0, Some(<f64 as ActivationElement>::activate), row::multiply_f64;
    Complex<f32>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), None;
    Complex<f64>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), None;
}

/// Rows of B that are taken together: with a row of C of 512 they stay in the second cache.
const DEPTH: usize = 128;

macro_rules! integers {
    ($($integer:ty, $rows:ident, $rows_in_vectors:ident;)*) => {$(
        impl Sum for $integer {
            const ZERO: $integer = 0;
            const ONE: $integer = 1;
            const ACTIVATE: Option<Activate<$integer>> = None;

            #[inline(always)]
            fn plus(self, other: $integer) -> $integer {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn finished(self, alpha: $integer, beta: $integer, old: Option<$integer>) -> $integer {
                let product = alpha.wrapping_mul(self);
                old.map_or(product, |old| product.wrapping_add(beta.wrapping_mul(old)))
            }

            unsafe fn multiply(
                (m, n, k): (usize, usize, usize),
                alpha: $integer,
                a: Part<$integer>,
                b: Part<$integer>,
                beta: $integer,
                c: PartMut<$integer>,
            ) {
                let mut panel: Vec<$integer> = vec![0; DEPTH.min(k) * n];
                let mut factors = [0; DEPTH];
                let mut sums: Vec<$integer> = vec![0; n];
                for first in (0..k).step_by(DEPTH) {
                    let depth = DEPTH.min(k - first);
                    for (p, row) in panel.chunks_exact_mut(n).take(depth).enumerate() {
                        for (j, slot) in row.iter_mut().enumerate() {
                            // SAFETY: row `first + p` and column `j` are inside of B.
                            *slot = unsafe { *b.start.add((first + p) * b.row + j * b.column) };
                        }
                    }
                    // The first part of the depth writes C; later parts add to it.
                    let beta = if first == 0 { beta } else { 1 };
                    for i in 0..m {
                        for (p, factor) in factors.iter_mut().take(depth).enumerate() {
                            // SAFETY: row `i` and column `first + p` are inside of A.
                            *factor = unsafe { *a.start.add(i * a.row + (first + p) * a.column) };
                        }
                        sums.fill(0);
                        $rows(&factors[..depth], &panel, &mut sums);
                        for (j, sum) in sums.iter().enumerate() {
                            // SAFETY: row `i` and column `j` are inside of C, which nobody else uses.
                            unsafe {
                                let element = c.start.add(i * c.row + j);
                                let old = if beta == 0 { None } else { Some(*element) };
                                *element = sum.finished(alpha, beta, old);
                            }
                        }
                    }
                }
            }
        }

        /// Adds each row of the panel, times its factor, to the sums.
        fn $rows(factors: &[$integer], panel: &[$integer], sums: &mut [$integer]) {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has these instructions.
                unsafe { $rows_in_vectors(factors, panel, sums) };
                return;
            }
            add_rows(factors, panel, sums, |sum, factor, x| sum.wrapping_add(factor.wrapping_mul(x)));
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn $rows_in_vectors(factors: &[$integer], panel: &[$integer], sums: &mut [$integer]) {
            add_rows(factors, panel, sums, |sum, factor, x| sum.wrapping_add(factor.wrapping_mul(x)));
        }
    )*};
}

integers! {
    u32, rows_u32, rows_u32_in_vectors;
    u64, rows_u64, rows_u64_in_vectors;
}

/// Four rows at a time, so that a sum is loaded and stored once for them.
#[inline(always)]
fn add_rows<S: Copy>(factors: &[S], panel: &[S], sums: &mut [S], add: impl Fn(S, S, S) -> S) {
    let width = sums.len();
    let quads = factors.chunks_exact(4).zip(panel.chunks_exact(4 * width));
    for (factors, rows) in quads {
        let (first, rest) = rows.split_at(width);
        let (second, rest) = rest.split_at(width);
        let (third, fourth) = rest.split_at(width);
        let columns = first.iter().zip(second).zip(third.iter().zip(fourth));
        for (sum, ((&x, &y), (&z, &w))) in sums.iter_mut().zip(columns) {
            *sum = add(add(add(add(*sum, factors[0], x), factors[1], y), factors[2], z), factors[3], w);
        }
    }
    let done = factors.len() / 4 * 4;
    for (&factor, row) in factors[done..].iter().zip(panel[done * width..].chunks_exact(width)) {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum = add(*sum, factor, x);
        }
    }
}
