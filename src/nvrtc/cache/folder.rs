//! The files of a cache: how they are written, found, used and removed while other processes do the same.
//!
//! An entry is written to a file of its own beside its place and renamed there, so its name never stands for half of it, whoever is
//! killed when. What a killed writer leaves is swept by a later one. The time of change of an entry is that of its last use, and past
//! the limit those used longest ago go first. Nobody locks: every step is one call of the system, and any of them may find that another
//! process was faster.
//!
//! What must stay true: only files that are named as ours are removed, and no failure reaches a compilation.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The end of an entry's name, behind 64 digits.
const ENTRY: &str = ".image";
/// The end of an unfinished entry's name.
const UNFINISHED: &str = ".new";
/// Past this age nobody is still writing a file.
const ABANDONED: Duration = Duration::from_secs(600);

/// A file in the folder that is ours.
struct Found {
    path: PathBuf,
    finished: bool,
    bytes: u64,
    /// When it was last used, or written.
    used: SystemTime,
}

/// Reads the entry of a name; `None` where there is none.
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

/// Notes that an entry is used now. Who may not (another user's cache) leaves it.
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
    // The time, because a process of another machine or container may have the same number.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder.join(format!("{name}.{}-{count}-{now}{UNFINISHED}", std::process::id()));
    let fill = || {
        let mut file = File::options().write(true).create_new(true).open(&unfinished)?;
        file.write_all(bytes)?;
        file.set_modified(SystemTime::now())?;
        drop(file);
        match fs::rename(&unfinished, entry_path(folder, name)) {
            // Gone, because somebody cleared the folder meanwhile: then this is cleared, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        }
    };
    fill().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

/// Makes the folder, for its owner alone: what is in it will run.
fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Entries and their bytes, with unfinished ones counted as bytes alone.
pub(super) fn measure(folder: &Path) -> io::Result<(u64, u64)> {
    let found = list(folder)?;
    let entries = found.iter().filter(|file| file.finished).count() as u64;
    Ok((entries, found.iter().map(|file| file.bytes).sum()))
}

/// Removes what killed writers left, and past `limit` bytes the entries used longest ago, down to nine tenths of it. Gives the bytes
/// that are left.
pub(super) fn tidy(folder: &Path, limit: u64) -> io::Result<u64> {
    let now = SystemTime::now();
    let mut found = list(folder)?;
    let abandoned = |file: &Found| {
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
            // Gone already where another process tidies too.
            if fs::remove_file(&file.path).is_ok() || !file.path.exists() {
                bytes = bytes.saturating_sub(file.bytes);
            }
        }
    }
    Ok(bytes)
}

/// Removes everything that is ours; gives the entries and bytes that were removed.
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

/// Every file that is ours; none where there is no folder.
fn list(folder: &Path) -> io::Result<Vec<Found>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(finished) = entry.file_name().to_str().and_then(kind) else { continue };
        // One that vanished meanwhile, or is a folder, is not ours.
        let Some(metadata) = entry.metadata().ok().filter(|metadata| metadata.is_file()) else { continue };
        let used = metadata.modified()?;
        found.push(Found { path: entry.path(), finished, bytes: metadata.len(), used });
    }
    Ok(found)
}

/// Whether a file of this name is a finished entry (`true`) or an unfinished one (`false`); `None` for another's.
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
