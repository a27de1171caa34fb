//! NumPy's `.npz` files: zip archives of `.npy` files, read and written with `zip`.
//!
//! Archives are untrusted. Before it allocates memory for a member, the reader checks the member's `.npy`
//! header as it checks a file's, compares the size in the header with the size in the archive's directory,
//! and compares that with the compressed bytes that are present (deflate expands by at most 1032). The bound
//! holds for the archive as a whole too, because the reader refuses members that share bytes with one another
//! or with the directory. It also refuses members whose local header has another name than the directory.
//! Reading a member to its end verifies the checksum.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive};

use super::HostArray;
use super::archive_file::ArchiveFile;
use super::array::{byte_count, describe, too_large};
use super::new_file;
use super::npy::{Contents, file_error, header, open_regular, read_all, read_error};
use crate::error::{Error, Result};
use crate::types::DType;

/// The largest expansion by deflate: a block repeats at most 258 bytes in two bits.
const MAX_EXPANSION: u64 = 1032;

/// An open `.npz` file.
pub struct NpzFile {
    name: String,
    archive: ZipArchive<BufReader<File>>,
}

impl NpzFile {
    /// Opens an archive and reads its directory.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be opened, is not a zip archive, or has members that overlap or
    /// whose local header has another name than the directory.
    pub fn open(path: impl AsRef<Path>) -> Result<NpzFile> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let (file, _) = open_regular(path, ".npz")?;
        let mut file = BufReader::new(file);
        check_members(&mut file, &name)?;
        let archive = ZipArchive::new(file).map_err(|error| archive_error(&name, &error))?;
        Ok(NpzFile { name, archive })
    }

    /// Returns the names of the arrays, in the order of the archive. It omits members that are not `.npy`
    /// files.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(|name| name.strip_suffix(".npy"));
        names.map(str::to_owned).collect()
    }

    /// Returns an array by name, before its elements are read.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if there is no array of that name; the errors of
    /// [`NpyFile::open`](super::npy::NpyFile::open).
    pub fn array(&mut self, name: &str) -> Result<NpzArray<'_>> {
        let label = format!("{}: {name}.npy", self.name);
        let listed = self.names();
        let mut member = match self.archive.by_name(&format!("{name}.npy")) {
            Ok(member) => member,
            Err(ZipError::FileNotFound) => {
                let wanted = format!("one of {}", listed.join(", "));
                return Err(file_error(&self.name, format!("no array named {name}"), wanted));
            }
            Err(error) => return Err(archive_error(&label, &error)),
        };
        let (length, packed) = (member.size(), member.compressed_size());
        if length > packed.saturating_mul(MAX_EXPANSION) {
            let found = format!("{packed} compressed bytes for {length} bytes");
            return Err(file_error(
                &label,
                found,
                format!("at most {MAX_EXPANSION} bytes for each compressed byte"),
            ));
        }
        let header = header::read(&mut member, length).map_err(|refusal| refusal.into_error(&label))?;
        let present = length.saturating_sub(header.start);
        let contents = Contents::new(label, header, present)?;
        Ok(NpzArray { contents, reader: Box::new(member), left: present })
    }
}

impl std::fmt::Debug for NpzFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "NpzFile({}: {})", self.name, self.names().join(", "))
    }
}

/// An array of an [`NpzFile`]. It dereferences to its [`Contents`]: dtype, shape and order.
pub struct NpzArray<'a> {
    contents: Contents,
    reader: Box<dyn Read + 'a>,
    left: u64,
}

impl NpzArray<'_> {
    /// Sets the element type; see [`NpyFile::with_dtype`](super::npy::NpyFile::with_dtype).
    ///
    /// # Errors
    ///
    /// As [`NpyFile::with_dtype`](super::npy::NpyFile::with_dtype).
    pub fn with_dtype(mut self, dtype: DType) -> Result<Self> {
        self.contents.set_dtype(dtype)?;
        Ok(self)
    }

    /// Fills `bytes` with the next bytes of the elements, in storage order. Reading the last bytes verifies
    /// the archive's checksum.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the archive cannot be read, ends early or is corrupt.
    pub fn read_bytes(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut read = || -> std::io::Result<()> {
            self.reader.read_exact(bytes)?;
            self.left = self.left.saturating_sub(bytes.len() as u64);
            match self.left {
                // `zip` compares the checksum at the end.
                0 => self.reader.read(&mut [0]).map(drop),
                _ => Ok(()),
            }
        };
        read().map_err(|error| read_error(&self.contents.name, &error))
    }

    /// Reads the elements.
    ///
    /// # Errors
    ///
    /// As [`NpyFile::read`](super::npy::NpyFile::read).
    pub fn read(mut self) -> Result<HostArray> {
        self.contents.check_row_major()?;
        let mut array = HostArray::zeros(self.dtype()?, self.shape())?;
        read_all(array.as_bytes_mut(), &mut |chunk| self.read_bytes(chunk), &mut |_, _| {})?;
        if array.is_empty() {
            self.read_bytes(&mut [])?;
        }
        Ok(array)
    }
}

impl Deref for NpzArray<'_> {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.contents
    }
}

impl std::fmt::Debug for NpzArray<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.contents.fmt(formatter)
    }
}

/// An `.npz` file open for writing. The path gets it at [`finish`](Self::finish); a writer that is dropped before leaves what
/// the path held.
pub struct NpzWriter {
    path: PathBuf,
    archive: ArchiveFile,
    options: SimpleFileOptions,
    names: Vec<String>,
    /// The bytes of the last array that are still missing.
    left: usize,
}

impl NpzWriter {
    /// Creates an archive without compression, like `np.savez`.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`].
    pub fn create(path: impl AsRef<Path>) -> Result<NpzWriter> {
        NpzWriter::with(path.as_ref(), CompressionMethod::Stored)
    }

    /// Creates an archive with deflate compression, like `np.savez_compressed`.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn compressed(path: impl AsRef<Path>) -> Result<NpzWriter> {
        NpzWriter::with(path.as_ref(), CompressionMethod::Deflated)
    }

    fn with(path: &Path, method: CompressionMethod) -> Result<NpzWriter> {
        let path = path.to_owned();
        let archive = ArchiveFile::create(&path).map_err(|error| write_error(&path, &error))?;
        let options = SimpleFileOptions::default().compression_method(method);
        Ok(NpzWriter { path, archive, options, names: Vec::new(), left: 0 })
    }

    /// Begins a row-major array. [`write`](Self::write) then adds its elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a name that the archive already has or that is not a valid file name,
    /// and for more bytes than an array can have; [`Error::LengthMismatch`] if elements of the last array are
    /// missing; [`Error::FileNotWritten`] as [`create`](Self::create).
    pub fn begin(&mut self, name: &str, dtype: DType, shape: &[usize]) -> Result<()> {
        const OPERATION: &str = "writing an .npz file";
        self.check_complete()?;
        let bytes = byte_count(dtype, shape)
            .ok_or_else(|| Error::invalid(OPERATION, describe(dtype, shape), too_large()))?;
        let known = self.names.iter().any(|known| known == name);
        if known
            || name.is_empty()
            || name.contains(['\\', '\0'])
            || name.starts_with('/')
            || name.contains("..")
        {
            let found = format!("an array named '{}'", name.escape_debug());
            return Err(Error::invalid(OPERATION, found, "a valid file name that no other array has"));
        }
        let mut write = || -> std::io::Result<()> {
            let header = header::write(dtype, shape);
            // A member over 4 GiB needs zip64 fields, which must be requested in advance.
            let options =
                self.options.large_file(bytes as u64 + header.len() as u64 > u64::from(u32::MAX) / 2);
            self.archive.begin(&format!("{name}.npy"), options)?;
            self.archive.write(&header)
        };
        write().map_err(|error| write_error(&self.path, &error))?;
        self.names.push(name.to_owned());
        self.left = bytes;
        Ok(())
    }

    /// Writes the next bytes of the array's elements.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] if they cannot be written, [`Error::LengthMismatch`] if the array has fewer.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            let operation = "writing the last bytes of an .npz file's array";
            return Err(Error::LengthMismatch { operation, wanted: self.left, found: bytes.len() });
        };
        self.archive.write(bytes).map_err(|error| write_error(&self.path, &error))?;
        self.left = left;
        Ok(())
    }

    /// Writes the directory, which completes the archive, and gives the file its name. It replaces what the path held.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn finish(self) -> Result<()> {
        self.check_complete()?;
        let NpzWriter { path, archive, .. } = self;
        archive.finish().map_err(|error| write_error(&path, &error))
    }

    fn check_complete(&self) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let operation = "ending an .npz file's array: missing bytes";
        Err(Error::LengthMismatch { operation, wanted: 0, found: self.left })
    }
}

impl std::fmt::Debug for NpzWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "NpzWriter({}: {})", self.path.display(), self.names.join(", "))
    }
}

/// The extent of a member in the archive: its local header and its compressed bytes.
struct Extent {
    start: u64,
    end: u64,
    name: String,
}

/// Checks the directory of an archive against the members that it lists.
fn check_members(file: &mut BufReader<File>, path: &str) -> Result<()> {
    let mut archive = ZipArchive::new(&mut *file).map_err(|error| archive_error(path, &error))?;
    let directory = archive.central_directory_start();
    let mut members = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|error| archive_error(path, &error))?;
        members.push((member.header_start(), member.compressed_size(), member.name_raw().to_vec()));
    }
    drop(archive);
    let mut extents = Vec::with_capacity(members.len() + 1);
    for (start, packed, name) in members {
        let label = String::from_utf8_lossy(&name).into_owned();
        let (own, header) = local_header(file, start).map_err(|error| read_error(path, &error))?;
        if own != name {
            let found = format!(
                "a member named {label} in the directory and {} in its local header",
                own.escape_ascii()
            );
            return Err(file_error(path, found, "the same name in both"));
        }
        extents.push(Extent { start, end: start.saturating_add(header).saturating_add(packed), name: label });
    }
    extents.push(Extent { start: directory, end: u64::MAX, name: "the directory".to_owned() });
    extents.sort_by_key(|extent| extent.start);
    match extents.windows(2).find(|pair| pair[0].end > pair[1].start) {
        None => Ok(()),
        Some(pair) => {
            let found = format!("{} and {}, which share bytes", pair[0].name, pair[1].name);
            Err(file_error(path, found, "members that do not overlap"))
        }
    }
}

/// Returns the name in a member's local header, and the length of that header.
fn local_header(file: &mut BufReader<File>, start: u64) -> std::io::Result<(Vec<u8>, u64)> {
    /// The length of the fields before the name.
    const FIXED: usize = 30;
    let mut fixed = [0; FIXED];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut fixed)?;
    let length = |at: usize| u64::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
    let (name, extra) = (length(26), length(28));
    let mut bytes = vec![0; name as usize];
    file.read_exact(&mut bytes)?;
    Ok((bytes, FIXED as u64 + name + extra))
}

fn archive_error(name: &str, error: &ZipError) -> Error {
    let wanted = "an .npz file: a zip archive of .npy files, stored or deflated";
    file_error(name, format!("an unreadable archive: {error}"), wanted)
}

fn write_error(path: &Path, error: &std::io::Error) -> Error {
    new_file::write_error(path, error, "a writable path with enough free space for the arrays")
}
