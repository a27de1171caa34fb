//! NumPy's `.npy` files, read and written with `npyz`.
//!
//! A file is not trusted: its header is looked at (`header`) before `npyz` parses it, the number of bytes that it
//! promises is held against the file's length before anything of that size is allocated, and then the elements are read
//! straight into the array that is returned, so that memory holds them once.
//!
//! Headers that NumPy reads but no longer writes (`f4`, `=f4`, `?`, `float32`, `(2L,)`) are taken too (`dialect`).
//!
//! What is taken: versions 1.0, 2.0 and 3.0; row-major order, and column-major order by who reads the [`Elements`] as
//! they lie; little-endian elements of every [`DType`]. NumPy has no
//! dtype for three of them. They are stored as `ml_dtypes` stores them, as raw bytes: `<V2` reads as `bf16`, which is the
//! only 2-byte type of that package; `|V1` may be either 8-bit float, so [`NpyFile::with_dtype`] has to say which. The same
//! call reads unsigned integers of that size, the view that plain NumPy offers. In Python, `np.load(path).view(ml_dtypes.bfloat16)`
//! gives the type back. (`float8_e5m2` itself saves as `<f1`, which NumPy cannot load either: save `array.view(np.uint8)`.)

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::HostArray;
use super::array::{byte_count, describe, too_large};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

mod contents;
mod dialect;
pub(super) mod header;

pub use contents::Contents;
pub(super) use contents::{broken, refused};

/// Bytes read or written at a time, between two reports of progress.
const CHUNK: usize = 8 << 20;

/// An open `.npy` file whose header is good and whose length is what the header promises. The elements are not read yet.
/// What they are, its [`Contents`] tell.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    file: File,
    contents: Contents,
    start: u64,
}

impl NpyFile {
    /// Opens a file and checks its header, and its length against the header.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a file that cannot be opened, is no `.npy` file, is truncated, has bytes left over, or holds what
    /// this crate does not take: big-endian elements, objects, fields, another dtype.
    pub fn open(path: impl AsRef<Path>) -> Result<NpyFile> {
        let path = path.as_ref().to_owned();
        let name = path.display().to_string();
        let (mut file, length) = open_regular(&path, ".npy")?;
        let header = header::read(&mut file, length).map_err(|refusal| refusal.of(&name))?;
        let start = header.start;
        let contents = Contents::new(name, header, length.saturating_sub(start))?;
        Ok(NpyFile { path, file, contents, start })
    }

    /// Says what the elements are: a check for a dtype that the file can name, an interpretation for `bf16` and the 8-bit
    /// floats, which may lie in the file as raw bytes or as unsigned integers of their size.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where the file's elements are something else.
    pub fn with_dtype(mut self, dtype: DType) -> Result<NpyFile> {
        self.contents.name_dtype(dtype)?;
        Ok(self)
    }

    /// The file's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file cannot be read, has become shorter, or holds its elements
    /// [column by column](Contents::is_column_major), and what [`Contents::dtype`] and [`HostArray::zeros`] give.
    pub fn read(&mut self) -> Result<HostArray> {
        self.read_with(&mut |_, _| {})
    }

    /// Reads the elements and calls `progress` with the bytes read so far and all bytes, every few megabytes.
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

    /// The bytes of the elements, to be read one part after the other from the first on, in the order in which they lie.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file cannot be read.
    pub fn elements(&mut self) -> Result<Elements<'_>> {
        self.file.seek(SeekFrom::Start(self.start)).map_err(|error| broken(&self.contents.name, &error))?;
        Ok(Elements { name: &self.contents.name, reader: Box::new(&mut self.file) })
    }

    /// The bytes of the elements as the file's own pages: nothing is read before it is looked at.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the system cannot map the file.
    ///
    /// # Safety
    ///
    /// Nobody writes the file or makes it shorter while this lives: bytes would change under a shared borrow, and reading past
    /// the new end ends the process.
    pub unsafe fn map(&self) -> Result<Mapped> {
        let mut options = memmap2::MmapOptions::new();
        options.offset(self.start).len(self.contents.byte_count());
        if self.contents.byte_count() == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: the caller's word.
        let map = unsafe { options.map(&self.file) };
        map.map(|map| Mapped(Some(map))).map_err(|error| broken(&self.contents.name, &error))
    }
}

impl Deref for NpyFile {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

/// The pages of a file's elements; see [`NpyFile::map`].
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// The bytes of an array's elements, read in order.
pub struct Elements<'a> {
    pub(super) name: &'a str,
    pub(super) reader: Box<dyn Read + 'a>,
}

impl Elements<'_> {
    /// Reads the next bytes, as many as there is room for.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file cannot be read, or ends before.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.reader.read_exact(bytes).map_err(|error| broken(self.name, &error))
    }
}

impl std::fmt::Debug for Elements<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Elements of {}", self.name)
    }
}

/// Opens a file whose length is known, which a pipe's is not.
pub(super) fn open_regular(path: &Path, kind: &str) -> Result<(File, u64)> {
    let name = path.display().to_string();
    let opened = || -> std::io::Result<(File, std::fs::Metadata)> {
        // Opening a pipe would wait for its other end: it is asked what it is before.
        let metadata = std::fs::metadata(path)?;
        Ok((File::open(path)?, metadata))
    };
    let (file, metadata) = opened().map_err(|error| broken(&name, &error))?;
    if !metadata.is_file() {
        let found =
            if metadata.is_dir() { "a folder" } else { "a pipe or a device, whose length is not known" };
        return Err(refused(&name, found, format!("a regular {kind} file")));
    }
    Ok((file, metadata.len()))
}

/// Fills `bytes` in chunks, with a report of progress after each.
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

/// Reads a file whose dtype its header names.
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

/// Reads a file that must hold this dtype; see [`NpyFile::with_dtype`].
///
/// # Errors
///
/// As [`NpyFile::open`], [`NpyFile::with_dtype`] and [`NpyFile::read`].
pub fn read_as(path: impl AsRef<Path>, dtype: DType) -> Result<HostArray> {
    NpyFile::open(path)?.with_dtype(dtype)?.read()
}

/// Writes an array, replacing what the path holds.
///
/// # Errors
///
/// [`Error::File`] where the file cannot be written. What was written until then stays.
pub fn write(path: impl AsRef<Path>, array: &HostArray) -> Result<()> {
    write_bytes(path.as_ref(), array.dtype(), array.shape(), array.as_bytes())
}

/// Writes elements of this shape, row-major, without copying them first.
///
/// # Errors
///
/// [`Error::LengthMismatch`] where the shape has another number of elements; otherwise as [`write()`].
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

/// A file that is being written: its header is, its elements come in parts.
#[derive(Debug)]
pub struct NpyWriter {
    path: PathBuf,
    file: File,
    dtype: DType,
    shape: Vec<usize>,
    /// Bytes that are to come.
    left: usize,
}

impl NpyWriter {
    /// Writes the header of an array that is row-major, replacing what the path holds.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file cannot be written, [`Error::InvalidArgument`] for more bytes than an array can have.
    pub fn create(path: impl AsRef<Path>, dtype: DType, shape: &[usize]) -> Result<NpyWriter> {
        let path = path.as_ref().to_owned();
        let left = byte_count(dtype, shape)
            .ok_or_else(|| Error::invalid("writing an .npy file", describe(dtype, shape), too_large()))?;
        let open = || -> std::io::Result<File> {
            let header = header::write(dtype, shape)?;
            let mut file = File::create(&path)?;
            file.write_all(&header)?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(NpyWriter { path, file, dtype, shape: shape.to_vec(), left }),
            Err(error) => Err(unwritten(&path, dtype, shape, &error)),
        }
    }

    /// Writes the next bytes of the elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where they cannot be written, [`Error::LengthMismatch`] where they are more than the array has.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            let operation = "writing the last bytes of an .npy file";
            return Err(Error::LengthMismatch { operation, wanted: self.left, found: bytes.len() });
        };
        let written = self.file.write_all(bytes);
        written.map_err(|error| unwritten(&self.path, self.dtype, &self.shape, &error))?;
        self.left = left;
        Ok(())
    }

    /// Ends the file, of which nothing may be missing.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn finish(mut self) -> Result<()> {
        if self.left > 0 {
            let operation = "ending an .npy file: bytes that are missing";
            return Err(Error::LengthMismatch { operation, wanted: 0, found: self.left });
        }
        self.file.flush().map_err(|error| unwritten(&self.path, self.dtype, &self.shape, &error))
    }
}

fn unwritten(path: &Path, dtype: DType, shape: &[usize], error: &std::io::Error) -> Error {
    let bytes = byte_count(dtype, shape).unwrap_or(0);
    Error::File {
        path: path.display().to_string(),
        found: format!("that it cannot be written: {error}"),
        wanted: format!("a path with room for the {bytes} bytes of {}", describe(dtype, shape)),
    }
}
