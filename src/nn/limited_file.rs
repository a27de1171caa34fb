//! [`read_limited`], the bytes of a file that is small if it is what it claims to be.

use std::io::Read;
use std::path::Path;

use crate::error::Result;
use crate::io::npy::{file_error, open_regular, read_failure};

/// Reads a regular file of at most `most` bytes. `kind` names it in errors.
///
/// # Errors
///
/// [`Error::File`](crate::Error::File) for a file that is missing, is no regular one, is longer, or cannot be read.
pub(in crate::nn) fn read_limited(path: &Path, kind: &str, most: u64) -> Result<Vec<u8>> {
    let name = path.display().to_string();
    let (file, length) = open_regular(path, kind)?;
    if length > most {
        return Err(file_error(&name, format!("{length} bytes"), format!("at most {most} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|error| read_failure(&name, kind, &error))?;
    Ok(bytes)
}
