//! [`Contents`], the header of an array in a file.

use super::header::{Header, StoredDType};
use crate::error::{Error, Result};
use crate::io::array::{byte_count, describe, too_large};
use crate::types::DType;

/// The dtype, shape and order of the array in an `.npy` file or a member of an `.npz`, checked against the
/// number of bytes that follow the header.
#[derive(Debug)]
pub struct Contents {
    /// The file, and the member if there is one, for error messages.
    pub(in crate::io) name: String,
    stored: StoredDType,
    named: Option<DType>,
    shape: Vec<usize>,
    column_major: bool,
    bytes: usize,
}

impl Contents {
    /// Checks the header against the bytes of elements that are present.
    pub(in crate::io) fn new(name: String, header: Header, present: u64) -> Result<Contents> {
        // A dtype that the caller must still name counts as one byte an element.
        let dtype = header.stored.dtype().unwrap_or(DType::U8);
        let Header { stored, shape, column_major, .. } = header;
        let described = describe(dtype, &shape);
        let bytes = byte_count(dtype, &shape).ok_or_else(|| file_error(&name, &described, too_large()))?;
        let extra = present.checked_sub(bytes as u64);
        if extra != Some(0) {
            let (found, wanted) = match extra {
                None => (
                    format!("a truncated file: {present} bytes of elements"),
                    format!("{bytes} bytes for {described}"),
                ),
                Some(extra) => (
                    format!("{extra} bytes after the elements"),
                    format!("exactly {bytes} bytes for {described}"),
                ),
            };
            return Err(file_error(&name, found, wanted));
        }
        Ok(Contents { name, stored, named: None, shape, column_major, bytes })
    }

    /// Sets the element type; see [`NpyFile::with_dtype`](super::NpyFile::with_dtype).
    pub(in crate::io) fn set_dtype(&mut self, dtype: DType) -> Result<()> {
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

    /// Returns the element type.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file holds raw bytes of several possible types and none was named.
    pub fn dtype(&self) -> Result<DType> {
        self.named.or_else(|| self.stored.dtype()).ok_or_else(|| {
            let wanted = "an explicit dtype (f8e4m3 or f8e5m2), which the file does not name";
            file_error(&self.name, self.stored, wanted)
        })
    }

    /// Returns the dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        // `new` has checked that this product fits.
        self.shape.iter().product()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all elements.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Returns whether the elements are in column-major (Fortran) order: the first dimension varies fastest.
    /// It is false if both orders are the same.
    pub fn is_column_major(&self) -> bool {
        self.column_major
    }

    /// Checks that the elements are in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for elements in column-major order.
    pub(in crate::io) fn check_row_major(&self) -> Result<()> {
        if !self.column_major {
            return Ok(());
        }
        let found = format!("Fortran (column-major) order, of shape {:?}", self.shape);
        Err(file_error(&self.name, found, "row-major order: save np.ascontiguousarray(array)"))
    }
}

/// Returns the error of a failed access to an `.npy` file.
pub(crate) fn read_error(name: &str, error: &std::io::Error) -> Error {
    read_failure(name, ".npy", error)
}

/// Returns the error of a failed access to a file of this kind.
pub(crate) fn read_failure(name: &str, kind: &str, error: &std::io::Error) -> Error {
    let found = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::UnexpectedEof => "an unexpected end of the file".to_owned(),
        _ => format!("a read error: {error}"),
    };
    file_error(name, found, format!("a readable {kind} file"))
}

pub(crate) fn file_error(name: &str, found: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Error {
    Error::File { path: name.to_owned(), found: found.to_string(), wanted: wanted.to_string() }
}
