//! [`HostElement`], the element types of attention on the CPU.

use half::{bf16, f16};

use super::real::Real;
use crate::types::Element;

/// An element type of attention on the CPU: f16, bf16, f32 or f64.
pub trait HostElement: Element + sealed::Sealed {
    /// The type of scores and sums, and of the LSE: f64 for f64, else f32.
    type Real: Real;

    /// Returns a number as one of [`Real`](Self::Real).
    fn widened(self) -> Self::Real;

    /// Returns the nearest number.
    fn rounded(x: Self::Real) -> Self;

    /// Returns elements as numbers of [`Real`](Self::Real), if they are.
    fn as_reals(elements: &[Self]) -> Option<&[Self::Real]>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty, $real:ty, $widened:expr, $rounded:expr, $as_reals:expr;)*) => {$(
        impl sealed::Sealed for $element {}

        impl HostElement for $element {
            type Real = $real;

            fn widened(self) -> $real {
                $widened(self)
            }

            fn rounded(x: $real) -> $element {
                $rounded(x)
            }

            fn as_reals(elements: &[$element]) -> Option<&[$real]> {
                $as_reals(elements)
            }
        }
    )*};
}

elements! {
    f16, f32, f16::to_f32, f16::from_f32, |_| None;
    bf16, f32, bf16::to_f32, bf16::from_f32, |_| None;
    f32, f32, |x| x, |x| x, Some;
    f64, f64, |x| x, |x| x, Some;
}
