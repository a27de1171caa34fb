//! NumPy's type strings (`<f4`), and the other spellings of an element type that `numpy.dtype` accepts (`f4`,
//! `=f4`, `?`, `float32`, `d`).

use super::dictionary::quoted;
use super::header::{Refusal, StoredDType, refuse};
use crate::types::DType;

/// Returns the type string of a dtype. NumPy has none for `bf16` and the 8-bit floats: they are raw bytes.
pub(super) fn of(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::I16 => "<i2",
        DType::U32 => "<u4",
        DType::I32 => "<i4",
        DType::U64 => "<u8",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::BF16 => "<V2",
        DType::F8E4M3 | DType::F8E5M2 => "|V1",
    }
}

/// Parses a type string.
///
/// # Errors
///
/// A refusal of big-endian elements, Python objects, and elements that are not of a [`DType`].
pub(super) fn parse(string: &[u8]) -> Result<StoredDType, Refusal> {
    let (order, name) = match string.split_first() {
        Some((order @ (b'<' | b'>' | b'|' | b'='), name)) => (*order, name),
        _ => (b'=', string),
    };
    let stored = match name {
        b"?" | b"b1" | b"bool" | b"bool_" => StoredDType::Named(DType::Bool),
        b"b" | b"i1" | b"int8" | b"byte" => StoredDType::Named(DType::I8),
        b"B" | b"u1" | b"uint8" | b"ubyte" => StoredDType::Named(DType::U8),
        b"h" | b"i2" | b"int16" | b"short" => StoredDType::Named(DType::I16),
        b"H" | b"u2" | b"uint16" | b"ushort" => StoredDType::Named(DType::U16),
        b"i" | b"i4" | b"int32" | b"intc" => StoredDType::Named(DType::I32),
        b"I" | b"u4" | b"uint32" | b"uintc" => StoredDType::Named(DType::U32),
        b"q" | b"i8" | b"int64" | b"longlong" | b"p" | b"intp" | b"int" => StoredDType::Named(DType::I64),
        b"Q" | b"u8" | b"uint64" | b"ulonglong" | b"P" | b"uintp" => StoredDType::Named(DType::U64),
        // C's `long`, which has 4 bytes on Windows.
        b"l" | b"long" => StoredDType::Named(if LONG_HAS_8_BYTES { DType::I64 } else { DType::I32 }),
        b"L" | b"ulong" => StoredDType::Named(if LONG_HAS_8_BYTES { DType::U64 } else { DType::U32 }),
        b"e" | b"f2" | b"float16" | b"half" => StoredDType::Named(DType::F16),
        b"f" | b"f4" | b"float32" | b"single" => StoredDType::Named(DType::F32),
        b"d" | b"f8" | b"float64" | b"double" | b"float" => StoredDType::Named(DType::F64),
        b"F" | b"c8" | b"complex64" | b"csingle" => StoredDType::Named(DType::C64),
        b"D" | b"c16" | b"complex128" | b"cdouble" | b"complex" => StoredDType::Named(DType::C128),
        b"V1" => StoredDType::Raw(1),
        b"V2" => StoredDType::Raw(2),
        b"O" => {
            return Err(refuse(
                format!("a header with Python objects ({}), which only a pickle can hold", quoted(string)),
                "elements of one plain dtype: save array.astype(np.float32) or another numeric dtype",
            ));
        }
        _ => {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            return Err(refuse(
                format!("a header with elements of type {}", quoted(string)),
                format!("NumPy's type string ('<f4') of one of {}", names.join(", ")),
            ));
        }
    };
    // The order of raw bytes has no meaning.
    let has_order = matches!(stored, StoredDType::Named(dtype) if dtype.size() > 1);
    if has_order && (order == b'>' || (cfg!(target_endian = "big") && order != b'<')) {
        return Err(refuse(
            format!("big-endian elements ({})", quoted(string)),
            "little-endian ones: save array.astype(array.dtype.newbyteorder('<'))",
        ));
    }
    Ok(stored)
}

const LONG_HAS_8_BYTES: bool = size_of::<std::ffi::c_long>() == 8;
