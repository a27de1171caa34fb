//! Opening a shared library, and the record of the attempts.
//!
//! Libraries are opened with `RTLD_NOW | RTLD_LOCAL`: an unresolved symbol fails here and not in the middle of a call,
//! and symbols do not leak into other libraries. A failed attempt is not an error by itself; the list of attempts is.

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use super::report::Attempt;
use crate::error::Error;

/// A method of opening a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// The copy that is already in this process, by its linker name.
    AlreadyLoaded(String),
    /// A file.
    File(PathBuf),
    /// The library that the dynamic linker finds under this name.
    Linker(String),
}

impl How {
    /// The path or name, for display.
    pub(super) fn path(&self) -> String {
        match self {
            How::AlreadyLoaded(name) | How::Linker(name) => name.clone(),
            How::File(path) => path.display().to_string(),
        }
    }

    /// Opens it, or returns the reason why not.
    pub(super) fn open(&self) -> Result<libloading::Library, String> {
        match self {
            How::AlreadyLoaded(name) => {
                already_loaded(name).ok_or_else(|| "not loaded in this process so far".to_owned())
            }
            How::File(path) if !path.exists() => Err("no such file".to_owned()),
            How::File(path) => open_file(path),
            How::Linker(name) => open_name(name),
        }
    }
}

/// The reason why a library is unavailable, with the attempts.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) error: Error,
    pub(super) attempts: Vec<Attempt>,
    /// Path and version, if a library was loaded and is unusable.
    pub(super) found: Option<(String, String)>,
}

impl Failure {
    /// No candidate was usable.
    pub(super) fn unavailable(library: &'static str, attempts: Vec<Attempt>) -> Box<Failure> {
        let tried = attempts.iter().map(|attempt| format!("  {attempt}")).collect::<Vec<_>>().join("\n");
        Box::new(Failure { error: Error::LibraryUnavailable { library, tried }, attempts, found: None })
    }
}

/// A failed attempt.
pub(super) fn refused(
    path: impl Into<String>,
    source: impl Into<String>,
    reason: impl Into<String>,
) -> Attempt {
    Attempt { path: path.into(), source: source.into(), taken: false, reason: reason.into() }
}

/// The attempt that ended the search.
pub(super) fn taken(
    path: impl Into<String>,
    source: impl Into<String>,
    reason: impl Into<String>,
) -> Attempt {
    Attempt { path: path.into(), source: source.into(), taken: true, reason: reason.into() }
}

#[cfg(unix)]
fn open_with(name: &std::ffi::OsStr, flags: i32) -> Result<libloading::Library, String> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the libraries are NVIDIA's own, or a file that the user named; their initialisers run, as linking to them
    // would run them.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL | flags) };
    library.map(Into::into).map_err(|error| {
        // `dlerror` begins with the name, which the attempt already shows.
        let text = error.to_string();
        text.strip_prefix(&format!("{}: ", name.to_string_lossy())).unwrap_or(&text).to_owned()
    })
}

#[cfg(unix)]
fn open_file(path: &Path) -> Result<libloading::Library, String> {
    open_with(path.as_os_str(), 0)
}

#[cfg(unix)]
fn open_name(name: &str) -> Result<libloading::Library, String> {
    open_with(name.as_ref(), 0)
}

#[cfg(target_os = "linux")]
fn already_loaded(name: &str) -> Option<libloading::Library> {
    const RTLD_NOLOAD: i32 = 4;
    open_with(name.as_ref(), RTLD_NOLOAD).ok()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn already_loaded(_name: &str) -> Option<libloading::Library> {
    None
}

#[cfg(windows)]
fn open_file(path: &Path) -> Result<libloading::Library, String> {
    use libloading::os::windows::{LOAD_WITH_ALTERED_SEARCH_PATH, Library};
    // SAFETY: as on unix. The flag makes the library's own folder the first for its dependencies.
    let library = unsafe { Library::load_with_flags(path, LOAD_WITH_ALTERED_SEARCH_PATH) };
    library.map(Into::into).map_err(|error| error.to_string())
}

#[cfg(windows)]
fn open_name(name: &str) -> Result<libloading::Library, String> {
    use libloading::os::windows::{LOAD_LIBRARY_SEARCH_SYSTEM32, Library};
    // The driver belongs to the system; a file of that name in the program's folder is another. Toolkits are on PATH.
    let flags = if name == super::layout::DRIVER_FILE { LOAD_LIBRARY_SEARCH_SYSTEM32 } else { 0 };
    // SAFETY: as on unix.
    let library = unsafe { Library::load_with_flags(name, flags) };
    library.map(Into::into).map_err(|error| error.to_string())
}

#[cfg(windows)]
fn already_loaded(name: &str) -> Option<libloading::Library> {
    libloading::os::windows::Library::open_already_loaded(name).ok().map(Into::into)
}

/// Returns the file that an address of this process was loaded from, if the system reports it.
#[cfg(target_os = "linux")]
pub(super) fn file_of(address: *mut c_void) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        // The path is the last field and the only one that begins with a slash.
        let path = &rest[rest.find('/')?..];
        (start..end).contains(&address.addr()).then(|| PathBuf::from(path))
    })
}

/// Returns the file that an address of this process was loaded from, if the system reports it.
#[cfg(not(target_os = "linux"))]
pub(super) fn file_of(_address: *mut c_void) -> Option<PathBuf> {
    None
}
