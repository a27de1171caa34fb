//! [`Checkpoints`], a folder of checkpoints, and [`CheckpointList`].
//!
//! A checkpoint is the folder `checkpoint_step_` and at least six digits. Hidden folders of the same name are intermediate
//! states: `.tmp` is being written, `.replaced` made way for a new one of its step, `.removed` is being deleted.
//! [`Checkpoints::open`] finishes or undoes what a killed process left.

use std::fs;
use std::path::{Path, PathBuf};

use super::checkpoint::{BestCheckpoint, Checkpoint, CheckpointInfo, INFO, is_newer};
use super::lock::FolderLock;
use crate::error::{Error, Result};
use crate::io::new_file;
use crate::io::npy::file_error;
use crate::tensor::Device;

const PREFIX: &str = "checkpoint_step_";
const WRITTEN: &str = "tmp";
const REPLACED: &str = "replaced";
const REMOVED: &str = "removed";
/// The ending of a checkpoint that a run which continued from an earlier one left behind.
const SET_ASIDE: &str = "set-aside";
/// The checkpoints that stay if nothing else is said.
const KEPT: usize = 3;

/// A folder of checkpoints that this process alone writes, until it is dropped.
///
/// ```
/// use selvedge::nn::{Adam, Checkpoint, Checkpoints, Initializer, Linear, Module, Optimizer};
/// use selvedge::Device;
/// # let folder = std::env::temp_dir().join(format!("selvedge-doc-checkpoints-{}", std::process::id()));
/// let device = Device::best();
/// let mut model = Linear::new(2, 2, &Initializer::new(&device))?;
/// let mut optimizer = Adam::new(model.parameters(), 1e-3)?;
/// let mut checkpoints = Checkpoints::open(&folder)?.with_kept(2)?;
/// let mut checkpoint = Checkpoint { parameters: model.state_dict(), optimizer: optimizer.state_dict()?, ..Default::default() };
/// checkpoint.info.step = 100;
/// checkpoints.save(&checkpoint)?;
///
/// if let Some(latest) = checkpoints.list()?.latest() {
///     let checkpoint = latest.load(&device)?;
///     model.load_state_dict(&checkpoint.parameters)?;
///     optimizer.load_state_dict(&checkpoint.optimizer)?;
///     assert_eq!(checkpoint.info.step, 100);
/// }
/// # drop(checkpoints);
/// # let _ = std::fs::remove_dir_all(&folder);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    lock: FolderLock,
    kept: usize,
    best: Option<BestCheckpoint>,
}

impl Checkpoints {
    /// Opens a folder for writing, creates it if it is missing, and locks it. A lock whose process has ended on this host is
    /// taken over with a warning in the log. The best loss so far is that of the last checkpoint whose information can be read.
    ///
    /// # Errors
    ///
    /// [`Error::FolderLocked`] if another process writes the folder; [`Error::FileNotWritten`] if the folder cannot be created or
    /// written; [`Error::File`] if it is no folder or a newer version wrote its latest checkpoint.
    pub fn open(folder: impl AsRef<Path>) -> Result<Checkpoints> {
        let folder = folder.as_ref().to_owned();
        if folder.exists() && !folder.is_dir() {
            return Err(file_error(&folder.display().to_string(), "a file", "a folder that can be written"));
        }
        fs::create_dir_all(&folder).map_err(|error| write_error(&folder, &error))?;
        let lock = FolderLock::acquire(&folder)?;
        recover(&folder)?;
        let mut best = None;
        for entry in CheckpointList::read(&folder)?.entries.iter().rev() {
            match entry.info() {
                Ok(info) => {
                    best = info.best;
                    break;
                }
                Err(error) if is_newer(&error) => return Err(error),
                Err(error) => log::warn!("a checkpoint is damaged: {error}"),
            }
        }
        Ok(Checkpoints { folder, lock, kept: KEPT, best })
    }

    /// Sets the number of last checkpoints that stay beside the best one, 3 otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for 0.
    pub fn with_kept(self, kept: usize) -> Result<Checkpoints> {
        if kept == 0 {
            return Err(Error::invalid("Checkpoints::with_kept", "0 checkpoints", "at least 1"));
        }
        Ok(Checkpoints { kept, ..self })
    }

    /// Saves a checkpoint, which replaces one of the same step, then deletes old ones. Returns its folder.
    ///
    /// Until the new checkpoint is whole and on the disk, all others stay.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] if the checkpoint cannot be written, [`Error::FolderLocked`] if another process took the lock over,
    /// [`Error::InvalidArgument`] for tensors that safetensors cannot hold, [`Error::OutOfMemory`] and driver errors. The
    /// folder stays as it was.
    pub fn save(&mut self, checkpoint: &Checkpoint) -> Result<PathBuf> {
        self.lock.check()?;
        let CheckpointInfo { step, loss, .. } = checkpoint.info;
        let path = self.folder.join(name(step));
        let written = intermediate(&path, WRITTEN);
        let best = best_with(self.best, step, loss);
        remove_folder(&written)?;
        let finished = fs::create_dir(&written)
            .map_err(|error| write_error(&written, &error))
            .and_then(|()| checkpoint.write(&written, best))
            .and_then(|()| sync_folder(&written))
            .and_then(|()| publish(&written, &path))
            .and_then(|()| sync_folder(&self.folder));
        if let Err(error) = finished {
            // The first error is the one to report; the next save or open deletes the rest.
            let _ = remove_folder(&written);
            return Err(error);
        }
        self.best = best;
        self.prune(step);
        Ok(path)
    }

    /// Prepares a run that continues from the checkpoint of `step`, with the best loss of that time: later checkpoints get
    /// the ending `.set-aside`, and no list has them any more. Returns their new paths.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if there is no such checkpoint or its information is damaged; [`Error::FileNotWritten`] if a folder cannot
    /// be renamed.
    pub fn rewind(&mut self, step: u64) -> Result<Vec<PathBuf>> {
        self.lock.check()?;
        let list = self.list()?;
        let Some(entry) = list.at(step) else {
            let found = format!("no checkpoint of step {step}");
            return Err(file_error(&self.folder.display().to_string(), found, "the step of a checkpoint"));
        };
        self.best = entry.info()?.best;
        let mut moved = Vec::new();
        for entry in list.entries.iter().filter(|entry| entry.step > step) {
            let name = |number: u32| match number {
                1 => entry.path.with_extension(SET_ASIDE),
                number => entry.path.with_extension(format!("{SET_ASIDE}-{number}")),
            };
            let path = (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(1));
            fs::rename(&entry.path, &path).map_err(|error| write_error(&entry.path, &error))?;
            moved.push(path);
        }
        sync_folder(&self.folder)?;
        Ok(moved)
    }

    /// Returns the number and the host of the ended process whose lock [`open`](Self::open) took over, if there was one.
    pub fn ended_writer(&self) -> Option<(u32, &str)> {
        self.lock.ended_owner()
    }

    /// Returns the checkpoints of the folder.
    ///
    /// # Errors
    ///
    /// As [`CheckpointList::read`].
    pub fn list(&self) -> Result<CheckpointList> {
        CheckpointList::read(&self.folder)
    }

    /// Deletes all but the last checkpoints, the best one and the one that was saved.
    fn prune(&self, saved: u64) {
        let prune = || -> Result<()> {
            remove_folder(&intermediate(&self.folder.join(name(saved)), REPLACED))?;
            let list = self.list()?;
            let old = list.entries.len().saturating_sub(self.kept);
            for entry in list.entries.iter().take(old) {
                if entry.step != saved && self.best.is_none_or(|best| best.step != entry.step) {
                    let removed = intermediate(&entry.path, REMOVED);
                    fs::rename(&entry.path, &removed).map_err(|error| write_error(&entry.path, &error))?;
                    remove_folder(&removed)?;
                }
            }
            Ok(())
        };
        if let Err(error) = prune() {
            log::warn!("an old checkpoint stays: {error}");
        }
    }
}

impl Checkpoint {
    /// Writes the checkpoint into a folder of this name, which appears when it is whole and on the disk. An older checkpoint of the
    /// name stays until then. [`Checkpoints`] has a folder of several, with a lock.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] for a path of something else than a checkpoint, which stays as it is, and if the checkpoint
    /// cannot be written; [`Error::InvalidArgument`] for tensors that safetensors cannot hold, [`Error::OutOfMemory`] and driver
    /// errors.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let path = folder.as_ref();
        let refused = |found: &str| {
            let (path, found) = (path.display().to_string(), found.to_owned());
            Err(Error::FileNotWritten {
                path,
                found,
                wanted: "the name of a new folder or of a checkpoint".to_owned(),
            })
        };
        if path.file_name().is_none() {
            return refused("a path without a name");
        }
        let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if path.exists() && !path.join(INFO).exists() && !is_empty() {
            return refused(if path.is_dir() { "a folder of other files" } else { "a file" });
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(|error| write_error(parent, &error))?;
        let (written, replaced) = (intermediate(path, WRITTEN), intermediate(path, REPLACED));
        if replaced.exists() && !path.exists() {
            fs::rename(&replaced, path).map_err(|error| write_error(path, &error))?;
        }
        remove_folder(&written)?;
        let finished = fs::create_dir(&written)
            .map_err(|error| write_error(&written, &error))
            .and_then(|()| self.write(&written, self.info.best))
            .and_then(|()| sync_folder(&written))
            .and_then(|()| publish(&written, path))
            .and_then(|()| sync_folder(parent));
        if finished.is_err() {
            // The first error is the one to report; the next save deletes the rest.
            let _ = remove_folder(&written);
            return finished;
        }
        remove_folder(&replaced)
    }
}

/// Returns the folder of a checkpoint, or the one that made way for a new one when a process was killed.
pub(super) fn whole(path: &Path) -> PathBuf {
    let replaced = intermediate(path, REPLACED);
    if !path.exists() && replaced.exists() { replaced } else { path.to_owned() }
}

/// A checkpoint's folder, whose files are not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointEntry {
    step: u64,
    path: PathBuf,
}

impl CheckpointEntry {
    /// Returns the steps that the run had taken.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the information without the tensors.
    ///
    /// # Errors
    ///
    /// As [`CheckpointInfo::load`].
    pub fn info(&self) -> Result<CheckpointInfo> {
        CheckpointInfo::load(&self.path)
    }

    /// Reads the checkpoint. Its tensors go to `device`.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::load`].
    pub fn load(&self, device: &Device) -> Result<Checkpoint> {
        Checkpoint::load(&self.path, device)
    }
}

/// The checkpoints of a folder by step. Reading it takes no lock: another process may write the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointList {
    entries: Vec<CheckpointEntry>,
}

impl CheckpointList {
    /// Lists the checkpoints of a folder.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the folder cannot be read.
    pub fn read(folder: impl AsRef<Path>) -> Result<CheckpointList> {
        let folder = folder.as_ref();
        let mut entries = Vec::new();
        for path in paths(folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(step) = step_of(&name).filter(|_| path.is_dir()) {
                entries.push(CheckpointEntry { step, path });
            }
        }
        entries.sort_by_key(|entry| entry.step);
        Ok(CheckpointList { entries })
    }

    /// Returns the checkpoints in the order of their steps.
    pub fn entries(&self) -> &[CheckpointEntry] {
        &self.entries
    }

    /// Returns the checkpoint of the most steps.
    pub fn latest(&self) -> Option<&CheckpointEntry> {
        self.entries.last()
    }

    /// Returns the checkpoint of a step.
    pub fn at(&self, step: u64) -> Option<&CheckpointEntry> {
        self.entries.iter().find(|entry| entry.step == step)
    }

    /// Returns the last checkpoint whose files are all undamaged. It reads every file of those that it tries.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn latest_whole(&self) -> Result<Option<&CheckpointEntry>> {
        for entry in self.entries.iter().rev() {
            match entry.load(&Device::cpu()) {
                Ok(_) => return Ok(Some(entry)),
                Err(Error::File { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns the checkpoint of the lowest loss, if any was saved with a loss and it is still there.
    ///
    /// # Errors
    ///
    /// As [`CheckpointInfo::load`], of the latest checkpoint.
    pub fn best(&self) -> Result<Option<&CheckpointEntry>> {
        let Some(latest) = self.latest() else { return Ok(None) };
        let Some(best) = latest.info()?.best else { return Ok(None) };
        Ok(self.entries.iter().find(|entry| entry.step == best.step))
    }
}

/// Returns the error of a failed write to a checkpoint or its folder.
pub(super) fn write_error(path: &Path, error: &std::io::Error) -> Error {
    new_file::write_error(path, error, "a folder that can be written, with enough free space")
}

/// Returns the best checkpoint once this one is saved. NaN and infinities, which JSON lacks, do not count.
fn best_with(before: Option<BestCheckpoint>, step: u64, loss: Option<f64>) -> Option<BestCheckpoint> {
    // The new checkpoint replaces one of the same step.
    let before = before.filter(|best| best.step != step);
    match loss {
        Some(loss) if loss.is_finite() && before.is_none_or(|best| loss < best.loss) => {
            Some(BestCheckpoint { step, loss })
        }
        _ => before,
    }
}

fn name(step: u64) -> String {
    format!("{PREFIX}{step:06}")
}

/// Returns the step of a checkpoint's name.
fn step_of(found: &str) -> Option<u64> {
    let step = found.strip_prefix(PREFIX)?.parse().ok()?;
    (name(step) == found).then_some(step)
}

/// Returns the hidden folder of an intermediate state of a checkpoint.
fn intermediate(path: &Path, state: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{state}"))
}

/// Returns the paths in a folder.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    read().map_err(|error| {
        let found = format!("a read error: {error}");
        file_error(&folder.display().to_string(), found, "a folder of checkpoints that can be read")
    })
}

/// Gives a written checkpoint its name. One that has the name makes way, and comes back if the rename fails.
fn publish(written: &Path, path: &Path) -> Result<()> {
    let fail = |error: std::io::Error| write_error(path, &error);
    let replaced = intermediate(path, REPLACED);
    let is_replacement = path.exists();
    if is_replacement {
        remove_folder(&replaced)?;
        fs::rename(path, &replaced).map_err(fail)?;
    }
    fs::rename(written, path).map_err(|error| {
        if is_replacement {
            // `recover` does it if this fails.
            let _ = fs::rename(&replaced, path);
        }
        fail(error)
    })
}

/// Finishes or undoes what a killed process left.
fn recover(folder: &Path) -> Result<()> {
    for path in paths(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let parts = name.strip_prefix('.').and_then(|name| name.rsplit_once('.'));
        let Some((checkpoint, state)) = parts.filter(|(checkpoint, _)| step_of(checkpoint).is_some()) else {
            continue;
        };
        let whole = folder.join(checkpoint);
        match state {
            REPLACED if !whole.exists() => {
                fs::rename(&path, &whole).map_err(|error| write_error(&whole, &error))?;
            }
            WRITTEN | REPLACED | REMOVED => remove_folder(&path)?,
            _ => {}
        }
    }
    Ok(())
}

/// Deletes a folder, if it exists.
fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(write_error(path, &error)),
        _ => Ok(()),
    }
}

/// Waits until a folder's list of names is on the disk.
fn sync_folder(folder: &Path) -> Result<()> {
    // Other systems do not open folders as files.
    if cfg!(unix) {
        let synced = fs::File::open(folder).and_then(|file| file.sync_all());
        synced.map_err(|error| write_error(folder, &error))?;
    }
    Ok(())
}
