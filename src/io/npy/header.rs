//! The header of an `.npy` file: a short Python dict literal with the dtype, the order and the shape.
//!
//! `npyz` parses the literal, but it multiplies the dimensions unchecked, and its grammar backtracks without
//! bound on nested brackets. [`check_text`] therefore admits only harmless text: few bytes, few levels of
//! brackets, and plain decimal numbers whose product fits 64 bits. Every header that NumPy writes passes.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

use npyz::{Endianness, NpyHeader, Order, TypeChar, WriterBuilder};

use super::{file_error, legacy, read_error};
use crate::error::Error;
use crate::types::DType;

/// NumPy's own limit (`max_header_size`), which it has for the same reason.
const LONGEST: u64 = 10_000;
/// The levels of a structured dtype within a structured dtype; a plain dtype has two.
const DEEPEST: usize = 6;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The reason for refusing a header.
pub(in crate::io) enum Refusal {
    Unreadable(std::io::Error),
    Refused { found: String, wanted: String },
}

impl Refusal {
    /// Converts to the error of the file `name`.
    pub(in crate::io) fn into_error(self, name: &str) -> Error {
        match self {
            Refusal::Unreadable(error) => read_error(name, &error),
            Refusal::Refused { found, wanted } => file_error(name, found, wanted),
        }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        Refusal::Unreadable(error)
    }
}

fn refuse(found: impl Into<String>, wanted: impl Into<String>) -> Refusal {
    Refusal::Refused { found: found.into(), wanted: wanted.into() }
}

/// The element type that a file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::io) enum StoredDType {
    /// A dtype of NumPy.
    Named(DType),
    /// Raw bytes of this size, 1 or 2.
    Raw(usize),
}

impl StoredDType {
    /// Returns the dtype if only one is possible.
    pub(super) fn dtype(self) -> Option<DType> {
        match self {
            StoredDType::Named(dtype) => Some(dtype),
            StoredDType::Raw(2) => Some(DType::BF16),
            StoredDType::Raw(_) => None,
        }
    }

    /// Returns whether the elements can be read as this dtype.
    pub(super) fn holds(self, dtype: DType) -> bool {
        let bits = match (self, dtype) {
            (StoredDType::Raw(size), _) => Some(size),
            (StoredDType::Named(DType::U8), _) => Some(1),
            (StoredDType::Named(DType::U16), _) => Some(2),
            _ => None,
        };
        let unnamed = matches!(dtype, DType::BF16 | DType::F8E4M3 | DType::F8E5M2);
        self == StoredDType::Named(dtype) || (unnamed && bits == Some(dtype.size()))
    }
}

impl fmt::Display for StoredDType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredDType::Named(dtype) => write!(formatter, "{dtype}"),
            StoredDType::Raw(size) => write!(formatter, "raw bytes (V{size})"),
        }
    }
}

/// A checked header.
pub(in crate::io) struct Header {
    pub(super) stored: StoredDType,
    pub(super) shape: Vec<usize>,
    /// True if the first dimension varies fastest. It is false if both orders are the same.
    pub(super) column_major: bool,
    /// The offset of the elements in the file.
    pub(in crate::io) start: u64,
}

/// Reads the header of a file of `length` bytes.
pub(in crate::io) fn read(file: &mut impl Read, length: u64) -> Result<Header, Refusal> {
    let mut bytes = Vec::new();
    file.take(8).read_to_end(&mut bytes)?;
    let version = match bytes.get(6..8) {
        Some(version) if bytes.starts_with(MAGIC) => (version[0], version[1]),
        _ => {
            return Err(refuse(
                describe_other_format(&bytes, length),
                "an .npy file, which begins with \\x93NUMPY and a version",
            ));
        }
    };
    let size_bytes = match version {
        (1, 0) => 2,
        (2, 0) | (3, 0) => 4,
        (major, minor) => return Err(refuse(format!("version {major}.{minor}"), "version 1.0, 2.0 or 3.0")),
    };
    file.take(size_bytes).read_to_end(&mut bytes)?;
    let mut size = [0; 4];
    let size_field = &bytes[8..];
    if size_field.len() as u64 != size_bytes {
        return Err(refuse(
            format!("a truncated file: {length} bytes"),
            "the size of the header after the version",
        ));
    }
    size[..size_field.len()].copy_from_slice(size_field);
    let size = u64::from(u32::from_le_bytes(size));
    let start = 8 + size_bytes + size;
    if start > length {
        return Err(refuse(
            format!("a truncated file: {length} bytes"),
            format!("{start} bytes for the header alone"),
        ));
    }
    if size > LONGEST {
        return Err(refuse(
            format!("a header of {size} bytes"),
            format!("at most {LONGEST}, which is NumPy's limit too"),
        ));
    }

    let text_start = bytes.len();
    file.take(size).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < start {
        return Err(refuse(
            "a file that became shorter during reading",
            "a file that no other process writes",
        ));
    }
    check_text(&bytes[text_start..])?;
    if let Cow::Owned(text) = legacy::normalize(&bytes[text_start..]) {
        bytes.truncate(8);
        let size = text.len() as u32;
        bytes.extend_from_slice(&size.to_le_bytes()[..size_bytes as usize]);
        bytes.extend_from_slice(&text);
    }
    let header = NpyHeader::from_reader(bytes.as_slice())
        .map_err(|error| refuse(format!("a header that cannot be read ({error})"), dict()))?;
    let stored = stored_dtype(&header.dtype())?;
    let too_large = || refuse(format!("the shape {:?}", header.shape()), "dimensions that fit an address");
    let shape: Vec<usize> = header
        .shape()
        .iter()
        .map(|dimension| usize::try_from(*dimension))
        .collect::<Result<_, _>>()
        .map_err(|_| too_large())?;
    // With one dimension larger than 1 both orders are the same.
    let order_matters = shape.iter().filter(|dimension| **dimension != 1).count() > 1;
    let column_major = header.order() == Order::Fortran && order_matters;
    Ok(Header { stored, shape, column_major, start })
}

/// Returns the header of a row-major array, up to the first element.
pub(in crate::io) fn write(dtype: DType, shape: &[usize]) -> std::io::Result<Vec<u8>> {
    let typestring = match dtype {
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
    };
    let invalid = |error: npyz::ParseTypeStrError| std::io::Error::other(error.to_string());
    let dtype = npyz::DType::new_scalar(typestring.parse().map_err(invalid)?);
    let shape: Vec<u64> = shape.iter().map(|dimension| *dimension as u64).collect();
    npyz::WriteOptions::new_header_only().dtype(dtype).shape(&shape).writer(Vec::new()).write_header_only()
}

fn dict() -> String {
    "a dict of 'descr', 'fortran_order' and 'shape', as NumPy writes it".to_owned()
}

/// Describes files that users mistake for an `.npy` file.
fn describe_other_format(bytes: &[u8], length: u64) -> String {
    match bytes {
        [] => "an empty file".to_owned(),
        [b'P', b'K', 3 | 5, ..] => "a zip archive, perhaps an .npz with several arrays".to_owned(),
        [0x80, 2..=5, ..] => "a pickle".to_owned(),
        _ if MAGIC.starts_with(&bytes[..bytes.len().min(6)]) => format!("a truncated file: {length} bytes"),
        _ => format!("a file that begins with \"{}\"", bytes.escape_ascii()),
    }
}

/// Refuses text that `npyz` cannot parse safely; see the module's documentation.
fn check_text(text: &[u8]) -> Result<(), Refusal> {
    let odd = |problem: String| Err(refuse(format!("a header with {problem}"), dict()));
    if text.windows(3).any(|three| three == b"'''" || three == b"\"\"\"") || text.contains(&b'\\') {
        // Without these, a quote ends at the next quote of its kind, here and in the grammar.
        return odd("an escape or a triple quote".to_owned());
    }
    let mut depth = 0usize;
    let mut product = 1u64;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\'' | b'"' => match text[at..].iter().position(|other| *other == byte) {
                Some(length) => at += length + 1,
                None => return odd("a string without an end".to_owned()),
            },
            b'(' | b'[' | b'{' => {
                depth += 1;
                if depth > DEEPEST {
                    return odd(format!("more than {DEEPEST} levels of brackets"));
                }
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'0'..=b'9' => {
                let digits = 1 + text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = std::str::from_utf8(&text[at - 1..at - 1 + digits]).unwrap_or_default();
                at += digits - 1;
                // Python 2 writes an L after a long integer.
                let end = at + usize::from(text.get(at) == Some(&b'L'));
                if text
                    .get(end)
                    .is_some_and(|next| next.is_ascii_alphanumeric() || matches!(next, b'_' | b'.'))
                {
                    return odd("a number that is not a plain decimal".to_owned());
                }
                // Every number outside quotes is a dimension; a 0 must not hide the others.
                let next = number.parse::<u64>().ok().and_then(|number| product.checked_mul(number.max(1)));
                let Some(next) = next else {
                    let found = "a shape whose elements cannot be counted in 64 bits";
                    return Err(refuse(found, "dimensions whose product fits an address"));
                };
                product = next;
            }
            b'-' => return odd("a negative number".to_owned()),
            b'a'..=b'z' | b'A'..=b'Z' | b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => {}
            other => return odd(format!("the character '{}'", [other].escape_ascii())),
        }
    }
    Ok(())
}

/// Converts a dtype of NumPy.
fn stored_dtype(dtype: &npyz::DType) -> Result<StoredDType, Refusal> {
    let typestring = match dtype {
        npyz::DType::Plain(typestring) => typestring,
        npyz::DType::Record(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let found = format!("a structured dtype with the fields {}", names.join(", "));
            return Err(refuse(found, "elements of one plain dtype: save one field, array['name'], a file"));
        }
        npyz::DType::Array(..) => return Err(refuse("an array as element", "elements of one plain dtype")),
    };
    let size = typestring.size_field();
    let named = match (typestring.type_char(), size) {
        (TypeChar::Bool, 1) => DType::Bool,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Complex, 8) => DType::C64,
        (TypeChar::Complex, 16) => DType::C128,
        (TypeChar::RawData, 1 | 2) => return Ok(StoredDType::Raw(size as usize)),
        (TypeChar::Object, _) => {
            return Err(refuse(
                format!("Python objects ('{typestring}'), which only a pickle can hold"),
                "elements of one plain dtype: save array.astype(np.float32) or another numeric dtype",
            ));
        }
        _ => {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            return Err(refuse(
                format!("elements of NumPy's '{typestring}'"),
                format!("one of {}", names.join(", ")),
            ));
        }
    };
    if typestring.endianness() == Endianness::Big && size > 1 {
        return Err(refuse(
            format!("big-endian elements ('{typestring}')"),
            "little-endian ones: save array.astype(array.dtype.newbyteorder('<'))",
        ));
    }
    Ok(StoredDType::Named(named))
}
