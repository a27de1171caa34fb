//! [`FolderLock`], which makes one process the writer of a folder.
//!
//! The lock is a file with the process's number, its host and its start. A hard link gives the file its name: it appears with
//! its contents, and only one process creates it. A lock of a process that has ended on the same host is stale; its number may
//! belong to another process since, so the start is compared too. A lock of another host is never stale: this host cannot see
//! the process.
//!
//! The processes that find a stale lock take turns by the system's lock of the file, so none deletes the new lock of another.
//! A holder checks its lock before each save, so a lock that was deleted by hand stops it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::checkpoints::write_error;
use crate::error::{Error, Result};
use crate::io::npy::file_error;

const NAME: &str = "lock";
const ATTEMPTS: usize = 16;

/// The process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockOwner {
    pid: u32,
    host: String,
    /// The start of the process in clock ticks of the system, if the system reports it.
    start: Option<u64>,
}

impl LockOwner {
    fn current() -> LockOwner {
        let pid = std::process::id();
        LockOwner { pid, host: host_name(), start: running(pid).map(|process| process.start) }
    }

    /// Returns whether the process certainly has ended.
    fn has_ended(&self, here: &LockOwner) -> bool {
        if self.host != here.host {
            return false;
        }
        match running(self.pid) {
            Some(process) => process.has_ended || self.start.is_some_and(|start| start != process.start),
            None => !exists(self.pid),
        }
    }
}

/// A lock that this process holds. Dropping it deletes the file.
#[derive(Debug)]
pub(super) struct FolderLock {
    path: PathBuf,
    owner: LockOwner,
    /// The owner of the stale lock that this one replaced.
    ended_owner: Option<LockOwner>,
}

impl FolderLock {
    /// Locks a folder.
    ///
    /// # Errors
    ///
    /// [`Error::FolderLocked`] if another process holds the lock; [`Error::FileNotWritten`]; [`Error::File`] for a lock that is
    /// damaged.
    pub(super) fn acquire(folder: &Path) -> Result<FolderLock> {
        let path = folder.join(NAME);
        let owner = LockOwner::current();
        let mut ended_owner = None;
        for _ in 0..ATTEMPTS {
            if create(&path, &owner).map_err(|error| write_error(folder, &error))? {
                return Ok(FolderLock { path, owner, ended_owner });
            }
            let Some(found) = read(&path)? else { continue };
            if !found.has_ended(&owner) {
                return Err(locked(&path, found));
            }
            if take_away(&path, &found)? {
                let LockOwner { pid, host, .. } = &found;
                log::info!(
                    "{}: took over the lock of process {pid} on host {host}, which has ended",
                    path.display()
                );
                ended_owner = Some(found);
            }
        }
        let wanted = "a lock that one process holds";
        Err(file_error(&path.display().to_string(), "a lock that appears and disappears", wanted))
    }

    /// Returns the number and the host of the process whose stale lock this one replaced.
    pub(super) fn ended_owner(&self) -> Option<(u32, &str)> {
        self.ended_owner.as_ref().map(|owner| (owner.pid, owner.host.as_str()))
    }

    /// Checks that this process still holds the lock.
    ///
    /// # Errors
    ///
    /// [`Error::FolderLocked`] if another one does, [`Error::File`] if the lock was deleted or is damaged.
    pub(super) fn check(&self) -> Result<()> {
        match read(&self.path)? {
            Some(found) if found == self.owner => Ok(()),
            Some(found) => Err(locked(&self.path, found)),
            None => {
                let found = "no lock: it was deleted while this process held it";
                Err(file_error(&self.path.display().to_string(), found, "the lock of this process"))
            }
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if self.check().is_ok() {
            // A lock that stays is stale once the process ends.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn locked(path: &Path, LockOwner { pid, host, .. }: LockOwner) -> Error {
    Error::FolderLocked { path: path.display().to_string(), pid, host }
}

/// Creates the lock with its contents. Returns false if there is one.
fn create(path: &Path, owner: &LockOwner) -> std::io::Result<bool> {
    let text = serde_json::to_vec(owner)?;
    let write = |path: &Path| {
        let mut file = fs::File::create_new(path)?;
        file.write_all(&text)?;
        file.sync_all()
    };
    let temporary = temporary(path);
    // A process with this number may have left it.
    let _ = fs::remove_file(&temporary);
    let written = write(&temporary);
    let linked = written.and_then(|()| match fs::hard_link(&temporary, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            // Some file systems have no links.
            write(path)
        }
        linked => linked,
    });
    let _ = fs::remove_file(&temporary);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns a name beside the lock that no other lock of a process uses.
fn temporary(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{NAME}.{}.{number}.tmp", std::process::id()))
}

/// Reads the lock, if there is one.
fn read(path: &Path) -> Result<Option<LockOwner>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let found = format!("a read error: {error}");
            return Err(file_error(&path.display().to_string(), found, "a lock that can be read"));
        }
    };
    let owner = serde_json::from_slice::<LockOwner>(&text).ok();
    let is_pid = |owner: &LockOwner| i32::try_from(owner.pid).is_ok_and(|pid| pid > 0);
    owner.filter(is_pid).map(Some).ok_or_else(|| {
        let wanted = "the lock of a process: delete it if no process writes the folder";
        file_error(&path.display().to_string(), "a damaged lock", wanted)
    })
}

/// Removes the stale lock. Returns false if another process was faster.
fn take_away(path: &Path, stale: &LockOwner) -> Result<bool> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(write_error(path, &error)),
    };
    let fail = |error: std::io::Error| write_error(path, &error);
    // Of the processes that found this file, one at a time goes on; it stays the path's file until the first deletes it.
    exclude_others(&file).map_err(fail)?;
    if read(path)?.as_ref() != Some(stale) || !is_file_of(&file, path) {
        return Ok(false);
    }
    fs::remove_file(path).map_err(fail)?;
    Ok(true)
}

/// The system's record of a process.
struct RunningProcess {
    start: u64,
    /// It has ended, and its parent has not looked yet.
    has_ended: bool,
}

/// Returns the record of a process if the system shows one.
fn running(pid: u32) -> Option<RunningProcess> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let record = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may hold anything. The state is field 3, the start field 22.
    let mut fields = record.rsplit_once(')')?.1.split_ascii_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    Some(RunningProcess { start: fields.nth(18)?.parse().ok()?, has_ended })
}

#[cfg(unix)]
unsafe extern "C" {
    fn kill(pid: i32, signal: i32) -> i32;
    fn flock(file: i32, operation: i32) -> i32;
    fn gethostname(name: *mut std::ffi::c_char, size: usize) -> i32;
}

/// Returns whether there may be a process of this number.
#[cfg(unix)]
fn exists(pid: u32) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: signal 0 is none; the call only looks the process up.
    let is_found = unsafe { kill(pid, 0) } == 0;
    is_found || std::io::Error::last_os_error().raw_os_error() != Some(NO_SUCH_PROCESS)
}

/// Waits until no other process holds the system's lock of the file, and holds it until the file is closed.
#[cfg(unix)]
fn exclude_others(file: &fs::File) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    const EXCLUSIVE: i32 = 2;
    loop {
        // SAFETY: the descriptor belongs to the open file.
        if unsafe { flock(file.as_raw_fd(), EXCLUSIVE) } == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Returns whether a path still names the open file.
#[cfg(unix)]
fn is_file_of(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(named)) => (file.dev(), file.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

// No lock is stale on other systems, whose processes this module cannot see.
#[cfg(not(unix))]
fn exclude_others(_file: &fs::File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn is_file_of(_file: &fs::File, _path: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn exists(_pid: u32) -> bool {
    true
}

#[cfg(unix)]
fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the last byte stays 0, whether the system ends a name that is cut or not.
    let failed = unsafe { gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or_default();
    match name.get(..end) {
        Some(name) if !failed && !name.is_empty() => String::from_utf8_lossy(name).into_owned(),
        _ => "localhost".to_owned(),
    }
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}
