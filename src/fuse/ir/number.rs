//! [`Number`], the value of a scalar before it has a dtype.

use half::{bf16, f16};
use num_complex::Complex;

use super::conversion::{round_to_brain, round_to_half};
use super::instruction::RegisterKind;
use super::program::kind_of;
use crate::types::{DType, NumberKind};

/// A scalar value of any kind. A run converts it to the scalar's dtype by the rules of a cast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// An integer of up to 64 bits.
    Integer(i128),
    /// A real number.
    Real(f64),
    /// A complex number.
    Complex(Complex<f64>),
}

macro_rules! from {
    ($($type:ty => |$value:ident| $number:expr;)*) => {$(
        impl From<$type> for Number {
            fn from($value: $type) -> Number {
                $number
            }
        }
    )*};
}

from! {
    bool => |x| Number::Bool(x);
    u8 => |x| Number::Integer(x.into());
    i8 => |x| Number::Integer(x.into());
    u16 => |x| Number::Integer(x.into());
    i16 => |x| Number::Integer(x.into());
    u32 => |x| Number::Integer(x.into());
    i32 => |x| Number::Integer(x.into());
    u64 => |x| Number::Integer(x.into());
    i64 => |x| Number::Integer(x.into());
    usize => |x| Number::Integer(x as i128);
    isize => |x| Number::Integer(x as i128);
    f16 => |x| Number::Real(x.into());
    bf16 => |x| Number::Real(x.into());
    f32 => |x| Number::Real(x.into());
    f64 => |x| Number::Real(x);
    Complex<f32> => |x| Number::Complex(Complex::new(x.re.into(), x.im.into()));
    Complex<f64> => |x| Number::Complex(x);
}

impl Number {
    /// Returns the kind, by which the number takes part in promotion.
    pub fn kind(self) -> NumberKind {
        match self {
            Number::Bool(_) => NumberKind::Bool,
            Number::Integer(_) => NumberKind::Integer,
            Number::Real(_) => NumberKind::Real,
            Number::Complex(_) => NumberKind::Complex,
        }
    }

    /// Converts to a real number: the real part of a complex one.
    pub(crate) fn real(self) -> f64 {
        match self {
            Number::Bool(x) => f64::from(u8::from(x)),
            Number::Integer(x) => x as f64,
            Number::Real(x) => x,
            Number::Complex(x) => x.re,
        }
    }

    /// Converts to f32 with one rounding.
    fn single(self) -> f32 {
        match self {
            Number::Integer(x) => x as f32,
            _ => self.real() as f32,
        }
    }

    /// Returns the bits of each part, as a register of the dtype holds them.
    #[inline]
    pub(crate) fn parts(self, dtype: DType) -> [u64; 2] {
        // The common cases of small operations.
        match (self, dtype) {
            (Number::Real(x), DType::F32) => [u64::from((x as f32).to_bits()), 0],
            (Number::Real(x), DType::F64) => [x.to_bits(), 0],
            _ => self.parts_of_any(dtype),
        }
    }

    fn parts_of_any(self, dtype: DType) -> [u64; 2] {
        let part = |real: Number| match kind_of(dtype) {
            RegisterKind::Predicate => u64::from(match self {
                Number::Bool(x) => x,
                Number::Integer(x) => x != 0,
                Number::Real(x) => x != 0.0,
                Number::Complex(x) => x.re != 0.0 || x.im != 0.0,
            }),
            RegisterKind::Float64 => real.real().to_bits(),
            RegisterKind::Float32 => u64::from(real.narrow(dtype).to_bits()),
            RegisterKind::Bits32 | RegisterKind::Bits64 => real.integer(dtype),
        };
        let imaginary = match self {
            Number::Complex(x) => Number::Real(x.im),
            _ => Number::Real(0.0),
        };
        [part(self), part(imaginary)]
    }

    fn narrow(self, dtype: DType) -> f32 {
        match dtype {
            DType::F16 => round_to_half(odd(self.exact())),
            DType::BF16 => round_to_brain(odd(self.exact())),
            _ => self.single(),
        }
    }

    /// Converts to f64 for a later rounding to a narrower float, with rounding to odd if the number is not
    /// exact.
    fn exact(self) -> f64 {
        let Number::Integer(x) = self else { return self.real() };
        let near = x as f64;
        if near as i128 == x {
            return near;
        }
        // Truncated, with the last bit set.
        let cut = if (near as i128).unsigned_abs() > x.unsigned_abs() {
            near.to_bits() - 1
        } else {
            near.to_bits()
        };
        f64::from_bits(cut | 1)
    }

    fn integer(self, dtype: DType) -> u64 {
        let clamped = |least: i128, most: i128| match self {
            Number::Bool(x) => i128::from(x),
            Number::Integer(x) => x,
            _ => (self.real() as i128).clamp(least, most),
        };
        match dtype {
            DType::U8 => u64::from(clamped(0, u8::MAX.into()) as u8),
            DType::I8 => u64::from(clamped(i8::MIN.into(), i8::MAX.into()) as i8 as u32),
            DType::U16 => u64::from(clamped(0, u16::MAX.into()) as u16),
            DType::I16 => u64::from(clamped(i16::MIN.into(), i16::MAX.into()) as i16 as u32),
            DType::U32 => u64::from(clamped(0, u32::MAX.into()) as u32),
            DType::I32 => u64::from(clamped(i32::MIN.into(), i32::MAX.into()) as u32),
            DType::U64 => clamped(0, u64::MAX.into()) as u64,
            DType::I64 => clamped(i64::MIN.into(), i64::MAX.into()) as u64,
            // The 8-bit floats have no scalars; see `Expression::new`.
            _ => 0,
        }
    }
}

/// Converts f64 to f32 with rounding to odd.
fn odd(x: f64) -> f32 {
    let near = x as f32;
    if x.is_nan() || f64::from(near) == x {
        return near;
    }
    let cut = if f64::from(near).abs() > x.abs() { near.to_bits() - 1 } else { near.to_bits() };
    f32::from_bits(cut | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_once() {
        // Just above the middle of two neighbours, by less than f32 resolves.
        let middle = 1.0 + 2f64.powi(-8);
        let above = middle + 2f64.powi(-40);
        let brain = |x: f64| f32::from_bits(Number::Real(x).parts(DType::BF16)[0] as u32);
        assert_eq!((brain(middle), brain(above)), (1.0, 1.0 + 2f32.powi(-7)));
        let whole = (1i128 << 62) + (1 << 54);
        let brain = |x: i128| f32::from_bits(Number::Integer(x).parts(DType::BF16)[0] as u32);
        assert_eq!((brain(whole), brain(whole + 1)), (2f32.powi(62), 2f32.powi(62) + 2f32.powi(55)));
        let half = |x: f64| f32::from_bits(Number::Real(x).parts(DType::F16)[0] as u32);
        let middle = 1.0 + 2f64.powi(-11);
        assert_eq!((half(middle), half(middle + 2f64.powi(-50))), (1.0, 1.0 + 2f32.powi(-10)));
        assert_eq!(Number::Real(1e9).parts(DType::F16)[0] as u32, f32::INFINITY.to_bits());
    }

    #[test]
    fn numbers_become_integers_as_in_a_cast() {
        assert_eq!(Number::Real(-3.9).parts(DType::I8)[0], u64::from(-3i32 as u32));
        assert_eq!(Number::Real(f64::NAN).parts(DType::I64)[0], 0);
        assert_eq!(Number::Real(1e30).parts(DType::U16)[0], 65535);
        assert_eq!(Number::Integer(300).parts(DType::U8)[0], 44);
        assert_eq!(Number::Integer(-1).parts(DType::U64)[0], u64::MAX);
        assert_eq!(Number::Real(f64::NAN).parts(DType::Bool)[0], 1);
        let complex = Number::from(Complex::new(1.5f32, -2.0));
        assert_eq!(complex.parts(DType::C128), [1.5f64.to_bits(), (-2.0f64).to_bits()]);
    }
}
