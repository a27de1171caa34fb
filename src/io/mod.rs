//! Arrays and saved states in files.
//!
//! [`HostArray`] holds the contents of a file: a dtype, a shape and the elements in row-major order, in host
//! memory. [`npy`] and [`npz`] read and write it; [`safetensors`] reads it. This module knows neither devices
//! nor tensors: its readers and writers take and return slices.

mod archive_file;
mod array;
pub(crate) mod new_file;
pub mod npy;
pub mod npz;
mod parallel_read;
pub mod safetensors;
pub(crate) mod state_file;

use std::io::Write;
use std::path::Path;

pub use array::HostArray;

use crate::error::Result;

/// Writes a file of these bytes. The file gets its name when it is whole; until then the path keeps what it holds, and a
/// replaced file's permissions stay. Symbolic links are followed; a device or a pipe is written through.
///
/// ```
/// let path = std::env::temp_dir().join(format!("selvedge-doc-write-{}.txt", std::process::id()));
/// selvedge::io::write_file(&path, b"42")?;
/// assert_eq!(std::fs::read(&path).unwrap_or_default(), b"42");
/// # let _ = std::fs::remove_file(&path);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`FileNotWritten`](crate::Error::FileNotWritten) if the path is a folder or may not be written, or the disk is full.
pub fn write_file(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let write = || {
        let mut file = new_file::NewFile::create(path)?;
        file.write_all(bytes)?;
        file.finish_without_sync()
    };
    write().map_err(|error| {
        let wanted = format!("a writable path with {} bytes of free space", bytes.len());
        new_file::write_error(path, &error, wanted)
    })
}
