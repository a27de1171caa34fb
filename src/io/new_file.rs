//! [`NewFile`], a file that gets its name when it is whole.

use std::fs::File;
use std::io::{BufWriter, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A temporary file beside a path. The path gets it at [`finish`](Self::finish); a file that is dropped before leaves what
/// the path held.
pub(crate) struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    /// None once it was finished.
    file: Option<BufWriter<File>>,
}

impl NewFile {
    /// Creates a file whose name no other writer has.
    pub(crate) fn create(path: &Path) -> Result<NewFile> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(".{name}.{}.{number}.tmp", std::process::id()));
        let file = Some(BufWriter::new(File::create(&temporary)?));
        Ok(NewFile { path: path.to_owned(), temporary, file })
    }

    fn open(&mut self) -> Result<&mut BufWriter<File>> {
        self.file.as_mut().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }

    /// Gives the file its name. It replaces what the path held.
    pub(crate) fn finish(mut self) -> Result<()> {
        let file = self.open()?;
        file.flush()?;
        file.get_ref().sync_all()?;
        std::fs::rename(&self.temporary, &self.path)?;
        self.file = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.open()?.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.open()?.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.open()?.seek(to)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // An earlier error is the one to report, and the file has a temporary name.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
