//! NumPy's `.npy` files.
//!
//! Files are untrusted. The reader parses the header (`header`, `dictionary`, `type_string`) within NumPy's own
//! limit on its size, and compares the size in the header with the file's length before it allocates memory of
//! that size. It then reads the elements straight into the returned array, so memory holds them once.
//!
//! The reader accepts headers that NumPy reads but no longer writes (`f4`, `=f4`, `?`, `float32`, `(2L,)`).
//!
//! Supported files have version 1.0, 2.0 or 3.0 and little-endian elements of a [`DType`]. [`NpyFile::read`]
//! needs row-major order; [`Elements`] returns column-major elements in storage order too. NumPy has no dtype
//! for three of the types. selvedge stores them as `ml_dtypes` does, as raw bytes: `<V2` reads as `bf16`, the
//! only 2-byte type of that package. `|V1` may be either 8-bit float, so [`NpyFile::with_dtype`] must name
//! it. The same call reads unsigned integers of that size, the view that plain NumPy offers. In Python,
//! `np.load(path).view(ml_dtypes.bfloat16)` restores the type. (`float8_e5m2` itself saves as `<f1`, which
//! NumPy cannot load either: save `array.view(np.uint8)`.)

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::HostArray;
use super::array::{byte_count, describe, too_large};
use super::new_file::{self, NewFile};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

mod contents;
mod dictionary;
pub(super) mod header;
mod type_string;

pub use contents::Contents;
pub(crate) use contents::{file_error, read_error, read_failure};

/// The bytes read or written between two reports of progress.
const CHUNK: usize = 8 << 20;

/// An open `.npy` file with a valid header and the length that the header implies. Its elements are not read
/// yet. It dereferences to its [`Contents`]: dtype, shape and order.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    file: File,
    contents: Contents,
    start: u64,
}

impl NpyFile {
    /// Opens a file, checks its header, and checks its length against the header.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be opened, is not an `.npy` file, is truncated, has extra bytes, or
    /// holds unsupported elements: big-endian ones, objects, fields, another dtype.
    pub fn open(path: impl AsRef<Path>) -> Result<NpyFile> {
        let path = path.as_ref().to_owned();
        let name = path.display().to_string();
        let (mut file, length) = open_regular(&path, ".npy")?;
        let header = header::read(&mut file, length).map_err(|refusal| refusal.into_error(&name))?;
        let start = header.start;
        let contents = Contents::new(name, header, length.saturating_sub(start))?;
        Ok(NpyFile { path, file, contents, start })
    }

    /// Sets the element type. It checks a dtype that the file names, and interprets raw bytes or unsigned
    /// integers of the same size as `bf16` or an 8-bit float.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] if the file holds elements of another type.
    pub fn with_dtype(mut self, dtype: DType) -> Result<NpyFile> {
        self.contents.set_dtype(dtype)?;
        Ok(self)
    }

    /// Returns the file's path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset of the first element in the file, in bytes.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Reads the elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read, became shorter, or is in [column-major
    /// order](Contents::is_column_major); the errors of [`Contents::dtype`] and [`HostArray::zeros`].
    pub fn read(&mut self) -> Result<HostArray> {
        self.read_with(&mut |_, _| {})
    }

    /// Reads the elements and calls `progress` every few megabytes with the bytes read so far and the total.
    ///
    /// # Errors
    ///
    /// As [`NpyFile::read`].
    pub fn read_with(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<HostArray> {
        self.contents.check_row_major()?;
        let mut array = HostArray::zeros(self.dtype()?, self.shape())?;
        let mut elements = self.elements()?;
        read_all(array.as_bytes_mut(), &mut |chunk| elements.read(chunk), progress)?;
        Ok(array)
    }

    /// Returns a reader of the elements' bytes in storage order, from the first element.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read.
    pub fn elements(&mut self) -> Result<Elements<'_>> {
        self.file
            .seek(SeekFrom::Start(self.start))
            .map_err(|error| read_error(&self.contents.name, &error))?;
        Ok(Elements { name: &self.contents.name, reader: Box::new(&mut self.file) })
    }

    /// Maps the elements into memory. The system reads a page at its first access.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the system cannot map the file.
    ///
    /// # Safety
    ///
    /// No process may write or shorten the file while the mapping lives: bytes would change under a shared
    /// borrow, and reading past the new end ends the process.
    pub unsafe fn map(&self) -> Result<Mapped> {
        // SAFETY: the caller guarantees that the file does not change.
        let mapped = unsafe { map_bytes(&self.file, self.start, self.contents.byte_count()) };
        mapped.map_err(|error| read_error(&self.contents.name, &error))
    }
}

impl Deref for NpyFile {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

/// The mapped pages of a file's elements; see [`NpyFile::map`] and
/// [`SafetensorsArray::map`](super::safetensors::SafetensorsArray::map).
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Maps so many bytes of a file, from `start` on.
///
/// # Safety
///
/// As [`NpyFile::map`].
pub(crate) unsafe fn map_bytes(file: &File, start: u64, bytes: usize) -> std::io::Result<Mapped> {
    // Systems refuse a mapping of no bytes.
    if bytes == 0 {
        return Ok(Mapped(None));
    }
    // SAFETY: the caller guarantees that the file does not change.
    let map = unsafe { memmap2::MmapOptions::new().offset(start).len(bytes).map(file) };
    map.map(|map| Mapped(Some(map)))
}

/// A reader of an array's elements, in storage order.
pub struct Elements<'a> {
    pub(super) name: &'a str,
    pub(super) reader: Box<dyn Read + 'a>,
}

impl Elements<'_> {
    /// Fills `bytes` with the next bytes of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read or ends early.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.reader.read_exact(bytes).map_err(|error| read_error(self.name, &error))
    }
}

impl std::fmt::Debug for Elements<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Elements of {}", self.name)
    }
}

/// Opens a regular file. A pipe has no known length.
pub(crate) fn open_regular(path: &Path, kind: &str) -> Result<(File, u64)> {
    let name = path.display().to_string();
    let opened = || -> std::io::Result<(File, std::fs::Metadata)> {
        // Opening a pipe would block until its other end opens, so the metadata is read first.
        let metadata = std::fs::metadata(path)?;
        Ok((File::open(path)?, metadata))
    };
    let (file, metadata) = opened().map_err(|error| read_failure(&name, kind, &error))?;
    if !metadata.is_file() {
        let found =
            if metadata.is_dir() { "a folder" } else { "a pipe or a device, whose length is not known" };
        return Err(file_error(&name, found, format!("a regular {kind} file")));
    }
    Ok((file, metadata.len()))
}

/// Fills `bytes` in chunks and reports progress after each.
pub(super) fn read_all(
    bytes: &mut [u8],
    read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let total = bytes.len() as u64;
    let mut done = 0;
    for chunk in bytes.chunks_mut(CHUNK) {
        read(chunk)?;
        done += chunk.len() as u64;
        progress(done, total);
    }
    Ok(())
}

/// Reads a file whose header names the dtype.
///
/// # Errors
///
/// As [`NpyFile::open`] and [`NpyFile::read`].
///
/// ```
/// # fn main() -> selvedge::Result<()> {
/// use selvedge::io::{HostArray, npy};
///
/// let path = std::env::temp_dir().join(format!("selvedge-doc-{}.npy", std::process::id()));
/// npy::write(&path, &HostArray::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?)?;
/// let array = npy::read(&path)?;
/// assert_eq!(array.shape(), [2, 2]);
/// assert_eq!(array.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # let _ = std::fs::remove_file(&path);
/// # Ok(())
/// # }
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<HostArray> {
    NpyFile::open(path)?.read()
}

/// Reads a file as this dtype; see [`NpyFile::with_dtype`].
///
/// # Errors
///
/// As [`NpyFile::open`], [`NpyFile::with_dtype`] and [`NpyFile::read`].
pub fn read_as(path: impl AsRef<Path>, dtype: DType) -> Result<HostArray> {
    NpyFile::open(path)?.with_dtype(dtype)?.read()
}

/// Writes an array and replaces an existing file.
///
/// # Errors
///
/// [`Error::FileNotWritten`]. A failed write leaves what the path held.
pub fn write(path: impl AsRef<Path>, array: &HostArray) -> Result<()> {
    write_bytes(path.as_ref(), array.dtype(), array.shape(), array.as_bytes())
}

/// Writes elements in row-major order without copying them first.
///
/// # Errors
///
/// [`Error::LengthMismatch`] if the shape has another number of elements; the errors of [`write()`].
pub fn write_slice<T: Element>(path: impl AsRef<Path>, elements: &[T], shape: &[usize]) -> Result<()> {
    let wanted = byte_count(T::DTYPE, shape)
        .ok_or_else(|| Error::invalid("writing an .npy file", describe(T::DTYPE, shape), too_large()))?;
    if wanted != size_of_val(elements) {
        return Err(Error::LengthMismatch {
            operation: "writing an .npy file of this shape",
            wanted: wanted / T::DTYPE.size(),
            found: elements.len(),
        });
    }
    write_bytes(path.as_ref(), T::DTYPE, shape, bytemuck::cast_slice(elements))
}

fn write_bytes(path: &Path, dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let mut file = NpyWriter::create(path, dtype, shape)?;
    file.write(bytes)?;
    file.finish()
}

/// Returns the header of a file with a row-major array, up to the first element.
pub(crate) fn header_bytes(dtype: DType, shape: &[usize]) -> Vec<u8> {
    header::write(dtype, shape)
}

/// An `.npy` file open for writing. [`create`](Self::create) writes the header, and [`write`](Self::write)
/// the elements in any number of calls. The path gets the file at [`finish`](Self::finish); a writer that is
/// dropped before leaves what the path held.
#[derive(Debug)]
pub struct NpyWriter {
    path: PathBuf,
    file: NewFile,
    dtype: DType,
    shape: Vec<usize>,
    /// The bytes that are still missing.
    left: usize,
}

impl NpyWriter {
    /// Creates a file and writes the header of a row-major array.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`], [`Error::InvalidArgument`] for more bytes than an array
    /// can have.
    pub fn create(path: impl AsRef<Path>, dtype: DType, shape: &[usize]) -> Result<NpyWriter> {
        let path = path.as_ref().to_owned();
        let left = byte_count(dtype, shape)
            .ok_or_else(|| Error::invalid("writing an .npy file", describe(dtype, shape), too_large()))?;
        let open = || -> std::io::Result<NewFile> {
            let header = header::write(dtype, shape);
            let mut file = NewFile::create(&path)?;
            file.write_all(&header)?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(NpyWriter { path, file, dtype, shape: shape.to_vec(), left }),
            Err(error) => Err(write_error(&path, dtype, shape, &error)),
        }
    }

    /// Writes the next bytes of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] if they cannot be written, [`Error::LengthMismatch`] if the array has fewer.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            let operation = "writing the last bytes of an .npy file";
            return Err(Error::LengthMismatch { operation, wanted: self.left, found: bytes.len() });
        };
        let written = self.file.write_all(bytes);
        written.map_err(|error| write_error(&self.path, self.dtype, &self.shape, &error))?;
        self.left = left;
        Ok(())
    }

    /// Completes the file and gives it its name. It replaces what the path held. All elements must have been written.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn finish(self) -> Result<()> {
        if self.left > 0 {
            let operation = "ending an .npy file: missing bytes";
            return Err(Error::LengthMismatch { operation, wanted: 0, found: self.left });
        }
        let NpyWriter { path, file, dtype, shape, .. } = self;
        file.finish_without_sync().map_err(|error| write_error(&path, dtype, &shape, &error))
    }
}

fn write_error(path: &Path, dtype: DType, shape: &[usize], error: &std::io::Error) -> Error {
    let bytes = byte_count(dtype, shape).unwrap_or(0);
    let wanted = format!("a writable path with {bytes} bytes of free space for {}", describe(dtype, shape));
    new_file::write_error(path, error, wanted)
}
