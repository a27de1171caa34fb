//! The files of a cache: writing, finding, using and removing them while other processes do the same.
//!
//! An entry is written to a temporary file in the folder and renamed, so its name never refers to a partial file,
//! whenever the writer is killed. A later writer removes the leftovers. The modification time of an entry is that of
//! its last use; beyond the limit the least recently used entries are removed first. There are no locks: every step is
//! one system call, and any of them may find that another process was faster.
//!
//! Invariants: only files with names of this cache are removed; no failure reaches a compilation.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The suffix of an entry's name, after 64 digits.
const ENTRY: &str = ".image";
/// The suffix of an unfinished entry's name.
const UNFINISHED: &str = ".new";
/// The age after which an unfinished file is abandoned.
const ABANDONED: Duration = Duration::from_secs(600);

/// A file of this cache in the folder.
struct CacheFile {
    path: PathBuf,
    finished: bool,
    bytes: u64,
    /// The time of its last use or write.
    used: SystemTime,
}

/// Reads the entry of a name; `None` if there is none.
pub(super) fn read(folder: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let path = entry_path(folder, name);
    match path.symlink_metadata() {
        // Opening a pipe would wait for its other end.
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is no file")),
        Ok(_) => fs::read(&path).map(Some),
        Err(error) => Err(error),
    }
    .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) })
}

/// Records that an entry is used now. Without permission (another user's cache) this does nothing.
pub(super) fn mark_used(folder: &Path, name: &str) {
    let file = File::options().read(true).open(entry_path(folder, name));
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes an entry.
pub(super) fn remove(folder: &Path, name: &str) {
    let _ = fs::remove_file(entry_path(folder, name));
}

/// Writes an entry.
pub(super) fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    create(folder)?;
    // Includes the time, because a process of another machine or container may have the same number.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder.join(format!("{name}.{}-{count}-{now}{UNFINISHED}", std::process::id()));
    let fill = || {
        let mut file = File::options().write(true).create_new(true).open(&unfinished)?;
        file.write_all(bytes)?;
        file.set_modified(SystemTime::now())?;
        drop(file);
        match fs::rename(&unfinished, entry_path(folder, name)) {
            // Another process cleared the folder meanwhile: this entry is cleared, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        }
    };
    fill().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

/// Creates the folder, for its owner alone, because its contents are executed.
fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns the number of entries, and the bytes of entries and unfinished files.
pub(super) fn measure(folder: &Path) -> io::Result<(u64, u64)> {
    let found = list(folder)?;
    let entries = found.iter().filter(|file| file.finished).count() as u64;
    Ok((entries, found.iter().map(|file| file.bytes).sum()))
}

/// Removes leftovers of killed writers, and beyond `limit` bytes the least recently used entries, down to nine tenths
/// of it. Returns the remaining bytes.
pub(super) fn tidy(folder: &Path, limit: u64) -> io::Result<u64> {
    let now = SystemTime::now();
    let mut found = list(folder)?;
    let abandoned = |file: &CacheFile| {
        let age = now.duration_since(file.used).unwrap_or_default();
        !file.finished && age > ABANDONED
    };
    found.retain(|file| !(abandoned(file) && fs::remove_file(&file.path).is_ok()));
    let mut bytes: u64 = found.iter().map(|file| file.bytes).sum();
    if bytes > limit {
        let goal = limit / 10 * 9;
        found.retain(|file| file.finished);
        found.sort_by_key(|file| file.used);
        for file in found {
            if bytes <= goal {
                break;
            }
            // Already gone if another process tidies too.
            if fs::remove_file(&file.path).is_ok() || !file.path.exists() {
                bytes = bytes.saturating_sub(file.bytes);
            }
        }
    }
    Ok(bytes)
}

/// Removes all files of this cache. Returns the removed entries and bytes.
pub(super) fn clear(folder: &Path) -> io::Result<(u64, u64)> {
    let (mut entries, mut bytes) = (0, 0);
    for file in list(folder)? {
        match fs::remove_file(&file.path) {
            Ok(()) => {
                entries += u64::from(file.finished);
                bytes += file.bytes;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((entries, bytes))
}

fn entry_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{ENTRY}"))
}

/// Returns all files of this cache; empty without a folder.
fn list(folder: &Path) -> io::Result<Vec<CacheFile>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(finished) = entry.file_name().to_str().and_then(kind) else { continue };
        // A file that vanished meanwhile, and a folder, is skipped.
        let Some(metadata) = entry.metadata().ok().filter(|metadata| metadata.is_file()) else { continue };
        let used = metadata.modified()?;
        found.push(CacheFile { path: entry.path(), finished, bytes: metadata.len(), used });
    }
    Ok(found)
}

/// Classifies a file name: a finished entry (`true`), an unfinished one (`false`), or neither (`None`).
fn kind(name: &str) -> Option<bool> {
    let (digits, rest) = name.split_at_checked(64)?;
    let ours = digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    match rest {
        _ if !ours => None,
        ENTRY => Some(true),
        _ => (rest.starts_with('.') && rest.ends_with(UNFINISHED)).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn set_age(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn only_names_of_ours_count() {
        assert_eq!(kind(&format!("{}.image", name('a'))), Some(true));
        assert_eq!(kind(&format!("{}.1-2-3.new", name('0'))), Some(false));
        for other in ["", "notes.txt", ".image", "a.image", ".1-2-3.new"] {
            assert_eq!(kind(other), None, "{other}");
        }
        assert_eq!(kind(&format!("{}.image", name('A'))), None);
        assert_eq!(kind(&format!("{}.images", name('a'))), None);
        assert_eq!(kind(&format!("{}a.image", name('a'))), None);
    }

    #[test]
    fn those_used_longest_ago_go_first() {
        let folder = tempfile::tempdir().unwrap();
        for (age, digit) in ['a', 'b', 'c', 'd'].into_iter().enumerate() {
            write(folder.path(), &name(digit), &[0; 100]).unwrap();
            set_age(&entry_path(folder.path(), &name(digit)), 1000 - 100 * age as u64);
        }
        mark_used(folder.path(), &name('a'));
        let there = || ['a', 'b', 'c', 'd'].map(|digit| entry_path(folder.path(), &name(digit)).exists());
        assert_eq!(tidy(folder.path(), 400).unwrap(), 400);
        assert_eq!(there(), [true; 4]);
        // 360 bytes are the goal, so one has to go: the second, since the first was used again.
        assert_eq!(tidy(folder.path(), 399).unwrap(), 300);
        assert_eq!(there(), [true, false, true, true]);
        assert_eq!(tidy(folder.path(), 120).unwrap(), 100);
        assert_eq!(there(), [true, false, false, false]);
    }

    #[test]
    fn what_killed_writers_left_is_swept_and_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: String| {
            let path = folder.path().join(name);
            fs::write(&path, "1234").unwrap();
            set_age(&path, 3600);
            path
        };
        let (old, young) =
            (file(format!("{}.1-2-3.new", name('a'))), file(format!("{}.1-2-4.new", name('a'))));
        let (others, entry) = (file("notes.txt".to_owned()), file(format!("{}.image", name('b'))));
        set_age(&young, 60);
        assert_eq!(measure(folder.path()).unwrap(), (1, 12));
        assert_eq!(tidy(folder.path(), 1000).unwrap(), 8);
        assert_eq!([&old, &young, &others, &entry].map(|path| path.exists()), [false, true, true, true]);
        assert_eq!(clear(folder.path()).unwrap(), (1, 8));
        assert_eq!([&young, &others, &entry].map(|path| path.exists()), [false, true, false]);
        assert_eq!(measure(&folder.path().join("nowhere")).unwrap(), (0, 0));
        assert!(measure(&others).is_err());
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path(), &name('a')).unwrap(), None);
        fs::create_dir(entry_path(folder.path(), &name('a'))).unwrap();
        assert!(read(folder.path(), &name('a')).is_err());
        assert!(write(folder.path(), &name('a'), b"x").is_err());
        assert_eq!(measure(folder.path()).unwrap(), (0, 0), "the unfinished file is gone");
        assert!(write(Path::new("/proc/nowhere"), &name('a'), b"x").is_err());
    }
}
