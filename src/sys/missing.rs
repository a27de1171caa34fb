//! The memory of a search for the driver that found no file, so that each failing call does not search anew.
//!
//! A search is repeated once its [`Circumstances`] changed: the variable, a library of that name that other code loaded, a file
//! at one of the searched paths, or `ldconfig`'s list. A driver that was found and fails is never remembered, since its state
//! is the system's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::layout::{self, Environment};
use super::linker;
use super::loader::{Failure, How};

/// A search without a file.
pub(super) struct Missing {
    circumstances: Circumstances,
    failure: Failure,
}

/// The last search, if it found no file.
static LAST: Mutex<Option<Missing>> = Mutex::new(None);

/// The state of the process and the system on which the result of a search depends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Circumstances {
    variable: Option<OsString>,
    is_loaded: bool,
    /// The searched paths at which a file is.
    files: Vec<PathBuf>,
    /// The time of `ldconfig`'s list.
    list: Option<SystemTime>,
}

impl Circumstances {
    /// Returns the circumstances of a search for the driver; `variable` overrides its path.
    pub(super) fn of_driver(variable: &str, environment: Environment<'_>) -> Circumstances {
        let given = environment(variable);
        let paths: Vec<PathBuf> = match given.as_deref().filter(|given| !given.is_empty()) {
            Some(given) => vec![given.into()],
            None => layout::driver_candidates()
                .into_iter()
                .filter_map(|candidate| match candidate.how {
                    How::File(path) => Some(path),
                    How::AlreadyLoaded(_) | How::Linker(_) => None,
                })
                .chain(linker::folders(environment).map(|folder| folder.join(layout::DRIVER_FILE)))
                .collect(),
        };
        Circumstances {
            variable: given,
            is_loaded: How::AlreadyLoaded(layout::DRIVER_FILE.to_owned()).open().is_ok(),
            files: paths.into_iter().filter(|path| path.is_absolute() && path.exists()).collect(),
            list: Path::new(linker::LIST).metadata().and_then(|found| found.modified()).ok(),
        }
    }

    /// Returns the failure of the last search if it found no file under these circumstances.
    pub(super) fn last_failure(&self) -> Option<Box<Failure>> {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref().filter(|last| last.circumstances == *self)?;
        Some(Box::new(last.failure.clone()))
    }

    /// Remembers a failure, unless a file was there that may work the next time.
    pub(super) fn remember(self, failure: &Failure) {
        let is_missing = self.files.is_empty() && !self.is_loaded && failure.found.is_none();
        let missing = is_missing.then(|| Missing { circumstances: self, failure: failure.clone() });
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = missing;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::error::DRIVER_NAME;

    #[test]
    fn a_search_without_a_file_is_repeated_once_a_variable_or_a_path_changes() {
        let folder = std::env::temp_dir().join(format!("selvedge-missing-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("libcuda.so.1");
        let now = |value: &Path| {
            Circumstances::of_driver("SELVEDGE_LIBCUDA", &|name| {
                (name == "SELVEDGE_LIBCUDA").then(|| value.as_os_str().to_owned())
            })
        };
        let failure = Failure::unavailable(DRIVER_NAME, Vec::new());
        now(&path).remember(&failure);
        assert!(now(&path).last_failure().is_some());
        assert!(now(Path::new("none")).last_failure().is_none());
        std::fs::write(&path, "no library").unwrap();
        assert!(now(&path).last_failure().is_none());
        // A file that is no library may become one.
        now(&path).remember(&failure);
        assert!(now(&path).last_failure().is_none());
        std::fs::remove_dir_all(&folder).unwrap();
        now(&path).remember(&failure);
        assert!(now(&path).last_failure().is_some());
    }
}
