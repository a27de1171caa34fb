//! A folder of compiled images, shared by processes.
//!
//! It saves compilation time: a hit is one file read and one hash, under a millisecond, and does not load NVRTC. An
//! entry is found by a hash of all inputs of a compilation ([`key`]), and is checked against a checksum before use
//! ([`entry`]), so damaged, truncated or foreign entries are compiled again. Writing tolerates failures and concurrent
//! changes of the folder ([`folder`]).
//!
//! Invariants: no state of the folder makes a compilation fail or changes its result (except `__DATE__` and `__TIME__`,
//! which stay those of the compilation). Problems are reported to [`log`] at level `warn`.

mod entry;
mod folder;
mod key;
mod location;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compiler::Output;
use crate::error::{Error, Result};
pub(super) use key::{CacheKey, Identity};
use location::CacheLocation;

/// A folder of compiled images, shared by processes. Cheap to clone.
///
/// Any number of threads, processes and machines may use one folder at once. Damaged entries are compiled again. If the
/// folder cannot be written, programs are compiled each time. Foreign files in the folder are left alone.
///
/// ```
/// use selvedge::nvrtc::Cache;
/// # let folder = std::env::temp_dir().join("selvedge-doc-cache");
/// let cache = Cache::at(&folder).with_limit(64 << 20);
/// let held = cache.statistics()?;
/// println!("{} images, {} of {} bytes", held.entries, held.bytes, held.limit);
/// cache.clear()?;
/// assert_eq!(cache.statistics()?.entries, 0);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    location: CacheLocation,
    limit: u64,
    /// The bytes in the folder at the last scan, plus the bytes written since.
    known: Arc<AtomicU64>,
}

/// The folder was not scanned yet.
const UNKNOWN: u64 = u64::MAX;

/// The contents of a cache, or of the removed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Finished entries: images, and a few bytes about each NVRTC that was used.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The limit on the cache's bytes.
    pub limit: u64,
}

impl Cache {
    /// The default limit: 1 GiB.
    pub const LIMIT: u64 = 1 << 30;

    /// Returns the user's cache: the folder `SELVEDGE_CACHE` (an absolute path, or `none`), else
    /// `$XDG_CACHE_HOME/selvedge`, else `~/.cache/selvedge` (on Windows `%LOCALAPPDATA%\selvedge`).
    /// `SELVEDGE_CACHE_LIMIT` sets the limit in bytes, with an optional suffix K, M or G.
    ///
    /// An invalid value disables the cache. It is reported to [`log`] at the first compilation, and is the error of
    /// [`Cache::statistics`] and [`Cache::clear`].
    pub fn standard() -> Cache {
        let (location, limit) = location::standard(&|variable| std::env::var_os(variable));
        Cache::new(location, limit.unwrap_or(Cache::LIMIT))
    }

    /// Returns the cache in this folder, which the first write creates. A relative path is resolved against the current
    /// folder now.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        let folder = folder.into();
        let absolute = std::path::absolute(&folder).unwrap_or(folder);
        Cache::new(CacheLocation::Folder(absolute), Cache::LIMIT)
    }

    /// Returns a disabled cache: everything is compiled each time.
    pub fn none() -> Cache {
        Cache::new(CacheLocation::None, 0)
    }

    fn new(location: CacheLocation, limit: u64) -> Cache {
        Cache { location, limit, known: Arc::new(AtomicU64::new(UNKNOWN)) }
    }

    /// Sets the limit in bytes. Beyond it, the least recently used entries are removed, down to nine tenths.
    ///
    /// Several processes together may exceed the limit, each by the bytes that it wrote since its last scan.
    pub fn with_limit(self, bytes: u64) -> Cache {
        Cache::new(self.location, bytes)
    }

    /// The folder; `None` for a disabled cache.
    pub fn folder(&self) -> Option<&Path> {
        match &self.location {
            CacheLocation::Folder(folder) => Some(folder),
            CacheLocation::None | CacheLocation::Unusable { .. } => None,
        }
    }

    /// Returns the contents of the cache; zeros if it is disabled.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the folder cannot be read, [`Error::InvalidArgument`] for an invalid variable.
    pub fn statistics(&self) -> Result<CacheStatistics> {
        self.of_folder("a folder that can be read", folder::measure)
    }

    /// Removes everything, and returns the removed entries and bytes.
    ///
    /// # Errors
    ///
    /// As [`Cache::statistics`], and [`Error::File`] if a file cannot be removed.
    pub fn clear(&self) -> Result<CacheStatistics> {
        self.known.store(UNKNOWN, Ordering::Relaxed);
        self.of_folder("a folder in which files can be removed", folder::clear)
    }

    fn of_folder(
        &self,
        wanted: &str,
        act: impl FnOnce(&Path) -> io::Result<(u64, u64)>,
    ) -> Result<CacheStatistics> {
        let (entries, bytes) = match &self.location {
            CacheLocation::None => (0, 0),
            CacheLocation::Unusable { variable, found, wanted } => {
                return Err(Error::invalid(variable, found, *wanted));
            }
            CacheLocation::Folder(folder) => act(folder).map_err(|error| Error::File {
                path: folder.display().to_string(),
                found: error.to_string(),
                wanted: wanted.to_owned(),
            })?,
        };
        Ok(CacheStatistics { entries, bytes, limit: self.limit })
    }

    /// Returns whether the cache is enabled. Warns once if an invalid variable disabled it.
    pub(super) fn is_usable(&self) -> bool {
        if let CacheLocation::Unusable { variable, found, wanted } = &self.location {
            static SAID: std::sync::Once = std::sync::Once::new();
            SAID.call_once(|| log::warn!("nothing is cached: {variable} is {found}; wanted {wanted}"));
        }
        self.folder().is_some()
    }

    /// Returns the entry under a key.
    pub(super) fn find(&self, key: &CacheKey) -> Option<Output> {
        let folder = self.folder()?;
        let name = key.name();
        let bytes = match folder::read(folder, &name) {
            Ok(bytes) => bytes?,
            Err(error) => {
                log::warn!("{name} in the cache {} cannot be read: {error}", folder.display());
                return None;
            }
        };
        match entry::decode(key, &bytes) {
            Ok(output) => {
                folder::mark_used(folder, &name);
                Some(output)
            }
            Err(reason) => {
                log::warn!("{name} in the cache {} is made again: {reason}", folder.display());
                folder::remove(folder, &name);
                None
            }
        }
    }

    /// Stores the result of a compilation.
    pub(super) fn keep(&self, key: &CacheKey, output: &Output) {
        let Some(folder) = self.folder() else { return };
        let bytes = entry::encode(key, output);
        let length = bytes.len() as u64;
        if length > self.limit {
            log::warn!("an image of {length} bytes is not cached: the limit is {} bytes", self.limit);
            return;
        }
        let written = folder::write(folder, &key.name(), &bytes).and_then(|()| self.count(folder, length));
        if let Err(error) = written {
            log::warn!("an image is not cached in {}: {error}", folder.display());
        }
    }

    /// Adds the written bytes, and scans the folder if it was never scanned or the limit is reached.
    fn count(&self, folder: &Path, written: u64) -> io::Result<()> {
        let known = self.known.load(Ordering::Relaxed);
        let sum = known.saturating_add(written);
        if known != UNKNOWN && sum <= self.limit {
            self.known.fetch_add(written, Ordering::Relaxed);
            return Ok(());
        }
        let left = folder::tidy(folder, self.limit)?;
        self.known.store(left, Ordering::Relaxed);
        Ok(())
    }
}
