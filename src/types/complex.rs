//! Complex arithmetic with the same formulas as the kernels that `fuse` writes.
//!
//! Why not the operators of `num_complex`: its quotient divides by |b|², which overflows once |b| passes 1e19 (f32) or
//! 1e154 (f64). And a result on the CPU shall have the bits of one on a device. What must stay true: the same operations
//! in the same order as in the kernels, each rounded by itself; no fused multiply-add.

use std::ops::{Add, Div, Mul, Sub};

use num_complex::Complex;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// The part types of complex numbers: f32 and f64.
pub trait Part:
    sealed::Sealed
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// |x|, exact.
    fn magnitude(self) -> Self;
}

impl Part for f32 {
    fn magnitude(self) -> f32 {
        self.abs()
    }
}

impl Part for f64 {
    fn magnitude(self) -> f64 {
        self.abs()
    }
}

/// a · b = (ac - bd) + (ad + bc)i, each of the six operations rounded.
///
/// ```
/// use num_complex::Complex;
/// let product = selvedge::types::complex::multiply(Complex::new(1.0, 2.0), Complex::new(3.0, -4.0));
/// assert_eq!(product, Complex::new(11.0, 2.0));
/// ```
pub fn multiply<T: Part>(left: Complex<T>, right: Complex<T>) -> Complex<T> {
    Complex::new(left.re * right.re - left.im * right.im, left.re * right.im + left.im * right.re)
}

/// a / b, scaled so that nothing overflows on the way to a result that does not (R. L. Smith, "Algorithm 116: Complex
/// division", Communications of the ACM 5(8), 1962).
///
/// A divisor of 0 gives NaN in both parts.
///
/// ```
/// use num_complex::Complex;
/// use selvedge::types::complex::divide;
/// assert_eq!(divide(Complex::new(1.0, 2.0), Complex::new(3.0, -4.0)), Complex::new(-0.2, 0.4));
/// let large = Complex::new(1e200, 1e200);
/// assert_eq!(divide(large, large), Complex::new(1.0, 0.0));
/// ```
pub fn divide<T: Part>(dividend: Complex<T>, divisor: Complex<T>) -> Complex<T> {
    let (a, b, c, d) = (dividend.re, dividend.im, divisor.re, divisor.im);
    if c.magnitude() >= d.magnitude() {
        let ratio = d / c;
        let scale = c + d * ratio;
        Complex::new((a + b * ratio) / scale, (b - a * ratio) / scale)
    } else {
        let ratio = c / d;
        let scale = c * ratio + d;
        Complex::new((a * ratio + b) / scale, (b * ratio - a) / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_both_branches() {
        // (divisor's parts exchanged: the other branch of the formula)
        assert_eq!(divide(Complex::new(1.0, 2.0), Complex::new(3.0, -4.0)), Complex::new(-0.2, 0.4));
        assert_eq!(divide(Complex::new(11.0, 2.0), Complex::new(3.0, -4.0)), Complex::new(1.0, 2.0));
        assert_eq!(divide(Complex::new(11.0, -2.0), Complex::new(4.0, 3.0)), Complex::new(1.52, -1.64));
        assert_eq!(divide(Complex::new(1.0_f32, 2.0), Complex::new(3.0, -4.0)), Complex::new(-0.2, 0.4));
    }

    #[test]
    fn large_and_small_divisors_do_not_overflow() {
        let large = Complex::new(1e200, 1e200);
        assert_eq!(divide(large, large), Complex::new(1.0, 0.0));
        let large = Complex::new(1e30_f32, -1e30);
        assert_eq!(divide(large, large), Complex::new(1.0, 0.0));
        let small = Complex::new(1e-200, 2e-200);
        assert_eq!(divide(small, small), Complex::new(1.0, 0.0));
    }

    #[test]
    fn zero_gives_nan_in_both_parts() {
        for dividend in [Complex::new(1.0, 2.0), Complex::new(0.0, 0.0), Complex::new(f64::INFINITY, 0.0)] {
            for zero in [Complex::new(0.0, 0.0), Complex::new(-0.0, 0.0)] {
                let quotient = divide(dividend, zero);
                assert!(quotient.re.is_nan() && quotient.im.is_nan(), "{dividend} / {zero} = {quotient}");
            }
        }
    }

    #[test]
    fn signs_of_zero_are_kept() {
        // b r - a of equal terms is 0, not -0: the kernels exchange operands where a sign would be wrong.
        let quotient = divide(Complex::new(1.0_f64, 2.0), Complex::new(1.0, 2.0));
        assert_eq!(quotient.im.to_bits(), 0.0_f64.to_bits());
    }
}
