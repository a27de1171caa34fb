//! [`Element`], the trait of array element types.
//!
//! Every element is [`bytemuck::Pod`]: any bytes of the right length are a value, so a file or a device may
//! write them unchecked. Rust's `bool` is not `Pod`, because a byte other than 0 and 1 is undefined
//! behaviour. [`Bool`] holds the byte instead, and every byte but 0 is true. The two 8-bit floats hold their
//! bits in the same way.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;

use super::DType;

mod sealed {
    pub trait Sealed {}
}

/// An array element type. The trait is sealed: [`DType`] lists the implementations.
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

/// A truth value of one byte, the element of [`DType::Bool`]. Equality compares truth: 1 and 255 are both
/// true.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bool(u8);

// SAFETY: a transparent wrapper of `u8`, whose every bit pattern is valid.
unsafe impl Zeroable for Bool {}
// SAFETY: as above; the type has one byte, no padding and no pointer.
unsafe impl Pod for Bool {}

impl Bool {
    /// Returns false for the byte 0 and true for every other byte.
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
        // SAFETY: as above; the type has one byte, no padding and no pointer.
        unsafe impl Pod for $name {}

        impl $name {
            /// Creates a float from its bits.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// Returns the bits of the float.
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
    /// The bits of an 8-bit float with 4 exponent bits, the element of [`DType::F8E4M3`]. Equality compares
    /// bits.
    F8E4M3
}
eight_bits! {
    /// The bits of an 8-bit float with 5 exponent bits, the element of [`DType::F8E5M2`]. Equality compares
    /// bits.
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
