//! [`Real`], the numbers that scores and sums are computed in, and functions of rows of them.
//!
//! Rows are computed in vectors of the processor's widest instructions. Sums of a row have a fixed number of partial sums, so that the
//! order of additions is the same for every width.

use std::sync::OnceLock;

/// A matrix that is read: its first element, and the distances between rows and between columns.
#[derive(Clone, Copy)]
pub struct Matrix<R> {
    pub start: *const R,
    pub row: isize,
    pub column: isize,
}

impl<R> Matrix<R> {
    /// Returns the transposed matrix.
    pub fn transposed(self) -> Matrix<R> {
        Matrix { start: self.start, row: self.column, column: self.row }
    }

    /// Returns the matrix of contiguous rows of a slice.
    pub fn of_rows(slice: &[R], width: usize) -> Matrix<R> {
        Matrix { start: slice.as_ptr(), row: width as isize, column: 1 }
    }
}

/// f32 or f64.
pub trait Real: bytemuck::Pod + PartialOrd + Send + Sync {
    const ZERO: Self;
    const ONE: Self;
    const NEG_INFINITY: Self;

    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn tanh(self) -> Self;

    /// Returns the largest number of a row, by comparisons: NaN counts as less than a number. -∞ for an empty one.
    fn largest(row: &[Self]) -> Self;

    /// Replaces each x of a row by 2^(x log2(e) - `shift`) and returns their sum. Powers below the least normal number are 0.
    fn exponentials(row: &mut [Self], shift: Self) -> Self;

    /// Returns 2^x.
    fn power_of_two(x: Self) -> Self;

    /// Multiplies a row by a number.
    fn scale(row: &mut [Self], factor: Self);

    /// Returns the sum of the products of two rows' elements.
    fn dot(a: &[Self], b: &[Self]) -> Self;

    /// Replaces each gradient d of a probability p by p (d - `delta`).
    fn gradients_of_scores(gradients: &mut [Self], probabilities: &[Self], delta: Self);

    /// C = alpha A B of m x n and depth k, plus C where `adds`; all sizes are at least 1. The rows of C are `width` elements apart.
    ///
    /// # Safety
    ///
    /// A and B lie in memory that may be read, and C has m rows of n elements.
    unsafe fn multiply(
        sizes: [usize; 3],
        alpha: Self,
        a: Matrix<Self>,
        b: Matrix<Self>,
        adds: bool,
        c: &mut [Self],
        width: usize,
    );
}

/// C = alpha A B of m x n and depth k in contiguous rows of n, plus C where `adds`. Sizes may be 0.
///
/// # Safety
///
/// A and B lie in memory that may be read.
pub unsafe fn product<R: Real>(
    [m, n, k]: [usize; 3],
    alpha: R,
    a: Matrix<R>,
    b: Matrix<R>,
    adds: bool,
    c: &mut [R],
) {
    if m == 0 || n == 0 {
        return;
    }
    if k > 0 {
        // SAFETY: the caller guarantees it, and `c` is checked there.
        unsafe { R::multiply([m, n, k], alpha, a, b, adds, c, n) };
    } else if !adds {
        c[..m * n].fill(R::ZERO);
    }
}

/// Partial sums of a row.
const LANES: usize = 16;

/// The instructions that functions of rows are compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vectors {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Any,
}

/// Returns the widest vectors of the processor.
fn vectors() -> Vectors {
    static FOUND: OnceLock<Vectors> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("fma") {
            if is_x86_feature_detected!("avx512f") {
                return Vectors::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Vectors::Avx2;
            }
        }
        Vectors::Any
    })
}

/// Defines functions that run as the version of themselves for the processor's vectors. `FUSES` is true where a product and a sum are one
/// instruction.
macro_rules! in_vectors {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:ident;)*) => {$(
        #[inline]
        fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,fma")]
            fn in_512($($argument: $type),*) $(-> $result)? {
                $body::<true>($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn in_256($($argument: $type),*) $(-> $result)? {
                $body::<true>($($argument),*)
            }
            match vectors() {
                // SAFETY: the processor has these instructions.
                #[cfg(target_arch = "x86_64")]
                Vectors::Avx512 => unsafe { in_512($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Vectors::Avx2 => unsafe { in_256($($argument),*) },
                Vectors::Any => $body::<false>($($argument),*),
            }
        }
    )*};
}

/// Returns ln(2)^k / k!, the coefficients of 2^x.
const fn coefficients<const COUNT: usize>() -> [f64; COUNT] {
    let mut found = [1.0; COUNT];
    let mut k = 1;
    while k < COUNT {
        found[k] = found[k - 1] * std::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    found
}

macro_rules! reals {
    ($($module:ident: $real:ident, $terms:literal, $fraction:literal, $bias:literal;)*) => {$(
        mod $module {
            use super::{LANES, Vectors, coefficients, vectors};

            /// 1.5 · 2^(bits of the fraction): the sum with a number is the number rounded to a whole one.
            const ROUNDER: $real = 1.5 * (1u64 << $fraction) as $real;
            const COEFFICIENTS: [$real; $terms] = {
                let (wide, mut narrow) = (coefficients::<$terms>(), [0.0; $terms]);
                let mut k = 0;
                while k < $terms {
                    narrow[k] = wide[k] as $real;
                    k += 1;
                }
                narrow
            };
            const LOG2_E: $real = std::f64::consts::LOG2_E as $real;

            #[inline(always)]
            fn fused<const FUSES: bool>(a: $real, b: $real, c: $real) -> $real {
                if FUSES { a.mul_add(b, c) } else { a * b + c }
            }

            /// 2^x as a power of a whole number times the series of the rest, which is at most 1/2.
            #[inline(always)]
            fn power<const FUSES: bool>(x: $real) -> $real {
                const MIN_EXPONENT: $real = 1.0 - $bias as $real;
                // Comparisons that NaN fails, so that it stays.
                let limited = if x < MIN_EXPONENT { MIN_EXPONENT } else { x };
                let shifted = limited + ROUNDER;
                let whole = shifted - ROUNDER;
                let rest = limited - whole;
                let mut series = COEFFICIENTS[$terms - 1];
                let mut k = $terms - 1;
                while k > 0 {
                    k -= 1;
                    series = fused::<FUSES>(series, rest, COEFFICIENTS[k]);
                }
                let exponent = (shifted.to_bits().wrapping_sub(ROUNDER.to_bits())).wrapping_add($bias);
                let found = series * $real::from_bits(exponent << $fraction);
                if x < MIN_EXPONENT { 0.0 } else { found }
            }

            #[inline(always)]
            fn largest_in<const FUSES: bool>(row: &[$real]) -> $real {
                let greater = |a: $real, b: $real| if b > a { b } else { a };
                let (chunks, rest) = row.as_chunks::<LANES>();
                let mut found = [$real::NEG_INFINITY; LANES];
                for chunk in chunks {
                    for lane in 0..LANES {
                        found[lane] = greater(found[lane], chunk[lane]);
                    }
                }
                let found = found.into_iter().fold($real::NEG_INFINITY, greater);
                rest.iter().copied().fold(found, greater)
            }

            #[inline(always)]
            fn exponentials_in<const FUSES: bool>(row: &mut [$real], shift: $real) -> $real {
                let mut sums = [0.0; LANES];
                let (chunks, rest) = row.as_chunks_mut::<LANES>();
                for chunk in chunks {
                    for lane in 0..LANES {
                        chunk[lane] = power::<FUSES>(fused::<FUSES>(chunk[lane], LOG2_E, -shift));
                        sums[lane] += chunk[lane];
                    }
                }
                let mut sum = 0.0;
                for x in rest {
                    *x = power::<FUSES>(fused::<FUSES>(*x, LOG2_E, -shift));
                    sum += *x;
                }
                sums.into_iter().fold(sum, |sum, x| sum + x)
            }

            #[inline(always)]
            fn scale_in<const FUSES: bool>(row: &mut [$real], factor: $real) {
                row.iter_mut().for_each(|x| *x *= factor);
            }

            #[inline(always)]
            fn dot_in<const FUSES: bool>(a: &[$real], b: &[$real]) -> $real {
                let mut sums = [0.0; LANES];
                let ((chunks_a, rest_a), (chunks_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
                for (a, b) in chunks_a.iter().zip(chunks_b) {
                    for lane in 0..LANES {
                        sums[lane] = fused::<FUSES>(a[lane], b[lane], sums[lane]);
                    }
                }
                let rest = rest_a.iter().zip(rest_b).fold(0.0, |sum, (a, b)| fused::<FUSES>(*a, *b, sum));
                sums.into_iter().fold(rest, |sum, x| sum + x)
            }

            #[inline(always)]
            fn gradients_in<const FUSES: bool>(gradients: &mut [$real], probabilities: &[$real], delta: $real) {
                for (gradient, probability) in gradients.iter_mut().zip(probabilities) {
                    *gradient = probability * (*gradient - delta);
                }
            }

            in_vectors! {
                fn largest(row: &[$real]) -> $real = largest_in;
                fn exponentials(row: &mut [$real], shift: $real) -> $real = exponentials_in;
                fn scale(row: &mut [$real], factor: $real) = scale_in;
                fn dot(a: &[$real], b: &[$real]) -> $real = dot_in;
                fn gradients(gradients: &mut [$real], probabilities: &[$real], delta: $real) = gradients_in;
            }

            impl super::Real for $real {
                const ZERO: $real = 0.0;
                const ONE: $real = 1.0;
                const NEG_INFINITY: $real = $real::NEG_INFINITY;

                fn from_f64(x: f64) -> $real {
                    x as $real
                }

                fn to_f64(self) -> f64 {
                    f64::from(self)
                }

                fn times(self, other: $real) -> $real {
                    self * other
                }

                fn plus(self, other: $real) -> $real {
                    self + other
                }

                fn tanh(self) -> $real {
                    <$real>::tanh(self)
                }

                fn largest(row: &[$real]) -> $real {
                    largest(row)
                }

                fn exponentials(row: &mut [$real], shift: $real) -> $real {
                    exponentials(row, shift)
                }

                fn power_of_two(x: $real) -> $real {
                    power::<false>(x)
                }

                fn scale(row: &mut [$real], factor: $real) {
                    scale(row, factor);
                }

                fn dot(a: &[$real], b: &[$real]) -> $real {
                    dot(a, b)
                }

                fn gradients_of_scores(gradients: &mut [$real], probabilities: &[$real], delta: $real) {
                    self::gradients(gradients, probabilities, delta);
                }

                unsafe fn multiply(
                    [m, n, k]: [usize; 3],
                    alpha: $real,
                    a: super::Matrix<$real>,
                    b: super::Matrix<$real>,
                    adds: bool,
                    c: &mut [$real],
                    width: usize,
                ) {
                    assert!(c.len() >= (m - 1) * width + n, "C has all rows");
                    // SAFETY: the caller vouches for A and B, and C is long enough. The crate names the factors of C and of the
                    // product alpha and beta.
                    unsafe {
                        gemm_kernels::gemm(
                            m,
                            n,
                            k,
                            c.as_mut_ptr(),
                            1,
                            width as isize,
                            adds,
                            a.start,
                            a.column,
                            a.row,
                            b.start,
                            b.column,
                            b.row,
                            1.0,
                            alpha,
                            false,
                            false,
                            false,
                            // The caller divides the work among threads.
                            gemm_kernels::Parallelism::None,
                        );
                    }
                }
            }

            #[cfg(test)]
            mod tests {
                use super::super::Real;

                #[test]
                fn powers_are_within_two_units_in_the_last_place() {
                    for step in 0..2000 {
                        let x = -(step as $real) * 0.0311;
                        let mut row = [x; 3];
                        let sum = $real::exponentials(&mut row, 0.25);
                        let wanted = (x as f64 - 0.25 * std::f64::consts::LN_2).exp();
                        // x log2(e) is rounded, which costs as much as x is large.
                        let allowed = (2.0 + x.abs() as f64) * wanted * $real::EPSILON as f64;
                        assert!((row[0] as f64 - wanted).abs() <= allowed, "{x}: {} {wanted}", row[0]);
                        assert!((sum as f64 - 3.0 * wanted).abs() <= 4.0 * allowed);
                    }
                }

                #[test]
                fn edges_of_powers() {
                    let mut row = [$real::NEG_INFINITY, $real::NAN, 0.0, -1e9, $real::INFINITY];
                    assert!($real::exponentials(&mut row, 0.0).is_nan());
                    assert!(row[0] == 0.0 && row[1].is_nan() && row[2] == 1.0 && row[3] == 0.0 && row[4].is_nan());
                    assert_eq!($real::largest(&[]), $real::NEG_INFINITY);
                    assert_eq!($real::largest(&[1.0, $real::NAN, 3.0]), 3.0);
                    assert_eq!($real::largest(&[-5.0; 40]), -5.0);
                }
            }
        }
    )*};
}

reals! {
    single: f32, 8, 23, 127;
    double: f64, 14, 52, 1023;
}
