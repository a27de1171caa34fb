//! NumPy's `.npy` files, read and written with `npyz`.
//!
//! A file is not trusted: its header is looked at (`header`) before `npyz` parses it, the number of bytes that it
//! promises is held against the file's length before anything of that size is allocated, and then the elements are read
//! straight into the array that is returned, so that memory holds them once.
//!
//! What is taken: versions 1.0, 2.0 and 3.0; row-major order; little-endian elements of every [`DType`]. NumPy has no
//! dtype for three of them. They are stored as `ml_dtypes` stores them, as raw bytes: `<V2` reads as `bf16`, which is the
//! only 2-byte type of that package; `|V1` may be either 8-bit float, so [`NpyFile::with_dtype`] has to say which. The same
//! call reads unsigned integers of that size, the view that plain NumPy offers. In Python, `np.load(path).view(ml_dtypes.bfloat16)`
//! gives the type back. (`float8_e5m2` itself saves as `<f1`, which NumPy cannot load either: save `array.view(np.uint8)`.)

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::HostArray;
use super::array::{byte_count, describe, too_large};
use crate::error::{Error, Result};
use crate::types::{DType, Element};

mod header;

use header::Stored;

/// Bytes read or written at a time, between two reports of progress.
const CHUNK: usize = 8 << 20;

/// An open `.npy` file whose header is good and whose length is what the header promises. The elements are not read yet.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    file: File,
    stored: Stored,
    named: Option<DType>,
    shape: Vec<usize>,
    start: u64,
}

impl NpyFile {
    /// Opens a file and checks its header, and its length against the header.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a file that cannot be opened, is no `.npy` file, is truncated, has bytes left over, or holds what
    /// this crate does not take: big-endian elements, Fortran order, objects, fields, another dtype.
    pub fn open(path: impl AsRef<Path>) -> Result<NpyFile> {
        let path = path.as_ref().to_owned();
        let opened = || -> std::io::Result<(File, std::fs::Metadata)> {
            // Opening a pipe would wait for its other end: it is asked what it is before.
            let metadata = std::fs::metadata(&path)?;
            Ok((File::open(&path)?, metadata))
        };
        let (mut file, metadata) = opened().map_err(|error| broken(&path, &error))?;
        if !metadata.is_file() {
            let found =
                if metadata.is_dir() { "a folder" } else { "a pipe or a device, whose length is not known" };
            return Err(refused(&path, found, "a regular .npy file"));
        }
        let header = header::read(&mut file, metadata.len()).map_err(|error| {
            error.into_error(|error| broken(&path, &error), |found, wanted| refused(&path, found, wanted))
        })?;

        // One byte an element stands for a dtype that still has to be named.
        let dtype = header.stored.dtype().unwrap_or(DType::U8);
        let bytes = byte_count(dtype, &header.shape)
            .ok_or_else(|| refused(&path, describe(dtype, &header.shape), too_large()))?
            as u64;
        let present = metadata.len().saturating_sub(header.start);
        if present != bytes {
            let what = describe(dtype, &header.shape);
            let (found, wanted) = if present < bytes {
                (
                    format!("a truncated file: {present} bytes of elements"),
                    format!("{bytes} bytes for {what}"),
                )
            } else {
                let extra = present - bytes;
                (format!("{extra} bytes after the elements"), format!("exactly {bytes} bytes for {what}"))
            };
            return Err(refused(&path, found, wanted));
        }
        Ok(NpyFile {
            path,
            file,
            stored: header.stored,
            named: None,
            shape: header.shape,
            start: header.start,
        })
    }

    /// Says what the elements are: a check for a dtype that the file can name, an interpretation for `bf16` and the 8-bit
    /// floats, which may lie in the file as raw bytes or as unsigned integers of their size.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] where the file's elements are something else.
    pub fn with_dtype(mut self, dtype: DType) -> Result<NpyFile> {
        if !self.stored.holds(dtype) {
            return Err(Error::DTypeMismatch {
                operation: "reading an .npy file",
                wanted: dtype.to_string(),
                found: format!("{} in {}", self.stored, self.path.display()),
            });
        }
        self.named = Some(dtype);
        Ok(self)
    }

    /// The elements' type.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file holds raw bytes that could be several types and [`NpyFile::with_dtype`] was not called.
    pub fn dtype(&self) -> Result<DType> {
        self.named.or_else(|| self.stored.dtype()).ok_or_else(|| {
            let wanted = "its dtype said beside it (f8e4m3 or f8e5m2), because the file does not name it";
            refused(&self.path, self.stored, wanted)
        })
    }

    /// The dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    pub fn len(&self) -> usize {
        // `open` has checked that this product fits.
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file cannot be read or has become shorter, and what [`NpyFile::dtype`] and
    /// [`HostArray::zeros`] give.
    pub fn read(&mut self) -> Result<HostArray> {
        self.read_with(&mut |_, _| {})
    }

    /// Reads the elements and calls `progress` with the bytes read so far and all bytes, every few megabytes.
    ///
    /// # Errors
    ///
    /// As [`NpyFile::read`].
    pub fn read_with(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<HostArray> {
        let mut array = HostArray::zeros(self.dtype()?, &self.shape)?;
        self.file.seek(SeekFrom::Start(self.start)).map_err(|error| broken(&self.path, &error))?;
        let bytes = array.as_bytes_mut();
        let total = bytes.len() as u64;
        let mut done = 0;
        for chunk in bytes.chunks_mut(CHUNK) {
            self.file.read_exact(chunk).map_err(|error| broken(&self.path, &error))?;
            done += chunk.len() as u64;
            progress(done, total);
        }
        Ok(array)
    }
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
    let write = || -> std::io::Result<()> {
        let header = header::write(dtype, shape)?;
        let mut file = File::create(path)?;
        file.write_all(&header)?;
        file.write_all(bytes)?;
        file.flush()
    };
    write().map_err(|error| Error::File {
        path: path.display().to_string(),
        found: format!("that it cannot be written: {error}"),
        wanted: format!("a path with room for the {} bytes of {}", bytes.len(), describe(dtype, shape)),
    })
}

fn broken(path: &Path, error: &std::io::Error) -> Error {
    let found = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::UnexpectedEof => "that it ended while it was read".to_owned(),
        _ => format!("that it cannot be read: {error}"),
    };
    refused(path, found, "a readable .npy file")
}

fn refused(path: &Path, found: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), found: found.to_string(), wanted: wanted.to_string() }
}
