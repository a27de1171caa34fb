//! The header of an `.npy` file: a short Python dict literal with the dtype, the order and the shape.
//!
//! The text has at most [`MAX_TEXT_BYTES`], and is read only after the file proved to be as long.

use std::fmt;
use std::io::Read;

use super::dictionary::{self, Dictionary};
use super::{file_error, read_error, type_string};
use crate::error::Error;
use crate::types::DType;

/// NumPy's own limit on the text of a header (`max_header_size`).
const MAX_TEXT_BYTES: u64 = 10_000;

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

pub(super) fn refuse(found: impl Into<String>, wanted: impl Into<String>) -> Refusal {
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
    if size > MAX_TEXT_BYTES {
        return Err(refuse(
            format!("a header of {size} bytes"),
            format!("at most {MAX_TEXT_BYTES}, which is NumPy's limit too"),
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
    let Dictionary { descr, fortran_order, shape } = dictionary::parse(&bytes[text_start..])?;
    let stored = type_string::parse(descr)?;
    // With one dimension larger than 1 both orders are the same.
    let order_matters = shape.iter().filter(|dimension| **dimension != 1).count() > 1;
    let column_major = fortran_order && order_matters;
    Ok(Header { stored, shape, column_major, start })
}

/// The alignment of the first element in the file, in bytes, as NumPy has it.
const ALIGNMENT: usize = 64;

/// Returns the header of a row-major array, up to the first element.
pub(in crate::io) fn write(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let descr = type_string::of(dtype);
    let dimensions: String = shape.iter().map(|dimension| format!("{dimension}, ")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    // The text ends with a line break before a multiple of the alignment.
    let pad = |text: &mut String, before: usize| {
        let length = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
        text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
        text.push('\n');
    };
    let mut bytes = MAGIC.to_vec();
    if text.len() + ALIGNMENT <= usize::from(u16::MAX) {
        pad(&mut text, 10);
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
    } else {
        pad(&mut text, 12);
        bytes.extend([2, 0]);
        bytes.extend((text.len() as u32).to_le_bytes());
    }
    bytes.extend(text.as_bytes());
    bytes
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
