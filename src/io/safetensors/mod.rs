//! safetensors files, the format of model weights of Hugging Face, read and written with `safetensors`.
//!
//! A file has a JSON header that names each tensor's dtype, shape and bytes, optional metadata (pairs of
//! texts), and the bytes of the tensors, row-major and little-endian. [`SafetensorsFile::open`] also reads
//! `model.safetensors.index.json`, the index of a model in several files.
//!
//! Files are untrusted. The reader compares the header's length with the file's before it allocates memory,
//! and checks that the tensors fill the file without gaps or overlaps and that each has the bytes of its dtype
//! and shape. Two entries of one name are an error. A dtype of the format that is no [`DType`] (`F4`,
//! `F6_E2M3`, `F6_E3M2`, `F8_E8M0` and the FNUZ floats) is an error of its tensor alone: the others can be
//! read.
//!
//! Tests: `tests/io/safetensors.rs`.
//!
//! ```
//! use selvedge::io::safetensors::{SafetensorsFile, SafetensorsWriter};
//! use selvedge::types::DType;
//!
//! let path = std::env::temp_dir().join(format!("selvedge-doc-{}.safetensors", std::process::id()));
//! let mut writer = SafetensorsWriter::create(&path, &[("bias", DType::U8, &[3])], &[("format", "pt")])?;
//! writer.begin("bias")?;
//! writer.write(&[1, 2, 3])?;
//! writer.finish()?;
//!
//! let mut file = SafetensorsFile::open(&path)?;
//! assert_eq!((file.names(), file.metadata()["format"].as_str()), (&["bias".to_owned()][..], "pt"));
//! assert_eq!(file.array("bias")?.read()?.as_slice::<u8>()?, [1, 2, 3]);
//! # let _ = std::fs::remove_file(&path);
//! # Ok::<(), selvedge::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use ::safetensors::Dtype;
use ::safetensors::tensor::TensorInfo;

use super::npy::{Mapped, file_error, map_bytes, open_regular, read_all, read_failure};
use super::{HostArray, parallel_read};
use crate::error::{Error, Result};
use crate::types::DType;

mod header;
mod index;
mod writer;

use header::Header;
use index::Index;
pub use writer::SafetensorsWriter;

/// An open safetensors file, or the files of an index, with checked headers. The tensors are not read yet.
pub struct SafetensorsFile {
    path: String,
    names: Vec<String>,
    shards: Vec<Shard>,
    /// The shard of each tensor, if an index says it.
    weight_map: Option<BTreeMap<String, usize>>,
    metadata: BTreeMap<String, String>,
}

/// One file.
struct Shard {
    path: String,
    file: File,
    header: Header,
}

impl Shard {
    fn open(path: &Path) -> Result<Shard> {
        let name = path.display().to_string();
        let (mut file, length) = open_regular(path, ".safetensors")?;
        let header = Header::read(&mut file, length, &name)?;
        Ok(Shard { path: name, file, header })
    }
}

impl SafetensorsFile {
    /// Opens a file and checks its header. A path that ends in `.json` is an index: its files are opened too,
    /// and a tensor of a file that the index does not name is left out.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if a file cannot be opened, is truncated, or has a header that is no header or does not
    /// describe the file; if an index names a file or a tensor that does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<SafetensorsFile> {
        let path = path.as_ref();
        if path.extension().is_some_and(|extension| extension == "json") {
            return SafetensorsFile::open_index(path);
        }
        let shard = Shard::open(path)?;
        Ok(SafetensorsFile {
            path: shard.path.clone(),
            names: shard.header.names.clone(),
            metadata: shard.header.metadata.clone(),
            shards: vec![shard],
            weight_map: None,
        })
    }

    fn open_index(path: &Path) -> Result<SafetensorsFile> {
        let name = path.display().to_string();
        let Index { shards: files, weight_map } = Index::read(path)?;
        let mut shards = Vec::with_capacity(files.len());
        let mut metadata = BTreeMap::new();
        for (at, file) in files.iter().enumerate() {
            let whole = path.with_file_name(file);
            if !whole.exists() {
                let tensor =
                    weight_map.iter().find(|(_, shard)| **shard == at).map_or("", |(tensor, _)| tensor);
                let found = format!("no file {}, which has the tensor {}", quoted(file), quoted(tensor));
                return Err(refusal(&name, found, "every file of the index in its folder"));
            }
            let shard = Shard::open(&whole)?;
            metadata.extend(shard.header.metadata.clone());
            shards.push(shard);
        }
        for (tensor, at) in &weight_map {
            let shard = shards.get(*at).filter(|shard| shard.header.tensors.info(tensor).is_none());
            if let Some(shard) = shard {
                let found = format!("no tensor {} in {}", quoted(tensor), shard.path);
                return Err(refusal(&name, found, "every tensor in the file that the index names"));
            }
        }
        let listed = shards.iter().enumerate().flat_map(|(at, shard)| {
            let named = shard.header.names.iter();
            named.filter(|tensor| weight_map.get(*tensor) == Some(&at)).cloned().collect::<Vec<_>>()
        });
        let names = listed.collect();
        Ok(SafetensorsFile { path: name, names, shards, weight_map: Some(weight_map), metadata })
    }

    /// Returns the names of the tensors, in the order of their bytes; of an index, file after file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the paths of the files with tensors.
    #[cfg(feature = "nn")]
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().map(|shard| shard.path.as_str())
    }

    /// Returns the metadata of the header; of an index, the metadata of all files, a later file's first.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Returns a tensor by name, before its elements are read.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if there is no tensor of that name or the file cannot be read.
    pub fn array(&mut self, name: &str) -> Result<SafetensorsArray<'_>> {
        let at = match &self.weight_map {
            Some(map) => map.get(name).copied(),
            None => Some(0),
        };
        let shard = at.and_then(|at| self.shards.get_mut(at));
        let found = shard.and_then(|shard| {
            let Shard { path, file, header } = shard;
            header.tensors.info(name).map(|info| (path, file, info, header.start))
        });
        let Some((path, file, info, start)) = found else {
            let listed: Vec<&str> = self.names.iter().take(8).map(String::as_str).collect();
            let more = if self.names.len() > listed.len() { ", …" } else { "" };
            let wanted = format!("one of {}{more}", listed.join(", "));
            return Err(refusal(&self.path, format!("no tensor {}", quoted(name)), wanted));
        };
        let (begin, end) = info.data_offsets;
        let start = start + begin as u64;
        let label = format!("{path}: {}", quoted(name));
        file.seek(SeekFrom::Start(start)).map_err(|error| failure(&label, &error))?;
        Ok(SafetensorsArray { label, file, info, start, bytes: end - begin, left: end - begin })
    }
}

impl std::fmt::Debug for SafetensorsFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SafetensorsFile({}: {})", self.path, self.names.join(", "))
    }
}

/// A tensor of a [`SafetensorsFile`].
pub struct SafetensorsArray<'a> {
    /// The file and the tensor, for errors.
    label: String,
    file: &'a mut File,
    info: &'a TensorInfo,
    start: u64,
    bytes: usize,
    left: usize,
}

impl SafetensorsArray<'_> {
    /// Returns the element type.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for an element type of the format that is no [`DType`].
    pub fn dtype(&self) -> Result<DType> {
        dtype_of(self.info.dtype).ok_or_else(|| {
            let known: Vec<String> = DType::ALL
                .iter()
                .filter_map(|&dtype| name_of(dtype))
                .map(|dtype| dtype.to_string())
                .collect();
            let found = format!("elements of dtype {}", self.info.dtype);
            refusal(&self.label, found, format!("one of {}", known.join(", ")))
        })
    }

    /// Returns the format's name of the element type, such as `F32` or `F4`.
    pub fn dtype_name(&self) -> String {
        self.info.dtype.to_string()
    }

    /// Returns the dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.info.shape
    }

    /// Returns the bytes of all elements.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Fills `bytes` with the next bytes of the elements, row-major.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read or became shorter, [`Error::LengthMismatch`] if the tensor has
    /// fewer bytes.
    pub fn read_bytes(&mut self, bytes: &mut [u8]) -> Result<()> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            let operation = "reading the last bytes of a safetensors file's tensor";
            return Err(Error::LengthMismatch { operation, wanted: self.left, found: bytes.len() });
        };
        parallel_read::read_exact(self.file, bytes).map_err(|error| failure(&self.label, &error))?;
        self.left = left;
        Ok(())
    }

    /// Reads the elements.
    ///
    /// # Errors
    ///
    /// As [`dtype`](Self::dtype), [`read_bytes`](Self::read_bytes) and [`HostArray::zeros`].
    pub fn read(mut self) -> Result<HostArray> {
        let mut array = HostArray::zeros(self.dtype()?, self.shape())?;
        read_all(array.as_bytes_mut(), &mut |chunk| self.read_bytes(chunk), &mut |_, _| {})?;
        Ok(array)
    }

    /// Maps the elements into memory. The system reads a page at its first access.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the system cannot map the file.
    ///
    /// # Safety
    ///
    /// As [`NpyFile::map`](super::npy::NpyFile::map).
    pub unsafe fn map(&self) -> Result<Mapped> {
        // SAFETY: the caller guarantees that the file does not change.
        let mapped = unsafe { map_bytes(self.file, self.start, self.bytes) };
        mapped.map_err(|error| failure(&self.label, &error))
    }
}

impl std::fmt::Debug for SafetensorsArray<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SafetensorsArray({}: {}{:?})", self.label, self.info.dtype, self.info.shape)
    }
}

/// Returns this crate's dtype of a dtype of the format.
fn dtype_of(dtype: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|known| name_of(*known) == Some(dtype))
}

/// Returns the format's dtype of a dtype of this crate. `c128` has none.
fn name_of(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::U16 => Dtype::U16,
        DType::I16 => Dtype::I16,
        DType::U32 => Dtype::U32,
        DType::I32 => Dtype::I32,
        DType::U64 => Dtype::U64,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::C64 => Dtype::C64,
        DType::C128 => return None,
        DType::F8E4M3 => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
    })
}

/// Returns a tensor's name for a message: quoted, escaped, and not longer than a line.
fn quoted(name: &str) -> String {
    const LONGEST: usize = 120;
    let mut text: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if name.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    format!("'{text}'")
}

fn refusal(path: &str, found: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Error {
    file_error(path, found, wanted)
}

fn failure(path: &str, error: &std::io::Error) -> Error {
    read_failure(path, ".safetensors", error)
}
