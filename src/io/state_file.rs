//! Versioned binary files with a checksum: the saved states of runs.
//!
//! Layout, little-endian: a magic number of 8 bytes, the version as u32, 0 as u32, the contents that a module defines, and the
//! SHA-256 of everything before it.
//!
//! [`save`] writes a [`NewFile`], so a regular file appears whole or not at all. Files are untrusted: [`StateReader`] compares a count with the bytes that are left before it allocates memory of that size.
//!
//! Tests: `tests/burst/simulation.rs`, `tests/srt/evolver.rs`.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use bytemuck::Pod;
use sha2::{Digest, Sha256};

use super::new_file::{NewFile, write_error};
use crate::error::{Error, Result};

const CHECKSUM_BYTES: u64 = 32;

/// A kind of state files.
pub(crate) struct StateFileKind {
    pub magic: [u8; 8],
    /// The version that is written.
    pub version: u32,
    /// The oldest version that is read.
    pub oldest: u32,
    /// The name in errors, such as ".burst file".
    pub name: &'static str,
}

/// A writer that hashes.
pub(crate) struct StateWriter {
    file: NewFile,
    hash: Sha256,
}

impl StateWriter {
    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.file.write_all(bytes)
    }

    /// Writes the elements, without their count.
    pub fn array<T: Pod>(&mut self, array: &[T]) -> std::io::Result<()> {
        self.bytes(bytemuck::cast_slice(array))
    }
}

/// Writes a file whose contents `contents` writes.
///
/// # Errors
///
/// [`Error::FileNotWritten`]. A file that had the name stays.
pub(crate) fn save(
    path: &Path,
    kind: &StateFileKind,
    contents: impl FnOnce(&mut StateWriter) -> std::io::Result<()>,
) -> Result<()> {
    let written = || -> std::io::Result<()> {
        let mut writer = StateWriter { file: NewFile::create(path)?, hash: Sha256::new() };
        writer.bytes(&kind.magic)?;
        writer.array(&[kind.version, 0])?;
        contents(&mut writer)?;
        let checksum = writer.hash.finalize_reset();
        writer.file.write_all(&checksum)?;
        writer.file.finish()
    };
    written().map_err(|error| write_error(path, &error, "a writable path with enough free space"))
}

fn file_error(path: &Path, found: impl std::fmt::Display, wanted: impl Into<String>) -> Error {
    Error::File { path: path.display().to_string(), found: found.to_string(), wanted: wanted.into() }
}

/// A reader that hashes and knows how many bytes are left before the checksum.
pub(crate) struct StateReader<'a> {
    path: &'a Path,
    kind: &'a StateFileKind,
    file: BufReader<File>,
    hash: Sha256,
    left: u64,
}

impl StateReader<'_> {
    /// Opens a file of this kind. Returns its contents and its version.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read, or is of another kind or version.
    pub fn open<'a>(path: &'a Path, kind: &'a StateFileKind) -> Result<(StateReader<'a>, u32)> {
        let unreadable =
            |error: std::io::Error| file_error(path, error, format!("a {} that can be read", kind.name));
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let left = length
            .checked_sub(CHECKSUM_BYTES)
            .ok_or_else(|| file_error(path, format!("{length} bytes"), format!("a {}", kind.name)))?;
        let mut reader = StateReader { path, kind, file: BufReader::new(file), hash: Sha256::new(), left };
        if reader.array::<u8>("magic", 8)? != kind.magic {
            return Err(reader.error("another kind of file", format!("a {}", kind.name)));
        }
        let version = reader.array::<u32>("version", 2)?[0];
        if !(kind.oldest..=kind.version).contains(&version) {
            let found = format!("version {version} of the format");
            let wanted = match kind.oldest == kind.version {
                true => format!("version {}", kind.version),
                false => format!("versions {} to {}", kind.oldest, kind.version),
            };
            return Err(reader.error(found, wanted));
        }
        Ok((reader, version))
    }

    /// Returns an error that names the file.
    pub fn error(&self, found: impl std::fmt::Display, wanted: impl Into<String>) -> Error {
        file_error(self.path, found, wanted)
    }

    /// Reads so many elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if fewer bytes are left, or reading fails; [`Error::OutOfMemory`].
    pub fn array<T: Pod>(&mut self, subject: &str, count: u64) -> Result<Vec<T>> {
        let bytes = count.checked_mul(size_of::<T>() as u64).filter(|&bytes| bytes <= self.left);
        let Some(bytes) = bytes else {
            let found = format!("{count} elements for the {subject}, but only {} bytes left", self.left);
            return Err(self.error(found, format!("a whole {}", self.kind.name)));
        };
        let mut array: Vec<T> = Vec::new();
        if array.try_reserve_exact(count as usize).is_err() {
            return Err(Error::host_memory(bytes as usize, format!("the {subject} of a {}", self.kind.name)));
        }
        array.resize(count as usize, T::zeroed());
        let view: &mut [u8] = bytemuck::cast_slice_mut(&mut array);
        self.file
            .read_exact(view)
            .map_err(|error| file_error(self.path, error, "a file that can be read"))?;
        self.hash.update(&*view);
        self.left -= bytes;
        Ok(array)
    }

    /// Reads `COUNT` numbers.
    ///
    /// # Errors
    ///
    /// As [`array`](Self::array).
    pub fn numbers<const COUNT: usize>(&mut self, subject: &str) -> Result<[u64; COUNT]> {
        let numbers = self.array::<u64>(subject, COUNT as u64)?;
        Ok(std::array::from_fn(|at| numbers[at]))
    }

    /// Checks that the contents end here, and the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn finish(mut self) -> Result<()> {
        if self.left != 0 {
            let found = format!("{} bytes too many", self.left);
            return Err(self.error(found, format!("a whole {}", self.kind.name)));
        }
        let mut checksum = [0; CHECKSUM_BYTES as usize];
        self.file.read_exact(&mut checksum).map_err(|error| {
            file_error(self.path, error, format!("a {} that can be read", self.kind.name))
        })?;
        if self.hash.finalize_reset()[..] != checksum {
            let wanted = format!("an undamaged {}", self.kind.name);
            return Err(self.error("a checksum that does not match", wanted));
        }
        Ok(())
    }
}
