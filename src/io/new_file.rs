//! [`NewFile`], the writer of every file: a regular file gets its name when it is whole, a device or a pipe is written
//! through.
//!
//! Tests: `tests/io/writing.rs`, `tests/cli/writing.rs`.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error as LibraryError;

/// Symbolic links that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file that is written under a temporary name beside its path. The path gets it at [`finish`](Self::finish); a file that is
/// dropped before leaves what the path held.
///
/// Symbolic links are followed, so the file at their end is replaced, and the replaced file's permissions and owner stay. A
/// device, a pipe and a descriptor of this process (`/dev/stdout`) get the bytes as they are written, in order.
#[derive(Debug)]
pub(crate) struct NewFile {
    destination: Destination,
    /// None once it was finished.
    file: Option<BufWriter<File>>,
    position: u64,
}

#[derive(Debug)]
enum Destination {
    /// A regular file.
    Replaced { path: PathBuf, temporary: PathBuf },
    /// A device, a pipe or a descriptor.
    Stream,
}

impl NewFile {
    /// Opens a file for writing.
    pub(crate) fn create(path: &Path) -> Result<NewFile> {
        let old = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let target = match &old {
            Some(found) if !found.is_file() => None,
            _ => end_of_links(path)?,
        };
        let (destination, file) = match target {
            None => (Destination::Stream, OpenOptions::new().append(true).open(path)?),
            Some(path) => {
                if old.is_some() {
                    // A file that may not be written must not be replaced.
                    OpenOptions::new().write(true).open(&path)?;
                }
                let (temporary, file) = create_beside(&path, old.is_some())?;
                (Destination::Replaced { path, temporary }, file)
            }
        };
        let new = NewFile { destination, file: Some(BufWriter::new(file)), position: 0 };
        if let (Destination::Replaced { .. }, Some(old), Some(file)) = (&new.destination, &old, &new.file) {
            keep_permissions(old, file.get_ref())?;
        }
        Ok(new)
    }

    /// True for a device, a pipe and a descriptor, whose bytes are written in order.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.destination, Destination::Stream)
    }

    fn open(&mut self) -> Result<&mut BufWriter<File>> {
        self.file.as_mut().ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// Waits until a regular file is on the disk, and gives it its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        if !self.is_stream() {
            self.open()?.get_ref().sync_all()?;
        }
        self.name()
    }

    /// Gives a regular file its name. The system writes it to the disk later: the name may then refer to an incomplete file
    /// after a crash of the machine, though not after one of the process.
    pub(crate) fn finish_without_sync(mut self) -> Result<()> {
        self.flush()?;
        self.name()
    }

    fn name(&mut self) -> Result<()> {
        if let Destination::Replaced { path, temporary } = &self.destination {
            std::fs::rename(temporary, path)?;
        }
        self.file = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let count = self.open()?.write(bytes)?;
        self.position += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> Result<()> {
        self.open()?.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        if to == SeekFrom::Start(self.position) {
            return Ok(self.position);
        }
        if self.is_stream() {
            let text = "a device or a pipe takes the bytes in their order alone";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        self.position = self.open()?.seek(to)?;
        Ok(self.position)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Bytes that wait in the buffer belong to a file that nobody wants.
            let _ = file.into_parts();
            if let Destination::Replaced { temporary, .. } = &self.destination {
                // An earlier error is the one to report, and the file has a temporary name.
                let _ = std::fs::remove_file(temporary);
            }
        }
    }
}

/// Returns the path at the end of symbolic links, which may not exist, or `None` for a descriptor of a process: the system
/// shows it as a link whose text is no path.
fn end_of_links(path: &Path) -> Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                if path.starts_with("/proc") || path.starts_with("/dev/fd") {
                    return Ok(None);
                }
                let link = std::fs::read_link(&path)?;
                path = path.parent().unwrap_or_else(|| Path::new("")).join(link);
            }
            Ok(_) => return Ok(Some(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(path)),
            Err(error) => return Err(error),
        }
    }
    Err(Error::other(format!("more than {MAX_LINKS} symbolic links")))
}

/// Creates a file beside a path, under a name that no other writer has. Others may not read it if it is to replace a file
/// whose permissions it does not have yet.
fn create_beside(path: &Path, is_private: bool) -> Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    /// A name has at most 255 bytes on most file systems.
    const MAX_CHARACTERS: usize = 50;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(MAX_CHARACTERS).collect();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(".{name}.{}.{number}.tmp", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o666 });
        #[cfg(not(unix))]
        let _ = is_private;
        match options.open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // A file that an ended process of this number left.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gives a file the permissions, and where the system allows it the owner and the group, of the file that it replaces.
#[cfg(unix)]
fn keep_permissions(old: &Metadata, file: &File) -> Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    let is_owned = new.uid() == old.uid() || fchown(file, Some(old.uid()), None).is_ok();
    let is_of_group = new.gid() == old.gid() || fchown(file, None, Some(old.gid())).is_ok();
    if !is_of_group {
        // Another group gets what everybody has.
        mode = mode & 0o707 | (mode & 0o007) << 3;
    }
    if !is_owned {
        mode &= 0o777;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn keep_permissions(old: &Metadata, file: &File) -> Result<()> {
    file.set_permissions(old.permissions())
}

/// Returns the error of a file that cannot be written; `wanted` says what it needs.
pub(crate) fn write_error(path: &Path, error: &Error, wanted: impl Into<String>) -> LibraryError {
    LibraryError::FileNotWritten {
        path: path.display().to_string(),
        found: format!("a write error: {error}"),
        wanted: wanted.into(),
    }
}
