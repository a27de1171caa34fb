//! The state of the libraries and all attempts: the data of `selvedge info`.

use std::fmt;

/// An attempt to load a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The path or name.
    pub path: String,
    /// The source of the path, such as `SELVEDGE_LIBCUDA` or `$VIRTUAL_ENV`.
    pub source: String,
    /// True if this is the library in use.
    pub taken: bool,
    /// The reason for the outcome.
    pub reason: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.path, self.source, self.reason)
    }
}

/// A function that the crate calls and the library lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSymbol {
    /// The function's public name.
    pub name: &'static str,
    /// The CUDA version that introduced it, such as `12.4`; empty if unknown.
    pub needs: String,
    /// True if the library is unusable without it.
    pub required: bool,
}

/// The state of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryReport {
    /// The library, such as `NVRTC`.
    pub name: &'static str,
    /// The path that it was loaded from; `None` if it was not.
    pub path: Option<String>,
    /// The version in words; `None` if it could not be queried.
    pub version: Option<String>,
    /// True if it can be used.
    pub usable: bool,
    /// The reason why it cannot be used; `None` if it can.
    pub problem: Option<String>,
    /// Every attempt, in order.
    pub attempts: Vec<Attempt>,
    /// The functions that it lacks.
    pub missing: Vec<MissingSymbol>,
}

impl fmt::Display for LibraryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("version unknown");
        match (&self.path, &self.problem) {
            (Some(path), None) => writeln!(f, "{}: {version}, {path}", self.name)?,
            (Some(path), Some(problem)) => {
                writeln!(f, "{}: {version}, {path}, cannot be used: {problem}", self.name)?
            }
            (None, _) => writeln!(f, "{}: not loaded", self.name)?,
        }
        for attempt in &self.attempts {
            writeln!(f, "  {} {attempt}", if attempt.taken { "+" } else { "-" })?;
        }
        for symbol in &self.missing {
            let needs =
                if symbol.needs.is_empty() { String::new() } else { format!(" (CUDA {})", symbol.needs) };
            writeln!(
                f,
                "  has no {}{needs}{}",
                symbol.name,
                if symbol.required { ", which is required" } else { "" }
            )?;
        }
        Ok(())
    }
}

/// The state of every library that the crate can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The driver first, then the optional ones.
    pub libraries: Vec<LibraryReport>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.libraries.iter().try_for_each(|library| write!(f, "{library}"))
    }
}
