//! [`TextFile`], the bytes of a text and their hash.

use std::fmt;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::io::npy::{Mapped, map_bytes, open_regular, read_failure};

/// A text's bytes, read or mapped from a file, and their SHA-256.
///
/// ```
/// use selvedge::nn::TextFile;
/// let text = TextFile::from_bytes("abc");
/// assert_eq!(text.hash(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct TextFile {
    contents: Contents,
    /// Computed when it is asked for first.
    hash: OnceLock<String>,
}

enum Contents {
    Memory(Vec<u8>),
    Mapped(Mapped),
}

impl TextFile {
    /// Creates a text of bytes.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> TextFile {
        TextFile::new(Contents::Memory(bytes.into()))
    }

    /// Reads a file into memory.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read or is no regular file, [`Error::OutOfMemory`].
    pub fn read(path: impl AsRef<Path>) -> Result<TextFile> {
        let path = path.as_ref();
        let (mut file, length) = open_regular(path, KIND)?;
        let mut bytes = Vec::new();
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes.try_reserve_exact(wanted).is_err() {
            return Err(Error::host_memory(wanted, format!("the text {}", path.display())));
        }
        file.read_to_end(&mut bytes)
            .map_err(|error| read_failure(&path.display().to_string(), KIND, &error))?;
        Ok(TextFile::from_bytes(bytes))
    }

    /// Maps a file into memory.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be mapped or is no regular file.
    ///
    /// # Safety
    ///
    /// No process may write or shorten the file while the text lives: bytes would change under a shared borrow, and reading
    /// past the new end ends the process.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<TextFile> {
        let path = path.as_ref();
        let (file, length) = open_regular(path, KIND)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // SAFETY: the caller guarantees that the file does not change.
        let mapped = unsafe { map_bytes(&file, 0, length) };
        let mapped = mapped.map_err(|error| read_failure(&path.display().to_string(), KIND, &error))?;
        Ok(TextFile::new(Contents::Mapped(mapped)))
    }

    fn new(contents: Contents) -> TextFile {
        TextFile { contents, hash: OnceLock::new() }
    }

    /// Returns the SHA-256 of the bytes in hexadecimal digits.
    pub fn hash(&self) -> &str {
        self.hash.get_or_init(|| format!("{:x}", Sha256::digest(self.contents.as_bytes())))
    }
}

const KIND: &str = "text";

impl Contents {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Contents::Memory(bytes) => bytes,
            Contents::Mapped(pages) => pages,
        }
    }
}

impl Deref for TextFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.contents.as_bytes()
    }
}

impl AsRef<[u8]> for TextFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for TextFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TextFile({} bytes, SHA-256 {})", self.len(), self.hash())
    }
}
