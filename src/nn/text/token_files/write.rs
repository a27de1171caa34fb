//! [`TokenWriter`], the writer of token files.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{HEADER_BYTES, LLMC};
use crate::error::{Error, Result};
use crate::io::new_file::{NewFile, write_error};
use crate::io::npy::header_bytes;
use crate::types::DType;

/// The format of a token file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFormat {
    /// llm.c's `.bin`, with a header.
    Llmc,
    /// nanoGPT's `.bin` of u16, without a header.
    Raw,
    /// NumPy's `.npy`.
    Npy,
}

impl TokenFormat {
    /// Returns the format of a file by the ending of its name, in either case: NumPy's for `.npy`, llm.c's for `.bin`, which is the
    /// raw one without its header, and none for another.
    ///
    /// ```
    /// use selvedge::nn::TokenFormat;
    /// assert_eq!(TokenFormat::of_path("train.npy"), Some(TokenFormat::Npy));
    /// assert_eq!(TokenFormat::of_path("train.txt"), None);
    /// ```
    pub fn of_path(path: impl AsRef<Path>) -> Option<TokenFormat> {
        let ending = path.as_ref().extension()?;
        let is = |known: &str| ending.eq_ignore_ascii_case(known);
        if is("npy") {
            return Some(TokenFormat::Npy);
        }
        is("bin").then_some(TokenFormat::Llmc)
    }
}

/// Writes ids into a token file, or into several of a size. A file gets its name when it is whole.
///
/// See [`TokenFiles`](super::TokenFiles) for an example.
#[derive(Debug)]
pub struct TokenWriter {
    path: PathBuf,
    format: TokenFormat,
    dtype: DType,
    /// The ids of each file but the last, of several files.
    shard_ids: Option<u64>,
    file: Option<NewFile>,
    path_of_file: PathBuf,
    /// The ids of the open file.
    count: u64,
    total: u64,
    finished: Vec<PathBuf>,
    buffer: Vec<u8>,
}

const OPERATION: &str = "TokenWriter";

impl TokenWriter {
    /// Creates a writer of ids of u16 or u32. With `shard_ids` the path `train.bin` stands for the files `train_000000.bin`,
    /// `train_000001.bin` and so on, of so many ids each.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another dtype, u32 in the raw format, which no header tells from u16, and files of no ids;
    /// [`Error::FileNotWritten`].
    pub fn create(
        path: impl AsRef<Path>,
        format: TokenFormat,
        dtype: DType,
        shard_ids: Option<u64>,
    ) -> Result<TokenWriter> {
        if !matches!(dtype, DType::U16 | DType::U32) {
            return Err(Error::invalid(OPERATION, format!("ids of {dtype}"), "u16 or u32"));
        }
        if format == TokenFormat::Raw && dtype == DType::U32 {
            let wanted = "u16, or llm.c's format or .npy, whose header tells the width of an id";
            return Err(Error::invalid(OPERATION, "ids of u32 without a header", wanted));
        }
        if shard_ids == Some(0) {
            return Err(Error::invalid(OPERATION, "files of 0 ids", "at least 1 id a file"));
        }
        let mut writer = TokenWriter {
            path: path.as_ref().to_owned(),
            format,
            dtype,
            shard_ids,
            file: None,
            path_of_file: PathBuf::new(),
            count: 0,
            total: 0,
            finished: Vec::new(),
            buffer: Vec::new(),
        };
        writer.open()?;
        Ok(writer)
    }

    /// Returns the number of ids that were written.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Returns whether no id was written.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Writes the next ids.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an id of more than 65535 in a file of u16, [`Error::FileNotWritten`].
    pub fn write(&mut self, mut ids: &[u32]) -> Result<()> {
        while !ids.is_empty() {
            let left = self.shard_ids.map_or(u64::MAX, |limit| limit - self.count);
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(ids.len());
            let (first, rest) = ids.split_at(count);
            self.append(first)?;
            ids = rest;
            if Some(self.count) == self.shard_ids && !ids.is_empty() {
                self.close()?;
                self.open()?;
            }
        }
        Ok(())
    }

    /// Completes the last file, and returns the paths of all.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if no id was written, [`Error::FileNotWritten`].
    pub fn finish(mut self) -> Result<Vec<PathBuf>> {
        if self.total == 0 {
            return Err(Error::invalid(OPERATION, "no ids", "at least one id"));
        }
        self.close()?;
        Ok(self.finished)
    }

    fn append(&mut self, ids: &[u32]) -> Result<()> {
        self.buffer.clear();
        if self.dtype == DType::U16 {
            // A check of all, and then a conversion without one, are loops of vector instructions.
            if let Some(id) = ids.iter().find(|&&id| id > u32::from(u16::MAX)) {
                let wanted = "ids to 65535 in a file of u16; u32 takes all";
                return Err(Error::invalid(OPERATION, format!("the id {id}"), wanted));
            }
            self.buffer.resize(2 * ids.len(), 0);
            for (bytes, &id) in self.buffer.chunks_exact_mut(2).zip(ids) {
                bytes.copy_from_slice(&(id as u16).to_le_bytes());
            }
        } else {
            self.buffer.resize(4 * ids.len(), 0);
            for (bytes, id) in self.buffer.chunks_exact_mut(4).zip(ids) {
                bytes.copy_from_slice(&id.to_le_bytes());
            }
        }
        let limit = if self.format == TokenFormat::Llmc { i32::MAX as u64 } else { u64::MAX };
        if self.count + ids.len() as u64 > limit {
            let found = format!("more than {limit} ids in one file");
            return Err(Error::invalid(
                OPERATION,
                found,
                "fewer, which llm.c's header counts; several files take more",
            ));
        }
        let written = match &mut self.file {
            Some(file) => file.write_all(&self.buffer),
            None => Err(std::io::ErrorKind::NotConnected.into()),
        };
        written.map_err(|error| self.failed(&error))?;
        self.count += ids.len() as u64;
        self.total += ids.len() as u64;
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        self.path_of_file = match self.shard_ids {
            None => self.path.clone(),
            Some(_) => {
                let mut name = self.path.file_stem().unwrap_or_default().to_owned();
                name.push(format!("_{:06}", self.finished.len()));
                if let Some(extension) = self.path.extension() {
                    name.push(".");
                    name.push(extension);
                }
                self.path.with_file_name(name)
            }
        };
        self.count = 0;
        let header = self.header();
        let created = NewFile::create(&self.path_of_file).and_then(|mut file| {
            file.write_all(&header)?;
            Ok(file)
        });
        self.file = Some(created.map_err(|error| self.failed(&error))?);
        Ok(())
    }

    /// Writes the header with the count, and gives the file its name.
    fn close(&mut self) -> Result<()> {
        let header = self.header();
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let finish = || {
            file.flush()?;
            if !header.is_empty() {
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&header)?;
            }
            file.finish_without_sync()
        };
        finish().map_err(|error| self.failed(&error))?;
        self.finished.push(self.path_of_file.clone());
        Ok(())
    }

    /// Returns the header of the open file. Its length does not depend on the count.
    fn header(&self) -> Vec<u8> {
        match self.format {
            TokenFormat::Raw => Vec::new(),
            TokenFormat::Npy => header_bytes(self.dtype, &[self.count as usize]),
            TokenFormat::Llmc => {
                let (magic, version, _) = LLMC[usize::from(self.dtype == DType::U32)];
                let words = [magic, version, self.count as i32];
                let mut header: Vec<u8> = words.into_iter().flat_map(i32::to_le_bytes).collect();
                header.resize(HEADER_BYTES as usize, 0);
                header
            }
        }
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        write_error(
            &self.path_of_file,
            error,
            "a regular file that can be written, with free space for the ids",
        )
    }
}
