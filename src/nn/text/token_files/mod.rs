//! [`TokenFiles`], the ids of a text in the files of llm.c, nanoGPT and NumPy, and [`TokenWriter`], which writes them.
//!
//! | format | file |
//! |---|---|
//! | llm.c | 256 little-endian i32, of which the first three are 20240520, 1 and the number of ids, then u16; or 20240801, 7 and u32 |
//! | raw, as nanoGPT writes | u16 without a header |
//! | npy | NumPy's array of u16 or u32 in one dimension |
//!
//! Tests: `tests/nn/token_files.rs`.

mod write;

use std::fmt;
use std::ops::Range;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::io::npy::{Mapped, NpyFile, file_error, map_bytes, open_regular, read_failure};
use crate::types::DType;
use std::io::{Read, Seek, SeekFrom};

pub use write::{TokenFormat, TokenWriter};

const KIND: &str = "token";
/// The bytes of llm.c's header.
const HEADER_BYTES: u64 = 1024;
/// The first number and the version of llm.c's files, and the bytes of an id in them.
const LLMC: [(i32, i32, usize); 2] = [(20_240_520, 1, 2), (20_240_801, 7, 4)];

/// The ids of one or more token files, one after the other. Files may be mapped, so that the system reads a page when it is used.
///
/// ```
/// use selvedge::nn::{TokenFiles, TokenFormat, TokenWriter};
/// use selvedge::DType;
/// # let folder = std::env::temp_dir().join(format!("selvedge-doc-tokens-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap_or_default();
/// let path = folder.join("train.bin");
/// let mut writer = TokenWriter::create(&path, TokenFormat::Llmc, DType::U16, None)?;
/// writer.write(&[3, 1, 4])?;
/// writer.finish()?;
/// let files = TokenFiles::read([&path])?;
/// assert_eq!((files.len(), files.ids(1..3)?), (3, vec![1, 4]));
/// # let _ = std::fs::remove_dir_all(&folder);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct TokenFiles {
    shards: Vec<Shard>,
    /// The ids of all files.
    len: usize,
    largest: u32,
    hash: String,
}

struct Shard {
    /// The position of the first id.
    start: usize,
    len: usize,
    /// The bytes of an id, 2 or 4.
    width: usize,
    bytes: Bytes,
}

enum Bytes {
    Memory(Vec<u8>),
    Mapped(Mapped),
}

impl Shard {
    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Memory(bytes) => bytes,
            Bytes::Mapped(pages) => pages,
        }
    }

    /// Calls `each` with the ids of a range.
    fn each_id(&self, range: Range<usize>, mut each: impl FnMut(u32)) {
        let bytes = self.bytes().get(range.start * self.width..range.end * self.width).unwrap_or_default();
        if self.width == 2 {
            bytes.as_chunks().0.iter().for_each(|&id| each(u32::from(u16::from_le_bytes(id))));
        } else {
            bytes.as_chunks().0.iter().for_each(|&id| each(u32::from_le_bytes(id)));
        }
    }
}

impl TokenFiles {
    /// Reads files into memory.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a file that cannot be read, of another format or version, truncated, or without ids;
    /// [`Error::InvalidArgument`] for no files.
    pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<TokenFiles> {
        TokenFiles::open(paths, &|path, start, bytes| {
            let name = path.display().to_string();
            let (mut file, _) = open_regular(path, KIND)?;
            let mut contents = Vec::new();
            if contents.try_reserve_exact(bytes).is_err() {
                return Err(Error::host_memory(bytes, format!("the ids of {name}")));
            }
            contents.resize(bytes, 0);
            file.seek(SeekFrom::Start(start))
                .and_then(|_| file.read_exact(&mut contents))
                .map_err(|error| read_failure(&name, KIND, &error))?;
            Ok(Bytes::Memory(contents))
        })
    }

    /// Maps files into memory, and reads them once for their hash.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Safety
    ///
    /// No process may write or shorten a file while these ids live: bytes would change under a shared borrow, and reading past
    /// the new end ends the process.
    pub unsafe fn map<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<TokenFiles> {
        TokenFiles::open(paths, &|path, start, bytes| {
            let (file, _) = open_regular(path, KIND)?;
            // SAFETY: the caller guarantees that the file does not change.
            let mapped = unsafe { map_bytes(&file, start, bytes) };
            let failed = |error| read_failure(&path.display().to_string(), KIND, &error);
            Ok(Bytes::Mapped(mapped.map_err(failed)?))
        })
    }

    fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        contents: &dyn Fn(&Path, u64, usize) -> Result<Bytes>,
    ) -> Result<TokenFiles> {
        let mut files = TokenFiles { shards: Vec::new(), len: 0, largest: 0, hash: String::new() };
        let mut hash = Sha256::new();
        for path in paths {
            let path = path.as_ref();
            let Layout { start, len, width } = layout(path)?;
            let shard = Shard { start: files.len, len, width, bytes: contents(path, start, len * width)? };
            let mut largest = 0;
            shard.each_id(0..len, |id| largest = largest.max(id));
            hash.update((width as u64).to_le_bytes());
            hash.update(shard.bytes());
            files.largest = files.largest.max(largest);
            files.len += len;
            files.shards.push(shard);
        }
        if files.shards.is_empty() {
            return Err(Error::invalid("TokenFiles", "no files", "at least one file of ids"));
        }
        files.hash = format!("{:x}", hash.finalize());
        Ok(files)
    }

    /// Appends files. The hash depends on the border between both.
    pub(super) fn chain(mut self, other: TokenFiles) -> TokenFiles {
        let shift = self.len;
        let moved = other.shards.into_iter().map(|shard| Shard { start: shard.start + shift, ..shard });
        self.shards.extend(moved);
        self.len += other.len;
        self.largest = self.largest.max(other.largest);
        self.hash = format!("{:x}", Sha256::digest(format!("{} {}", self.hash, other.hash)));
        self
    }

    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no ids, which [`read`](Self::read) and [`map`](Self::map) refuse.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the largest id. A model whose vocabulary has no more ids than that does not fit.
    pub fn largest_id(&self) -> u32 {
        self.largest
    }

    /// Returns the SHA-256 of the ids and their widths in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the ids at positions, which may reach over several files.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for positions outside the files.
    pub fn ids(&self, range: Range<usize>) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.each_id(range, |id| ids.push(id))?;
        Ok(ids)
    }

    /// Calls `each` with the ids at positions.
    pub(super) fn each_id(&self, range: Range<usize>, mut each: impl FnMut(u32)) -> Result<()> {
        let Range { start, end } = range;
        if start > end || end > self.len {
            return Err(Error::OutOfRange { start, end, length: self.len });
        }
        let first = self.shards.partition_point(|shard| shard.start + shard.len <= start);
        for shard in self.shards.iter().skip(first).take_while(|shard| shard.start < end) {
            let from = start.max(shard.start) - shard.start;
            shard.each_id(from..(end - shard.start).min(shard.len), &mut each);
        }
        Ok(())
    }
}

impl fmt::Debug for TokenFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TokenFiles({} ids in {} files)", self.len, self.shards.len())
    }
}

/// The place of the ids in a file.
struct Layout {
    /// The byte of the first id.
    start: u64,
    len: usize,
    width: usize,
}

/// Reads the header of a file.
fn layout(path: &Path) -> Result<Layout> {
    let name = path.display().to_string();
    let layout = if TokenFormat::of_path(path) == Some(TokenFormat::Npy) {
        npy_layout(path)?
    } else {
        bin_layout(path)?
    };
    if layout.len == 0 {
        return Err(file_error(&name, "no ids", "at least one id"));
    }
    Ok(layout)
}

fn npy_layout(path: &Path) -> Result<Layout> {
    let file = NpyFile::open(path)?;
    let width = match (file.dtype()?, file.shape()) {
        (DType::U16, [_]) => 2,
        (DType::U32, [_]) => 4,
        (dtype, shape) => {
            let found = format!("an array of {dtype} in {} dimensions", shape.len());
            return Err(file_error(&path.display().to_string(), found, "ids of u16 or u32 in one dimension"));
        }
    };
    Ok(Layout { start: file.start(), len: file.len(), width })
}

fn bin_layout(path: &Path) -> Result<Layout> {
    let name = path.display().to_string();
    let (file, length) = open_regular(path, KIND)?;
    let mut header = Vec::new();
    file.take(12).read_to_end(&mut header).map_err(|error| read_failure(&name, KIND, &error))?;
    let word = |at: usize| header.get(4 * at..4 * at + 4)?.try_into().ok().map(i32::from_le_bytes);
    let Some(&(_, version, width)) = LLMC.iter().find(|&&(magic, ..)| word(0) == Some(magic)) else {
        if length % 2 != 0 {
            let found = format!("a truncated file: {length} bytes");
            let wanted =
                "u16 ids of two bytes each, or llm.c's header, which begins with 20240520 or 20240801";
            return Err(file_error(&name, found, wanted));
        }
        let len = usize::try_from(length / 2).unwrap_or(usize::MAX);
        return Ok(Layout { start: 0, len, width: 2 });
    };
    if word(1).is_some_and(|found| found != version) {
        let found = format!("version {} of llm.c's header", word(1).unwrap_or_default());
        return Err(file_error(&name, found, format!("version {version}, whose ids have {width} bytes")));
    }
    let Some(count) = word(2).filter(|_| length >= HEADER_BYTES) else {
        let found = format!("a truncated file: {length} bytes");
        return Err(file_error(&name, found, format!("{HEADER_BYTES} bytes for llm.c's header alone")));
    };
    let Ok(len) = usize::try_from(count) else {
        return Err(file_error(&name, format!("a header of {count} ids"), "a count of ids"));
    };
    let wanted = HEADER_BYTES + len as u64 * width as u64;
    if length != wanted {
        let state = if length < wanted { "truncated" } else { "longer" };
        let found = format!("a {state} file: {length} bytes");
        return Err(file_error(&name, found, format!("{wanted} bytes, for the {len} ids of its header")));
    }
    Ok(Layout { start: HEADER_BYTES, len, width })
}
