//! The factors of sums of squares that may have left the normal range.

use crate::fuse::ir::instruction::RegisterKind;

/// The exponents of the factors that rescale elements of f32 and of f64, and of the sums below which they do.
///
/// They bring every element that matters, and its square, into the normal range. In f32, an infinite sum of squares becomes at
/// least 2^128 · 2^-180 = 2^-52, beside which all squares below 2^-126 of 2^40 elements vanish; and at most 2^76 an element. Of a sum
/// below 2^-100, squares may have lost digits below the normal range, which 2^26 of them would show; elements are from 2^-149 to
/// 2^-50, and their squares become 2^-118 to 2^80. A power of two changes no digit of other sums.
const RESCALING: [(i32, i32); 2] = [(90, -100), (600, -960)];

/// A sum of squares that may have left the normal range.
pub(in crate::fuse) trait Rescale: Copy {
    /// Returns the factor of the elements whose sum of squares this is: 1, or a power of two if the sum is infinite or too
    /// small.
    fn rescale(self) -> Self;

    /// Returns the least sum that is not too small.
    fn least() -> Self;
}

macro_rules! rescale {
    ($type:ident, $exponents:expr) => {
        impl Rescale for $type {
            fn rescale(self) -> $type {
                let factor = $type::from(2u8).powi($exponents.0);
                match self {
                    sum if sum == $type::INFINITY => factor.recip(),
                    sum if sum < $type::least() => factor,
                    _ => 1.0,
                }
            }

            fn least() -> $type {
                $type::from(2u8).powi($exponents.1)
            }
        }
    };
}

rescale!(f32, RESCALING[0]);
rescale!(f64, RESCALING[1]);

/// The bits that a kernel compares a sum of squares with, and those of its factors.
pub(in crate::fuse) struct RescalingBits {
    pub(in crate::fuse) infinity: u64,
    pub(in crate::fuse) least: u64,
    /// The factors of an infinite sum and of one that is too small.
    pub(in crate::fuse) factors: [u64; 2],
    pub(in crate::fuse) one: u64,
}

impl RescalingBits {
    /// Returns the bits for sums in this kind of register.
    pub(in crate::fuse) fn new(kind: RegisterKind) -> RescalingBits {
        let (of_f32, of_f64) = (|x: f32| u64::from(x.to_bits()), f64::to_bits);
        match kind {
            RegisterKind::Float64 => RescalingBits {
                infinity: of_f64(f64::INFINITY),
                least: of_f64(f64::least()),
                factors: [f64::INFINITY.rescale(), 0f64.rescale()].map(of_f64),
                one: of_f64(1.0),
            },
            _ => RescalingBits {
                infinity: of_f32(f32::INFINITY),
                least: of_f32(f32::least()),
                factors: [f32::INFINITY.rescale(), 0f32.rescale()].map(of_f32),
                one: of_f32(1.0),
            },
        }
    }
}
