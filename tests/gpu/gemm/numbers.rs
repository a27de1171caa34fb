//! The element types of products as the tests see them: small whole numbers in them, a poison that shows where it is read,
//! and products of whole numbers, which have no rounding but the last one.

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::gemm::{GemmElement, GemmResult};

/// A whole number, complex for all types alike.
pub type Whole = Complex<i64>;

/// An element type and what the tests need of it.
pub trait Number: GemmElement {
    /// The number, of which real types have the real part; integers wrap.
    fn of(whole: Whole) -> Self;
    fn scalar(whole: Whole) -> Self::Scalar;
    /// Returns the number as the type holds it.
    fn seen(whole: Whole) -> Whole {
        Complex::new(whole.re, 0)
    }
    /// A number that changes every sum that it enters: NaN, or a large integer.
    fn poison() -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn of(whole: Whole) -> $type {
                whole.re as $type
            }
            fn scalar(whole: Whole) -> $type {
                whole.re as $type
            }
            fn poison() -> $type {
                (<$type>::MAX >> 1) - 6
            }
        }
    )*};
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 }

macro_rules! reals {
    ($($type:ty, $scalar:ty, $of:expr;)*) => {$(
        impl Number for $type {
            fn of(whole: Whole) -> $type {
                $of(whole.re as _)
            }
            fn scalar(whole: Whole) -> $scalar {
                whole.re as $scalar
            }
            fn poison() -> $type {
                $of((f32::NAN).into())
            }
        }
    )*};
}

// Whole numbers below 2^24 are exact in f32, so the narrow types round once.
reals! { f16, f32, |x: f32| f16::from_f32(x); bf16, f32, |x: f32| bf16::from_f32(x); }
reals! { f32, f32, |x: f32| x; f64, f64, |x: f64| x; }

macro_rules! complexes {
    ($($part:ty)*) => {$(
        impl Number for Complex<$part> {
            fn of(whole: Whole) -> Complex<$part> {
                Complex::new(whole.re as $part, whole.im as $part)
            }
            fn scalar(whole: Whole) -> Complex<$part> {
                Complex::new(whole.re as $part, whole.im as $part)
            }
            fn seen(whole: Whole) -> Whole {
                whole
            }
            fn poison() -> Complex<$part> {
                Complex::new(<$part>::NAN, <$part>::NAN)
            }
        }
    )*};
}

complexes! { f32 f64 }

/// Equal, where a NaN is like another. (Zeros of both signs are equal too: a sum of whole numbers has no sign of zero.)
pub fn same<T: PartialEq>(left: T, right: T) -> bool {
    let is_nan = |x: &T| !std::convert::identity(x).eq(x);
    left == right || (is_nan(&left) && is_nan(&right))
}

/// A result type of products of `T`.
pub trait ResultOf<T: Number>: GemmResult<T> + Number {}
impl<T: Number, C: GemmResult<T> + Number> ResultOf<T> for C {}
