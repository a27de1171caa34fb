//! NumPy's `.npz` files: zip archives whose members are `.npy` files, read and written with `zip`.
//!
//! An archive is not trusted either: a member's header is looked at as a file's is, the bytes that it promises are held
//! against what the archive's directory says, and that against the compressed bytes that are there (deflate makes no
//! more than 1032 of one), before anything of that size is allocated. That bound also holds for the archive as a
//! whole, because members that share bytes with one another, or with the directory, are refused. So are members whose own
//! header has another name than the directory's. The checksum is looked at when a member was read to its end.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::HostArray;
use super::array::{byte_count, describe, too_large};
use super::npy::{Contents, broken, header, open_regular, read_all, refused};
use crate::error::{Error, Result};
use crate::types::DType;

/// Bytes that a compressed one can stand for: a block of deflate repeats at most 258 bytes in two bits.
const MOST_RATIO: u64 = 1032;

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
    /// [`Error::File`] for a file that cannot be opened, is no zip archive, or whose members overlap or have another name in
    /// their own header than in the directory.
    pub fn open(path: impl AsRef<Path>) -> Result<NpzFile> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let (file, _) = open_regular(path, ".npz")?;
        let mut file = BufReader::new(file);
        check_members(&mut file, &name)?;
        let archive = ZipArchive::new(file).map_err(|error| archive_error(&name, &error))?;
        Ok(NpzFile { name, archive })
    }

    /// The arrays' names, in the order of the archive; members that are no `.npy` files are left out.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(|name| name.strip_suffix(".npy"));
        names.map(str::to_owned).collect()
    }

    /// The array of a name, whose elements are not read yet.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where there is none of that name, and as [`NpyFile::open`](super::npy::NpyFile::open).
    pub fn array(&mut self, name: &str) -> Result<NpzArray<'_>> {
        let label = format!("{}: {name}.npy", self.name);
        let listed = self.names();
        let mut member = match self.archive.by_name(&format!("{name}.npy")) {
            Ok(member) => member,
            Err(ZipError::FileNotFound) => {
                let wanted = format!("one of {}", listed.join(", "));
                return Err(refused(&self.name, format!("no array of the name {name}"), wanted));
            }
            Err(error) => return Err(archive_error(&label, &error)),
        };
        let (length, packed) = (member.size(), member.compressed_size());
        if length > packed.saturating_mul(MOST_RATIO) {
            let found = format!("{packed} bytes that say that they are {length}");
            return Err(refused(&label, found, format!("at most {MOST_RATIO} bytes of each")));
        }
        let header = header::read(&mut member, length).map_err(|refusal| refusal.of(&label))?;
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

/// An array of an [`NpzFile`]; what it is, its [`Contents`] tell.
pub struct NpzArray<'a> {
    contents: Contents,
    reader: Box<dyn Read + 'a>,
    left: u64,
}

impl NpzArray<'_> {
    /// As [`NpyFile::with_dtype`](super::npy::NpyFile::with_dtype).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn with_dtype(mut self, dtype: DType) -> Result<Self> {
        self.contents.name_dtype(dtype)?;
        Ok(self)
    }

    /// Reads the next bytes of the elements, as many as there is room for, in the order in which they lie; with the last
    /// ones the archive's checksum is looked at.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the archive cannot be read, ends before, or is damaged.
    pub fn read_bytes(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut read = || -> std::io::Result<()> {
            self.reader.read_exact(bytes)?;
            self.left = self.left.saturating_sub(bytes.len() as u64);
            match self.left {
                // The end is where the checksum is compared.
                0 => self.reader.read(&mut [0]).map(drop),
                _ => Ok(()),
            }
        };
        read().map_err(|error| broken(&self.contents.name, &error))
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

/// An `.npz` file that is being written.
pub struct NpzWriter {
    path: PathBuf,
    archive: ZipWriter<BufWriter<File>>,
    options: SimpleFileOptions,
    names: Vec<String>,
    /// Bytes of the last array that are to come.
    left: usize,
}

impl NpzWriter {
    /// An archive without compression, as of `np.savez`, replacing what the path holds.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<NpzWriter> {
        NpzWriter::with(path.as_ref(), CompressionMethod::Stored)
    }

    /// As [`create`](Self::create), deflated, as of `np.savez_compressed`.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn compressed(path: impl AsRef<Path>) -> Result<NpzWriter> {
        NpzWriter::with(path.as_ref(), CompressionMethod::Deflated)
    }

    fn with(path: &Path, method: CompressionMethod) -> Result<NpzWriter> {
        let path = path.to_owned();
        let file = File::create(&path).map_err(|error| unwritten(&path, &error))?;
        let options = SimpleFileOptions::default().compression_method(method);
        let archive = ZipWriter::new(BufWriter::new(file));
        Ok(NpzWriter { path, archive, options, names: Vec::new(), left: 0 })
    }

    /// Begins an array that is row-major; its elements are [written](Self::write) next.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a name that the archive has or that is no file's, or more bytes than an array can have;
    /// [`Error::LengthMismatch`] where elements of the last array are missing; [`Error::File`] as
    /// [`create`](Self::create).
    pub fn begin(&mut self, name: &str, dtype: DType, shape: &[usize]) -> Result<()> {
        const OPERATION: &str = "writing an .npz file";
        self.check_whole()?;
        let bytes = byte_count(dtype, shape)
            .ok_or_else(|| Error::invalid(OPERATION, describe(dtype, shape), too_large()))?;
        let known = self.names.iter().any(|known| known == name);
        if known
            || name.is_empty()
            || name.contains(['\\', '\0'])
            || name.starts_with('/')
            || name.contains("..")
        {
            let found = format!("an array of the name '{}'", name.escape_debug());
            return Err(Error::invalid(OPERATION, found, "a file's name that no other array has"));
        }
        let mut write = || -> std::io::Result<()> {
            let header = header::write(dtype, shape)?;
            // Past 4 GiB a member needs the longer fields, which must be said before.
            let options =
                self.options.large_file(bytes as u64 + header.len() as u64 > u64::from(u32::MAX) / 2);
            self.archive.start_file(format!("{name}.npy"), options)?;
            self.archive.write_all(&header)
        };
        write().map_err(|error| unwritten(&self.path, &error))?;
        self.names.push(name.to_owned());
        self.left = bytes;
        Ok(())
    }

    /// Writes the next bytes of the array's elements.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where they cannot be written, [`Error::LengthMismatch`] where they are more than the array has.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            let operation = "writing the last bytes of an .npz file's array";
            return Err(Error::LengthMismatch { operation, wanted: self.left, found: bytes.len() });
        };
        self.archive.write_all(bytes).map_err(|error| unwritten(&self.path, &error))?;
        self.left = left;
        Ok(())
    }

    /// Writes the directory, with which the archive is whole.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn finish(self) -> Result<()> {
        self.check_whole()?;
        let finished = self.archive.finish().map_err(std::io::Error::from).and_then(|mut file| file.flush());
        finished.map_err(|error| unwritten(&self.path, &error))
    }

    fn check_whole(&self) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let operation = "ending an .npz file's array: bytes that are missing";
        Err(Error::LengthMismatch { operation, wanted: 0, found: self.left })
    }
}

impl std::fmt::Debug for NpzWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "NpzWriter({}: {})", self.path.display(), self.names.join(", "))
    }
}

/// The extent of a member in the archive's bytes: its own header and its compressed bytes.
struct Extent {
    start: u64,
    end: u64,
    name: String,
}

/// Holds the directory of an archive against the members that it lists.
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
        let (own, header) = local_header(file, start).map_err(|error| broken(path, &error))?;
        if own != name {
            let found = format!(
                "a member that the directory names {label} and its own header {}",
                own.escape_ascii()
            );
            return Err(refused(path, found, "one name in both"));
        }
        extents.push(Extent { start, end: start.saturating_add(header).saturating_add(packed), name: label });
    }
    extents.push(Extent { start: directory, end: u64::MAX, name: "the directory".to_owned() });
    extents.sort_by_key(|extent| extent.start);
    match extents.windows(2).find(|pair| pair[0].end > pair[1].start) {
        None => Ok(()),
        Some(pair) => {
            let found = format!("that {} and {} share bytes", pair[0].name, pair[1].name);
            Err(refused(path, found, "members that do not overlap"))
        }
    }
}

/// The name in a member's own header, and the bytes of that header.
fn local_header(file: &mut BufReader<File>, start: u64) -> std::io::Result<(Vec<u8>, u64)> {
    /// The fields before the name.
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
    refused(name, format!("that it cannot be read: {error}"), wanted)
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    let found = format!("that it cannot be written: {error}");
    refused(&path.display().to_string(), found, "a path with room for the arrays")
}
