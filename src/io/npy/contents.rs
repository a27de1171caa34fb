//! [`Contents`], what an array in a file is before its elements are read.

use super::header::{Header, Stored};
use crate::error::{Error, Result};
use crate::io::array::{byte_count, describe, too_large};
use crate::types::DType;

/// What an `.npy` file, or a member of an `.npz`, says that it holds: as many bytes of elements as there are.
#[derive(Debug)]
pub struct Contents {
    /// The file, and the member where there is one, as errors name it.
    pub(in crate::io) name: String,
    stored: Stored,
    named: Option<DType>,
    shape: Vec<usize>,
    column_major: bool,
    bytes: usize,
}

impl Contents {
    /// Holds what the header promises against the bytes of elements that are there.
    pub(in crate::io) fn new(name: String, header: Header, present: u64) -> Result<Contents> {
        // One byte an element stands for a dtype that still has to be named.
        let dtype = header.stored.dtype().unwrap_or(DType::U8);
        let Header { stored, shape, column_major, .. } = header;
        let what = describe(dtype, &shape);
        let bytes = byte_count(dtype, &shape).ok_or_else(|| refused(&name, &what, too_large()))?;
        let extra = present.checked_sub(bytes as u64);
        if extra != Some(0) {
            let (found, wanted) = match extra {
                None => (
                    format!("a truncated file: {present} bytes of elements"),
                    format!("{bytes} bytes for {what}"),
                ),
                Some(extra) => {
                    (format!("{extra} bytes after the elements"), format!("exactly {bytes} bytes for {what}"))
                }
            };
            return Err(refused(&name, found, wanted));
        }
        Ok(Contents { name, stored, named: None, shape, column_major, bytes })
    }

    /// See [`NpyFile::with_dtype`](super::NpyFile::with_dtype).
    pub(in crate::io) fn name_dtype(&mut self, dtype: DType) -> Result<()> {
        if !self.stored.holds(dtype) {
            return Err(Error::DTypeMismatch {
                operation: "reading an .npy file",
                wanted: dtype.to_string(),
                found: format!("{} in {}", self.stored, self.name),
            });
        }
        self.named = Some(dtype);
        Ok(())
    }

    /// The elements' type.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file holds raw bytes that could be several types and none was named.
    pub fn dtype(&self) -> Result<DType> {
        self.named.or_else(|| self.stored.dtype()).ok_or_else(|| {
            let wanted = "its dtype said beside it (f8e4m3 or f8e5m2), because the file does not name it";
            refused(&self.name, self.stored, wanted)
        })
    }

    /// The dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    pub fn len(&self) -> usize {
        // `new` has checked that this product fits.
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all elements.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Whether the elements lie column by column (Fortran's order): the first dimension varies fastest. Never said where
    /// it makes no difference.
    pub fn is_column_major(&self) -> bool {
        self.column_major
    }

    /// # Errors
    ///
    /// [`Error::File`] for elements that are column by column.
    pub(in crate::io) fn check_row_major(&self) -> Result<()> {
        if !self.column_major {
            return Ok(());
        }
        let found = format!("Fortran (column-major) order, of shape {:?}", self.shape);
        Err(refused(&self.name, found, "row-major order: save np.ascontiguousarray(array)"))
    }
}

/// What a failed access to a file found.
pub(in crate::io) fn broken(name: &str, error: &std::io::Error) -> Error {
    let found = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::UnexpectedEof => "that it ended while it was read".to_owned(),
        _ => format!("that it cannot be read: {error}"),
    };
    refused(name, found, "a readable .npy file")
}

pub(in crate::io) fn refused(
    name: &str,
    found: impl std::fmt::Display,
    wanted: impl std::fmt::Display,
) -> Error {
    Error::File { path: name.to_owned(), found: found.to_string(), wanted: wanted.to_string() }
}
