//! [`Element`], the types that an array's elements can be.
//!
//! Every element is [`bytemuck::Pod`]: any bytes of the right length are a value, so that a file or a device may write
//! them unchecked. Rust's `bool` is not, because a byte other than 0 and 1 in it is undefined behaviour; [`Bool`] holds
//! the byte instead, and reads as true for any but 0. The two 8-bit floats hold their bits the same way.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;

use super::DType;

mod sealed {
    pub trait Sealed {}
}

/// A type that an array's elements can be. Sealed: the list is that of [`DType`].
pub trait Element: Pod + PartialEq + fmt::Debug + Send + Sync + sealed::Sealed {
    /// The same type as a value; its [`size`](DType::size) is `size_of::<Self>()`.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
        const _: () = assert!(size_of::<$rust>() == DType::$dtype.size());
    )*};
}

elements! {
    Bool => Bool;
    u8 => U8;
    i8 => I8;
    u16 => U16;
    i16 => I16;
    u32 => U32;
    i32 => I32;
    u64 => U64;
    i64 => I64;
    f16 => F16;
    bf16 => BF16;
    f32 => F32;
    f64 => F64;
    Complex<f32> => C64;
    Complex<f64> => C128;
    F8E4M3 => F8E4M3;
    F8E5M2 => F8E5M2;
}

/// A truth value of one byte, the element of [`DType::Bool`]. Equality is of truth: 1 and 255 are both true.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bool(u8);

// SAFETY: a transparent wrapper of `u8`, whose every bit pattern is valid.
unsafe impl Zeroable for Bool {}
// SAFETY: as above; one byte, no padding, no pointer.
unsafe impl Pod for Bool {}

impl Bool {
    /// The value: false for the byte 0, true for every other.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> bool {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl fmt::Debug for Bool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), formatter)
    }
}

macro_rules! eight_bits {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(u8);

        // SAFETY: a transparent wrapper of `u8`, whose every bit pattern is valid.
        unsafe impl Zeroable for $name {}
        // SAFETY: as above; one byte, no padding, no pointer.
        unsafe impl Pod for $name {}

        impl $name {
            /// The float with these bits.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// The float's bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({:#04x})", stringify!($name), self.0)
            }
        }
    };
}

eight_bits! {
    /// The bits of an 8-bit float with 4 exponent bits, the element of [`DType::F8E4M3`]. Equality is of bits.
    F8E4M3
}
eight_bits! {
    /// The bits of an 8-bit float with 5 exponent bits, the element of [`DType::F8E5M2`]. Equality is of bits.
    F8E5M2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_is_a_truth_value() {
        let values: &[Bool] = bytemuck::cast_slice(&[0u8, 1, 255]);
        assert_eq!(values, [Bool::from(false), Bool::from(true), Bool::from(true)]);
        assert_eq!(format!("{values:?}"), "[false, true, true]");
    }
}
