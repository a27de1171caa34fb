//! A folder of compiled images, shared by processes.
//!
//! It saves the time of compiling: a hit is one file read and one hash, under a millisecond, and NVRTC is not even loaded for it. An
//! entry is found by a hash of all that decides what comes of a program ([`key`]), and is held against a checksum before it is
//! used ([`entry`]), so what is damaged, cut off or of another program is compiled again. Writing survives what can happen to a
//! folder ([`folder`]).
//!
//! What must stay true: no state of the folder makes a compilation fail, or gives another image than compiling would (`__DATE__` and
//! `__TIME__` aside, which stay those of the compilation). What goes wrong is said to [`log`] at level `warn`.

mod entry;
mod folder;
mod key;
mod place;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compiler::Output;
use crate::error::{Error, Result};
pub(super) use key::{Identity, Key};
use place::Place;

/// A folder of compiled images, shared by processes. Cheap to clone.
///
/// Any number of threads, processes and machines may use one folder at once. Entries that are damaged are compiled again; where the
/// folder cannot be written, programs are compiled each time. Files of others in the folder are left alone.
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
    place: Place,
    limit: u64,
    /// The bytes in the folder, as of when this cache last looked and with what it wrote since.
    known: Arc<AtomicU64>,
}

/// Nobody looked so far.
const UNKNOWN: u64 = u64::MAX;

/// What a cache holds, or what was removed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Finished entries: images, and a few bytes about each NVRTC that was used.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The most bytes that the cache keeps.
    pub limit: u64,
}

impl Cache {
    /// What a cache keeps at most where nothing else is said: 1 GiB.
    pub const LIMIT: u64 = 1 << 30;

    /// The user's cache: the folder `SELVEDGE_CACHE` (an absolute path, or `none`), else `$XDG_CACHE_HOME/selvedge`, else
    /// `~/.cache/selvedge` (on Windows `%LOCALAPPDATA%\selvedge`). `SELVEDGE_CACHE_LIMIT` caps it, in bytes, perhaps with K, M or G
    /// behind the number.
    ///
    /// A value that cannot be used turns the cache off: it is reported to [`log`] when something is compiled, and is the error of
    /// [`Cache::statistics`] and [`Cache::clear`].
    pub fn standard() -> Cache {
        let (place, limit) = place::standard(&|variable| std::env::var_os(variable));
        Cache::new(place, limit.unwrap_or(Cache::LIMIT))
    }

    /// The cache in this folder, which is made when something is first written. A relative path is one of the current folder now.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        let folder = folder.into();
        let absolute = std::path::absolute(&folder).unwrap_or(folder);
        Cache::new(Place::Folder(absolute), Cache::LIMIT)
    }

    /// No cache: everything is compiled each time.
    pub fn none() -> Cache {
        Cache::new(Place::None, 0)
    }

    fn new(place: Place, limit: u64) -> Cache {
        Cache { place, limit, known: Arc::new(AtomicU64::new(UNKNOWN)) }
    }

    /// Keeps at most this many bytes. Past it, the entries used longest ago are removed, down to nine tenths.
    ///
    /// Several processes may together go past it, each by what it wrote since it last looked.
    pub fn with_limit(self, bytes: u64) -> Cache {
        Cache::new(self.place, bytes)
    }

    /// The folder; `None` where there is no cache.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder),
            Place::None | Place::Unusable { .. } => None,
        }
    }

    /// What the cache holds; nothing where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the folder cannot be read, [`Error::InvalidArgument`] for a variable that cannot be used.
    pub fn statistics(&self) -> Result<CacheStatistics> {
        self.of_folder("a folder that can be read", folder::measure)
    }

    /// Removes everything, and says what that was.
    ///
    /// # Errors
    ///
    /// As [`Cache::statistics`], and [`Error::File`] where a file cannot be removed.
    pub fn clear(&self) -> Result<CacheStatistics> {
        self.known.store(UNKNOWN, Ordering::Relaxed);
        self.of_folder("a folder in which files can be removed", folder::clear)
    }

    fn of_folder(
        &self,
        wanted: &str,
        act: impl FnOnce(&Path) -> io::Result<(u64, u64)>,
    ) -> Result<CacheStatistics> {
        let (entries, bytes) = match &self.place {
            Place::None => (0, 0),
            Place::Unusable { variable, found, wanted } => {
                return Err(Error::invalid(variable, found, *wanted));
            }
            Place::Folder(folder) => act(folder).map_err(|error| Error::File {
                path: folder.display().to_string(),
                found: error.to_string(),
                wanted: wanted.to_owned(),
            })?,
        };
        Ok(CacheStatistics { entries, bytes, limit: self.limit })
    }

    /// Whether anything can be found or kept; says once why not, where that is nobody's wish.
    pub(super) fn is_usable(&self) -> bool {
        if let Place::Unusable { variable, found, wanted } = &self.place {
            static SAID: std::sync::Once = std::sync::Once::new();
            SAID.call_once(|| log::warn!("nothing is cached: {variable} is {found}; wanted {wanted}"));
        }
        self.folder().is_some()
    }

    /// What was kept under a key.
    pub(super) fn find(&self, key: &Key) -> Option<Output> {
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

    /// Keeps what a compilation gave.
    pub(super) fn keep(&self, key: &Key, output: &Output) {
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

    /// Counts what was written, and looks into the folder where that was never done or the limit is reached.
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
