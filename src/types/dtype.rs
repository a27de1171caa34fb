//! [`DType`], the element type of an array as a value.
//!
//! A dtype has two names: Rust's (`f32`, `c64`) and NumPy's (`float32`, `complex64`). Both parse; selvedge
//! prints the first. NumPy's one-letter codes (`f4`, `u8`) do not parse, because `u8` and `i8` mean 8 bits in
//! Rust and 8 bytes in NumPy. The number in `c64` and `c128` counts all bits of the element, as NumPy's names
//! do.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DType {
    /// Truth values, one byte each: 0 is false, 1 is true.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// IEEE half precision: 5 exponent bits, 10 fraction bits.
    F16,
    /// Brain float: 8 exponent bits, 7 fraction bits.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Complex of two `f32`: 64 bits.
    C64,
    /// Complex of two `f64`: 128 bits.
    C128,
    /// 8-bit float with 4 exponent bits and 3 fraction bits, without infinities (OCP's E4M3, `float8_e4m3fn`).
    F8E4M3,
    /// 8-bit float with 5 exponent bits and 2 fraction bits (OCP's E5M2, `float8_e5m2`).
    F8E5M2,
}

impl DType {
    /// Every dtype, in the order of declaration.
    pub const ALL: [DType; 17] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::U16,
        DType::I16,
        DType::U32,
        DType::I32,
        DType::U64,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
        DType::F8E4M3,
        DType::F8E5M2,
    ];

    /// Returns the size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Returns the name in this crate, which `Display` prints too.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::U16 => "u16",
            DType::I16 => "i16",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::U64 => "u64",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
        }
    }

    /// Returns the name in NumPy, or in `ml_dtypes` for the three types that NumPy does not have.
    pub const fn numpy_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::U16 => "uint16",
            DType::I16 => "int16",
            DType::U32 => "uint32",
            DType::I32 => "int32",
            DType::U64 => "uint64",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
            DType::F8E4M3 => "float8_e4m3fn",
            DType::F8E5M2 => "float8_e5m2",
        }
    }

    /// Returns whether the elements are real floating-point numbers of any width.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::F8E4M3 | DType::F8E5M2)
    }

    /// Returns whether the elements are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// Returns whether the elements are integers, signed or unsigned. [`DType::Bool`] is not one.
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// Returns whether the elements are signed integers.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    /// Parses Rust's name or NumPy's, in any case.
    fn from_str(text: &str) -> Result<DType> {
        let lower = text.trim().to_ascii_lowercase();
        let same = |dtype: &DType| lower == dtype.name() || lower == dtype.numpy_name();
        if let Some(dtype) = DType::ALL.into_iter().find(same) {
            return Ok(dtype);
        }
        // NumPy's `bool_` and the short names of the 8-bit floats.
        match lower.as_str() {
            "bool_" => Ok(DType::Bool),
            "f8e4m3fn" | "float8_e4m3" | "e4m3" => Ok(DType::F8E4M3),
            "float8e5m2" | "e5m2" => Ok(DType::F8E5M2),
            _ => Err(Error::invalid("reading a dtype", format_args!("'{text}'"), wanted())),
        }
    }
}

fn wanted() -> String {
    let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    format!("one of {} (NumPy's names, such as float32, work too)", names.join(", "))
}

/// Returns f32 for f16 and bf16, and any other dtype as it is.
pub(crate) fn wide_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_parse_and_the_first_is_printed() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
            assert_eq!(dtype.numpy_name().parse::<DType>().unwrap(), dtype);
            assert_eq!(dtype.name().to_uppercase().parse::<DType>().unwrap(), dtype);
            assert_eq!(dtype.to_string(), dtype.name());
        }
        assert_eq!("bool_".parse::<DType>().unwrap(), DType::Bool);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list() {
        for text in ["", "f4", "float", "c32", "f32[4]"] {
            let message = text.parse::<DType>().unwrap_err().to_string();
            assert!(message.contains(&format!("'{text}'")), "{message}");
            assert!(message.contains("bf16") && message.contains("c128"), "{message}");
        }
    }

    #[test]
    fn every_dtype_is_of_one_kind() {
        for dtype in DType::ALL {
            let kinds = [dtype == DType::Bool, dtype.is_integer(), dtype.is_float(), dtype.is_complex()];
            assert_eq!(kinds.into_iter().filter(|kind| *kind).count(), 1, "{dtype}");
        }
    }
}
