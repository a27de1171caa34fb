//! [`SafetensorsWriter`], which writes a file beside the path and renames it.

use std::collections::{BTreeMap, HashMap};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ::safetensors::tensor::TensorInfo;

use super::header::{LENGTH_BYTES, MAX_BYTES, METADATA};
use super::{name_of, quoted};
use crate::error::{Error, Result};
use crate::io::array::{byte_count, describe, too_large};
use crate::io::new_file::{self, NewFile};
use crate::types::DType;

const OPERATION: &str = "writing a safetensors file";

/// The start and the end of each tensor in the file, by name.
type Ranges = HashMap<String, (u64, u64)>;

/// A safetensors file open for writing. The path gets it at [`finish`](Self::finish); a writer that is dropped
/// before leaves what the path held.
///
/// Tensors of larger elements lie first, as the reference implementation writes them, so each tensor is
/// aligned to its elements.
pub struct SafetensorsWriter {
    path: PathBuf,
    file: NewFile,
    /// The tensors that are not written yet.
    missing: Ranges,
    /// The bytes of the last tensor that are still missing, and its name.
    left: (u64, String),
}

impl SafetensorsWriter {
    /// Creates a file for tensors of these names, dtypes and shapes, with metadata, and writes its header.
    /// [`begin`](Self::begin) and [`write`](Self::write) then add the elements, in any order of the tensors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for two tensors or two metadata entries of one name, the name `__metadata__`,
    /// a dtype that the format lacks (`c128`), and more bytes than a header or a file can have;
    /// [`Error::FileNotWritten`].
    pub fn create(
        path: impl AsRef<Path>,
        tensors: &[(&str, DType, &[usize])],
        metadata: &[(&str, &str)],
    ) -> Result<SafetensorsWriter> {
        let (header, missing) = header(tensors, metadata)?;
        let path = path.as_ref().to_owned();
        let file = NewFile::create(&path).map_err(|error| write_error(&path, &error))?;
        let mut writer = SafetensorsWriter { path, file, missing, left: (0, String::new()) };
        writer.bytes(&(header.len() as u64).to_le_bytes())?;
        writer.bytes(&header)?;
        Ok(writer)
    }

    /// Returns the offset of a tensor in the file, by which tensors of a device or a pipe must be written.
    pub(crate) fn offset_of(&self, name: &str) -> u64 {
        self.missing.get(name).map_or(0, |range| range.0)
    }

    /// Begins a tensor. [`write`](Self::write) then adds its elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a name that [`create`](Self::create) did not get or that was begun,
    /// and if elements of the last tensor are missing; [`Error::FileNotWritten`], also for a tensor of a device or
    /// a pipe that does not follow the one before.
    pub fn begin(&mut self, name: &str) -> Result<()> {
        self.check_complete()?;
        let Some((start, end)) = self.missing.remove(name) else {
            let found = format!("the tensor {}", quoted(name));
            return Err(Error::invalid(OPERATION, found, "a tensor of the header that is not written yet"));
        };
        self.left = (end - start, name.to_owned());
        self.file.seek(SeekFrom::Start(start)).map(drop).map_err(|error| write_error(&self.path, &error))
    }

    /// Writes the next bytes of the tensor's elements, row-major.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] if they cannot be written, [`Error::LengthMismatch`] if the tensor has fewer.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(left) = self.left.0.checked_sub(bytes.len() as u64) else {
            let operation = "writing the last bytes of a safetensors file's tensor";
            return Err(Error::LengthMismatch {
                operation,
                wanted: self.left.0 as usize,
                found: bytes.len(),
            });
        };
        self.bytes(bytes)?;
        self.left.0 = left;
        Ok(())
    }

    /// Gives the file its name. It replaces what the path held.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a tensor was not begun, or elements of the last are missing;
    /// [`Error::FileNotWritten`].
    pub fn finish(self) -> Result<()> {
        self.check_complete()?;
        if let Some(name) = self.missing.keys().min() {
            let found = format!("no elements of the tensor {}", quoted(name));
            return Err(Error::invalid(OPERATION, found, "the elements of every tensor of the header"));
        }
        let SafetensorsWriter { path, file, .. } = self;
        file.finish().map_err(|error| write_error(&path, &error))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| write_error(&self.path, &error))
    }

    fn check_complete(&self) -> Result<()> {
        match self.left.0 {
            0 => Ok(()),
            left => {
                let found = format!("{left} bytes too few of the tensor {}", quoted(&self.left.1));
                Err(Error::invalid(OPERATION, found, "all elements of a tensor before the next"))
            }
        }
    }
}

impl std::fmt::Debug for SafetensorsWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SafetensorsWriter({})", self.path.display())
    }
}

/// Returns the header's text and the bytes of each tensor in the file.
fn header(tensors: &[(&str, DType, &[usize])], metadata: &[(&str, &str)]) -> Result<(Vec<u8>, Ranges)> {
    let mut pairs = BTreeMap::new();
    for (name, value) in metadata {
        if pairs.insert(*name, *value).is_some() {
            let found = format!("two metadata entries named {}", quoted(name));
            return Err(Error::invalid(OPERATION, found, "one entry of a name"));
        }
    }
    let mut listed = Vec::with_capacity(tensors.len());
    for (name, dtype, shape) in tensors {
        let label = || format!("the tensor {} of {}", quoted(name), describe(*dtype, shape));
        let Some(known) = name_of(*dtype) else {
            return Err(Error::invalid(OPERATION, label(), "a dtype of the format, which has no c128"));
        };
        let bytes =
            byte_count(*dtype, shape).ok_or_else(|| Error::invalid(OPERATION, label(), too_large()))?;
        if *name == METADATA {
            return Err(Error::invalid(
                OPERATION,
                label(),
                "another name: the format's metadata has this one",
            ));
        }
        listed.push((*name, known, *shape, bytes));
    }
    listed.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let mut entries = Vec::with_capacity(listed.len() + 1);
    if !pairs.is_empty() {
        entries.push(format!("\"{METADATA}\":{}", json(&pairs)?));
    }
    let (mut end, mut ranges) = (0usize, HashMap::with_capacity(listed.len()));
    for (name, dtype, shape, bytes) in listed {
        let start = end;
        end = start
            .checked_add(bytes)
            .filter(|&end| end <= isize::MAX as usize)
            .ok_or_else(|| Error::invalid(OPERATION, format!("the tensor {}", quoted(name)), too_large()))?;
        let info = TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (start, end) };
        entries.push(format!("{}:{}", json(&name)?, json(&info)?));
        if ranges.insert(name.to_owned(), (start as u64, end as u64)).is_some() {
            let found = format!("two tensors named {}", quoted(name));
            return Err(Error::invalid(OPERATION, found, "one tensor of a name"));
        }
    }
    let mut text = format!("{{{}}}", entries.join(",")).into_bytes();
    // Spaces align the data to the largest elements.
    text.resize(text.len().next_multiple_of(LENGTH_BYTES as usize), b' ');
    if text.len() as u64 > MAX_BYTES {
        let found = format!("a header of {} bytes", text.len());
        return Err(Error::invalid(OPERATION, found, format!("at most {MAX_BYTES} bytes")));
    }
    let data = LENGTH_BYTES + text.len() as u64;
    ranges.values_mut().for_each(|(start, end)| (*start, *end) = (*start + data, *end + data));
    Ok((text, ranges))
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid(OPERATION, error.to_string(), "texts of JSON"))
}

fn write_error(path: &Path, error: &std::io::Error) -> Error {
    new_file::write_error(path, error, "a writable path with enough free space for the tensors")
}
