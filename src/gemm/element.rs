//! The element types of products, and what they are multiplied and added in.

use half::{bf16, f16};
use num_complex::Complex;

use super::host::Sum;
use crate::types::{DType, Element};

mod sealed {
    use super::Sum;

    pub trait Sealed: Copy {
        /// The family of kernels for every device: signed integers have the bits of unsigned ones.
        #[doc(hidden)]
        const SIMT_FAMILY: &'static str;
        /// The type that these are added in; signed integers in unsigned ones, of which the low bits are theirs.
        #[doc(hidden)]
        type Sum: Sum;
        /// True where memory of these is memory of their sums.
        #[doc(hidden)]
        const IS_SUM: bool;
        #[doc(hidden)]
        fn widened(self) -> Self::Sum;
        #[doc(hidden)]
        fn narrowed(sum: Self::Sum) -> Self;
    }

    pub trait SealedScalar: Copy + PartialEq {
        #[doc(hidden)]
        const ZERO: Self;
        #[doc(hidden)]
        const ONE: Self;
        /// The number in the type that kernels sum in, as bytes.
        #[doc(hidden)]
        fn sum(self) -> [u64; 2];
    }

    pub trait SealedResult<T: Sealed>: Copy {
        #[doc(hidden)]
        fn summand(self) -> T::Sum;
        #[doc(hidden)]
        fn rounded(sum: T::Sum) -> Self;
    }
}
pub(super) use sealed::{Sealed, SealedScalar};

/// An element type that matrices can be multiplied in: all but `Bool` and the 8-bit floats.
pub trait GemmElement: Element + Sealed {
    /// The type of alpha and beta, `f32` for `f16` and `bf16`.
    type Scalar: Element + SealedScalar;
}

/// An element type of the result of a product of `T`s: `T` itself, and `f32` for `f16` and `bf16`.
pub trait GemmResult<T: GemmElement>: Element + sealed::SealedResult<T> {}

macro_rules! elements {
    ($($element:ty, $kernel:literal, $sum:ty, $scalar:ty, $widened:expr, $narrowed:expr;)*) => {$(
        impl Sealed for $element {
            const SIMT_FAMILY: &'static str = concat!("gemm_simt_", $kernel);
            type Sum = $sum;
            const IS_SUM: bool = size_of::<$element>() == size_of::<$sum>();

            #[inline(always)]
            fn widened(self) -> $sum {
                $widened(self)
            }

            #[inline(always)]
            fn narrowed(sum: $sum) -> $element {
                $narrowed(sum)
            }
        }
        impl GemmElement for $element {
            type Scalar = $scalar;
        }
    )*};
}

elements! {
    u8, "u8", u32, u8, |x: u8| x as u32, |sum: u32| sum as u8;
    i8, "u8", u32, i8, |x: i8| x as u32, |sum: u32| sum as i8;
    u16, "u16", u32, u16, |x: u16| x as u32, |sum: u32| sum as u16;
    i16, "u16", u32, i16, |x: i16| x as u32, |sum: u32| sum as i16;
    u32, "u32", u32, u32, |x| x, |sum| sum;
    i32, "u32", u32, i32, |x: i32| x as u32, |sum: u32| sum as i32;
    u64, "u64", u64, u64, |x| x, |sum| sum;
    i64, "u64", u64, i64, |x: i64| x as u64, |sum: u64| sum as i64;
    f16, "f16", f32, f32, f32::from, f16::from_f32;
    bf16, "bf16", f32, f32, f32::from, bf16::from_f32;
    f32, "f32", f32, f32, |x| x, |sum| sum;
    f64, "f64", f64, f64, |x| x, |sum| sum;
    Complex<f32>, "c64", Complex<f32>, Complex<f32>, |x| x, |sum| sum;
    Complex<f64>, "c128", Complex<f64>, Complex<f64>, |x| x, |sum| sum;
}

macro_rules! wider_results {
    ($($element:ty)*) => {$(
        impl sealed::SealedResult<$element> for f32 {
            #[inline(always)]
            fn summand(self) -> f32 {
                self
            }

            #[inline(always)]
            fn rounded(sum: f32) -> f32 {
                sum
            }
        }
        impl GemmResult<$element> for f32 {}
    )*};
}

wider_results! { f16 bf16 }

impl<T: GemmElement> sealed::SealedResult<T> for T {
    #[inline(always)]
    fn summand(self) -> T::Sum {
        self.widened()
    }

    #[inline(always)]
    fn rounded(sum: T::Sum) -> T {
        T::narrowed(sum)
    }
}

impl<T: GemmElement> GemmResult<T> for T {}

fn words(bytes: &[u8]) -> [u64; 2] {
    let mut words = [0u64; 2];
    bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

macro_rules! scalars {
    ($($scalar:ty, $zero:expr, $one:expr, $sum:ty;)*) => {$(
        impl SealedScalar for $scalar {
            const ZERO: $scalar = $zero;
            const ONE: $scalar = $one;

            #[allow(clippy::cast_lossless, trivial_numeric_casts)] // One line for every type.
            fn sum(self) -> [u64; 2] {
                words(bytemuck::bytes_of(&(self as $sum)))
            }
        }
    )*};
}

scalars! {
    u8, 0, 1, u32;
    i8, 0, 1, u32;
    u16, 0, 1, u32;
    i16, 0, 1, u32;
    u32, 0, 1, u32;
    i32, 0, 1, u32;
    u64, 0, 1, u64;
    i64, 0, 1, u64;
    f32, 0.0, 1.0, f32;
    f64, 0.0, 1.0, f64;
    Complex<f32>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), Complex<f32>;
    Complex<f64>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), Complex<f64>;
}

/// Returns, for a dtype that is a [`GemmElement`], the kernels' family and the bytes of a sum.
pub(super) fn of_dtype(dtype: DType) -> Option<(&'static str, usize)> {
    fn facts<T: GemmElement>() -> (&'static str, usize) {
        (T::SIMT_FAMILY, size_of::<T::Sum>())
    }
    Some(match dtype {
        DType::U8 => facts::<u8>(),
        DType::I8 => facts::<i8>(),
        DType::U16 => facts::<u16>(),
        DType::I16 => facts::<i16>(),
        DType::U32 => facts::<u32>(),
        DType::I32 => facts::<i32>(),
        DType::U64 => facts::<u64>(),
        DType::I64 => facts::<i64>(),
        DType::F16 => facts::<f16>(),
        DType::BF16 => facts::<bf16>(),
        DType::F32 => facts::<f32>(),
        DType::F64 => facts::<f64>(),
        DType::C64 => facts::<Complex<f32>>(),
        DType::C128 => facts::<Complex<f64>>(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_passed_in_the_sums_type() {
        // Sums of narrow integers are 32 bits wide, and -1 is all of them.
        assert_eq!((-1i8).sum(), [0xffff_ffff, 0]);
        assert_eq!((-2i64).sum(), [u64::MAX - 1, 0]);
        assert_eq!(1.0f32.sum(), [u64::from(1.0f32.to_bits()), 0]);
        assert_eq!(Complex::new(1.0f64, 2.0).sum(), [1.0f64.to_bits(), 2.0f64.to_bits()]);
        assert_eq!(Complex::new(0.0f32, 1.0).sum(), [u64::from(1.0f32.to_bits()) << 32, 0]);
    }

    #[test]
    fn every_number_but_truth_values_and_bytes_of_floats_is_multiplied() {
        for dtype in DType::ALL {
            let left_out = matches!(dtype, DType::Bool | DType::F8E4M3 | DType::F8E5M2);
            assert_eq!(of_dtype(dtype).is_none(), left_out, "{dtype}");
        }
    }
}
