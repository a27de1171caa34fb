//! Complex arithmetic with the formulas that the generated kernels use.
//!
//! The operators of `num_complex` are unsuitable: its quotient divides by |b|², which overflows once |b|
//! exceeds 1e19 (f32) or 1e154 (f64), and its results differ from a device's.
//!
//! Invariant: each function performs the operations of its kernel in the kernel's order, each rounded by
//! itself, without fused multiply-add.

use std::ops::{Add, Div, Mul, Sub};

use num_complex::Complex;

mod sealed {
    /// The numbers and functions that [`super::divide`] needs.
    pub trait Sealed: Sized {
        const ZERO: Self;
        const ONE: Self;
        const INFINITY: Self;
        const NAN: Self;
        /// A quarter, the scale of a large dividend or divisor.
        const QUARTER: Self;
        /// The scale of a small dividend or divisor, a power of 2.
        const LARGE_SCALE: Self;
        /// Divisors up to this magnitude are scaled by [`LARGE_SCALE`](Self::LARGE_SCALE).
        const SMALL_DIVISOR: Self;
        /// Dividends below this magnitude are scaled by [`LARGE_SCALE`](Self::LARGE_SCALE).
        const SMALL_DIVIDEND: Self;

        /// Returns the magnitude of `self` with the sign of `sign`.
        fn with_sign(self, sign: Self) -> Self;
    }

    macro_rules! sealed {
        ($($float:ident $scale:literal $divisor:literal $dividend:literal $mantissa:literal $bias:literal;)*) => {$(
            impl Sealed for $float {
                const ZERO: $float = 0.0;
                const ONE: $float = 1.0;
                const INFINITY: $float = $float::INFINITY;
                const NAN: $float = $float::NAN;
                const QUARTER: $float = 0.25;
                const LARGE_SCALE: $float = $float::from_bits(($bias + $scale) << $mantissa);
                const SMALL_DIVISOR: $float = $float::from_bits(($bias - $divisor) << $mantissa);
                const SMALL_DIVIDEND: $float = $float::from_bits(($bias - $dividend) << $mantissa);

                fn with_sign(self, sign: $float) -> $float {
                    self.copysign(sign)
                }
            }
        )*};
    }
    sealed! {
        f32 64 100 40 23 127;
        f64 600 960 400 52 1023;
    }
}

/// A real type that complex numbers consist of: f32 or f64.
pub trait Part:
    sealed::Sealed
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// Returns |x|, exactly.
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

/// Returns a · b = (ac - bd) + (ad + bc)i, with each of the six operations rounded.
///
/// ```
/// use num_complex::Complex;
/// let product = selvedge::types::complex::multiply(Complex::new(1.0, 2.0), Complex::new(3.0, -4.0));
/// assert_eq!(product, Complex::new(11.0, 2.0));
/// ```
pub fn multiply<T: Part>(left: Complex<T>, right: Complex<T>) -> Complex<T> {
    Complex::new(left.re * right.re - left.im * right.im, left.re * right.im + left.im * right.re)
}

/// Returns a / b, which is finite and accurate whenever the exact quotient is (R. L. Smith, "Algorithm 116: Complex
/// division", Communications of the ACM 5(8), 1962, with scaled operands).
///
/// As in C99's Annex G, a number other than 0 and NaN divided by 0 is infinite, an infinity divided by a finite number
/// is infinite, and a finite number divided by an infinity is 0.
///
/// ```
/// use num_complex::Complex;
/// use selvedge::types::complex::divide;
/// assert_eq!(divide(Complex::new(1.0, 2.0), Complex::new(3.0, -4.0)), Complex::new(-0.2, 0.4));
/// let large = Complex::new(1e200, 1e200);
/// assert_eq!(divide(large, large), Complex::new(1.0, 0.0));
/// assert_eq!(divide(Complex::new(1.0, 2.0), Complex::new(0.0, 0.0)), Complex::new(f64::INFINITY, f64::INFINITY));
/// ```
pub fn divide<T: Part>(dividend: Complex<T>, divisor: Complex<T>) -> Complex<T> {
    let (numerators, scale) = smith(dividend, divisor);
    let size = scale.magnitude();
    let sum = numerators.re.magnitude() + numerators.im.magnitude();
    if T::SMALL_DIVISOR < size && size < T::INFINITY && sum < T::INFINITY {
        return Complex::new(numerators.re / scale, numerators.im / scale);
    }
    let (re, im) = (dividend.re.magnitude(), dividend.im.magnitude());
    let largest = if re < im { im } else { re };
    let dividend_scale = if largest < T::SMALL_DIVIDEND { T::LARGE_SCALE } else { T::QUARTER };
    let divisor_scale = if size <= T::SMALL_DIVISOR { T::LARGE_SCALE } else { T::QUARTER };
    let scaled = |z: Complex<T>, by: T| Complex::new(z.re * by, z.im * by);
    let (numerators, scale) = smith(scaled(dividend, dividend_scale), scaled(divisor, divisor_scale));
    let back = divisor_scale / dividend_scale;
    let quotient = Complex::new(numerators.re / scale * back, numerators.im / scale * back);
    if is_nan(quotient.re) && is_nan(quotient.im) { divide_special(dividend, divisor) } else { quotient }
}

/// Returns the numerators of Smith's quotient and their common divisor.
fn smith<T: Part>(dividend: Complex<T>, divisor: Complex<T>) -> (Complex<T>, T) {
    let (a, b, c, d) = (dividend.re, dividend.im, divisor.re, divisor.im);
    if c.magnitude() >= d.magnitude() {
        let ratio = d / c;
        (Complex::new(a + b * ratio, b - a * ratio), c + d * ratio)
    } else {
        let ratio = c / d;
        (Complex::new(a * ratio + b, b * ratio - a), c * ratio + d)
    }
}

/// Returns the quotient for operands whose quotient by Smith's formula has no value (C99 G.5.1, `_Cdivd`).
fn divide_special<T: Part>(dividend: Complex<T>, divisor: Complex<T>) -> Complex<T> {
    let is_infinite = |x: T| x.magnitude() == T::INFINITY;
    let has_infinity = |z: Complex<T>| is_infinite(z.re) || is_infinite(z.im);
    let is_finite = |z: Complex<T>| z.re.magnitude() < T::INFINITY && z.im.magnitude() < T::INFINITY;
    // 1 for an infinity and 0 for another part, with its sign.
    let unit = |x: T| (if is_infinite(x) { T::ONE } else { T::ZERO }).with_sign(x);
    let units = |z: Complex<T>| Complex::new(unit(z.re), unit(z.im));
    let scaled = |z: Complex<T>, by: T| Complex::new(z.re * by, z.im * by);
    let direction =
        |x: Complex<T>, y: Complex<T>| Complex::new(x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im);
    if divisor.re == T::ZERO && divisor.im == T::ZERO {
        scaled(dividend, T::INFINITY.with_sign(divisor.re))
    } else if has_infinity(dividend) && is_finite(divisor) {
        scaled(direction(units(dividend), divisor), T::INFINITY)
    } else if has_infinity(divisor) && is_finite(dividend) {
        // A quarter of the dividend, so that no sum overflows.
        scaled(direction(scaled(dividend, T::QUARTER), units(divisor)), T::ZERO)
    } else {
        Complex::new(T::NAN, T::NAN)
    }
}

fn is_nan<T: Part>(x: T) -> bool {
    x.partial_cmp(&x).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_both_branches() {
        // The parts of the divisor exchanged: the other branch of the formula.
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
    fn division_by_zero_is_infinite_as_in_c99() {
        let infinity = f64::INFINITY;
        for (dividend, zero, expected) in [
            (Complex::new(1.0, 2.0), Complex::new(0.0, 0.0), Complex::new(infinity, infinity)),
            (Complex::new(1.0, -2.0), Complex::new(-0.0, 0.0), Complex::new(-infinity, infinity)),
            (Complex::new(infinity, 1.0), Complex::new(0.0, 0.0), Complex::new(infinity, infinity)),
        ] {
            assert_eq!(divide(dividend, zero), expected, "{dividend} / {zero}");
        }
        let quotient = divide(Complex::new(1.0, 0.0), Complex::new(0.0, 0.0));
        assert!(quotient.re == infinity && quotient.im.is_nan(), "{quotient}");
        for dividend in [Complex::new(0.0, 0.0), Complex::new(f64::NAN, f64::NAN)] {
            let quotient = divide(dividend, Complex::new(0.0, 0.0));
            assert!(quotient.re.is_nan() && quotient.im.is_nan(), "{dividend} / 0 = {quotient}");
        }
    }

    #[test]
    fn infinities_divide_as_in_c99() {
        let infinity = f32::INFINITY;
        let infinite = Complex::new(infinity, f32::NAN);
        assert_eq!(divide(infinite, Complex::new(2.0, 0.0)).re, infinity);
        assert_eq!(divide(Complex::new(2.0, 3.0), infinite), Complex::new(0.0, 0.0));
        let quotient = divide(infinite, infinite);
        assert!(quotient.re.is_nan() && quotient.im.is_nan(), "{quotient}");
    }

    #[test]
    fn quotients_at_the_ends_of_the_range_are_accurate() {
        let largest = Complex::new(f64::MAX, f64::MAX);
        assert_eq!(divide(largest, largest), Complex::new(1.0, 0.0));
        let smallest = Complex::new(f64::from_bits(1), f64::from_bits(1));
        assert_eq!(divide(smallest, smallest), Complex::new(1.0, 0.0));
    }

    #[test]
    fn signs_of_zero_are_kept() {
        // `b r - a` of equal terms is 0, not -0.
        let quotient = divide(Complex::new(1.0_f64, 2.0), Complex::new(1.0, 2.0));
        assert_eq!(quotient.im.to_bits(), 0.0_f64.to_bits());
    }
}
