//! [`ArchiveFile`], a zip archive that is written with `zip`.
//!
//! The destructor of `zip`'s writer completes an archive that was dropped, and reports an error of that on stderr. So the
//! writer gets a [`Sink`], which keeps the first error to itself and takes all bytes after it.

use std::io::{Error, Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zip::ZipWriter;
use zip::write::{SimpleFileOptions, StreamWriter};

use super::new_file::NewFile;

/// A zip archive open for writing. A file that is dropped before [`finish`](Self::finish) leaves what its path held.
pub(super) struct ArchiveFile {
    /// None once it was finished.
    writer: Option<Writer>,
    output: Arc<Mutex<Output>>,
}

/// A device or a pipe gets the size of a member behind the member.
enum Writer {
    File(ZipWriter<Sink>),
    Stream(ZipWriter<StreamWriter<Sink>>),
}

struct Output {
    /// None once it was finished, or dropped for an error.
    file: Option<NewFile>,
    /// The first error.
    error: Option<Error>,
}

struct Sink {
    output: Arc<Mutex<Output>>,
    position: u64,
    end: u64,
}

impl ArchiveFile {
    /// Creates an archive without members.
    pub(super) fn create(path: &Path) -> Result<ArchiveFile> {
        let file = NewFile::create(path)?;
        let is_stream = file.is_stream();
        let output = Arc::new(Mutex::new(Output { file: Some(file), error: None }));
        let sink = Sink { output: Arc::clone(&output), position: 0, end: 0 };
        let writer = match is_stream {
            true => Writer::Stream(ZipWriter::new_stream(sink)),
            false => Writer::File(ZipWriter::new(sink)),
        };
        Ok(ArchiveFile { writer: Some(writer), output })
    }

    /// Begins a member. [`write`](Self::write) then adds its bytes.
    pub(super) fn begin(&mut self, name: &str, options: SimpleFileOptions) -> Result<()> {
        match &mut self.writer {
            Some(Writer::File(writer)) => writer.start_file(name, options)?,
            Some(Writer::Stream(writer)) => writer.start_file(name, options)?,
            None => {}
        }
        lock(&self.output).check()
    }

    /// Writes the next bytes of the member.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.writer {
            Some(Writer::File(writer)) => writer.write_all(bytes)?,
            Some(Writer::Stream(writer)) => writer.write_all(bytes)?,
            None => {}
        }
        lock(&self.output).check()
    }

    /// Writes the directory, and gives the file its name.
    pub(super) fn finish(mut self) -> Result<()> {
        match self.writer.take() {
            Some(Writer::File(writer)) => drop(writer.finish()?),
            Some(Writer::Stream(writer)) => drop(writer.finish()?),
            None => {}
        }
        let mut output = lock(&self.output);
        output.check()?;
        output.file.take().map_or(Ok(()), NewFile::finish_without_sync)
    }
}

impl Drop for ArchiveFile {
    fn drop(&mut self) {
        // The writer's destructor comes after this, and its bytes go nowhere.
        lock(&self.output).file = None;
    }
}

impl Output {
    /// Returns the first error, each time.
    fn check(&self) -> Result<()> {
        match &self.error {
            None => Ok(()),
            Some(error) => Err(error
                .raw_os_error()
                .map_or_else(|| Error::new(error.kind(), error.to_string()), Error::from_raw_os_error)),
        }
    }

    fn attempt(&mut self, work: impl FnOnce(&mut NewFile) -> Result<()>) {
        if let Some(Err(error)) = self.file.as_mut().map(work) {
            (self.file, self.error) = (None, Some(error));
        }
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        lock(&self.output).attempt(|file| file.write_all(bytes));
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        let position = position.ok_or(std::io::ErrorKind::InvalidInput)?;
        lock(&self.output).attempt(|file| file.seek(SeekFrom::Start(position)).map(drop));
        self.position = position;
        Ok(position)
    }
}
